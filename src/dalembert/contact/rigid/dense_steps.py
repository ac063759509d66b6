"""Integration steps that can be interpolated: a polynomial p(t) fitted to dy/dt over the step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal, TypeAlias, final

import numpy as np
import numpy.typing as npt

from dalembert.call.arguments import real_array, short_repr
from dalembert.errors import ArgumentError, DtypeError, own_errors, require_choice

__all__ = ["DenseStep", "dense_step", "fitted_step"]

Array: TypeAlias = npt.NDArray[Any]
Rate: TypeAlias = Callable[[Array, float], Any]
Method: TypeAlias = Literal["euler", "heun", "heun3"]

METHODS: dict[str, tuple[tuple[float, ...], tuple[tuple[float, ...], ...]]] = {
    "euler": ((0.0,), ((),)),
    "heun": ((0.0, 2 / 3), ((), (2 / 3,))),
    "heun3": ((0.0, 1 / 3, 2 / 3), ((), (1 / 3,), (0.0, 2 / 3))),
}
"""Nodes c_j, as fractions of the step, and the weights of earlier slopes in each stage."""


@final
@dataclass(frozen=True, eq=False)
class DenseStep:
    """A step of size `h` from `y0` at `t0`, known at every time in it: y(t) = y0 + integral of p from t0 to
    t.

    `slopes` k_j: the values of the polynomial p at the `nodes` (t - t0)/h. It may be shortened after the
    fact.
    """

    t0: float
    h: float
    y0: Array
    slopes: tuple[Array, ...]
    nodes: tuple[float, ...]
    part: float = 1.0

    @property
    def t1(self) -> float:
        """The time at which the step ends."""
        return self.t0 + self.part * self.h

    @property
    def y1(self) -> Array:
        """y at the end of the step."""
        return self.at(self.part)

    def at(self, delta: float) -> Array:
        """Return y at t0 + delta h, delta from 0 to 1 (Eq. 11.46)."""
        weights = _weights(self.nodes) @ (delta ** np.arange(1, len(self.nodes) + 1))
        y = self.y0.astype(np.float64)
        for weight, slope in zip(weights, self.slopes, strict=True):
            y = y + self.h * weight * slope
        return y

    def shortened(self, delta: float) -> DenseStep:
        """Return the same step, ended at t0 + delta h."""
        if not 0.0 <= delta <= 1.0:
            raise ArgumentError(f"a step is shortened to a part of it from 0 to 1, got {delta}")
        return replace(self, part=delta)


def dense_step(rate: Rate, y0: Any, t0: float, h: float, *, method: Method = "heun") -> DenseStep:
    """Take one step of dy/dt = f(y, t) that can be evaluated at every time in it.

    "euler": y(delta) = y0 + h k delta, of order 1. "heun": k2 at 2/3 of the step, y(delta) = y0 + h ((delta
    - 3/4 delta^2) k1 + 3/4 delta^2 k2), of order 2. "heun3": the parabola through slopes at 0, 1/3, 2/3, of
    order 3. `rate(y, t)`: f; `y0`: an array; `h` the step, `t0` its start, delta = (t - t0)/h.

    Source: Featherstone 2008 section 11.5, Eqs 11.45 to 11.51.

    >>> step = da.contact.dense_step(lambda y, t: np.array([2.0 * t]), [1.0], 0.0, 3.0)  # y = 1 + t^2
    >>> print(step.y1, step.at(1 / 3), step.shortened(2 / 3).t1)
    [10.] [2.] 2.0
    """
    require_choice("method", method, METHODS)
    if not callable(rate):
        raise DtypeError(f"rate is of type {type(rate).__name__}; give a function of (y, t)")
    y, t0, h = real_array("y0", y0), _number("t0", t0), _number("h", h)
    nodes, stages = METHODS[method]
    slopes: list[Array] = []
    for node, stage in zip(nodes, stages, strict=True):
        there = y + h * sum((part * k for part, k in zip(stage, slopes, strict=True)), np.zeros_like(y))
        slopes.append(np.asarray(rate(there, t0 + node * h), dtype=np.float64))
    return DenseStep(t0, h, y, tuple(slopes), nodes)


@own_errors
def fitted_step(y0: Any, t0: float, h: float, slopes: Sequence[Any], nodes: Sequence[float]) -> DenseStep:
    """Return the step whose p(t) is the polynomial through given slopes: y(t) = y0 + integral of p(t) dt.

    `slopes` k_j of dy/dt at t0 + nodes_j h, of any method that fits a polynomial: with nodes 0, -1, -2 the
    method of Adams and Bashforth of order three, from slopes of steps before.

    Source: Featherstone 2008 section 11.5, Eqs 11.45 and 11.46.

    >>> k = [np.array([3.0 * t * t]) for t in (2.0, 1.0, 0.0)]  # of y = t^3
    >>> step = da.contact.fitted_step([8.0], 2.0, 1.0, k, nodes=(0.0, -1.0, -2.0))
    >>> print(step.y1.round(12), step.at(0.5).round(12))
    [27.] [15.625]
    """
    start, t0, h = real_array("y0", y0), _number("t0", t0), _number("h", h)
    places = tuple(_number("a node", node) for node in nodes)
    if len(slopes) != len(places) or len(set(places)) != len(places) or not places:
        raise ArgumentError(f"a slope for each node, all of them different; got {len(slopes)} and {places}")
    values = tuple(real_array("a slope", k) for k in slopes)
    return DenseStep(t0, h, start, values, places)


def _number(name: str, value: object) -> float:
    """Return one finite number, of either sign."""
    number = real_array(name, value)
    if number.shape != () or not np.isfinite(number):
        raise ArgumentError(f"{name} is {short_repr(value)}; give a finite number")
    return float(number)


@cache
def _weights(nodes: tuple[float, ...]) -> Array:
    """Return the weights; row j: coefficients of delta, delta^2, … in the integral of Lagrange's polynomial j
    from 0 to delta."""
    powers = np.vander(nodes, increasing=True)  # row j: 1, c_j, c_j^2 …
    polynomials = np.linalg.inv(powers).T  # row j: coefficients of L_j
    return np.asarray(polynomials / np.arange(1, len(nodes) + 1))
