"""Method 1: solve the whole equation at once (Featherstone 2008 section 8.5, Eq. 8.36).

    [ M  K^T ] [    a    ]   [ tau' ]            [ M + K^T K  K^T ] [    a     ]   [ tau' + K^T k ]
    [ K   0  ] [ -lambda ] = [  k   ]     (1)    [     K       0  ] [ -lambda  ] = [      k       ]     (2)

(2) is (1) with K^T times the second row added to the first. Its upper left block is positive definite
wherever a is unique, so that L D L^T of the whole matrix needs no pivoting: massless bodies are allowed,
as long as the constraints move them along. Before, a is scaled by the square roots of M's diagonal and the
rows of K to a largest entry of one, so that kilograms, metres and radians do not decide which pivots are
small. The simplest method, and a slow one: it makes no use of the zeros of M, and serves as a witness of the
others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from dalembert.algorithms.dense import dot
from dalembert.algorithms.external_forces import Conditions
from dalembert.algorithms.loops.explicit import row_scales
from dalembert.algorithms.loops.range_space import ConstrainedMotion
from dalembert.algorithms.loops.system import ConstrainedSystem, constrained_system
from dalembert.algorithms.small_solve import factor, factor_semidefinite
from dalembert.model.tree import Tree
from dalembert.scalar import Scalar, is_zero, select, sqrt

__all__ = ["accelerations_by_elimination", "constrained_motion_directly"]


def accelerations_by_elimination(
    tree: Tree,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    tau: Sequence[Scalar],
    **options: Unpack[Conditions],
) -> list[Scalar]:
    """Return a `(nv,)` of M a + C = tau + K^T lambda, K a = k; method 1 of section 8.5."""
    system = constrained_system(tree, q, v, tau, **options)
    return constrained_motion_directly(system).a


def constrained_motion_directly(system: ConstrainedSystem) -> ConstrainedMotion:
    """Return a and lambda of Eq. 8.36; lambda is zero for rows that depend on others."""
    n, m = len(system.M), len(system.K)
    s = [_scale_of(system.M[i][i]) for i in range(n)]
    M = [[_scale(x, s[i] * s[j]) for j, x in enumerate(row)] for i, row in enumerate(system.M)]
    K = [[_scale(x, s[j]) for j, x in enumerate(row)] for row in system.K]
    r, _ = row_scales(K)
    K = [[_scale(x, r_i) for x in row] for row, r_i in zip(K, r, strict=True)]
    k = [k_i * r_i for k_i, r_i in zip(system.k, r, strict=True)]
    columns = [[row[j] for row in K] for j in range(n)]
    upper = factor([[M[i][j] + dot(columns[i], columns[j]) for j in range(i + 1)] for i in range(n)])  # (2)
    Y = [upper.forward(row) for row in K]  # the lower rows of L, before they are divided by D
    W = [[y if is_zero(y) else y * d for y, d in zip(row, upper.reciprocals, strict=True)] for row in Y]
    z = upper.forward([f * s_i + dot(c, k) for f, s_i, c in zip(system.force, s, columns, strict=True)])
    lower = factor_semidefinite([[dot(Y[i], W[j]) for j in range(i + 1)] for i in range(m)])
    multipliers = lower.solve([k_i - dot(w, z) for k_i, w in zip(k, W, strict=True)])
    y = [z_j * d for z_j, d in zip(z, upper.reciprocals, strict=True)]
    for w, x in zip(W, multipliers, strict=True):
        y = [y_j if is_zero(w_j) else y_j + w_j * x for y_j, w_j in zip(y, w, strict=True)]
    a = [x * s_j for x, s_j in zip(upper.backward(y), s, strict=True)]
    return ConstrainedMotion(a, system.spread([x * r_i for x, r_i in zip(multipliers, r, strict=True)]))


def _scale(x: Scalar, scale: Scalar) -> Scalar:
    return x if is_zero(x) else x * scale


def _scale_of(inertia: Scalar) -> Scalar:
    """Return 1 / sqrt(M_ii), or one where no inertia moves."""
    real = inertia > 0.0
    return select(real, 1.0 / sqrt(select(real, inertia, 1.0)), 1.0)
