"""Todorov's slides: the arm of two point masses both ways, Lagrange's equation, and its coordinates."""

import numpy as np
import pytest
from tests.algorithms.trees import close

import dalembert as da
from dalembert import scalar
from dalembert.algorithms.coriolis import map_motion
from dalembert.algorithms.geometry import (
    explicit_dynamics,
    explicit_dynamics_by_blocks,
    implicit_dynamics,
    implicit_dynamics_kkt,
)
from dalembert.model.joints.dual import directional_derivative

L1, L2, M1, M2 = 0.8, 0.5, 1.7, 0.9
GRAVITY = 9.81
D = np.diag([M1, M1, M2, M2])
WEIGHT = [0.0, -GRAVITY * M1, 0.0, -GRAVITY * M2]


def h(q):
    """The point masses in the plane from the joint angles."""
    c1, s1 = scalar.cos(q[0]), scalar.sin(q[0])
    c12, s12 = scalar.cos(q[0] + q[1]), scalar.sin(q[0] + q[1])
    return [L1 * c1, L1 * s1, L1 * c1 + L2 * c12, L1 * s1 + L2 * s12]


def phi(x):
    """The lengths of the rods."""
    dx, dy = x[2] - x[0], x[3] - x[1]
    return [x[0] * x[0] + x[1] * x[1] - L1 * L1, dx * dx + dy * dy - L2 * L2]


def arm():
    """The same arm as a tree: massless rods in the x-y plane that end in point masses."""
    builder = da.ModelBuilder(gravity=(0.0, -GRAVITY, 0.0))
    parent, at = "world", (0.0, 0.0, 0.0)
    for name, length, mass in (("upper", L1, M1), ("lower", L2, M2)):
        builder.add_body(
            name,
            parent,
            da.Revolute((0, 0, 1)),
            placement=da.Transform.from_rotation_translation(np.eye(3).tolist(), at),
            inertia=da.RigidInertia(mass, (length, 0.0, 0.0), (0.0, 0.0, 0.0)),
        )
        parent, at = name, (length, 0.0, 0.0)
    return builder.build()


STATES = [(np.array([0.4, 1.1]), np.array([0.9, -1.6])), (np.array([-2.0, 0.3]), np.array([-0.5, 2.2]))]
moving = pytest.mark.parametrize(("q", "v"), STATES)


@moving
def test_constraints_of_the_two_link_arm(q, v):
    """TOD-TWOLINK: phi(h(q)) = 0, J_phi as printed (factor 2), J_h as printed, J_phi J_h = 0."""
    x, J_h, x_rate, _ = map_motion(h, q.tolist(), v.tolist())
    lengths, J_phi, rate, _ = map_motion(phi, x, x_rate)
    close(lengths, [0.0, 0.0], 1e-15)
    close(rate, [0.0, 0.0], 1e-15)
    printed = 2.0 * np.array([[x[0], x[1], 0.0, 0.0], [x[0] - x[2], x[1] - x[3], x[2] - x[0], x[3] - x[1]]])
    close(J_phi, printed, 1e-15)
    s1, s12, c1, c12 = np.sin(q[0]), np.sin(q[0] + q[1]), np.cos(q[0]), np.cos(q[0] + q[1])
    close(
        J_h,
        [[-L1 * s1, 0.0], [L1 * c1, 0.0], [-L1 * s1 - L2 * s12, -L2 * s12], [L1 * c1 + L2 * c12, L2 * c12]],
        1e-15,
    )
    close(np.array(J_phi) @ J_h, np.zeros((2, 2)), 1e-15)


@moving
def test_inertia_of_the_two_link_arm(q, v):
    """TOD-TWOLINK TOD-EXPLICIT TOD-COORDS: M = J^T D J has M11 = m1 l1^2 + m2 (l1^2 + l2^2 + 2 l1 l2 cos q2),
    M12 = m2 (l2^2 + l1 l2 cos q2), M22 = m2 l2^2, and M, c, tau are those of CRBA and RNEA.
    """
    _, J, x_rate, bias = map_motion(h, q.tolist(), v.tolist())
    M, c, tau = explicit_dynamics(D.tolist(), WEIGHT, J, bias)
    cross = L1 * L2 * np.cos(q[1])
    M12 = M2 * (L2**2 + cross)
    close(M, [[M1 * L1**2 + M2 * (L1**2 + L2**2 + 2.0 * cross), M12], [M12, M2 * L2**2]], 1e-14)
    model = arm()
    close(da.mass_matrix(model, q), M, 1e-14)
    close(da.coriolis_forces(model, q, v), c, 1e-13)
    close(da.gravity_forces(model, q), -np.array(tau), 1e-13)
    close(da.inverse_dynamics(model, q, v, [0.3, -0.7]), np.array(M) @ [0.3, -0.7] + c - tau, 1e-13)
    assert v @ M @ v == pytest.approx(x_rate @ D @ x_rate, rel=1e-13)
    assert v @ tau == pytest.approx(np.dot(x_rate, WEIGHT), rel=1e-13)


@moving
def test_two_link_arm_moves_the_same_by_implicit_and_explicit_constraints(q, v):
    """TOD-TWOLINK TOD-IMPLICIT TOD-EXPLICIT: x'' by both forms of the implicit constraints is J q'' + J' q'
    by the explicit ones and by ABA, and the constraint forces are the same.
    """
    x, J, x_rate, bias = map_motion(h, q.tolist(), v.tolist())
    _, J_phi, _, phi_bias = map_motion(phi, x, x_rate)
    a = da.forward_dynamics(arm(), q, v, [0.0, 0.0])
    expected = np.array(J) @ a + bias
    implicit = implicit_dynamics(D.tolist(), WEIGHT, J_phi, phi_bias)
    close(implicit.acceleration, expected, 1e-12)
    close(implicit_dynamics_kkt(D.tolist(), WEIGHT, J_phi, phi_bias).acceleration, expected, 1e-12)
    found_x, f_c, found_q = explicit_dynamics_by_blocks(D.tolist(), WEIGHT, J, bias)
    close(found_x, expected, 1e-12)
    close(found_q, a, 1e-12)
    close(np.array(J_phi).T @ implicit.multipliers, f_c, 1e-11)


def test_lengths_stay_while_point_masses_swing():
    """TOD-IMPLICIT: the constrained particles, integrated, keep phi(x) = 0 and follow the arm's joints."""
    q, v = STATES[0]
    x, _, x_rate, _ = map_motion(h, q.tolist(), v.tolist())
    state = np.array([x, x_rate])
    dt = 0.002

    def rate(s):
        _, J, _, bias = map_motion(phi, s[0].tolist(), s[1].tolist())
        return np.array([s[1], implicit_dynamics(D.tolist(), WEIGHT, J, bias).acceleration])

    for _ in range(250):
        k1 = rate(state)
        k2 = rate(state + 0.5 * dt * k1)
        k3 = rate(state + 0.5 * dt * k2)
        k4 = rate(state + dt * k3)
        state = state + dt / 6.0 * (k1 + 2.0 * (k2 + k3) + k4)
        q, v = da.step(MODEL, q, v, np.zeros(2), dt, integrator="rk4")
    assert np.abs(phi(state[0])).max() < 1e-9
    close(state[0], h(q.tolist()), 1e-8)


MODEL = arm()


@moving
def test_lagrange_equation(q, v):
    """TOD-LAGRANGE: d/dt dL/dv - dL/dq = M a + c + dP/dq with L = K - P, P = sum of 9.81 m h(q); on the right
    side of the equation gravity is -dP/dq, the opposite of RNEA's.
    """
    a = np.array([0.7, -1.2])

    def lagrangian(z):
        x, _, x_rate, _ = map_motion(h, z[:2], z[2:])
        kinetic = 0.5 * sum(D[k, k] * x_rate[k] * x_rate[k] for k in range(4))
        return kinetic - GRAVITY * (M1 * x[1] + M2 * x[3])

    def along(z, direction):
        return directional_derivative(lagrangian, z, direction)[1]

    units = np.eye(4).tolist()
    z, z_rate = [*q, *v], [*v, *a]
    by_q = [along(z, unit) for unit in units[:2]]
    by_v_rate = [
        directional_derivative(lambda w, unit=unit: along(w, unit), z, z_rate)[1] for unit in units[2:]
    ]
    close(np.array(by_v_rate) - by_q, da.inverse_dynamics(MODEL, q, v, a), 1e-12)

    def height(z):
        x = h(z)
        return GRAVITY * (M1 * x[1] + M2 * x[3])

    g = [-directional_derivative(height, q.tolist(), unit)[1] for unit in np.eye(2).tolist()]
    close(g, -da.gravity_forces(MODEL, q), 1e-12)
    b = da.mass_matrix(MODEL, q) @ a + da.coriolis_forces(MODEL, q, v)
    close(b - g, da.inverse_dynamics(MODEL, q, v, a), 1e-12)


@moving
def test_symbols_of_the_two_link_arm(q, v):
    """TOD-CHRISTOFFEL: only dM/dq2 = -m2 l1 l2 sin q2 [[2, 1], [1, 0]] is there: Gamma_12,1 = Gamma_22,1 =
    -Gamma_11,2 = -m2 l1 l2 sin q2, and RNEA with q'' = 0 gives +c.
    """
    s = M2 * L1 * L2 * np.sin(q[1])
    Gamma = da.geometry.christoffel_symbols(MODEL, q)
    expected = np.zeros((2, 2, 2))
    expected[0, 1, 0] = expected[1, 0, 0] = expected[1, 1, 0] = -s
    expected[0, 0, 1] = s
    close(Gamma, expected, 1e-14)
    c = np.array([-s * (2.0 * v[0] * v[1] + v[1] ** 2), s * v[0] ** 2])
    close(da.coriolis_forces(MODEL, q, v), c, 1e-14)
