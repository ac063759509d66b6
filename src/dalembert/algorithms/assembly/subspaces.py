"""Vector subspaces as the ranges of matrices (Featherstone 2008 §3.3).

A subspace is given by its columns, n numbers each. A motion subspace S and its orthogonal complement S^⊥ lie
in spaces that are dual to each other: the columns of S are motions, those of S^⊥ forces, and S^T f = 0 is
no power. Euclidean orthogonality has no meaning here, since it adds squares of metres and radians.

    dim S + dim S^⊥ = n,     S_1 ⊕ S_2^⊥ = U  exactly where  S_1^T S_2  can be inverted     (Table 3.1)
"""

from __future__ import annotations

from collections.abc import Sequence

from dalembert.algorithms.articulated import joint_inertia
from dalembert.algorithms.dense import Matrix, Vector, dot, times, transpose, unit
from dalembert.algorithms.elimination import reduce_rows, solve
from dalembert.algorithms.small_solve import factor, factor_semidefinite
from dalembert.errors import ArgumentError
from dalembert.scalar import Scalar
from dalembert.spatial import ArticulatedInertia, Force, Motion, RigidInertia

__all__ = ["Columns", "decompose", "dual_complement", "dimension", "split_force"]

Columns = Sequence[Sequence[Scalar]]
"""The columns of the matrix of a subspace."""


def decompose(v: Sequence[Scalar], *subspaces: Columns) -> list[Vector]:
    """Return the parts v_1 + v_2 + … = v of a vector in subspaces whose direct sum is the whole space.

    [alpha_1; alpha_2] = [S_1 S_2]^-1 v (Eqs 3.26, 3.27); v_i = S_i alpha_i does not depend on the bases.
    """
    columns = [column for S in subspaces for column in S]
    if len(columns) != len(v):
        raise ArgumentError(
            f"decompose: the subspaces have {len(columns)} columns together and the vector has {len(v)} "
            "numbers; a direct sum needs one column for each"
        )
    alpha = [row[0] for row in solve(transpose(columns), [[x] for x in v])]
    parts: list[Vector] = []
    for S in subspaces:
        own, alpha = alpha[: len(S)], alpha[len(S) :]
        parts.append(times(transpose(S), own) if S else [0.0] * len(v))
    return parts


def dual_complement(S: Columns, n: int) -> Matrix:
    """Return columns that span S^⊥ in the dual space: n - dim S of them, with S^T T = 0, for S of full rank.

    Elimination finds an invertible A with A S = [1; 0]; the last rows of A are the columns of S^⊥.
    """
    rows = [[column[i] for column in S] + unit(n, i) for i in range(n)]
    return [row[len(S) :] for row in reduce_rows(rows, len(S))[len(S) :]]


def dimension(S: Columns) -> Scalar:
    """Return dim(span S), as a scalar: how many columns have a part outside the span of those before them.

    From the pivots of the columns' Gram matrix, which `factor_semidefinite` keeps or drops.
    """
    total: Scalar = 0.0
    for one in factor_semidefinite([[dot(a, b) for b in S] for a in S]).independent_rows:
        total = total + one
    return total


def split_force(
    inertia: RigidInertia | ArticulatedInertia, S: Sequence[Motion], f: Force
) -> tuple[Force, Force]:
    """Return (f_a, f_c) with f = f_a + f_c: f_a accelerates a body that may move in S, bearings oppose f_c.

    f_a = I S (S^T I S)^-1 S^T f lies in I S, f_c in S^⊥; F^6 is their direct sum for any basis of S
    (Example 3.1, Eq. 3.28). The acceleration is S (S^T I S)^-1 S^T f.
    """
    U = [inertia * s for s in S]
    alpha = factor(joint_inertia(S, U, [0.0] * len(S))).solve([s.dot(f) for s in S])
    accelerating = Force.zero()
    for u, x in zip(U, alpha, strict=True):
        accelerating = accelerating + u * x
    return accelerating, f - accelerating
