"""Uniform B-splines of the fifth degree whose ends are clamped: weights, derivatives, ends.

K knots divide [0, T] into K - 1 spans of the length h. On each of them six of the K + 4 control values count:

    x(t) = sum_i B_i(t) c_i,                                                                        (1)

four times continuously differentiable. At the ends all knots fall together, so that end values and rates
follow from the nearest control values alone, and these from the end values: with the unit of time h

    x = c_0,    x' = 5 (c_1 - c_0),    x'' = 10 (c_2 - c_1) - 20 (c_1 - c_0),                       (2)

and the same from the other end with time reversed. Values and rates given at both ends leave K control
values.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = [
    "SPLINE_DEGREE",
    "MIN_KNOTS",
    "ORDER",
    "SplinePoints",
    "end_controls",
    "gauss_points",
    "second_step",
    "smoothest_controls",
    "spline_points",
]

Array = npt.NDArray[np.float64]

SPLINE_DEGREE: Final = 5
ORDER: Final = SPLINE_DEGREE + 1
"""Number of control values that contribute at one time."""

MIN_KNOTS: Final = 4
"""With fewer knots there is no freedom left if accelerations are given at both ends."""


class SplinePoints(NamedTuple):
    """The times (m,) [s] on a spline, with the control values that contribute and their weights.

    `first (m,)`: the first of six contributing control values; `weights (m, 3, 6)` in x, x' [1/s], x''
    [1/s^2].
    """

    time: Array
    first: npt.NDArray[np.intp]
    weights: Array


def spline_points(knots: int, duration: float, time: Array) -> SplinePoints:
    """Return the weights of (1) at times (m,) in [0, duration] [s] for a spline with `knots` knots, ends
    included.
    """
    h = duration / (knots - 1)
    u = np.clip(np.asarray(time, float) / h, 0.0, knots - 1.0)
    span = np.minimum(np.floor(u), knots - 2).astype(np.intp)
    places = np.concatenate(
        [np.zeros(SPLINE_DEGREE), np.arange(float(knots)), np.full(SPLINE_DEGREE, knots - 1.0)]
    )
    weights = np.empty((len(u), 3, ORDER))
    for order in range(3):
        values = _values(places, span, u, SPLINE_DEGREE - order)
        for degree in range(SPLINE_DEGREE - order + 1, SPLINE_DEGREE + 1):
            values = _raise_degree(places, span, values, degree)
        weights[:, order] = values / h**order
    return SplinePoints(np.asarray(time, float), span, weights)


def gauss_points(knots: int, duration: float, each: int) -> tuple[SplinePoints, Array]:
    """Return `each` Gauss-Legendre points on each span, and their quadrature weights (m,) [s]."""
    nodes, shares = np.polynomial.legendre.leggauss(each)
    h = duration / (knots - 1)
    time = (np.arange(knots - 1)[:, None] + 0.5 * (nodes + 1.0)) * h
    return spline_points(knots, duration, time.ravel()), np.tile(0.5 * h * shares, knots - 1)


def smoothest_controls(knots: int, duration: float, start: Array, end: Array) -> Array:
    """Return control values (K + 4, n) of the spline with these ends that minimises the integral of x''^2.

    `start` and `end`: x, x' and optionally x'', (2 or 3, n). Without x'' the result is the cubic through both
    ends.
    """
    h = duration / (knots - 1)
    controls = np.zeros((knots + SPLINE_DEGREE - 1, start.shape[1]))
    controls[: len(start)] = end_controls(h, start)
    controls[len(controls) - len(end) :] = end_controls(-h, end)[::-1]
    points, shares = gauss_points(knots, duration, 3)  # exact: x'' is of the third degree
    rows = np.zeros((len(shares), len(controls)))
    for k in range(ORDER):
        rows[np.arange(len(shares)), points.first + k] = points.weights[:, 2, k] * np.sqrt(shares)
    free = slice(len(start), len(controls) - len(end))
    controls[free] = np.linalg.lstsq(rows[:, free], -rows @ controls, rcond=None)[0]
    return controls


def end_controls(h: float, given: Array) -> Array:
    """Return the control values (2 or 3, n) at the first end from x, x' and optionally x'', by (2); -h for
    the last end.
    """
    first = h / SPLINE_DEGREE * given[1]
    controls = [given[0], given[0] + first]
    if len(given) == 3:
        controls.append(controls[1] + second_step(h, first, given[2]))
    return np.array(controls)


def second_step(h: float, first: Array, rate: Array) -> Array:
    """Return c_2 - c_1 from c_1 - c_0 and x'', by (2)."""
    step: Array = 2.0 * first + h * h / 10.0 * rate
    return step


def _values(places: Array, span: npt.NDArray[np.intp], u: Array, degree: int) -> Array:
    """Return the degree + 1 basis functions that are not zero on the span, by the Cox–de Boor recursion."""
    values = np.ones((len(u), 1))
    for p in range(1, degree + 1):
        grown = np.zeros((len(u), p + 1))
        for k in range(p):
            left, right = places[span + SPLINE_DEGREE - p + 1 + k], places[span + SPLINE_DEGREE + 1 + k]
            share = values[:, k] / (right - left)
            grown[:, k] += (right - u) * share
            grown[:, k + 1] += (u - left) * share
        values = grown
    return values


def _raise_degree(places: Array, span: npt.NDArray[np.intp], values: Array, degree: int) -> Array:
    """Return the rates of the basis functions of a degree from values (or rates) of those one degree
    lower.
    """
    rates = np.zeros((len(values), degree + 1))
    for k in range(degree):
        left, right = places[span + SPLINE_DEGREE - degree + 1 + k], places[span + SPLINE_DEGREE + 1 + k]
        share = degree * values[:, k] / (right - left)
        rates[:, k] -= share
        rates[:, k + 1] += share
    return rates
