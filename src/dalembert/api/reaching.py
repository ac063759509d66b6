"""The iteration behind `inverse_kinematics`: damped steps of the samples that have not arrived yet.

The kernel gives, for a configuration, how far it is and where the next step would lead. A step that makes
things worse is taken back and tried again with more damping. A sample that settles away from its targets,
in a dip of the error or between limits, starts again elsewhere: the n-th start is the same for every
sample, so that results do not depend on what else is in the batch.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np

from dalembert.api.calls import Array

__all__ = ["Reached", "Reaching", "drawn_to_posture", "reached", "settled"]

SHRINK = 0.3
GROW = 8.0
LEAST_DAMPING = 1e-9
RETRY_DAMPING = 1e-3
"""How damping changes with success and failure, its least value, and the least after a failure."""

HOPELESS_DAMPING = 1e4
"""Steps that fail even with this much damping, beside an error of one, end an attempt."""

FLAT = 1e-4
"""An attempt ends where the squared gradient is less than this part of the squared error."""

POSTURE_DRAW = 0.5
"""The part of the way to a posture that a step takes at first."""

POSTURE_HALVING = 20
"""Steps after which that part is halved, since larger ones swing about a posture where motions curve."""

POSTURE_ERROR = 1e-2
"""Squared error up to which a step along the freedom that is left may lead away from the targets."""

POSTURE_STEP = 1e-5
"""A posture counts as taken where no coordinate is farther than this from where it should be [rad or m]."""


RETURNING = 15
"""Steps at the end of the search for a posture that lead back to the targets alone."""


class Reached(NamedTuple):
    """Configurations (rows, nq), their merits and greatest errors, and the number of steps."""

    q: Array
    merit: Array
    error: Array
    iterations: Array


@final
@dataclass(frozen=True, slots=True)
class Reaching:
    """`step(rows, q, damping, draw)` gives next q, merit, error, slope and length, `restart(attempt, q0, q)`
    the start of a further attempt.
    """

    step: Callable[[Array, Array, Array, Array], tuple[Array, Array, Array, Array, Array]]
    restart: Callable[[int, Array, Array], Array]
    tolerance: float
    max_iterations: int
    restarts: int
    damping: float
    flat: float = FLAT
    draw: float = 0.0
    """The part of the way to a posture that a step takes."""


def drawn_to_posture(found: Reached, problem: Reaching) -> Reached:
    """Move converged samples along their remaining freedom towards the posture; a sample that would leave its
    targets stays.
    """
    rows = np.flatnonzero(found.error <= problem.tolerance)
    steps = 2 * problem.max_iterations + RETURNING
    changed = dataclasses.replace(problem, draw=POSTURE_DRAW, max_iterations=steps)
    more = _continued(found, rows, problem, changed)
    return _merged(found, rows, more, more.error <= problem.tolerance)


def settled(found: Reached, problem: Reaching) -> Reached:
    """Continue the samples that did not converge from their best iterate to the local minimum."""
    rows = np.flatnonzero(found.error > problem.tolerance)
    more = _continued(found, rows, problem, dataclasses.replace(problem, flat=0.0))
    return _merged(found, rows, more, more.merit < found.merit[rows])


def _continued(found: Reached, rows: Array, problem: Reaching, changed: Reaching) -> Reached:
    def step(some: Array, *rest: Array) -> tuple[Array, Array, Array, Array, Array]:
        return problem.step(rows[some], *rest)

    return reached(found.q[rows], dataclasses.replace(changed, step=step, restarts=0))


def _merged(found: Reached, rows: Array, more: Reached, good: Array) -> Reached:
    q, merit, error, iterations = (x.copy() for x in found)
    better = rows[good]
    q[better], merit[better], error[better] = more.q[good], more.merit[good], more.error[good]
    iterations[rows] += more.iterations
    return Reached(q, merit, error, iterations)


def reached(q0: Array, problem: Reaching) -> Reached:
    """Bring the rows of q0 to their targets by damped steps and restarts, as far as possible."""
    n = len(q0)
    found, best, least = q0.copy(), np.full(n, np.nan), np.full(n, np.inf)
    q, tried, merit = q0.copy(), q0.copy(), np.full(n, np.inf)
    damping, draw = np.full(n, problem.damping), np.full(n, problem.draw)
    iterations, begun, attempt = (np.zeros(n, dtype=np.int64) for _ in range(3))
    rows = np.flatnonzero(np.isfinite(q0).all(axis=1))
    while rows.size:
        less = np.maximum(SHRINK * damping[rows], LEAST_DAMPING)
        following, new_merit, error, slope, length = problem.step(rows, tried[rows], less, draw[rows])
        allowed = merit[rows]
        if problem.draw:
            allowed = np.where(np.isfinite(allowed), np.maximum(allowed, POSTURE_ERROR), allowed)
        good = new_merit < allowed
        better, worse = rows[good], rows[~good]
        q[better], merit[better], tried[better] = tried[better], new_merit[good], following[good]
        damping[better] = less[good]
        ceiling = problem.draw * 0.5 ** (iterations[better] / POSTURE_HALVING)
        draw[better] = np.minimum(1.5 * draw[better], ceiling)
        arrived = good & (error <= problem.tolerance)
        kept = arrived | (good & (new_merit < least[rows]) & ~(best[rows] <= problem.tolerance))
        found[rows[kept]], best[rows[kept]], least[rows[kept]] = q[rows[kept]], error[kept], new_merit[kept]
        if worse.size:
            damping[worse] = np.maximum(GROW * damping[worse], RETRY_DAMPING)
            draw[worse] *= 0.25
            tried[worse] = problem.step(worse, q[worse], damping[worse], draw[worse])[0]
        iterations[rows] += 1
        if problem.draw:
            draw[rows[iterations[rows] >= problem.max_iterations - RETURNING]] = 0.0
        late = iterations[rows] - begun[rows] >= problem.max_iterations
        done = best[rows] <= problem.tolerance
        if problem.draw:
            done &= late | (arrived & (length <= POSTURE_STEP * np.maximum(draw[rows], 1e-3)))
        flat = good & (slope < problem.flat * new_merit) & ~(best[rows] <= problem.tolerance)
        hopeless = damping[rows] * np.minimum(merit[rows], 1.0) > HOPELESS_DAMPING
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
