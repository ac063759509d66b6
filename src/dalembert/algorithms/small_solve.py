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

from dalembert.algorithms.dense import Matrix, Rows
from dalembert.algorithms.rank import DEPENDENT_ROW_RATIO_SQUARED, NEGLIGIBLE_ROW_RATIO_SQUARED, is_double
from dalembert.scalar import Scalar, is_zero, maximum, select

__all__ = ["SymmetricFactor", "factor", "factor_semidefinite"]


def factor(D: Rows) -> SymmetricFactor:
    """Factor a symmetric positive-definite D, of which the lower triangle is read."""
    n = len(D)
    L: Matrix = [[0.0] * n for _ in range(n)]
    reciprocals: list[Scalar] = []
    for i in range(n):
        d = _row(D, L, reciprocals, i)
        reciprocals.append(1.0 / d)
    return SymmetricFactor(L, reciprocals)


def factor_semidefinite(
    D: Rows,
    *,
    scale: Sequence[Scalar] | None = None,
    least: tuple[float, float] = NEGLIGIBLE_ROW_RATIO_SQUARED,
) -> SymmetricFactor:
    """Factor a symmetric positive-semidefinite D; dependent rows are dropped, and `solve` gives them zeros.

    Without pivoting the i-th pivot d_i is the squared distance of row i from the rows before it, in the norm
    of which D is the Gram matrix. A row is dropped if this distance is small relative to the row itself
    (it depends on the rows before), or relative to the longest row (it is zero up to rounding):

        keep row i  if  d_i > DEPENDENT_SQUARE D_ii + least max_k D_kk

    `least` is for a D whose own entries hold the rounding errors and not the rows' entries. `scale` is for a
    D whose diagonal itself is a difference of larger numbers, and says how large these were:

        keep row i  if  d_i > DEPENDENT_SQUARE scale_i
    """
    n = len(D)
    if n == 0:
        return SymmetricFactor([], [])
    sizes = [D[i][i] for i in range(n)] if scale is None else scale
    longest = sizes[0]
    for size in sizes[1:]:
        longest = maximum(longest, size)
    double = is_double(longest)
    relative = select(double, *DEPENDENT_ROW_RATIO_SQUARED)
    shortest = longest * select(double, *least) if scale is None else 0.0
    L: Matrix = [[0.0] * n for _ in range(n)]
    reciprocals: list[Scalar] = []
    for i in range(n):
        d = _row(D, L, reciprocals, i)
        kept = sizes[i] * relative + shortest < d
        reciprocals.append(0.0 if is_zero(d) else select(kept, 1.0 / select(kept, d, 1.0), 0.0))
    return SymmetricFactor(L, reciprocals)


def _row(D: Rows, L: Matrix, reciprocals: Sequence[Scalar], i: int) -> Scalar:
    """Compute row i of L, in place, and return the pivot d_i;
    W_ij = L_ij d_j, so that each product is formed once."""
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

    L: Matrix
    reciprocals: list[Scalar]

    @property
    def independent_rows(self) -> list[Scalar]:
        """Return one for each independent row of a semidefinite D, zero for each row that was dropped."""
        return [select(reciprocal > 0.0, 1.0, 0.0) for reciprocal in self.reciprocals]

    def solve(self, b: Sequence[Scalar]) -> list[Scalar]:
        """Solve D x = b for x."""
        return self.backward([y * r for y, r in zip(self.forward(b), self.reciprocals, strict=True)])

    def forward(self, b: Sequence[Scalar]) -> list[Scalar]:
        """Return L^-1 b."""
        x = list(b)
        for i in range(len(x)):
            for j in range(i):
                x[i] = x[i] - self.L[i][j] * x[j]
        return x

    def backward(self, b: Sequence[Scalar]) -> list[Scalar]:
        """Return L^-T b."""
        x = list(b)
        for i in reversed(range(len(x))):
            for j in range(i + 1, len(x)):
                x[i] = x[i] - self.L[j][i] * x[j]
        return x
