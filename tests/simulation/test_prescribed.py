"""Prescribed joints in rollouts: they move exactly as given, the others follow, tau is what that needs."""

from __future__ import annotations

import numpy as np
import pytest

import dalembert as da
from dalembert.errors import ArgumentError, DtypeError, ModelError, ShapeError, UnknownNameError
from dalembert.scalar import cos, sin

G = 9.81
INTEGRATORS = ["semi_implicit", "midpoint", "implicit", "euler", "heun", "rk4"]


def platform_and_cube(axis=(0, 0, 1), mu=0.5, mass=2.0):
    """A cube of 0.2 m on a platform that slides along an axis."""
    plate = da.shapes.Box((4.0, 1.0, 0.1), friction=(mu, 0.0, 0.0))
    cube = da.shapes.Box((0.2, 0.2, 0.2), friction=(mu, 0.0, 0.0))
    builder = da.ModelBuilder(gravity=(0.0, 0.0, -G))
    builder.add_body(
        "platform",
        joint=da.Prismatic(axis),
        joint_name="motor",
        inertia=plate.inertia(mass=5.0),
        shapes=[plate],
    )
    builder.add_body("cube", joint=da.Free(), inertia=cube.inertia(mass=mass), shapes=[cube])
    model = builder.build()
    q = model.neutral()
    q[3] = 0.15
    return model, q, np.zeros(model.nv)


def arm():
    """Two rods and, at the end, a ball joint; springs, damping and dry friction in the joints."""
    rod = da.RigidInertia(1.0, (0.1, 0.05, -0.5), np.diag([1 / 12, 1 / 11, 1e-2]))
    below = da.Transform.from_rotation_translation(np.eye(3), (0.0, 0.0, -1.0))
    builder = da.ModelBuilder(gravity=(0.0, 0.0, -G))
    builder.add_body(
        "upper", "world", da.Revolute((0, 1, 0)), inertia=rod, damping=0.3, stiffness=2.0, friction=0.1
    )
    builder.add_body("lower", "upper", da.Revolute((1, 0, 0)), placement=below, inertia=rod, damping=0.1)
    builder.add_body("hand", "lower", da.Spherical(), placement=below, inertia=rod)
    return builder.build()


def wave(model, t):
    return 0.4 * sin(3.0 * t) + 0.1


def wave_rates(t):
    return 0.4 * np.sin(3.0 * t) + 0.1, 1.2 * np.cos(3.0 * t), -3.6 * np.sin(3.0 * t)


def spin(model, t):
    """A turn about a fixed axis by the angle t + t^2, as a quaternion."""
    half = 0.5 * (t + t * t)
    return [cos(half), 0.6 * sin(half), 0.0, 0.8 * sin(half)]


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_a_prescribed_torque_is_that_of_inverse_dynamics(integrator):
    """DYN-HYBRID: the torque of a frame moves the joints as they moved where its step began."""
    model = arm()
    q, v = model.random_state(3)
    moved = da.rollout(
        model, q, v, steps=60, dt=0.004, prescribed={"upper": wave, "hand": spin}, integrator=integrator
    )
    t = moved.time
    np.testing.assert_allclose(moved.q[:, 0], wave_rates(t)[0], rtol=0, atol=1e-14)
    np.testing.assert_allclose(moved.v[:, 0], wave_rates(t)[1], rtol=0, atol=1e-14)
    half = 0.5 * (t + t * t)
    np.testing.assert_allclose(moved.q[:, 2], np.cos(half), rtol=0, atol=1e-14)
    rate = np.outer(1.0 + 2.0 * t, [0.6, 0.0, 0.8])
    np.testing.assert_allclose(moved.v[:, 2:], rate, rtol=0, atol=1e-13)
    # The acceleration of the lower joint follows from forward dynamics under the torques that were found.
    at, rates = moved.q[:-1], moved.v[:-1]
    a = da.forward_dynamics(model, at, rates, moved.tau + da.passive_forces(model, at, rates))
    np.testing.assert_allclose(a[:, 0], wave_rates(t[:-1])[2], rtol=0, atol=1e-9)
    np.testing.assert_allclose(a[:, 2:], np.tile([1.2, 0.0, 1.6], (60, 1)), rtol=0, atol=1e-9)
    assert np.abs(moved.tau[:, 1]).max() == 0.0
    needed = da.inverse_dynamics(model, at, rates, a) - da.passive_forces(model, at, rates)
    np.testing.assert_allclose(moved.tau, needed, rtol=0, atol=1e-8)


def test_a_joint_beside_a_prescribed_one_moves_at_fourth_order():
    """The pendulum on a driven cart, x = sin(3 t) / 2: theta'' = -(g sin theta + x'' cos theta) / l."""
    model = da.models.cart_pole()
    cart = model.joints[0].name
    ends = []
    for steps in (50, 100, 200):
        given = {cart: lambda model, t: 0.5 * sin(3.0 * t)}
        moved = da.rollout(
            model, [0, 0.3], [1.5, 0.0], steps=steps, dt=1.0 / steps, prescribed=given, integrator="rk4"
        )
        ends.append(moved.q[-1, 1])
    first, second = abs(ends[0] - ends[1]), abs(ends[1] - ends[2])
    assert 12.0 < first / second < 20.0, (first, second)
    free = da.rollout(model, [0, 0.3], [1.5, 0.0], steps=100, dt=0.01, integrator="rk4")
    assert abs(free.q[-1, 1] - ends[-1]) > 0.1


@pytest.mark.parametrize("contact", [None, "rigid", "compliant"])
def test_a_driven_four_bar_follows_its_motor_and_closes_its_loop(contact):
    """A crank that is driven turns as given; the loop stays closed; the motor's work is the energy."""
    model = da.models.four_bar()
    crank = "crank_pivot"
    steps, dt = 400, 0.0025
    turn = lambda model, t: t * t * t  # from rest
    moved = da.rollout(
        model,
        np.zeros(3),
        np.zeros(3),
        steps=steps,
        dt=dt,
        contact=contact,
        prescribed={crank: turn},
        observe=("energy", "constraint_error"),
    )
    assert not moved.failed
    np.testing.assert_allclose(moved.q[:, 0], moved.time**3, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(moved.v[:, 0], 3.0 * moved.time**2, rtol=1e-12, atol=1e-15)
    assert np.abs(moved.observed["constraint_error"]).max() < 1e-4
    middle = 0.5 * (moved.v[1:, 0] + moved.v[:-1, 0])
    work = np.cumsum(moved.tau[:, 0] * middle * dt)
    energy = moved.observed["energy"]
    gained = energy[1:] - energy[0]
    assert np.ptp(gained) > 2.0
    assert np.abs(work - gained).max() < 0.02 * np.ptp(gained)


@pytest.mark.parametrize("law", ["rigid", "compliant"])
def test_without_contact_a_step_needs_the_torque_of_its_own_motion(law):
    """The torque of a step in which nothing touches is M (v_(k+1) - v_(k-1)) / 2h + b at its start."""
    model = arm()
    q, v = model.random_state(3)
    given = {"upper": wave, "lower": lambda model, t: 0.2 * t * t, "hand": spin}
    dt = 0.002
    moved = da.rollout(model, q, v, steps=100, dt=dt, contact=law, prescribed=given)
    a = (moved.v[2:] - moved.v[:-2]) / (2.0 * dt)
    u = 0.25 * (moved.v[2:] + 2.0 * moved.v[1:-1] + moved.v[:-2])
    end, at = 0.5 * (moved.v[2:] + moved.v[1:-1]), moved.q[1:-1]
    needed = da.inverse_dynamics(model, at, u, a)
    np.testing.assert_allclose(moved.tau[1:, 2:], needed[:, 2:], rtol=0, atol=1e-8)
    # Damping and springs are those at the end of the step.
    np.testing.assert_allclose(moved.tau[1:, 1], needed[:, 1] + 0.1 * end[:, 1], rtol=0, atol=1e-8)
    resisted = 0.3 * end[:, 0] + 2.0 * (at[:, 0] + dt * end[:, 0]) + 0.1 * np.sign(end[:, 0])
    steady = np.abs(end[:, 0]) > 0.05
    np.testing.assert_allclose(moved.tau[1:, 0][steady], (needed[:, 0] + resisted)[steady], rtol=0, atol=1e-8)


@pytest.mark.parametrize(("law", "atol"), [("rigid", 0.02), ("compliant", 0.02)])
def test_a_platform_that_moves_up_and_down_carries_m_times_g_plus_a(law, atol):
    """The normal force on what stands on a platform is m (g + a), and the motor carries both."""
    model, q, v = platform_and_cube()
    lift = lambda model, t: 0.02 * (1.0 - cos(10.0 * t))  # a up to 2 m/s^2
    dt = 0.001
    moved = da.rollout(model, q, v, steps=1500, dt=dt, contact=law, prescribed={"motor": lift})
    t = moved.time
    np.testing.assert_allclose(moved.q[:, 0], 0.02 * (1.0 - np.cos(10.0 * t)), rtol=0, atol=1e-15)
    late = t[:-1] > 0.5
    a = 2.0 * np.cos(10.0 * t[:-1])
    force = moved.contacts.force[..., 2].sum(axis=-1)
    np.testing.assert_allclose(force[late], (2.0 * (G + a))[late], rtol=0, atol=atol * 2.0 * G)
    np.testing.assert_allclose(moved.tau[:, 0], 5.0 * (G + a) + force, rtol=0, atol=1e-3)


@pytest.mark.parametrize("law", ["rigid", "compliant"])
def test_a_cube_slides_where_its_platform_shakes_harder_than_mu_g(law):
    """On a platform that shakes along x a cube sticks below mu g, and above it accelerates at mu g."""
    mu, omega = 0.5, 12.0
    model, q, v = platform_and_cube(axis=(1, 0, 0), mu=mu)
    found = {}
    for size in (0.8, 1.6):
        amplitude = size * mu * G / omega**2
        shake = lambda model, t, amplitude=amplitude: amplitude * (1.0 - cos(omega * t))
        stiff = da.contact.Compliant(stiffness=1e5) if law == "compliant" else law
        moved = da.rollout(model, q, v, steps=1000, dt=0.001, contact=stiff, prescribed={"motor": shake})
        a = np.gradient(moved.v[:, 4], moved.time)
        found[size] = np.ptp(moved.q[:, 1] - moved.q[:, 0]) / amplitude, np.abs(a[100:]).max()
    assert found[0.8][0] < 0.02
    assert found[1.6][0] > 0.3
    assert found[1.6][1] == pytest.approx(mu * G, rel=0.03)


@pytest.mark.parametrize("law", ["rigid", "compliant"])
@pytest.mark.parametrize("moving", ["belt", "array"])
def test_a_box_on_a_belt_accelerates_at_mu_g_until_it_moves_with_it(law, moving):
    """v = mu g t up to the speed of the belt at t = v / (mu g); the motor of the belt pulls with mu m g."""
    mu, speed, mass, dt, steps = 0.3, 0.6, 2.0, 0.001, 500
    model, q, v = platform_and_cube(axis=(1, 0, 0), mu=mu, mass=mass)
    path = speed * dt * np.arange(1, steps + 1)
    v[0] = speed
    given = {"belt": da.control.Belt(speed), "array": path}[moving]
    moved = da.rollout(model, q, v, steps=steps, dt=dt, contact=law, prescribed={"motor": given})
    t, until = moved.time, speed / (mu * G)
    settled = 0.03 if law == "compliant" else 0.0
    expected = np.minimum(mu * G * t, speed)
    np.testing.assert_allclose(moved.v[:, 4], expected, rtol=0, atol=0.01 * speed + settled * speed)
    np.testing.assert_allclose(moved.q[:, 0], 0.0 if moving == "belt" else speed * t, rtol=0, atol=1e-12)
    slides = (t[1:] < 0.9 * until) & (t[1:] > 0.2 * until)
    np.testing.assert_allclose(moved.tau[slides, 0], mu * mass * G, rtol=0.03)
    goes = t[1:] > 1.5 * until
    np.testing.assert_allclose(moved.tau[goes, 0], 0.0, atol=0.03 * mu * mass * G)


@pytest.mark.parametrize("law", ["rigid", "compliant"])
def test_a_piston_pushes_a_box_with_friction_and_inertia(law):
    """A piston that pushes a box needs (m_piston + m) a + mu m g."""
    mu, dt = 0.4, 0.001
    ram = da.shapes.Sphere(0.05, friction=(0.0, 0.0, 0.0))
    cube = da.shapes.Box((0.2, 0.2, 0.2), friction=(0.0, 0.0, 0.0))
    builder = da.ModelBuilder(gravity=(0.0, 0.0, -G))
    at = da.Transform.from_rotation_translation(np.eye(3), (-0.15, 0.0, 0.1))
    builder.add_body(
        "ram",
        joint=da.Prismatic((1, 0, 0)),
        joint_name="piston",
        placement=at,
        inertia=ram.inertia(mass=1.5),
        shapes=[ram],
    )
    builder.add_body("box", joint=da.Free(), inertia=cube.inertia(mass=3.0), shapes=[cube])
    model = builder.build().with_ground(friction=mu)
    q = model.neutral()
    q[3] = 0.1
    push = lambda model, t: 0.5 * t * t  # a = 1 m/s^2
    moved = da.rollout(
        model, q, np.zeros(model.nv), steps=800, dt=dt, contact=law, prescribed={"piston": push}
    )
    late = moved.time[1:] > 0.4
    np.testing.assert_allclose(moved.tau[late, 0], 4.5 + mu * 3.0 * G, rtol=0.01)
    np.testing.assert_allclose(moved.v[1:][late, 4], moved.time[1:][late], rtol=0, atol=0.005)


@pytest.mark.parametrize("law", [None, "rigid"])
def test_motions_that_differ_from_sample_to_sample_equal_single_samples(law):
    """A batch with an array for each sample gives the bits of each sample alone."""
    model, q, v = platform_and_cube(axis=(1, 0, 0))
    steps, dt = 60, 0.004
    t = dt * np.arange(1, steps + 1)
    paths = np.array([0.1 * t**2, 0.05 * np.sin(8.0 * t), 0.0 * t])[..., None]
    starts = np.tile(v, (3, 1))
    starts[1, 0] = 0.4
    together = da.rollout(model, q, starts, steps=steps, dt=dt, contact=law, prescribed={"motor": paths})
    np.testing.assert_array_equal(together.q[:, 1:, 0], paths[..., 0])
    for k in range(3):
        alone = da.rollout(
            model, q, starts[k], steps=steps, dt=dt, contact=law, prescribed={"motor": paths[k]}
        )
        for name in ("q", "v", "tau"):
            np.testing.assert_array_equal(getattr(together, name)[k], getattr(alone, name))


@pytest.mark.parametrize("law", [None, "rigid", "compliant"])
def test_a_prescribed_root_carries_a_figure_along(law):
    """A hand that is moved, position and quaternion, needs the force and moment of that motion."""
    model = da.ModelBuilder(gravity=(0.0, 0.0, -G))
    model.add_body(
        "hand", joint=da.Free(), joint_name="root", inertia=da.RigidInertia(2.0, (0.1, 0, 0.2), np.eye(3))
    )
    model = model.build()
    move = lambda model, t: [0.2 * sin(2.0 * t), 0.1 * t * t, 0.3, cos(t), 0.0, 0.0, sin(t)]
    dt = 0.001
    moved = da.rollout(
        model, model.neutral(), np.zeros(6), steps=400, dt=dt, contact=law, prescribed={"root": move}
    )
    t = moved.time
    np.testing.assert_allclose(moved.q[:, 6], np.sin(t), rtol=0, atol=1e-15)
    a = np.gradient(moved.v, t, axis=0)
    needed = da.inverse_dynamics(model, moved.q, moved.v, a)
    scale = np.abs(needed).max()
    np.testing.assert_allclose(moved.tau[10:-10], needed[10:-11], rtol=0, atol=2e-3 * scale)


def test_servos_policies_and_observers_act_beside_prescribed_joints():
    """What controls say at a prescribed joint gives way; other joints have it."""
    model = arm()
    q, v = model.random_state(1)
    given = {"upper": wave}
    policy = lambda model, t, q, v: [100.0, -v[1], 0.0, 0.0, 0.0]
    for controls in (policy, da.control.Servo(kp=10.0, kd=1.0)):
        for law in (None, "rigid"):
            moved = da.rollout(
                model, q, v, controls, steps=50, dt=0.002, contact=law, prescribed=given, observe=("energy",)
            )
            np.testing.assert_allclose(moved.q[:, 0], wave_rates(moved.time)[0], rtol=0, atol=1e-14)
            assert np.abs(moved.tau[:, 0] - 100.0).min() > 50.0
            assert np.abs(moved.tau[:, 1]).min() > 0.0
            assert np.isfinite(moved.observed["energy"]).all()


def test_a_reset_starts_a_prescribed_motion_again():
    """A sample that begins anew is at the first time again, and so is its motion."""
    model, q, v = platform_and_cube()
    lift = lambda model, t: 0.02 * (1.0 - cos(10.0 * t))
    reset = np.zeros(80)
    reset[40] = 1.0
    options = {"steps": 80, "dt": 0.002, "contact": "rigid", "prescribed": {"motor": lift}}
    again, once = (da.rollout(model, q, v, reset=x, **options) for x in (reset, None))
    np.testing.assert_array_equal(again.q[41:], once.q[1:41])
    np.testing.assert_array_equal(again.tau[40:], once.tau[:40])


def test_bad_prescriptions_are_refused_in_words():
    model, q, v = platform_and_cube()
    options = {"steps": 4, "dt": 0.001}
    with pytest.raises(UnknownNameError, match="motr"):
        da.rollout(model, q, v, prescribed={"motr": 0.0}, **options)
    with pytest.raises(DtypeError, match="dict of motions"):
        da.rollout(model, q, v, prescribed=[0.0], **options)
    with pytest.raises(DtypeError, match="is None"):
        da.rollout(model, q, v, prescribed={"motor": None}, **options)
    with pytest.raises(ShapeError, match=r"returned .*; expected one number"):
        da.rollout(model, q, v, prescribed={"motor": lambda model, t: [t, t]}, **options)
    with pytest.raises(ShapeError, match=r"shape \(5, 1\)"):
        da.rollout(model, q, v, prescribed={"motor": np.zeros((5, 1))}, **options)
    with pytest.raises(ArgumentError, match="variational"):
        da.rollout(model, q, v, prescribed={"motor": 0.0}, integrator="variational", **options)
    builder = da.ModelBuilder()
    rod = da.RigidInertia(1.0, (0.5, 0.0, 0.0), np.eye(3))
    for name in ("a", "b"):
        builder.add_body(name, joint=da.Revolute((0, 1, 0)), inertia=rod)
    builder.add_coupling("gear", {"a": 2.0, "b": -1.0})
    geared = builder.build()
    follower = next(body.joint_name for body in geared.bodies if body.dependence is not None)
    with pytest.raises(ModelError, match=r"prescribe [ab] instead"):
        da.rollout(geared, [0.0], [0.0], prescribed={follower: 0.0}, **options)
    with pytest.warns(da.simulation.SimulationWarning, match="controls are not finite"):
        found = da.rollout(model, q, v, prescribed={"motor": np.full((4, 1), np.nan)}, **options)
    assert found.failed
