"""Method 3: express the accelerations by independent ones first (Featherstone 2008 section 8.5).

    a = G y'' + g,   K G = 0,   K g = k                                          (8.42 to 8.44)
    G^T M G y'' = G^T (tau' - M g)                                               (8.45, 8.46)

y are elements of v that `explicit_solution` finds (section 8.8), or that the caller names. y'' has the
length of a, and ones stand on the diagonal of G^T M G at the elements that are not independent.
"""

from __future__ import annotations

from collections.abc import Sequence

from dalembert.algorithms.dense import dot, identity, times
from dalembert.algorithms.external_forces import ExternalForces
from dalembert.algorithms.loops.explicit import ExplicitSolution, explicit_solution
from dalembert.algorithms.loops.system import ConstrainedSystem, constrained_system
from dalembert.algorithms.small_solve import factor
from dalembert.model.tree import Tree
from dalembert.scalar import Scalar

__all__ = ["accelerations_by_null_space", "constrained_motion_from", "velocity_indices"]


def accelerations_by_null_space(
    tree: Tree,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    tau: Sequence[Scalar],
    *,
    external_forces: ExternalForces = None,
    external_frame: str = "body",
    time: Scalar | None = None,
    stabilization: Scalar | None = None,
    independent: Sequence[str] | None = None,
) -> list[Scalar]:
    """a `(nv,)` of M a + C = tau + K^T lambda, K a = k; method 3 of section 8.5.

    `independent`: names of the joints whose accelerations are y'', as many freedoms as the system has;
    without, complete pivoting finds them anew in every state.
    """
    system = constrained_system(
        tree,
        q,
        v,
        tau,
        external_forces=external_forces,
        external_frame=external_frame,
        time=time,
        stabilization=stabilization,
    )
    chosen = None if independent is None else velocity_indices(tree, independent)
    if not system.K:
        n = len(system.M)
        unit = identity(n)
        return constrained_motion_from(system, ExplicitSolution(unit, [0.0] * n, [1.0] * n))
    return constrained_motion_from(system, explicit_solution(system.K, system.k, independent=chosen))


def velocity_indices(tree: Tree, joints: Sequence[str]) -> list[int]:
    """The places in v of the joints of these names."""
    by_name = {body.joint_name: body for body in tree.bodies}
    return [k for name in joints for k in range(by_name[name].v_slice.start, by_name[name].v_slice.stop)]


def constrained_motion_from(system: ConstrainedSystem, solution: ExplicitSolution) -> list[Scalar]:
    """a = G y'' + g of the equation of motion projected by G (Eq. 8.45)."""
    G, g, independent = solution
    n = len(system.M)
    columns = [[G[i][j] for i in range(n)] for j in range(n)]
    MG = [times(system.M, column) for column in columns]
    H = [[dot(columns[max(i, j)], MG[min(i, j)]) for j in range(n)] for i in range(n)]
    for j in range(n):
        H[j][j] = H[j][j] + (1.0 - independent[j])
    rest = [f - x for f, x in zip(system.force, times(system.M, g), strict=True)]
    y = factor(H).solve([dot(column, rest) for column in columns])
    return [dot(G[i], y) + g[i] for i in range(n)]
