"""Products of lists of scalars: a . b, A x."""

from __future__ import annotations

from collections.abc import Sequence

from dalembert.scalar import Scalar

__all__ = ["dot", "times"]


def dot(a: Sequence[Scalar], b: Sequence[Scalar]) -> Scalar:
    """a . b; the literal 0.0 where there is nothing to add."""
    total: Scalar = 0.0
    for x, y in zip(a, b, strict=True):
        total = total + x * y
    return total


def times(matrix: Sequence[Sequence[Scalar]], x: Sequence[Scalar]) -> list[Scalar]:
    """A x, row by row."""
    return [dot(row, x) for row in matrix]
