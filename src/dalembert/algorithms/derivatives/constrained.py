"""Derivatives of forward dynamics under loops and other constraints, by implicit differentiation.

M a + b - K^T lambda = tau and K a = k hold along every change (Featherstone 2008 Eqs 8.34 to 8.36), so that

    [M  -K^T] [da     ]   [dtau - (dID/dx) + (dK^T/dx) lambda]
    [K    0 ] [dlambda] = [(dk/dx) - (dK/dx) a               ]       with ID of the spanning tree at a    (1)

has the matrix of the equations of motion themselves: one factorisation serves a and all columns. Rows of K
that the rank decision drops are dropped here too, so that the result is the derivative of what is computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from dalembert.algorithms.constraints import constraint_equations, stabilized
from dalembert.algorithms.dense import dot, times, transpose, unit
from dalembert.algorithms.derivatives.directional import (
    directional_forward_dynamics_derivatives,
    jacobians_of,
)
from dalembert.algorithms.derivatives.inverse_dynamics import Derivatives, spanning_tree_derivatives
from dalembert.algorithms.external_forces import Conditions
from dalembert.algorithms.loops.range_space import constrained_motion
from dalembert.algorithms.loops.system import constrained_system
from dalembert.model.tree import Tree
from dalembert.scalar import Scalar

__all__ = ["constrained_forward_dynamics_derivatives"]


def constrained_forward_dynamics_derivatives(
    tree: Tree,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    tau: Sequence[Scalar],
    **options: Unpack[Conditions],
) -> Derivatives:
    """Return (da/dq, da/dv, da/dtau) of a under K a = k, by (1).

    da/dtau has the rank of the motions that K allows.

    With an explicit constraint q = gamma(y) the dynamics are another function off the constraint, and are
    differentiated directly.
    """
    if tree.closure is not None:
        return directional_forward_dynamics_derivatives(tree, q, v, tau, **options)
    system = constrained_system(tree, q, v, tau, **options)
    a, multipliers = constrained_motion(system)
    time, T_stab = options.get("time"), options.get("stabilization")
    kept = [multipliers[row] for row in system.rows]

    def equations(q: Sequence[Scalar], v: Sequence[Scalar]) -> list[Scalar]:
        """Return K^T lambda, then k - K a."""
        found = constraint_equations(tree, q, v, time=time)
        k = found.k if T_stab is None else stabilized(found, T_stab)
        K = [found.K[row] for row in system.rows]
        forces = times(transpose(K), kept) if K else [0.0] * tree.nv
        return [*forces, *(k[row] - dot(found.K[row], a) for row in system.rows)]

    def solve(force: Sequence[Scalar], k: Sequence[Scalar]) -> list[Scalar]:
        return constrained_motion(system._replace(force=list(force), k=list(k))).a

    of_tree = spanning_tree_derivatives(
        tree,
        q,
        v,
        a,
        external_forces=options.get("external_forces"),
        external_frame=options.get("external_frame", "body"),
        time=time,
    )
    given = [*a, *kept, *(x for x in (time, T_stab) if x is not None)]
    by_state = []
    for forces, change in zip(of_tree[:2], jacobians_of(equations, tree, (q, v), given), strict=True):
        columns = []
        for column, moved in zip(transpose(forces), transpose(change), strict=True):
            push = [x - y for x, y in zip(moved[: tree.nv], column, strict=True)]
            columns.append(solve(push, moved[tree.nv :]))
        by_state.append(transpose(columns))
    nothing = [0.0] * len(system.k)
    by_tau = transpose([solve(unit(tree.nv, j), nothing) for j in range(tree.nv)])
    return Derivatives(by_state[0], by_state[1], by_tau)
