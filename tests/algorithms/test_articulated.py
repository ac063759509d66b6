"""Articulated-body inertias by assembly and by projection (Featherstone 2008 sections 7.1 and 7.2)."""

import numpy as np
import pytest
from tests.algorithms.trees import close, random_tree, six, state

from dalembert.algorithms.articulated import assemble, eliminate_joint
from dalembert.algorithms.dense import factor
from dalembert.algorithms.forward_dynamics import articulated_inertias, forward_dynamics
from dalembert.algorithms.inverse_dynamics import inverse_dynamics
from dalembert.algorithms.jacobians import jacobian
from dalembert.algorithms.kinematics import body_motions
from dalembert.spatial import ArticulatedInertia, Force, Motion, RigidInertia
from dalembert.textbook.handles import handle_bias_acceleration, handle_inertia, handle_inverse_inertia

SEEDS = range(6)


def random_articulated(rng):
    A = rng.normal(size=(6, 6))
    return ArticulatedInertia.from_matrix((A @ A.T + np.eye(6)).tolist())


def dense(x):
    return np.array(x.matrix(), dtype=float)


def test_box_with_cylinder():
    """RBDA-7.1-BOX: a cylinder free to turn about x and slide along y takes part in all other motions of
    the box.
    """
    m1, m2, I1, I2 = 2.0, 3.0, 0.4, 0.7
    box = ArticulatedInertia.from_rigid(RigidInertia(m1, (0.0, 0.0, 0.0), (I1, I1, I1)))
    cylinder = ArticulatedInertia.from_rigid(RigidInertia(m2, (0.0, 0.0, 0.0), (I2, I2, I2)))
    S = (Motion.of([1.0, 0.0, 0.0, 0.0, 0.0, 0.0]), Motion.of([0.0, 0.0, 0.0, 0.0, 1.0, 0.0]))
    I_A, _ = assemble(box, Force.zero(), cylinder, Force.zero(), S, Motion.zero(), [0.0, 0.0])
    close(dense(I_A), np.diag([I1, I1 + I2, I1 + I2, m1 + m2, m1, m1 + m2]), 1e-15)


@pytest.mark.parametrize("coordinate", [True, False])
@pytest.mark.parametrize("nf", range(7))
def test_assembly_of_two_handles_solves_the_five_equations(nf, coordinate):
    """RBDA-7.2-ASSEMBLE, RBDA-7.1-ABI: Eqs 7.51 to 7.55 solved densely; I^a S = 0; S^T f_2 = tau; gluing is
    addition.
    """
    rng = np.random.default_rng(nf)
    I_1, I_2 = random_articulated(rng), random_articulated(rng)
    p_1, p_2 = Force.of(rng.normal(size=6).tolist()), Force.of(rng.normal(size=6).tolist())
    c, a_1 = Motion.of(rng.normal(size=6).tolist()), rng.normal(size=6)
    columns = np.eye(6)[rng.permutation(6)[:nf]] if coordinate else rng.normal(size=(nf, 6))
    S = tuple(Motion.of(column.tolist()) for column in columns)
    tau = rng.normal(size=nf).tolist()
    I_A, p_A = assemble(I_1, p_1, I_2, p_2, S, c, tau)

    # unknowns f, f_1, f_2, a_2, qdd in terms of a_1
    Z, E, Sm = np.zeros((6, 6)), np.eye(6), columns.T
    A = np.block([
        [E, -E, -E, Z, np.zeros((6, nf))],
        [Z, E, Z, Z, np.zeros((6, nf))],
        [Z, Z, E, -dense(I_2), np.zeros((6, nf))],
        [Z, Z, Z, E, -Sm],
        [np.zeros((nf, 12)), Sm.T, np.zeros((nf, 6)), np.zeros((nf, nf))],
    ])  # fmt: skip
    right = np.concatenate([np.zeros(6), dense(I_1) @ a_1 + six(p_1), six(p_2), a_1 + six(c), tau])
    f = np.linalg.solve(A, right)[:6]
    close(dense(I_A) @ a_1 + six(p_A), f, 1e-11)

    joint = eliminate_joint(I_2, S, [0.0] * nf)
    close(dense(joint.I_a) @ Sm, np.zeros((6, nf)), 1e-11)
    if coordinate:
        rows = np.flatnonzero(columns.sum(axis=0))
        assert np.all(dense(joint.I_a)[rows] == 0.0)
    if nf == 0:
        close(dense(I_A), dense(I_1) + dense(I_2), 1e-15)


@pytest.mark.parametrize("seed", SEEDS)
def test_force_on_a_joint_seen_from_either_side(seed):
    """RBDA-7.2-ASSEMBLE: f_j = I^A a_j + p^A = I^a a_lambda + p^a, with armature too."""
    rng = np.random.default_rng(seed)
    I_A, p_A = random_articulated(rng), Force.of(rng.normal(size=6).tolist())
    S = tuple(Motion.of(s) for s in rng.normal(size=(2, 6)).tolist())
    c, a_parent = (Motion.of(rng.normal(size=6).tolist()) for _ in range(2))
    tau = rng.normal(size=2).tolist()
    joint = eliminate_joint(I_A, S, [0.0, 0.0])
    u = joint.joint_force(tau, p_A)
    vdot, a = joint.accelerations(u, a_parent + c)
    close(six(a), six(a_parent + c) + np.array([six(s) for s in S]).T @ vdot, 1e-12)
    one = dense(I_A) @ six(a) + six(p_A)
    other = dense(joint.I_a) @ six(a_parent) + six(joint.bias_force(p_A, c, tau, u))
    close(one, other, 1e-10)
    close([six(s) @ one for s in S], tau, 1e-10)


@pytest.mark.parametrize("seed", SEEDS)
def test_projection_equals_assembly_on_floating_trees(seed):
    """RBDA-7.2-PROJECT: (J H^-1 J^T)^-1 of the floating base is its articulated-body inertia."""
    model = random_tree(seed, 6, root="free", branching=0.3, armature=False)
    q, _, _, _ = state(model, seed)
    Phi = np.array(handle_inverse_inertia(model, q, ["b0"]), dtype=float)
    I_A = dense(articulated_inertias(model, q)[model.bodies[0]])
    close(np.array(handle_inertia(Phi.tolist())), I_A, 1e-9)
    close(Phi @ I_A, np.eye(6), 1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_handles_respond_to_forces_as_projected(seed):
    """RBDA-7.1-INVERSE, RBDA-7.2-PROJECT: a = Phi f + b for two handles, cross terms Phi_12 = Phi_21^T,
    rank of J.
    """
    model = random_tree(seed, 7, armature=False)
    q, v, tau, _ = state(model, seed)
    handles = [model.bodies[-1], model.bodies[3]]
    Phi = np.array(handle_inverse_inertia(model, q, handles), dtype=float)
    b = np.array(handle_bias_acceleration(model, q, v, tau, handles))
    rng = np.random.default_rng(seed)
    f = [np.zeros(6) for _ in model.bodies]
    push = rng.normal(size=12)
    f[handles[0].index], f[handles[1].index] = push[:6], push[6:]
    a = forward_dynamics(model, q, v, tau, external_forces=[x.tolist() for x in f])
    motions = body_motions(model, q, v, a)
    moved = np.concatenate([six(motions[h].acceleration) for h in handles])
    close(Phi @ push + b, moved, 1e-8)
    close(Phi, Phi.T, 1e-13)
    values = np.linalg.eigvalsh(Phi)
    assert values.min() > -1e-10 * values.max()
    J = np.vstack([jacobian(model, q, h, frame="body") for h in handles])
    assert np.linalg.matrix_rank(Phi, tol=1e-9 * values.max()) == np.linalg.matrix_rank(J, tol=1e-9)


@pytest.mark.parametrize("n", range(1, 7))
def test_small_symmetric_systems_are_solved(n):
    """RBDA-7.3-ABA: the joint's own inertia D, of any size up to six."""
    rng = np.random.default_rng(n)
    A = rng.normal(size=(n, n))
    D = A @ A.T + np.eye(n)
    b = rng.normal(size=n)
    lower = np.where(np.tri(n, dtype=bool), D, np.nan).tolist()
    close(factor(lower).solve(b.tolist()), np.linalg.solve(D, b), 1e-12)


def test_inverse_dynamics_of_the_result_returns_the_forces():
    """RBDA-7.3-ABA: residual on a tall tree, relative to the terms that are summed."""
    model = random_tree(11, 25)
    q, v, tau, f = state(model, 11)
    a = forward_dynamics(model, q, v, tau, external_forces=f)
    again = inverse_dynamics(model, q, v, a, external_forces=f)
    close(again, tau, 1e-11, terms=(a, inverse_dynamics(model, q, v, [0.0] * model.nv)))


JOINTS = {
    "revolute": [2],
    "prismatic": [5],
    "cylindrical": [2, 5],
    "planar": [2, 3, 4],
    "spherical": [0, 1, 2],
}


def handle(seed):
    """A random articulated-body inertia, and the same as a dense matrix."""
    random = np.random.default_rng(seed)
    root = random.standard_normal((6, 6))
    dense = root @ root.T + np.eye(6)
    return ArticulatedInertia.from_matrix(dense.tolist()), dense


@pytest.mark.parametrize("rows", JOINTS.values(), ids=JOINTS)
def test_what_a_joint_passes_on_has_zero_rows_at_its_freedoms(rows):
    """RBDA-A.4-ZEROROWS: I^a = I^A - U D^-1 U^T equals the dense formula, zeros being literal"""
    I_A, dense = handle(len(rows))
    S = [Motion.of(np.eye(6)[row].tolist()) for row in rows]
    columns = np.eye(6)[:, rows]
    U = dense @ columns
    expected = dense - U @ np.linalg.inv(columns.T @ U) @ U.T
    I_a = eliminate_joint(I_A, S, [0.0] * len(rows)).I_a
    np.testing.assert_allclose(I_a.matrix(), expected, atol=1e-12)
    assert all(I_a.matrix()[row][column] == 0.0 for row in rows for column in range(6))


def test_a_joint_along_no_coordinate_axis_has_no_zero_rows():
    """RBDA-A.4-ZEROROWS: a helical joint has two nonzero rows and one freedom"""
    I_A, dense = handle(3)
    s = np.array([0.0, 0.0, 1.0, 0.0, 0.0, 0.1])
    u = dense @ s
    I_a = eliminate_joint(I_A, [Motion.of(s.tolist())], [0.0]).I_a
    np.testing.assert_allclose(I_a.matrix(), dense - np.outer(u, u) / (s @ u), atol=1e-12)
    assert np.all(np.array(I_a.matrix()) != 0.0)


def test_armature_leaves_the_rows_at_a_joints_freedom():
    I_A, dense = handle(4)
    u = dense[:, 2]
    I_a = eliminate_joint(I_A, [Motion.of(np.eye(6)[2].tolist())], [0.5]).I_a
    np.testing.assert_allclose(I_a.matrix(), dense - np.outer(u, u) / (u[2] + 0.5), atol=1e-12)
