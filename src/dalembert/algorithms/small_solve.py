"""Dense symmetric positive-definite systems of a joint's size, one to six unknowns.

D = L diag(d) L^T with unit lower-triangular L; the reciprocals of d are kept, so that one factorisation of
size n costs n divisions and every solution none. Unrolled over the size, without pivoting: D is positive
definite.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from dalembert.scalar import Scalar

__all__ = ["SymmetricFactor", "factor"]


def factor(D: Sequence[Sequence[Scalar]]) -> SymmetricFactor:
    """Factor a symmetric positive-definite D, of which the lower triangle is read."""
    n = len(D)
    L: list[list[Scalar]] = [[0.0] * n for _ in range(n)]
    reciprocals: list[Scalar] = []
    for i in range(n):
        # W_ij = L_ij d_j, so that each product is formed once.
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
        reciprocals.append(1.0 / d)
    return SymmetricFactor(L, reciprocals)


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
