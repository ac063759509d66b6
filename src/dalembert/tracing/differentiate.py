"""Derivatives of expressions, as expressions of the same graph.

Forward accumulation carries the change of each value along directions, reverse accumulation the adjoint of
each value: the derivative of a weighted sum of the outputs by it. Structural zeros are left out and never
built. `select`, `min`, `max` and `abs` have the derivative of the branch taken, and the other branch cannot
spoil it by NaN in either direction.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias, final

from dalembert import scalar
from dalembert.errors import ShapeError
from dalembert.scalar import Scalar
from dalembert.tracing.expression import Expression, live
from dalembert.tracing.graph import Graph
from dalembert.tracing.operations import CHOICES, CONSTANT_OPS, FREE_OPS, OPERATIONS

# The derivative of each operation: dy = sum_k p_k dx_k.
#
# `tangent` applies this linear map to changes of the arguments. In reverse, `edges` gives for each argument
# its share of the node's adjoint, and the condition under which the argument matters at all: `select`, `min`
# and `max` choose one. `abs` has the derivative of the branch taken, `floor` is constant between its jumps.
# Structural zeros are the float 0.0 and are never built.


class Edge(NamedTuple):
    """A contribution to an argument's adjoint: `share`, where `condition` is `holds` (None: always)."""

    item: Expression
    share: Scalar
    condition: Expression | None = None
    holds: bool = True


def tangent(node: Expression, changes: Sequence[Scalar]) -> Scalar:
    """Return dy for given dx; structural zeros of dx cost nothing."""
    if node.op in CONSTANT_OPS or all(scalar.is_zero(change) for change in changes):
        return 0.0
    if node.op in CHOICES:
        return scalar.select(_choice(node)[0], changes[-2], changes[-1])
    if node.op == "abs":
        return scalar.select(node.args[0] < 0.0, -changes[0], changes[0])
    if node.op == "div":  # d(a / b) = (da - y db) / b
        numerator = changes[0] if scalar.is_zero(changes[1]) else changes[0] - node * changes[1]
        return numerator * (1.0 / node.args[1])
    total: Scalar = 0.0
    for partial, change in zip(OPERATIONS[node.op].partials, changes, strict=True):
        if not scalar.is_zero(change):
            total = total + partial(node, *node.args) * change
    return total


def edges(node: Expression, weight: Scalar, wanted: Sequence[bool]) -> list[Edge]:
    """Return what a node with the adjoint `weight` adds to the adjoints of its wanted arguments."""
    if node.op in CONSTANT_OPS:
        return []
    if node.op in CHOICES:
        condition, first, second = _choice(node)
        start = len(node.args) - 2
        both = (Edge(first, weight, condition, True), Edge(second, weight, condition, False))
        return [edge for edge, want in zip(both, wanted[start:], strict=True) if want]
    if node.op == "abs":
        return [Edge(node.args[0], scalar.select(node.args[0] < 0.0, -weight, weight))]
    if node.op == "div":
        share = weight * (1.0 / node.args[1])
        both = (Edge(node.args[0], share), Edge(node.args[1], -(node * share)))
        return [edge for edge, want in zip(both, wanted, strict=True) if want]
    arguments = zip(OPERATIONS[node.op].partials, node.args, wanted, strict=True)
    return [Edge(item, partial(node, *node.args) * weight) for partial, item, want in arguments if want]


def _choice(node: Expression) -> tuple[Expression, Expression, Expression]:
    """Return the condition, the argument chosen where it holds, and the argument chosen elsewhere."""
    choice = OPERATIONS[node.op].choice
    assert choice is not None
    return choice(*node.args)


# The choice of the Jacobian rows that cost less in reverse mode, from counts of products and sums.
#
# A row leaves the forward accumulation if the values that only this row needs cost more in forward mode (one
# derivative for each direction that they depend on) than all values of the row cost in reverse mode.


def reversed_rows(
    nodes: Sequence[Expression],
    outputs: Sequence[Expression],
    inputs: Sequence[Expression],
    seeds: Sequence[Mapping[int, Scalar]],
) -> set[int]:
    """Return the positions of the outputs whose rows are accumulated in reverse mode."""
    forward = _forward_costs(nodes, inputs, seeds)
    reverse: dict[int, int] = {}
    for node in nodes:
        if node.index in forward:
            # A product and a sum for each argument that depends on an input; the first needs no sum.
            each = 1 if node.op in FREE_OPS else 2
            reverse[node.index] = max(sum(each for item in node.args if item.index in forward) - 1, 0)
    needed: dict[int, int] = {}  # for each node, a bit mask of the outputs that need it
    for k, y in enumerate(outputs):
        needed[y.index] = needed.get(y.index, 0) | 1 << k
    for node in reversed(nodes):
        for item in node.args:
            needed[item.index] = needed.get(item.index, 0) | needed.get(node.index, 0)
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
    """Return the forward cost in operations of each node that depends on an input."""
    # The set of directions that a node depends on is a bit mask.
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


# Guards: the conditions under which a value affects the results, tracked while adjoints propagate back.
#
# A value in a branch that is not taken has the adjoint zero, but zero times an infinite or undefined local
# derivative is not zero. So each adjoint carries a guard, the condition under which the value matters. Where
# adjoints with different guards are added, `select` masks those whose own guard does not hold. Inside a
# branch no operation is added.
#
# A guard is a sum of products: a set of sets of (condition, holds). It is exact; when it grows too long it
# becomes one condition of its own.

Guard: TypeAlias = frozenset[frozenset[tuple[int, bool]]]

ALWAYS: Final[Guard] = frozenset({frozenset()})

MAX_GUARD_PRODUCTS: Final = 6
"""The number of products up to which a guard stays a sum of products; a longer one becomes one condition."""


@final
class Guards:
    """The guards of one graph."""

    __slots__ = ("_conditions", "_graph", "_nodes")

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._nodes: dict[int, Expression] = {}
        self._conditions: dict[Guard, Scalar] = {ALWAYS: True}

    def within(self, guard: Guard, condition: Expression | None, holds: bool) -> Guard:
        """Return the guard of an argument that matters where its node does and `condition` equals `holds`."""
        if condition is None:
            return guard
        while condition.op == "not":
            condition, holds = condition.args[0], not holds
        self._nodes[condition.index] = condition
        own, other = (condition.index, holds), (condition.index, not holds)
        return self._short(_simplify(product | {own} for product in guard if other not in product))

    def either(self, guards: Iterable[Guard]) -> Guard:
        """Return the guard that holds where at least one of the guards holds."""
        return self._short(_simplify(product for guard in guards for product in guard))

    def total(self, shares: Sequence[tuple[Guard, Scalar]], guard: Guard) -> Scalar:
        """Return the sum of contributions, masking those whose guard differs from that of the sum."""
        sums: dict[Guard, Scalar] = {}
        for own, share in shares:
            sums[own] = sums.get(own, 0.0) + share
        total: Scalar = 0.0
        for own, part in sums.items():
            total = total + (part if own == guard else scalar.select(self._condition(own), part, 0.0))
        return total

    def _condition(self, guard: Guard) -> Scalar:
        found = self._conditions.get(guard)
        if found is None:
            found = False
            for product in sorted(guard, key=sorted):
                term: Scalar = True
                for index, holds in sorted(product):
                    node = self._nodes[index]
                    term = scalar.logical_and(term, node if holds else scalar.logical_not(node))
                found = scalar.logical_or(found, term)
            self._conditions[guard] = found
        return found

    def _short(self, guard: Guard) -> Guard:
        if len(guard) <= MAX_GUARD_PRODUCTS:
            return guard
        node = self._graph.condition(self._condition(guard))
        self._nodes[node.index] = node
        return frozenset({frozenset({(node.index, True)})})


def _simplify(products: Iterable[frozenset[tuple[int, bool]]]) -> Guard:
    """Simplify a sum of products by A B + A not B = A and A + A B = A."""
    left = set(products)
    merged = True
    while merged:
        merged = False
        for product in list(left):
            for literal in product:
                rest = product - {literal}
                if rest | {(literal[0], not literal[1])} in left:
                    left -= {product, rest | {(literal[0], not literal[1])}}
                    left.add(rest)
                    merged = True
                    break
            if merged:
                break
    return frozenset(a for a in left if not any(b < a for b in left))


def jacobian(
    outputs: Sequence[Expression],
    inputs: Sequence[Expression],
    seeds: Sequence[Mapping[int, Scalar]] | None = None,
) -> list[dict[int, Scalar]]:
    """Return the rows of d outputs / d directions: entries by column, without structural zeros.

    Directions are the inputs themselves, or with `seeds` what the inputs change along: `seeds[i][k]` is the
    rate of input i along direction k. Forward, each value has derivatives along those directions alone that
    it depends on: columns without a row in common share no value, so that colouring would gain nothing more.
    Rows that cost less in reverse are accumulated so, as `reversed_rows` counts it.
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
            row: dict[int, Scalar] = {}
            for slope, seed in zip(vjp([y], inputs, [1.0]), seeds, strict=True):
                for j, rate in seed.items() if not scalar.is_zero(slope) else ():
                    row[j] = row.get(j, 0.0) + slope * rate
            known[y.index] = {j: x for j, x in sorted(row.items()) if not scalar.is_zero(x)}
        rows[k] = dict(known[y.index])
    return [rows[k] for k in range(len(outputs))]


def jvp(
    outputs: Sequence[Expression], inputs: Sequence[Expression], tangents: Sequence[Scalar]
) -> list[Scalar]:
    """Return the change of the outputs for a change of the inputs: J tangents."""
    _same_length("tangents", tangents, "inputs", inputs)
    return [row.get(0, 0.0) for row in _forward(outputs, inputs, [{0: dx} for dx in tangents])]


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
    depends = set(own)
    for node in nodes:
        if node.op not in CONSTANT_OPS and any(item.index in depends for item in node.args):
            depends.add(node.index)
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


def _same_length(name: str, given: Sequence[Any], of: str, expected: Sequence[Any]) -> None:
    if len(given) != len(expected):
        raise ShapeError(f"{name}: expected {len(expected)}, one for each of the {of}, got {len(given)}")
