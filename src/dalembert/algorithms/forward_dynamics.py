"""Forward dynamics: the choice of a method, and the methods that form the matrix."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, Unpack

from dalembert.algorithms.applied_forces import Loads, Stabilization, body_forces
from dalembert.algorithms.articulated import (
    Moved,
    articulated_body_passes,
    eliminate_joint,
    spatial_velocity_products,
    velocity_products,
)
from dalembert.algorithms.clusters import articulated_accelerations, cluster_inertias
from dalembert.algorithms.declaration import CONSTRAINED_LOADS, later, public
from dalembert.algorithms.gears import default_method, with_couplings
from dalembert.algorithms.inverse_dynamics import bias_forces
from dalembert.algorithms.mass_matrix import inertia_solver
from dalembert.algorithms.open_tree import (
    HAS_INVERSE,
    has_couplings,
    is_constrained,
    require_moving_mass,
    require_open_tree,
)
from dalembert.errors import ModelError, UnknownNameError
from dalembert.model.body import Body
from dalembert.model.tree import PerBody, Tree
from dalembert.scalar import Scalar, Scalars, Time
from dalembert.spatial import ArticulatedInertia


@public(
    "dynamics",
    "q v tau",
    optional=CONSTRAINED_LOADS,
    others=lambda: _methods(),
    frame_free=True,
    loops=("aba", "aba_spatial"),
    preconditions=HAS_INVERSE,
    differentiable=True,
)
def forward_dynamics(
    tree: Tree,
    q: Scalars,
    v: Scalars,
    tau: Scalars,
    *,
    method: str | None = None,
    stabilization: Stabilization = None,
    **given: Unpack[Loads],
) -> list[Scalar]:
    """Solve M(q) a + b(q, v) = tau + J^T external for a = dv/dt `(…, nv)` [rad/s^2 or m/s^2].

    `external_forces` as in `inverse_dynamics`. `method`: "aba", the articulated-body algorithm (Featherstone
    2008 Table 7.1), or "crba", which forms and factors M. Further assembly methods (sections 3.2, 7.4 and
    7.5): "divide_and_conquer" (in pairs) and "aba_inverse" (one body at a time), both by inverse inertias and
    also for loops, "aba_constraint_space" (by constraint forces), "projection" (all at once).

    Models with loops or other constraints satisfy M a + b = tau + J^T external + K^T lambda, K a = k, and
    have their own methods: "range_space" (lambda first; the default), "direct" (all at once), "null_space"
    (independent accelerations first), "loop_closure" (q = gamma(y); the default if the model has it),
    "sparse" (maximal coordinates, linear in the bodies of trees and ladders) and "maximal" (the same, dense);
    sections 8.5, 8.11 and 8.13. `stabilization`: time constant T_stab [s] of Baumgarte's stabilisation of
    constraint errors (Eq. 8.22), one number or one for each sample.

    >>> model = da.models.pendulum(length=2.0, mass=3.0)
    >>> a = da.forward_dynamics(model, q=[np.pi / 6], v=[0.0], tau=[0.0])  # -g / l sin q
    >>> print(a.round(6))
    [-2.4525]
    >>> print(da.forward_dynamics(model, [np.pi / 6], [0.0], [0.0], method="crba").round(6))
    [-2.4525]
    >>> linkage = da.models.four_bar()
    >>> print(da.forward_dynamics(linkage, np.zeros(3), np.zeros(3), tau=[1.0, 0.0, 0.0]).round(3))
    [-18.879  26.969   8.091]
    """
    if is_constrained(tree) or method not in (None, *TREE_METHODS):
        _require_method_for(tree, method)
        from dalembert.algorithms.loops import constrained_forward_dynamics  # plain trees do without

        return constrained_forward_dynamics(
            tree, q, v, tau, method=method, stabilization=stabilization, **given
        )
    require_moving_mass(tree, "forward_dynamics")
    return TREE_METHODS[method or default_method(tree)](tree, q, v, tau, **given)


def _methods() -> dict[str, Callable[..., Any]]:
    from dalembert.algorithms.loops import METHODS

    return {
        **{name: functools.partial(forward_dynamics, method=name) for name in (*TREE_METHODS, *METHODS)},
        "divide_and_conquer": with_couplings(later("textbook:divide_and_conquer")),
        "aba_inverse": with_couplings(later("textbook:forward_dynamics_by_inverse_inertias")),
        "aba_constraint_space": with_couplings(later("textbook:forward_dynamics_in_constraint_space")),
        "projection": later("textbook:forward_dynamics_by_projection"),
        "hamiltonian": later("algorithms.geometry:forward_dynamics_hamiltonian"),
        "gauss": later("algorithms.geometry:forward_dynamics_gauss"),
    }


def _require_method_for(tree: Tree, method: str | None) -> None:
    """Refuse methods of trees for models with constraints, and the other way round."""
    from dalembert.algorithms.loops import ANY_CONNECTIVITY, METHODS

    if is_constrained(tree) and method in TREE_METHODS:
        raise ModelError(
            f'forward_dynamics: method="{method}" is for trees, and this model has constraints; '
            f"use one of {_quote_names(METHODS)}, or model.tree() for the spanning tree alone"
        )
    if is_constrained(tree) or method in ANY_CONNECTIVITY:
        return
    if method in METHODS:
        raise ModelError(
            f'forward_dynamics: method="{method}" is for models with loops or other constraints, and '
            f"this one has none; use one of {_quote_names((*TREE_METHODS, *ANY_CONNECTIVITY))}"
        )
    raise UnknownNameError.of("method of forward_dynamics", str(method), TREE_METHODS)


def _quote_names(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def forward_dynamics_articulated(
    tree: Tree, q: Scalars, v: Scalars, tau: Scalars, **given: Unpack[Loads]
) -> list[Scalar]:
    """Run Table 7.1 with co-moving observers, so that linear velocities do not occur; see `articulated`."""
    f_x = body_forces(tree, q, **given)
    moved = velocity_products(tree, q, v, f_x, given.get("time"))
    return _accelerations(tree, moved, tau, "forward_dynamics")


def forward_dynamics_spatial(
    tree: Tree, q: Scalars, v: Scalars, tau: Scalars, **given: Unpack[Loads]
) -> list[Scalar]:
    """Compute Table 7.1 with spatial velocities: c = c_J + v x v_J, p = v x* I v - f^x; a second witness."""
    require_open_tree(tree, "forward_dynamics_spatial")
    require_moving_mass(tree, "forward_dynamics_spatial")
    f_x = body_forces(tree, q, **given)
    moved = spatial_velocity_products(tree, q, v, f_x, given.get("time"))
    return _accelerations(tree, moved, tau, "forward_dynamics_spatial")


def _accelerations(tree: Tree, moved: PerBody[Moved], tau: Scalars, function: str) -> list[Scalar]:
    """Run passes 2 and 3; coupled joints are eliminated together."""
    if has_couplings(tree):
        return articulated_accelerations(tree, moved, tau, function=function).a
    return articulated_body_passes(tree, moved, tau)


def forward_dynamics_by_matrix(
    tree: Tree, q: Scalars, v: Scalars, tau: Scalars, **given: Unpack[Loads]
) -> list[Scalar]:
    """Return a = M^-1 (tau - b) by composite rigid bodies and sparse L^T D L (chapter 6)."""
    b = bias_forces(tree, q, v, **given)
    solve = inertia_solver(tree, q, time=given.get("time"))
    return solve([t - b_k for t, b_k in zip(tau, b, strict=True)])


def articulated_inertias(tree: Tree, q: Scalars, *, time: Time = None) -> PerBody[ArticulatedInertia]:
    """Return I_i^A of every body as the handle of what it carries, in its own coordinates (Eq. 7.21).

    It does not depend on velocity. For bodies with coupled joints it is the inertia of what they carry
    outside their cluster (`gears`).
    """
    if has_couplings(tree):
        inertias = cluster_inertias(tree, q, time=time)
        return PerBody([ArticulatedInertia.zero() + inertia for inertia in inertias])

    def step(body: Body, I_children: ArticulatedInertia) -> tuple[ArticulatedInertia, ArticulatedInertia]:
        joint = body.jcalc(q, None, time)
        I_A = I_children + body.inertia
        return joint.X.inverse_apply(eliminate_joint(I_A, joint.S, body.armature).I_a), I_A

    return tree.inward(step, ArticulatedInertia.zero())[0]


TREE_METHODS: dict[str, Callable[..., list[Scalar]]] = {
    "aba": forward_dynamics_articulated,
    "crba": forward_dynamics_by_matrix,
    "aba_spatial": forward_dynamics_spatial,
    "aba_multipliers": with_couplings(functools.partial(forward_dynamics, method="aba")),
    "floating_base": later("algorithms.floating_base:floating_base_forward_dynamics"),  # others do without
}
"""The methods for systems without constraints."""
