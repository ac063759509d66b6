"""Derivatives of expressions, as expressions of the same graph.

Forward accumulation carries the change of each value along directions, reverse accumulation the adjoint of
each value: the derivative of a weighted sum of the outputs by it. Structural zeros are left out and never
built. `select`, `min`, `max` and `abs` have the derivative of the branch taken, and the other branch cannot
spoil it by NaN in either direction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dalembert import scalar
from dalembert.errors import ShapeError
from dalembert.scalar import Scalar
from dalembert.tracing.accumulation_costs import reversed_rows
from dalembert.tracing.expression import Expression, live
from dalembert.tracing.guards import ALWAYS, Guard, Guards
from dalembert.tracing.local_derivatives import CHOICES, CONSTANT_OPS, edges, tangent

__all__ = ["jacobian", "jvp", "vjp"]


def jacobian(
    outputs: Sequence[Expression],
    inputs: Sequence[Expression],
    seeds: Sequence[Mapping[int, Scalar]] | None = None,
) -> list[dict[int, Scalar]]:
    """Return the rows of the matrix d outputs / d directions: its entries by column, structural zeros left
    out.

    Directions are the inputs themselves, or with `seeds` what the inputs change along: `seeds[i][k]` is the
    rate of input i along direction k. Forward, each value has derivatives along those directions alone that
    it depends on: columns without a row in common share no value, so that colouring would gain nothing more.
    Rows that cost less in reverse are accumulated so, as `accumulation_costs` counts it.
    """
    if seeds is None:
        seeds = [{k: 1.0} for k in range(len(inputs))]
    chosen = reversed_rows(live(outputs), outputs, inputs, seeds)
    rest = [k for k in range(len(outputs)) if k not in chosen]
    forward = _forward([outputs[k] for k in rest], inputs, seeds)
    rows = dict(zip(rest, forward, strict=True))
    known: dict[int, dict[int, Scalar]] = {}
    for k in sorted(chosen):
        y = outputs[k]
        if y.index not in known:
            known[y.index] = _reverse(y, inputs, seeds)
        rows[k] = dict(known[y.index])
    return [rows[k] for k in range(len(outputs))]


def jvp(
    outputs: Sequence[Expression], inputs: Sequence[Expression], tangents: Sequence[Scalar]
) -> list[Scalar]:
    """Return the change of the outputs for a change of the inputs: J tangents."""
    _same_length("tangents", tangents, "inputs", inputs)
    change: dict[int, Scalar] = {x.index: dx for x, dx in zip(inputs, tangents, strict=True)}
    for node in live(outputs):
        if node.args and node.index not in change:
            change[node.index] = tangent(node, [change.get(item.index, 0.0) for item in node.args])
    return [change.get(y.index, 0.0) for y in outputs]


def vjp(
    outputs: Sequence[Expression], inputs: Sequence[Expression], cotangents: Sequence[Scalar]
) -> list[Scalar]:
    """Return the gradient by the inputs of `sum cotangents outputs`: J^T cotangents.

    The gradient costs at most a few times what the outputs do, however many inputs there are.
    """
    _same_length("cotangents", cotangents, "outputs", outputs)
    if not outputs or not inputs:
        return [0.0] * len(inputs)
    nodes = live(outputs)
    own = {x.index for x in inputs}
    depends = _dependents(nodes, own)
    guards = Guards(outputs[0].graph)
    branching = any(node.op in CHOICES for node in nodes)
    shares: dict[int, list[tuple[Guard, Scalar]]] = {}
    for y, weight in zip(outputs, cotangents, strict=True):
        shares.setdefault(y.index, []).append((ALWAYS, weight))
    for node in reversed(nodes):
        if node.index in own or node.index not in depends or node.index not in shares:
            continue
        given = shares.pop(node.index)
        guard = guards.either([item for item, _ in given]) if branching else ALWAYS
        weight = guards.total(given, guard)
        if scalar.is_zero(weight):
            continue
        wanted = [item.index in depends for item in node.args]
        for edge in edges(node, weight, wanted):
            if not scalar.is_zero(edge.share):
                within = guards.within(guard, edge.condition, edge.holds)
                shares.setdefault(edge.item.index, []).append((within, edge.share))
    return [guards.total(shares.get(x.index, ()), ALWAYS) for x in inputs]


def _forward(
    outputs: Sequence[Expression], inputs: Sequence[Expression], seeds: Sequence[Mapping[int, Scalar]]
) -> list[dict[int, Scalar]]:
    change: dict[int, Mapping[int, Scalar]] = {x.index: seed for x, seed in zip(inputs, seeds, strict=True)}
    for node in live(outputs):
        if node.index in change or not node.args or node.op in CONSTANT_OPS:
            continue
        columns = [change.get(item.index, {}) for item in node.args]
        row: dict[int, Scalar] = {}
        for k in sorted({k for column in columns for k in column}):
            value = tangent(node, [column.get(k, 0.0) for column in columns])
            if not scalar.is_zero(value):
                row[k] = value
        change[node.index] = row
    return [dict(change.get(y.index, {})) for y in outputs]


def _reverse(
    output: Expression, inputs: Sequence[Expression], seeds: Sequence[Mapping[int, Scalar]]
) -> dict[int, Scalar]:
    row: dict[int, Scalar] = {}
    for slope, seed in zip(vjp([output], inputs, [1.0]), seeds, strict=True):
        if not scalar.is_zero(slope):
            for k, rate in seed.items():
                row[k] = row.get(k, 0.0) + slope * rate
    return {k: value for k, value in sorted(row.items()) if not scalar.is_zero(value)}


def _dependents(nodes: Sequence[Expression], own: set[int]) -> set[int]:
    found = set(own)
    for node in nodes:
        if node.op not in CONSTANT_OPS and any(item.index in found for item in node.args):
            found.add(node.index)
    return found


def _same_length(name: str, given: Sequence[Any], of: str, expected: Sequence[Any]) -> None:
    if len(given) != len(expected):
        raise ShapeError(f"{name}: expected {len(expected)}, one for each of the {of}, got {len(given)}")
