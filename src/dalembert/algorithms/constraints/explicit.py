"""Explicit constraints q = gamma(y): Featherstone 2008 section 8.11, Eqs 8.56 to 8.60.

    v = G(y) dy/dt + (d gamma / dt),     a = G d²y/dt² + g

G and g are exact derivatives of gamma along the motion; rows of independent joints are unit rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from dalembert.algorithms.aligned import AlignedTree
from dalembert.algorithms.constraints.user_rows import UserRows
from dalembert.algorithms.dense import identity
from dalembert.errors import ArgumentError, ModelError
from dalembert.model.joints.dual import directional_derivative
from dalembert.model.model import Model
from dalembert.model.tree import Tree
from dalembert.model.user_constraints import LoopClosure
from dalembert.scalar import Scalar

__all__ = ["ClosureEquations", "closure_equations", "closure_rows", "original_model"]


class ClosureEquations(NamedTuple):
    """q (nq), v (nv), G (nv, ny) and g (nv) of a system that moves with y: v = G ydot, a = G ydd + g."""

    q: list[Scalar]
    v: list[Scalar]
    G: list[list[Scalar]]
    g: list[Scalar]


def closure_equations(
    tree: Tree, y: Sequence[Scalar], ydot: Sequence[Scalar], *, time: Scalar | None = None
) -> ClosureEquations:
    """Return q = gamma(y), v = G ydot, and G, g of a = G ydd + g.

    `y`: the positions, `ydot`: the velocity variables of `closure.independent`, joint by joint. Where gamma
    depends on time, v and g hold its part as well.
    """
    model, closure = _closure(tree)
    dependent = [i for i in range(model.nv) if i not in closure.velocities]
    places = _positions_of(model, dependent)

    def gamma(x: Sequence[Scalar], now: Scalar | None) -> list[Scalar]:
        q = closure.configuration(model, x, now)
        return [q[i] for i in places]

    def rate(x: Sequence[Scalar], now: Scalar | None) -> list[Scalar]:
        derivative: list[Scalar] = _along(model, closure, gamma, x, ydot, now, 1.0)[1]
        return derivative

    ny = len(ydot)
    units = identity(ny)
    columns = [_along(model, closure, gamma, y, unit, time, 0.0)[1] for unit in units]
    first, second = _along(model, closure, rate, y, ydot, time, 1.0)
    v: list[Scalar] = [0.0] * model.nv
    g: list[Scalar] = [0.0] * model.nv
    G: list[list[Scalar]] = [[0.0] * ny for _ in range(model.nv)]
    for j, place in enumerate(closure.velocities):
        v[place] = ydot[j]
        G[place][j] = 1.0
    for row, place in enumerate(dependent):
        v[place], g[place] = first[row], second[row]
        G[place] = [column[row] for column in columns]
    return ClosureEquations(closure.configuration(model, y, time), v, G, g)


def closure_rows(
    tree: Tree, q: Sequence[Scalar], v: Sequence[Scalar], time: Scalar | None = None
) -> UserRows:
    """Return the implicit form of q = gamma(y): one row q_d - gamma_d(y) = 0 for each dependent variable."""
    model, closure = _closure(tree)
    y, ydot = [q[i] for i in closure.positions], [v[i] for i in closure.velocities]
    found = closure_equations(tree, y, ydot, time=time)
    dependent = [i for i in range(model.nv) if i not in closure.velocities]
    K: list[list[Scalar]] = []
    for i in dependent:
        row: list[Scalar] = [0.0] * model.nv
        row[i] = 1.0
        for place, entry in zip(closure.velocities, found.G[i], strict=True):
            row[place] = -entry
        K.append(row)
    places = _positions_of(model, dependent)
    return UserRows(
        K,
        [found.g[i] for i in dependent],
        [v[i] - found.v[i] for i in dependent],
        [q[i] - found.q[i] for i in places],
    )


def original_model(tree: Tree) -> Model:
    """Return the model that users' functions see:
    the tree itself, or the one that an aligned tree describes."""
    if isinstance(tree, AlignedTree):
        return tree.original
    if isinstance(tree, Model):
        return tree
    raise ModelError(
        f"constraints are equations of a Model or an AlignedTree, not of a {type(tree).__name__}"
    )


def _closure(tree: Tree) -> tuple[Model, LoopClosure]:
    if tree.closure is None:
        raise ModelError("the model has no loop closure; give it one with builder.set_loop_closure")
    return original_model(tree), tree.closure


def _positions_of(model: Model, velocities: Sequence[int]) -> list[int]:
    """Return the places in q of velocity variables that are rates of positions."""
    places = {}
    for body in model.bodies:
        for offset in range(body.v_slice.stop - body.v_slice.start):
            places[body.v_slice.start + offset] = body.q_slice.start + offset
    return [places[i] for i in velocities]


def _along(
    model: Model,
    closure: LoopClosure,
    function: Any,
    y: Sequence[Scalar],
    ydot: Sequence[Scalar],
    time: Scalar | None,
    clock: float,
) -> tuple[Any, Any]:
    """Return (f, df/dt) of f(y, time), as y moves with ydot and time, if gamma depends on it,
    at the rate `clock`."""
    rate: list[Scalar] = []
    start_q = start_v = 0
    for name in closure.independent:
        joint = model.joint(name).joint
        own_y, own_v = y[start_q : start_q + joint.nq], ydot[start_v : start_v + joint.nv]
        rate += joint.position_rate(own_y, own_v)
        start_q, start_v = start_q + joint.nq, start_v + joint.nv
    if not closure.time_dependent:
        return directional_derivative(lambda x: function(x, None), y, rate, ydot)
    if time is None:
        raise ArgumentError("the loop closure depends on time; pass time=…")
    return directional_derivative(lambda x: function(x[:-1], x[-1]), [*y, time], [*rate, clock], ydot)
