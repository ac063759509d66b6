"""How small is zero: the thresholds of every decision on rank, each in double and in single precision.

Rank is decided while a kernel runs, and a trace does not know the float type of the kernel that it becomes.
So the kernel is asked, and both numbers of a pair stand in it: `threshold(PAIR, size)`.

In single precision a row counts as dependent at 3e-3, in double precision already at 1e-5: noise in
overconstrained loops is far below, and a loop that is open by less does not lock.
"""

from __future__ import annotations

from typing import Final

from dalembert.scalar import Scalar, select

__all__ = [
    "CANCELLED",
    "DEPENDENT",
    "DEPENDENT_SQUARE",
    "NEGLIGIBLE",
    "NEGLIGIBLE_SQUARE",
    "is_double",
    "threshold",
]

DEPENDENT: Final = (1e-5, 3e-3)
"""A row depends on others where its distance from them is less than this part of the row."""

DEPENDENT_SQUARE: Final = (1e-10, 1e-5)
"""The same of squared distances, as the pivots of a Gram matrix are."""

NEGLIGIBLE: Final = (1e-12, 3e-6)
"""A row is zero but for rounding where it is less than this part of the longest row."""

NEGLIGIBLE_SQUARE: Final = (1e-24, 1e-11)
"""The same of squared lengths."""

CANCELLED: Final = (1e-10, 1e-5)
"""A difference is rounding where it is less than this part of the terms that it is made of."""


def threshold(pair: tuple[float, float], positive: Scalar) -> Scalar:
    """The number of a pair that belongs to the precision of a positive number."""
    return select(is_double(positive), *pair)


def is_double(positive: Scalar) -> Scalar:
    """Whether arithmetic is in double precision, asked of a positive number: is 1 + 1e-10 more than 1?"""
    return positive < positive * 1.0000000001
