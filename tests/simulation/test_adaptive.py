"""Adaptive integration: errors follow tolerances, dense output, events, on every kind of model."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.integrate._ivp.rk import RK45
from scipy.special import ellipk
from tests.algorithms.trees import close, random_tree
from tests.simulation.test_integrators import flying_tree, momentum, swinging_top

import dalembert as da
from dalembert import scalar
from dalembert.errors import ArgumentError, DtypeError, OutOfRangeError, ShapeError, StateError
from dalembert.simulation import Event, integrate_adaptive
from dalembert.simulation.adaptive import DENSE, ERROR, NODES, STAGES

UPPER, LOWER, LIGHT, HEAVY, G = 1.0, 0.9, 0.05, 1.0, 9.81


def spiky_pendulum():
    """A heavy bob on a light one: it passes close to the pivot, and the light one whips round."""
    builder = da.ModelBuilder(gravity=(0.0, 0.0, -G))

    def bob(mass, length):
        return da.RigidInertia(mass, (0.0, 0.0, -length), np.zeros((3, 3)))

    below = da.Transform.from_rotation_translation(np.eye(3), (0.0, 0.0, -UPPER))
    builder.add_body("upper", "world", da.Revolute((0, 1, 0)), inertia=bob(LIGHT, UPPER))
    builder.add_body("lower", "upper", da.Revolute((0, 1, 0)), placement=below, inertia=bob(HEAVY, LOWER))
    return builder.build(inertia="as_given")


def textbook_rate(t, x):
    """Lagrange's equations of two point masses by the angles a, b of their rods from the vertical."""
    a, b, da_, db = x
    c, s = np.cos(a - b), np.sin(a - b)
    M = np.array([[(LIGHT + HEAVY) * UPPER, HEAVY * LOWER * c], [UPPER * c, LOWER]])
    f = [
        -HEAVY * LOWER * db**2 * s - (LIGHT + HEAVY) * G * np.sin(a),
        UPPER * da_**2 * s - G * np.sin(b),
    ]
    return [da_, db, *np.linalg.solve(M, f)]


START = np.array([2.0, 2.6, 0.0, 0.0])  # a, b, and their rates


def exact(times):
    found = solve_ivp(
        textbook_rate, (0.0, times[-1]), START, method="DOP853", rtol=1e-13, atol=1e-13, t_eval=times
    ).y
    q = np.stack([found[0], found[1] - found[0]], axis=-1)
    return q, np.stack([found[2], found[3] - found[2]], axis=-1)


def relative(x):
    return np.array([x[0], x[1] - x[0]])


@pytest.fixture(scope="module")
def pendulum():
    return spiky_pendulum()


def test_error_follows_the_tolerance_on_a_spiky_double_pendulum(pendulum):
    """RBDA-10.1-ADAPTIVE: a hundredth of the tolerance, about a hundredth of the error, against equations of
    motion and a solver of other hands; short steps where accelerations have spikes, long ones elsewhere.
    """
    end_q, end_v = exact(np.array([0.0, 2.0]))
    errors, tolerances = [], [1e-5, 1e-7, 1e-9, 1e-11]
    for tolerance in tolerances:
        motion = integrate_adaptive(
            pendulum, relative(START), np.zeros(2), duration=2.0, rtol=tolerance, atol=tolerance
        )
        errors.append(max(np.abs(motion.q[-1] - end_q[-1]).max(), np.abs(motion.v[-1] - end_v[-1]).max()))
    ratios = np.array(errors[:-1]) / np.array(errors[1:])
    assert np.all((ratios > 30.0) & (ratios < 300.0))
    assert np.all(np.array(errors) < 100.0 * np.array(tolerances))
    times = np.linspace(0.0, 2.0, 2001)
    a = np.abs(da.forward_dynamics(pendulum, *motion.at(times), np.zeros(2))).max(axis=-1)
    steps = np.diff(motion.time)
    assert a.max() > 50.0 * np.median(a)
    assert steps.max() > 30.0 * steps.min()


def test_steps_that_adapt_cost_less_than_equal_ones(pendulum):
    """RBDA-10.1-ADAPTIVE: as exact as Runge and Kutta's method at a third of its evaluations."""
    end_q, _ = exact(np.array([0.0, 2.0]))
    motion = integrate_adaptive(pendulum, relative(START), np.zeros(2), duration=2.0, rtol=1e-7, atol=1e-7)
    count = 3 * motion.evaluations // 4
    fixed = da.rollout(
        pendulum, relative(START), np.zeros(2), steps=count, dt=2.0 / count, integrator="rk4", every=count
    )
    assert np.abs(fixed.q[-1] - end_q[-1]).max() > np.abs(motion.q[-1] - end_q[-1]).max()


def test_the_motion_is_known_between_its_frames(pendulum):
    """RBDA-10.1-ADAPTIVE: dense output is about as exact as the steps, and continuous at their ends."""
    times = np.linspace(0.0, 2.0, 301)
    q, v = exact(times)
    motion = integrate_adaptive(pendulum, relative(START), np.zeros(2), duration=2.0, rtol=1e-9, atol=1e-9)
    assert len(motion.time) > 300
    found_q, found_v = motion.at(times)
    close(found_q, q, 1e-7)
    close(found_v, v, 1e-7)
    at_frames = motion.at(motion.time)
    np.testing.assert_allclose(at_frames[0], motion.q, rtol=0.0, atol=1e-13)
    assert motion.at(0.7)[0].shape == (2,)
    assert motion.at([[0.7, 0.8]])[1].shape == (1, 2, 2)
    trajectory = motion.trajectory(np.linspace(0.0, 2.0, 21))
    assert trajectory.energy() == pytest.approx(trajectory.energy()[0], abs=1e-6)
    assert trajectory.tau.shape == (20, 2)
    with pytest.raises(OutOfRangeError, match="known from 0 s to 2 s"):
        motion.at(2.1)


def test_coefficients_are_those_of_the_method():
    """Against another implementation, and the conditions on sums."""
    np.testing.assert_allclose(DENSE, RK45.P, rtol=1e-15)
    np.testing.assert_allclose(-ERROR, RK45.E, rtol=1e-13, atol=1e-17)
    for row, other, node in zip(STAGES[:5], RK45.A[1:], NODES[1:], strict=False):
        np.testing.assert_allclose(row, other[: len(row)], rtol=1e-15)
        assert row.sum() == pytest.approx(node, abs=1e-14)
    np.testing.assert_allclose(STAGES[5], RK45.B, rtol=1e-15)


@pytest.mark.parametrize("seed", [0, 3])
def test_quaternions_and_free_bodies_on_the_manifold(seed):
    """RBDA-10.1-ADAPTIVE: trees with free, ball and planar joints, against small steps of Runge and Kutta."""
    model = random_tree(seed, 3, ("free", "spherical", "planar", "sphere_in_cylinder"), branching=0.3)
    model = model.with_values({f"{b.joint_name}.joint_friction": np.zeros(b.nv) for b in model.bodies})
    q, v = model.random_state(seed)
    tau = np.random.default_rng(seed).normal(size=model.nv)
    motion = integrate_adaptive(model, q, v, duration=0.4, tau=tau, rtol=1e-10, atol=1e-12)
    fine = da.rollout(model, q, v, tau, steps=4000, dt=1e-4, integrator="rk4", every=4000)
    close(da.difference(model, motion.q[-1], fine.q[-1]), np.zeros(model.nv), 1e-7)
    close(motion.v[-1], fine.v[-1], 1e-7)
    norms = [np.linalg.norm(motion.q[..., s], axis=-1) for b in model.bodies for s in unit_places(b)]
    assert norms
    close(norms, np.ones_like(norms), 1e-14)


def in_equal_steps(model, q, v, duration, count):
    """The end of a motion in steps that a bound on their length decides, not their errors."""
    motion = integrate_adaptive(model, q, v, duration=duration, rtol=0.0, atol=1e6, max_step=duration / count)
    assert 0 <= len(motion.time) - 1 - count <= 3  # the first ones are shorter
    return motion.q[-1], motion.v[-1]


def test_order_by_refinement_on_a_ball_joint():
    """RBDA-10.1-ADAPTIVE: halving steps divides errors by 2^5 or more, as leading terms nearly cancel; what
    is lost of a multibody's momentum, too.
    """
    model, q, v = swinging_top()
    exact = integrate_adaptive(model, q, v, duration=0.4, rtol=1e-13, atol=1e-14)
    errors = []
    for count in (10, 20, 40):
        end_q, end_v = in_equal_steps(model, q, v, 0.4, count)
        errors.append(np.linalg.norm([*da.difference(model, exact.q[-1], end_q), *(end_v - exact.v[-1])]))
    tree = flying_tree(1)
    q, v = tree.random_state(1)
    losses = [
        np.linalg.norm(momentum(tree, *in_equal_steps(tree, q, v, 0.4, count)) - momentum(tree, q, v))
        for count in (10, 20, 40)
    ]
    for sizes in (errors, losses):
        orders = np.log2(np.array(sizes[:-1]) / np.array(sizes[1:]))
        assert np.all((orders > 4.9) & (orders < 6.2))


def test_linear_momentum_of_a_body_in_flight():
    """RBDA-10.1-ADAPTIVE: to 1e-10, whatever the tolerance, at frames and between them."""
    builder = da.ModelBuilder(gravity=(0.0, 0.0, 0.0))
    body = da.RigidInertia(2.0, (0.3, 0.1, -0.2), (0.1, 0.2, 0.25))
    builder.add_body("body", "world", da.Free(), inertia=body)
    model = builder.build()
    v = [3.0, -2.0, 5.0, 0.4, 0.1, -0.3]
    motion = integrate_adaptive(model, model.neutral(), v, duration=10.0, rtol=1e-5, atol=1e-5)
    for q, v in ((motion.q, motion.v), motion.at(np.linspace(0.0, 10.0, 301))):
        h = momentum(model, q, v)
        close(h[:, 3:], np.broadcast_to(h[0, 3:], h[:, 3:].shape), 1e-10)
        assert np.ptp(h[:, :3], axis=0).max() > 1e-6  # the tolerance is wide


def unit_places(body):
    start = body.q_slice.start
    return [slice(start + s.start, start + s.stop) for s in body.joint.unit_quaternions]


def test_models_that_depend_on_time_and_policies():
    """RBDA-10.1-ADAPTIVE: a pendulum on a shaken pivot, damped by a policy that depends on time; its equation
    of motion is l q'' = -(g + y'') sin q - …, y = 0.1 sin 8 t.
    """
    shaken = da.joints.TimeDependent(
        da.Revolute((0, 1, 0)), driver=da.Prismatic((0, 0, 1)), motion=lambda t: [0.1 * scalar.sin(8.0 * t)]
    )
    builder = da.ModelBuilder(gravity=(0.0, 0.0, -G))
    bob = da.RigidInertia(1.0, (0.0, 0.0, -1.0), np.zeros((3, 3)))
    builder.add_body("bob", "world", shaken, inertia=bob)
    model = builder.build(inertia="as_given")

    def policy(model, t, q, v):
        return [-0.3 * v[0] * (1.0 + scalar.sin(t))]

    motion = integrate_adaptive(model, [0.4], [0.0], duration=3.0, time=1.0, tau=policy)

    def rate(t, x):
        return [x[1], -(G - 6.4 * np.sin(8.0 * t)) * np.sin(x[0]) - 0.3 * x[1] * (1.0 + np.sin(t))]

    x = solve_ivp(rate, (1.0, 4.0), [0.4, 0.0], method="DOP853", rtol=1e-12, atol=1e-12).y[:, -1]
    assert motion.time[-1] == 4.0
    close([motion.q[-1, 0], motion.v[-1, 0]], x, 1e-6)
    frames = motion.trajectory()
    close(frames.tau[5], [-0.3 * motion.v[5, 0] * (1.0 + np.sin(motion.time[5]))], 1e-12)


@pytest.mark.parametrize("frame", ["body", "world", "center"])
def test_external_forces_are_those_of_short_steps(frame):
    """RBDA-10.1-ADAPTIVE: held in the frame in which they are given, as in a rollout of full order."""
    model = da.models.random_tree(3, bodies=4)
    q, v = model.random_state(0)
    loads = {"external_forces": np.random.default_rng(1).normal(size=(4, 6)), "external_frame": frame}
    motion = integrate_adaptive(model, q, v, duration=0.2, **loads)
    errors = []
    for steps in (50, 100):
        short = da.rollout(model, q, v, steps=steps, dt=0.2 / steps, integrator="rk4", **loads)
        errors.append(np.abs(short.v[-1] - motion.v[-1]).max())
    assert errors[1] < 1e-6
    assert errors[1] < errors[0] / 8.0 or errors[1] < 1e-8
    with pytest.raises(ArgumentError, match="external_forces holds numbers that are not finite"):
        integrate_adaptive(model, q, v, duration=0.1, external_forces=np.full((4, 6), np.nan))


def test_closed_loops_stay_closed():
    """RBDA-10.1-ADAPTIVE: a four-bar keeps its loop and its energy."""
    model = da.models.four_bar()
    q, v = da.constraints.close_loops(model, model.neutral(), np.ones(model.nv))[:2]
    motion = integrate_adaptive(model, q, v, duration=1.0, rtol=1e-9, atol=1e-9)
    assert np.abs(da.constraints.constraint_error(model, motion.q)).max() < 1e-7
    energy = motion.trajectory().energy()
    assert np.ptp(energy) < 1e-6 * max(1.0, np.abs(energy).max())


def test_events_are_found_when_they_happen():
    """RBDA-10.1-ADAPTIVE: a thrown body passes its highest point and lands; times of a parabola."""
    builder = da.ModelBuilder(gravity=(0.0, 0.0, -G))
    builder.add_body("ball", "world", da.Free(), inertia=da.RigidInertia(1.0, (0.1, 0, 0), (0.1, 0.2, 0.25)))
    model = builder.build()
    q, v = np.array([0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0]), np.array([2.0, 3.0, 4.0, 0.5, 0.0, 6.0])
    center, rate = (
        da.dynamics.center_of_mass(model, q),
        da.kinematics.point_motion(model, q, v, 0 * v, "ball")[1],
    )
    rate = rate + np.cross(v[:3], [0.1, 0.0, 0.0])

    def height(t, q, v):
        return da.dynamics.center_of_mass(model, q)[2] - 0.5

    def climbing(t, q, v):
        return da.dynamics.centroidal_momentum(model, q, v)[5]

    def never(t, q, v):
        return 1.0

    events = (Event(height, terminal=True, direction=-1), climbing, never, Event(height, direction=1))
    motion = integrate_adaptive(model, q, v, duration=5.0, events=events)
    top = rate[2] / G
    landing = top + np.sqrt(top**2 + 2.0 * (center[2] - 0.5) / G)
    assert [happening.event.name for happening in motion.happenings] == ["climbing", "height"]
    assert [happening.time for happening in motion.happenings] == pytest.approx([top, landing], abs=1e-9)
    assert motion.time[-1] == motion.happenings[-1].time
    close(motion.q[-1], motion.happenings[-1].q, 1e-12)
    assert height(0.0, motion.q[-1], motion.v[-1]) == pytest.approx(0.0, abs=1e-9)


def test_directions_of_events():
    """RBDA-10.1-ADAPTIVE: a wide swing passes the lowest point at odd quarters of its period, an elliptic
    integral; falling, rising, or both are counted.
    """
    model = da.models.pendulum(length=1.0)
    quarter = np.sqrt(1.0 / G) * ellipk(np.sin(1.0) ** 2)
    events = [Event(lambda t, q, v: q[0], direction=direction) for direction in (-1, 0, 1)]
    motion = integrate_adaptive(model, [2.0], [0.0], duration=7.5 * quarter, events=events)
    times = {event.direction: [] for event in events}
    for happening in motion.happenings:
        times[happening.event.direction].append(happening.time / quarter)
    assert times[-1] == pytest.approx([1.0, 5.0], abs=1e-7)
    assert times[1] == pytest.approx([3.0, 7.0], abs=1e-7)
    assert times[0] == pytest.approx([1.0, 3.0, 5.0, 7.0], abs=1e-7)


def test_bad_arguments_are_refused(pendulum):
    q, v = np.array([0.3, 0.1]), np.zeros(2)

    def run(**options):
        return integrate_adaptive(pendulum, q, v, **({"duration": 1.0} | options))

    with pytest.raises(ArgumentError, match=r"duration is -1\.0; give a finite number of at least 0"):
        run(duration=-1.0)
    with pytest.raises(ArgumentError, match="rtol is nan"):
        run(rtol=np.nan)
    with pytest.raises(ArgumentError, match="more than rounding allows"):
        run(rtol=0.0, atol=0.0)
    with pytest.raises(ArgumentError, match=r"max_step is 0\.0"):
        run(max_step=0.0)
    with pytest.raises(ArgumentError, match="tau holds numbers that are not finite"):
        run(tau=[np.nan, 0.0])
    with pytest.raises(ShapeError, match="one at a time"):
        integrate_adaptive(pendulum, np.zeros((4, 2)), v, duration=1.0)
    with pytest.raises(StateError, match="10 steps were taken"):
        run(max_steps=10)
    with pytest.raises(DtypeError, match="must return one number"):
        run(events=lambda t, q, v: q)
    with pytest.raises(ArgumentError, match="direction is 2"):
        Event(lambda t, q, v: 0.0, direction=2)
    with pytest.raises(ShapeError, match="returned 1 joint forces; this model has 2"):
        run(tau=lambda model, t, q, v: [q[0]])
    with pytest.raises(StateError, match=r"no step is short enough at t = 0\.5 s"):
        run(tau=lambda model, t, q, v: [scalar.sqrt(0.5 - t), 0.0])
    still = run(duration=0.0)
    assert still.time.tolist() == [0.0]
    np.testing.assert_array_equal(still.at(0.0)[0], q)


def test_events_that_stay_at_zero_happen_when_they_get_there():
    """A gap that is never negative: zero from the impact on."""
    model = da.models.pendulum(length=1.0)
    exact = da.simulation.integrate_adaptive(model, [0.5], [0.0], duration=1.0, events=lambda t, q, v: q[0])
    for clipped in (lambda t, q, v: max(q[0], 0.0), lambda t, q, v: min(-q[0], 0.0)):
        motion = da.simulation.integrate_adaptive(model, [0.5], [0.0], duration=1.0, events=clipped)
        (first,) = motion.happenings
        assert first.time == pytest.approx(exact.happenings[0].time, abs=1e-12)


@pytest.mark.parametrize(
    ("given", "kind", "text"),
    [
        ({"duration": "1"}, DtypeError, "duration is '1'; give a number"),
        ({"duration": True}, DtypeError, "duration is True; give a number"),
        ({"max_step": "long"}, DtypeError, "max_step is 'long'; give a number"),
        ({"max_steps": "3"}, ArgumentError, "max_steps is '3'; give a whole number"),
        ({"max_steps": 0}, ArgumentError, "max_steps is 0; give a whole number"),
        ({"q": [np.nan]}, ArgumentError, "^q holds numbers that are not finite"),
        ({"events": lambda t, q, v: q[0] > 0.0}, DtypeError, "returned True; give a number that passes zero"),
        ({"tau": da.control.Servo(kp=1.0, kd=1.0)}, DtypeError, "Servo acts in steps of fixed length"),
    ],
)
def test_what_is_wrong_is_named(given, kind, text):
    options = {"q": [0.1], "v": [0.0], "duration": 1.0} | given
    with pytest.raises(kind, match=text):
        da.simulation.integrate_adaptive(da.models.pendulum(), **options)


def test_motions_are_short_to_print_and_take_no_times():
    motion = da.simulation.integrate_adaptive(da.models.pendulum(), [0.1], [0.0], duration=1.0, events=None)
    assert repr(motion).startswith('<AdaptiveMotion of "pendulum": ')
    assert len(repr(motion)) < 100
    q, v = motion.at([])
    assert (q.shape, v.shape) == ((0, 1), (0, 1))
    with pytest.raises(ShapeError, match="times"):
        motion.trajectory([])
