"""The pseudo-inverse of a symmetric positive-semidefinite matrix, whatever its rank, without a branch.

A = L D L^T by elimination. A pivot d_i is the squared distance of variable i from what the variables before
it span, and A_ii its own square: where d_i <= RANK * A_ii the variable adds nothing, and its column of L is
left out. With the other columns L has full column rank and D an inverse, so that (Courrieu 2005)

    A^+ = (L^+)^T D^-1 L^+ = L (L^T L)^-1 D^-1 (L^T L)^-1 L^T                                    (1)

For J of any rank, J^+ = (J^T J)^+ J^T.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, final

from dalembert.algorithms.dense import Matrix, dot
from dalembert.algorithms.small_solve import SymmetricFactor, factor
from dalembert.scalar import Scalar, is_zero, select

__all__ = ["PseudoInverse", "symmetric_pseudo_inverse"]


RANK: Final = 1e-10
"""The squared sine of the angle to the other columns at which a column counts as dependent on them."""


def symmetric_pseudo_inverse(A: Sequence[Sequence[Scalar]], *, regular: bool = False) -> PseudoInverse:
    """A^+ of a symmetric positive-semidefinite A, of which the lower triangle is read.

    `regular`: A is known to be positive definite, which saves three quarters of the work.
    """
    places = [i for i in range(len(A)) if not is_zero(A[i][i])]  # a zero on the diagonal: a zero row
    kept = [[A[i][j] for j in places] for i in places]
    if regular:
        return PseudoInverse(len(A), places, None, factor(kept), [])
    L: Matrix = []
    reciprocals: list[Scalar] = []
    units: list[Scalar] = []
    for i, row in enumerate(kept):
        W: list[Scalar] = []  # W_ij = L_ij d_j
        for j in range(i):
            w = row[j]
            for k in range(j):
                w = w - W[k] * L[j][k]
            W.append(w)
        d = row[i]
        own = [w * r for w, r in zip(W, reciprocals, strict=True)]
        for w, l in zip(W, own, strict=True):
            d = d - w * l
        independent = d > RANK * row[i]
        reciprocals.append(select(independent, 1.0 / select(independent, d, 1.0), 0.0))
        units.append(select(independent, 1.0, 0.0))
        L.append([*own, units[i]] + [0.0] * (len(kept) - i - 1))
    return PseudoInverse(len(A), places, L, _gram(L, units), reciprocals)


def _gram(L: Matrix, units: Sequence[Scalar]) -> SymmetricFactor:
    """L^T L, with a one on the diagonal for each column that was left out."""
    n = len(L)
    gram = [[dot([row[i] for row in L], [row[j] for row in L]) for j in range(n)] for i in range(n)]
    for i, unit in enumerate(units):
        gram[i][i] = gram[i][i] + (1.0 - unit)
    return factor(gram)


@final
@dataclass(frozen=True, slots=True)
class PseudoInverse:
    """A^+ in factors: `solve(b)` is A^+ b, the shortest x among those that come nearest to A x = b."""

    size: int
    places: list[int]
    L: Matrix | None
    gram: SymmetricFactor
    reciprocals: list[Scalar]

    def solve(self, b: Sequence[Scalar]) -> list[Scalar]:
        """A^+ b."""
        x: list[Scalar] = [b[i] for i in self.places]
        if self.L is None:
            x = self.gram.solve(x)
        else:
            columns = list(zip(*self.L, strict=True))
            x = self.gram.solve([dot(column, x) for column in columns])
            x = self.gram.solve([x_i * r for x_i, r in zip(x, self.reciprocals, strict=True)])
            x = [dot(row, x) for row in self.L]  # (1)
        full: list[Scalar] = [0.0] * self.size
        for place, value in zip(self.places, x, strict=True):
            full[place] = value
        return full
