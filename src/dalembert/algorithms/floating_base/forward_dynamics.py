"""Forward dynamics of floating-base systems (Featherstone 2008 section 9.4)."""

from __future__ import annotations

from collections.abc import Sequence

from dalembert.algorithms.external_forces import ExternalForces, body_forces
from dalembert.algorithms.floating_base.base import BASE_VARIABLES, base_gravity, floating_base
from dalembert.algorithms.floating_base.equations import floating_base_bias, floating_base_inertia
from dalembert.algorithms.gears import articulated_accelerations
from dalembert.algorithms.open_tree import require_moving_mass
from dalembert.algorithms.sparse import factor_with_reciprocals, solve_with_reciprocals
from dalembert.algorithms.sparsity import variable_parents
from dalembert.algorithms.velocity_products import spatial_velocity_products
from dalembert.model.tree import Tree
from dalembert.scalar import Scalar
from dalembert.spatial import Vec3

__all__ = ["floating_base_forward_dynamics", "floating_base_forward_dynamics_by_matrix"]


def floating_base_forward_dynamics(
    tree: Tree,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    tau: Sequence[Scalar],
    *,
    external_forces: ExternalForces = None,
    external_frame: str = "body",
    time: Scalar | None = None,
) -> list[Scalar]:
    """Return (a_0, q'') `(nv,)` by articulated bodies (Table 9.4): a_0 = (I_0^A)^-1 (f_0 - p_0^A) + 0_a_g.

    The system moves as without gravity, but that everything falls: 0_a_g is added to a_0 at the end. The
    first six of tau are a force f_0 on the base.
    """
    floating_base(tree, "floating_base_forward_dynamics")
    require_moving_mass(tree, "floating_base_forward_dynamics")
    f_x = body_forces(tree, q, external_forces, external_frame, time)
    moved = spatial_velocity_products(tree, q, v, f_x, time)
    # At the base S = 1, so that its elimination is Eq. 9.17: D = I_0^A, u = f_0 - p_0^A.
    a = articulated_accelerations(
        tree, moved, tau, function="floating_base_forward_dynamics", gravity=Vec3.zero()
    ).a
    a_g = base_gravity(tree, q, time=time).to_list()
    return [x + g for x, g in zip(a, a_g, strict=False)] + a[BASE_VARIABLES:]


def floating_base_forward_dynamics_by_matrix(
    tree: Tree,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    tau: Sequence[Scalar],
    *,
    external_forces: ExternalForces = None,
    external_frame: str = "body",
    time: Scalar | None = None,
) -> list[Scalar]:
    """Return (a_0, q'') `(nv,)` from Eq. 9.13 by Table 9.5, with the sparse factors of the (n + 6) matrix."""
    require_moving_mass(tree, "floating_base_forward_dynamics_by_matrix")
    I_0, F, H = floating_base_inertia(tree, q, time=time)
    p_0, C = floating_base_bias(
        tree, q, v, external_forces=external_forces, external_frame=external_frame, time=time
    )
    columns = [f.to_list() for f in F]
    base = [[*row, *(column[r] for column in columns)] for r, row in enumerate(I_0.matrix())]
    whole = base + [[*column, *row] for column, row in zip(columns, H, strict=True)]
    lam = variable_parents(tree)
    L, reciprocals = factor_with_reciprocals(whole, lam)
    bias = [*p_0.to_list(), *C]
    return solve_with_reciprocals(L, reciprocals, lam, [t - b for t, b in zip(tau, bias, strict=True)])
