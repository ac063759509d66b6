"""Small dense matrices as lists of rows, on generic scalars: products, and the solution of linear systems.

Entries that are literal zeros are left out of sums, so that a product of sparse blocks costs what it must
even where nothing folds it afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence

from dalembert.scalar import Scalar, absolute, is_one, is_zero, select

__all__ = [
    "Matrix",
    "Rows",
    "Vector",
    "dot",
    "identity",
    "minus",
    "plus",
    "product",
    "reduced",
    "solve",
    "times",
    "transposed",
    "zeros",
]

Matrix = list[list[Scalar]]
Vector = list[Scalar]
Rows = Sequence[Sequence[Scalar]]


def dot(a: Sequence[Scalar], b: Sequence[Scalar]) -> Scalar:
    """a^T b."""
    total: Scalar = 0.0
    for x, y in zip(a, b, strict=True):
        if not (is_zero(x) or is_zero(y)):
            total = x * y if is_zero(total) else total + x * y
    return total


def times(A: Rows, x: Sequence[Scalar]) -> Vector:
    """A x."""
    return [dot(row, x) for row in A]


def product(A: Rows, B: Rows) -> Matrix:
    """A B."""
    columns = transposed(B)
    return [[dot(row, column) for column in columns] for row in A]


def transposed(A: Rows) -> Matrix:
    """A^T; that of a matrix without rows has none either."""
    return [list(column) for column in zip(*A, strict=True)]


def plus(A: Rows, B: Rows) -> Matrix:
    """A + B."""
    return [[x + y for x, y in zip(a, b, strict=True)] for a, b in zip(A, B, strict=True)]


def minus(A: Rows, B: Rows) -> Matrix:
    """A - B."""
    return [[x - y for x, y in zip(a, b, strict=True)] for a, b in zip(A, B, strict=True)]


def identity(n: int) -> Matrix:
    """1, of literals."""
    return [[1.0 if i == j else 0.0 for j in range(n)] for i in range(n)]


def zeros(rows: int, columns: int) -> Matrix:
    """0, of literals."""
    return [[0.0] * columns for _ in range(rows)]


def solve(A: Rows, B: Rows) -> Matrix:
    """X of A X = B, for any square A of full rank."""
    n = len(A)
    rows = reduced([[*a, *b] for a, b in zip(A, B, strict=True)], n)
    return [row[n:] for row in rows]


def reduced(rows: Rows, n: int) -> Matrix:
    """The rows after Gauss-Jordan elimination with row exchange: their first n columns become [1; 0].

    Which row is the pivot depends on values, so that rows are exchanged by `select`; where entries are
    numbers the exchange happens while tracing.
    """
    work = [list(row) for row in rows]
    for k in range(n):
        for i in range(k + 1, len(work)):
            if not is_zero(work[i][k]):
                larger = absolute(work[i][k]) > absolute(work[k][k])
                upper, lower = work[k], work[i]
                work[k] = [select(larger, y, x) for x, y in zip(upper, lower, strict=True)]
                work[i] = [select(larger, x, y) for x, y in zip(upper, lower, strict=True)]
        pivot = work[k][k]
        if not is_one(pivot):
            work[k] = [1.0 if j == k else x / pivot for j, x in enumerate(work[k])]
        for i, row in enumerate(work):
            if i != k and not is_zero(row[k]):
                factor = row[k]
                work[i] = [
                    0.0 if j == k else x if is_zero(y) else x - factor * y
                    for j, (x, y) in enumerate(zip(row, work[k], strict=True))
                ]
    return work
