"""Contact in rollouts of models that depend on time, and of loop closures q = gamma(y)."""

from __future__ import annotations

import numpy as np
import pytest

import dalembert as da
from dalembert.model.joints import TimeDependent, UserDefined
from dalembert.scalar import cos, sin
from dalembert.spatial import Mat3, Transform, Vec3

G = 9.81
LAWS = ["rigid", "compliant"]
PATCH = {"friction_stiffness": 1e5, "friction_damping": 500.0}
SPRINGS = da.contact.Law(normal=da.contact.LinearSurface(1e5, 500.0), **PATCH)


def carried(joint, mu=0.5, side=0.2):
    """A cube of 2 kg on a plate that a joint moves."""
    plate = da.shapes.Box((4.0, 4.0, 0.1), friction=(mu, 0.0, 0.0))
    cube = da.shapes.Box((side, side, side), friction=(mu, 0.0, 0.0))
    builder = da.ModelBuilder(gravity=(0.0, 0.0, -G))
    builder.add_body(
        "plate", joint=joint, joint_name="motor", inertia=plate.inertia(mass=5.0), shapes=[plate]
    )
    builder.add_body("cube", joint=da.Free(), inertia=cube.inertia(mass=2.0), shapes=[cube])
    return builder.build()


def lift(t):
    return 0.02 * (1.0 - cos(10.0 * t))  # up to 2 m/s^2


def shake(t):
    return 0.04 * (1.0 - cos(12.0 * t))  # up to 5.8 m/s^2, more than mu g


def own_joint(axis, motion):
    """A joint without freedoms of the user's, at a place that depends on time."""

    def place(q, t):
        return Transform(Mat3.identity(), Vec3(*(x * motion(t) for x in axis)))

    return UserDefined("rail", 0, 0, place, time_dependent=True)


@pytest.mark.parametrize("law", [*LAWS, SPRINGS])
@pytest.mark.parametrize(("axis", "motion"), [((0, 0, 1), lift), ((1, 0, 0), shake)])
def test_a_joint_that_depends_on_time_moves_bodies_as_a_prescribed_one_does(law, axis, motion):
    """The same motion by two routes: in the joint, and prescribed in the rollout."""
    options = {"steps": 600, "dt": 0.001, "contact": law}
    given = {"motor": lambda model, t: motion(t)}
    driven = TimeDependent(da.Fixed(), driver=da.Prismatic(axis), motion=lambda t: [motion(t)])
    found = []
    for joint in (da.Prismatic(axis), driven, own_joint(axis, motion)):
        model = carried(joint)
        q = model.neutral()
        q[model.nq - 5] = 0.15
        asked = given if joint.nv else None
        moved = da.rollout(model, q, np.zeros(model.nv), prescribed=asked, **options)
        assert not moved.failed
        found.append((moved.q[:, -7:], moved.v[:, -6:], moved.contacts.force))
    # Corners of the sliding cube take the load in turn: it rocks by up to 6e-4 rad/s, not in the same steps.
    turning = 3e-4 if law == "rigid" else 5e-5
    for q, v, force in found[1:]:
        np.testing.assert_allclose(q, found[0][0], rtol=0, atol=3e-6)
        np.testing.assert_allclose(v[:, :3], found[0][1][:, :3], rtol=0, atol=turning)
        np.testing.assert_allclose(v[:, 3:], found[0][1][:, 3:], rtol=0, atol=5e-5)
        np.testing.assert_allclose(force, found[0][2], rtol=0, atol=0.05)
    far = np.ptp(found[0][0][:, 0]) if axis[0] else np.ptp(found[0][0][:, 2])
    assert far > 0.03
    np.testing.assert_array_equal(found[1][0], found[2][0])


@pytest.mark.parametrize("law", LAWS)
def test_a_cube_on_a_turntable_needs_a_centripetal_force_until_it_slides(law):
    """On a table that turns faster and faster a cube at the radius r leaves where omega^2 r = mu g."""
    mu, radius, alpha, dt = 0.4, 0.6, 1.5, 0.001
    turn = TimeDependent(da.Fixed(), driver=da.Revolute((0, 0, 1)), motion=lambda t: [0.5 * alpha * t * t])
    model = carried(turn, mu=mu, side=0.1)
    q = model.neutral()
    q[:3] = radius, 0.0, 0.1
    # Friction gives sqrt(omega^4 + alpha^2) r, at most mu g.
    slides = np.sqrt(np.sqrt((mu * G / radius) ** 2 - alpha**2)) / alpha
    moved = da.rollout(model, q, np.zeros(6), steps=round(1.2 * slides / dt), dt=dt, contact=law)
    t = moved.time
    r = np.hypot(moved.q[:, 0], moved.q[:, 1])
    stays = t < 0.95 * slides
    np.testing.assert_allclose(r[stays], radius, rtol=0, atol=2e-3)  # what surfaces yield along theirs
    assert r[-1] > radius + 0.03
    friction = np.linalg.norm(moved.contacts.force[..., :2].sum(axis=1), axis=-1)
    late = (t[:-1] > 0.3) & stays[:-1]
    needed = 2.0 * radius * np.sqrt((alpha * t[:-1]) ** 4 + alpha**2)
    np.testing.assert_allclose(friction[late], needed[late], rtol=0.03)
    assert friction.max() < 1.001 * mu * 2.0 * G


@pytest.mark.parametrize("law", LAWS)
def test_a_pendulum_on_a_driven_pivot_moves_as_without_contact(law):
    """A joint with freedoms and motion of its own: steps with contact tend to RK4 at first order."""
    rod = da.RigidInertia(1.0, (0.05, 0.0, -0.4), np.diag([0.1, 0.09, 0.02]))
    swing = lambda t: [0.3 * sin(4.0 * t), 0.2 * t]
    driver = da.joints.Composite([da.Prismatic((1, 0, 0)), da.Revolute((0, 0, 1))])
    pivot = TimeDependent(da.Revolute((0, 1, 0)), driver=driver, motion=swing)
    builder = da.ModelBuilder(gravity=(0.0, 0.0, -G))
    builder.add_body("rod", joint=pivot, inertia=rod, damping=0.1)
    below = Transform(Mat3.identity(), Vec3(0.0, 0.0, -0.8))
    builder.add_body("hand", "rod", joint=da.Spherical(), placement=below, inertia=rod)
    model = builder.build()
    q, v = model.random_state(2)
    exact = da.rollout(model, q, v, steps=1000, dt=0.0005, integrator="rk4", time=0.3)
    errors = []
    for steps in (250, 500, 1000):
        moved = da.rollout(model, q, v, steps=steps, dt=0.5 / steps, contact=law, time=0.3)
        errors.append(np.abs(moved.q[-1] - exact.q[-1]).max())
    assert errors[-1] < 5e-3
    assert errors[0] / errors[1] == pytest.approx(2.0, abs=0.4)
    assert errors[1] / errors[2] == pytest.approx(2.0, abs=0.4)


@pytest.mark.parametrize("law", LAWS)
def test_a_constraint_that_depends_on_time_moves_a_platform(law):
    """phi(q, t) = z - lift(t) = 0 instead of a prescribed joint."""
    plate, cube = da.shapes.Box((1.0, 1.0, 0.1)), da.shapes.Box((0.2, 0.2, 0.2))
    builder = da.ModelBuilder(gravity=(0.0, 0.0, -G))
    builder.add_body("plate", joint=da.Prismatic((0, 0, 1)), inertia=plate.inertia(mass=5.0), shapes=[plate])
    builder.add_body("cube", joint=da.Free(), inertia=cube.inertia(mass=2.0), shapes=[cube])
    builder.add_constraint(lambda model, q, time: [q[0] - lift(time)])
    model = builder.build()
    q = model.neutral()
    q[3] = 0.15
    moved = da.rollout(model, q, np.zeros(7), steps=1000, dt=0.001, contact=law)
    assert not moved.failed
    late = moved.time[:-1] > 0.5
    np.testing.assert_allclose(moved.q[1:, 0][late], lift(moved.time[1:])[late], rtol=0, atol=1e-4)
    force = moved.contacts.force[..., 2].sum(axis=-1)
    expected = 2.0 * (G + 2.0 * np.cos(10.0 * moved.time[:-1]))
    np.testing.assert_allclose(force[late], expected[late], rtol=0, atol=0.04 * G)


def crank_and_lift(form):
    """A crank that lifts a plate by 0.3 sin(y), on which a cube stands: by a closure, or by a constraint."""
    plate, cube = da.shapes.Box((1.0, 1.0, 0.1)), da.shapes.Box((0.2, 0.2, 0.2))
    arm = da.shapes.Box((0.4, 0.05, 0.05)).inertia(mass=8.0)
    builder = da.ModelBuilder(gravity=(0.0, 0.0, -G))
    far = Transform(Mat3.identity(), Vec3(3.0, 0.0, 0.0))
    builder.add_body("crank", joint=da.Revolute((0, 1, 0)), joint_name="crank", inertia=arm, placement=far)
    builder.add_body("plate", joint=da.Prismatic((0, 0, 1)), inertia=plate.inertia(mass=5.0), shapes=[plate])
    builder.add_body(
        "cube", joint=da.Free(), joint_name="root", inertia=cube.inertia(mass=2.0), shapes=[cube]
    )
    height = lambda y: 0.3 * sin(y)
    if form == "closure":
        builder.set_loop_closure(lambda model, y: [y[0], height(y[0]), *y[1:]], independent=["crank", "root"])
    else:
        builder.add_constraint(lambda model, q: [q[1] - height(q[0])])
    model = builder.build()
    q, v = model.neutral(), np.zeros(8)
    q[4] = 0.15
    v[[0, 1, 7]] = 1.0, 0.3, 0.3
    return model, q, v


@pytest.mark.parametrize("law", LAWS)
def test_a_loop_closure_keeps_its_loop_and_moves_as_a_constraint_does(law):
    """y = crank and cube, z = 0.3 sin(y): closed to rounding, in positions and velocities; at smaller steps
    the crank comes to where the constraint lets it come, and has the energy that its motor put in."""
    ends, gains = {}, []
    for form in ("closure", "constraint"):
        model, q, v = crank_and_lift(form)
        for steps in (200, 400, 800):
            drive = lambda model, t, q, v: [2.0 * sin(3.0 * t), *[0.0] * 7]
            dt = 0.4 / steps
            moved = da.rollout(model, q, v, drive, steps=steps, dt=dt, contact=law, observe=("energy",))
            assert not moved.failed
            ends[form, steps] = moved.q[-1, 0]
            work = np.sum(moved.tau[:, 0] * 0.5 * (moved.v[1:, 0] + moved.v[:-1, 0])) * dt
            energy = moved.observed["energy"]
            scale = da.dynamics.kinetic_energy(model, moved.q, moved.v).max()
            gains.append((energy[-1] - energy[0] - work) / scale)
            if form == "closure":
                y, rate = moved.q[:, 0], moved.v[:, 0]
                np.testing.assert_allclose(moved.q[:, 1], 0.3 * np.sin(y), rtol=0, atol=1e-14)
                np.testing.assert_allclose(moved.v[:, 1], 0.3 * np.cos(y) * rate, rtol=0, atol=1e-12)
    assert ends["closure", 800] < -2.0
    gaps = [abs(ends["closure", n] - ends["constraint", n]) for n in (200, 400, 800)]
    assert gaps[2] < 0.01
    assert min(gaps[0] / gaps[1], gaps[1] / gaps[2]) > 1.6
    assert abs(gains[2]) < 0.03


@pytest.mark.parametrize("law", LAWS)
def test_a_loop_closure_that_depends_on_time_drives_a_platform(law):
    """gamma(y, t): the plate stands at lift(t), the cube is the independent one."""
    plate, cube = da.shapes.Box((1.0, 1.0, 0.1)), da.shapes.Box((0.2, 0.2, 0.2))
    builder = da.ModelBuilder(gravity=(0.0, 0.0, -G))
    builder.add_body("plate", joint=da.Prismatic((0, 0, 1)), inertia=plate.inertia(mass=5.0), shapes=[plate])
    builder.add_body(
        "cube", joint=da.Free(), joint_name="root", inertia=cube.inertia(mass=2.0), shapes=[cube]
    )
    builder.set_loop_closure(lambda model, y, time: [lift(time), *y], independent=["root"])
    model = builder.build()
    q = model.neutral()
    q[3] = 0.15
    moved = da.rollout(model, q, np.zeros(7), steps=1000, dt=0.001, contact=law)
    assert not moved.failed
    np.testing.assert_allclose(moved.q[:, 0], lift(moved.time), rtol=0, atol=1e-14)
    np.testing.assert_allclose(moved.v[:, 0], 0.2 * np.sin(10.0 * moved.time), rtol=0, atol=1e-13)
    late = moved.time[:-1] > 0.5
    force = moved.contacts.force[..., 2].sum(axis=-1)
    expected = 2.0 * (G + 2.0 * np.cos(10.0 * moved.time[:-1]))
    np.testing.assert_allclose(force[late], expected[late], rtol=0, atol=0.06 * G)


def test_a_spring_feels_the_motion_of_a_driven_frame():
    """A damper between a driven bead and a free one pulls by the rate of its whole length, with and without
    contact: k x + d dx/dt of both, m a = k (s - x) + d (s' - x')."""
    builder = da.ModelBuilder(gravity=(0.0, 0.0, 0.0))
    bead = da.RigidInertia(1.0, (0.0, 0.0, 0.0), (0.1, 0.1, 0.1))
    wave = lambda t: 0.2 * sin(5.0 * t)
    drive = TimeDependent(da.Fixed(), driver=da.Prismatic((1, 0, 0)), motion=lambda t: [wave(t)])
    builder.add_body("hand", joint=drive, inertia=bead)
    at = Transform(Mat3.identity(), Vec3(1.0, 0.0, 0.0))
    builder.add_body("bead", joint=da.Prismatic((1, 0, 0)), placement=at, inertia=bead)
    zero = (0.0, 0.0, 0.0)
    builder.add_spring("line", [("hand", zero), ("bead", zero)], stiffness=20.0, damping=3.0, rest_length=1.0)
    model = builder.build()
    k, d, w = 20.0, 3.0, 5.0
    # The steady part of m x'' + d x' + k x = k s + d s', and what the start adds.
    ratio = (k + 1j * d * w) / (k - w * w + 1j * d * w)
    steady = lambda t: (0.2 * ratio * np.exp(1j * w * t)).imag
    q0, v0 = steady(0.0), (0.2 * ratio * 1j * w).imag
    exact = da.rollout(model, [q0], [v0], steps=1000, dt=0.001, integrator="rk4")
    np.testing.assert_allclose(exact.q[:, 0], steady(exact.time), rtol=0, atol=1e-9)
    for law in LAWS:
        moved = da.rollout(model, [q0], [v0], steps=10000, dt=0.0001, contact=law)
        np.testing.assert_allclose(moved.q[:, 0], steady(moved.time), rtol=0, atol=2e-4)


@pytest.mark.parametrize("law", LAWS)
def test_samples_start_at_their_own_times(law):
    """A batch with a time for each sample gives the bits of each sample alone."""
    driven = TimeDependent(da.Fixed(), driver=da.Prismatic((1, 0, 0)), motion=lambda t: [shake(t)])
    model, times = carried(driven), np.array([0.0, 0.1, 0.25])
    q = model.neutral()
    q[2] = 0.15
    options = {"steps": 60, "dt": 0.002, "contact": law}
    together = da.rollout(model, np.tile(q, (3, 1)), np.zeros(6), time=times, **options)
    for k, begun in enumerate(times):
        alone = da.rollout(model, q, np.zeros(6), time=begun, **options)
        np.testing.assert_array_equal(together.q[k], alone.q)
    assert np.ptp(together.q[:, -1, 0]) > 1e-3
