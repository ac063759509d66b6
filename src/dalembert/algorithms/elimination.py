"""Elimination on generic scalars: pivots are found through `select`.

Sizes are fixed and no index depends on a value, so that one straight-line program serves every sample.
"""

from __future__ import annotations

from dalembert.algorithms.dense import Matrix, Rows
from dalembert.scalar import absolute, is_one, is_zero, select

__all__ = ["reduce_rows", "solve"]


def solve(A: Rows, B: Rows) -> Matrix:
    """Solve A X = B for X, for any square A of full rank."""
    n = len(A)
    rows = reduce_rows([[*a, *b] for a, b in zip(A, B, strict=True)], n)
    return [row[n:] for row in rows]


def reduce_rows(rows: Rows, n: int) -> Matrix:
    """Reduce rows by Gauss-Jordan elimination with row exchange: the first n columns become [1; 0].

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
