"""The choice of the Jacobian rows that cost less in reverse mode, from counts of products and sums.

A row leaves the forward accumulation if the values that only this row needs cost more in forward mode (one
derivative for each direction that they depend on) than all values of the row cost in reverse mode.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dalembert.scalar import Scalar
from dalembert.tracing.expression import Expression
from dalembert.tracing.local_derivatives import CONSTANT_OPS, FREE_OPS

__all__ = ["reversed_rows"]


def reversed_rows(
    nodes: Sequence[Expression],
    outputs: Sequence[Expression],
    inputs: Sequence[Expression],
    seeds: Sequence[Mapping[int, Scalar]],
) -> set[int]:
    """Return the positions of the outputs whose rows are accumulated in reverse mode."""
    forward = _forward_costs(nodes, inputs, seeds)
    reverse = {node.index: _reverse_cost(node, forward) for node in nodes if node.index in forward}
    needed = _needed_by(nodes, outputs)
    all_forward = sum(forward.values())
    all_reverse = sum(cost * needed[index].bit_count() for index, cost in reverse.items())
    saved, least = [0] * len(outputs), [0] * len(outputs)
    for index, cost in reverse.items():
        mask = needed[index]
        if not mask & (mask - 1):
            saved[mask.bit_length() - 1] += forward[index]
            least[mask.bit_length() - 1] += cost
    place = {node.index: node for node in nodes}
    chosen = {}
    for k, y in enumerate(outputs):
        if least[k] < saved[k] and (cost := _row_cost(y, place, reverse)) < saved[k]:
            chosen[k] = cost
    mixed = all_forward - sum(saved[k] - cost for k, cost in chosen.items())
    return set(range(len(outputs))) if all_reverse < mixed else set(chosen)


def _forward_costs(
    nodes: Sequence[Expression], inputs: Sequence[Expression], seeds: Sequence[Mapping[int, Scalar]]
) -> dict[int, int]:
    """Return the forward cost in operations of each node that depends on an input.

    The set of directions that a node depends on is a bit mask."""
    below = {x.index: sum(1 << k for k in seed) for x, seed in zip(inputs, seeds, strict=True)}
    costs: dict[int, int] = {x.index: 0 for x in inputs}
    for node in nodes:
        if node.index in below or not node.args or node.op in CONSTANT_OPS:
            continue
        mask = terms = 0
        for item in node.args:
            other = below.get(item.index, 0)
            mask |= other
            terms += other.bit_count()
        if mask:
            below[node.index] = mask
            products = 0 if node.op in FREE_OPS else terms
            costs[node.index] = products + terms - mask.bit_count()
    return costs


def _reverse_cost(node: Expression, depends: Mapping[int, int]) -> int:
    """Return the reverse cost of a node: a product and a sum for each argument that depends on an input.

    The first contribution to an adjoint needs no sum."""
    each = 1 if node.op in FREE_OPS else 2
    return max(sum(each for item in node.args if item.index in depends) - 1, 0)


def _row_cost(output: Expression, place: Mapping[int, Expression], costs: Mapping[int, int]) -> int:
    """Return the operations of one row in reverse mode."""
    total = 0
    seen = {output.index}
    stack = [output.index]
    while stack:
        index = stack.pop()
        if index in costs:
            total += costs[index]
            for item in place[index].args:
                if item.index not in seen:
                    seen.add(item.index)
                    stack.append(item.index)
    return total


def _needed_by(nodes: Sequence[Expression], outputs: Sequence[Expression]) -> dict[int, int]:
    """Return, for each node, a bit mask of the outputs that need it."""
    needed: dict[int, int] = {}
    for k, y in enumerate(outputs):
        needed[y.index] = needed.get(y.index, 0) | 1 << k
    for node in reversed(nodes):
        mask = needed.get(node.index, 0)
        for item in node.args:
            needed[item.index] = needed.get(item.index, 0) | mask
    return needed
