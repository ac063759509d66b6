"""Jacobian and bias of a map between coordinates, by exact derivatives of the map."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from dalembert.algorithms.dense import Matrix, unit
from dalembert.model.joints.dual import directional_derivative
from dalembert.scalar import Scalar

__all__ = ["MapMotion", "map_motion"]


class MapMotion(NamedTuple):
    """The motion of y = f(x): y, J = df/dx, the velocity J x', and bias = J' x' of y'' = J x'' + bias."""

    value: list[Scalar]
    J: Matrix
    velocity: list[Scalar]
    bias: list[Scalar]


def map_motion(
    function: Callable[[list[Scalar]], Sequence[Scalar]], x: Sequence[Scalar], x_rate: Sequence[Scalar]
) -> MapMotion:
    """Return f, J, J x' and J' x' of a map f: a constraint phi(x) = 0, or coordinates x = h(q).

    J' = sum of dJ/dx_i x_i' (Todorov, "implicit constraints"), so that J' x' is the second derivative of f
    along x'.
    """

    def as_list(z: list[Scalar]) -> list[Scalar]:
        return list(function(z))

    n = len(x)
    columns = []
    value: list[Scalar] = as_list(list(x))
    for i in range(n):
        columns.append(directional_derivative(as_list, list(x), unit(n, i))[1])
    J = [[column[r] for column in columns] for r in range(len(value))]
    velocity, bias = directional_derivative(
        lambda z: directional_derivative(as_list, z, x_rate)[1], list(x), x_rate
    )
    return MapMotion(value, J, velocity, bias)
