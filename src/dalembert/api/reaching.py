"""Damped iteration of `inverse_kinematics` over the samples that have not converged yet.

For a configuration the kernel returns the error and the next step. A step that increases the error is
rejected and repeated with more damping. A sample that converges away from its targets, in a local minimum or
at limits, restarts elsewhere: the n-th restart is the same for every sample, so that results do not depend on
the rest of the batch.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np

from dalembert.api.calls import Array

__all__ = ["Reached", "Reaching", "move_towards_posture", "reach_targets", "reach_local_minimum"]

DAMPING_DECREASE = 0.3
DAMPING_INCREASE = 8.0
MIN_DAMPING = 1e-9
MIN_RETRY_DAMPING = 1e-3
"""Factors of the damping after success and failure, its least value, and its least value after a failure."""

MAX_DAMPING = 1e4
"""Damping times error (at most one) above which an attempt ends, since no step succeeds."""

MIN_RELATIVE_GRADIENT = 1e-4
"""Squared gradient, relative to the squared error, below which an attempt ends in a local minimum."""

INITIAL_POSTURE_FRACTION = 0.5
"""Fraction of the way to the posture that the first steps take."""

POSTURE_HALVING_STEPS = 20
"""Steps after which that fraction is halved; larger steps oscillate about a posture on a curved path."""

MAX_POSTURE_MERIT = 1e-2
"""Squared error up to which a step towards the posture may lead away from the targets."""

POSTURE_TOLERANCE = 1e-5
"""Distance of every coordinate [rad or m] from the best posture at which the search ends."""

FINAL_TARGET_STEPS = 15
"""Final steps of the search for a posture, towards the targets alone."""


class Reached(NamedTuple):
    """Configurations (rows, nq), their merits and largest errors, and the number of steps."""

    q: Array
    merit: Array
    error: Array
    iterations: Array


@final
@dataclass(frozen=True, slots=True)
class Reaching:
    """A batch of problems: `step(rows, q, damping, draw)` returns next q, merit, error, slope and length.

    `restart(attempt, q0, q)` returns the initial guess of a further attempt.
    """

    step: Callable[[Array, Array, Array, Array], tuple[Array, Array, Array, Array, Array]]
    restart: Callable[[int, Array, Array], Array]
    tolerance: float
    max_iterations: int
    restarts: int
    damping: float
    flat: float = MIN_RELATIVE_GRADIENT
    draw: float = 0.0
    """Fraction of the way to the posture that a step takes."""


def move_towards_posture(found: Reached, problem: Reaching) -> Reached:
    """Move converged samples along their remaining freedom towards the posture; a sample that would leave its
    targets stays.
    """
    rows = np.flatnonzero(found.error <= problem.tolerance)
    steps = 2 * problem.max_iterations + FINAL_TARGET_STEPS
    changed = dataclasses.replace(problem, draw=INITIAL_POSTURE_FRACTION, max_iterations=steps)
    more = _continue(found, rows, problem, changed)
    return _merge(found, rows, more, more.error <= problem.tolerance)


def reach_local_minimum(found: Reached, problem: Reaching) -> Reached:
    """Continue the samples that did not converge from their best iterate to the local minimum."""
    rows = np.flatnonzero(found.error > problem.tolerance)
    more = _continue(found, rows, problem, dataclasses.replace(problem, flat=0.0))
    return _merge(found, rows, more, more.merit < found.merit[rows])


def _continue(found: Reached, rows: Array, problem: Reaching, changed: Reaching) -> Reached:
    def step(some: Array, *rest: Array) -> tuple[Array, Array, Array, Array, Array]:
        return problem.step(rows[some], *rest)

    return reach_targets(found.q[rows], dataclasses.replace(changed, step=step, restarts=0))


def _merge(found: Reached, rows: Array, more: Reached, good: Array) -> Reached:
    q, merit, error, iterations = (x.copy() for x in found)
    better = rows[good]
    q[better], merit[better], error[better] = more.q[good], more.merit[good], more.error[good]
    iterations[rows] += more.iterations
    return Reached(q, merit, error, iterations)


def reach_targets(q0: Array, problem: Reaching) -> Reached:
    """Bring the rows of q0 to their targets by damped steps and restarts, as far as possible."""
    n = len(q0)
    found, best, least = q0.copy(), np.full(n, np.nan), np.full(n, np.inf)
    q, tried, merit = q0.copy(), q0.copy(), np.full(n, np.inf)
    damping, draw = np.full(n, problem.damping), np.full(n, problem.draw)
    iterations, begun, attempt = (np.zeros(n, dtype=np.int64) for _ in range(3))
    rows = np.flatnonzero(np.isfinite(q0).all(axis=1))
    while rows.size:
        less = np.maximum(DAMPING_DECREASE * damping[rows], MIN_DAMPING)
        following, new_merit, error, slope, length = problem.step(rows, tried[rows], less, draw[rows])
        allowed = merit[rows]
        if problem.draw:
            allowed = np.where(np.isfinite(allowed), np.maximum(allowed, MAX_POSTURE_MERIT), allowed)
        good = new_merit < allowed
        better, worse = rows[good], rows[~good]
        q[better], merit[better], tried[better] = tried[better], new_merit[good], following[good]
        damping[better] = less[good]
        ceiling = problem.draw * 0.5 ** (iterations[better] / POSTURE_HALVING_STEPS)
        draw[better] = np.minimum(1.5 * draw[better], ceiling)
        arrived = good & (error <= problem.tolerance)
        kept = arrived | (good & (new_merit < least[rows]) & ~(best[rows] <= problem.tolerance))
        found[rows[kept]], best[rows[kept]], least[rows[kept]] = q[rows[kept]], error[kept], new_merit[kept]
        if worse.size:
            damping[worse] = np.maximum(DAMPING_INCREASE * damping[worse], MIN_RETRY_DAMPING)
            draw[worse] *= 0.25
            tried[worse] = problem.step(worse, q[worse], damping[worse], draw[worse])[0]
        iterations[rows] += 1
        if problem.draw:
            draw[rows[iterations[rows] >= problem.max_iterations - FINAL_TARGET_STEPS]] = 0.0
        late = iterations[rows] - begun[rows] >= problem.max_iterations
        done = best[rows] <= problem.tolerance
        if problem.draw:
            done &= late | (arrived & (length <= POSTURE_TOLERANCE * np.maximum(draw[rows], 1e-3)))
        flat = good & (slope < problem.flat * new_merit) & ~(best[rows] <= problem.tolerance)
        hopeless = damping[rows] * np.minimum(merit[rows], 1.0) > MAX_DAMPING
        lost = ~np.isfinite(merit[rows])  # NaN from the start
        stuck = rows[~done & (late | flat | hopeless | lost)]
        attempt[stuck] += 1
        again = stuck[(attempt[stuck] <= problem.restarts) & np.isfinite(merit[stuck])]
        attempt[stuck[~np.isfinite(merit[stuck])]] = problem.restarts + 1
        for k in np.unique(attempt[again]):
            those = again[attempt[again] == k]
            tried[those] = problem.restart(int(k), q0[those], q[those])
            merit[those], damping[those] = np.inf, problem.damping
            draw[those], begun[those] = problem.draw, iterations[those]
        rows = rows[~done & (attempt[rows] <= problem.restarts)]
    return Reached(found, least, best, iterations)
