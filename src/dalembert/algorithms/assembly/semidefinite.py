"""Symmetric systems that lack rank, where even a diagonal entry may be the difference of larger numbers.

`small_solve.factor_semidefinite` drops row i where its pivot d_i is small beside A_ii. In an assembly that
does not suffice: once bodies are held from both sides, A_ii itself is what rounding leaves of the mobility
that the bodies had when they were free. Here the caller says how large that was:

    keep row i  if  d_i > tolerance * scale_i                                                      (*)
"""

from __future__ import annotations

from collections.abc import Sequence

from dalembert.algorithms.small_solve import SymmetricFactor, is_double
from dalembert.scalar import Scalar, is_zero, maximum, select

__all__ = ["factor_with_scale"]

TOLERANCE = (1e-10, 1e-5)
"""In double and in single precision."""


def factor_with_scale(A: Sequence[Sequence[Scalar]], scale: Sequence[Scalar]) -> SymmetricFactor:
    """A = L diag(d) L^T, of which the lower triangle is read; a dropped row gets the reciprocal 0 (*)."""
    n = len(A)
    largest: Scalar = 0.0
    for x in scale:
        largest = maximum(largest, x)
    tolerance = select(is_double(largest), *TOLERANCE) if n else 0.0
    L: list[list[Scalar]] = [[0.0] * n for _ in range(n)]
    reciprocals: list[Scalar] = []
    for i in range(n):
        # W_ij = L_ij d_j, so that each product is formed once.
        W: list[Scalar] = []
        for j in range(i):
            w = A[i][j]
            for k in range(j):
                w = w - W[k] * L[j][k]
            W.append(w)
        d = A[i][i]
        for j in range(i):
            L[i][j] = W[j] * reciprocals[j]
            d = d - W[j] * L[i][j]
        keep = tolerance * scale[i] < d  # (*)
        reciprocals.append(0.0 if is_zero(d) else select(keep, 1.0 / select(keep, d, 1.0), 0.0))
    return SymmetricFactor(L, reciprocals)
