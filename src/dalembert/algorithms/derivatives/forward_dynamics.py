"""Derivatives of forward dynamics on the tangent space, from those of inverse dynamics.

tau = ID(q, v, a) holds along every change of a = FD(q, v, tau), so that

    M da/dq = -dID/dq,   M da/dv = -dID/dv,   da/dtau = M^-1            at a = FD(q, v, tau)            (1)

(Carpentier & Mansard 2018). The composites give M, which is factored once, M = L^T D L without fill
(Featherstone 2008 section 6.5), and serves a, all columns of (1), and M^-1.
"""

from __future__ import annotations

from collections.abc import Sequence

from dalembert.algorithms.dense import Matrix, transpose
from dalembert.algorithms.derivatives.common_frame import body_state
from dalembert.algorithms.derivatives.inverse_dynamics import (
    Composites,
    Derivatives,
    JointForces,
    PairwiseChanges,
    depth_first,
)
from dalembert.algorithms.external_forces import ExternalForces, body_forces
from dalembert.algorithms.inverse_mass_matrix import inverse_from_factors
from dalembert.algorithms.open_tree import require_moving_mass, require_open_tree
from dalembert.algorithms.sparse import ancestors, factor_with_reciprocals, solve_with_reciprocals
from dalembert.algorithms.sparsity import variable_parents
from dalembert.model.tree import Tree
from dalembert.scalar import Scalar, is_zero

__all__ = ["forward_dynamics_derivatives", "solved_columns"]


def forward_dynamics_derivatives(
    tree: Tree,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    tau: Sequence[Scalar],
    *,
    external_forces: ExternalForces = None,
    external_frame: str = "body",
    time: Scalar | None = None,
) -> Derivatives:
    """Return (da/dq, da/dv, da/dtau) of a = FD(q, v, tau); da/dtau = M^-1.

    External forces are constant in the coordinates in which they are given.
    """
    require_open_tree(tree, "forward_dynamics_derivatives")
    require_moving_mass(tree, "forward_dynamics_derivatives")
    f_x = body_forces(tree, q, external_forces, external_frame, time)
    whole = Composites(tree)
    bias = JointForces(whole, None)
    for body, entering in depth_first(tree):
        if entering:
            whole.enter(body, body_state(tree, body, whole.states.get(body.parent), q, v, f_x, time))
            bias.enter(body)
        else:
            whole.leave(body)
            bias.leave(body)
    lam = variable_parents(tree)
    L, reciprocals = factor_with_reciprocals(whole.M, lam)
    push = [t - b for t, b in zip(tau, bias.joint_forces(), strict=True)]
    a = solve_with_reciprocals(L, reciprocals, lam, push)
    forces = JointForces(whole, a)
    pairs = PairwiseChanges(forces, a, f_x if external_frame == "world" else None)
    for body, entering in depth_first(tree):
        if entering:
            forces.enter(body)
            pairs.enter(body)
        else:
            forces.leave(body)
            pairs.leave(body)
    by_q, by_v = solved_columns(L, reciprocals, lam, pairs.by_q, pairs.by_v)
    return Derivatives(by_q, by_v, inverse_from_factors(L, reciprocals, lam))


def solved_columns(
    L: Matrix, reciprocals: Sequence[Scalar], lam: Sequence[int], *sides: Matrix
) -> list[Matrix]:
    """Return -M^-1 B for each B, column by column; zeros of B cost nothing.

    Columns of the same number advance side by side: a triangular solution is one chain of dependent
    operations, and a processor that waits for one can work on the other.
    """
    solutions: list[list[list[Scalar]]] = [[] for _ in sides]
    for columns in zip(*(transpose(B) for B in sides), strict=True):
        ys = [[-x for x in column] for column in columns]
        for i in reversed(range(len(lam))):
            for j in ancestors(lam, i):
                for y in ys:
                    if not is_zero(y[i]):
                        y[j] = y[j] - L[i][j] * y[i]
        ys = [[x * r for x, r in zip(y, reciprocals, strict=True)] for y in ys]
        for i in range(len(lam)):
            for j in ancestors(lam, i):
                for y in ys:
                    y[i] = y[i] - L[i][j] * y[j]
        for solution, y in zip(solutions, ys, strict=True):
            solution.append(y)
    return [transpose(solution) for solution in solutions]
