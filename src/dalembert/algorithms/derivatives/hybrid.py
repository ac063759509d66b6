"""Derivatives of hybrid dynamics: forces known at free joints (1), accelerations at prescribed ones (2).

From tau = ID(q, v, a) with a_1 and tau_2 unknown, D = dID/dx at the motion that results:

    da_1 = M_11^-1 (dtau_1 - D_1 dx - M_12 da_2),     dtau_2 = D_2 dx + M_21 da_1 + M_22 da_2            (1)

M_11 is factored with the sparsity of the tree in which prescribed joints are merged (Featherstone 2008 §9.1).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from dalembert.algorithms.dense import Matrix, identity, plus, product, unit, zeros
from dalembert.algorithms.derivatives.directional import jacobians_of
from dalembert.algorithms.derivatives.forward_dynamics import solved_columns
from dalembert.algorithms.derivatives.inverse_dynamics import spanning_tree_derivatives
from dalembert.algorithms.external_forces import ExternalForces
from dalembert.algorithms.hybrid import hybrid_dynamics, merged_parents, prescribed_places
from dalembert.algorithms.open_tree import is_constrained
from dalembert.algorithms.sparse import factor_with_reciprocals
from dalembert.algorithms.sparsity import variable_parents
from dalembert.model.tree import Tree
from dalembert.scalar import Scalar
from dalembert.spatial.structure import leaves

__all__ = ["HybridDerivatives", "hybrid_dynamics_derivatives"]


class HybridDerivatives(NamedTuple):
    """The derivatives of a and tau, both complete, with respect to q (tangent space), v, tau and a.

    Eight matrices `(nv, nv)`; columns of inputs that are not read (tau of prescribed joints, a of free ones)
    are zero.
    """

    a_by_q: Matrix
    a_by_v: Matrix
    a_by_tau: Matrix
    a_by_a: Matrix
    tau_by_q: Matrix
    tau_by_v: Matrix
    tau_by_tau: Matrix
    tau_by_a: Matrix


def hybrid_dynamics_derivatives(
    tree: Tree,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    tau: Sequence[Scalar],
    a: Sequence[Scalar],
    *,
    prescribed: Collection[str] = (),
    external_forces: ExternalForces = None,
    external_frame: str = "body",
    time: Scalar | None = None,
    stabilization: Scalar | None = None,
) -> HybridDerivatives:
    """Return the derivatives of (a, tau) = `hybrid.hybrid_dynamics` by (1);
    under constraints, by dual numbers."""
    given = prescribed_places(tree, prescribed)
    n = tree.nv

    def dynamics(*state: Sequence[Scalar]) -> tuple[list[Scalar], list[Scalar]]:
        return hybrid_dynamics(
            tree,
            *state,
            prescribed=prescribed,
            external_forces=external_forces,
            external_frame=external_frame,
            time=time,
            stabilization=stabilization,
        )

    if is_constrained(tree):
        held = leaves([external_forces, time, stabilization])
        both = jacobians_of(lambda *x: leaves(dynamics(*x)), tree, (q, v, tau, a), held)
        return HybridDerivatives(*(rows[:n] for rows in both), *(rows[n:] for rows in both))
    motion, _ = dynamics(q, v, tau, a)
    by_q, by_v, M = spanning_tree_derivatives(
        tree,
        q,
        v,
        motion,
        external_forces=external_forces,
        external_frame=external_frame,
        time=time,
    )
    free = [k for k in range(n) if k not in given]
    lam, _ = merged_parents(variable_parents(tree), free)
    L, reciprocals = factor_with_reciprocals([[M[i][j] for j in free] for i in free], lam)
    known = [k in given for k in range(n)]
    by_tau = [[-x if not known[j] else 0.0 for j, x in enumerate(row)] for row in identity(n)]
    by_a = [[x if known[j] else 0.0 for j, x in enumerate(row)] for row in M]
    fixed = [[x if known[j] else 0.0 for j, x in enumerate(row)] for row in identity(n)]
    changes = (by_q, by_v, by_tau, by_a)
    parts = solved_columns(L, reciprocals, lam, *([change[i] for i in free] for change in changes))
    a_by, tau_by = [], []
    for change, part, own in zip(changes, parts, (None, None, None, fixed), strict=True):
        rows = zeros(n, n) if own is None else own
        for i, row in zip(free, part, strict=True):
            rows[i] = row
        a_by.append(rows)
        coupled = product([[M[i][j] for j in free] for i in range(n)], part) if part else zeros(n, n)
        needed = plus(change, coupled)
        tau_by.append([needed[i] if known[i] else [0.0] * n for i in range(n)])
    for i in free:
        tau_by[2][i] = unit(n, i)
    return HybridDerivatives(*a_by, *tau_by)
