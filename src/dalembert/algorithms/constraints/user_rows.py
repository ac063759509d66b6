"""K and k of constraints that users define, by exact derivatives along the motion.

    position  phi(q, t) = 0     K e_j = phi's rate along dq/dt = Q(q) e_j,  phi' = K v + phi_t,  k = -phi''
    velocity  psi(q, v, t) = 0  K e_j = d psi / d v_j,                                           k = -psi'

with dv/dt = 0 in k (Featherstone 2008 section 3.4: holonomic and nonholonomic, scleronomic and rheonomic).
dq/dt = Q(q) v keeps quaternions on their sphere, so that K has one column for each velocity variable.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

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
    """K, k and the errors of one user constraint."""
    if constraint.kind == "velocity":
        return _velocity_rows(model, constraint, q, v, time)
    return _position_rows(model, constraint, q, v, time)


def moving_derivative(
    model: Model, function: Any, q: Sequence[Scalar], v: Sequence[Scalar], time: Scalar | None, clock: float
) -> tuple[Any, Any]:
    """(f, df/dt) of f(q, time) as q moves with v and time, if there is one, at the rate `clock`."""
    rate = configuration.position_rate(model, q, v)
    if time is None:
        return directional_derivative(lambda x: function(x, None), q, rate)
    return directional_derivative(lambda x: function(x[:-1], x[-1]), [*q, time], [*rate, clock])


def _position_rows(
    model: Model, constraint: Constraint, q: Sequence[Scalar], v: Sequence[Scalar], time: Scalar | None
) -> UserRows:
    nothing = [0.0] * model.nv

    def phi(x: Sequence[Scalar], now: Scalar | None) -> list[Scalar]:
        return constraint.residual(model, x, nothing, now)

    def rate(x: Sequence[Scalar], now: Scalar | None) -> list[Scalar]:
        derivative: list[Scalar] = moving_derivative(model, phi, x, v, now, 1.0)[1]
        return derivative

    columns = [moving_derivative(model, phi, q, unit, time, 0.0)[1] for unit in _units(model.nv)]
    first, second = moving_derivative(model, rate, q, v, time, 1.0)
    return UserRows(_transposed(columns, constraint.size), [-x for x in second], first, phi(q, time))


def _velocity_rows(
    model: Model, constraint: Constraint, q: Sequence[Scalar], v: Sequence[Scalar], time: Scalar | None
) -> UserRows:
    def psi(x: Sequence[Scalar], now: Scalar | None) -> list[Scalar]:
        return constraint.residual(model, x, v, now)

    columns = [
        directional_derivative(lambda y: constraint.residual(model, q, y, time), v, unit)[1]
        for unit in _units(model.nv)
    ]
    error, rate = moving_derivative(model, psi, q, v, time, 1.0)
    return UserRows(_transposed(columns, constraint.size), [-x for x in rate], error, [0.0] * constraint.size)


def _units(n: int) -> list[list[Scalar]]:
    return [[1.0 if i == j else 0.0 for i in range(n)] for j in range(n)]


def _transposed(columns: Sequence[Sequence[Scalar]], rows: int) -> list[list[Scalar]]:
    return [[column[row] for column in columns] for row in range(rows)]
