"""Thresholds of all decisions on rank, each in double and in single precision.

Rank is decided while a kernel runs, and a trace does not know the float type of the kernel that it becomes.
So the kernel tests it, and holds both numbers of a pair: `threshold(PAIR, size)`.

In single precision a row counts as dependent at 3e-3, in double precision already at 1e-5: noise in
overconstrained loops is far below, and a loop that is open by less does not lock.
"""

from __future__ import annotations

from typing import Final

from dalembert.scalar import Scalar, select

__all__ = [
    "CANCELLATION_RATIO",
    "DEPENDENT_ROW_RATIO",
    "DEPENDENT_ROW_RATIO_SQUARED",
    "NEGLIGIBLE_ROW_RATIO",
    "NEGLIGIBLE_ROW_RATIO_SQUARED",
    "is_double",
    "threshold",
]

DEPENDENT_ROW_RATIO: Final = (1e-5, 3e-3)
"""A row depends on others if its distance from their span is less than this fraction of its length."""

DEPENDENT_ROW_RATIO_SQUARED: Final = (1e-10, 1e-5)
"""The same for squared distances, such as the pivots of a Gram matrix."""

NEGLIGIBLE_ROW_RATIO: Final = (1e-12, 3e-6)
"""A row is zero up to rounding if its length is less than this fraction of the longest row."""

NEGLIGIBLE_ROW_RATIO_SQUARED: Final = (1e-24, 1e-11)
"""The same for squared lengths."""

CANCELLATION_RATIO: Final = (1e-10, 1e-5)
"""A difference is rounding error if it is less than this fraction of its terms."""


def threshold(pair: tuple[float, float], positive: Scalar) -> Scalar:
    """Return the number of a pair for the precision of a positive number."""
    return select(is_double(positive), *pair)


def is_double(positive: Scalar) -> Scalar:
    """Return whether the arithmetic of a positive number is in double precision: whether 1 + 1e-10 > 1."""
    return positive < positive * 1.0000000001
