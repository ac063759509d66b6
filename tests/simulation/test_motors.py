"""Delays and torque-speed limits of servos and actuators in steps."""

import numpy as np
import pytest

import dalembert as da
from dalembert.control import Actuators, Servo
from dalembert.errors import ArgumentError


def arm():
    builder = da.ModelBuilder(gravity=(0.0, 0.0, 0.0))
    rod = da.RigidInertia(1.0, (0.2, 0.0, 0.0), (0.002, 0.06, 0.06))
    place = da.Transform.from_rotation_translation(np.eye(3), (0.4, 0.0, 0.0))
    builder.add_body("upper", "world", da.Revolute((0, 1, 0)), "shoulder", inertia=rod)
    builder.add_body("lower", "upper", da.Revolute((0, 1, 0)), "elbow", placement=place, inertia=rod)
    builder.add_actuator("servo", {"shoulder": 1.0}, gain=40.0, bias=(0.0, -40.0, -2.0))
    builder.add_actuator("motor", {"elbow": 1.0})
    return builder.build()


def same(a, b):
    a, b = np.asarray(a), np.asarray(b)
    return a.shape == b.shape and a.tobytes() == b.tobytes()


def late(given, delay):
    """Targets (…, steps, n) as they act: that of the first step until the delay is over."""
    steps = given.shape[-2]
    return given[..., np.maximum(np.arange(steps) - delay, 0), :]


@pytest.mark.parametrize("contact", [None, "rigid"])
@pytest.mark.parametrize("delay", [1, 5])
def test_a_delayed_target_acts_as_if_it_were_given_later(contact, delay):
    model, steps = arm(), 30
    rng = np.random.default_rng(delay)
    q, v = rng.normal(size=(3, 2)), rng.normal(size=(3, 2))
    targets = rng.normal(size=(3, steps, 2))
    options = {"steps": steps, "dt": 0.004, "contact": contact}
    for kind, gains in ((Servo, {"kp": 20.0, "kd": 1.0}), (Actuators, {})):
        name = "q_ref" if kind is Servo else "ctrl"
        found = da.rollout(model, q, v, kind(**gains, **{name: targets}, delay=delay), **options)
        wanted = da.rollout(model, q, v, kind(**gains, **{name: late(targets, delay)}), **options)
        at_once = da.rollout(model, q, v, kind(**gains, **{name: targets}), **options)
        assert same(found.q, wanted.q)
        assert np.abs(found.q[:, -1] - at_once.q[:, -1]).max() > 1e-3


def test_samples_have_delays_of_their_own_which_a_simulation_carries_and_a_reset_forgets(tmp_path):
    model, steps = arm(), 24
    delays = np.array([0, 2, 7])
    rng = np.random.default_rng(0)
    targets = np.repeat(rng.normal(size=(3, steps // 3, 2)), 3, axis=1)
    options = {"dt": 0.004, "contact": "rigid"}
    simulation = da.Simulation(
        model, np.zeros((3, 2)), controls=Servo(kp=20.0, kd=1.0, delay=delays), **options
    )
    for k in range(0, steps, 3):
        if k == 12:
            simulation.save(tmp_path / "here.npz")
            simulation = da.Simulation.load(tmp_path / "here.npz", model)
        simulation.step(targets[:, k], steps=3)
    acting = np.stack([late(targets[k], delay) for k, delay in enumerate(delays)])
    wanted = da.rollout(
        model,
        np.zeros((3, 2)),
        np.zeros((3, 2)),
        Servo(kp=20.0, kd=1.0, q_ref=acting),
        steps=steps,
        **options,
    )
    assert same(simulation.q, wanted.q[:, -1])
    simulation.reset()
    for k in range(0, steps, 3):
        simulation.step(targets[:, k], steps=3)
    assert same(simulation.q, wanted.q[:, -1])


@pytest.mark.parametrize("contact", [None, "rigid"])
def test_the_force_of_a_motor_falls_with_its_speed(contact):
    model, steps, dt = arm(), 400, 0.001
    q, v = np.zeros((2, 2)), np.array([[0.0, 0.0], [-9.0, 4.0]])
    motor = {"no_load_speed": [6.0, 12.0], "stall": [8.0, 5.0], "effort": 3.0}
    goal = np.array([[[50.0, -50.0]], [[50.0, 50.0]]])
    found = da.rollout(
        model, q, v, Servo(kp=100.0, kd=2.0, q_ref=goal, **motor), steps=steps, dt=dt, contact=contact
    )
    speed = found.v[:, :-1] / motor["no_load_speed"]
    high = np.clip(np.array(motor["stall"]) * (1.0 - speed), 0.0, 3.0)
    low = -np.clip(np.array(motor["stall"]) * (1.0 + speed), 0.0, 3.0)
    assert np.all(found.tau <= high + 1e-9)
    assert np.all(found.tau >= low - 1e-9)
    np.testing.assert_allclose(found.tau[0, :, 0], high[0, :, 0], atol=1e-9)  # far from its target
    assert high.min() < 1.0  # it came near that speed
    free = da.rollout(
        model, q, v, Servo(kp=100.0, kd=2.0, q_ref=goal, effort=3.0), steps=steps, dt=dt, contact=contact
    )
    assert np.abs(free.v[0, -1, 0]) > np.abs(found.v[0, -1, 0]) + 1.0


@pytest.mark.parametrize("contact", [None, "rigid"])
def test_slow_motors_are_servos(contact):
    model = arm()
    options = {"steps": 200, "dt": 0.002, "contact": contact}
    goal, start = np.array([[0.3, -0.2]]), (np.zeros(2), np.zeros(2))
    fast = Servo(kp=[20.0, 0.0], kd=[1.0, 0.5], q_ref=goal, effort=50.0, no_load_speed=1e6)
    plain = Servo(kp=[20.0, 0.0], kd=[1.0, 0.5], q_ref=goal, effort=50.0)
    found, wanted = (da.rollout(model, *start, servo, **options) for servo in (fast, plain))
    np.testing.assert_allclose(found.q, wanted.q, atol=1e-6)
    assert np.abs(wanted.q[-1, 0]) > 0.1


def test_motors_that_do_not_fit_are_refused():
    with pytest.raises(ArgumentError, match="whole steps"):
        Servo(kp=1.0, kd=1.0, delay=0.5).longest_delay
    with pytest.raises(ArgumentError, match="lag"):
        Servo(kp=1.0, kd=1.0, q_ref=lambda model, t: [t], delay=2)
    with pytest.raises(ArgumentError, match="lag"):
        Actuators(lambda model, t, q, v: [t], delay=2)
    with pytest.raises(ArgumentError, match="stall"):
        Servo(kp=1.0, kd=1.0, stall=2.0)
    with pytest.raises(ArgumentError, match="above zero"):
        Servo(kp=1.0, kd=1.0, no_load_speed=0.0).gains(arm())


def test_gains_and_delays_alone_make_samples_of_a_rollout():
    model, start = arm(), (np.array([0.4, -0.3]), np.zeros(2))
    goal = np.random.default_rng(3).normal(size=(20, 2))
    servo = Servo(kp=[[20.0, 5.0], [40.0, 5.0]], kd=1.0, q_ref=goal, delay=[0, 3])
    found = da.rollout(model, *start, servo, steps=20, dt=0.004)
    assert found.batch == (2,)
    for k in range(2):
        alone = Servo(kp=servo.kp[k], kd=1.0, q_ref=goal, delay=servo.delay[k])
        assert same(found.q[k], da.rollout(model, *start, alone, steps=20, dt=0.004).q)
