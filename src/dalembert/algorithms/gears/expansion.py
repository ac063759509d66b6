"""The equation of motion of a geared tree from that of the tree without gears (Featherstone 2008 §9.6).

    q = gamma(y),   v = G y',   a = G y'' + g                                           (8.56 to 8.60)
    G^T H G y'' + G^T (C + H g) = G^T tau                                                        (9.26)

G has few nonzero entries, many of them ones; zeros and ones that are literals cost nothing. `mass_matrix`
does the same block by block; these functions are for G and g of any origin, such as nonlinear gears.
"""

from __future__ import annotations

from collections.abc import Sequence

from dalembert.algorithms.dense import Matrix
from dalembert.scalar import Scalar, is_one, is_zero

__all__ = ["gear_equations", "geared_matrix"]


def geared_matrix(H: Sequence[Sequence[Scalar]], G: Sequence[Sequence[Scalar]]) -> Matrix:
    """Return G^T H G for symmetric H `(n, n)` and G `(n, m)`.

    Terms of equal kind are formed once: entry (k, l) is the sum of H_ij (G_ik G_jl) over nonzero entries.
    """
    n, m = len(G), len(G[0]) if G else 0
    rows = [[i for i in range(n) if not is_zero(G[i][k])] for k in range(m)]
    result: Matrix = [[0.0] * m for _ in range(m)]
    for k in range(m):
        for l in range(k + 1):
            total: Scalar = 0.0
            for i in rows[k]:
                inner: Scalar = 0.0
                for j in rows[l]:
                    h = H[max(i, j)][min(i, j)]
                    if not is_zero(h):
                        inner = inner + _scale(h, G[j][l])
                total = total + _scale(inner, G[i][k])
            result[k][l] = result[l][k] = total
    return result


def gear_equations(
    H: Sequence[Sequence[Scalar]],
    C: Sequence[Scalar],
    tau: Sequence[Scalar],
    G: Sequence[Sequence[Scalar]],
    g: Sequence[Scalar],
) -> tuple[Matrix, list[Scalar]]:
    """Return (G^T H G, G^T (tau - C - H g)): the matrix and right-hand side of Eq. 9.26 for y''."""
    n = len(G)
    rest = [tau[i] - C[i] for i in range(n)]
    for i in range(n):
        for j in range(n):
            if not is_zero(g[j]) and not is_zero(H[i][j]):
                rest[i] = rest[i] - H[i][j] * g[j]
    right = []
    for k in range(len(G[0]) if G else 0):
        total: Scalar = 0.0
        for i in range(n):
            total = total + _scale(rest[i], G[i][k])
        right.append(total)
    return geared_matrix(H, G), right


def _scale(x: Scalar, factor: Scalar) -> Scalar:
    if is_zero(factor) or is_zero(x):
        return 0.0
    return x if is_one(factor) else x * factor
