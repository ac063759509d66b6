"""The pseudo-inverse of a symmetric positive-semidefinite matrix of any rank, without a branch.

A = L diag(d) L^T by elimination, of which `factor_semidefinite` drops the pivots of dependent rows. With the
columns B of L that were kept, B has full column rank, so that (Courrieu 2005)

    A^+ = (B^+)^T diag(1/d) B^+ = B (B^T B)^-1 diag(1/d) (B^T B)^-1 B^T                          (1)

For J of any rank, J^+ = (J^T J)^+ J^T.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from dalembert.algorithms.dense import Matrix, Rows, symmetric_product, times, transpose
from dalembert.algorithms.small_solve import SymmetricFactor, factor, factor_semidefinite
from dalembert.scalar import Scalar, is_zero

__all__ = ["PseudoInverse", "minimum_norm_solution", "symmetric_pseudo_inverse"]


def symmetric_pseudo_inverse(A: Rows, *, regular: bool = False) -> PseudoInverse:
    """Return A^+ of a symmetric positive-semidefinite A; only the lower triangle is read.

    `regular`: A is known to be positive definite, which saves three quarters of the work. Else a row counts
    as dependent beside its own diagonal entry.
    """
    places = [i for i in range(len(A)) if not is_zero(A[i][i])]  # a zero on the diagonal: a zero row
    kept = [[A[i][j] for j in places] for i in places]
    if regular:
        return PseudoInverse(len(A), places, None, factor(kept), [])
    return _of_factors(
        factor_semidefinite(kept, scale=[row[i] for i, row in enumerate(kept)]), places, len(A)
    )


def minimum_norm_solution(factors: SymmetricFactor, b: Sequence[Scalar]) -> list[Scalar]:
    """Return A^+ b of a factored positive-semidefinite A: the shortest x that minimises |A x - b|."""
    return _of_factors(factors, range(len(b)), len(b)).solve(b)


def _of_factors(factors: SymmetricFactor, places: Sequence[int], size: int) -> PseudoInverse:
    """Return the factors of (1).

    The rows and columns of B^T B that belong to dropped pivots are those of
    the unit matrix instead, and reciprocals are zero there, so that sizes do not depend on the rank."""
    kept = factors.independent_rows
    n = len(kept)
    B = [
        [kept[j] if i == j else factors.L[i][j] if j < i else 0.0 for j in range(n)] for i in range(n)
    ]  # L of a dropped pivot is zero but for its diagonal
    columns = transpose(B)
    gram = symmetric_product(columns, columns)
    for i, one in enumerate(kept):
        gram[i][i] = gram[i][i] + (1.0 - one)
    return PseudoInverse(size, places, B, factor(gram), factors.reciprocals)


@final
@dataclass(frozen=True, slots=True)
class PseudoInverse:
    """A^+ in factors: `solve(b)` is A^+ b, the shortest x among those that come nearest to A x = b.

    `size` of A, and the `places` of its rows that are not zero by structure; B, B^T B and 1/d of (1), or no B
    and A itself in place of B^T B.
    """

    size: int
    places: Sequence[int]
    B: Matrix | None
    gram: SymmetricFactor
    reciprocals: list[Scalar]

    def solve(self, b: Sequence[Scalar]) -> list[Scalar]:
        """Return A^+ b."""
        x: list[Scalar] = [b[i] for i in self.places]
        if self.B is None:
            x = self.gram.solve(x)
        else:
            x = self.gram.solve(times(transpose(self.B), x))
            x = self.gram.solve([x_i * r for x_i, r in zip(x, self.reciprocals, strict=True)])
            x = times(self.B, x)  # (1)
        full: list[Scalar] = [0.0] * self.size
        for place, value in zip(self.places, x, strict=True):
            full[place] = value
        return full
