"""K and k of constraints that users define, by exact derivatives along the motion.

    position  phi(q, t) = 0     K e_j = phi's rate along dq/dt = Q(q) e_j,  phi' = K v + phi_t,  k = -phi''
    velocity  psi(q, v, t) = 0  K e_j = d psi / d v_j,                                           k = -psi'

with dv/dt = 0 in k (Featherstone 2008 section 3.4: holonomic and nonholonomic, scleronomic and rheonomic).
dq/dt = Q(q) v keeps quaternions on their sphere, so that K has one column for each velocity variable.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from dalembert.algorithms.dense import unit
from dalembert.model import configuration
from dalembert.model.joints.dual import directional_derivative
from dalembert.model.model import Model
from dalembert.model.user_constraints import Constraint
from dalembert.scalar import Scalar

__all__ = ["UserRows", "moving_derivative", "user_rows"]


class UserRows(NamedTuple):
    """The rows of one constraint, as in `ConstraintEquations`."""

    K: list[list[Scalar]]
    k: list[Scalar]
    velocity_error: list[Scalar]
    position_error: list[Scalar]


def user_rows(
    model: Model,
    constraint: Constraint,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    time: Scalar | None = None,
) -> UserRows:
    """Return K, k and the errors of one user constraint."""
    if constraint.kind == "velocity":
        return _velocity_rows(model, constraint, q, v, time)
    return _position_rows(model, constraint, q, v, time)


def moving_derivative(
    model: Model, function: Any, q: Sequence[Scalar], v: Sequence[Scalar], time: Scalar | None
) -> tuple[Any, Any]:
    """Return (f, df/dt) of f(q, time) as q moves with v, and time, if there is one, passes."""
    rate = configuration.position_rate(model, q, v)
    if time is None:
        return directional_derivative(lambda x: function(x, None), q, rate, v)
    return directional_derivative(lambda x: function(x[:-1], x[-1]), [*q, time], [*rate, 1.0], v)


def _position_rows(
    model: Model, constraint: Constraint, q: Sequence[Scalar], v: Sequence[Scalar], time: Scalar | None
) -> UserRows:
    nothing = [0.0] * model.nv

    def phi(x: Sequence[Scalar], now: Scalar | None) -> list[Scalar]:
        return constraint.residual(model, x, nothing, now)

    def rate(x: Sequence[Scalar], now: Scalar | None) -> list[Scalar]:
        derivative: list[Scalar] = moving_derivative(model, phi, x, v, now)[1]
        return derivative

    columns = _position_columns(model, lambda x: phi(x, time), q, [time])
    first, second = moving_derivative(model, rate, q, v, time)
    return UserRows(_transpose(columns, constraint.size), [-x for x in second], first, phi(q, time))


def _velocity_rows(
    model: Model, constraint: Constraint, q: Sequence[Scalar], v: Sequence[Scalar], time: Scalar | None
) -> UserRows:
    def psi(x: Sequence[Scalar], now: Scalar | None) -> list[Scalar]:
        return constraint.residual(model, x, v, now)

    columns = [
        _partial(lambda x: constraint.residual(model, q, x, time), v, slice(j, j + 1), [1.0], [*q, time])
        for j in range(model.nv)
    ]
    error, rate = moving_derivative(model, psi, q, v, time)
    return UserRows(_transpose(columns, constraint.size), [-x for x in rate], error, [0.0] * constraint.size)


def _position_columns(
    model: Model,
    function: Callable[[list[Scalar]], list[Scalar]],
    q: Sequence[Scalar],
    constants: Sequence[Scalar],
) -> list[list[Scalar]]:
    """Return the rate of a function of q along every velocity variable, joint by joint."""
    columns = []
    for body in model.bodies:
        if body.dependence is None:
            own = body.own_q(q)
            for j in range(body.nv):
                rate = body.joint.position_rate(own, unit(body.nv, j))
                columns.append(_partial(function, q, body.q_slice, rate, constants))
    return columns


def _partial(
    function: Callable[[list[Scalar]], list[Scalar]],
    x: Sequence[Scalar],
    part: slice,
    rate: Sequence[Scalar],
    constants: Sequence[Scalar] = (),
) -> list[Scalar]:
    """Return the derivative along a rate of some arguments; the others are constant, which costs less."""
    before, after = list(x[: part.start]), list(x[part.stop :])
    return directional_derivative(
        lambda own: function([*before, *own, *after]), x[part], rate, [*before, *after, *constants]
    )[1]


def _transpose(columns: Sequence[Sequence[Scalar]], rows: int) -> list[list[Scalar]]:
    return [[column[row] for column in columns] for row in range(rows)]
