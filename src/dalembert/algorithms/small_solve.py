"""Dense symmetric systems of a small size, unrolled, without pivoting.

D = L diag(d) L^T with unit lower-triangular L; the reciprocals of d are kept, so that one factorisation of
size n costs n divisions and every solution none. `factor` is for positive-definite matrices, such as a
joint's inertia; `factor_semidefinite` for those that may lack rank, such as K M^-1 K^T of dependent
constraints.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from dalembert.scalar import Scalar, maximum, select

__all__ = ["SymmetricFactor", "factor", "factor_semidefinite", "is_double"]


def factor(D: Sequence[Sequence[Scalar]]) -> SymmetricFactor:
    """Factor a symmetric positive-definite D, of which the lower triangle is read."""
    n = len(D)
    L: list[list[Scalar]] = [[0.0] * n for _ in range(n)]
    reciprocals: list[Scalar] = []
    for i in range(n):
        d = _row(D, L, reciprocals, i)
        reciprocals.append(1.0 / d)
    return SymmetricFactor(L, reciprocals)


def factor_semidefinite(
    D: Sequence[Sequence[Scalar]], *, least: tuple[float, float] = (1e-24, 1e-11)
) -> SymmetricFactor:
    """Factor a symmetric positive-semidefinite D; dependent rows are dropped, and `solve` gives them zeros.

    Without pivoting the i-th pivot is the squared distance of row i from the rows before it, in the norm of
    which D is the Gram matrix. A row is dropped where this distance is small beside the row itself (it
    depends on the rows before), or beside the longest row (it is zero but for rounding). In double precision
    that is 1e-5 of the row and 1e-12 of the longest; in single precision 3e-3 and 3e-6. `least` are the
    squares of the latter, for a D whose own entries hold the rounding errors and not the rows' entries.
    """
    n = len(D)
    if n == 0:
        return SymmetricFactor([], [])
    longest = D[0][0]
    for i in range(1, n):
        longest = maximum(longest, D[i][i])
    double = is_double(longest)
    relative = select(double, 1e-10, 1e-5)
    shortest = longest * select(double, *least)
    L: list[list[Scalar]] = [[0.0] * n for _ in range(n)]
    reciprocals: list[Scalar] = []
    for i in range(n):
        d = _row(D, L, reciprocals, i)
        kept = D[i][i] * relative + shortest < d
        reciprocals.append(select(kept, 1.0 / select(kept, d, 1.0), 0.0))
    return SymmetricFactor(L, reciprocals)


def is_double(positive: Scalar) -> Scalar:
    """Whether arithmetic is in double precision, asked of a positive number: is 1 + 1e-10 more than 1?

    A trace does not know the float type of the kernel that it becomes; the kernel does.
    """
    return positive < positive * 1.0000000001


def _row(
    D: Sequence[Sequence[Scalar]], L: list[list[Scalar]], reciprocals: Sequence[Scalar], i: int
) -> Scalar:
    """Row i of L, in place, and the pivot d_i; W_ij = L_ij d_j, so that each product is formed once."""
    W: list[Scalar] = []
    for j in range(i):
        w = D[i][j]
        for k in range(j):
            w = w - W[k] * L[j][k]
        W.append(w)
    d = D[i][i]
    for j in range(i):
        L[i][j] = W[j] * reciprocals[j]
        d = d - W[j] * L[i][j]
    return d


@final
@dataclass(frozen=True, slots=True)
class SymmetricFactor:
    """The factors of D = L diag(d) L^T. `solve(b)` is x of D x = b."""

    L: list[list[Scalar]]
    reciprocals: list[Scalar]

    def solve(self, b: Sequence[Scalar]) -> list[Scalar]:
        """x of D x = b."""
        n = len(b)
        x = list(b)
        for i in range(n):
            for j in range(i):
                x[i] = x[i] - self.L[i][j] * x[j]
        x = [x_i * r for x_i, r in zip(x, self.reciprocals, strict=True)]
        for i in reversed(range(n)):
            for j in range(i + 1, n):
                x[i] = x[i] - self.L[j][i] * x[j]
        return x
