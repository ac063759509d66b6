"""PD and stable PD: the law, its limits, and the three motions of physically based animation."""

import numpy as np
import pytest
from tests.algorithms.trees import close

import dalembert as da
from dalembert.errors import ArgumentError, ShapeError

ROD = da.RigidInertia(1.0, (0.0, 0.0, -0.5), np.diag([1 / 12, 1 / 12, 1e-2]))
BELOW = da.Transform.from_rotation_translation(np.eye(3), (0.0, 0.0, -1.0))


def arm(root=None, damping=0.0):
    """An arm with a ball joint at its shoulder and two hinges, on a root or on the world."""
    builder = da.ModelBuilder()
    if root is not None:
        builder.add_body("root", "world", root, inertia=ROD)
    builder.add_body("upper", "root" if root else "world", da.Spherical(), inertia=ROD, damping=damping)
    builder.add_body("lower", "upper", da.Revolute((0, 1, 0)), placement=BELOW, inertia=ROD, armature=0.1)
    builder.add_body("hand", "lower", da.Revolute((1, 0, 0)), placement=BELOW, inertia=ROD)
    return builder.build()


def simulate(model, q, v, torque, steps, dt, integrator="semi_implicit"):
    for k in range(steps):
        q, v = da.step(model, q, v, torque(k * dt, q, v), dt, integrator=integrator)
    return q, v


def test_the_law_joint_by_joint():
    """ANIM-PD: kp (q_ref - q) + kd (v_ref - v), of a ball joint by the rotation vector of its error; motors
    alone have torques, and none beyond its limit.
    """
    model = arm(root=da.Free())
    q, v = model.random_state(0)
    _, v_ref = model.random_state(1)
    turn = np.array([0.3, -0.2, 0.5])
    change = np.concatenate([np.ones(6), turn, [0.2, -0.4]])
    q_ref = da.integrate(model, q, change)
    kp, kd = np.arange(1.0, 12.0), np.linspace(0.1, 1.0, 11)
    tau = da.control.pd(model, q, v, q_ref, v_ref, kp=kp, kd=kd)
    expected = kp * change + kd * (v_ref - v)
    np.testing.assert_array_equal(tau[:6], 0.0)
    close(tau[6:], expected[6:], 1e-12)
    limited = da.control.pd(model, q, v, q_ref, v_ref, kp=kp, kd=kd, effort=1.0)
    close(limited[6:], np.clip(expected[6:], -1.0, 1.0), 1e-12)
    assert np.abs(limited[6:]).max() == 1.0
    assert np.abs(limited[6:]).min() < 1.0


def test_stable_law_holds_where_the_step_ends():
    """ANIM-PD: tau = kp (q_ref - q') + kd (v_ref - v') with the state that tau leads to, for gains at which
    the explicit law is unstable.
    """
    model = arm(damping=0.5)
    q, v = model.random_state(2)
    q_ref, v_ref = da.integrate(model, q, 0.3 * np.ones(5)), 0.2 * np.ones(5)
    dt, kp, kd = 0.01, 1e4, 3e3
    tau = da.control.stable_pd(model, q, v, q_ref, v_ref, kp=kp, kd=kd, dt=dt)
    _, after = da.step(model, q, v, tau, dt)
    close(tau, kp * (da.difference(model, q, q_ref) - dt * after) + kd * (v_ref - after), 1e-9)


def test_voluntary_motion_follows_a_reference_that_moves():
    """ANIM-PD: voluntary motion. The error stays at what gravity and inertia make of stiff springs."""
    model = arm()
    dt, kp, kd = 0.01, 1e4, 1e3

    def reference(t):
        v = np.array([0.0, 0.6, 0.0, 0.8, -0.4]) * np.sin(2.0 * t)
        q = da.integrate(
            model, model.neutral(), np.array([0.0, 0.3, 0.0, 0.4, -0.2]) * (1.0 - np.cos(2.0 * t))
        )
        return q, v

    errors = []

    def torque(t, q, v):
        errors.append(np.abs(da.difference(model, q, reference(t)[0])).max())
        return da.control.stable_pd(model, q, v, *reference(t + dt), kp=kp, kd=kd, dt=dt)

    simulate(model, model.neutral(), np.zeros(5), torque, 300, dt)
    assert max(errors) < 0.01


def test_passive_motion_keeps_its_energy():
    """ANIM-PD: passive motion. Without gains there is no torque, and energy is what it was."""
    model = arm()
    q, v = model.random_state(3)

    def energy(q, v):
        return da.dynamics.kinetic_energy(model, q, v) + da.dynamics.potential_energy(model, q)

    def torque(t, q, v):
        tau = da.control.stable_pd(model, q, v, model.neutral(), kp=0.0, kd=0.0, dt=1e-3)
        np.testing.assert_array_equal(tau, 0.0)
        return tau

    end = simulate(model, q, v, torque, 1000, 1e-3, integrator="rk4")
    assert energy(*end) == pytest.approx(energy(q, v), rel=1e-7)
    assert np.abs(end[1] - v).max() > 1.0


@pytest.mark.parametrize("law", ["pd", "stable_pd"])
def test_response_motion_returns_after_a_push(law):
    """ANIM-PD: response motion. Pushed away from rest under gravity compensated by the reference, the arm
    comes back; soft springs in both laws.
    """
    model = arm()
    rest = model.neutral()
    v = np.array([1.0, -2.0, 0.5, 3.0, -1.0])
    q, kp, kd, dt = rest, 60.0, 15.0, 1e-3
    away = 0.0

    def torque(t, q, v):
        nonlocal away
        away = max(away, np.abs(da.difference(model, rest, q)).max())
        more = {"dt": dt} if law == "stable_pd" else {}
        return getattr(da.control, law)(model, q, v, rest, kp=kp, kd=kd, **more)

    q, v = simulate(model, q, v, torque, 12000, dt)
    assert away > 0.05
    close(da.difference(model, rest, q), np.zeros(5), 1e-3)  # it hangs straight down: gravity pulls it there
    close(v, np.zeros(5), 1e-3)


def test_stiff_gains_that_the_explicit_law_does_not_stand():
    """ANIM-PD: at one step, explicit PD blows up where stable PD arrives."""
    model = arm()
    q_ref = da.integrate(model, model.neutral(), np.array([0.2, -0.3, 0.1, 0.5, 0.4]))
    gains = {"kp": 1e6, "kd": 1e4}
    q, v = simulate(
        model, model.neutral(), np.zeros(5),
        lambda t, q, v: da.control.stable_pd(model, q, v, q_ref, dt=0.01, **gains), 200, 0.01,
    )  # fmt: skip
    close(da.difference(model, q, q_ref), np.zeros(5), 1e-4)
    q, v = model.neutral(), np.zeros(5)
    for _ in range(5):
        q, v = da.step(model, q, v, da.control.pd(model, q, v, q_ref, **gains), 0.01)
    assert np.abs(v).max() > 1e3


def test_a_servo_of_a_rollout_is_the_same_law():
    """ANIM-PD: torques of `da.control.Servo` in a rollout are those of `stable_pd`, sample by sample."""
    model = arm(damping=0.2)
    q, v = (np.array(x) for x in zip(*(model.random_state(k) for k in range(3)), strict=True))
    kp, kd = np.array([50.0, 60.0, 70.0, 40.0, 30.0]), np.array([5.0, 6.0, 7.0, 4.0, 3.0])
    servo = da.control.Servo(kp=kp, kd=kd, q_ref=model.neutral(), effort=20.0)
    found = da.rollout(model, q, v, servo, steps=5, dt=0.02)
    for k in range(5):
        tau = da.control.stable_pd(
            model, found.q[:, k], found.v[:, k], model.neutral(), kp=kp, kd=kd, dt=0.02, effort=20.0
        )
        close(found.tau[:, k], tau, 1e-11)


def test_bad_gains_are_refused():
    model = arm()
    q, v = model.random_state(0)
    with pytest.raises(ArgumentError, match="kp has negative"):
        da.control.pd(model, q, v, q, kp=-1.0, kd=1.0)
    with pytest.raises(ShapeError, match="kd: expected one number or 5"):
        da.control.pd(model, q, v, q, kp=1.0, kd=[1.0, 2.0])
    with pytest.raises(ArgumentError, match="effort has negative"):
        da.control.pd(model, q, v, q, kp=1.0, kd=1.0, effort=-2.0)
    with pytest.raises(ArgumentError, match="dt must be positive"):
        da.control.stable_pd(model, q, v, q, kp=1.0, kd=1.0, dt=-0.1)
