"""Zero-phase low-pass: a second-order Butterworth filter run forward, then backward.

One pass has the gain 1 / sqrt(1 + (w / w_c)^4), both together 1 / (1 + (w / w_c)^4). That is 1/sqrt(2) at the
chosen cutoff if w_c is the cutoff divided by (sqrt(2) - 1)^(1/4) = 0.802 (Winter 2009, section 3.4.4.2), with
frequencies w = tan(pi f dt), as the bilinear transform maps them.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import numpy.typing as npt

from dalembert.call.arguments import as_array
from dalembert.errors import ArgumentError, ShapeError, own_errors, positive_number
from dalembert.model.checks import is_finite

__all__ = ["low_pass"]

Array = npt.NDArray[np.float64]

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
    numerator, denominator = _butterworth(math.tan(math.pi * cutoff * dt) / CUTOFF_RATIO)
    pad = min(math.ceil(MEMORY_HALF_PERIODS * nyquist / cutoff), len(values) - 1)
    before = 2.0 * values[0] - values[pad:0:-1]
    after = 2.0 * values[-1] - values[-2 : -pad - 2 : -1]
    extended = np.concatenate([before, values, after])
    forward = _recursive_filter(extended, numerator, denominator)
    both = _recursive_filter(forward[::-1], numerator, denominator)[::-1]
    return both[pad : pad + len(values)].copy()


def _butterworth(k: float) -> tuple[tuple[float, float, float], tuple[float, float]]:
    """Return b and (a1, a2) of 1 / (s^2 + sqrt(2) s + 1) under s = (1 - z) / (k (1 + z)), k = tan(w_c dt /
    2).
    """
    scale = 1.0 / (1.0 + math.sqrt(2.0) * k + k * k)
    b = k * k * scale
    return (b, 2.0 * b, b), (2.0 * (k * k - 1.0) * scale, (1.0 - math.sqrt(2.0) * k + k * k) * scale)


def _recursive_filter(x: Array, b: tuple[float, float, float], a: tuple[float, float]) -> Array:
    """Return y_i = b0 x_i + b1 x_{i-1} + b2 x_{i-2} - a1 y_{i-1} - a2 y_{i-2}, starting from the steady state
    of the first sample.
    """
    driven = b[0] * x
    driven[1:] += b[1] * x[:-1]
    driven[2:] += b[2] * x[:-2]
    driven[0] += (b[1] + b[2]) * x[0]
    driven[1:2] += b[2] * x[0]
    before, last = x[0], x[0]
    for i in range(len(driven)):
        driven[i] -= a[0] * last + a[1] * before
        before, last = last, driven[i]
    return driven
