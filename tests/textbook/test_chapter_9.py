"""Featherstone 2008 chapter 9: prescribed motion in use."""

import math

import numpy as np
import pytest

import dalembert as da
from dalembert import algorithms as al
from dalembert.algorithms.floating_base import floating_base_momentum


def rolled_out(model, q, v, acceleration, dt, steps):
    """Runge-Kutta of order four on the manifold: increments of q in the tangent at the start of each step."""
    path = [(q, v)]
    for k in range(steps):
        t = k * dt

        def rate(dq, v, t, q=q):
            return v, acceleration(da.integrate(model, q, dq), v, t)

        # v as the rate of dq leaves out how the tangent turns with a free root: second order, small steps.
        x1, a1 = rate(np.zeros(model.nv), v, t)
        x2, a2 = rate(0.5 * dt * x1, v + 0.5 * dt * a1, t + 0.5 * dt)
        x3, a3 = rate(0.5 * dt * x2, v + 0.5 * dt * a2, t + 0.5 * dt)
        x4, a4 = rate(dt * x3, v + dt * a3, t + dt)
        q = da.integrate(model, q, dt / 6.0 * (x1 + 2.0 * x2 + 2.0 * x3 + x4))
        v = v + dt / 6.0 * (a1 + 2.0 * a2 + 2.0 * a3 + a4)
        path.append((q, v))
    return path


def shaken_pendulum(length=0.5):
    """A point mass on a rod whose pivot can slide up and down."""
    builder = da.ModelBuilder(gravity=(0.0, 0.0, -9.81))
    builder.add_body(
        "pivot", "world", da.Prismatic((0, 0, 1)), inertia=da.RigidInertia(1.0, (0, 0, 0), (0, 0, 0))
    )
    builder.add_body(
        "rod", "pivot", da.Revolute((0, 1, 0)), inertia=da.RigidInertia(0.3, (0, 0, length), (0, 0, 0))
    )
    return builder.build()


def test_a_pendulum_answers_to_the_prescribed_motion_of_its_pivot():
    """RBDA-9.1-USES: l theta'' = (g + z'') sin theta, theta from the upright; Newton's force on the pivot."""
    length, mass = 0.5, 0.3
    model = shaken_pendulum(length)
    rng = np.random.default_rng(3)
    q, v, a = rng.normal(size=(3, 20, 2))
    found, tau = da.dynamics.hybrid_dynamics(model, q, v, np.zeros(2), a, prescribed=["pivot"])
    theta, rate, lift = q[:, 1], v[:, 1], a[:, 0]
    np.testing.assert_allclose(found[:, 1], (9.81 + lift) * np.sin(theta) / length, rtol=1e-12)
    height = lift - length * (found[:, 1] * np.sin(theta) + rate**2 * np.cos(theta))
    np.testing.assert_allclose(tau[:, 0], 1.0 * (lift + 9.81) + mass * (height + 9.81), rtol=1e-10)


def test_a_quickly_shaken_pendulum_stands_on_its_head():
    """RBDA-9.1-USES: kinematic excitation z = A cos(w t) with A^2 w^2 > 2 g l holds the pendulum upright
    (Kapitza); without it the pendulum falls.
    """
    model = shaken_pendulum()

    def largest_angle(amplitude):
        frequency = 200.0

        def acceleration(q, v, t):
            lift = -amplitude * frequency**2 * math.cos(frequency * t)
            return da.dynamics.hybrid_dynamics(
                model, q, v, np.zeros(2), np.array([lift, 0.0]), prescribed=["pivot"]
            )[0]

        path = rolled_out(model, np.array([amplitude, 0.1]), np.zeros(2), acceleration, 5e-4, 2000)
        return max(abs(q[1]) for q, _ in path)

    assert (0.03 * 200.0) ** 2 > 2 * 9.81 * 0.5
    assert largest_angle(0.03) < 0.2
    assert largest_angle(0.0) > 1.5


def cat():
    """A trunk in the air with fore and hind parts on joints of one freedom each, bending in one plane."""
    builder = da.ModelBuilder(gravity=(0.0, 0.0, -9.81))
    builder.add_body(
        "trunk", "world", da.Free(), inertia=da.RigidInertia(2.0, (0.01, 0.0, 0.02), (0.02, 0.03, 0.03))
    )
    for name, side in (("fore", 1.0), ("hind", -1.0)):
        builder.add_body(
            name,
            "trunk",
            da.Revolute((0.0, 1.0, 0.0)),
            placement=da.Transform.from_rotation_translation(np.eye(3), (0.15 * side, 0.0, 0.0)),
            inertia=da.RigidInertia(1.5, (0.2 * side, 0.0, 0.01), (0.01, 0.02, 0.02)),
        )
    return builder.build()


def test_limbs_turn_a_figure_in_the_air_while_its_momentum_stays():
    """RBDA-9.1-USES, RBDA-9.5-MOMENTUM: the limbs go through a cycle and come back; the trunk has turned,
    with no angular momentum about the centre of mass at any time, and the centre of mass fell as a stone.
    """
    model = cat()
    joints = ("fore", "hind")
    period, steps = 1.0, 400

    def limbs(t):
        phase = 2.0 * math.pi * t / period
        w = 2.0 * math.pi / period
        ease = 1.3
        q = np.array([math.cos(phase) - 1.0, math.sin(phase)]) * ease
        v = np.array([-math.sin(phase), math.cos(phase)]) * ease * w
        a = np.array([-math.cos(phase), -math.sin(phase)]) * ease * w * w
        return q, v, a

    def acceleration(q, v, t):
        a = np.concatenate([np.zeros(6), limbs(t)[2]])
        return da.dynamics.hybrid_dynamics(model, q, v, np.zeros(8), a, prescribed=joints)[0]

    # Start with limbs in motion and no momentum: v_0 = -(I_0^c)^-1 F q'.
    q, v = model.neutral(), np.zeros(8)
    v[6:] = limbs(0.0)[1]
    parts = da.floating_base.floating_base_equations(model, q, v)
    v[:6] = -np.linalg.solve(parts.I_0, parts.F @ v[6:])
    path = rolled_out(model, q, v, acceleration, period / steps, steps)
    q, v = (np.array(x) for x in zip(*path, strict=True))
    time = np.linspace(0.0, period, steps + 1)
    momentum = da.dynamics.centroidal_momentum(model, q, v)
    np.testing.assert_allclose(momentum[:, :3], 0.0, atol=1e-6)
    np.testing.assert_allclose(momentum[:, 5], -9.81 * 5.0 * time, atol=1e-6)
    fall = da.dynamics.center_of_mass(model, q) - da.dynamics.center_of_mass(model, q[0])
    np.testing.assert_allclose(fall[:, 2], -0.5 * 9.81 * time**2, atol=2e-5)
    np.testing.assert_allclose(q[-1, 7:], q[0, 7:], atol=1e-6)
    pitch = 2.0 * np.arctan2(q[:, 5], q[:, 3])
    assert abs(pitch[-1]) > 0.2
    assert pitch[-1] == pytest.approx(turned_by_kinematics(model, limbs, period, 400), abs=1e-4)


def test_a_somersault_keeps_its_momentum_whatever_the_joints_do():
    """RBDA-9.5-MOMENTUM: I_0^c v_0 + F q', seen from the world, stays what it was while the figure tumbles
    and torques swing its limbs; it is the sum of the bodies' own momenta all the time.
    """
    model = cat().with_values({"gravity": (0.0, 0.0, 0.0)})
    q, v = model.random_state(5)

    def momenta(q, v):
        blocks = floating_base_momentum(model, q.tolist(), v.tolist())
        in_world = model.bodies[0].link_transform(q.tolist()).inverse_apply(blocks).to_list()
        return np.array(in_world), np.array(al.momentum(model, q.tolist(), v.tolist()).to_list())

    start, _ = momenta(q, v)
    assert np.abs(start).min() > 0.05
    first = v
    for k in range(400):
        tau = np.concatenate([np.zeros(6), 2.0 * np.sin([0.02 * k, 1.0 + 0.03 * k])])
        q, v = da.step(model, q, v, tau, 2e-3, integrator="rk4")
        if k % 100 == 0:
            found, summed = momenta(q, v)
            np.testing.assert_allclose(found, start, atol=1e-8 * np.abs(start).max())
            np.testing.assert_allclose(found, summed, atol=1e-12 * np.abs(start).max())
    assert np.abs(v - first).max() > 1.0
    np.testing.assert_allclose(momenta(q, v)[0], start, atol=1e-7 * np.abs(start).max())


def turned_by_kinematics(model, limbs, period, steps):
    """The pitch that a cycle leaves where momentum is zero throughout: the time integral of omega_0, with
    v_0 = -(I_0^c)^-1 F q', which depends on the limbs alone and turns about y; by the rule of midpoints.
    """
    time = (np.arange(steps) + 0.5) * period / steps
    shapes = [limbs(t) for t in time]
    q = np.concatenate([np.tile(model.neutral()[:7], (steps, 1)), [x for x, _, _ in shapes]], axis=1)
    parts = da.floating_base.floating_base_equations(model, q, np.zeros(8))
    pushed = np.einsum("tij,tj->ti", parts.F, [rate for _, rate, _ in shapes])
    v_0 = -np.linalg.solve(parts.I_0, pushed[..., None])[..., 0]
    return float(np.sum(v_0[:, 1]) * period / steps)


def test_a_perfect_servo_allows_a_longer_step_than_a_stiff_one():
    """RBDA-9.1-USES: a double pendulum whose first joint follows a motion. With stiff feedback the simulation
    needs short steps and blows up at 5 ms; with the motion prescribed it takes 5 ms and gives the same.
    """
    model = da.models.double_pendulum()
    shoulder = model.joints[0].name
    stiffness, damping = 1e5, 2e3

    def wanted(t):
        return 0.5 * math.sin(3.0 * t), 1.5 * math.cos(3.0 * t), -4.5 * math.sin(3.0 * t)

    def with_servo(dt, steps):
        def acceleration(q, v, t):
            x, rate, _ = wanted(t)
            torque = np.array([stiffness * (x - q[0]) + damping * (rate - v[0]), 0.0])
            return da.forward_dynamics(model, q, v, torque)

        return rolled_out(model, np.array([0.0, 0.4]), np.array([1.5, 0.0]), acceleration, dt, steps)[-1][0]

    def prescribed(dt, steps):
        def acceleration(q, v, t):
            a = np.array([wanted(t)[2], 0.0])
            return da.dynamics.hybrid_dynamics(model, q, v, np.zeros(2), a, prescribed=[shoulder])[0]

        return rolled_out(model, np.array([0.0, 0.4]), np.array([1.5, 0.0]), acceleration, dt, steps)[-1][0]

    fine = with_servo(2e-4, 2500)
    coarse = prescribed(5e-3, 100)
    np.testing.assert_allclose(coarse, fine, atol=2e-2)
    np.testing.assert_allclose(coarse, prescribed(2.5e-3, 200), atol=1e-6)
    with np.errstate(over="ignore", invalid="ignore"):
        blown = with_servo(5e-3, 100)
    assert not np.all(np.abs(blown) < 1e3)
