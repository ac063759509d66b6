"""Method 1: solve the whole equation at once (Featherstone 2008 section 8.5, Eq. 8.36).

    [ M  K^T ] [    a    ]   [ tau' ]
    [ K   0  ] [ -lambda ] = [  k   ]

By elimination with partial pivoting, after scaling a by the square roots of M's diagonal and the rows of K
to a largest entry of one, so that kilograms, metres and radians do not decide which pivots are small. The
simplest method and the slowest: it makes no use of the zeros of M, and serves as a witness of the others.
Massless bodies are no obstacle, as long as the constraints move them along.
"""

from __future__ import annotations

from collections.abc import Sequence

from dalembert.algorithms.external_forces import ExternalForces
from dalembert.algorithms.loops.elimination import row_scales, solve_general
from dalembert.algorithms.loops.range_space import ConstrainedMotion
from dalembert.algorithms.loops.system import ConstrainedSystem, constrained_system
from dalembert.model.tree import Tree
from dalembert.scalar import Scalar, is_zero, select, sqrt

__all__ = ["accelerations_by_elimination", "constrained_motion_directly"]


def accelerations_by_elimination(
    tree: Tree,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    tau: Sequence[Scalar],
    *,
    external_forces: ExternalForces = None,
    external_frame: str = "body",
    time: Scalar | None = None,
    stabilization: Scalar | None = None,
) -> list[Scalar]:
    """a `(nv,)` of M a + C = tau + K^T lambda, K a = k; method 1 of section 8.5."""
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
    return constrained_motion_directly(system).a


def constrained_motion_directly(system: ConstrainedSystem) -> ConstrainedMotion:
    """a and lambda of Eq. 8.36; lambda is zero at rows that depend on the others."""
    n = len(system.M)
    s = [_scale_of(system.M[i][i]) for i in range(n)]
    M = [[_scaled(x, s[i] * s[j]) for j, x in enumerate(row)] for i, row in enumerate(system.M)]
    K = [[_scaled(x, s[j]) for j, x in enumerate(row)] for row in system.K]
    r, _ = row_scales(K)
    K = [[_scaled(x, r_i) for x in row] for row, r_i in zip(K, r, strict=True)]
    m = len(K)
    A = [[*M[i], *(K[l][i] for l in range(m))] for i in range(n)] + [[*row, *([0.0] * m)] for row in K]
    b = [f * s_i for f, s_i in zip(system.force, s, strict=True)]
    x = solve_general(A, b + [k_i * r_i for k_i, r_i in zip(system.k, r, strict=True)])
    a = [x_i * s_i for x_i, s_i in zip(x[:n], s, strict=True)]
    return ConstrainedMotion(a, system.spread([-x_i * r_i for x_i, r_i in zip(x[n:], r, strict=True)]))


def _scaled(x: Scalar, scale: Scalar) -> Scalar:
    return x if is_zero(x) else x * scale


def _scale_of(inertia: Scalar) -> Scalar:
    """1 / sqrt(M_ii), or one where nothing with inertia moves."""
    real = inertia > 0.0
    return select(real, 1.0 / sqrt(select(real, inertia, 1.0)), 1.0)
