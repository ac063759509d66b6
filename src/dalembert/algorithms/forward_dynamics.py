"""Forward dynamics: the articulated-body algorithm, O(n) (Featherstone 2008 Table 7.1).

Three passes: velocities outward; articulated-body inertias and bias forces inward; accelerations outward.
Bodies are seen by co-moving observers (see `velocity_products`), so that linear velocities do not occur:

    I_i^A = I_i + sum X^T I_j^a X,   p_i^A = p_i + sum X^T p_j^a                                     (1)
    a'_i  = X a_lambda + c_i                                                                         (2)

and what the joint does with them is in `articulated`. The base accelerates by -gravity.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Unpack

from dalembert.algorithms.applied_forces import Loads, Stabilization, body_forces
from dalembert.algorithms.articulated import (
    JointElimination,
    Moved,
    eliminate_joint,
    spatial_velocity_products,
    velocity_products,
)
from dalembert.algorithms.clusters import articulated_accelerations, cluster_inertias
from dalembert.algorithms.gears import default_method, with_couplings
from dalembert.algorithms.inverse_dynamics import bias_forces
from dalembert.algorithms.mass_matrix import mass_matrix
from dalembert.algorithms.open_tree import (
    has_couplings,
    is_constrained,
    require_moving_mass,
    require_open_tree,
    variable_parents,
)
from dalembert.algorithms.sparse import factor_with_reciprocals, solve_with_reciprocals
from dalembert.errors import ModelError, UnknownNameError
from dalembert.model.body import Body
from dalembert.model.tree import PerBody, Tree
from dalembert.scalar import Scalar, Scalars, Time
from dalembert.spatial import ArticulatedInertia, Force, Motion, Vec3

__all__ = [
    "articulated_inertias",
    "forward_dynamics",
    "forward_dynamics_by_matrix",
    "forward_dynamics_spatial",
]


TREE_METHODS = ("aba", "crba", "aba_spatial", "aba_multipliers", "floating_base")
"""The methods for systems without constraints."""


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
    """Solve M(q) a + b(q, v) = tau + external for a = dv/dt `(nv,)` [rad/s^2 or m/s^2].

    `method`: "aba", the default; "crba", which forms and factors M. Where joints are coupled, "aba" takes
    them out of the equations together, "aba_multipliers" solves for the forces of the gears, and the default
    is the cheapest (`gears.default_method`). "floating_base" adds gravity at the end, for a free root.
    Systems with loops and other constraints have methods of their own, see
    `loops.constrained_forward_dynamics`; `stabilization` concerns them alone. Of these "sparse" and "maximal"
    serve trees too.
    """
    time = given.get("time")
    if is_constrained(tree) or method not in (None, *TREE_METHODS):
        _require_method_for(tree, method)
        from dalembert.algorithms.loops import constrained_forward_dynamics  # plain trees do without

        return constrained_forward_dynamics(
            tree, q, v, tau, method=method, stabilization=stabilization, **given
        )
    require_moving_mass(tree, "forward_dynamics")
    chosen = method or default_method(tree)
    if chosen == "crba":
        return forward_dynamics_by_matrix(tree, q, v, tau, **given)
    if chosen == "aba_spatial":
        return forward_dynamics_spatial(tree, q, v, tau, **given)
    if chosen == "floating_base":
        from dalembert.algorithms.floating_base import floating_base_forward_dynamics

        return floating_base_forward_dynamics(tree, q, v, tau, **given)
    if chosen == "aba_multipliers":
        return with_couplings(functools.partial(forward_dynamics, method="aba"))(tree, q, v, tau, **given)
    f_x = body_forces(tree, q, **given)
    return _articulated_passes(tree, velocity_products(tree, q, v, f_x, time), tau, "forward_dynamics")


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


def _articulated_passes(tree: Tree, moved: PerBody[Moved], tau: Scalars, function: str) -> list[Scalar]:
    """Run passes 2 and 3: articulated inertias inward, accelerations outward."""
    if has_couplings(tree):
        return articulated_accelerations(tree, moved, tau, function=function).a
    return _accelerations(tree, moved, _inertias(tree, moved, tau))


Eliminated = tuple[JointElimination, list[Scalar]]
"""Pass 2, of each body: the joint's elimination and its u."""


def _inertias(tree: Tree, moved: PerBody[Moved], tau: Scalars) -> PerBody[Eliminated]:
    def step(
        body: Body, gathered: tuple[ArticulatedInertia, Force]
    ) -> tuple[tuple[ArticulatedInertia, Force], Eliminated]:
        (X, S, _, _), c, p = moved[body]
        I_A, p_A = gathered[0] + body.inertia, gathered[1] + p  # (1)
        own_tau = body.own_v(tau)
        try:
            joint = eliminate_joint(I_A, S, body.armature)
        except ZeroDivisionError:
            raise ModelError(
                f'forward_dynamics: joint "{body.joint_name}" has a freedom along which nothing with inertia '
                "moves; give what it carries mass and moments of inertia, or the joint an armature"
            ) from None
        u = joint.joint_force(own_tau, p_A)
        p_a = joint.bias_force(p_A, c, own_tau, u)
        return (X.inverse_apply(joint.I_a), X.inverse_apply(p_a)), (joint, u)

    return tree.inward(step, (ArticulatedInertia.zero(), Force.zero()))[0]


def _accelerations(tree: Tree, moved: PerBody[Moved], joints: PerBody[Eliminated]) -> list[Scalar]:
    def step(body: Body, a_parent: Motion) -> tuple[Motion, list[Scalar]]:
        (X, _, _, _), c, _ = moved[body]
        joint, u = joints[body]
        vdot, a = joint.accelerations(u, X.apply(a_parent) + c)  # (2)
        return a, vdot

    return tree.collect(tree.outward(step, Motion(Vec3.zero(), -tree.gravity)))


def forward_dynamics_by_matrix(
    tree: Tree, q: Scalars, v: Scalars, tau: Scalars, **given: Unpack[Loads]
) -> list[Scalar]:
    """Return a = M^-1 (tau - b) by composite rigid bodies and sparse L^T D L (chapter 6);
    also for coupled joints."""
    time = given.get("time")
    b = bias_forces(tree, q, v, **given)
    lam = variable_parents(tree)
    L, reciprocals = factor_with_reciprocals(mass_matrix(tree, q, time=time), lam)
    return solve_with_reciprocals(L, reciprocals, lam, [t - b_k for t, b_k in zip(tau, b, strict=True)])


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


def forward_dynamics_spatial(
    tree: Tree, q: Scalars, v: Scalars, tau: Scalars, **given: Unpack[Loads]
) -> list[Scalar]:
    """Compute Table 7.1 with spatial velocities in body coordinates: c = c_J + v x v_J, p = v x* I v - f^x.

    The same passes as `forward_dynamics`, which differs in its observers only; the second witness of its
    results.
    """
    time = given.get("time")
    require_open_tree(tree, "forward_dynamics_spatial")
    require_moving_mass(tree, "forward_dynamics_spatial")
    f_x = body_forces(tree, q, **given)
    moved = spatial_velocity_products(tree, q, v, f_x, time)
    return _articulated_passes(tree, moved, tau, "forward_dynamics_spatial")
