"""Vectors and matrices as lists of generic scalars: sums and products, of any size.

Entries that are literal zeros are left out of sums, so that a product of sparse blocks costs what it must
even where nothing folds it afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence

from dalembert.scalar import Scalar, is_zero

__all__ = [
    "Matrix",
    "Rows",
    "Vector",
    "dot",
    "identity",
    "minus",
    "symmetric_from_lower",
    "plus",
    "product",
    "symmetric_product",
    "times",
    "transpose",
    "unit",
    "zeros",
]

Matrix = list[list[Scalar]]
"""By rows."""
Vector = list[Scalar]
Rows = Sequence[Sequence[Scalar]]
"""A matrix that is only read."""


def dot(a: Sequence[Scalar], b: Sequence[Scalar]) -> Scalar:
    """Return a^T b; the literal 0.0 if there is nothing to add."""
    total: Scalar = 0.0
    for x, y in zip(a, b, strict=True):
        if not (is_zero(x) or is_zero(y)):
            total = x * y if is_zero(total) else total + x * y
    return total


def times(A: Rows, x: Sequence[Scalar]) -> Vector:
    """Return A x."""
    return [dot(row, x) for row in A]


def product(A: Rows, B: Rows) -> Matrix:
    """Return A B."""
    columns = transpose(B)
    return [[dot(row, column) for column in columns] for row in A]


def symmetric_product(A: Rows, B: Rows) -> Matrix:
    """Return A B^T, which is known to be symmetric: half of it is computed."""
    lower = [[dot(A[i], B[j]) for j in range(i + 1)] for i in range(len(A))]
    return symmetric_from_lower(lower)


def symmetric_from_lower(lower: Rows) -> Matrix:
    """Return the symmetric matrix with this lower triangle."""
    n = len(lower)
    return [[lower[max(i, j)][min(i, j)] for j in range(n)] for i in range(n)]


def transpose(A: Rows) -> Matrix:
    """Return A^T; a matrix without rows has a transpose without rows."""
    return [list(column) for column in zip(*A, strict=True)]


def plus(A: Rows, B: Rows) -> Matrix:
    """Return A + B."""
    return [[x + y for x, y in zip(a, b, strict=True)] for a, b in zip(A, B, strict=True)]


def minus(A: Rows, B: Rows) -> Matrix:
    """Return A - B."""
    return [[x - y for x, y in zip(a, b, strict=True)] for a, b in zip(A, B, strict=True)]


def identity(n: int) -> Matrix:
    """Return the unit matrix, of literals."""
    return [unit(n, i) for i in range(n)]


def unit(n: int, i: int) -> Vector:
    """Return column i of the identity, of literals."""
    return [1.0 if k == i else 0.0 for k in range(n)]


def zeros(rows: int, columns: int) -> Matrix:
    """Return the zero matrix, of literals."""
    return [[0.0] * columns for _ in range(rows)]
