"""Factors of the joint-space inertia matrix that keep its branch-induced zeros (Featherstone 2008 §6.5).

H_ij is zero unless one of the two joint variables supports the other. With the *expanded* parent array
lambda (one entry a joint variable, -1 for none) row k of H has nonzero elements below the diagonal only in
columns lambda(k), lambda(lambda(k)), …, and so do the factors H = L^T L and H = L^T D L: no element is
filled in. All functions read the lower triangle only, return new lists, and cost exactly what Table 6.6
says:

    LTL   factor n sqrt + D1 d + D2 (m + a);   solve 2 n d + 2 D1 (m + a);   L x, L^T x  n m + D1 (m + a)
    LTDL  factor          D1 d + D2 (m + a);   solve   n d + 2 D1 (m + a);   L x, L^T x        D1 (m + a)
    H x   n m + 2 D1 (m + a)                   L^-1 x and L^-T x: half of the solve (LTDL: without the n d)

where D1 = sum of (d_k - 1), D2 = sum of d_k (d_k - 1) / 2, d_k the number of joint variables from k to the
base.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dalembert.algorithms.dense import Matrix
from dalembert.scalar import Scalar, Scalars, sqrt


def expanded_parents(parents: Sequence[int], freedoms: Sequence[int]) -> list[int]:
    """Return the parent of every joint *variable*: a joint of n freedoms is a chain of n arcs (Table 6.4).

    `parents`: parent body of each body, -1 for the world, with parents[i] < i; `freedoms`: nv of each
    joint, zero for a fixed one. A body's first variable follows the last variable on the way to the world,
    which skips fixed joints.
    """
    last: list[int] = []
    result: list[int] = []
    for parent, freedom in zip(parents, freedoms, strict=True):
        above = last[parent] if parent >= 0 else -1
        for _ in range(freedom):
            result.append(above)
            above = len(result) - 1
        last.append(above)
    return result


def ancestors(lam: Sequence[int], k: int) -> Iterator[int]:
    """Yield lambda(k), lambda(lambda(k)), … up to the base, nearest first."""
    i = lam[k]
    while i >= 0:
        yield i
        i = lam[i]


def depths(lam: Sequence[int]) -> list[int]:
    """Return d_k: the number of joint variables on the path from k to the base, k itself included."""
    result: list[int] = []
    for parent in lam:
        result.append(1 + (result[parent] if parent >= 0 else 0))
    return result


def operation_sums(lam: Sequence[int]) -> tuple[int, int]:
    """Return (D1, D2) of Eqs 6.26 and 6.27. H has n + 2 D1 nonzero elements."""
    d = depths(lam)
    return sum(d_k - 1 for d_k in d), sum(d_k * (d_k - 1) // 2 for d_k in d)


def factor_ltl(H: Sequence[Scalars], lam: Sequence[int]) -> Matrix:
    """Return the lower-triangular L of H = L^T L, for a symmetric positive-definite H (Table 6.3)."""
    L = _lower_triangle(H, lam)
    for k in reversed(range(len(lam))):
        L[k][k] = sqrt(L[k][k])
        for i in ancestors(lam, k):
            L[k][i] = L[k][i] / L[k][k]
        for i in ancestors(lam, k):
            for j in (i, *ancestors(lam, i)):
                L[i][j] = L[i][j] - L[k][i] * L[k][j]
    return L


def factor_ltdl(H: Sequence[Scalars], lam: Sequence[int]) -> tuple[Matrix, list[Scalar]]:
    """Return the unit lower-triangular L and the diagonal D of H = L^T D L (Table 6.3)."""
    L = _lower_triangle(H, lam)
    for k in reversed(range(len(lam))):
        for i in ancestors(lam, k):
            a = L[k][i] / L[k][k]
            for j in (i, *ancestors(lam, i)):
                L[i][j] = L[i][j] - a * L[k][j]
            L[k][i] = a
    D = [L[k][k] for k in range(len(lam))]
    for k in range(len(lam)):
        L[k][k] = 1.0
    return L, D


def factor_with_reciprocals(H: Sequence[Scalars], lam: Sequence[int]) -> tuple[Matrix, list[Scalar]]:
    """Return L and 1/D of H = L^T D L: n d + D1 m instead of D1 d, since divisions are slow."""
    L = _lower_triangle(H, lam)
    reciprocals: list[Scalar] = [0.0] * len(lam)
    for k in reversed(range(len(lam))):
        reciprocals[k] = 1.0 / L[k][k]
        for i in ancestors(lam, k):
            a = L[k][i] * reciprocals[k]
            for j in (i, *ancestors(lam, i)):
                L[i][j] = L[i][j] - a * L[k][j]
            L[k][i] = a
    for k in range(len(lam)):
        L[k][k] = 1.0
    return L, reciprocals


def multiply_l(L: Matrix, lam: Sequence[int], x: Scalars, *, unit: bool = False) -> list[Scalar]:
    """Return L x (Table 6.5). `unit`: the diagonal of L is one and is not read."""
    y = list(x) if unit else [L[i][i] * x_i for i, x_i in enumerate(x)]
    for i in range(len(lam)):
        for j in ancestors(lam, i):
            y[i] = y[i] + L[i][j] * x[j]
    return y


def multiply_l_transposed(L: Matrix, lam: Sequence[int], x: Scalars, *, unit: bool = False) -> list[Scalar]:
    """Return L^T x (Table 6.5)."""
    y = list(x) if unit else [L[i][i] * x_i for i, x_i in enumerate(x)]
    for i in range(len(lam)):
        for j in ancestors(lam, i):
            y[j] = y[j] + L[i][j] * x[i]
    return y


def multiply_h(H: Sequence[Scalars], lam: Sequence[int], x: Scalars) -> list[Scalar]:
    """Return H x from the lower triangle of H (Table 6.5)."""
    y = [H[i][i] * x_i for i, x_i in enumerate(x)]
    for i in range(len(lam)):
        for j in ancestors(lam, i):
            y[i] = y[i] + H[i][j] * x[j]
            y[j] = y[j] + H[i][j] * x[i]
    return y


def solve_l(L: Matrix, lam: Sequence[int], x: Scalars, *, unit: bool = False) -> list[Scalar]:
    """Return L^-1 x (Table 6.5)."""
    y = list(x)
    for i in range(len(lam)):
        for j in ancestors(lam, i):
            y[i] = y[i] - L[i][j] * y[j]
        if not unit:
            y[i] = y[i] / L[i][i]
    return y


def solve_l_transposed(L: Matrix, lam: Sequence[int], x: Scalars, *, unit: bool = False) -> list[Scalar]:
    """Return L^-T x (Table 6.5)."""
    y = list(x)
    for i in reversed(range(len(lam))):
        if not unit:
            y[i] = y[i] / L[i][i]
        for j in ancestors(lam, i):
            y[j] = y[j] - L[i][j] * y[i]
    return y


def solve_ltl(L: Matrix, lam: Sequence[int], b: Scalars) -> list[Scalar]:
    """Solve L^T L x = b for x."""
    return solve_l(L, lam, solve_l_transposed(L, lam, b))


def solve_ltdl(L: Matrix, D: Scalars, lam: Sequence[int], b: Scalars) -> list[Scalar]:
    """Solve L^T D L x = b for x."""
    y = solve_l_transposed(L, lam, b, unit=True)
    return solve_l(L, lam, [y_k / d_k for y_k, d_k in zip(y, D, strict=True)], unit=True)


def solve_with_reciprocals(L: Matrix, reciprocals: Scalars, lam: Sequence[int], b: Scalars) -> list[Scalar]:
    """Solve L^T D L x = b for x without divisions, from `factor_with_reciprocals`."""
    y = solve_l_transposed(L, lam, b, unit=True)
    return solve_l(L, lam, [y_k * r for y_k, r in zip(y, reciprocals, strict=True)], unit=True)


def _lower_triangle(H: Sequence[Scalars], lam: Sequence[int]) -> Matrix:
    """Return the elements on and below the diagonal that the tree allows; literal zeros elsewhere."""
    L: Matrix = [[0.0] * len(lam) for _ in lam]
    for k in range(len(lam)):
        for i in (k, *ancestors(lam, k)):
            L[k][i] = H[k][i]
    return L
