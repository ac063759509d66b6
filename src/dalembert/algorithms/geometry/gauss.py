"""Gauss's principle for a model: of the motions that its constraints allow, the one nearest to free motion.

    a = argmin (a - a_0)^T M (a - a_0)  with  K a = k,        a_0 = M^-1 (tau - b)                         (1)

a_0 is the acceleration without loops and other constraints (Todorov, "Gauss principle"). Distance is measured
by the metric M; it is that of the constraint forces, lambda^T K M^-1 K^T lambda.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dalembert.algorithms.constraints import constraint_equations, stabilized
from dalembert.algorithms.external_forces import ExternalForces
from dalembert.algorithms.geometry.constrained_inertia import nearest_acceleration
from dalembert.algorithms.inverse_dynamics import bias_forces
from dalembert.algorithms.mass_matrix import mass_matrix
from dalembert.algorithms.open_tree import require_moving_mass
from dalembert.algorithms.sparse import factor_with_reciprocals, solve_with_reciprocals
from dalembert.algorithms.sparsity import variable_parents
from dalembert.algorithms.stabilization import Stabilization
from dalembert.model.tree import Tree
from dalembert.scalar import Scalar, is_zero

__all__ = ["allowed_accelerations", "forward_dynamics_gauss", "inertia_solver"]


def forward_dynamics_gauss(
    tree: Tree,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    tau: Sequence[Scalar],
    *,
    external_forces: ExternalForces = None,
    external_frame: str = "body",
    time: Scalar | None = None,
    stabilization: Stabilization = None,
) -> list[Scalar]:
    """Return a `(nv,)` by Eq. (1); a tree without constraints gets a_0. `stabilization`: T_stab [s]."""
    require_moving_mass(tree, "forward_dynamics")
    b = bias_forces(tree, q, v, external_forces=external_forces, external_frame=external_frame, time=time)
    solve = inertia_solver(tree, q, time=time)
    a_0 = solve([t - b_k for t, b_k in zip(tau, b, strict=True)])
    K, k = allowed_accelerations(tree, q, v, time=time, stabilization=stabilization)
    return nearest_acceleration(solve, a_0, K, k)


def allowed_accelerations(
    tree: Tree,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    *,
    time: Scalar | None = None,
    stabilization: Stabilization = None,
) -> tuple[list[list[Scalar]], list[Scalar]]:
    """Return K and k of K a = k, without the rows that are zero by structure; both empty for a tree."""
    equations = constraint_equations(tree, q, v, time=time)
    k = equations.k if stabilization is None else stabilized(equations, stabilization)
    rows = [i for i, row in enumerate(equations.K) if not all(is_zero(x) for x in row)]
    return [equations.K[i] for i in rows], [k[i] for i in rows]


def inertia_solver(
    tree: Tree, q: Sequence[Scalar], *, time: Scalar | None = None
) -> Callable[[Sequence[Scalar]], list[Scalar]]:
    """Return the function f -> M(q)^-1 f, with M factored once."""
    lam = variable_parents(tree)
    L, reciprocals = factor_with_reciprocals(mass_matrix(tree, q, time=time), lam)
    return lambda f: solve_with_reciprocals(L, reciprocals, lam, f)
