"""Rigid contact in rollouts against closed forms, and what must hold whatever happens."""

import ast
import warnings
from dataclasses import replace

import numpy as np
import pytest

import dalembert as da
from dalembert.algorithms.kinematics import forward_kinematics
from dalembert.contact import Rigid, pairs_of
from dalembert.contact.pairs import contact_points
from dalembert.errors import FileError
from dalembert.simulation import SimulationWarning
from dalembert.simulation.step_function import take_step
from dalembert.simulation.step_plan import StepPlan

G = 9.81
R = 0.1
UPRIGHT = [1.0, 0.0, 0.0, 0.0]


def free_body(shape, mass, inertia, *, slope=0.0, friction=0.5, restitution=0.0):
    """A body over a horizontal ground; a slope is a gravity that leans towards x."""
    builder = da.ModelBuilder(gravity=(G * np.sin(slope), 0.0, -G * np.cos(slope)))
    builder.add_body("body", "world", da.Free(), inertia=da.RigidInertia(mass, (0.0, 0.0, 0.0), inertia))
    builder.add_shape("body", replace(shape, friction=(0.0, 0.0, 0.0)))
    return builder.build().with_ground(friction=friction, restitution=restitution)


def ball(mass=1.0, **options):
    return free_body(da.shapes.Sphere(R), mass, (0.4 * mass * R * R,) * 3, **options)


def box(mass=2.0, **options):
    side = 2.0 * R
    return free_body(da.shapes.Box((side, side, side)), mass, (mass * side**2 / 6.0,) * 3, **options)


def world_velocity(trajectory):
    """Angular and linear velocity `(…, T+1, 3)` of the first body along world axes."""
    turned = trajectory.poses().rotation[..., 0, :, :]
    w, v = trajectory.v[..., :3], trajectory.v[..., 3:6]
    return np.einsum("...ij,...j->...i", turned, w), np.einsum("...ij,...j->...i", turned, v)


@pytest.mark.parametrize("mu", [0.3, 0.8])
def test_a_box_on_an_incline_sticks_or_slides(mu):
    """It sticks where tan theta < mu, and slides with g (sin theta - mu cos theta) elsewhere."""
    for share in (0.5, 0.99, 1.01, 1.1, 1.5):
        slope = np.arctan(mu * share)
        model = box(slope=slope, friction=mu)
        q = np.array([0.0, 0.0, R, *UPRIGHT])
        found = da.rollout(model, q, np.zeros(6), steps=500, dt=0.002, contact="rigid")
        travelled = found.q[-1, 0]
        if share < 1.0:
            assert abs(travelled) < 1e-3
        else:
            pull = G * (np.sin(slope) - mu * np.cos(slope))
            assert found.v[-1, 3] - found.v[250, 3] == pytest.approx(pull * 0.5, rel=0.01)
            # While the box sinks in, by a micrometre, friction lags behind: a matter of millimetres a second.
            assert travelled == pytest.approx(0.5 * pull * 1.0**2, rel=0.01, abs=2e-3)
        assert np.abs(found.q[:, 2] - R).max() < 1e-4
        # Forces of single steps scatter by the solver's tolerance; on average the ground carries the weight.
        weight = 2.0 * G * np.cos(slope)
        assert found.contacts.force[-100:, :, 2].sum(axis=1).mean() == pytest.approx(weight, rel=1e-4)


def test_small_bodies_stick_as_large_ones_do():
    """Whatever its size, a brick on a slope of half its angle of friction stays where it is."""
    mu, slope, dt = 0.5, np.arctan(0.25), 0.005
    for side in (0.01, 0.1, 5.0):
        inertia = 0.1 * side**2 * np.array([0.0885, 0.0885, 0.1667])
        model = free_body(da.shapes.Box((side, side, side / 4)), 0.1, inertia, slope=slope, friction=mu)
        start = [0.0, 0.0, side / 8, *UPRIGHT]
        found = da.rollout(model, start, np.zeros(6), steps=400, dt=dt, contact="rigid")
        assert abs(found.q[-1, 0]) < 1e-3
        assert np.abs(found.v[-1, 3:]).max() < 1e-4


def test_a_sliding_ball_comes_to_roll_with_five_sevenths_of_its_speed():
    model = ball(friction=0.3)
    start = np.array([0.0, 0.0, R, *UPRIGHT])
    found = da.rollout(model, start, [0.0, 0.0, 0.0, 1.0, 0.0, 0.0], steps=600, dt=0.001, contact="rigid")
    w, v = world_velocity(found)
    assert v[-1, 0] == pytest.approx(5.0 / 7.0, rel=2e-3)
    assert w[-1, 1] * R == pytest.approx(v[-1, 0], rel=1e-3)
    slipping = found.time < 0.08
    np.testing.assert_allclose(v[slipping, 0], 1.0 - 0.3 * G * found.time[slipping], atol=2e-3)
    spun = da.rollout(model, start, [0.0, 10.0, 0.0, 0.0, 0.0, 0.0], steps=600, dt=0.001, contact="rigid")
    w, v = world_velocity(spun)
    assert v[-1, 0] == pytest.approx(10.0 * R * 2.0 / 7.0, rel=2e-3)


def test_a_ball_that_rolls_keeps_its_speed_in_large_steps():
    """10 ms, 0.02 rad a step: what position correction lifts is no energy that contact did not take."""
    model = ball(friction=0.1)
    v = np.zeros(6)
    v[1] = 1.0 / R  # it spins first: 2/7 of the speed of its skin is left
    motion = da.rollout(model, [0, 0, R, 1, 0, 0, 0], v, steps=400, dt=0.01, contact="rigid")
    speed = world_velocity(motion)[1][:, 0]
    np.testing.assert_allclose(speed[[60, 200, 400]], 2.0 / 7.0, rtol=1e-3)


@pytest.mark.parametrize("e", [0.0, 0.3, 0.7, 1.0])
def test_a_ball_rebounds_with_its_ratio(e):
    found = da.rollout(
        ball(restitution=e), [0.0, 0.0, 1.0, *UPRIGHT], np.zeros(6), steps=1500, dt=0.001, contact="rigid"
    )
    speed = found.v[:, 5]
    hits = np.flatnonzero((speed[:-1] < -0.5) & (speed[1:] > 0.0))
    if e == 0.0:
        assert not hits.size
        assert found.q[-1, 2] == pytest.approx(R, abs=1e-4)
    else:
        assert hits.size >= 1
        np.testing.assert_allclose(-speed[hits + 1] / speed[hits], e, rtol=1e-6)
        top = found.q[hits[0] + 1 :, 2].max() - R
        # It turns in the step that would pass the ground, by at most the way of a step too early.
        assert e * e * 0.9 - 1e-3 < top < e * e * 0.9 + 0.001 * np.sqrt(2.0 * G * 0.9)


def test_without_restitution_and_weight_nothing_comes_back():
    """What a soft point bears after an impact dies down; none of it may be taken for a lasting load."""
    builder = da.ModelBuilder(gravity=(0.0, 0.0, 0.0))
    builder.add_body("ball", "world", da.Free(), inertia=da.RigidInertia(1.0, (0.0,) * 3, (0.004,) * 3))
    builder.add_shape("ball", da.shapes.Sphere(R))
    still = builder.build().with_ground()
    start, v = [0.0, 0.0, R + 0.01, *UPRIGHT], [0.0, 0.0, 0.0, 0.3, 0.0, -1.0]
    for dt in (5e-4, 5e-3):
        found = da.rollout(still, start, v, steps=round(0.1 / dt), dt=dt, contact="rigid")
        assert abs(world_velocity(found)[1][-1, 2]) < 2e-4


def test_slow_impacts_rebound_too_and_the_slowest_do_not():
    """With e = 0.1, from the threshold of 0.15 m/s on that is given here."""
    model = ball(restitution=0.1)
    start, v = [0.0, 0.0, R + 1e-5, *UPRIGHT], np.zeros((2, 6))
    v[:, 5] = -0.2, -0.1
    found = da.rollout(model, start, v, steps=2, dt=0.001, contact=Rigid(rebound_speed=0.15))
    assert found.v[0, 1, 5] == pytest.approx(0.1 * 0.2, rel=1e-6)
    assert -0.05 < found.v[1, 1, 5] <= 1e-12


def random_drops(count, seed):
    rng = np.random.default_rng(seed)
    q = np.zeros((count, 7))
    q[:, 2] = rng.uniform(0.2, 0.6, count)
    q[:, 3:] = rng.normal(size=(count, 4))
    q[:, 3:] /= np.linalg.norm(q[:, 3:], axis=1, keepdims=True)
    return q, rng.normal(size=(count, 6)) * [6.0, 6.0, 6.0, 1.5, 1.5, 1.5], rng


def drop_step(model, **options):
    """A step of a body whose friction and restitution are arguments, compiled, and what it carries."""
    pairs = pairs_of(model)
    plan = StepPlan(model=model, contact=Rigid(**options), pairs=pairs, work=True, record=True)

    def step(model, q, v, e, mu, dt, lasted, fault, energy, memory, overlap, account):
        own = tuple(replace(pair, friction=mu, restitution=e) for pair in pairs)
        carried = {"lasted": lasted, "fault": fault, "energy": energy, "memory": memory}
        carried |= {"overlap": overlap, "account": account}
        given = {"q": q, "v": v, "work": 0.0, "tau": [0.0] * 6, "start": 0.0, "dt": dt} | carried
        chosen = replace(plan, pairs=own)
        return take_step(chosen, model, *(given[item.name] for item in plan.arguments))

    fresh = {name: np.array(value) for name, value in plan.fresh.items() if name not in ("q", "v", "work")}
    inputs = {"e": (), "mu": ()} | {name: value.shape for name, value in fresh.items()}
    return da.compile(step, model, inputs=inputs), plan.results, fresh


@pytest.mark.parametrize("iterations", [1, 50])
def test_contact_does_no_work_in_a_thousand_drops(iterations):
    """e and mu from 0 to 1; with one iteration too, which is far from a solution."""
    model = box(mass=1.0)
    step, names, carried = drop_step(model, iterations=iterations)
    q, v, rng = random_drops(1000, 5)
    e, mu = rng.uniform(size=(2, 1000))
    worst, deepest = -np.inf, 0.0
    energy = da.dynamics.kinetic_energy(model, q, v) + da.dynamics.potential_energy(model, q)
    for _ in range(300):
        found = dict(zip(names, step(q, v, e, mu, 0.002, **carried), strict=True))
        q, v, carried = found["q"], found["v"], {name: found[name] for name in carried}
        worst = max(worst, float(np.max(found["work"])))
        deepest = min(deepest, float(np.min(found["contact"][..., 7])))
    assert worst <= 1e-12
    after = da.dynamics.kinetic_energy(model, q, v) + da.dynamics.potential_energy(model, q)
    assert np.all(after < energy + 1e-9)
    assert np.all(found["fault"] == 0.0)
    if iterations > 1:
        assert deepest > -5e-3


def test_bits_of_a_sample_do_not_depend_on_its_neighbours():
    model = box(restitution=0.4)
    q, v, _ = random_drops(19, 7)
    whole = da.rollout(model, q, v, steps=150, dt=0.002, contact="rigid")
    for part in (slice(3, 4), slice(5, 12)):
        some = da.rollout(model, q[part], v[part], steps=150, dt=0.002, contact="rigid")
        np.testing.assert_array_equal(some.q, whole.q[part])
        np.testing.assert_array_equal(some.contacts.force, whole.contacts.force[part])
    alone = da.rollout(model, q[8], v[8], steps=150, dt=0.002, contact="rigid")
    np.testing.assert_array_equal(alone.q, whole.q[8])


def test_an_overlap_at_the_start_is_reported_and_mended_without_a_push():
    model = box()
    q = np.array([[0.0, 0.0, R + 0.05, *UPRIGHT], [0.0, 0.0, R - 0.06, *UPRIGHT]])
    with pytest.warns(
        SimulationWarning, match=r'of 1 samples overlap .*"ground" and .*by 60\.0 mm in sample \(1,\)'
    ):
        found = da.rollout(model, q, np.zeros(6), steps=500, dt=0.002, contact="rigid")
    assert found.q[1, :, 2].max() < R + 1e-3
    assert np.abs(found.v[1]).max() < 0.1
    assert found.q[1, -1, 2] == pytest.approx(R, abs=1e-3)


def test_parts_of_one_figure_that_overlap_may_be_excluded_as_the_warning_says():
    """Three boxes in a row on hinges, the outer ones of which overlap by 20 mm whatever the angles."""
    builder, shape = da.ModelBuilder(gravity=(0.0, 0.0, 0.0)), da.shapes.Box((0.1, 0.1, 0.1))
    at = lambda x: da.Transform.from_rotation_translation(np.eye(3), (x, 0.0, 0.0))
    inertia, parent = shape.inertia(mass=1.0), "world"
    for name, x in (("left", 0.0), ("middle", 0.0), ("right", 0.08)):
        joint = da.Free() if parent == "world" else da.Revolute((1, 0, 0))
        builder.add_body(name, parent, joint, placement=at(x), inertia=inertia, shapes=[shape])
        parent = name
    model = builder.build().with_ground()
    q = model.neutral()
    q[2] = 1.0
    with pytest.warns(SimulationWarning, match=r"exclude=\[\('left', 'right'\)\] lets") as caught:
        da.rollout(model, q, np.zeros(model.nv), steps=5, dt=0.002, contact="rigid")
    [said] = [str(item.message) for item in caught if "overlap" in str(item.message)]
    names = ast.literal_eval(said.split("exclude=")[1].split(" lets")[0])
    with warnings.catch_warnings():
        warnings.simplefilter("error", SimulationWarning)
        found = da.rollout(model, q, np.zeros(model.nv), steps=50, dt=0.002, contact=Rigid(exclude=names))
    assert np.abs(found.v).max() == 0.0


def test_joints_stop_at_their_limits_and_dry_friction_holds():
    builder = da.ModelBuilder()
    limits = da.Limits(lower=-0.5, upper=0.5)
    bar = da.RigidInertia(1.0, (0.5, 0.0, 0.0), (0.01, 0.1, 0.1))
    builder.add_body("bar", "world", da.Revolute((0, 1, 0)), inertia=bar, limits=limits)
    model = builder.build()
    found = da.rollout(model, [0.0], [0.0], steps=1000, dt=0.002, contact="rigid")
    assert np.abs(found.q).max() < 0.5 + 1e-3
    assert abs(found.q[-1, 0]) == pytest.approx(0.5, abs=1e-3)
    assert abs(found.v[-1, 0]) < 1e-3
    loose = da.rollout(model, [0.0], [0.0], steps=1000, dt=0.002, contact=Rigid(limits=False))
    assert np.abs(loose.q).max() > 1.0
    for friction, holds in ((6.0, True), (4.0, False)):  # m g l / 2 = 4.9 N m
        builder = da.ModelBuilder()
        builder.add_body("bar", "world", da.Revolute((0, 1, 0)), inertia=bar, friction=friction)
        found = da.rollout(builder.build(), [0.0], [0.0], steps=500, dt=0.002, contact="rigid")
        assert (abs(found.q[-1, 0]) < 1e-2) == holds


@pytest.mark.parametrize("law", ["rigid", "compliant"])
def test_springs_and_damping_of_joints_are_implicit(law):
    """By hand, (m + h d + h^2 k) v' = m v + h (f - k (x - x0)), with a spring far too stiff for the step."""
    m, k, d, rest, h = 2.0, 1e6, 30.0, 0.02, 0.1
    builder = da.ModelBuilder(gravity=(0.0, 0.0, 0.0))
    block = da.RigidInertia(m, (0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
    builder.add_body(
        "block", "world", da.Prismatic((1, 0, 0)), inertia=block, stiffness=k, damping=d, rest=rest
    )
    found = da.rollout(builder.build(), [0.1], [0.3], [5.0], steps=20, dt=h, contact=law)
    x, v = 0.1, 0.3
    for step in range(20):
        v = (m * v + h * (5.0 - k * (x - rest))) / (m + h * d + h * h * k)
        x = x + h * v
        assert found.v[step + 1, 0] == pytest.approx(v, rel=1e-9, abs=1e-12)
        assert found.q[step + 1, 0] == pytest.approx(x, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("law", ["rigid", "compliant"])
def test_a_gear_joins_rods_on_the_world_up_to_the_limit_of_the_follower(law):
    """Two figures, one of which follows the other: turns are 2 to 1, and the limit at 0.3 rad stops both."""
    rod = da.RigidInertia(1.0, (0.5, 0.0, 0.0), np.diag([1e-3, 1 / 12, 1 / 12]))
    end = {}
    for upper in (0.3, 3.0):
        builder = da.ModelBuilder(gravity=(0.0, 0.0, -G))
        for name, high in (("a", 9.0), ("c", upper)):
            limits = da.Limits(lower=-9.0, upper=high)
            builder.add_body(name, joint=da.Revolute((0, 1, 0)), inertia=rod, limits=limits)
        builder.add_coupling("gear", {"a": 1.0, "c": -2.0})
        model = builder.build()
        end[upper] = da.rollout(model, [0.0], [0.0], steps=500, dt=1e-3, contact=law)
    assert end[0.3].q[-1, 0] == pytest.approx(0.6, abs=1e-4)
    free = da.rollout(model, [0.0], [0.0], steps=500, dt=1e-3, integrator="rk4")
    np.testing.assert_allclose(end[3.0].q, free.q, rtol=0, atol=5e-3)


def test_loops_stay_closed_in_the_same_solver():
    """Errors against a finer Runge-Kutta solution halve with the step, gaps of loops fall to a quarter."""
    model = da.models.four_bar()
    q, v = da.constraints.close_loops(model, model.neutral(), np.array([1.0, 0.0, 0.0]))
    fine = da.rollout(model, q, v, steps=1000, dt=0.001, integrator="rk4").q[-1]
    errors, gaps = [], []
    for steps in (500, 1000):
        found = da.rollout(
            model, q, v, steps=steps, dt=1.0 / steps, contact="rigid", observe="constraint_error"
        )
        errors.append(np.abs(found.q[-1] - fine).max())
        gaps.append(np.abs(found.observed["constraint_error"]).max())
    assert errors[0] < 0.1
    assert errors[0] / errors[1] == pytest.approx(2.0, rel=0.1)
    assert gaps[0] < 1e-3
    assert gaps[0] / gaps[1] == pytest.approx(4.0, rel=0.1)


@pytest.mark.parametrize("law", ["rigid", "compliant"])
def test_a_body_that_touches_nothing_flies_along_its_parabola(law):
    """Under its weight and a push at its centre; velocities are those of the integrator without contact."""
    model, dt = ball(), 1.0 / 128.0
    q, v, _ = random_drops(1, 3)
    q[:, 2] = 50.0
    push = np.array([[0.0, 0.0, 0.0, 3.0, -2.0, 5.0]])
    acting = {"external_forces": push, "external_frame": "center"}
    found = da.rollout(model, q, v, steps=200, dt=dt, contact=law, **acting)
    plain = da.rollout(model, q, v, steps=200, dt=dt, **acting)
    t, begun = found.time[:, np.newaxis], found.poses().rotation[0, 0, 0] @ v[0, 3:]
    a = push[0, 3:] / model.total_mass + np.array([0.0, 0.0, -G])
    np.testing.assert_allclose(found.q[0, :, :3], q[0, :3] + begun * t + 0.5 * a * t * t, rtol=0, atol=1e-11)
    np.testing.assert_allclose(found.q[..., 3:], plain.q[..., 3:], rtol=0, atol=1e-11)
    np.testing.assert_allclose(found.v, plain.v, rtol=0, atol=1e-11)
    assert not found.contacts.force.any()


def test_an_elastic_ball_bounces_to_the_same_height_again_and_again():
    """In flight a step keeps T + V, and so does a rebound with e = 1, with steps of any length."""
    model = ball().with_ground(restitution=1.0)
    for dt in (0.002, 1.0 / 128.0):
        found = da.rollout(model, [0.0, 0.0, 1.0, *UPRIGHT], np.zeros(6), steps=2000, dt=dt, contact="rigid")
        np.testing.assert_allclose(found.energy(), found.energy()[0], rtol=1e-12)
        assert np.count_nonzero(np.diff(np.sign(found.v[:, 5])) > 0) > 3
        assert found.q[-1000:, 2].max() > 0.999
        assert found.energy_gain == 0.0


def test_a_figure_on_slides_flies_along_its_parabola():
    """Two slides and a hinge, as in files of planar figures; the mean of the ends of a step is of order 2."""
    builder, empty = da.ModelBuilder(), da.RigidInertia(0.0, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
    builder.add_body("x", "world", da.Prismatic((1, 0, 0)), inertia=empty)
    builder.add_body("z", "x", da.Prismatic((0, 0, 1)), inertia=empty)
    solid = da.RigidInertia(2.0, (0.1, 0.0, -0.2), (0.2, 0.3, 0.4))
    builder.add_body("trunk", "z", da.Revolute((0, 1, 0)), inertia=solid)
    model = builder.build().with_ground()
    q, v = np.array([0.0, 50.0, 0.0]), np.array([1.0, 2.0, 0.0])
    found = da.rollout(model, q, v, steps=50, dt=0.01, contact="rigid")
    np.testing.assert_allclose(found.q[-1], [0.5, 51.0 - 0.125 * G, 0.0], rtol=0, atol=1e-12)


@pytest.mark.parametrize("law", ["rigid", "compliant"])
def test_a_box_on_a_tray_that_is_accelerated_stays_in_its_place(law):
    """It touches, and so moves as its velocity says; at mean velocities it would come to be 5 mm off."""
    builder = da.ModelBuilder()
    tray, cube = da.shapes.Box((1.0, 1.0, 0.1)), da.shapes.Box((0.2, 0.2, 0.2))
    builder.add_body("tray", "world", da.Prismatic((1, 0, 0)), inertia=tray.inertia(mass=1.0), shapes=[tray])
    builder.add_body("cube", "world", da.Free(), inertia=cube.inertia(mass=1.0), shapes=[cube])
    sag = 0.25e-3 if law == "compliant" else 0.0
    found = da.rollout(
        builder.build(),
        [0.0, 0.0, 0.0, 0.15 - sag, *UPRIGHT],
        np.zeros(7),
        steps=200,
        dt=0.005,
        contact=law,
        prescribed={"tray": lambda model, t: [1.0 * t * t]},
    )
    assert found.v[-1, 4] == pytest.approx(2.0, abs=0.02)
    slip = found.q[:, 1] - found.q[:, 0]
    assert np.abs(slip[20:] - slip[20]).max() < 2e-4


def test_records_and_sums_of_forces_agree():
    model = box()
    q = np.array([0.0, 0.0, R, *UPRIGHT])
    found = da.rollout(
        model,
        q,
        np.zeros(6),
        steps=200,
        dt=0.002,
        contact="rigid",
        observe=("contact_forces", "contact_work"),
    )
    assert found.contacts.names[0][0] == "ground"
    assert found.contacts.force.shape == (200, len(found.contacts), 3)
    np.testing.assert_allclose(
        found.observed["contact_forces"][1:, 0], found.contacts.force.sum(axis=1), atol=1e-12
    )
    assert found.observed["contact_forces"][-1, 0, 2] == pytest.approx(2.0 * G, rel=1e-6)
    assert np.all(np.diff(found.observed["contact_work"]) <= 1e-12)
    bare = da.rollout(model, q, np.zeros(6), steps=20, dt=0.002, contact="rigid", record_contacts=False)
    assert bare.contacts is None
    np.testing.assert_array_equal(bare.q, found.q[:21])
    thin = da.rollout(model, q, np.zeros(6), steps=200, dt=0.002, contact="rigid", every=50)
    np.testing.assert_array_equal(thin.contacts.force, found.contacts.force[49::50])


def test_external_forces_push_what_touches():
    model = box(friction=0.5)
    q = np.array([0.0, 0.0, R, *UPRIGHT])
    for push, moves in ((8.0, False), (12.0, True)):  # mu m g = 9.81 N
        force = np.array([[0.0, 0.0, 0.0, push, 0.0, 0.0]])
        found = da.rollout(model, q, np.zeros(6), steps=300, dt=0.002, contact="rigid", external_forces=force)
        assert (found.q[-1, 0] > 0.01) == moves


@pytest.mark.parametrize("frame", ["body", "world", "center"])
def test_external_forces_act_in_their_frame_whether_there_is_contact_or_not(frame):
    """On a turned body whose centre is off its origin, above the ground; with equal moments, as gyroscopic
    forces are of another order where there is contact."""
    builder = da.ModelBuilder()
    stone = da.RigidInertia(2.0, (0.3, -0.1, 0.2), (0.4, 0.4, 0.4))
    builder.add_body("stone", "world", da.Free(), inertia=stone)
    builder.add_shape("stone", da.shapes.Sphere(R))
    model = builder.build().with_ground()
    q, v = model.random_state(4)
    q[2] = 5.0
    push = np.array([[0.3, -0.2, 0.4, 3.0, 5.0, -2.0]])
    runs = [
        da.rollout(model, q, v, steps=1, dt=0.002, contact=law, external_forces=push, external_frame=frame).v
        for law in (None, "rigid", "compliant")
    ]
    np.testing.assert_allclose(runs[1], runs[0], rtol=0, atol=1e-9)
    np.testing.assert_allclose(runs[2], runs[0], rtol=0, atol=1e-9)
    still = da.rollout(model, q, v, steps=1, dt=0.002)
    assert np.abs(still.v[-1] - runs[0][-1]).max() > 1e-3


def test_a_missing_mesh_is_named(tmp_path):
    builder = da.ModelBuilder()
    builder.add_body("stone", "world", da.Free(), inertia=da.RigidInertia(1.0, (0, 0, 0), (0.1, 0.1, 0.1)))
    builder.add_shape("stone", da.shapes.Mesh(str(tmp_path / "stone.stl")))
    model = builder.build().with_ground()
    with pytest.raises(FileError, match=r"stone\.stl"):
        da.rollout(model, [0.0, 0.0, 1.0, *UPRIGHT], np.zeros(6), steps=5, contact="rigid")


def test_a_stack_of_ten_boxes_rests_for_a_minute():
    """It moves by less than a millimetre, and in the end not at all."""
    builder = da.ModelBuilder()
    side, count = 0.2, 10
    inertia = da.RigidInertia(1.0, (0.0, 0.0, 0.0), (side**2 / 6.0,) * 3)
    for k in range(count):
        builder.add_body(f"box {k}", "world", da.Free(), inertia=inertia)
        builder.add_shape(f"box {k}", da.shapes.Box((side, side, side)))
    model = builder.build().with_ground(friction=0.6)
    pairs = [("ground", "box 0"), *((f"box {k}", f"box {k + 1}") for k in range(count - 1))]
    q = np.concatenate([[0.0, 0.0, (k + 0.5) * side, *UPRIGHT] for k in range(count)])
    found = da.rollout(
        model, q, np.zeros(model.nv), steps=12000, dt=0.005, every=1200, contact=Rigid(pairs=pairs)
    )
    places = found.q.reshape(11, count, 7)
    assert np.abs(places[:, :, :3] - places[0, :, :3]).max() < 1e-3
    assert np.abs(places[-1] - places[1]).max() < 1e-6
    weights = found.contacts.force[-1, : found.contacts.names.index(pairs[1]), 2].sum()
    assert weights == pytest.approx(count * G, rel=1e-4)


def test_the_humanoid_hardly_sinks_in():
    """75 kg at 2 ms: standing under PD control, falling without forces, and thrown at random."""
    model = da.models.humanoid().with_ground(friction=0.8)
    law, rng = Rigid(self_collision=False), np.random.default_rng(3)
    q, v = np.tile(model.neutral(), (64, 1)), np.zeros((64, model.nv))
    q[:2, 2] -= min(
        item.point.gap for item in contact_points(forward_kinematics(model, list(q[0])), law.pairs_in(model))
    )
    turned = rng.normal(size=(62, 4))
    q[2:, 2], q[2:, 3:7] = 1.3, turned / np.linalg.norm(turned, axis=1, keepdims=True)
    v[2:] = rng.normal(size=(62, model.nv))
    gains = np.eye(64)[:, :1] * np.r_[np.zeros(6), np.ones(model.nv - 6)]
    for part in np.split(np.arange(64), 4):  # the contacts of all would take 400 MB
        servo = da.control.Servo(kp=2000.0 * gains[part], kd=100.0 * gains[part])
        found = da.rollout(model, q[part], v[part], servo, 600, 0.002, contact=law, observe="momentum")
        assert found.contacts.gap.min() > -5e-4
        assert not found.failed.any()
        assert np.all(found.q[part > 0, -1, 2] < 0.6 * q[0, 2])
        pushed = found.contacts.force[..., 2].sum(axis=(1, 2)) * 0.002
        gained = np.diff(found.observed["momentum"][:, [0, -1], 5], axis=1)[:, 0]
        np.testing.assert_allclose(pushed, 75.0 * G * 1.2 + gained, rtol=0.02)


@pytest.mark.parametrize("law", ["rigid", "compliant"])
@pytest.mark.parametrize("gain", [600.0, 6000.0, 60000.0])
def test_servos_grip_with_the_force_that_they_are_set_to(law, gain):
    capsule, pad = da.shapes.Capsule(0.01, 0.06), da.shapes.Box((0.01, 0.04, 0.04), friction=(0.7, 0.0, 0.0))
    builder = da.ModelBuilder()
    builder.add_body("capsule", joint=da.Free(), inertia=capsule.inertia(mass=0.045), shapes=[capsule])
    for name, side in (("left", -1.0), ("right", 1.0)):
        place = da.Transform.from_rotation_translation(np.eye(3), (side * 0.015, 0.0, 0.0))
        joint = da.Prismatic((-side, 0.0, 0.0))
        builder.add_body(name, joint=joint, placement=place, inertia=pad.inertia(mass=0.2), shapes=[pad])
        builder.add_actuator(name, {name: 1.0}, gain=gain, bias=(0.0, -gain, -20.0))
    model, squeeze = builder.build(), 12.0
    controls = da.control.Actuators([squeeze / gain] * 2)
    found = da.rollout(
        model, model.neutral(), np.zeros(model.nv), controls, steps=1500, dt=0.002, contact=law, every=500
    )
    left = ["left" in names for names in found.contacts.names]
    assert abs(found.contacts.force[-1, left, 0].sum()) == pytest.approx(squeeze, rel=0.05)
    assert abs(found.q[-1, 2] - found.q[1, 2]) < 1e-7
