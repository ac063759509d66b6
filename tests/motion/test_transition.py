"""Transitions: what they minimise, the ends they meet, what they report and what they refuse."""

from __future__ import annotations

import io

import numpy as np
import pytest

import dalembert as da
from dalembert.motion.configuration_spline import ConfigurationSpline, Controls
from dalembert.motion.descent import Progress, descend
from dalembert.motion.torque_energy import Contacts, TorqueEnergy, contact_forces, places_of


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


def test_the_gradient_is_that_of_finite_differences_with_contacts_too() -> None:
    spline = ConfigurationSpline(FIGURE)
    start, end = states()
    controls = spline.between(5, 0.7, start, end)
    rng = np.random.default_rng(0)
    controls.values[2:-2] += 0.2 * rng.normal(size=controls.values[2:-2].shape)
    prices = np.array([0.1] * 6 + [1.0, 2.0, 0.5, 1.5])
    held = Contacts(("hand",), places_of(FIGURE, start[0], ["hand"]), 300.0)
    for contacts in (None, held):
        energy = TorqueEnergy(spline, 5, 0.7, prices=prices, smoothness=0.1, contacts=contacts)
        value, gradient = energy.with_gradient(controls)
        assert value == energy(controls)
        for _ in range(6):
            way = rng.normal(size=controls.values.shape)
            e = 1e-5
            there, back = (energy(Controls(controls.values + s * way, controls.anchors)) for s in (e, -e))
            assert np.sum(gradient * way) == pytest.approx((there - back) / (2 * e), rel=1e-6)
    loose = TorqueEnergy(spline, 5, 0.7, prices=prices, smoothness=0.1, contacts=held._replace(stiffness=0.0))
    off = places_of(FIGURE, energy.motion(controls)[0], ["hand"])[:, 0] - held.places[0]
    squares = np.sum(off[:, :3] ** 2, axis=1) + 0.5 * np.sum(off[:, 3:] ** 2, axis=1)
    shares = np.tile(0.5 * 0.175 * np.polynomial.legendre.leggauss(4)[1], 4)
    assert energy(controls) - loose(controls) == pytest.approx(300.0 * shares @ squares, rel=1e-9)


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


def test_a_frame_in_contact_stays_and_the_world_carries_it() -> None:
    q = FIGURE.neutral()
    q[-1] = 0.4
    turned = q.copy()
    turned[7:11] = [np.cos(0.3), 0.0, np.sin(0.3), 0.0]
    hand = [da.forward_kinematics(FIGURE, x)["hand"] for x in (q, turned)]
    turn = hand[0].rotation @ hand[1].rotation.T  # the trunk turns so that the hand does not
    turned[3:7] = [np.cos(0.3), 0.0, -np.sin(0.3), 0.0]
    place = da.forward_kinematics(FIGURE, turned)["hand"]
    np.testing.assert_allclose(place.rotation, hand[0].rotation, atol=1e-12)
    assert np.abs(turn).max() > 0.5
    turned[:3] += hand[0].translation - place.translation
    options = {"contacts": ["hand"], "contact_stiffness": 1e7, "root_weight": 1.0, "iterations": 400}
    move = da.motion.transition(FIGURE, q, turned, 0.8, knots=6, **options)
    assert move.contact_error < 2e-3
    weight = FIGURE.total_mass * 9.81
    upward = move.contact_forces[:, 0, 5]
    assert upward.mean() == pytest.approx(weight, rel=0.05)
    assert np.abs(move.residual[:, 3:]).max() < 0.2 * weight
    with pytest.raises(da.errors.ArgumentError, match="one place"):
        da.motion.transition(FIGURE, *states(), 0.6, contacts=["hand"])


def test_forces_at_contacts_are_those_of_a_loop_joint() -> None:
    """With a fixed joint there, and no force at the root, joint forces of this figure are unique."""
    q, _ = states()[0]
    hand = da.forward_kinematics(FIGURE, q)["hand"]
    welded = figure(da.Transform.from_rotation_translation(hand.rotation, hand.translation))
    rng = np.random.default_rng(2)
    q, v = da.close_loops(welded, q, rng.normal(size=FIGURE.nv))
    tau = np.concatenate([np.zeros(6), rng.normal(size=4)])
    a = da.forward_dynamics(welded, q, v, tau)
    prices = np.array([1e6] * 6 + [1.0] * 4)
    wrench = contact_forces(FIGURE, ["hand"], prices, q[None], v[None], a[None])[0, 0]
    external = np.zeros((3, 6))
    external[2] = wrench
    found = da.inverse_dynamics(FIGURE, q, v, a, external, external_frame="world")
    np.testing.assert_allclose(found, tau, atol=2e-4)


def test_a_descent_respects_bounds_and_says_when_it_is_over() -> None:
    def bowl(x: np.ndarray) -> tuple[float, np.ndarray]:
        return float(1.0 + np.sum((x - 2.0) ** 2)), 2.0 * (x - 2.0)

    def silent(*item: object) -> None: ...

    bounds = np.array([-1.0, -1.0]), np.array([1.0, 5.0])
    options = {"iterations": 50, "tolerance": 1e-8, "callback": silent}
    found = descend(bowl, np.zeros(2), np.array([2.0, 200.0]), *bounds, **options)
    np.testing.assert_allclose(found.x, [1.0, 2.0], atol=1e-7)
    assert found.converged
    again = descend(bowl, found.x, np.ones(2), *bounds, **(options | {"tolerance": 1e-5}))
    assert len(again.energies) == 1
    assert again.converged


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
    "another model": {"start": "clip"},
}


@pytest.mark.parametrize("message", REFUSED)
def test_wrong_arguments_are_named(message: str) -> None:
    options = {"start": [0.0, 0.0], "end": [1.0, 0.0], "duration": 1.0} | REFUSED[message]
    if isinstance(options["start"], str):
        options["start"] = da.motion.Clip.from_positions(FIGURE, [0.0], states()[0][0][None])
    with pytest.raises(da.errors.DalembertError, match=message):
        da.motion.transition(ARM, **options)
    with pytest.raises(da.errors.ArgumentError, match="loops"):
        da.motion.transition(da.models.four_bar(), [0.0] * 3, [0.0] * 3, 1.0)
    with pytest.raises(da.errors.StateError, match="unit length"):
        da.motion.transition(FIGURE, 2.0 * states()[0][0], states()[1], 1.0)
