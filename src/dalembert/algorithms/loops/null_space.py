"""Method 3: express the accelerations by independent ones first (Featherstone 2008 section 8.5).

    a = G y'' + g,   K G = 0,   K g = k                                          (8.42 to 8.44)
    G^T M G y'' = G^T (tau' - M g)                                               (8.45, 8.46)

y are the elements of v that the caller names (`explicit_solution`, section 8.8). Without, G is the orthogonal
projector onto all motions that the constraints allow (`allowed_motions`): no elements of v serve everywhere,
and it costs less to find than they do. Either way y'' has the length of a, and to G^T M G is added what makes
it regular along what y does not move.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Unpack

from dalembert.algorithms.dense import Matrix, Rows, dot, identity, times, transpose
from dalembert.algorithms.external_forces import Conditions
from dalembert.algorithms.loops.explicit import ExplicitSolution, explicit_solution, row_scales
from dalembert.algorithms.loops.system import ConstrainedSystem, constrained_system
from dalembert.algorithms.rank import DEPENDENT_ROW_RATIO_SQUARED
from dalembert.algorithms.small_solve import factor
from dalembert.model.tree import Tree
from dalembert.scalar import Scalar, is_zero, select

__all__ = [
    "AllowedMotions",
    "accelerations_by_null_space",
    "allowed_motions",
    "constrained_motion_from",
    "velocity_indices",
]


def accelerations_by_null_space(
    tree: Tree,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    tau: Sequence[Scalar],
    *,
    independent: Sequence[str] | None = None,
    **options: Unpack[Conditions],
) -> list[Scalar]:
    """Return a `(nv,)` of M a + C = tau + K^T lambda, K a = k; method 3 of section 8.5.

    `independent`: names of the joints whose accelerations are y'', as many freedoms as the system has;
    without, all motions that the constraints allow.
    """
    system = constrained_system(tree, q, v, tau, **options)
    if independent is not None:
        chosen = velocity_indices(tree, independent)
        return constrained_motion_from(system, explicit_solution(system.K, system.k, independent=chosen))
    G, g = allowed_motions(system.K, system.k, tree.nv)
    n = tree.nv
    size = dot([system.M[i][i] for i in range(n)], [1.0 / max(n, 1)] * n)
    idle = [[size * (1.0 - G[i][j]) if i == j else -(size * G[i][j]) for j in range(n)] for i in range(n)]
    return [y_i + g_i for y_i, g_i in zip(_solve_projected(system, G, g, idle), g, strict=True)]  # G y = y


def velocity_indices(tree: Tree, joints: Sequence[str]) -> list[int]:
    """Return the places in v of the named joints."""
    by_name = {body.joint_name: body for body in tree.bodies}
    return [k for name in joints for k in range(by_name[name].v_slice.start, by_name[name].v_slice.stop)]


def constrained_motion_from(system: ConstrainedSystem, solution: ExplicitSolution) -> list[Scalar]:
    """Return a = G y'' + g of the equation of motion projected by G (Eq. 8.45)."""
    G, g, independent = solution
    n = len(independent)
    idle = [[1.0 - independent[i] if i == j else 0.0 for j in range(n)] for i in range(n)]
    y = _solve_projected(system, G, g, idle)
    return [dot(row, y) + g_i for row, g_i in zip(G, g, strict=True)]


class AllowedMotions(NamedTuple):
    """x = G y + g: G (n, n) projects onto the null space of K, g (n) is the shortest solution of K x = k."""

    G: Matrix
    g: list[Scalar]


def allowed_motions(K: Rows, k: Sequence[Scalar], n: int) -> AllowedMotions:
    """Return G = 1 - K^+ K and g = K^+ k, of a K (m, n) of any rank.

    By Gram and Schmidt: each row less its parts along the rows before it. A row that depends on those, in the
    sense of `rank.DEPENDENT_ROW_RATIO`, is dropped.
    """
    scales, double = row_scales(K)
    least = select(double, *DEPENDENT_ROW_RATIO_SQUARED)
    found: list[tuple[list[Scalar], Scalar, Scalar]] = []
    for row, k_i, scale in zip(K, k, scales, strict=True):
        rest = [x if is_zero(x) else x * scale for x in row]
        value = k_i * scale
        smallest = dot(rest, rest) * least
        for other, reciprocal, other_value in found:
            part = dot(rest, other) * reciprocal
            if not is_zero(part):
                rest = [x if is_zero(y) else x - part * y for x, y in zip(rest, other, strict=True)]
                value = value - part * other_value
        d = dot(rest, rest)
        kept = smallest < d
        found.append((rest, select(kept, 1.0 / select(kept, d, 1.0), 0.0), value))
    G, g = identity(n), [0.0] * n
    for row, reciprocal, value in found:
        part = [x if is_zero(x) else x * reciprocal for x in row]
        g = [g_i if is_zero(x) else g_i + x * value for g_i, x in zip(g, part, strict=True)]
        for i in range(n):
            for j in range(i + 1):
                if not (is_zero(part[i]) or is_zero(row[j])):
                    G[i][j] = G[j][i] = G[i][j] - part[i] * row[j]
    return AllowedMotions(G, g)


def _solve_projected(system: ConstrainedSystem, G: Matrix, g: Sequence[Scalar], idle: Matrix) -> list[Scalar]:
    """Solve (G^T M G + idle) y = G^T (tau' - M g) for y."""
    columns = transpose(G)
    MG = [times(system.M, column) for column in columns]
    H = [[dot(columns[i], MG[j]) + idle[i][j] for j in range(i + 1)] for i in range(len(columns))]
    rest = [f - x for f, x in zip(system.force, times(system.M, g), strict=True)]
    return factor(H).solve([dot(column, rest) for column in columns])
