"""Torsional, rolling and anisotropic friction under both laws of contact."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

import dalembert as da
from dalembert.contact.contacts import listed_contacts
from dalembert.contact.costs import Point
from dalembert.contact.friction import EllipticHessian, PointHessian, PointVector, Turning
from dalembert.contact.narrow_phase.candidates import Candidate, ContactPoint
from dalembert.simulation.step_plan import StepPlan
from dalembert.spatial import Vec3

G, RADIUS, MASS = 9.81, 0.1, 2.0
INERTIA = 0.4 * MASS * RADIUS**2
SAG = 1e-3
LAWS = ("rigid", "compliant")
pytestmark = pytest.mark.filterwarnings("ignore::dalembert.simulation.SimulationWarning")


def ball(friction: tuple[float, float, float], condim: int = 6, **options: Any) -> da.Model:
    builder = da.ModelBuilder(gravity=(0.0, 0.0, -G))
    inertia = da.shapes.Sphere(RADIUS).inertia(mass=MASS)
    builder.add_body("ball", "world", da.Free(), inertia=inertia)
    builder.add_shape("ball", da.shapes.Sphere(RADIUS, friction=(0.0, 0.0, 0.0)))
    return builder.build().with_ground(friction=friction, condim=condim, **options)


def lying(law: str) -> list[float]:
    """The ball on the ground, compliant surfaces pressed in by its weight."""
    return [0.0, 0.0, RADIUS - (SAG if law == "compliant" else 0.0), 1.0, 0.0, 0.0, 0.0]


@pytest.mark.parametrize("law", LAWS)
def test_a_spinning_ball_stops_at_the_time_of_torsional_friction(law: str) -> None:
    """omega_0 I / (mu_t m g), and the spin falls along a straight line until then."""
    spins, torsion, dt = np.array([2.0, 5.0, -9.0]), 0.01, 0.002
    stops = np.abs(spins) * INERTIA / (torsion * MASS * G)
    v = np.zeros((3, 6))
    v[:, 2] = spins
    steps = round(1.3 * stops.max() / dt)
    found = da.rollout(
        ball((0.5, torsion, 0.0)), np.tile(lying(law), (3, 1)), v, steps=steps, dt=dt, contact=law
    )
    for spin, stop, own in zip(spins, stops, found.v[..., 2], strict=True):
        moving = found.time < 0.97 * stop
        np.testing.assert_allclose(own[moving], spin * (1.0 - found.time[moving] / stop), atol=0.01)
    assert np.abs(found.v[:, -1]).max() < 1e-3
    assert np.abs(found.q[..., :2]).max() < 1e-9


@pytest.mark.parametrize("law", LAWS)
def test_without_torsional_friction_a_spin_stays(law: str) -> None:
    """With rolling friction alone, and with coefficients that condim leaves out."""
    for model in (ball((0.5, 0.0, 0.01)), ball((0.5, 0.01, 0.01), condim=3)):
        start = [0.0, 0.0, 4.0, 0.0, 0.0, 0.0]
        found = da.rollout(model, lying(law), start, steps=500, dt=0.002, contact=law)
        assert found.v[-1, 2] == pytest.approx(4.0, abs=1e-9)


@pytest.mark.parametrize("law", LAWS)
def test_a_rolling_ball_stops_after_the_distance_of_rolling_friction(law: str) -> None:
    """A torque of mu_r m g about the centre slows a solid ball that rolls by mu_r g r / (7/5 r^2)."""
    rolling, dt = 0.004, 0.002
    lever = RADIUS - (SAG / 2 if law == "compliant" else 0.0)
    slowing = rolling * G * lever / (0.4 * RADIUS**2 + lever**2)
    speeds = np.array([0.3, 0.6])
    v = np.zeros((2, 6))
    v[:, 1], v[:, 3] = speeds / lever, speeds
    steps = round(1.3 * speeds.max() / slowing / dt)
    found = da.rollout(
        ball((0.5, 0.0, rolling)), np.tile(lying(law), (2, 1)), v, steps=steps, dt=dt, contact=law
    )
    np.testing.assert_allclose(found.q[:, -1, 0], speeds**2 / (2.0 * slowing), rtol=5e-3)
    half = [round(0.5 * speed / slowing / dt) for speed in speeds]
    np.testing.assert_allclose(found.v[[0, 1], half, 1], 0.5 * speeds / lever, rtol=5e-3)
    assert np.abs(found.v[:, -1]).max() < 1e-3


@pytest.mark.parametrize("law", LAWS)
def test_a_ball_on_a_slope_rolls_beyond_the_angle_of_rolling_friction(law: str) -> None:
    """tan(theta) = mu_r / r: at nine tenths of it the ball stays, at twice it rolls down by
    g (sin(theta) - cos(theta) mu_r / r) 5/7."""
    rolling, dt = 0.01, 0.002
    theta = np.arctan(np.array([0.5, 0.9, 2.0]) * rolling / RADIUS)
    weight = G * np.stack([np.sin(theta), 0.0 * theta, -np.cos(theta)], axis=-1)
    found = da.rollout(
        ball((0.8, 0.0, rolling)),
        np.tile(lying(law), (3, 1)),
        np.zeros(6),
        steps=1000,
        dt=dt,
        contact=law,
        parameters={"gravity": weight},
    )
    late = found.q[:, 500:, 0] - found.q[:, 500, :1]
    assert np.abs(late[:2]).max() < 1e-6
    lever = RADIUS - (SAG / 2 if law == "compliant" else 0.0)
    torque = np.sin(theta[2]) * lever - np.cos(theta[2]) * rolling
    expected = G * torque * lever / (0.4 * RADIUS**2 + lever**2)
    speed = np.hypot(found.v[2, :, 3], found.v[2, :, 5])
    assert (speed[-1] - speed[500]) / 1.0 == pytest.approx(expected, rel=5e-3)


@pytest.mark.parametrize("law", LAWS)
def test_friction_of_two_directions_is_within_its_ellipse(law: str) -> None:
    """A box slides on y = t_1 with mu_1 and x = t_2 with mu_2: the force is - m g S S u / |S u|, the one of
    the ellipse that takes the most power; a push of less than mu_1 m g along y, or mu_2 m g along x, moves
    nothing, and one between the two does along the weaker direction."""
    mu_y, mu_x = 0.2, 0.5
    builder = da.ModelBuilder(gravity=(0.0, 0.0, -G))
    builder.add_body("box", "world", da.Free(), inertia=da.shapes.Box((0.4, 0.4, 0.1)).inertia(mass=1.0))
    builder.add_shape("box", da.shapes.Box((0.4, 0.4, 0.02), name="box"))
    builder.add_shape("world", da.shapes.Plane(name="floor"))
    builder.add_contact_pair("floor", "box", friction=(mu_y, mu_x, 0.0, 0.0))
    model, dt, steps = builder.build(), 0.002, 300
    low = 0.01 - (SAG / 4 if law == "compliant" else 0.0)
    v, push = np.zeros((5, 6)), np.zeros((5, steps, 1, 6))
    v[0, 3:5], v[1, 3:5] = (1.5, 1.5), (0.5, -2.0)
    push[2, :, 0, 3], push[3, :, 0, 4], push[4, :, 0, 4] = 0.45 * G, 0.18 * G, 0.3 * G
    start = np.tile([0.0, 0.0, low, 1.0, 0.0, 0.0, 0.0], (5, 1))
    options: dict[str, Any] = {"external_forces": push, "external_frame": "center"}
    found = da.rollout(model, start, v, steps=steps, dt=dt, contact=law, **options)
    u = found.v[..., 3:5]
    scaled = u[:2, 20:60].mean(axis=1) * [mu_x, mu_y]
    expected = -G * scaled * [mu_x, mu_y] / np.linalg.norm(scaled, axis=-1, keepdims=True)
    np.testing.assert_allclose((u[:2, 60] - u[:2, 19]) / (41 * dt), expected, rtol=0.01)
    assert np.abs(u[2:4, -100:]).max() < 1e-5
    np.testing.assert_allclose(u[4, -1] - u[4, -101], [0.0, 100 * dt * 0.1 * G], atol=2e-3)


@pytest.mark.skipif(find_spec("mujoco") is None, reason="MuJoCo is not installed")
@pytest.mark.parametrize("law", LAWS)
def test_balls_spin_and_roll_down_as_in_mujoco(law: str, tmp_path: Any) -> None:
    """Elliptic cones, condim 6: one ball spins on the spot, the other rolls, until both stand."""
    import mujoco

    own = 'condim="6" friction="0.6 0.01 0.003"'
    text = f"""<mujoco><option cone="elliptic" timestep="0.001" gravity="0 0 -{G}" impratio="10"/><worldbody>
      <geom type="plane" size="9 9 1" {own}/>
      <body name="a" pos="0 0 .1"><freejoint/><geom size=".1" mass="2" {own}/></body>
      <body name="b" pos="0 1 .1"><freejoint/><geom size=".1" mass="2" {own}/></body>
      </worldbody></mujoco>"""
    (tmp_path / "balls.xml").write_text(text)
    m = mujoco.MjModel.from_xml_path(str(tmp_path / "balls.xml"))
    data, steps = mujoco.MjData(m), 1500
    data.qvel[5], data.qvel[6], data.qvel[10] = 6.0, 0.3, 3.0
    theirs = np.zeros((steps + 1, 2))
    theirs[0] = 6.0, 3.0
    for k in range(steps):
        mujoco.mj_step(m, data)
        theirs[k + 1] = data.qvel[5], data.qvel[10]
    model = da.load(tmp_path / "balls.xml")
    q, v = model.neutral(), np.zeros(12)
    q[2], q[8], q[9] = 0.1, 1.0, 0.1
    v[2], v[7], v[9] = 6.0, 3.0, 0.3
    found = da.rollout(model, q, v, steps=steps, dt=0.001, contact=law)
    assert theirs[400, 0] < 4.0
    assert theirs[400, 1] < 2.2
    np.testing.assert_allclose(found.v[:, [2, 7]], theirs, atol=0.15)
    rates = [(x[200] - x[50]) / 0.15 for x in (found.v[:, [2, 7]], theirs)]
    np.testing.assert_allclose(*rates, rtol=0.01)


def test_models_without_such_friction_have_no_part_of_it() -> None:
    """Nothing is remembered, and no law has a part for it."""
    for condim, kept in ((3, 0), (4, 3), (6, 3)):
        model = ball((0.5, 0.005, 0.0001), condim=condim)
        for law in (da.contact.Rigid(), da.contact.Compliant()):
            plan = StepPlan.of(model, law, None, None, None)
            assert plan.memory_size == 5 + kept
    where = ContactPoint(Vec3(0.0, 0.0, 0.0), Vec3(0.0, 0.0, 1.0), 0.0)
    plain = listed_contacts(1, [Candidate(-1, 0, 0.5, 0.0, where)], 0.0)
    assert plain.turning is None
    assert plain.across is None


# A point by itself


def points(rng: np.random.Generator) -> Point:
    """A point whose normal, stiffnesses and warm start are random, with all parts of friction."""
    n = rng.normal(size=3)
    start, torque = rng.normal(size=3), 0.1 * rng.normal(size=3)
    return Point(
        Vec3(*rng.normal(size=3)),
        Vec3(*(n / np.linalg.norm(n))),
        0.1,
        0.4,
        stiffness=30.0,
        friction_stiffness=20.0,
        warm_start=Vec3(*start),
        across=0.9,
        turning=Turning(0.1, 0.05, 2.0, Vec3(*torque)),
    )


def as_vector(x: np.ndarray) -> PointVector:
    return PointVector(Vec3(*x[:3]), Vec3(*x[3:]))


def as_array(x: PointVector) -> np.ndarray:
    assert x.angular is not None
    return np.array([*x.linear, *x.angular])


@pytest.mark.parametrize("bound", [0.3, 1.0, 1e3])
@pytest.mark.parametrize("round", [True, False])
def test_the_hessian_is_the_derivative_of_the_impulse(bound: float, round: bool) -> None:
    """Where parts slip, where some do, and where all stick."""
    rng = np.random.default_rng(3)
    for _ in range(20):
        point, x = points(rng), rng.normal(size=6)
        point = replace(point, across=None) if round else point
        force = lambda x, point=point: as_array(point.force(as_vector(x), bound).impulse)
        G = point.hessian(as_vector(x), bound)
        assert isinstance(G, PointHessian if round else EllipticHessian)
        for direction in np.eye(6):
            slope = (force(x + 1e-6 * direction) - force(x - 1e-6 * direction)) / 2e-6
            np.testing.assert_allclose(as_array(G.times(as_vector(direction))), -slope, atol=2e-7)


@pytest.mark.parametrize("bound", [0.3, 1e3])
def test_friction_is_within_its_bounds_and_its_power_along_a_line_is_known(bound: float) -> None:
    rng = np.random.default_rng(4)
    for _ in range(20):
        point, x, y, alpha = points(rng), rng.normal(size=6), rng.normal(size=6), rng.uniform()
        found = point.force(as_vector(x + alpha * y), bound).impulse
        n = np.array([*point.normal])
        lines = point.lines(as_vector(x), as_vector(y), bound)
        power = sum(line.power(alpha) for line in lines)
        force = as_array(found)
        force[:3] -= n * (n @ force[:3])
        assert power == pytest.approx(force @ y, rel=1e-9, abs=1e-12)
        spin = n @ force[3:]
        assert abs(spin) <= 0.1 * bound * (1.0 + 1e-12)
        assert np.linalg.norm(force[3:] - spin * n) <= 0.05 * bound * (1.0 + 1e-12)
        sliding = point.sliding
        assert sliding is not None
        assert sliding.ellipse is not None
        g = sliding.ellipse.unscale(Vec3(*force[:3]))
        assert g.norm() <= bound * (1.0 + 1e-12)


def test_torques_of_a_point_act_on_both_bodies_and_give_no_momentum() -> None:
    """Two balls on one axis in free space, one spins: torsional friction passes the spin on."""
    builder = da.ModelBuilder(gravity=(0.0, 0.0, 0.0))
    for name in ("one", "two"):
        builder.add_body(name, "world", da.Free(), inertia=da.shapes.Sphere(RADIUS).inertia(mass=MASS))
        builder.add_shape(name, da.shapes.Sphere(RADIUS, friction=(0.5, 0.02, 0.0), condim=4))
    model = builder.build()
    q, v = model.neutral(), np.zeros(12)
    q[9], v[2] = 2.0 * RADIUS, 4.0
    press = np.zeros((200, 2, 6))
    press[:, 0, 5], press[:, 1, 5] = 30.0, -30.0
    options: dict[str, Any] = {"external_forces": press, "external_frame": "center", "contact": "rigid"}
    found = da.rollout(model, q, v, steps=200, dt=0.002, **options)
    spin = found.v[:, [2, 8]]
    np.testing.assert_allclose(spin.sum(axis=1), 4.0, atol=1e-9)
    rate = 0.02 * 30.0 / INERTIA
    expected = 2.0 + 2.0 * np.maximum(1.0 - rate * found.time / 2.0, 0.0)
    np.testing.assert_allclose(spin[:, 0], expected, atol=0.05)
