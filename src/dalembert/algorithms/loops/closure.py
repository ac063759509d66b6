"""Loop-closure functions: dynamics in the independent variables alone (Featherstone 2008 section 8.11).

A model that holds q = gamma(y) (`builder.set_loop_closure`) has v = G y' and a = G y'' + g in closed form:

    G^T M G y'' = G^T (tau - C - M g)                                            (8.45 with 8.57 to 8.60)

with M and C at q = gamma(y), v = G y'. What q and v hold of dependent joints is not read, so that loops
cannot open, and stabilisation has nothing to do.
"""

from __future__ import annotations

from collections.abc import Sequence

from dalembert.algorithms.constraints import closure_equations
from dalembert.algorithms.dense import dot, symmetric_product, times, transpose
from dalembert.algorithms.external_forces import ExternalForces
from dalembert.algorithms.inverse_dynamics import bias_forces
from dalembert.algorithms.mass_matrix import mass_matrix
from dalembert.algorithms.small_solve import factor
from dalembert.errors import ModelError
from dalembert.model.tree import Tree
from dalembert.model.user_constraints import LoopClosure
from dalembert.scalar import Scalar

__all__ = ["accelerations_by_closure", "closure_of", "independent_variables"]


def accelerations_by_closure(
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
    """Return a `(nv,)` = G y'' + g. Only the independent variables of q and v are read;
    `stabilization` has no effect."""
    y, ydot = independent_variables(closure_of(tree), q, v)
    full_q, full_v, G, g = closure_equations(tree, y, ydot, time=time)
    C = bias_forces(
        tree, full_q, full_v, external_forces=external_forces, external_frame=external_frame, time=time
    )
    M = mass_matrix(tree, full_q, time=time)
    force = [t - c - dot(row, g) for t, c, row in zip(tau, C, M, strict=True)]
    columns = transpose(G)
    H = symmetric_product(columns, [times(M, column) for column in columns])
    ydd = factor(H).solve(times(columns, force))
    return [dot(row, ydd) + g_i for row, g_i in zip(G, g, strict=True)]


def closure_of(tree: Tree) -> LoopClosure:
    """Return the model's loop closure, which this method needs."""
    if tree.closure is None:
        raise ModelError(
            'method="loop_closure" needs q as a function of independent joints: give the model one with '
            "builder.set_loop_closure, or use another method"
        )
    return tree.closure


def independent_variables(
    closure: LoopClosure, q: Sequence[Scalar], v: Sequence[Scalar]
) -> tuple[list[Scalar], list[Scalar]]:
    """Return (y, y') from q and v."""
    return [q[i] for i in closure.positions], [v[i] for i in closure.velocities]
