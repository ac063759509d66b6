"""Between Cartesian and generalized forces: equal work, and the shortest forces of all."""

from __future__ import annotations

import numpy as np
import pytest
from tests.algorithms.trees import JOINTS, close, inertia, mat, place, random_tree, state, vec

import dalembert as da
from dalembert.algorithms import cartesian as ca
from dalembert.algorithms import dense
from dalembert.algorithms.applied_forces import body_forces
from dalembert.algorithms.jacobians import jacobian, point_jacobian
from dalembert.algorithms.kinematics import forward_kinematics
from dalembert.errors import ArgumentError
from dalembert.model.builder import ModelBuilder
from dalembert.model.joints import Prismatic, Revolute, Spherical, SphericalEuler, Universal
from dalembert.spatial import Force, Vec3


def rows_of(values) -> list[list[float]]:
    return [value.to_list() for value in values]


def pushes(model, seed):
    rng = np.random.default_rng(seed + 50)
    return (rng.normal(size=(len(model.bodies), 3)) for _ in range(3))


@pytest.mark.parametrize("seed", range(4))
def test_forces_at_points_do_the_work_of_their_jacobians(seed):
    """LJ-6.2-CART2GEN: Q = sum J'_v^T f + J_omega^T tau', J' at the point against J at the centre of mass."""
    model = random_tree(seed, 6)
    q, v, _, _ = state(model, seed)
    f, tau, r = pushes(model, seed)
    poses = forward_kinematics(model, q)
    expected, shifted = np.zeros(model.nv), np.zeros(model.nv)
    forces = []
    for body, J in zip(model.bodies, ca.maximal_jacobians(model, q)):
        k, pose = body.index, poses[body]
        local = mat(pose.R).T @ (r[k] - vec(pose.p))
        J_omega, J_v = np.array(J)[:3], np.array(J)[3:]
        expected += np.array(point_jacobian(model, q, body, local.tolist())).T @ f[k] + J_omega.T @ tau[k]
        x = vec(pose.transform_point(body.inertia.com))
        shifted += J_v.T @ f[k] + J_omega.T @ (np.cross(r[k] - x, f[k]) + tau[k])
        forces.append([*(np.cross(r[k], f[k]) + tau[k]), *f[k]])
    found = ca.generalized_force(model, q, forces=f.tolist(), points=r.tolist(), torques=tau.tolist())
    close(found, expected, 1e-12)
    close(found, shifted, 1e-12)
    spatial = sum(np.array(jacobian(model, q, b, frame="world")).T @ forces[b.index] for b in model.bodies)
    close(found, spatial, 1e-12)
    close(found, ca.joint_forces(model, q, body_forces(model, q, forces, "world")), 1e-12)
    h = 1e-6
    ahead, behind = (
        rows_of(_points(model, da.integrate(model, q, s * h * np.array(v)), q, r)) for s in (1, -1)
    )
    velocities = (np.array(ahead) - np.array(behind)) / (2 * h)
    omegas = np.array([V.to_list()[:3] for V in ca.maximal_velocities(model, q, v)])
    power = float(np.sum(velocities * f) + np.sum(omegas * tau))
    assert np.dot(found, v) == pytest.approx(power, rel=1e-6)


def _points(model, q_now, q, r):
    """Where the body points are that stood at r in the configuration q."""
    before, now = forward_kinematics(model, q), forward_kinematics(model, q_now.tolist())
    return [
        now[b].transform_point(before[b].inverse_transform_point(Vec3(*r[b.index]))) for b in model.bodies
    ]


def test_without_points_forces_act_at_the_centres_of_mass():
    """LJ-6.2-CART2GEN: weights there are minus the gravity forces."""
    model = random_tree(3, 6)
    q, _, _, _ = state(model, 3)
    weights = [(float(b.inertia.mass) * vec(model.gravity)).tolist() for b in model.bodies]
    close(da.cartesian.generalized_force(model, q, weights), -da.gravity_forces(model, q), 1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_joint_torques_on_body_and_parent(seed):
    """LJ-6.2-JOINTTORQUE: tau' = (R^T D)^T tau^, Q = J'_v^T f + J^_omega^T tau^; no net moment inside."""
    model = random_tree(seed + 4, 6, root="free", branching=0.0)
    q, _, _, _ = state(model, seed)
    f, hat, r = pushes(model, seed)
    poses = forward_kinematics(model, q)
    D = np.array(ca.connectivity_matrix(model.parents))
    turned = [hat[b.index] if b.parent < 0 else mat(poses[b.parent].R) @ hat[b.index] for b in model.bodies]
    torques = np.array(rows_of(ca.body_torques(model, q, hat.tolist())))
    close(torques, D.T @ np.array(turned), 1e-13)
    by_joints = ca.generalized_force(
        model, q, forces=f.tolist(), points=r.tolist(), joint_torques=hat.tolist()
    )
    by_bodies = ca.generalized_force(model, q, forces=f.tolist(), points=r.tolist(), torques=torques.tolist())
    close(by_joints, by_bodies, 1e-12)
    inner = hat.copy()
    inner[0] = 0.0  # the root's joint is to the world
    net = np.array(rows_of(ca.body_torques(model, q, inner.tolist()))).sum(axis=0)
    close(net, np.zeros(3), 1e-13)
    assert np.abs(torques.sum(axis=0)).max() > 1e-3


@pytest.mark.parametrize("seed", range(4))
def test_cartesian_forces_are_the_shortest(seed):
    """LJ-6.2-GEN2CART: (J^T)^+ Q of NumPy, and mapping back returns Q."""
    model = random_tree(seed, 6)
    q, _, Q, _ = state(model, seed)
    found = np.array(rows_of(ca.cartesian_forces(model, q, Q)))
    J = np.array([row for J in ca.maximal_jacobians(model, q) for row in J])
    close(found.ravel(), np.linalg.pinv(J.T) @ Q, 1e-9)
    back = ca.generalized_force(model, q, forces=found[:, 3:].tolist(), torques=found[:, :3].tolist())
    close(back, Q, 1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_cartesian_forces_at_given_points(seed):
    """LJ-6.2-GEN2CART: the pseudo-inverse of Eq. 69 for known points, and mapping back returns Q."""
    model = random_tree(seed + 2, 6)
    q, _, Q, _ = state(model, seed)
    _, _, r = pushes(model, seed)
    f, hat = ca.cartesian_forces_at_points(model, q, Q, r.tolist())
    rows = []
    for body, pose in zip(model.bodies, forward_kinematics(model, q)):
        local = mat(pose.R).T @ (r[body.index] - vec(pose.p))
        rows.append(np.array(point_jacobian(model, q, body, local.tolist())))
    for body in model.bodies:
        block = np.zeros((3, model.nv))
        columns = [vec(s.angular) for s in ca.joint_jacobian(body, q)]
        block[:, body.v_slice] = np.array(columns).reshape(-1, 3).T
        rows.append(block)
    expected = np.linalg.pinv(np.vstack(rows).T) @ Q
    close(np.ravel(rows_of(f) + rows_of(hat)), expected, 1e-9)
    back = ca.generalized_force(model, q, forces=rows_of(f), points=r.tolist(), joint_torques=rows_of(hat))
    close(back, Q, 1e-9)


@pytest.mark.parametrize(
    "joint",
    [
        Revolute((1, 2, 3)),
        Universal(),
        Universal((1, 0, 0), (0.6, 0.8, 0)),  # axes that are not perpendicular
        Spherical(),
        SphericalEuler("xyz"),
    ],
)
def test_torques_of_joints_that_turn(joint):
    """LJ-6.2-GEN2TORQUE: J^_omega^T tau^ = Q_k for joints of 1, 2 and 3 freedoms, the shortest such."""
    rng = np.random.default_rng(1)
    builder = ModelBuilder()
    for i in range(3):
        parent = f"b{i - 1}" if i else "world"
        builder.add_body(f"b{i}", parent=parent, joint=joint, placement=place(rng), inertia=inertia(rng))
    model = builder.build()
    q, _, Q, _ = state(model, 1)
    hat, rest = ca.joint_torques(model, q, Q)
    close(rest, np.zeros(model.nv), 1e-12)
    for body, torque in zip(model.bodies, hat):
        J = np.array([vec(s.angular) for s in ca.joint_jacobian(body, q)]).T
        close(vec(torque), np.linalg.pinv(J.T) @ Q[body.v_slice], 1e-12)
    close(ca.generalized_force(model, q, joint_torques=rows_of(hat)), Q, 1e-12)


@pytest.mark.parametrize("kind", JOINTS)
def test_what_torques_cannot_do_is_left_over(kind):
    """LJ-6.2-GEN2TORQUE: torques and the rest make up Q for every joint type; sliding alone is all rest."""
    model = random_tree(6, 4, (kind, "revolute"), root=kind)
    q, _, Q, _ = state(model, 2)
    hat, rest = ca.joint_torques(model, q, Q)
    turning = ca.generalized_force(model, q, joint_torques=rows_of(hat))
    close(np.add(turning, rest), Q, 1e-11)
    if kind in ("prismatic", "translation"):
        assert vec(hat[0]).tolist() == [0.0, 0.0, 0.0]
        close(rest[model.bodies[0].v_slice], Q[model.bodies[0].v_slice], 1e-15)


def test_coupled_joints():
    """LJ-6.2-GEN2CART: of independent coordinates, with a mimic joint that slides."""
    rng = np.random.default_rng(9)
    builder = ModelBuilder()
    for i, joint in enumerate((Revolute((1, 2, 3)), Spherical(), Prismatic((0, 1, 1)))):
        parent = f"b{i - 1}" if i else "world"
        builder.add_body(f"b{i}", parent=parent, joint=joint, placement=place(rng), inertia=inertia(rng))
    builder.add_coupling("mimic", {"b0": 1.0, "b2": 0.5})
    model = builder.build()
    q, _, Q, _ = state(model, 3)
    F = np.array(rows_of(ca.cartesian_forces(model, q, Q)))
    J = np.array([row for J in ca.maximal_jacobians(model, q) for row in J])
    close(F.ravel(), np.linalg.pinv(J.T) @ Q, 1e-10)
    r = rng.normal(size=(3, 3)).tolist()
    f, hat = ca.cartesian_forces_at_points(model, q, Q, r)
    back = ca.generalized_force(model, q, forces=rows_of(f), points=r, joint_torques=rows_of(hat))
    close(back, Q, 1e-10)


def test_pseudo_inverse_of_any_rank():
    """LJ-6.2-GEN2CART: A^+ b of semidefinite matrices, zero rows and dependent columns among them."""
    rng = np.random.default_rng(4)
    for rank in range(6):
        factor = rng.normal(size=(5, rank))
        factor[2] = 0.0
        A, b = factor @ factor.T, rng.normal(size=5)
        found = dense.symmetric_pseudo_inverse(A.tolist()).solve(b.tolist())
        close(found, np.linalg.pinv(A, 1e-10) @ b, 1e-8)


def test_public_functions_take_batches():
    """LJ-6.2-CART2GEN, LJ-6.2-JOINTTORQUE, LJ-6.2-GEN2CART, LJ-6.2-GEN2TORQUE: there and back, compiled."""
    model = random_tree(12, 4, ("revolute", "universal"), root="free")
    states = [state(model, k) for k in range(3)]
    q, Q = np.array([s[0] for s in states]), np.array([s[2] for s in states])
    F = da.cartesian.cartesian_forces(model, q, Q)
    close(da.cartesian.generalized_force(model, q, F[..., 3:], torques=F[..., :3]), Q, 1e-9)
    points = np.random.default_rng(1).normal(size=(3, 4, 3))
    f, hat = da.cartesian.cartesian_forces_at_points(model, q, Q, points)
    close(da.cartesian.generalized_force(model, q, f, points=points, joint_torques=hat), Q, 1e-9)
    torques, rest = da.cartesian.joint_torques(model, q, Q)
    bodies = da.cartesian.body_torques(model, q, torques)
    close(da.cartesian.generalized_force(model, q, torques=bodies) + rest, Q, 1e-11)
    with pytest.raises(ArgumentError, match="none was given"):
        da.cartesian.generalized_force(model, q)
    with pytest.raises(ArgumentError, match="points are where forces act"):
        da.cartesian.generalized_force(model, q, torques=bodies, points=points)


def test_zero_force_is_a_force():
    """LJ-6.2-CART2GEN: a body's force may be a spatial value."""
    model = random_tree(1, 3)
    q, _, _, _ = state(model, 1)
    still = ca.joint_forces(model, q, body_forces(model, q, [Force.zero()] * 3))
    close(still, np.zeros(model.nv), 1e-15)


def test_a_function_that_needs_one_of_several_arrays_is_not_compiled_as_it_is():
    """Without forces, generalized_force would always be zero; a function that names its arrays is right."""
    model = da.models.arm6()
    with pytest.raises(ArgumentError, match=r"algorithms\.cartesian\.generalized_force\(model, q, forces="):
        da.compile(da.cartesian.generalized_force, model)

    def work(model, q, forces):
        return da.algorithms.cartesian.generalized_force(model, q, forces=forces)

    q, _ = model.random_state(2)
    forces = np.random.default_rng(0).standard_normal((6, 3))
    compiled = da.compile(work, model, inputs={"forces": (6, 3)})
    expected = da.cartesian.generalized_force(model, q, forces)
    assert np.abs(expected).max() > 0.1
    np.testing.assert_allclose(compiled(q, forces), expected, rtol=1e-12)
