"""The coefficients of exponential maps as functions of the angle, their inverses and Jacobians.

All of them are smooth functions of s = t^2, t the angle [rad]. Where s < 1/4 they are summed as power
series, elsewhere computed in closed form, and `select` joins the two. The closed form is kept away from 0/0,
so that no kind of scalar meets a NaN at zero, and no digits cancel. The angle's root and its sines are
shared.
"""

from __future__ import annotations

from functools import cached_property
from itertools import accumulate
from typing import Final, final

from dalembert.host.forks import renew_after_fork
from dalembert.scalar import Scalar, cos, select, sin, sqrt

__all__ = ["ExponentialCoefficients", "polynomial"]

SMALL_ANGLE_SQUARED: Final = 0.25
"""s [rad^2] below which the series are used: seven terms leave less than a rounding of float64."""


def polynomial(coefficients: tuple[float, ...], x: Scalar) -> Scalar:
    """Return coefficients[0] + coefficients[1] x + ..., by Horner's scheme."""
    total: Scalar = coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        total = total * x + coefficient
    return total


def _alternating(n: int, *, terms: int = 7, scale: float = 1.0) -> tuple[float, ...]:
    """Return 1/n!, -scale/(n+2)!, scale^2/(n+4)!, ...:
    the functions below differ by the first factorial only."""
    factorials = list(accumulate(range(1, n + 2 * terms), lambda product, k: product * k, initial=1))
    return tuple((-scale) ** k / factorials[n + 2 * k] for k in range(terms))


def _derivative(coefficients: tuple[float, ...]) -> tuple[float, ...]:
    """Return the coefficients of the polynomial's derivative."""
    return tuple(k * c for k, c in enumerate(coefficients) if k)


_HALF_COSINE: Final = _alternating(0, scale=0.25)
_HALF_SINE: Final = _alternating(1, terms=6, scale=0.25)
_A: Final = _alternating(1)
_C: Final = _alternating(3)
_D: Final = (
    1 / 12, 1 / 720, 1 / 30240, 1 / 1209600, 1 / 47900160, 691 / 1307674368000, 1 / 74724249600,
)  # fmt: skip
_E: Final = _alternating(4)
_F: Final = _alternating(5)
_B_RATE: Final = _derivative(_alternating(2, terms=8))
_C_RATE: Final = _derivative(_alternating(3, terms=8))


@final
class ExponentialCoefficients:
    """The coefficients at one s = t^2, each computed once, when first read.

    A = sin t / t              B = (1 - cos t) / t^2          C = (t - sin t) / t^3 = (1 - A) / s
    D = (1 - A/(2B)) / t^2     E = (1/2 - B) / s              F = (1/6 - C) / s
    """

    def __init__(self, s: Scalar) -> None:
        self._s = s
        self._small = s < SMALL_ANGLE_SQUARED
        self._safe = select(self._small, 1.0, s)
        self._angle = sqrt(self._safe)

    def _series_or_closed_form(self, series: tuple[float, ...], closed: Scalar) -> Scalar:
        return select(self._small, polynomial(series, self._s), closed)

    @cached_property
    def half_cosine(self) -> Scalar:
        """cos(t/2)."""
        return self._series_or_closed_form(_HALF_COSINE, cos(0.5 * self._angle))

    @cached_property
    def half_sine(self) -> Scalar:
        """sin(t/2) / (t/2)."""
        half = 0.5 * self._angle
        return self._series_or_closed_form(_HALF_SINE, sin(half) / half)

    @cached_property
    def A(self) -> Scalar:
        """sin t / t."""
        return self._series_or_closed_form(_A, sin(self._angle) / self._angle)

    @cached_property
    def B(self) -> Scalar:
        """(1 - cos t) / s, by the half angle, as nothing cancels there."""
        return 0.5 * self.half_sine * self.half_sine

    @cached_property
    def C(self) -> Scalar:
        """(1 - A) / s."""
        return self._series_or_closed_form(_C, (1.0 - self.A) / self._safe)

    @cached_property
    def D(self) -> Scalar:
        """(1 - A/(2B)) / s."""
        return self._series_or_closed_form(_D, (1.0 - self.A / (2.0 * self.B)) / self._safe)

    @cached_property
    def E(self) -> Scalar:
        """(1/2 - B) / s."""
        return self._series_or_closed_form(_E, (0.5 - self.B) / self._safe)

    @cached_property
    def F(self) -> Scalar:
        """(1/6 - C) / s."""
        return self._series_or_closed_form(_F, (1 / 6 - self.C) / self._safe)

    @cached_property
    def B_rate(self) -> Scalar:
        """dB/ds = (A - 2B) / (2s)."""
        return self._series_or_closed_form(_B_RATE, (self.A - 2.0 * self.B) / (2.0 * self._safe))

    @cached_property
    def C_rate(self) -> Scalar:
        """dC/ds = (B - 3C) / (2s)."""
        return self._series_or_closed_form(_C_RATE, (self.B - 3.0 * self.C) / (2.0 * self._safe))


for _property in vars(ExponentialCoefficients).values():
    if isinstance(_property, cached_property) and hasattr(_property, "lock"):  # up to Python 3.11
        renew_after_fork(_property, "lock")
