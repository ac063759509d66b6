"""Featherstone 2008 section 9.6: gears, on the arm of Figure 9.2."""

import math

import numpy as np
import pytest
from tests.algorithms.counting import count

import dalembert as da
from dalembert import algorithms as al
from dalembert.algorithms.constraints import closure_equations
from dalembert.algorithms.gears import gear_equations, geared_matrix

RATIOS = (60.0, 40.0)


def geared_arm(ratios=RATIOS, rotor=1e-5, *, coupled=True, armature=(0.0, 0.0)):
    """Upper arm, its motor's rotor on the base, forearm, its motor's rotor on the upper arm."""
    builder = da.ModelBuilder(gravity=(0.0, 0.0, -9.81))
    at_elbow = da.Transform.from_rotation_translation(np.eye(3), (0.4, 0.0, 0.0))
    wheel = da.RigidInertia(0.2 if rotor else 0.0, (0, 0, 0), (rotor, 2 * rotor, rotor)) if rotor else None
    axis = da.Revolute((0.0, 1.0, 0.0))
    upper = da.RigidInertia(2.0, (0.2, 0.0, 0.01), (0.01, 0.04, 0.04))
    builder.add_body("upper", "world", axis, inertia=upper, armature=armature[0])
    if wheel:
        builder.add_body("rotor1", "world", axis, inertia=wheel)
    lower = da.RigidInertia(1.0, (0.15, 0.0, -0.02), (0.005, 0.02, 0.02))
    builder.add_body("lower", "upper", axis, placement=at_elbow, inertia=lower, armature=armature[1])
    if wheel:
        near = da.Transform.from_rotation_translation(np.eye(3), (0.35, 0.0, 0.0))
        builder.add_body("rotor2", "upper", axis, placement=near, inertia=wheel)
    if wheel and coupled:
        builder.add_coupling("gear1", {"upper": ratios[0], "rotor1": -1.0})
        builder.add_coupling("gear2", {"lower": ratios[1], "rotor2": -1.0})
    return builder.build()


def test_the_matrix_of_the_arm_with_two_motors():
    """RBDA-9.6-GEARS: [[H11 + r1^2 H22, H13 + r2 H14], [., H33 + r2^2 H44]] (Eq. 9.27)."""
    full, arm = geared_arm(coupled=False), geared_arm()
    r1, r2 = RATIOS
    q = np.array([0.3, -0.8])
    names = ("upper", "rotor1", "lower", "rotor2")
    order = [full.joint(name).v_slice.start for name in names]
    Q = np.zeros(4)
    Q[order] = [q[0], r1 * q[0], q[1], r2 * q[1]]
    H = da.mass_matrix(full, Q)[np.ix_(order, order)]
    assert H[0, 1] == H[1, 2] == H[1, 3] == H[2, 3] == 0.0
    want = np.array(
        [
            [H[0, 0] + r1**2 * H[1, 1], H[0, 2] + r2 * H[0, 3]],
            [H[0, 2] + r2 * H[0, 3], H[2, 2] + r2**2 * H[3, 3]],
        ]
    )
    np.testing.assert_allclose(da.mass_matrix(arm, q), want, rtol=1e-12)
    G = [[1.0, 0.0], [r1, 0.0], [0.0, 1.0], [0.0, r2]]
    np.testing.assert_allclose(geared_matrix(H.tolist(), G), want, rtol=1e-12)
    v, motors = np.array([0.5, -0.7]), np.array([0.02, -0.03])
    C = da.bias_forces(full, Q, np.array(G)[np.argsort(order)] @ v)[order]
    tau = np.array([0.0, motors[0], 0.0, motors[1]])
    A, right = gear_equations(H.tolist(), C.tolist(), tau.tolist(), G, [0.0] * 4)
    for method in ("aba", "crba"):
        a = da.forward_dynamics(arm, q, v, np.array([r1, r2]) * motors, method=method)
        np.testing.assert_allclose(np.array(A) @ a, right, rtol=1e-9)


def test_sparse_gears_cost_a_ninth():
    """RBDA-9.6-GEARCOST: G^T H G of the arm: 5 m + 3 a with the zeros of G and H, 44 m + 33 a without."""

    def sparse(H, r):
        h = [[H[0], 0.0, 0.0, 0.0], [0.0, H[1], 0.0, 0.0], [H[2], 0.0, H[3], 0.0], [H[4], 0.0, 0.0, H[5]]]
        return geared_matrix(h, [[1.0, 0.0], [r[0], 0.0], [0.0, 1.0], [0.0, r[1]]])

    def dense(H, G):
        return geared_matrix(H, G)

    cost = count(sparse, H=6, r=2)
    assert (cost.multiplications, cost.additions) == (5, 3)
    cost = count(dense, H=(4, 4), G=(4, 2))
    assert (cost.multiplications, cost.additions) == (44, 33)


def test_a_differential_splits_the_torque():
    """RBDA-9.6-GEARS: two wheels and a housing that turns at their mean: of three variables two are free."""
    builder = da.ModelBuilder(gravity=(0.0, 0.0, 0.0))
    moments = {"left": 0.3, "right": 0.5, "housing": 0.2}
    for name, moment in moments.items():
        body = da.RigidInertia(1.0, (0, 0, 0), (moment, moment, moment))
        builder.add_body(name, "world", da.Revolute((1, 0, 0)), inertia=body)
    builder.add_coupling("bevels", {"left": 0.5, "right": 0.5, "housing": -1.0})
    model = builder.build()
    J = 0.25 * moments["housing"]
    M = np.array([[0.3 + J, J], [J, 0.5 + J]])
    np.testing.assert_allclose(da.mass_matrix(model, np.zeros(2)), M, rtol=1e-12)
    torque = 4.0 * np.array([0.5, 0.5])  # of the housing
    for method in ("aba", "crba"):
        a = da.forward_dynamics(model, np.zeros(2), np.array([1.0, -2.0]), torque, method=method)
        np.testing.assert_allclose(a, np.linalg.solve(M, torque), rtol=1e-11)


def test_a_gear_of_variable_ratio():
    """RBDA-9.6-GEARS: q_2 = y + 0.3 sin y, a nonlinear gear: G and g = G' y' from gamma; Eq. 9.26 gives the
    forward dynamics of the model with that closure; power is the rate of energy.
    """
    builder = da.ModelBuilder(gravity=(0.0, 0.0, -9.81))
    for name, com in (("crank", 0.1), ("cam", -0.2)):
        body = da.RigidInertia(1.0, (com, 0.0, 0.05), (0.02, 0.03, 0.03))
        builder.add_body(name, "world", da.Revolute((0, 1, 0)), inertia=body)

    def gamma(model, y):
        return [y[0], y[0] + 0.3 * da.scalar.sin(y[0])]

    builder.set_loop_closure(gamma, independent=["crank"])
    model = builder.build()
    y, rate = [0.7], [1.3]
    q, v, G, g = closure_equations(model, y, rate)
    slope = 1.0 + 0.3 * math.cos(0.7)
    np.testing.assert_allclose(G, [[1.0], [slope]], rtol=1e-12)
    np.testing.assert_allclose(g, [0.0, -0.3 * math.sin(0.7) * 1.3**2], atol=1e-12)
    tree = model.tree()
    H, C = al.mass_matrix(tree, q), al.bias_forces(tree, q, v)
    A, right = gear_equations(H, C, [0.4, -0.2], G, g)
    a = da.forward_dynamics(model, np.array(q), np.array(v), np.array([0.4, -0.2]))
    np.testing.assert_allclose(a, np.array(G)[:, 0] * right[0] / A[0][0] + g, rtol=1e-9)
    power = 0.4 * v[0] - 0.2 * v[1]
    h = 1e-6

    def energy(sign):
        x, w = np.array(q) + sign * h * np.array(v), np.array(v) + sign * h * a
        return da.dynamics.kinetic_energy(tree, x, w) + da.dynamics.potential_energy(tree, x)

    assert (energy(1) - energy(-1)) / (2 * h) == pytest.approx(power, rel=1e-6)


def test_the_quick_rotor_model_is_the_limit_of_small_rotors():
    """RBDA-9.6-ROTOR: r^2 times the rotor's inertia as armature is exact but for terms of order 1/r: with
    r^2 I fixed the difference of M falls as 1/r; CRBA and ABA (Eq. 9.28) agree.
    """
    scaled = np.array([0.5, 0.2])
    q, v, tau = np.array([0.3, -0.8]), np.array([0.5, -0.7]), np.array([1.0, -2.0])

    def exact(ratio):
        rotor = 0.5 * scaled / ratio**2
        arm = geared_arm((ratio, ratio), rotor[0])
        moments = {f"rotor{k + 1}.inertia": np.diag([rotor[k], 2 * rotor[k], rotor[k]]) for k in range(2)} | {
            f"rotor{k + 1}.mass": 1e-4 / ratio**2 for k in range(2)
        }
        return arm.with_values(moments, inertia="as_given")

    quick = geared_arm(rotor=0.0, armature=scaled)
    M = da.mass_matrix(quick, q)
    bare = da.mass_matrix(geared_arm(rotor=0.0), q)
    np.testing.assert_allclose(M - bare, np.diag(scaled), atol=1e-12)
    errors = [np.abs(da.mass_matrix(exact(r), q) - M).max() for r in (50.0, 100.0, 200.0)]
    assert errors[0] / errors[1] == pytest.approx(2.0, rel=0.05)
    assert errors[1] / errors[2] == pytest.approx(2.0, rel=0.05)
    assert errors[2] < 0.01 * scaled.min()
    a = da.forward_dynamics(quick, q, v, tau, method="aba")
    np.testing.assert_allclose(a, da.forward_dynamics(quick, q, v, tau, method="crba"), rtol=1e-10)
    np.testing.assert_allclose(a, da.forward_dynamics(exact(1e4), q, v, tau), rtol=1e-3)
    assert np.abs(a - da.forward_dynamics(geared_arm(rotor=0.0), q, v, tau)).max() > 0.5
