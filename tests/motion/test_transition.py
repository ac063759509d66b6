"""Transitions: what they minimise, the ends they meet, what they report and what they refuse."""

from __future__ import annotations

import io

import numpy as np
import pytest
from scipy.optimize import lsq_linear
from tests.motion.reaching_figure import FIGURE, hand_stays, states

import dalembert as da
from dalembert.motion.closed_path import ClosedPath, contacts_of
from dalembert.motion.configuration_spline import ConfigurationSpline, Controls, Knots
from dalembert.motion.torque_energy import ClosedTorqueEnergy, TorqueEnergy
from dalembert.motion.transition import Descent, progress_line

ARM = da.models.two_link_arm()


def closed_energy(contacts: object, root_weight: float = 0.1) -> tuple[ClosedTorqueEnergy, Controls]:
    """The energy of the figure with its hand held, and a moved spline."""
    spline = ConfigurationSpline(FIGURE, Knots(5, 0.7))
    rest = np.zeros(FIGURE.nv)
    start, end = hand_stays()
    controls = spline.between((start, rest), (end, rest))
    free = np.zeros(controls.values.shape, bool)
    free[2:-2] = True
    held = contacts_of(FIGURE, contacts, start)
    path = ClosedPath(spline, held, controls, free, np.zeros(FIGURE.nv, bool))
    prices = np.array([root_weight] * 6 + [1.0, 2.0, 0.5, 1.5])
    energy = ClosedTorqueEnergy(path, prices=prices, smoothness=0.1, unpowered=np.arange(6))
    values = path.controls.values.copy()
    values[free] += 0.1 * np.random.default_rng(0).normal(size=free.sum())
    return energy, Controls(values, path.controls.anchors)


@pytest.mark.parametrize("contacts", [None, ["hand"], {"hand": da.Spherical()}])
def test_the_gradient_is_that_of_finite_differences(contacts: object) -> None:
    """With a hand that the world carries, too; held at a point only, it leaves moments to the root."""
    rng = np.random.default_rng(0)
    energy: TorqueEnergy | ClosedTorqueEnergy
    if contacts is None:
        spline = ConfigurationSpline(FIGURE, Knots(5, 0.7))
        controls = spline.between(*states())
        controls.values[2:-2] += 0.2 * rng.normal(size=controls.values[2:-2].shape)
        prices = np.array([0.1] * 6 + [1.0, 2.0, 0.5, 1.5])
        energy = TorqueEnergy(spline, prices=prices, smoothness=0.1)
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
    found = Descent(bowl, start, lower, upper, **options)
    found.run()
    assert found.has_converged
    assert np.all(np.diff(found.energies) <= 0.0)
    np.testing.assert_allclose(found.x, expected.x, atol=1e-6)
    assert np.all((found.x >= lower) & (found.x <= upper))
    assert np.sum((found.x <= lower) | (found.x >= upper)) >= 3
    again = Descent(bowl, found.x, lower, upper, **(options | {"tolerance": 1e-5}))
    again.run()
    assert len(again.energies) == 1
    assert again.has_converged
    short = Descent(bowl, start, lower, upper, **(options | {"iterations": 2}))
    short.run()
    assert len(short.energies) == 3


def test_progress_is_one_line() -> None:
    stream = io.StringIO()
    with progress_line("transition", shown=True, stream=stream) as line:
        for k in range(60):
            line(k, 2.0, 0.1)
    assert stream.getvalue().count("\r") == 3
    assert stream.getvalue().endswith("\n")
    with progress_line("transition", shown=None, stream=stream) as line:
        line(0, 1.0, 1.0)
    assert stream.getvalue().count("\r") == 3


REFUSED = {
    "positive time": {"duration": 0.0},
    "from 4 to": {"knots": 3},
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
