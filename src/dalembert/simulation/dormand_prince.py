"""The method of Dormand and Prince, of order five with an error estimate of order four.

Seven stages, of which the last is the first of the next step; between the ends of a step a polynomial of
degree four through the same stages. Dormand & Prince 1980; Shampine 1986 for the polynomial; Hairer, Norsett
and Wanner, "Solving Ordinary Differential Equations I", sections II.4 to II.6, for step control.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, final

import numpy as np
import numpy.typing as npt

__all__ = ["Rate", "Span", "first_step", "next_factor", "stages"]

Array: TypeAlias = npt.NDArray[Any]
Rate: TypeAlias = Callable[[float, Array], Array]
"""dx/dt of (t, x)."""

NODES: Final = (0.0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0)
STAGES: Final = tuple(
    np.array(row)
    for row in (
        [1 / 5],
        [3 / 40, 9 / 40],
        [44 / 45, -56 / 15, 32 / 9],
        [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729],
        [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656],
        [35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84],
    )
)
ERROR: Final = np.array([71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40])
DENSE: Final = np.array(
    [
        [1.0, -8048581381 / 2820520608, 8663915743 / 2820520608, -12715105075 / 11282082432],
        [0.0, 0.0, 0.0, 0.0],
        [0.0, 131558114200 / 32700410799, -68118460800 / 10900136933, 87487479700 / 32700410799],
        [0.0, -1754552775 / 470086768, 14199869525 / 1410260304, -10690763975 / 1880347072],
        [0.0, 127303824393 / 49829197408, -318862633887 / 49829197408, 701980252875 / 199316789632],
        [0.0, -282668133 / 205662961, 2019193451 / 616988883, -1453857185 / 822651844],
        [0.0, 40617522 / 29380423, -110615467 / 29380423, 69997945 / 29380423],
    ]
)
"""Weights of the stages for each power of the elapsed fraction of the step."""

STEP_SAFETY_FACTOR: Final = 0.9
"""Steps are this fraction of the length whose estimated error is the tolerance (Hairer et al., II.4)."""
INTEGRAL, PROPORTIONAL = 0.7 / 5.0, 0.4 / 5.0
"""Exponents of the error of this step and of the one before, after Gustafsson."""

SHRINK, GROW = 0.2, 8.0


@final
@dataclass(frozen=True, slots=True)
class Span:
    """A step that was taken: from `start` [s] for `length` [s], x there, and the seven rates."""

    start: float
    length: float
    x: Array
    rates: Array

    def at(self, times: Array) -> Array:
        """Return x `(n, size)` at times `(n,)` within the step."""
        s = (times - self.start) / self.length
        powers = np.stack([s, s**2, s**3, s**4])
        return self.x + self.length * ((DENSE @ powers).T @ self.rates)


def stages(rate: Rate, t: float, x: Array, k1: Array, h: float) -> tuple[Array, Array, Array]:
    """Return x after a step, its error estimate, and the rates `(7, size)`."""
    K = np.empty((7, x.size))
    K[0] = k1
    there = x
    for i, (node, weights) in enumerate(zip(NODES[1:], STAGES, strict=True), start=1):
        there = x + h * (weights @ K[:i])
        K[i] = rate(t + node * h, there)
    return there, h * (ERROR @ K), K


def next_factor(error: float, before: float) -> float:
    """Return the ratio of the next step to this one, from the `error` of this step, 1 at the tolerance, and
    of the last.
    """
    if error == 0.0:
        return GROW
    if not np.isfinite(error):
        return SHRINK
    factor = STEP_SAFETY_FACTOR * error**-INTEGRAL * max(before, 1e-4) ** PROPORTIONAL
    return float(min(GROW, max(SHRINK, factor)))


def first_step(rate: Rate, t: float, x: Array, k1: Array, allowed: Callable[[Array], Array]) -> float:
    """Return a step in which explicit Euler errs by about the tolerance (Hairer et al., section II.4)."""

    def size(values: Array) -> float:
        return float(np.sqrt(np.mean((values / allowed(x)) ** 2))) if x.size else 0.0

    d0, d1 = size(x), size(k1)
    h0 = 1e-6 if d0 < 1e-5 or d1 < 1e-5 else 0.01 * d0 / d1
    d2 = size(rate(t + h0, x + h0 * k1) - k1) / h0
    steepest = max(d1, d2)
    h1 = max(1e-6, h0 * 1e-3) if steepest <= 1e-15 else (0.01 / steepest) ** 0.2
    return min(100.0 * h0, h1)
