"""Transitions: what they minimise, the ends they meet, what they report and what they refuse."""

from __future__ import annotations

import io

import numpy as np
import pytest
from scipy.optimize import lsq_linear

import dalembert as da
from dalembert.motion.closed_energy import ClosedTorqueEnergy
from dalembert.motion.closed_path import ClosedPath
from dalembert.motion.configuration_spline import ConfigurationSpline, Controls
from dalembert.motion.descent import Progress, descend
from dalembert.motion.torque_energy import TorqueEnergy
from dalembert.motion.transition_ends import contacts_of


def figure(grip: da.Transform | None = None) -> da.Model:
    """A floating trunk with an arm at a ball joint and a hinge; a grip welds the hand to the world there."""
    builder = da.ModelBuilder()
    rod = da.RigidInertia(1.5, (0.0, 0.0, -0.2), (0.03, 0.03, 0.004))
    at = da.Transform.from_rotation_translation(np.eye(3), (0.1, 0.2, 0.3))
    below = da.Transform.from_rotation_translation(np.eye(3), (0.0, 0.0, -0.4))
    trunk = da.RigidInertia(6.0, (0.0, 0.0, 0.1), (0.3, 0.2, 0.25))
    builder.add_body("trunk", "world", da.Free(), joint_name="root", inertia=trunk)
    builder.add_body("upper", "trunk", da.Spherical(), joint_name="shoulder", placement=at, inertia=rod)
    elbow = da.Limits(0.0, 2.0)
    builder.add_body(
        "lower",
        "upper",
        da.Revolute((0, -1, 0)),
        joint_name="elbow",
        placement=below,
        inertia=rod,
        limits=elbow,
    )
    builder.add_frame("hand", "lower", below)
    builder.set_actuated(["shoulder", "elbow"])
    if grip is not None:
        builder.add_loop("grip", "world", "lower", da.Fixed(), grip, below)
    return builder.build()


FIGURE = figure()
ARM = da.models.two_link_arm()


def states() -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(3)
    q = FIGURE.neutral()
    q[-1] = 0.3
    dq = 0.5 * rng.normal(size=FIGURE.nv)
    dq[-1] = 0.9
    return (q, 0.4 * rng.normal(size=FIGURE.nv)), (
        da.integrate(FIGURE, q, dq),
        0.4 * rng.normal(size=FIGURE.nv),
    )


def hand_stays() -> tuple[np.ndarray, np.ndarray]:
    """Two poses with the hand in one place: the trunk turns around it and is elsewhere."""
    q = FIGURE.neutral()
    q[-1] = 0.4
    turned = q.copy()
    turned[7:11] = [np.cos(0.3), 0.0, np.sin(0.3), 0.0]
    turned[3:7] = [np.cos(0.3), 0.0, -np.sin(0.3), 0.0]
    places = [da.forward_kinematics(FIGURE, x)["hand"] for x in (q, turned)]
    np.testing.assert_allclose(places[0].rotation, places[1].rotation, atol=1e-12)
    assert np.abs(places[0].translation - places[1].translation).max() > 0.05
    turned[:3] += places[0].translation - places[1].translation
    return q, turned


def closed_energy(contacts: object, root_weight: float = 0.1) -> tuple[ClosedTorqueEnergy, Controls]:
    """The energy of the figure with its hand held, and a moved spline."""
    spline = ConfigurationSpline(FIGURE)
    rest = np.zeros(FIGURE.nv)
    start, end = hand_stays()
    controls = spline.between(5, 0.7, (start, rest), (end, rest))
    free = np.zeros(controls.values.shape, bool)
    free[2:-2] = True
    held = contacts_of(FIGURE, contacts, start)
    path = ClosedPath(spline, 5, 0.7, held, controls, free, np.zeros(FIGURE.nv, bool))
    prices = np.array([root_weight] * 6 + [1.0, 2.0, 0.5, 1.5])
    energy = ClosedTorqueEnergy(path, 5, 0.7, prices=prices, smoothness=0.1, unpowered=np.arange(6))
    values = path.controls.values.copy()
    values[free] += 0.1 * np.random.default_rng(0).normal(size=free.sum())
    return energy, Controls(values, path.controls.anchors)


@pytest.mark.parametrize("contacts", [None, ["hand"], {"hand": da.Spherical()}])
def test_the_gradient_is_that_of_finite_differences(contacts: object) -> None:
    """With a hand that the world carries, too; held at a point only, it leaves moments to the root."""
    rng = np.random.default_rng(0)
    energy: TorqueEnergy | ClosedTorqueEnergy
    if contacts is None:
        spline = ConfigurationSpline(FIGURE)
        controls = spline.between(5, 0.7, *states())
        controls.values[2:-2] += 0.2 * rng.normal(size=controls.values[2:-2].shape)
        prices = np.array([0.1] * 6 + [1.0, 2.0, 0.5, 1.5])
        energy = TorqueEnergy(spline, 5, 0.7, prices=prices, smoothness=0.1)
    else:
        energy, controls = closed_energy(contacts)
    value, gradient = energy.with_gradient(controls)
    assert value == pytest.approx(energy(controls), rel=1e-14)
    for _ in range(6):
        way = rng.normal(size=controls.values.shape)
        way[[0, 1, -2, -1]] = 0.0
        e = 1e-5
        there, back = (energy(Controls(controls.values + s * way, controls.anchors)) for s in (e, -e))
        assert np.sum(gradient * way) == pytest.approx((there - back) / (2 * e), rel=1e-6)
    both = Controls(np.stack([controls.values, controls.values + 1e-3 * way]), controls.anchors)
    values, gradients = energy.with_gradient(both)
    for k in range(2):
        one = energy.with_gradient(Controls(both.values[k], controls.anchors))
        assert values[k] == pytest.approx(one[0], rel=1e-13)
        np.testing.assert_allclose(gradients[k], one[1], atol=1e-9 * np.abs(one[1]).max())


def test_energy_falls_and_the_ends_are_met() -> None:
    start, end = states()
    seen: list[tuple[int, float, float]] = []
    move = da.motion.transition(
        FIGURE, start, end, 0.6, knots=6, callback=lambda *item: seen.append(item), progress=False
    )
    assert move.converged
    assert move.iterations == len(seen) - 1 > 5
    assert [energy for _, energy, _ in seen] == move.energies.tolist()
    assert np.all(np.diff(move.energies) <= 0.0)
    assert move.energies[-1] < 0.97 * move.energies[0]
    assert move.gradient_norm < 1e-4 * move.gradient_norms[0]
    for k, (q, v) in ((0, start), (-1, end)):
        assert np.abs(da.difference(FIGURE, move.clip.q[k], q)).max() < 1e-9
        assert np.abs(move.clip.v[k] - v).max() < 1e-9
    np.testing.assert_allclose(
        move.tau, da.inverse_dynamics(FIGURE, move.clip.q, move.clip.v, move.clip.a), atol=1e-9
    )
    assert move.residual.shape == (len(move.clip), 6)
    assert "converged" in repr(move)


def test_a_transition_joins_two_clips_with_velocities_and_accelerations() -> None:
    time = np.linspace(0.0, 0.5, 21)
    first = da.motion.Clip.from_positions(ARM, time, np.stack([np.sin(3 * time), time**2], axis=1))
    second = da.motion.Clip.from_positions(ARM, time, np.stack([2.0 - time, np.cos(2 * time)], axis=1))
    move = da.motion.transition(ARM, first, second, 0.4, knots=8, frame_time=0.025)
    assert len(move.clip) == 17
    for ours, clip, k in ((move.clip[0], first, -1), (move.clip[-1], second, 0)):
        for x, y in zip(ours[1:], clip[k][1:], strict=True):
            np.testing.assert_allclose(x, y, atol=1e-9)
    joined = da.motion.transition(ARM, first[-1], second[0], 0.4, knots=8, frame_time=0.025)
    np.testing.assert_array_equal(joined.clip.q, move.clip.q)


def test_a_fixed_root_keeps_its_path_and_costs_nothing() -> None:
    start, end = states()
    rest = [(q, np.concatenate([np.zeros(6), v[6:]])) for q, v in (start, end)]
    rest[1][0][:7] = rest[0][0][:7]
    move = da.motion.transition(FIGURE, *rest, 0.6, knots=6, fixed_root=True)
    np.testing.assert_allclose(move.clip.q[:, :7], np.tile(rest[0][0][:7], (len(move.clip), 1)), atol=1e-14)
    assert move.converged
    loose = da.motion.transition(FIGURE, *rest, 0.6, knots=6, root_weight=1.0)
    assert np.ptp(loose.clip.q[:, :3]) > 1e-4
    held = np.sum(move.tau[:, 6:] ** 2) / len(move.clip) * 0.6
    assert move.torque_energy == pytest.approx(held, rel=0.1)  # the joints alone


def test_limits_bound_the_motion() -> None:
    builder = da.ModelBuilder()
    rod = da.RigidInertia(1.0, (0.0, 0.0, -0.5), (0.1, 0.1, 0.001))
    bend = da.Limits(-1.1, 1.1)
    builder.add_body("rod", "world", da.Revolute((0, 1, 0)), inertia=rod, limits=bend)
    model = builder.build()
    start, end = ([1.0], [2.0]), ([-1.0], [0.0])
    free = da.motion.transition(model, start, end, 1.5, limits=False)
    bound = da.motion.transition(model, start, end, 1.5)
    assert free.clip.q.max() > 1.2
    assert bound.clip.q.max() < 1.1 + 0.02  # the second control value follows from the velocity at the start
    assert bound.energies[-1] > free.energies[-1]
    assert bound.converged
    assert free.converged
    given = da.motion.transition(model, start, end, 1.5, limits=([-1.1], [1.1]))
    np.testing.assert_array_equal(given.clip.q, bound.clip.q)


def assert_moves_as_it_says(clip: da.motion.Clip) -> None:
    """v and a are the rates of q, by central differences."""
    model, dt = clip.model, clip.time[1] - clip.time[0]
    ahead, back = (da.difference(model, clip.q[1:-1], q) for q in (clip.q[2:], clip.q[:-2]))
    np.testing.assert_allclose((ahead - back) / (2 * dt), clip.v[1:-1], atol=3e-4)
    rate = (clip.v[2:] - clip.v[:-2]) / (2 * dt)
    np.testing.assert_allclose(rate, clip.a[1:-1], atol=2e-3 * np.abs(clip.a).max())


def test_a_frame_in_contact_stays_and_the_world_carries_it() -> None:
    """The forces are those of a fixed loop joint: with them, forward dynamics of the welded figure gives the
    motion back, and no force acts at the root."""
    q, turned = hand_stays()
    move = da.motion.transition(
        FIGURE, q, turned, 0.8, knots=6, contacts=["hand"], frame_time=0.002, iterations=300
    )
    assert move.converged
    assert np.all(np.diff(move.energies) <= 0.0)
    assert move.energies[-1] < 0.97 * move.energies[0]
    for k, given in ((0, q), (-1, turned)):
        assert np.abs(da.difference(FIGURE, move.clip.q[k], given)).max() < 1e-9
        assert np.abs(move.clip.v[k]).max() < 1e-9
    hand = da.forward_kinematics(FIGURE, move.clip.q)["hand"]
    assert move.loop_error < 1e-11
    assert np.abs(hand.translation - hand.translation[0]).max() < 1e-10
    assert np.abs(hand.rotation - hand.rotation[0]).max() < 1e-10
    assert np.abs(move.clip.q[:, :3] - q[:3]).max() > 0.05
    assert_moves_as_it_says(move.clip)
    assert np.abs(move.residual).max() == 0.0
    welded = figure(da.Transform.from_rotation_translation(hand.rotation[0], hand.translation[0]))
    a = da.forward_dynamics(welded, move.clip.q, move.clip.v, move.tau)
    np.testing.assert_allclose(a, move.clip.a, atol=1e-8)
    external = np.zeros((len(a), 3, 6))
    external[:, 2] = move.contact_forces[:, 0]
    tau = da.inverse_dynamics(FIGURE, move.clip.q, move.clip.v, a, external, external_frame="world")
    np.testing.assert_allclose(tau, move.tau, atol=1e-8)
    with pytest.raises(da.errors.StateError, match="one place"):
        da.motion.transition(FIGURE, *states(), 0.6, contacts=["hand"])


def test_a_point_in_contact_turns_and_what_it_cannot_carry_stays_with_the_root() -> None:
    q, turned = hand_stays()
    options = {"knots": 5, "contacts": {"hand": da.Spherical()}, "iterations": 60}
    cheap, dear = (
        da.motion.transition(FIGURE, q, turned, 0.8, root_weight=weight, **options) for weight in (0.01, 10.0)
    )
    for move in (cheap, dear):
        hand = da.forward_kinematics(FIGURE, move.clip.q)["hand"]
        assert np.abs(hand.translation - hand.translation[0]).max() < 1e-10
        moments = move.contact_forces[:, 0, :3] - np.cross(hand.translation, move.contact_forces[:, 0, 3:])
        assert np.abs(moments).max() < 1e-9 * np.abs(move.contact_forces).max()
        external = np.zeros((len(move.clip), 3, 6))
        external[:, 2] = move.contact_forces[:, 0]
        tau = da.inverse_dynamics(
            FIGURE, move.clip.q, move.clip.v, move.clip.a, external, external_frame="world"
        )
        np.testing.assert_allclose(tau, move.tau, atol=1e-8)
    assert np.abs(hand.rotation - hand.rotation[0]).max() > 1e-2
    assert 0.0 < np.abs(dear.residual).mean() < np.abs(cheap.residual).mean()


def test_a_fixed_root_keeps_its_path_with_contacts_too() -> None:
    q, turned = hand_stays()
    options = {"knots": 5, "fixed_root": True}
    alone = da.motion.transition(FIGURE, q, turned, 0.8, iterations=0, **options)
    move = da.motion.transition(FIGURE, q, turned, 0.8, contacts={"hand": da.Spherical()}, **options)
    assert move.converged
    np.testing.assert_allclose(move.clip.q[:, :7], alone.clip.q[:, :7], atol=1e-14)
    hand = da.forward_kinematics(FIGURE, move.clip.q)["hand"].translation
    assert np.abs(hand - hand[0]).max() < 1e-10
    external = np.zeros((len(move.clip), 3, 6))
    external[:, 2] = move.contact_forces[:, 0]
    tau = da.inverse_dynamics(FIGURE, move.clip.q, move.clip.v, move.clip.a, external, external_frame="world")
    np.testing.assert_allclose(tau, move.tau, atol=1e-8)
    with pytest.raises(da.errors.StateError, match="cannot be closed all the way"):
        da.motion.transition(FIGURE, q, turned, 0.8, contacts=["hand"], **options)


def test_a_linkage_moves_with_its_loop_closed() -> None:
    """Forces are those of the motor alone: with them, forward dynamics gives the motion back."""
    model = da.models.four_bar()
    q, end = da.close_loops(model, [[0.2, 0.0, 0.0], [2.2, -0.9, 0.3]], hold=["crank_pivot"])
    q, v = da.close_loops(model, q, [0.5, 0.0, 0.0], hold=["crank_pivot"])
    move = da.motion.transition(model, (q, v), end, 1.0, knots=8, frame_time=0.002, iterations=300)
    assert move.converged
    assert np.all(np.diff(move.energies) <= 0.0)
    assert move.energies[-1] < 0.9 * move.energies[0]
    assert np.abs(da.constraint_error(model, move.clip.q)).max() < 1e-11
    np.testing.assert_allclose(move.clip.q[[0, -1]], [q, end], atol=1e-9)
    np.testing.assert_allclose(move.clip.v[[0, -1]], [v, np.zeros(3)], atol=1e-9)
    assert_moves_as_it_says(move.clip)
    assert np.abs(move.tau[:, 1:]).max() == 0.0
    a = da.forward_dynamics(model, move.clip.q, move.clip.v, move.tau)
    np.testing.assert_allclose(a, move.clip.a, atol=1e-9)
    rocker = da.forward_kinematics(model, move.clip.q)["rocker"]
    pushes = da.loop_forces(model, move.clip.q, move.clip.v, move.tau)[:, 0, 3:]
    np.testing.assert_allclose(
        move.loop_forces[:, 0, 3:], np.einsum("tij,tj->ti", rocker.rotation, pushes), atol=1e-8
    )
    for wrong, message in (([0.3, 0.0, 0.0], '"rocker_pin" is open by'), ((q, [0.5, 0.0, 0.0]), "opens at")):
        with pytest.raises(da.errors.StateError, match=f"{message}.*close_loops"):
            da.motion.transition(model, wrong, end, 1.0)
    with pytest.raises(da.errors.StateError, match="opens with"):
        da.motion.transition(model, (q, v, [1.0, 0.0, 0.0]), end, 1.0)
    joined = da.motion.transition(model, move.clip, move.clip[0], 0.5, knots=6, iterations=5)
    np.testing.assert_allclose(joined.clip.a[0], move.clip.a[-1], atol=1e-8)


def test_a_humanoid_gets_up_on_both_feet() -> None:
    """Contact forces are the rate of momentum less gravity, all six components, momentum from q and v by
    differences; nothing acts at the root, feet stay, limits hold."""
    model = da.models.humanoid()

    def pose(bend: float) -> np.ndarray:
        q = model.neutral()
        for side in ("left", "right"):
            q[model.joint(f"{side}_hip").q_slice] = [-bend, 0.0, 0.0]
            q[model.joint(f"{side}_knee").q_slice] = 2.0 * bend
            q[model.joint(f"{side}_ankle").q_slice] = [-bend, 0.0]
        q[:3] -= da.forward_kinematics(model, q)["left_sole"].translation - [0.0, 0.09, 0.0]
        return q

    feet = ["left_sole", "right_sole"]
    crouching, standing = pose(0.7), pose(0.1)
    move = da.motion.transition(
        model,
        crouching,
        standing,
        0.6,
        knots=6,
        contacts=feet,
        smoothness=0.2,
        frame_time=0.002,
        tolerance=1e-3,
    )
    assert move.converged
    assert np.all(np.diff(move.energies) <= 0.0)
    assert move.energies[-1] < 0.9 * move.energies[0]
    clip = move.clip
    poses = da.forward_kinematics(model, clip.q)
    for foot in feet:
        assert np.abs(poses[foot].translation - poses[foot].translation[0]).max() < 1e-10
        assert np.abs(poses[foot].rotation - poses[foot].rotation[0]).max() < 1e-10
    for k, given in ((0, crouching), (-1, standing)):
        assert np.abs(da.difference(model, clip.q[k], given)).max() < 1e-9
        assert np.abs(clip.v[k]).max() < 1e-9
    assert np.abs(move.residual).max() == 0.0
    h = da.centroidal_momentum(model, clip.q, clip.v)
    rate = (h[2:] - h[:-2]) / (clip.time[2:] - clip.time[:-2])[:, None]
    com = da.center_of_mass(model, clip.q)
    total = move.contact_forces.sum(axis=1)
    moments, forces = total[1:-1, :3] - np.cross(com, total[:, 3:])[1:-1], total[1:-1, 3:]
    weight = model.total_mass * 9.81
    np.testing.assert_allclose(forces - [0.0, 0.0, weight], rate[:, 3:], atol=2e-3 * weight)
    np.testing.assert_allclose(moments, rate[:, :3], atol=2e-3 * weight)
    second = (com[2:] - 2.0 * com[1:-1] + com[:-2]) / (clip.time[1] - clip.time[0]) ** 2
    np.testing.assert_allclose(forces[:, 2], model.total_mass * (9.81 + second[:, 2]), atol=2e-3 * weight)
    assert forces[:, 2].max() > 1.1 * weight
    for body in model.bodies:
        own = clip.q[:, body.q_slice]
        if own.shape[1] == body.nv > 0:
            ends = own[[0, -1]]
            assert np.all(own >= np.minimum(body.limits.lower, ends.min(axis=0)) - 1e-3)
            assert np.all(own <= np.maximum(body.limits.upper, ends.max(axis=0)) + 1e-3)


def test_a_descent_respects_bounds_and_says_when_it_is_over() -> None:
    """A slanted bowl of ten variables, very long and narrow: SciPy's bounded least squares knows its least
    value within bounds, some of which it reaches from inside on the way."""
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(10, 10)) * np.logspace(0, 3, 10)[:, None]
    aim = rng.normal(size=10)

    def bowl(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        left = (x - aim) @ rows.T
        return 1.0 + np.sum(left**2, axis=-1), 2.0 * left @ rows

    def silent(*item: object) -> None: ...

    lower, upper = aim - 5.0, aim + 5.0
    upper[:3], lower[3:5] = aim[:3] - 0.5, aim[3:5] + 0.5
    start = np.clip(np.full(10, -1.0), lower, upper - 0.3)
    expected = lsq_linear(rows, rows @ aim, (lower, upper), tol=1e-14)
    options = {"iterations": 200, "tolerance": 1e-8, "callback": silent}
    found = descend(bowl, start, lower, upper, **options)
    assert found.converged
    assert np.all(np.diff(found.energies) <= 0.0)
    np.testing.assert_allclose(found.x, expected.x, atol=1e-6)
    assert np.all((found.x >= lower) & (found.x <= upper))
    assert np.sum((found.x <= lower) | (found.x >= upper)) >= 3
    again = descend(bowl, found.x, lower, upper, **(options | {"tolerance": 1e-5}))
    assert len(again.energies) == 1
    assert again.converged
    assert len(descend(bowl, start, lower, upper, **(options | {"iterations": 2})).energies) == 3


def test_progress_is_one_line() -> None:
    stream = io.StringIO()
    with Progress("transition", shown=True, stream=stream) as line:
        for k in range(60):
            line(k, 2.0, 0.1)
    assert stream.getvalue().count("\r") == 3
    assert stream.getvalue().endswith("\n")
    with Progress("transition", shown=None, stream=stream) as line:
        line(0, 1.0, 1.0)
    assert stream.getvalue().count("\r") == 3


REFUSED = {
    "positive time": {"duration": 0.0},
    "at least 4": {"knots": 3},
    "shape": {"start": [0.0]},
    "not finite": {"end": [np.nan, 0.0]},
    "parts": {"start": ([0, 0], [0, 0], [0, 0], [0, 0])},
    "no root": {"fixed_root": True},
    "frame_time": {"frame_time": 0.0},
    "tolerance": {"tolerance": np.nan},
    "two arrays": {"limits": ([0.0], [1.0])},
    "not below": {"limits": ([0.0, 2.0], [1.0, 1.0])},
    "not negative": {"smoothness": -1.0},
    "sequence of names": {"contacts": "tip"},
    "named twice": {"contacts": ["tip", "tip"]},
    "give a joint": {"contacts": {"tip": "fixed"}},
    "of the world": {"contacts": ["world"]},
    "another model": {"start": "clip"},
}


@pytest.mark.parametrize("message", REFUSED)
def test_wrong_arguments_are_named(message: str) -> None:
    options = {"start": [0.0, 0.0], "end": [1.0, 0.0], "duration": 1.0} | REFUSED[message]
    if isinstance(options["start"], str):
        options["start"] = da.motion.Clip.from_positions(FIGURE, [0.0], states()[0][0][None])
    with pytest.raises(da.errors.DalembertError, match=message):
        da.motion.transition(ARM, **options)
    with pytest.raises(da.errors.StateError, match="unit length"):
        da.motion.transition(FIGURE, 2.0 * states()[0][0], states()[1], 1.0)
