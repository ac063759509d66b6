"""Featherstone 2008 chapter 3: equations of motion collected, constrained and split."""

import numpy as np
import pytest
import sympy
from tests.algorithms.trees import close, force, inertia, random_tree, six, state

from dalembert.algorithms.forward_dynamics import forward_dynamics
from dalembert.algorithms.inverse_dynamics import bias_forces
from dalembert.algorithms.kinematics import body_motions, body_velocities
from dalembert.algorithms.mass_matrix import mass_matrix
from dalembert.errors import ArgumentError
from dalembert.spatial import Force, Motion, Vec3
from dalembert.textbook import constrained_equations as chapter_3
from dalembert.textbook import recursive_assembly as divide_and_conquer

SEEDS = range(4)


def dense(equations):
    return tuple(np.array(part, dtype=float) for part in equations)


def tree_equations(tree, q, v, tau, **given):
    """Return H a + C = tau of a tree in joint coordinates (Eq. 3.1), external forces in C."""
    return chapter_3.Equations(mass_matrix(tree, q), bias_forces(tree, q, v, **given), list(tau))


def random_equations(rng, n):
    A = rng.normal(size=(n, n))
    parts = A @ A.T + np.eye(n), rng.normal(size=n), rng.normal(size=n)
    return chapter_3.Equations(*(part.tolist() for part in parts))


def motions(columns):
    return tuple(Motion.of(column) for column in np.asarray(columns).tolist())


# 3.2 constructing equations of motion


@pytest.mark.parametrize("seed", SEEDS)
def test_collected_systems_move_as_they_do_alone(seed):
    """RBDA-3.2-COLLECT: a body in spatial coordinates between two trees in joint coordinates."""
    rng = np.random.default_rng(seed)
    trees = [random_tree(seed + k, 3) for k in (0, 50)]
    systems, alone = [], []
    for k, tree in enumerate(trees):
        q, v, tau, f = state(tree, seed + k)
        systems.append(tree_equations(tree, q, v, tau, external_forces=f))
        alone.append(forward_dynamics(tree, q, v, tau, external_forces=f))
    body, p, f = inertia(rng), rng.normal(size=6), rng.normal(size=6)
    systems.insert(1, chapter_3.body_equations(body, force(p), force(f)))
    alone.insert(1, np.linalg.solve(np.array(body.matrix()), f - p))
    whole = chapter_3.collect(systems)
    H, C, tau = dense(whole)
    assert H.shape == (len(tau), len(C))
    assert len(C) == sum(len(a) for a in alone)
    close(chapter_3.free_acceleration(whole), np.concatenate(alone), 1e-10)
    start = len(systems[0].C)
    assert np.count_nonzero(H[:start, start:]) == 0
    close(H[start : start + 6, start : start + 6], body.matrix(), 0.0)


@pytest.mark.parametrize("seed", SEEDS)
def test_implicit_constraint_with_dependent_rows(seed):
    """RBDA-3.2-IMPLICIT: rank n + rank K, K a = k, no power along allowed motions, a unique, lambda not."""
    rng = np.random.default_rng(seed)
    n, independent = 7, 3
    equations = random_equations(rng, n)
    K = rng.normal(size=(independent, n))
    wanted = rng.normal(size=n)
    K = np.vstack([K, [2.0, -1.0, 0.5] @ K, K[1]])[rng.permutation(independent + 2)]
    k = K @ wanted
    H, C, tau = dense(equations)
    matrix = np.array(chapter_3.constraint_matrix(equations.H, K.tolist()))
    assert np.linalg.matrix_rank(matrix) == n + independent
    found = chapter_3.constrain(equations, K.tolist(), k.tolist())
    a, multipliers = np.array(found.acceleration), np.array(found.multipliers)
    # the minimum-norm solution of the singular system, by singular values
    expected = np.linalg.lstsq(matrix, np.concatenate([tau - C, k]), rcond=1e-12)[0]
    close(a, expected[:n], 1e-11)
    close(K @ a, k, 1e-11)
    close(H @ a + C, tau + K.T @ multipliers, 1e-11)
    null = np.linalg.svd(K)[2][independent:]
    close(null @ (K.T @ multipliers), np.zeros(n - independent), 1e-11)
    # another order drops other rows
    order = rng.permutation(len(K))[::-1]
    other = chapter_3.constrain(equations, K[order].tolist(), k[order].tolist())
    close(other.acceleration, a, 1e-11)
    assert np.abs(np.array(other.multipliers) - multipliers[order]).max() > 1e-3
    close(K[order].T @ np.array(other.multipliers), K.T @ multipliers, 1e-11)


def test_explicit_constraint_in_symbols():
    """RBDA-3.2-EXPLICIT: two masses tied together share a force: a = f / (m1 + m2)."""
    m1, m2, f = sympy.symbols("m1 m2 f", positive=True)
    equations = chapter_3.Equations([[m1, 0.0], [0.0, m2]], [0.0, 0.0], [f, 0.0])
    found = chapter_3.constrain_explicitly(equations, [[1.0], [1.0]], [0.0, 0.0])
    assert sympy.simplify(sympy.nsimplify(found.acceleration[0] - f / (m1 + m2))) == 0
    assert sympy.simplify(sympy.nsimplify(found.constraint_force[0] + m2 * f / (m1 + m2))) == 0


def slotted_arm(seed):
    """A two-link arm whose second angle is forced to follow q2 = q1^2 + sin(q1), in motion.

    Both forms of the constraint: phi = q2 - q1^2 - sin q1 and gamma = (y, y^2 + sin y).
    """
    tree = random_tree(seed, 2, ("revolute", "helical"), branching=0.0)
    rng = np.random.default_rng(seed)
    y, rate = rng.normal(size=2)
    slope, curve = 2.0 * y + np.cos(y), 2.0 - np.sin(y)
    G, g = [[1.0], [slope]], [0.0, curve * rate * rate]
    K, k = [[-slope, 1.0]], [curve * rate * rate]
    q, v = [y, y * y + np.sin(y)], [rate, slope * rate]
    equations = tree_equations(tree, q, v, rng.normal(size=2).tolist())
    return tree, q, v, rate, equations, (G, g), (K, k)


@pytest.mark.parametrize("seed", SEEDS)
def test_explicit_constraint_is_the_same_as_implicit(seed):
    """RBDA-3.2-EXPLICIT: projection, both larger systems and the implicit form give one motion."""
    _, q, _, _, equations, (G, g), (K, k) = slotted_arm(seed)
    _, C, tau = dense(equations)
    # phi(gamma(y)) = 0, K G = 0, K g = k (Eq. 3.12)
    assert abs(q[1] - q[0] ** 2 - np.sin(q[0])) < 1e-14
    close(np.array(K) @ np.array(G), [[0.0]], 1e-14)
    close(np.array(K) @ np.array(g), k, 1e-14)
    found = chapter_3.constrain_explicitly(equations, G, g)
    close(found.acceleration, chapter_3.constrain(equations, K, k).acceleration, 1e-12)
    close(np.array(G).T @ found.constraint_force, [0.0], 1e-11, terms=(tau, C))
    A, b = (np.array(part) for part in chapter_3.three_block_system(equations, G, g))
    close(np.linalg.solve(A, b), [*found.acceleration, *found.constraint_force, *found.independent], 1e-10)
    A, b = (np.array(part) for part in chapter_3.dual_system(equations, G, g))
    close(A, A.T, 1e-13)
    close(np.linalg.solve(A, b), [*(-x for x in found.constraint_force), *found.independent], 1e-10)


@pytest.mark.parametrize("seed", SEEDS)
def test_projected_equation_keeps_energy_and_power(seed):
    """RBDA-3.2-EXPLICIT: H_G symmetric and positive, T = y' H_G y' / 2, u y' = tau q' (Eqs 3.21 to 3.23)."""
    _, _, v, rate, equations, (G, g), _ = slotted_arm(seed)
    H, C, tau = dense(equations)
    H_G, C_G, u = dense(chapter_3.project(equations, G, g))
    close(rate * H_G[0, 0] * rate, np.array(v) @ H @ np.array(v), 1e-12)
    close(u[0] * rate, tau @ np.array(v), 1e-12)
    close(C_G, np.array(G).T @ (C + H @ np.array(g)), 1e-12)
    assert H_G[0, 0] > 0.0
    # more variables: symmetric and positive definite
    rng = np.random.default_rng(seed)
    big = random_equations(rng, 6)
    G3 = rng.normal(size=(6, 3))
    H_G = np.array(chapter_3.project(big, G3.tolist(), [0.0] * 6).H)
    close(H_G, G3.T @ np.array(big.H) @ G3, 1e-12)
    close(H_G, H_G.T, 0.0)
    assert np.linalg.eigvalsh(H_G).min() > 0.0


def all_bodies_then_all_joints(tree, q, v, tau, f):
    """The first order, implicitly: the equations of all bodies, then T^T (a_s - a_p) = T^T c of all joints.

    Everything in world coordinates; returns the accelerations of the joints.
    """
    poses = [motion.pose for motion in body_motions(tree, q, v)]
    velocities = body_velocities(tree, q, v)
    systems, rows, right = [], [], []
    push = [Force.zero() for _ in tree.bodies]
    joints = []
    for body in tree.bodies:
        i, parent = body.index, body.parent
        _, _, v_J, c_J = body.jcalc(q, v)
        own_q = body.own_q(q)
        to_world = poses[i].inverse_apply
        c = to_world(c_J + velocities[i].cross(v_J))
        T = [to_world(t) for t in body.joint.constraint_subspace(own_q)]
        T_a = [to_world(t) for t in body.joint.active_subspace(own_q)]
        joints.append((T_a, c))
        active = Force.zero()
        for t, x in zip(T_a, body.own_v(tau)):
            active = active + t * x
        push[i] = push[i] + active + to_world(force(f[i]))
        if parent >= 0:
            push[parent] = push[parent] - active
        for t in T:
            row = np.zeros(6 * len(tree.bodies))
            row[6 * i : 6 * i + 6] = six(t)
            if parent >= 0:
                row[6 * parent : 6 * parent + 6] = -six(t)
            rows.append(row.tolist())
            right.append(float(c.dot(t)))
    for body in tree.bodies:
        I = poses[body.index].inverse_apply(body.inertia)
        velocity = poses[body.index].inverse_apply(velocities[body])
        weight = I * Motion(Vec3.zero(), tree.gravity)
        systems.append(chapter_3.body_equations(I, velocity.cross(I * velocity) - weight, push[body.index]))
    found = np.array(chapter_3.constrain(chapter_3.collect(systems), rows, right).acceleration)
    a = [Motion.of(x.tolist()) for x in found.reshape(-1, 6)]
    result = []
    for body, (T_a, c) in zip(tree.bodies, joints):
        across = a[body.index] - c if body.parent < 0 else a[body.index] - a[body.parent] - c
        result += [across.dot(t) for t in T_a]
    return result


@pytest.mark.parametrize("seed", SEEDS)
def test_four_orders_of_assembly_agree(seed):
    """RBDA-3.2-ORDERS: all at once, the spanning tree, one body at a time, and in pairs."""
    tree = random_tree(seed, 6, armature=False)
    q, v, tau, f = state(tree, seed)
    C = np.array(bias_forces(tree, q, v, external_forces=f))
    spanning_tree = np.linalg.solve(np.array(mass_matrix(tree, q)), np.array(tau) - C)
    close(all_bodies_then_all_joints(tree, q, v, tau, f), spanning_tree, 1e-9)
    close(
        chapter_3.forward_dynamics_by_projection(tree, q, v, tau, external_forces=f),
        spanning_tree,
        1e-10,
    )
    close(forward_dynamics(tree, q, v, tau, external_forces=f), spanning_tree, 1e-10)
    one_by_one = divide_and_conquer.forward_dynamics_by_inverse_inertias(tree, q, v, tau, external_forces=f)
    close(one_by_one, spanning_tree, 1e-10)
    close(divide_and_conquer.divide_and_conquer(tree, q, v, tau, external_forces=f), spanning_tree, 1e-10)


# 3.3 vector subspaces


@pytest.mark.parametrize("m", range(7))
def test_decomposition_is_unique_and_does_not_depend_on_bases(m):
    """RBDA-3.3-SUBSPACE: v = v_1 + v_2 with v_i in S_i; S -> S A changes nothing."""
    rng = np.random.default_rng(m)
    S_1, S_2 = rng.normal(size=(m, 6)), rng.normal(size=(6 - m, 6))
    v = rng.normal(size=6)
    v_1, v_2 = (np.array(part) for part in chapter_3.decompose(v.tolist(), S_1.tolist(), S_2.tolist()))
    close(v_1 + v_2, v, 1e-12)
    for part, S in ((v_1, S_1), (v_2, S_2)):
        if len(S):
            close(S.T @ np.linalg.lstsq(S.T, part, rcond=None)[0], part, 1e-11)
        else:
            close(part, np.zeros(6), 0.0)
    A, B = rng.normal(size=(m, m)), rng.normal(size=(6 - m, 6 - m))
    again = chapter_3.decompose(v.tolist(), (A @ S_1).tolist(), (B @ S_2).tolist())
    close(again[0], v_1, 1e-9)
    close(again[1], v_2, 1e-9)
    three = chapter_3.decompose(v.tolist(), S_1.tolist(), S_2[: 6 - m].tolist(), [])
    close(three, [v_1, v_2, np.zeros(6)], 1e-12)


@pytest.mark.parametrize("m", range(7))
def test_dual_complement_has_the_other_dimension_and_no_power(m):
    """RBDA-3.3-SUBSPACE: dim S + dim S^⊥ = 6, S^T T = 0, (S^⊥)^⊥ = S, whatever the basis of S."""
    rng = np.random.default_rng(m)
    S = rng.normal(size=(m, 6))
    T = np.array(chapter_3.dual_complement(S.tolist(), 6)).reshape(-1, 6)
    assert len(S) + len(T) == 6
    close(S @ T.T, np.zeros((m, 6 - m)), 1e-12)
    assert chapter_3.dimension(T.tolist()) == 6 - m
    back = np.array(chapter_3.dual_complement(T.tolist(), 6)).reshape(-1, 6)
    assert np.linalg.matrix_rank(np.vstack([S, back, np.zeros((1, 6))]), tol=1e-9) == m
    other = np.array(chapter_3.dual_complement((rng.normal(size=(m, m)) @ S).tolist(), 6)).reshape(-1, 6)
    assert np.linalg.matrix_rank(np.vstack([T, other, np.zeros((1, 6))]), tol=1e-8) == 6 - m


def test_complement_of_motions_is_not_euclidean():
    """RBDA-3.3-SUBSPACE: in other coordinates S^⊥ is X* S^⊥; a Euclidean complement is not."""
    rng = np.random.default_rng(2)
    S = rng.normal(size=(2, 6))
    X = np.eye(6)
    X[3:, :3] = [[0.0, 0.3, -0.2], [-0.3, 0.0, 0.7], [0.2, -0.7, 0.0]]
    T = np.array(chapter_3.dual_complement(S.tolist(), 6))
    moved = np.array(chapter_3.dual_complement((S @ X.T).tolist(), 6))
    assert np.linalg.matrix_rank(np.vstack([moved, T @ np.linalg.inv(X)]), tol=1e-9) == 4
    assert np.linalg.matrix_rank(np.vstack([moved, T @ X.T]), tol=1e-9) > 4


@pytest.mark.parametrize("singular", [False, True])
def test_direct_sum_with_a_complement_needs_an_invertible_product(singular):
    """RBDA-3.3-SUBSPACE: S_1 ⊕ S_2^⊥ is all exactly where S_1^T S_2 can be inverted (Table 3.1)."""
    rng = np.random.default_rng(5)
    S_1, S_2 = rng.normal(size=(2, 6)), rng.normal(size=(2, 6))
    if singular:
        S_1[1] -= S_2.T @ np.linalg.solve(S_2 @ S_2.T, S_2 @ S_1[1])  # now S_2^T s = 0
    both = np.vstack([S_1, chapter_3.dual_complement(S_2.tolist(), 6)])
    assert (abs(np.linalg.det(S_1 @ S_2.T)) < 1e-12) == singular
    assert chapter_3.dimension(both.tolist()) == (5 if singular else 6)


def test_dimension_counts_independent_columns():
    """RBDA-3.3-SUBSPACE: dim span of dependent columns; no column at all is the zero subspace."""
    rng = np.random.default_rng(0)
    S = rng.normal(size=(3, 6))
    assert chapter_3.dimension(np.vstack([S, S[0] - 2.0 * S[2], S[1]]).tolist()) == 3
    assert chapter_3.dimension([]) == 0
    with pytest.raises(ArgumentError, match="one column for each"):
        chapter_3.decompose([1.0, 2.0], [[1.0, 0.0]], [])


@pytest.mark.parametrize("n", range(7))
def test_force_splits_into_what_accelerates_and_what_bearings_oppose(n):
    """RBDA-3.3-FSPLIT: f_a = I S (S^T I S)^-1 S^T f, S^T f_c = 0, for every basis of S."""
    rng = np.random.default_rng(n)
    body, f = inertia(rng), rng.normal(size=6)
    I = np.array(body.matrix())
    S = rng.normal(size=(n, 6))
    f_a, f_c = chapter_3.split_force(body, motions(S), force(f))
    close(six(f_a) + six(f_c), f, 1e-13)
    a = np.linalg.solve(I, six(f_a))
    expected = S.T @ np.linalg.solve(S @ I @ S.T, S @ f) if n else np.zeros(6)
    close(a, expected, 1e-10)
    close(S @ six(f_c), np.zeros(n), 1e-11)
    other, _ = chapter_3.split_force(body, motions(rng.normal(size=(n, n)) @ S), force(f))
    close(six(other), six(f_a), 1e-8)


# 3.6 dynamics of a constrained rigid body


@pytest.mark.parametrize("n", range(7))
def test_one_body_on_a_joint_by_three_methods(n):
    """RBDA-3.6-METHODS: a = Phi f + b, the system with lambda, and H q̈ + C = tau give one acceleration."""
    rng = np.random.default_rng(n)
    body, p, f, c = inertia(rng), *(rng.normal(size=6) for _ in range(3))
    I = np.array(body.matrix())
    S = rng.normal(size=(n, 6))
    T = np.array(chapter_3.dual_complement(S.tolist(), 6)).reshape(-1, 6)
    bias, rate = force(p), Motion.of(c.tolist())

    Phi, b = chapter_3.apparent_inverse_inertia(body, bias, motions(S), rate)
    Phi = np.array(Phi)
    first = Phi @ f + six(b)
    a, multipliers = chapter_3.body_with_constraint_forces(
        body, bias, [force(t) for t in T], (T @ c).tolist(), force(f)
    )
    system = chapter_3.body_in_joint_coordinates(body, bias, motions(S), rate, force(f))
    qdd = np.array(chapter_3.free_acceleration(system))
    # the constraint force by Jourdain's principle alone
    unknown = np.block([[I, -T.T], [T, np.zeros((6 - n, 6 - n))]])
    expected = np.linalg.solve(unknown, np.concatenate([f - p, T @ c]))
    close(six(a), expected[:6], 1e-9)
    close(multipliers, expected[6:], 1e-9)
    close(first, expected[:6], 1e-9)
    close(S.T @ qdd + c, expected[:6], 1e-9)
    # range Phi = S, null Phi = S^⊥, rank n
    close(Phi, Phi.T, 0.0)
    close(Phi @ T.T, np.zeros((6, 6 - n)), 1e-10, terms=(Phi,))
    assert np.linalg.matrix_rank(Phi, tol=1e-9) == n
    assert np.linalg.matrix_rank(np.vstack([Phi, S]), tol=1e-8) == n
