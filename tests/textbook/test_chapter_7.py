"""Featherstone 2008 sections 7.4 and 7.5: alternative assembly formulae and several handles."""

import numpy as np
import pytest
from tests.algorithms.trees import close, force, random_tree, six, state

from dalembert.algorithms.articulated import assemble
from dalembert.errors import ArgumentError
from dalembert.model.joints.subspaces import dual_bases
from dalembert.spatial import ArticulatedInertia, Force, Motion, RigidInertia
from dalembert.textbook import constrained_equations
from dalembert.textbook import handles as handles_module
from dalembert.textbook import recursive_assembly as divide_and_conquer
from dalembert.textbook.handles import handle_bias_acceleration, handle_inverse_inertia

FREEDOMS = range(7)


def positive(rng, n=6):
    A = rng.normal(size=(n, n))
    return A @ A.T + np.eye(n)


def motion(values):
    return Motion.of(np.asarray(values).tolist())


class Pair:
    """Two random handles and a joint of n freedoms between them, with T_a and T from a random basis."""

    def __init__(self, n, seed=0):
        rng = np.random.default_rng(100 * seed + n)
        self.n = n
        self.dense = [positive(rng), positive(rng)]
        self.I_1, self.I_2 = (ArticulatedInertia.from_matrix(I.tolist()) for I in self.dense)
        self.p_1, self.p_2 = (force(rng.normal(size=6)) for _ in range(2))
        self.c = motion(rng.normal(size=6))
        self.tau = rng.normal(size=n).tolist()
        self.S = tuple(motion(s) for s in rng.normal(size=(n, 6)))
        self.T_a, self.T = dual_bases(self.S)
        self.a_1 = rng.normal(size=6)

    @property
    def inertias(self):
        return self.I_1, self.p_1, self.I_2, self.p_2

    @property
    def inverses(self):
        return *handles_module.inverse_inertia(self.I_1, self.p_1), *handles_module.inverse_inertia(
            self.I_2, self.p_2
        )

    @property
    def implicit(self):
        return self.T, self.T_a, self.c, self.tau

    def force_and_joint(self):
        """f and q̈ for a_1, from the five equations 7.51 to 7.55 solved densely."""
        S = np.array([six(s) for s in self.S]).reshape(-1, 6).T
        I_1, I_2 = self.dense
        # a_2 = a_1 + c + S q̈ and S^T (I_2 a_2 + p_2) = tau
        bias = S.T @ (I_2 @ (self.a_1 + six(self.c)) + six(self.p_2))
        qdd = np.linalg.solve(S.T @ I_2 @ S, np.array(self.tau) - bias) if self.n else np.zeros(0)
        f_2 = I_2 @ (self.a_1 + six(self.c) + S @ qdd) + six(self.p_2)
        return I_1 @ self.a_1 + six(self.p_1) + f_2, qdd


# 7.4 alternative assembly formulae


@pytest.mark.parametrize("n", FREEDOMS)
def test_three_assembly_formulae_agree(n):
    """RBDA-7.4-VARIANTS: three formulae for I^A or its inverse; q̈ = T_a^T (a_2 - a_1 - c)."""
    pair = Pair(n)
    f, qdd = pair.force_and_joint()
    I_A, p_A = assemble(*pair.inertias, pair.S, pair.c, pair.tau)
    I_2, p_2 = handles_module.assemble_in_constraint_space(*pair.inertias, *pair.implicit)
    Phi, b = handles_module.assemble_inverse(*pair.inverses, *pair.implicit)
    close(np.array(I_A.matrix()) @ pair.a_1 + six(p_A), f, 1e-10)
    close(I_2.matrix(), I_A.matrix(), 1e-9)
    close(six(p_2), six(p_A), 1e-9)
    close(np.array(Phi) @ np.array(I_A.matrix()), np.eye(6), 1e-9)
    close(np.array(I_A.matrix()) @ six(b), -six(p_A), 1e-9)
    # what footnote 1 says of q̈
    f_2 = f - pair.dense[0] @ pair.a_1 - six(pair.p_1)
    a_2 = motion(np.linalg.solve(pair.dense[1], f_2 - six(pair.p_2)))
    close(handles_module.relative_acceleration(motion(pair.a_1), a_2, pair.c, pair.T_a), qdd, 1e-9)


def test_box_with_cylinder_by_every_formula():
    """RBDA-7.4-VARIANTS, RBDA-7.1-BOX: diag(I1, I1 + I2, I1 + I2, m1 + m2, m1, m1 + m2), and its inverse."""
    m1, m2, I1, I2 = 2.0, 3.0, 0.4, 0.7
    handles = [
        ArticulatedInertia.from_rigid(RigidInertia(m, (0.0,) * 3, (I,) * 3)) for m, I in ((m1, I1), (m2, I2))
    ]
    S = tuple(motion(np.eye(6)[i]) for i in (0, 4))
    T_a, T = dual_bases(S)
    expected = np.diag([I1, I1 + I2, I1 + I2, m1 + m2, m1, m1 + m2])
    zero, rest = Force.zero(), Motion.zero()
    I_A, _ = handles_module.assemble_in_constraint_space(
        handles[0], zero, handles[1], zero, T, T_a, rest, [0.0, 0.0]
    )
    close(I_A.matrix(), expected, 1e-15)
    inverses = [part for handle in handles for part in handles_module.inverse_inertia(handle, zero)]
    Phi, _ = handles_module.assemble_inverse(*inverses, T, T_a, rest, [0.0, 0.0])
    close(np.linalg.inv(np.array(Phi)), expected, 1e-14)


@pytest.mark.parametrize("n", FREEDOMS)
def test_inverse_formula_holds_for_handles_on_a_fixed_base(n):
    """RBDA-7.4-VARIANTS: variant 1 where handle 1 has three freedoms and no inertia."""
    pair = Pair(n, seed=1)
    rng = np.random.default_rng(n)
    freedom = rng.normal(size=(6, 3))
    Phi_1, b_1 = freedom @ freedom.T, rng.normal(size=6)
    _, _, Phi_2, b_2 = pair.inverses
    Phi_A, b_A = handles_module.assemble_inverse(Phi_1.tolist(), motion(b_1), Phi_2, b_2, *pair.implicit)
    f = rng.normal(size=6)
    # unknowns f_2, q̈: Phi_2 f_2 + b_2 = Phi_1 (f - f_2) + b_1 + c + S q̈,  S^T f_2 = tau
    S = np.array([six(s) for s in pair.S]).reshape(-1, 6).T
    A = np.block([[np.array(Phi_2) + Phi_1, -S], [S.T, np.zeros((n, n))]])
    right = np.concatenate([Phi_1 @ f + b_1 + six(pair.c) - six(b_2), pair.tau])
    f_2 = np.linalg.solve(A, right)[:6]
    close(np.array(Phi_A) @ f + six(b_A), Phi_1 @ (f - f_2) + b_1, 1e-8)
    assert np.linalg.matrix_rank(np.array(Phi_A), tol=1e-9) <= 3


@pytest.mark.parametrize("n", FREEDOMS)
def test_block_elimination_derives_the_formulae(n):
    """RBDA-7.4-SYSTEMATIC: the three composite equations of Table 7.2, for every unknown."""
    pair = Pair(n, seed=2)
    f, qdd = pair.force_and_joint()
    standard = constrained_equations.solve_composite(
        constrained_equations.standard_equations(*pair.inertias, pair.S, pair.c, pair.tau)
    )
    I_A, p_A = assemble(*pair.inertias, pair.S, pair.c, pair.tau)
    close(standard[0].coefficient, I_A.matrix(), 1e-9)
    close(standard[0].constant, six(p_A), 1e-9)
    joint = standard[4]
    at_a_1 = np.array(joint.coefficient).reshape(n, 6) @ pair.a_1 + np.array(joint.constant)
    close(at_a_1, qdd, 1e-9)
    first = constrained_equations.solve_composite(
        constrained_equations.variant_1_equations(*pair.inverses, *pair.implicit)
    )
    Phi_A, b_A = handles_module.assemble_inverse(*pair.inverses, *pair.implicit)
    close(first[0].coefficient, Phi_A, 1e-9)
    close(first[0].constant, six(b_A), 1e-9)
    second = constrained_equations.solve_composite(
        constrained_equations.variant_2_equations(*pair.inertias, *pair.implicit)
    )
    close(second[0].coefficient, I_A.matrix(), 1e-9)
    close(second[0].constant, six(p_A), 1e-9)
    # both find the same constraint forces, one from f and one from a_1
    by_force = np.array(first[4].coefficient).reshape(-1, 6) @ f + np.array(first[4].constant)
    by_motion = np.array(second[4].coefficient).reshape(-1, 6) @ pair.a_1 + np.array(second[4].constant)
    close(by_force, by_motion, 1e-8)


def test_block_elimination_of_equations_of_ones_own():
    """RBDA-7.4-SYSTEMATIC: inverse inertias with S, a fourth set; and an order that cannot be eliminated."""
    pair = Pair(2, seed=3)
    Phi_1, b_1, Phi_2, b_2 = pair.inverses
    one, minus = np.eye(6).tolist(), (-np.eye(6)).tolist()
    S = np.array([six(s) for s in pair.S])
    matrix = [
        [one, None, (-np.array(Phi_1)).tolist(), None, None],
        [None, one, None, (-np.array(Phi_2)).tolist(), None],
        [None, None, one, one, None],
        [minus, one, None, None, (-S.T).tolist()],
        [None, None, None, S.tolist(), None],
    ]
    constant = [six(b_1).tolist(), six(b_2).tolist(), [0.0] * 6, six(pair.c).tolist(), pair.tau]
    equation = constrained_equations.CompositeEquation(
        matrix, constant, [None, None, one, None, None], (6, 6, 6, 6, 2)
    )
    found = constrained_equations.solve_composite(equation)
    Phi_A, b_A = handles_module.assemble_inverse(*pair.inverses, *pair.implicit)
    close(found[0].coefficient, Phi_A, 1e-9)
    close(found[0].constant, six(b_A), 1e-9)
    with pytest.raises(ArgumentError, match="upper-triangular"):
        constrained_equations.solve_composite(equation._replace(matrix=matrix[::-1]))


# 7.5 multiple handles


def two_handle_body(rng, handles):
    """A random articulated body with two handles of six freedoms each and cross terms."""
    Phi = positive(rng, 12)
    i, j = handles
    blocks = {(i, i): Phi[:6, :6].tolist(), (i, j): Phi[:6, 6:].tolist(), (j, j): Phi[6:, 6:].tolist()}
    b = {i: motion(rng.normal(size=6)), j: motion(rng.normal(size=6))}
    return handles_module.ArticulatedBody(blocks, b), Phi, np.concatenate([six(b[i]), six(b[j])])


@pytest.mark.parametrize("n", FREEDOMS)
def test_two_handle_assembly_is_the_book_formula(n):
    """RBDA-7.5-MULTIHANDLE: Eqs 7.57 to 7.63 written out, for joints of every number of constraints."""
    rng = np.random.default_rng(n)
    A_12, Phi, b = two_handle_body(rng, (1, 2))
    A_34, Psi, d = two_handle_body(rng, (3, 4))
    T = rng.normal(size=(6 - n, 6))
    c = rng.normal(size=6)
    columns = tuple(force(t) for t in T)
    joint = handles_module.HandleJoint(
        2, 3, columns, columns, Force.zero(), Force.zero(), (T @ c).tolist(), [0.0] * (6 - n)
    )
    whole, connected = handles_module.connect(handles_module.collect_parts([A_12, A_34]), [joint], (1, 4))
    Phi_1, Phi_12, Phi_2 = Phi[:6, :6], Phi[:6, 6:], Phi[6:, 6:]
    Phi_3, Phi_34, Phi_4 = Psi[:6, :6], Psi[:6, 6:], Psi[6:, 6:]
    Y = T @ (Phi_2 + Phi_3) @ T.T
    W = T.T @ np.linalg.solve(Y, T) if n < 6 else np.zeros((6, 6))
    beta = c - d[:6] + b[6:]
    close(whole.Phi[1, 1], Phi_1 - Phi_12 @ W @ Phi_12.T, 1e-9)
    close(whole.Phi[4, 4], Phi_4 - Phi_34.T @ W @ Phi_34, 1e-9)
    close(whole.Phi[1, 4], Phi_12 @ W @ Phi_34, 1e-9)
    close(six(whole.b[1]), b[:6] - Phi_12 @ W @ beta, 1e-9)
    close(six(whole.b[4]), d[6:] + Phi_34.T @ W @ beta, 1e-9)
    # disassembly: the joint's force is T lambda with Eq. 7.62, and the constraint holds
    f_1, f_4 = rng.normal(size=6), rng.normal(size=6)
    forces, _ = handles_module.disconnect(connected, {1: force(f_1), 4: force(f_4)})
    expected = W @ (Phi_12.T @ f_1 - Phi_34 @ f_4 + beta)
    close(six(forces[3]), expected, 1e-9)
    close(six(forces[2]), -expected, 1e-9)
    a_3 = six(A_34.acceleration(3, {k: forces[k] for k in (3, 4)}))
    a_2 = six(A_12.acceleration(2, {k: forces[k] for k in (1, 2)}))
    close(T @ (a_3 - a_2 - c), np.zeros(6 - n), 1e-8)
    close(six(whole.acceleration(1, {1: force(f_1), 4: force(f_4)})),
          six(A_12.acceleration(1, {k: forces[k] for k in (1, 2)})), 1e-8)  # fmt: skip


@pytest.mark.parametrize("root", ["free", "revolute", "spherical"])
@pytest.mark.parametrize("seed", range(3))
def test_assembled_handles_equal_projection(root, seed):
    """RBDA-7.5-MULTIHANDLE: Phi_ij and b_i of three bodies of a moving tree equal J H^-1 J^T."""
    tree = random_tree(seed, 7, root=root, branching=0.4)
    q, v, tau, _ = state(tree, seed)
    chosen = (0, 3, 6)
    whole = divide_and_conquer.handle_equations(tree, q, v, tau, chosen)
    handles = [tree.bodies[i] for i in chosen]
    Phi = np.array(handle_inverse_inertia(tree, q, handles))
    b = np.array(handle_bias_acceleration(tree, q, v, tau, handles))
    assert whole.handles == chosen
    for r, i in enumerate(chosen):
        close(six(whole.b[i]), b[6 * r : 6 * r + 6], 1e-9, terms=(b,))
        for s, j in enumerate(chosen):
            block = np.array(whole.Phi.get((min(i, j), max(i, j)), np.zeros((6, 6))))
            close(block if i <= j else block.T, Phi[6 * r : 6 * r + 6, 6 * s : 6 * s + 6], 1e-9, terms=(Phi,))


def test_handle_sets_with_several_joints_at_once():
    """RBDA-7.5-MULTIHANDLE: two joints between handle sets, at once or one after the other."""
    rng = np.random.default_rng(8)
    A_12, _, _ = two_handle_body(rng, (1, 2))
    A_34, _, _ = two_handle_body(rng, (3, 4))
    joints = []
    for p, s in ((2, 3), (1, 4)):
        T = tuple(force(t) for t in rng.normal(size=(3, 6)))
        push = force(rng.normal(size=6))
        joints.append(
            handles_module.HandleJoint(p, s, T, T, push, push, rng.normal(size=3).tolist(), [0.0] * 3)
        )
    both = handles_module.collect_parts([A_12, A_34])
    at_once, together = handles_module.connect(both, joints, (1, 2, 3, 4))
    first, _ = handles_module.connect(both, joints[:1], (1, 2, 3, 4))
    then, _ = handles_module.connect(first, joints[1:], (1, 2, 3, 4))
    for pair, block in at_once.Phi.items():
        close(block, then.Phi[pair], 1e-9)
    for handle, b in at_once.b.items():
        close(six(b), six(then.b[handle]), 1e-9)
    forces, multipliers = handles_module.disconnect(together, {k: Force.zero() for k in (1, 2, 3, 4)})
    assert [len(own) for own in multipliers] == [3, 3]
    close(sum(six(f) for f in forces.values()), np.zeros(6), 1e-12)  # joints push both ways alike


def test_joints_that_repeat_a_constraint():
    """RBDA-7.5-MULTIHANDLE: Y singular: a second, equal joint changes nothing."""
    rng = np.random.default_rng(9)
    A_12, _, _ = two_handle_body(rng, (1, 2))
    A_34, _, _ = two_handle_body(rng, (3, 4))
    T = rng.normal(size=(4, 6))
    columns = tuple(force(t) for t in T)
    gamma = rng.normal(size=4)
    zero = Force.zero()
    both = handles_module.collect_parts([A_12, A_34])

    def joint(mix):
        own = tuple(force(t) for t in mix @ T)
        return handles_module.HandleJoint(
            2, 3, own, own, zero, zero, (mix @ gamma).tolist(), [0.0] * 4, scale=[10.0] * 4
        )

    plain = handles_module.HandleJoint(2, 3, columns, columns, zero, zero, gamma.tolist(), [0.0] * 4)
    once, held_once = handles_module.connect(both, [plain], (1, 4))
    twice, held_twice = handles_module.connect(
        both, [joint(np.eye(4)), joint(rng.normal(size=(4, 4)))], (1, 4)
    )
    for pair, block in once.Phi.items():
        close(twice.Phi[pair], block, 1e-9)
    for handle, b in once.b.items():
        close(six(twice.b[handle]), six(b), 1e-9)
    ends = {1: force(rng.normal(size=6)), 4: force(rng.normal(size=6))}
    close(
        six(handles_module.disconnect(held_twice, ends)[0][3]),
        six(handles_module.disconnect(held_once, ends)[0][3]),
        1e-9,
    )
