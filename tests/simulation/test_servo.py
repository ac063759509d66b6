"""Servos in rollouts: PD control that no gain makes unstable, with and without contact; pushes at centres."""

from __future__ import annotations

import numpy as np
import pytest

import dalembert as da
from dalembert.errors import ArgumentError, ModelError, ShapeError

DT = 0.01


def two_link_arm():
    """Two rods and, at the end, a ball joint."""
    rod = da.RigidInertia(1.0, (0.0, 0.0, -0.5), np.diag([1 / 12, 1 / 12, 1e-2]))
    below = da.Transform.from_rotation_translation(np.eye(3), (0.0, 0.0, -1.0))
    builder = da.ModelBuilder(gravity=(0.0, 0.0, -9.81))
    builder.add_body("upper", "world", da.Revolute((0, 1, 0)), inertia=rod, damping=0.3)
    builder.add_body("lower", "upper", da.Revolute((0, 1, 0)), placement=below, inertia=rod)
    builder.add_body("hand", "lower", da.Spherical(), placement=below, inertia=rod)
    return builder.build()


@pytest.fixture(scope="module")
def arm():
    return two_link_arm()


def state(model, seed=0):
    q, v = model.random_state(seed)
    return q, v


@pytest.mark.parametrize("contact", [None, "rigid", "compliant"])
def test_a_servo_draws_joints_to_their_target_whatever_its_gains(arm, contact):
    """ANIM-PD: voluntary motion, gains a thousand times beyond what an explicit law stands at this step."""
    q, v = state(arm)
    target, _ = state(arm, 1)
    servo = da.control.Servo(kp=1e6, kd=1e5, q_ref=target)
    found = da.rollout(arm, q, v, servo, steps=300, dt=DT, contact=contact)
    error = da.difference(arm, found.q, np.broadcast_to(target, found.q.shape))
    size = np.linalg.norm(error, axis=-1)
    assert size[0] > 1.0
    assert size[-1] < 1e-4
    np.testing.assert_allclose(found.v[-1], 0.0, atol=1e-5)
    # What it holds there is gravity.
    np.testing.assert_allclose(
        found.tau[-1], da.gravity_forces(arm, found.q[-1]), atol=1e-3 * np.abs(found.tau[-1]).max()
    )


@pytest.mark.parametrize("contact", [None, "rigid"])
def test_the_law_holds_at_the_end_of_each_step(arm, contact):
    """ANIM-PD: tau = kp (q_ref - q') + kd (v_ref - v') within the effort; and tau is what moved the arm."""
    q, v = state(arm)
    target, rate = state(arm, 1)
    kp, kd = np.array([30.0, 20.0, 5.0, 6.0, 7.0]), np.array([3.0, 2.0, 0.5, 0.6, 0.7])
    effort = np.array([20.0, 100.0, 5.0, 100.0, 100.0])
    servo = da.control.Servo(kp=kp, kd=kd, q_ref=target, v_ref=rate, effort=effort)
    dt = 1e-3
    # Without contact the forces are those of a prediction with velocity-product forces where a step begins.
    found = da.rollout(arm, q, v, servo, steps=400, dt=dt, contact=contact, integrator="semi_implicit")
    after = found.v[1:]
    error = da.difference(arm, found.q[:-1], np.broadcast_to(target, found.q[:-1].shape))
    law = np.clip(kp * (error - dt * after) + kd * (rate - after), -effort, effort)
    free = np.abs(found.tau) < effort
    assert 10 < free.all(axis=1).sum() < 390
    if contact is None:
        # Forces of a prediction in which motors have no bounds.
        np.testing.assert_allclose(found.tau[free.all(1)], law[free.all(1)], rtol=1e-8)
    else:
        np.testing.assert_allclose(found.tau, law, rtol=1e-8, atol=1e-8)
    # Damping of joints acts beside; in a step with contact it is implicit.
    damping = np.array([0.3, 0, 0, 0, 0])
    for k in (0, 150, 399):
        same = {"steps": 1, "dt": dt, "contact": contact, "integrator": "semi_implicit"}
        now = da.rollout(arm, found.q[k], found.v[k], found.tau[k], **same)
        np.testing.assert_allclose(now.v[1], after[k], rtol=1e-5, atol=1e-5)
        a = (after[k] - found.v[k]) / dt
        resisted = damping * (found.v[k] if contact is None else after[k])
        tau = da.inverse_dynamics(arm, found.q[k], found.v[k], a) + resisted
        np.testing.assert_allclose(found.tau[k], tau, rtol=1e-4, atol=1e-3)


def test_passive_motion_keeps_energy_and_a_servo_comes_back_after_a_push():
    """ANIM-PD: passive and response motion."""
    limp = da.models.two_link_arm()
    q, v = limp.random_state(0)
    fall = da.rollout(limp, q, v, steps=2000, dt=0.001, integrator="rk4", observe="energy")
    energy = fall.observed["energy"]
    assert np.abs(fall.q[-1] - q).max() > 0.5
    np.testing.assert_allclose(energy, energy[0], atol=1e-6)
    servo = da.control.Servo(kp=100.0, kd=20.0)
    hanging, rest = np.array([-np.pi / 2, 0.0]), np.zeros(2)
    push = np.zeros((4000, len(limp.bodies), 6))
    push[100:200, -1, 3:] = (50.0, 0.0, 0.0)
    push[100:200, -1, 5] = 50.0
    pushed = da.rollout(
        limp, hanging, rest, servo, steps=4000, dt=0.001, external_forces=push, external_frame="center"
    )
    away = np.linalg.norm(pushed.q - pushed.q[100], axis=1)
    assert away.max() > 0.1
    assert away[-1] < 0.01 * away.max()


def test_targets_are_held_or_given_step_by_step_or_by_functions_of_time(arm):
    q, v = state(arm)
    gains = {"kp": 50.0, "kd": 5.0}
    steps = 20

    def at(t, sin=np.sin):
        return [0.3 * sin(3.0 * t), 0.2 * sin(t), 1.0, 0.0, 0.0, 0.0]

    def moving(model, t):
        return at(t, da.scalar.sin)

    stream = np.array([at(k * DT) for k in range(steps)])
    one = da.rollout(arm, q, v, da.control.Servo(**gains, q_ref=stream), steps=steps, dt=DT)
    other = da.rollout(arm, q, v, da.control.Servo(**gains, q_ref=moving), steps=steps, dt=DT)
    np.testing.assert_allclose(one.q, other.q, rtol=1e-12, atol=1e-12)
    start = da.rollout(arm, q, v, da.control.Servo(**gains), steps=steps, dt=DT)
    held = da.rollout(arm, q, v, da.control.Servo(**gains, q_ref=q), steps=steps, dt=DT)
    np.testing.assert_array_equal(start.q, held.q)
    several = da.rollout(
        arm, [q, q], v, da.control.Servo(kp=[[50.0] * 5, [0.0] * 5], kd=[[5.0] * 5, [0.0] * 5]), steps, DT
    )
    np.testing.assert_array_equal(several.q[0], held.q)
    limp = da.rollout(arm, q, v, steps=steps, dt=DT)
    np.testing.assert_allclose(several.q[1], limp.q, rtol=1e-9)


def test_efforts_are_the_models_and_free_roots_have_no_motor():
    model = da.models.humanoid()
    servo = da.control.Servo(kp=100.0, kd=10.0)
    gains = servo.gains(model)
    assert servo.driven(model) == tuple(range(6, model.nv))
    knee = model.joints["left_knee"].body
    assert gains["effort"][knee.v_slice] == knee.limits.effort
    assert (gains["kp"][:6] == 0.0).all()


def test_a_push_at_a_centre_of_mass_moves_it_and_turns_nothing():
    model = da.ModelBuilder(gravity=(0.0, 0.0, 0.0))
    model.add_body("rock", "world", da.Free(), inertia=da.RigidInertia(2.0, (0.3, -0.2, 0.5), np.eye(3)))
    rock = model.build()
    q, _ = rock.random_state(0)
    push = np.zeros((10, 1, 6))
    push[3:6, 0, 3:] = (1.0, 2.0, 3.0)
    found = da.rollout(rock, q, np.zeros(6), steps=10, dt=DT, external_forces=push, external_frame="center")
    np.testing.assert_allclose(found.v[-1, :3], 0.0, atol=1e-12)
    momentum = da.dynamics.centroidal_momentum(rock, found.q[-1], found.v[-1])[3:]
    np.testing.assert_allclose(momentum, np.array([1.0, 2.0, 3.0]) * 3 * DT, rtol=1e-12)


@pytest.mark.parametrize(
    ("error", "match", "changed"),
    [
        (ArgumentError, "kp has negative", {"kp": -1.0}),
        (ArgumentError, "kd holds numbers", {"kd": np.nan}),
        (ShapeError, "kp", {"kp": [1.0, 2.0]}),
        (ArgumentError, "effort", {"effort": -1.0}),
        (ShapeError, "q_ref", {"q_ref": np.zeros((3, 6))}),
        (ShapeError, "q_ref returned 2", {"q_ref": lambda model, t: [t, t]}),
    ],
)
def test_bad_servos_are_refused(arm, error, match, changed):
    q, v = state(arm)
    with pytest.raises(error, match=match):
        da.rollout(arm, q, v, da.control.Servo(**{"kp": 1.0, "kd": 1.0, **changed}), steps=5, dt=DT)


def test_gains_where_there_is_no_motor_are_refused():
    model = da.models.humanoid()
    with pytest.raises(ModelError, match='joint "root", which has no motor'):
        da.control.Servo(kp=np.ones(model.nv), kd=0.0).gains(model)


def test_targets_that_are_not_finite_stop_a_sample(arm):
    q, v = state(arm)
    target = np.zeros((5, 6))
    target[:, 2] = 1.0
    target[3, 0] = np.nan
    servo = da.control.Servo(kp=1.0, kd=1.0, q_ref=target)
    with pytest.warns(da.simulation.SimulationWarning, match="controls are not finite"):
        found = da.rollout(arm, q, v, servo, steps=5, dt=DT, contact="rigid")
    assert found.failed_at == 3
