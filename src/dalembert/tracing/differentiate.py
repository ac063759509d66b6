"""Derivatives of expressions, as expressions of the same graph.

Every operation is linear in the changes of its arguments: dy = sum_k p_k dx_k. A *local derivative* is that
linear map: `tangent` applies it to changes, `cotangents` applies its transpose. Structural zeros are the
float 0.0 and are never built. `select`, `min`, `max` and `abs` have the derivative of the branch taken;
forward, the other branch cannot spoil it by NaN; `floor` is constant between its jumps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from dalembert import scalar
from dalembert.errors import ShapeError
from dalembert.scalar import Scalar
from dalembert.tracing.expression import Expression, live
from dalembert.tracing.operations import BOOLEAN_OPS

__all__ = ["jacobian", "jvp", "vjp"]


def jacobian(
    outputs: Sequence[Expression],
    inputs: Sequence[Expression],
    seeds: Sequence[Mapping[int, Scalar]] | None = None,
) -> list[dict[int, Scalar]]:
    """The rows of the matrix d outputs / d directions: its entries by column, structural zeros left out.

    Directions are the inputs themselves, or with `seeds` what the inputs change along: `seeds[i][k]` is the
    rate of input i along direction k. Forward accumulation carries each node's derivatives by the directions
    that it depends on, reverse accumulation each node's adjoints for the outputs that depend on it; the one
    with fewer of these products is taken.
    """
    if seeds is None:
        seeds = [{k: 1.0} for k in range(len(inputs))]
    nodes = live(outputs)
    forward, reverse = _products(nodes, outputs, inputs, seeds)
    if forward <= reverse:
        return _forward(nodes, outputs, inputs, seeds)
    return _reverse(nodes, outputs, inputs, seeds)


def jvp(
    outputs: Sequence[Expression], inputs: Sequence[Expression], tangents: Sequence[Scalar]
) -> list[Scalar]:
    """The change of the outputs for a change of the inputs: J tangents."""
    _same_length("tangents", tangents, "inputs", inputs)
    change: dict[int, Scalar] = {x.index: dx for x, dx in zip(inputs, tangents, strict=True)}
    for node in live(outputs):
        if node.args and node.index not in change:
            change[node.index] = _tangent(node, [change.get(item.index, 0.0) for item in node.args])
    return [change.get(y.index, 0.0) for y in outputs]


def vjp(
    outputs: Sequence[Expression], inputs: Sequence[Expression], cotangents: Sequence[Scalar]
) -> list[Scalar]:
    """The gradient by the inputs of `sum cotangents outputs`: J^T cotangents."""
    _same_length("cotangents", cotangents, "outputs", outputs)
    return _adjoint(live(outputs), outputs, inputs, cotangents)


def _adjoint(
    nodes: Sequence[Expression],
    outputs: Sequence[Expression],
    inputs: Sequence[Expression],
    cotangents: Sequence[Scalar],
) -> list[Scalar]:
    own = {x.index for x in inputs}
    depends = _dependents(nodes, own)
    adjoint: dict[int, Scalar] = {}
    for y, weight in zip(outputs, cotangents, strict=True):
        adjoint[y.index] = adjoint.get(y.index, 0.0) + weight
    for node in reversed(nodes):
        weight = adjoint.get(node.index, 0.0)
        if scalar.is_zero(weight) or node.index in own or node.index not in depends:
            continue
        wanted = [item.index in depends for item in node.args]
        for item, share in zip(node.args, _cotangents(node, weight, wanted), strict=True):
            if not scalar.is_zero(share):
                adjoint[item.index] = adjoint.get(item.index, 0.0) + share
    return [adjoint.get(x.index, 0.0) for x in inputs]


def _forward(
    nodes: Sequence[Expression],
    outputs: Sequence[Expression],
    inputs: Sequence[Expression],
    seeds: Sequence[Mapping[int, Scalar]],
) -> list[dict[int, Scalar]]:
    change: dict[int, Mapping[int, Scalar]] = {x.index: seed for x, seed in zip(inputs, seeds, strict=True)}
    for node in nodes:
        if node.index in change or not node.args:
            continue
        columns = [change.get(item.index, {}) for item in node.args]
        row: dict[int, Scalar] = {}
        for k in sorted({k for column in columns for k in column}):
            value = _tangent(node, [column.get(k, 0.0) for column in columns])
            if not scalar.is_zero(value):
                row[k] = value
        change[node.index] = row
    return [dict(change.get(y.index, {})) for y in outputs]


def _reverse(
    nodes: Sequence[Expression],
    outputs: Sequence[Expression],
    inputs: Sequence[Expression],
    seeds: Sequence[Mapping[int, Scalar]],
) -> list[dict[int, Scalar]]:
    rows = []
    for y in outputs:
        row: dict[int, Scalar] = {}
        for slope, seed in zip(_adjoint(live([y]), [y], inputs, [1.0]), seeds, strict=True):
            if not scalar.is_zero(slope):
                for k, rate in seed.items():
                    row[k] = row.get(k, 0.0) + slope * rate
        rows.append({k: value for k, value in sorted(row.items()) if not scalar.is_zero(value)})
    return rows


def _products(
    nodes: Sequence[Expression],
    outputs: Sequence[Expression],
    inputs: Sequence[Expression],
    seeds: Sequence[Mapping[int, Scalar]],
) -> tuple[int, int]:
    """Number of local derivatives applied forward and in reverse: by sets of directions and outputs."""
    below: dict[int, int] = {}
    for x, seed in zip(inputs, seeds, strict=True):
        below[x.index] = sum(1 << k for k in seed)
    for node in nodes:
        if node.index not in below:
            mask = 0
            for item in node.args:
                mask |= below[item.index]
            below[node.index] = mask
    above: dict[int, int] = {}
    for k, y in enumerate(outputs):
        above[y.index] = above.get(y.index, 0) | 1 << k
    forward = reverse = 0
    for node in reversed(nodes):
        mask = above.get(node.index, 0)
        for item in node.args:
            above[item.index] = above.get(item.index, 0) | mask
            if below[item.index]:
                forward += below[item.index].bit_count()
                reverse += mask.bit_count()
    return forward, reverse


def _dependents(nodes: Sequence[Expression], own: set[int]) -> set[int]:
    found = set(own)
    for node in nodes:
        if any(item.index in found for item in node.args):
            found.add(node.index)
    return found


def _tangent(node: Expression, changes: Sequence[Scalar]) -> Scalar:
    """dy for given dx; changes that are the float 0.0 cost nothing."""
    if all(scalar.is_zero(change) for change in changes):
        return 0.0
    branch = _BRANCHES.get(node.op)
    if branch is not None:
        condition, taken, otherwise = branch(node, changes)
        return scalar.select(condition, taken, otherwise)
    total: Scalar = 0.0
    partials = _PARTIALS[node.op]
    for k, change in enumerate(changes):
        if not scalar.is_zero(change):
            total = total + partials[k](node) * change
    return total


def _cotangents(node: Expression, weight: Scalar, wanted: Sequence[bool]) -> list[Scalar]:
    """The adjoint contributions of a node to those of its arguments that are wanted, 0.0 to the others."""
    if node.op in ("select", "min", "max"):
        condition = node.args[0] if node.op == "select" else _chooses_first(node)
        shares = [scalar.select(condition, weight, 0.0), scalar.select(condition, 0.0, weight)]
        return ([0.0] if node.op == "select" else []) + shares
    if node.op == "abs":
        return [scalar.select(node.args[0] < 0.0, -weight, weight)]
    partials = _PARTIALS[node.op]
    return [partials[k](node) * weight if wanted[k] else 0.0 for k in range(len(node.args))]


def _chooses_first(node: Expression) -> Scalar:
    a, b = node.args
    return a < b if node.op == "min" else b < a


def _same_length(name: str, given: Sequence[Any], of: str, expected: Sequence[Any]) -> None:
    if len(given) != len(expected):
        raise ShapeError(f"{name}: expected {len(expected)}, one for each of the {of}, got {len(given)}")


Partial = Callable[[Expression], Scalar]


def _unary(partial: Callable[[Expression, Expression], Scalar]) -> tuple[Partial]:
    """From p(x, y) with y = f(x)."""
    return (lambda node: partial(node.args[0], node),)


_BRANCHES: Final[Mapping[str, Callable[[Expression, Sequence[Scalar]], tuple[Scalar, Scalar, Scalar]]]] = {
    "select": lambda node, d: (node.args[0], d[1], d[2]),
    "min": lambda node, d: (_chooses_first(node), d[0], d[1]),
    "max": lambda node, d: (_chooses_first(node), d[0], d[1]),
    "abs": lambda node, d: (node.args[0] < 0.0, -d[0], d[0]),
}

_PARTIALS: Final[Mapping[str, tuple[Partial, ...]]] = {
    "add": (lambda node: 1.0, lambda node: 1.0),
    "sub": (lambda node: 1.0, lambda node: -1.0),
    "mul": (lambda node: node.args[1], lambda node: node.args[0]),
    "div": (lambda node: 1.0 / node.args[1], lambda node: -(node * (1.0 / node.args[1]))),
    "neg": (lambda node: -1.0,),
    "sqrt": _unary(lambda x, y: 0.5 / y),
    "sin": _unary(lambda x, y: scalar.cos(x)),
    "cos": _unary(lambda x, y: -scalar.sin(x)),
    "tan": _unary(lambda x, y: 1.0 + y * y),
    "asin": _unary(lambda x, y: 1.0 / scalar.sqrt(1.0 - x * x)),
    "acos": _unary(lambda x, y: -1.0 / scalar.sqrt(1.0 - x * x)),
    "atan2": (
        lambda node: node.args[1] / _squared_radius(node),
        lambda node: -(node.args[0] / _squared_radius(node)),
    ),
    "exp": _unary(lambda x, y: y),
    "log": _unary(lambda x, y: 1.0 / x),
    "floor": (lambda node: 0.0,),
    "fma": (lambda node: node.args[1], lambda node: node.args[0], lambda node: 1.0),
    **{op: (lambda node: 0.0, lambda node: 0.0) for op in BOOLEAN_OPS},
}


def _squared_radius(node: Expression) -> Scalar:
    y, x = node.args
    return x * x + y * y
