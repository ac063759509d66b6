"""One rigid body: momenta, Newton-Euler in the world, and generalized coordinates of three kinds."""

from __future__ import annotations

import numpy as np
import pytest
from tests.algorithms.trees import close, inertia, mat, six, vec

from dalembert.algorithms.inverse_dynamics import inverse_dynamics
from dalembert.model.builder import ModelBuilder
from dalembert.model.joints import Composite, Free, SphericalEuler, SphericalExponential, Translation
from dalembert.model.joints.dual import directional_derivative
from dalembert.spatial import Mat3, Motion, RigidInertia, SymMat3, Transform, Vec3
from dalembert.spatial.exponential import so3_exp
from dalembert.textbook import lagrange as lg

SIZES = {"euler": 6, "exponential": 6, "quaternion": 7}


def solid(seed: int) -> tuple[float, SymMat3]:
    body = inertia(np.random.default_rng(seed))
    return float(body.mass), body.inertia_at_com


def coordinates(orientation: str, seed: int) -> tuple[list[float], list[float], list[float]]:
    rng = np.random.default_rng(seed)
    q, qd, qdd = rng.normal(size=(3, SIZES[orientation])).tolist()
    if orientation == "quaternion":
        q[3:] = (np.array(q[3:]) * 1.3 / np.linalg.norm(q[3:])).tolist()  # its norm must not matter
    return q, qd, qdd


def skew(a: np.ndarray) -> np.ndarray:
    return np.array([[0, -a[2], a[1]], [a[2], 0, -a[0]], [-a[1], a[0], 0]])


def test_momenta_are_sums_over_particles():
    """LJ-3-MOMENTA: P = m v and L = I_c omega of a cloud of particles, and the identities of [a]."""
    rng = np.random.default_rng(0)
    masses, points = rng.uniform(0.1, 1.0, 20), rng.normal(size=(20, 3))
    mass = masses.sum()
    arms = points - masses @ points / mass
    I_c = sum(-m * skew(r) @ skew(r) for m, r in zip(masses, arms))
    v, omega = rng.normal(size=(2, 3))
    velocities = v + np.cross(omega, arms)
    found = lg.rigid_body_momenta(float(mass), SymMat3.of(I_c.tolist()), Motion(Vec3(*omega), Vec3(*v)))
    close(vec(found.linear), masses @ velocities, 1e-13)
    close(vec(found.angular), (masses[:, None] * np.cross(arms, velocities)).sum(axis=0), 1e-13)
    a, b = rng.normal(size=(2, 3))
    close(mat(Vec3(*a).skew()), skew(a), 1e-15)
    close(skew(a) @ b, -skew(b) @ a, 1e-15)
    close(skew(a).T, -skew(a), 1e-15)
    close(-skew(a) @ skew(a), (a @ a) * np.eye(3) - np.outer(a, a), 1e-14)


def test_rate_of_the_inertia_in_world_axes():
    """LJ-3-INERTIA: I_c = R I_0 R^T, [omega] = R' R^T, I_c' = [omega] I_c - I_c [omega], by differences."""
    _, I_0 = solid(1)
    rng = np.random.default_rng(1)
    start, omega = so3_exp(Vec3(*rng.normal(size=3))), rng.normal(size=3)
    h = 1e-5

    def turned(t: float) -> Mat3:
        return so3_exp(Vec3(*(omega * t))) @ start

    rate = (mat(turned(h)) - mat(turned(-h))) / (2 * h)
    close(rate @ mat(start).T, skew(omega), 1e-9)
    I_c = lg.world_inertia(start, I_0)
    close(mat(I_c), mat(start) @ mat(I_0) @ mat(start).T, 1e-14)
    slope = (mat(lg.world_inertia(turned(h), I_0)) - mat(lg.world_inertia(turned(-h), I_0))) / (2 * h)
    close(mat(lg.world_inertia_rate(Vec3(*omega), I_c)), slope, 1e-8)


def test_newton_euler_as_one_equation():
    """LJ-3-NE: (tau, f) = M_c (omega', v') + (omega x I_c omega, 0), the rate of (L, P) and RBDA's force."""
    mass, I_c = solid(2)
    rng = np.random.default_rng(2)
    velocity, acceleration = (Motion.of(x.tolist()) for x in rng.normal(size=(2, 6)))
    force = lg.newton_euler(mass, I_c, velocity, acceleration)
    M_c, bias = lg.newton_euler_blocks(mass, I_c, velocity.angular)
    close(np.array(M_c) @ six(acceleration) + bias, six(force), 1e-13)
    # RBDA 2.14 at the same point, where the spatial acceleration is v' - omega x v.
    spatial = RigidInertia(mass, (0.0, 0.0, 0.0), I_c)
    a = Motion(acceleration.angular, acceleration.linear - velocity.angular.cross(velocity.linear))
    close(six(spatial * a + velocity.cross(spatial * velocity)), six(force), 1e-13)
    # The rate of L = I_c omega with I_c' as above.
    rate = mat(lg.world_inertia_rate(velocity.angular, I_c)) @ vec(velocity.angular)
    close(vec(force.angular), mat(I_c) @ vec(acceleration.angular) + rate, 1e-13)


def test_free_spin_keeps_momentum_and_energy():
    """LJ-3-NE: omega' = -I_c^-1 (omega x I_c omega), integrated: L in the world and T stay."""
    _, I_0 = solid(3)

    def rate(R, omega):
        I_c = lg.world_inertia(Mat3.of(R.tolist()), I_0)
        bias = lg.newton_euler_blocks(1.0, I_c, Vec3(*omega)).bias[:3]
        return skew(omega) @ R, -np.linalg.solve(mat(I_c), bias)

    R, omega, h = np.eye(3), np.array([0.9, -1.4, 0.6]), 0.01
    momentum = lambda: R @ mat(I_0) @ R.T @ omega
    L, T = momentum(), 0.5 * omega @ momentum()
    for _ in range(200):
        k1 = rate(R, omega)
        k2 = rate(R + h / 2 * k1[0], omega + h / 2 * k1[1])
        k3 = rate(R + h / 2 * k2[0], omega + h / 2 * k2[1])
        k4 = rate(R + h * k3[0], omega + h * k3[1])
        R = R + h / 6 * (k1[0] + 2 * k2[0] + 2 * k3[0] + k4[0])
        omega = omega + h / 6 * (k1[1] + 2 * k2[1] + 2 * k3[1] + k4[1])
    assert np.abs(R - np.eye(3)).max() > 0.5
    close(momentum(), L, 1e-7)
    assert 0.5 * omega @ momentum() == pytest.approx(T, rel=1e-7)


@pytest.mark.parametrize("orientation", SIZES)
def test_jacobian_of_a_pose(orientation):
    """LJ-4-JVJW: (dR/dq_j) R^T is skew for Euler angles, exponential map, quaternion; J qd the velocity."""
    pose = lg.body_pose(orientation)
    q, qd, _ = coordinates(orientation, 4)
    for j in range(len(q)):
        X, slope = directional_derivative(pose, q, [float(j == k) for k in range(len(q))])
        turned = mat(slope.R) @ mat(X.R).T
        close(turned, -turned.T, 1e-12)
    V = np.array(lg.body_jacobian(pose, q)) @ qd
    h = 1e-6
    ahead, behind = (pose([x + s * h * y for x, y in zip(q, qd)]) for s in (1.0, -1.0))
    spin = (mat(ahead.R) - mat(behind.R)) / (2 * h) @ mat(pose(q).R).T
    close(skew(V[:3]), spin, 1e-7)
    close(V[3:], (vec(ahead.p) - vec(behind.p)) / (2 * h), 1e-8)


@pytest.mark.parametrize("orientation", SIZES)
def test_kinetic_energy_in_generalized_coordinates(orientation):
    """LJ-4-KE: qd^T J^T M_c J qd / 2 = m v^2 / 2 + omega . I_c omega / 2 = v . I v / 2."""
    mass, I_0 = solid(5)
    pose = lg.body_pose(orientation)
    q, qd, _ = coordinates(orientation, 5)
    T = lg.body_kinetic_energy(pose, mass, I_0, q, qd)
    V = Motion.of((np.array(lg.body_jacobian(pose, q)) @ qd).tolist())
    I_c = lg.world_inertia(pose(q).R, I_0)
    v, omega = vec(V.linear), vec(V.angular)
    assert pytest.approx(0.5 * mass * v @ v + 0.5 * omega @ mat(I_c) @ omega, rel=1e-13) == T
    X = pose(q)
    body = RigidInertia(mass, (0.0, 0.0, 0.0), I_0)
    local = Motion(X.R.transposed_times(V.angular), X.R.transposed_times(V.linear))
    assert pytest.approx(body.kinetic_energy(local), rel=1e-13) == T


@pytest.mark.parametrize("orientation", SIZES)
def test_two_derivations_of_the_equations_of_one_body(orientation):
    """LJ-4-EOM: Lagrange's equations on T, and Newton-Euler projected by J^T, for all three orientations."""
    mass, I_0 = solid(6)
    pose = lg.body_pose(orientation)
    q, qd, qdd = coordinates(orientation, 6)
    M, C = lg.body_equations(pose, mass, I_0, q, qd)
    by_lagrange = lg.lagrange_equations(
        lambda x, rates: lg.body_kinetic_energy(pose, mass, I_0, x, rates), q, qd, qdd
    )
    close(np.array(M) @ qdd + C, by_lagrange, 1e-11)


@pytest.mark.parametrize(
    ("orientation", "joint"), [("euler", SphericalEuler("xyz")), ("exponential", SphericalExponential())]
)
def test_equations_of_one_body_against_recursion(orientation, joint):
    """LJ-4-EOM: M qdd + C - J_v^T f - J_omega^T tau is RNEA of a body on the same six coordinates."""
    mass, I_0 = solid(7)
    q, qd, qdd = coordinates(orientation, 7)
    builder = ModelBuilder(gravity=(0.0, 0.0, 0.0))
    places = [Transform.identity(), Transform.identity()]
    body = RigidInertia(mass, (0.0, 0.0, 0.0), I_0)
    builder.add_body("body", parent="world", joint=Composite([Translation(), joint], places), inertia=body)
    model = builder.build()
    pose = lg.body_pose(orientation)
    push = np.random.default_rng(7).normal(size=6)  # (torque, force) at the centre of mass, in world axes
    M, C = lg.body_equations(pose, mass, I_0, q, qd)
    Q = np.array(lg.body_jacobian(pose, q)).T @ push
    R = mat(pose(q).R)
    local = np.hstack([R.T @ push[:3], R.T @ push[3:]])
    expected = inverse_dynamics(model, q, qd, qdd, external_forces=[local.tolist()])
    close(np.array(M) @ qdd + C - Q, expected, 1e-11)


def test_equations_in_quaternions_against_recursion():
    """LJ-4-EOM: in four numbers of a quaternion, brought to (omega, v) of the body by qd = B(q) v: B^T (M qdd
    + C) is RNEA of a body on a Free joint.
    """
    mass, I_0 = solid(9)
    builder = ModelBuilder(gravity=(0.0, 0.0, 0.0))
    builder.add_body("body", parent="world", joint=Free(), inertia=RigidInertia(mass, (0.0, 0.0, 0.0), I_0))
    model = builder.build()
    q, v = (x.tolist() for x in model.random_state(9))
    a = np.random.default_rng(9).normal(size=6).tolist()
    joint = model.bodies[0].joint
    qd, change = directional_derivative(
        lambda x: joint.position_rate(x[:7], x[7:]), [*q, *v], [*joint.position_rate(q, v), *a]
    )
    M, C = lg.body_equations(lg.body_pose("quaternion"), mass, I_0, q, qd)
    B = np.array([joint.position_rate(q, unit) for unit in np.eye(6).tolist()]).T
    close(B.T @ (np.array(M) @ change + C), inverse_dynamics(model, q, v, a), 1e-11)


@pytest.mark.parametrize("orientation", SIZES)
def test_each_term_of_the_derivation(orientation):
    """LJ-4-TERMS: the third, fourth and fifth term of Eq. 36 for each j, and z_jk = j_k x j_j."""
    mass, I_0 = solid(8)
    pose = lg.body_pose(orientation)
    q, qd, _ = coordinates(orientation, 8)
    n = len(q)
    J = np.array(lg.body_jacobian(pose, q))
    omega = J[:3] @ qd
    I_c = mat(lg.world_inertia(pose(q).R, I_0))
    gyroscopic = np.cross(omega, I_c @ omega)

    def along(function, direction):
        return np.array(directional_derivative(function, q, direction)[1], dtype=float)

    jacobian = lambda x: lg.body_jacobian(pose, x)
    inertia_at = lambda x: lg.world_inertia(pose(x).R, I_0).to_list()
    units = np.eye(n).tolist()
    slopes = [along(jacobian, unit) for unit in units]
    J_rate, I_rate = along(jacobian, qd), along(inertia_at, qd)
    close(J_rate, sum(slope * x for slope, x in zip(slopes, qd)), 1e-12)
    for j in range(n):
        expected = J[:3, j] @ gyroscopic
        third = J[:3, j] @ I_rate @ omega
        fourth = 0.5 * omega @ along(inertia_at, units[j]) @ omega
        left = J_rate[:, j] - slopes[j] @ qd
        fifth = left[:3] @ I_c @ omega
        close([third, fourth, fifth], [expected, -expected, -expected], 1e-10, terms=(gyroscopic,))
        close(mass * left[3:] @ (J[3:] @ qd), 0.0, 1e-11)
        close(third - fourth + fifth, expected, 1e-10, terms=(gyroscopic,))
        for k in range(n):
            z = slopes[k][:3, j] - slopes[j][:3, k]
            close(z, np.cross(J[:3, k], J[:3, j]), 1e-11)
