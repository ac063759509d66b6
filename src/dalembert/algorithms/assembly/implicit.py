"""Implicit motion constraints K a = k applied to a system (Featherstone 2008 §3.2, Eqs 3.15 and 3.17).

    [H  K^T] [   a   ]   [tau - C]
    [K   0 ] [-lambda] = [   k   ]                                                              (3.17)

The constraint force K^T lambda does no work in any motion that the constraint allows. The coefficient
matrix has the rank n + rank K. Eliminating a leaves

    A lambda = k - K H^-1 (tau - C),     A = K H^-1 K^T                                           (1)
    a = H^-1 (tau - C + K^T lambda)                                                               (2)

with A positive semidefinite. Where constraints repeat one another A is singular, lambda is one of many, and
a is unique all the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dalembert.algorithms.assembly.collecting import Equations
from dalembert.algorithms.dense import Matrix, Rows, Vector, dot, transpose, zeros
from dalembert.algorithms.small_solve import factor, factor_semidefinite
from dalembert.scalar import Scalar

__all__ = ["Constrained", "constrain", "constraint_matrix"]


class Constrained(NamedTuple):
    """`acceleration` (n,) and the force variables lambda `multipliers` (nc,)."""

    acceleration: Vector
    multipliers: Vector


def constrain(equations: Equations, K: Rows, k: Sequence[Scalar]) -> Constrained:
    """Solve Eq. 3.17 for a and lambda; K may have dependent rows, whose lambda is then 0."""
    H, C, tau = equations
    inertia = factor(H)
    free = inertia.solve([t - c for t, c in zip(tau, C, strict=True)])
    moved = [inertia.solve(row) for row in K]  # the rows of K H^-1
    A = [[dot(K[i], moved[j]) for j in range(i + 1)] for i in range(len(K))]
    error = [k_i - dot(row, free) for k_i, row in zip(k, K, strict=True)]
    multipliers = factor_semidefinite(A).solve(error)  # (1)
    acceleration = list(free)
    for row, force in zip(moved, multipliers, strict=True):
        acceleration = [a + x * force for a, x in zip(acceleration, row, strict=True)]  # (2)
    return Constrained(acceleration, multipliers)


def constraint_matrix(H: Rows, K: Rows) -> Matrix:
    """Return the coefficient matrix [[H, K^T], [K, 0]] of Eq. 3.17."""
    upper = [[*row, *column] for row, column in zip(H, transpose(K) or zeros(len(H), 0), strict=True)]
    return upper + [[*row, *[0.0] * len(K)] for row in K]
