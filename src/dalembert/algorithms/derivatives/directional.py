"""Derivatives of any algorithm of the dynamics, direction by direction, with dual numbers.

Exact, at about twice the cost of the algorithm for each column: for systems that the closed formulas do not
cover, and the second witness of those that they do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dalembert.algorithms.dense import Matrix, transpose, unit
from dalembert.algorithms.derivatives.inverse_dynamics import Derivatives
from dalembert.algorithms.forward_dynamics import forward_dynamics
from dalembert.algorithms.inverse_dynamics import inverse_dynamics
from dalembert.model.joints.dual import directional_derivative
from dalembert.model.tree import Tree
from dalembert.scalar import Scalar
from dalembert.spatial.structure import leaves

__all__ = [
    "directional_forward_dynamics_derivatives",
    "directional_inverse_dynamics_derivatives",
    "jacobians_of",
]


def jacobians_of(
    function: Callable[..., Any],
    tree: Tree,
    arguments: Sequence[Sequence[Scalar]],
    given: Sequence[Scalar] = (),
) -> list[Matrix]:
    """Return the Jacobians of a list of scalars f(*arguments), first with respect to q on its tangent space.

    `given`: what else f computes with, where that may hold dual numbers.
    """
    constants = [*given, *(x for argument in arguments for x in argument)]
    jacobians = []
    for place, argument in enumerate(arguments):
        size = tree.nv if place == 0 else len(argument)
        columns = []
        for k in range(size):
            direction = unit(size, k)
            step = _position_rate(tree, argument, direction) if place == 0 else direction

            def function_of_argument(x: list[Scalar], place: int = place) -> list[Scalar]:
                values = [*arguments[:place], x, *arguments[place + 1 :]]
                return list(function(*values))

            columns.append(directional_derivative(function_of_argument, argument, step, constants)[1])
        jacobians.append(transpose(columns))
    return jacobians


def directional_inverse_dynamics_derivatives(
    tree: Tree, q: Sequence[Scalar], v: Sequence[Scalar], a: Sequence[Scalar], **options: Any
) -> Derivatives:
    """Return (dtau/dq, dtau/dv, dtau/da) of `inverse_dynamics`, also for systems with constraints."""
    dynamics = lambda *x: inverse_dynamics(tree, *x, **options)
    return Derivatives(*jacobians_of(dynamics, tree, (q, v, a), leaves(options)))


def directional_forward_dynamics_derivatives(
    tree: Tree, q: Sequence[Scalar], v: Sequence[Scalar], tau: Sequence[Scalar], **options: Any
) -> Derivatives:
    """Return (da/dq, da/dv, da/dtau) of `forward_dynamics`, also for systems with constraints."""
    dynamics = lambda *x: forward_dynamics(tree, *x, **options)
    return Derivatives(*jacobians_of(dynamics, tree, (q, v, tau), leaves(options)))


def _position_rate(tree: Tree, q: Sequence[Scalar], v: Sequence[Scalar]) -> list[Scalar]:
    """Return dq/dt = Q(q) v, joint by joint."""
    rates: list[Scalar] = [0.0] * tree.nq
    for body in tree.bodies:
        if body.dependence is None:
            rates[body.q_slice] = body.joint.position_rate(q[body.q_slice], v[body.v_slice])
    return rates
