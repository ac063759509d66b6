"""Cubic splines through samples: slopes at the nodes, and values between them.

The slopes m of the C2 cubic spline through (t_i, y_i), with h_i = t_{i+1} - t_i and d_i = (y_{i+1} - y_i) /
h_i, obey

    h_i m_{i-1} + 2 (h_{i-1} + h_i) m_i + h_{i-1} m_{i+1} = 3 (h_i d_{i-1} + h_{i-1} d_i)       (1)

On even nodes m = y' - h^4 y^(5) / 180 + O(h^6). The two end slopes are those of the polynomial p through the
six samples there, given the same error:

    m_end = p' - h^4 p^(5) / 180                                                                (2)

so that the error varies smoothly, and slopes of slopes are accelerations to the fourth order, the ends
included; the second derivative of the spline itself would be of second order only.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import numpy.typing as npt

from dalembert.errors import ArgumentError

__all__ = ["hermite", "spline_slopes"]

Array = npt.NDArray[np.float64]

END_POINTS: Final = 6
"""Samples that give the slope at an end."""


def spline_slopes(time: Array, values: Array) -> Array:
    """Return dy/dt at the increasing nodes `time (T,)` of the spline through `values (T, n)`; zero for one
    sample.
    """
    count = len(time)
    if count < 2:
        return np.zeros_like(values)
    slopes = np.empty_like(values)
    near = min(count, END_POINTS)
    slopes[0] = _weights(time[:near] - time[0]) @ values[:near]
    slopes[-1] = _weights(time[-near:] - time[-1]) @ values[-near:]
    if count == 2:
        return slopes
    h = np.diff(time)[:, None]
    d = np.diff(values, axis=0) / h
    below, above = h[1:, 0], h[:-1, 0]
    diagonal = 2.0 * (below + above)
    slopes[1:-1] = 3.0 * (h[1:] * d[:-1] + h[:-1] * d[1:])  # (1)
    slopes[1] -= below[0] * slopes[0]
    slopes[-2] -= above[-1] * slopes[-1]
    _solve_tridiagonal(below, diagonal, above, slopes[1:-1])
    return slopes


def hermite(time: Array, values: Array, slopes: Array, at: Array) -> Array:
    """Interpolate at times (m,) by the piecewise cubic with these values and slopes (T, n) at the nodes."""
    if len(time) < 2:
        return np.repeat(values, len(at), axis=0)
    k = np.clip(np.searchsorted(time, at, side="right") - 1, 0, len(time) - 2)
    h = (time[k + 1] - time[k])[:, None]
    s = (at - time[k])[:, None] / h
    y0, y1, m0, m1 = values[k], values[k + 1], h * slopes[k], h * slopes[k + 1]
    # Seen from the nearer end, so that at a node the result is the node's value to the last bit.
    rise = y1 - y0
    r = 1.0 - s
    from_left = y0 + s * (m0 + s * ((3.0 * rise - 2.0 * m0 - m1) + s * (m0 + m1 - 2.0 * rise)))
    from_right = y1 - r * (m1 - r * ((2.0 * m1 + m0 - 3.0 * rise) + r * (2.0 * rise - m0 - m1)))
    return np.where(s <= 0.5, from_left, from_right)


def _weights(x: Array) -> Array:
    """Return the weights of the samples at x in the end slope (2) at 0."""
    size = float(np.max(np.abs(x)))
    powers = (x / size)[None, :] ** np.arange(len(x))[:, None]
    derivative = np.zeros(len(x))  # of the powers of x / size at 0, all but two of them zero
    derivative[1] = 1.0 / size
    if len(x) == END_POINTS:
        h = float(np.min(np.abs(x[x != 0.0])))
        derivative[5] = -((h / size) ** 4) / 180.0 * math.factorial(5) / size  # (2), any unit of time
    try:
        weights: Array = np.asarray(np.linalg.solve(powers, derivative), np.float64)
    except np.linalg.LinAlgError as error:  # two times agree in all digits beside the largest
        raise ArgumentError(
            f"the times {x.tolist()} [s], from the end of a motion, are spaced too unevenly to be "
            "differentiated; resample the motion"
        ) from error
    return weights


def _solve_tridiagonal(below: Array, diagonal: Array, above: Array, right: Array) -> None:
    """Solve the tridiagonal system in place of `right`, without pivoting; (1) is diagonally dominant."""
    pivot = diagonal.copy()
    for i in range(1, len(pivot)):
        factor = below[i] / pivot[i - 1]
        pivot[i] -= factor * above[i - 1]
        right[i] -= factor * right[i - 1]
    right[-1] /= pivot[-1]
    for i in range(len(pivot) - 2, -1, -1):
        right[i] = (right[i] - above[i] * right[i + 1]) / pivot[i]
