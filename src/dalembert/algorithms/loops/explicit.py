"""All solutions x = G y + g of K x = k, by elimination on generic scalars: pivots are found through `select`.

Sizes are fixed and no index depends on a value, so that one straight-line program serves every sample,
of any rank.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dalembert.algorithms.dense import Matrix, dot, identity
from dalembert.algorithms.rank import DEPENDENT_ROW_RATIO, NEGLIGIBLE_ROW_RATIO, is_double
from dalembert.scalar import Scalar, absolute, is_zero, maximum, select

__all__ = ["ExplicitSolution", "explicit_solution", "row_scales"]


class ExplicitSolution(NamedTuple):
    """x = G y + g, all solutions of K x = k; y are those elements of x that are independent.

    To keep sizes fixed, y has the length of x: `independent` (n) is one for the elements that y takes from
    x, and zero for the others, whose columns of G (n, n) are zero.
    """

    G: Matrix
    g: list[Scalar]
    independent: list[Scalar]


def explicit_solution(
    K: Sequence[Sequence[Scalar]],
    k: Sequence[Scalar],
    *,
    independent: Sequence[int] | None = None,
) -> ExplicitSolution:
    """Solve K x = k as x = G y + g with K G = 0 and K g = k (Featherstone 2008 section 8.8, Eq. 8.51).

    Complete pivoting chooses the dependent elements, as many as K has rank; `independent` names the elements
    to be y instead, and partial pivoting then chooses among the rows. Elements that no row of K touches are
    independent from the start (the mask of section 8.8). K is solved block by block, a block for each loop
    cluster, and G has the same blocks (section 8.9). Rows are scaled to a largest entry of one before; what
    is below `rank.DEPENDENT_ROW_RATIO` then is not a pivot.
    """
    scales, double = row_scales(K)
    least = select(double, *DEPENDENT_ROW_RATIO)
    n = len(K[0]) if K else 0
    found = ExplicitSolution(identity(n), [0.0] * n, [1.0] * n)
    for block, columns in _blocks(K):
        rows = [
            [x if is_zero(x) else x * scales[i] for x in (*(K[i][j] for j in columns), k[i])] for i in block
        ]
        if independent is None:
            part = _block_solution(rows, list(range(len(columns))), least, complete=True)
        else:
            candidates = [c for c, j in enumerate(columns) if j not in independent]
            part = _block_solution(rows, candidates, least, complete=False)
        for r, j in enumerate(columns):
            found.g[j], found.independent[j] = part.g[r], part.independent[r]
            for c, l in enumerate(columns):
                found.G[j][l] = part.G[r][c]
    return found


def _blocks(K: Sequence[Sequence[Scalar]]) -> list[tuple[list[int], list[int]]]:
    """Return (rows, columns) of each block of K that shares neither with the others, a loop cluster."""
    blocks: list[tuple[list[int], set[int]]] = []
    for i, row in enumerate(K):
        columns = {j for j, x in enumerate(row) if not is_zero(x)}
        if columns:
            same = [block for block in blocks if block[1] & columns]
            merged = ([n for block in same for n in block[0]] + [i], columns.union(*(b[1] for b in same)))
            blocks = [block for block in blocks if not block[1] & columns] + [merged]
    return [(sorted(rows), sorted(columns)) for rows, columns in blocks]


def _block_solution(
    rows: Matrix, candidates: Sequence[int], least: Scalar, *, complete: bool
) -> ExplicitSolution:
    """Solve one block for x = G y + g, its rows ending with their right sides;
    `candidates` may be dependent."""
    n = len(rows[0]) - 1
    free_row: list[Scalar] = [1.0] * len(rows)
    free_column: list[Scalar] = [1.0 if j in candidates else 0.0 for j in range(n)]
    pivots: list[tuple[list[Scalar], list[Scalar]]] = []
    for step in range(min(len(rows), len(candidates)) if complete else len(candidates)):
        columns = candidates if complete else [candidates[step]]
        at_row, at_column = _largest(rows, free_row, free_column, columns, least)
        pivot_row = [dot(at_row, [row[j] for row in rows]) for j in range(n + 1)]
        pivot = dot([at_column[j] for j in columns], [pivot_row[j] for j in columns])
        found = _sum(at_row)
        inverse = 1.0 / (pivot + (1.0 - found))
        pivot_row = [x * inverse for x in pivot_row]
        rows = [
            _eliminate_pivot(row, at, pivot_row, at_column, columns)
            for row, at in zip(rows, at_row, strict=True)
        ]
        free_row = [f - at for f, at in zip(free_row, at_row, strict=True)]
        free_column = [f - at for f, at in zip(free_column, at_column, strict=True)]
        pivots.append((at_row, at_column))
    return _explicit_solution(rows, pivots, n)


def row_scales(K: Sequence[Sequence[Scalar]]) -> tuple[list[Scalar], Scalar]:
    """Return factors that make the largest entry of each row one, and whether the arithmetic is double.

    The factor is zero for rows of rounding errors (below 1e-12 of the largest row, in single precision 3e-6).
    """
    sizes = []
    for row in K:
        size: Scalar = 0.0
        for entry in row:
            if not is_zero(entry):
                size = maximum(size, absolute(entry))
        sizes.append(size)
    largest: Scalar = 0.0
    for size in sizes:
        largest = maximum(largest, size)
    double = is_double(largest)
    least = largest * select(double, *NEGLIGIBLE_ROW_RATIO)
    scales = []
    for size in sizes:
        real = least < size
        scales.append(select(real, 1.0 / select(real, size, 1.0), 0.0))
    return scales, double


def _largest(
    rows: Matrix,
    free_row: Sequence[Scalar],
    free_column: Sequence[Scalar],
    columns: Sequence[int],
    least: Scalar,
) -> tuple[list[Scalar], list[Scalar]]:
    """Return row and column of the largest entry, each as zeros with a single one; zeros if all are small."""
    best: Scalar = least
    at: list[tuple[int, int, Scalar]] = []
    for i, row in enumerate(rows):
        for j in columns:
            if not is_zero(row[j]):
                size = absolute(row[j]) * free_row[i] * free_column[j]
                larger = best < size
                best = select(larger, size, best)
                at.append((i, j, larger))
    at_row: list[Scalar] = [0.0] * len(rows)
    at_column: list[Scalar] = [0.0] * len(free_column)
    taken: Scalar = 0.0  # the last entry that was larger than all before it is the largest
    for i, j, larger in reversed(at):
        here = select(larger, 1.0 - taken, 0.0)
        at_row[i] = at_row[i] + here
        at_column[j] = at_column[j] + here
        taken = taken + here
    return at_row, at_column


def _eliminate_pivot(
    row: Sequence[Scalar],
    is_pivot_row: Scalar,
    pivot_row: Sequence[Scalar],
    at_column: Sequence[Scalar],
    columns: Sequence[int],
) -> list[Scalar]:
    """Subtract the multiple of the pivot row from a row; the pivot row itself is scaled to a pivot of one."""
    own = dot([at_column[j] for j in columns], [row[j] for j in columns])
    factor = own - is_pivot_row
    return [x if is_zero(y) else x - factor * y for x, y in zip(row, pivot_row, strict=True)]


def _explicit_solution(
    rows: Matrix, pivots: Sequence[tuple[list[Scalar], list[Scalar]]], n: int
) -> ExplicitSolution:
    """Return G = Q^T [-K11^-1 K12; 1], g = Q^T [K11^-1 k1; 0] of Eq. 8.51, from rows in which K11 is one."""
    dependent: list[Scalar] = [0.0] * n
    G: Matrix = [[0.0] * n for _ in range(n)]
    g: list[Scalar] = [0.0] * n
    for at_row, at_column in pivots:
        solved = [dot(at_row, [row[l] for row in rows]) for l in range(n + 1)]
        for j in range(n):
            if not is_zero(at_column[j]):
                dependent[j] = dependent[j] + at_column[j]
                g[j] = g[j] + at_column[j] * solved[n]
                G[j] = [
                    x if is_zero(s) else x - at_column[j] * s for x, s in zip(G[j], solved[:n], strict=True)
                ]
    independent = [1.0 - d for d in dependent]
    for j in range(n):
        G[j] = [x if is_zero(x) else x * independent[l] for l, x in enumerate(G[j])]
        G[j][j] = G[j][j] + independent[j]
    return ExplicitSolution(G, g, independent)


def _sum(values: Sequence[Scalar]) -> Scalar:
    total: Scalar = 0.0
    for value in values:
        total = total + value
    return total
