"""Exact derivatives of functions of a state by dual numbers, which know nothing of the recursions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dalembert.model.joints.dual import directional_derivative
from dalembert.model.tree import Tree

State = Callable[[Any, Any, Any], Any]


def position_rate(tree: Tree, q: Sequence[float], v: Sequence[float]) -> list[float]:
    """dq/dt of the whole tree at the velocity v."""
    rate = [0.0] * tree.nq
    for body in tree.bodies:
        if body.dependence is None:
            rate[body.q_slice] = body.joint.position_rate(q[body.q_slice], v[body.v_slice])
    return rate


def derivative(function: State, tree: Tree, at: tuple[Any, Any, Any], by: str, j: int) -> Any:
    """The derivative of function(q, v, a) along variable j of "q" (on the tangent space), "v" or "a"."""
    q, v, a = at
    unit = [1.0 if k == j else 0.0 for k in range(tree.nv)]
    if by == "q":
        return directional_derivative(lambda x: function(x, v, a), q, position_rate(tree, q, unit))[1]
    if by == "v":
        return directional_derivative(lambda x: function(q, x, a), v, unit)[1]
    return directional_derivative(lambda x: function(q, v, x), a, unit)[1]


def jacobians(function: State, tree: Tree, at: tuple[Any, Any, Any]) -> list[np.ndarray]:
    """By q, v and a: matrices with a column for each variable."""
    columns = [[derivative(function, tree, at, by, j) for j in range(tree.nv)] for by in "qva"]
    return [np.array(x, dtype=float).reshape(tree.nv, -1).T for x in columns]
