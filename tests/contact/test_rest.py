"""Bodies at rest under rigid contact: the velocities that a rollout records are those of their positions."""

from __future__ import annotations

import numpy as np
import pytest

import dalembert as da

G = 9.81
UPRIGHT = (1.0, 0.0, 0.0, 0.0)

REST_SPEED = 1e-6
"""[m/s, rad/s]"""


def boxes(count: int, side: float = 0.2, mass: float = 1.0) -> tuple[da.Model, np.ndarray]:
    """A stack of boxes on the ground, and its configuration."""
    builder, shape = da.ModelBuilder(), da.shapes.Box((side,) * 3)
    for k in range(count):
        builder.add_body(f"box {k}", joint=da.Free(), inertia=shape.inertia(mass=mass), shapes=[shape])
    q = np.concatenate([[0.0, 0.0, (k + 0.5) * side, *UPRIGHT] for k in range(count)])
    return builder.build().with_ground(friction=0.6), q


def pinch(squeeze: float = 11.9, gain: float = 5950.0) -> tuple[da.Model, da.control.Actuators]:
    """A capsule of 45 g between two pads, each of which a servo presses with the force `squeeze` [N]."""
    capsule, pad = da.shapes.Capsule(0.01, 0.06), da.shapes.Box((0.01, 0.04, 0.04), friction=(0.7, 0.0, 0.0))
    builder = da.ModelBuilder()
    builder.add_body("capsule", joint=da.Free(), inertia=capsule.inertia(mass=0.045), shapes=[capsule])
    for name, side in (("left", -1.0), ("right", 1.0)):
        place = da.Transform.from_rotation_translation(np.eye(3), (side * 0.015, 0.0, 0.0))
        slide = da.Prismatic((-side, 0.0, 0.0))
        builder.add_body(name, joint=slide, placement=place, inertia=pad.inertia(mass=0.2), shapes=[pad])
        builder.add_actuator(name, {name: 1.0}, gain=gain, bias=(0.0, -gain, -50.0))
    return builder.build(), da.control.Actuators([squeeze / gain] * 2)


def wedge() -> tuple[da.Model, np.ndarray]:
    """A ball in a groove of two walls at 45 degrees."""
    builder, ball = da.ModelBuilder(), da.shapes.Sphere(0.1)
    builder.add_body("ball", joint=da.Free(), inertia=ball.inertia(mass=2.0), shapes=[ball])
    for sign in (-1.0, 1.0):
        c = np.sqrt(0.5)
        turn = np.array([[c, 0.0, sign * c], [0.0, 1.0, 0.0], [-sign * c, 0.0, c]])
        place = da.Transform.from_rotation_translation(turn, (-sign * 0.5, 0.0, 0.5))
        builder.add_shape("world", da.shapes.Box((1.4, 1.0, 0.02), placement=place))
    return builder.build(), np.array([0.0, 0.0, 0.25, *UPRIGHT])


@pytest.mark.parametrize("dt", [0.001, 0.005, 0.01])
@pytest.mark.parametrize("count", [1, 3, 10])
def test_velocities_of_boxes_at_rest_are_zero(count, dt):
    model, q = boxes(count)
    found = da.rollout(model, q, np.zeros(model.nv), steps=800, dt=dt, contact="rigid")
    assert np.abs(found.v[-1]).max() < REST_SPEED
    np.testing.assert_allclose(found.q[-1], found.q[-2], rtol=0.0, atol=dt * REST_SPEED)


def test_a_pinched_capsule_and_its_pads_rest_under_the_force_of_the_servos():
    model, controls = pinch()
    for dt in (0.001, 0.002, 0.005):
        found = da.rollout(
            model,
            model.neutral(),
            np.zeros(model.nv),
            controls,
            steps=round(4.0 / dt),
            dt=dt,
            contact="rigid",
        )
        assert np.abs(found.v[-1]).max() < REST_SPEED
        left = ["left" in names for names in found.contacts.names]
        assert np.abs(found.contacts.force[-1, left, 0].sum()) == pytest.approx(11.9, rel=1e-4)


def test_a_ball_in_a_groove_comes_to_rest():
    model, q = wedge()
    found = da.rollout(model, q, np.zeros(model.nv), steps=1500, dt=0.002, contact="rigid")
    assert np.abs(found.v[-1]).max() < REST_SPEED
    force = found.contacts.force[-1].sum(axis=0)
    np.testing.assert_allclose(force, [0.0, 0.0, 2.0 * G], atol=1e-5)


def test_velocities_of_a_standing_humanoid_are_the_rates_of_its_positions():
    model = da.models.humanoid().with_ground()
    q = model.neutral()
    q[2] = 0.92
    servo, law = da.control.Servo(kp=2000.0, kd=100.0), da.contact.Rigid(self_collision=False)
    found = da.rollout(model, q, np.zeros(model.nv), servo, steps=4000, dt=0.002, contact=law)
    rate = da.difference(model, found.q[-2], found.q[-1]) / 0.002
    np.testing.assert_allclose(found.v[-1], rate, rtol=0.0, atol=5e-6)


def test_thrown_figures_do_not_sink_in():
    """Those of 256 thrown limp whose overlaps were or are the deepest: 2.3 mm, with softer joint limits."""
    model = da.models.humanoid().with_ground()
    q, v = np.tile(model.neutral(), (256, 1)), np.random.default_rng(3).normal(size=(256, model.nv))
    turns = np.random.default_rng(4).normal(size=(256, 4))
    q[:, 2], q[:, 3:7] = 1.3, turns / np.linalg.norm(turns, axis=1, keepdims=True)
    worst, law = [84, 86, 125, 203], da.contact.Rigid(self_collision=False)
    found = da.rollout(model, q[worst], v[worst], steps=600, dt=0.002, contact=law)
    assert -found.contacts.gap.min() < 0.5e-3


def test_a_stack_whose_top_box_is_pushed_stands():
    """Ten boxes of 200 mm swayed by 43 mm half a minute later, and fifteen fell."""
    for count in (10, 15):
        model, q = boxes(count)
        pairs = [("ground", "box 0"), *((f"box {k}", f"box {k + 1}") for k in range(count - 1))]
        v = np.zeros(model.nv)
        v[-3:] = 0.1, 0.03, 0.0
        law = da.contact.Rigid(pairs=pairs)
        found = da.rollout(model, q, v, steps=6000, dt=0.005, contact=law, every=100)
        places = found.q.reshape(61, count, 7)[40:, :, :3]
        assert np.linalg.norm(places - places[0], axis=-1).max() < 10e-3
