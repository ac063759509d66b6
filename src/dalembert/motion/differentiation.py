"""Velocities and accelerations of sampled motions: splines, filters, and the joints' manifolds.

The slopes m of the C2 cubic spline through (t_i, y_i), with h_i = t_{i+1} - t_i and d_i = (y_{i+1} - y_i) /
h_i, obey

    h_i m_{i-1} + 2 (h_{i-1} + h_i) m_i + h_{i-1} m_{i+1} = 3 (h_i d_{i-1} + h_{i-1} d_i)       (1)

On even nodes m = y' - h^4 y^(5) / 180 + O(h^6). The two end slopes are those of the polynomial p through the
six samples there, given the same error:

    m_end = p' - h^4 p^(5) / 180                                                                (2)

so that the error varies smoothly, and slopes of slopes are accelerations to the fourth order, the ends
included; the second derivative of the spline itself would be of second order only.

A joint relates the rates of its position variables to its velocity by dq/dt = Q(q) v. The rates are the
slopes of splines through the samples of q, and

    v = (Q^T Q)^-1 Q^T dq/dt                                                                    (3)

which removes the component of a spline through unit quaternions that leaves the unit sphere. v consists of
scalar functions of time, body components included, and `a` is its derivative component by component: the
slopes of splines through v. Both are of fourth order in the time between frames.
"""

from __future__ import annotations

import importlib
import math
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from dalembert.call.arguments import as_array
from dalembert.errors import ArgumentError, MissingExtraError, ShapeError, own_errors, positive_number
from dalembert.model.body import Body
from dalembert.model.checks import is_finite
from dalembert.model.configuration import unit_quaternions
from dalembert.model.model import Model

Array = npt.NDArray[np.float64]

END_POINTS: Final = 6
"""Samples that give the slope at an end."""


def spline_slopes(time: Array, values: Array) -> Array:
    """Return dy/dt at the nodes `time (T,)` of the spline through `values (T, n)`; zero for one sample."""
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
    pivot = 2.0 * (below + above)
    right = slopes[1:-1]
    right[:] = 3.0 * (h[1:] * d[:-1] + h[:-1] * d[1:])  # (1)
    right[0] -= below[0] * slopes[0]
    right[-1] -= above[-1] * slopes[-1]
    # Elimination without pivoting, since (1) is diagonally dominant.
    for i in range(1, len(pivot)):
        factor = below[i] / pivot[i - 1]
        pivot[i] -= factor * above[i - 1]
        right[i] -= factor * right[i - 1]
    right[-1] /= pivot[-1]
    for i in range(len(pivot) - 2, -1, -1):
        right[i] = (right[i] - above[i] * right[i + 1]) / pivot[i]
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


def velocities_and_accelerations(model: Model, time: Array, q: Array) -> tuple[Array, Array]:
    """Return v and a, (T, nv) each, of the continuous motion q (T, nq) at increasing times (T,) [s]."""
    rates = spline_slopes(time, q)
    v = np.zeros((len(time), model.nv))
    for body in _moving(model):
        Q = _rate_matrix(body, q)
        right = np.einsum("tij,ti->tj", Q, rates[:, body.q_slice])
        v[:, body.v_slice] = np.linalg.solve(np.einsum("tij,tik->tjk", Q, Q), right[..., None])[..., 0]  # (3)
    return v, spline_slopes(time, v)


def position_rates(model: Model, q: Array, v: Array) -> Array:
    """Return dq/dt = Q(q) v, (T, nq)."""
    rates = np.zeros_like(q)
    for body in _moving(model):
        rates[:, body.q_slice] = np.einsum("tij,tj->ti", _rate_matrix(body, q), v[:, body.v_slice])
    return rates


def continuous(model: Model, q: Array) -> Array:
    """Return the same configurations without jumps: quaternion signs are aligned, angles unwrapped."""
    result = q.copy()
    for quaternion in (result[:, place] for place in unit_quaternions(model)):
        sign = np.where(np.einsum("ti,ti->t", quaternion[1:], quaternion[:-1]) < 0.0, -1.0, 1.0)
        quaternion[1:] *= np.cumprod(sign)[:, None]
    for body in _moving(model):
        for k, kind in enumerate(body.joint.coordinates):
            if kind == "angle":
                angle = result[:, body.q_slice.start + k]
                angle[:] = np.unwrap(angle)
    return result


def normalize_quaternions(model: Model, q: Array) -> Array:
    """Return q with its quaternions scaled to unit norm."""
    result = q.copy()
    for quaternion in (result[:, place] for place in unit_quaternions(model)):
        quaternion /= np.linalg.norm(quaternion, axis=1)[:, None]
    return result


def _moving(model: Model) -> list[Body]:
    return [body for body in model.bodies if body.v_slice.stop > body.v_slice.start]


def _rate_matrix(body: Body, q: Array) -> Array:
    """Return Q(q) (T, nq, nv) of one joint."""
    joint = body.joint
    own = list(q[:, body.q_slice].T)
    Q = np.empty((len(q), joint.nq, joint.nv))
    for k, unit in enumerate(np.eye(joint.nv).tolist()):
        for i, rate in enumerate(joint.position_rate(own, unit)):
            Q[:, i, k] = rate
    return Q


CUTOFF_RATIO: Final = (math.sqrt(2.0) - 1.0) ** 0.25
"""Factor by which the second pass lowers the frequency where the gain is 1/sqrt(2)."""

MEMORY_HALF_PERIODS: Final = 8.0
"""Half periods of the cutoff after which the impulse response has decayed to nine digits."""


@own_errors
def low_pass(values: Array, dt: float, cutoff: float) -> Array:
    """Filter samples (T, n), dt [s] apart, by a zero-phase low-pass with the cutoff frequency [Hz].

    A wave of frequency f keeps the fraction g = 1 / (1 + (sqrt(2) - 1) (w / w_0)^4) of its amplitude, where w
    = tan(pi f dt) and w_0 is that of the cutoff, so that g = 1/sqrt(2) there. The ends are extended by point
    reflection over the length of the filter's memory. This draws accelerations to zero at both ends, over
    about a period of the cutoff. Winter (2009), "Biomechanics and motor control of human movement", section
    3.4.4.2: second-order Butterworth filter, forward and backward.

    >>> t = 0.01 * np.arange(400)[:, None]
    >>> smooth = da.motion.low_pass(np.sin(2.0 * t) + 0.1 * np.sin(200.0 * t), dt=0.01, cutoff=6.0)
    >>> print(np.abs(smooth - np.sin(2.0 * t))[50:-50].max() < 0.001)
    True
    """
    values = as_array("values", values, ())
    if values.ndim < 1 or not len(values):
        raise ShapeError(f"low_pass: values has the shape {values.shape}; give samples (T, n)")
    dt = positive_number("low_pass: dt", dt, "s")
    nyquist = 0.5 / dt
    if not (is_finite(cutoff) and 0.0 < cutoff < nyquist):
        raise ArgumentError(
            f"cutoff is {cutoff!r} Hz; for frames every {dt:.6g} s it must lie between 0 and {nyquist:.6g} Hz"
        )
    signal = scipy_module("signal", "low_pass filters")
    critical = math.tan(math.pi * cutoff * dt) / CUTOFF_RATIO
    b, a = signal.butter(2, 2.0 / math.pi * math.atan(critical))
    pad = min(math.ceil(MEMORY_HALF_PERIODS * nyquist / cutoff), len(values) - 1)
    filtered: Array = signal.filtfilt(b, a, values, axis=0, padtype="odd", padlen=pad)
    return filtered


def scipy_module(name: str, purpose: str) -> Any:
    """Return a module of SciPy; an error that names the extra if it is not installed."""
    try:
        return importlib.import_module(f"scipy.{name}")
    except ImportError as error:
        raise MissingExtraError(
            f"{purpose} with SciPy, which is not installed; pip install 'dalembert[motion]' or pip install "
            "scipy"
        ) from error
