"""The inverse of the joint-space inertia matrix.

M = L^T D L gives M^-1 = L^-1 D^-1 L^-T. L^-1 has the sparsity of L (an element for each variable and
ancestor), so that element (i, j) of the inverse is a sum over the *common* ancestors of i and j only. Up to
depths of about fifty variables, deeper than any robot, that costs less than the recursion through
articulated bodies.
"""

from __future__ import annotations

from collections.abc import Sequence

from dalembert.algorithms.dense import Matrix
from dalembert.algorithms.mass_matrix import mass_matrix
from dalembert.algorithms.open_tree import require_moving_mass
from dalembert.algorithms.sparse import ancestors, factor_with_reciprocals
from dalembert.algorithms.sparsity import variable_parents
from dalembert.model.tree import Tree
from dalembert.scalar import Scalar

__all__ = ["inverse_from_factors", "inverse_mass_matrix"]


def inverse_mass_matrix(tree: Tree, q: Sequence[Scalar], *, time: Scalar | None = None) -> Matrix:
    """Return M(q)^-1 `(nv, nv)`, which maps joint forces to joint accelerations; armature included."""
    require_moving_mass(tree, "inverse_mass_matrix")
    lam = variable_parents(tree)
    L, reciprocals = factor_with_reciprocals(mass_matrix(tree, q, time=time), lam)
    return inverse_from_factors(L, reciprocals, lam)


def inverse_from_factors(L: Matrix, reciprocals: Sequence[Scalar], lam: Sequence[int]) -> Matrix:
    """Return M^-1 of M = L^T D L, from `factor_with_reciprocals`."""
    N = _inverse_unit_lower(L, lam)
    W = [{k: x * reciprocals[k] for k, x in row.items()} for row in N]
    n = len(lam)
    inverse: Matrix = [[0.0] * n for _ in range(n)]
    for i in range(n):
        for j in range(i + 1):
            total: Scalar = 0.0
            for k in (j, *ancestors(lam, j)):
                if k in N[i]:
                    total = total + N[i][k] * W[j][k]
            inverse[i][j] = inverse[j][i] = total
    return inverse


def _inverse_unit_lower(L: Matrix, lam: Sequence[int]) -> list[dict[int, Scalar]]:
    """Return N = L^-1 by rows: N_ij = - sum of L_ik N_kj over the ancestors k of i down to j."""
    N: list[dict[int, Scalar]] = []
    for i in range(len(lam)):
        row: dict[int, Scalar] = {i: 1.0}
        path = list(ancestors(lam, i))
        for j in path:
            total: Scalar = 0.0
            for k in path:
                if j in N[k]:
                    total = total + L[i][k] * N[k][j]
            row[j] = -total
        N.append(row)
    return N
