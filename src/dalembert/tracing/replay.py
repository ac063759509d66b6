"""Recorded traces: their copies, their digests, and their arithmetic on other values.

A user's function is traced once. Everything compiled from it later, in any step, derivative or float type,
comes from that record, so that all of it belongs to the same function.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from dalembert.scalar import Scalar
from dalembert.tracing.address import Address
from dalembert.tracing.expression import Expression, live
from dalembert.tracing.graph import Graph
from dalembert.tracing.iteration import RecordedLoop
from dalembert.tracing.trace import Trace

__all__ = ["copy_trace", "digest_of", "replay"]


def copy_trace(traced: Trace) -> Trace:
    """Return the trace in a graph of its own, node for node: more can be recorded there, and two copies
    become the same program, independent of what is recorded in other copies."""
    graph = traced.graph.duplicate()
    nodes = graph.nodes
    outputs = tuple(
        replace(output, values=tuple(nodes[value.index] for value in output.values))
        for output in traced.outputs
    )
    check = None if traced.check is None else nodes[traced.check.index]
    return replace(traced, graph=graph, outputs=outputs, check=check)


def digest_of(traced: Trace) -> str:
    """Return a SHA-256 of all that a compiler sees of a trace: its arithmetic, loops, tables and constants,
    and the form of its results."""
    text = repr([(output.name, output.shape) for output in traced.outputs])
    # Statements of loops are made in the graph of their trace, which must stay as it was recorded.
    own = copy_trace(traced) if traced.graph.loops else traced
    return hashlib.sha256((own.program().digest() + text).encode()).hexdigest()


def replay(traced: Trace, graph: Graph, given: Mapping[str, Sequence[Scalar]]) -> list[list[Scalar]]:
    """Return the outputs of a trace, element by element, recorded in another graph.

    `given`: the elements of input arrays; inputs that are not among them are inputs of the other graph under
    the same name.
    """
    loops = _all_loops(traced.graph.loops)
    names = {loop.name: graph.loop_name() for loop in loops}
    arrays = {old: new for loop in loops for old, new in _arrays(loop, names[loop.name])}
    roots = list(traced.values)
    for loop in loops:
        roots += [*loop.start.values(), *loop.result.values()]
    found: dict[int, Expression] = {}
    for node in live(roots):
        found[node.index] = _copy_node(node, traced.graph, graph, found, given, arrays)
    outer = graph.open_loops[-1].inner if graph.open_loops else graph.loops
    outer.extend(_rename_loop(loop, names, found) for loop in traced.graph.loops)
    return [[_literal(found[value.index]) for value in output.values] for output in traced.outputs]


def _copy_node(
    node: Expression,
    source: Graph,
    graph: Graph,
    found: Mapping[int, Expression],
    given: Mapping[str, Sequence[Scalar]],
    arrays: Mapping[str, str],
) -> Expression:
    """Return a node of one graph in another."""
    data: Any = node.data
    if node.op == "constant":
        return graph.constant(data)
    if node.op == "input":
        name, position = data
        return graph.coerce(given[name][position]) if name in given else graph.input(name, position)
    if node.op == "load":
        return graph.load(Address.fixed(arrays[data.array], data.offset))
    args = [found[item.index] for item in node.args]
    if node.op == "lookup":
        return graph.lookup(source.tables[data], args[0])
    return graph.operation(node.op, *args)


def _all_loops(loops: Sequence[RecordedLoop]) -> list[RecordedLoop]:
    return [item for loop in loops for item in (loop, *_all_loops(loop.inner))]


def _arrays(loop: RecordedLoop, new: str) -> tuple[tuple[str, str], ...]:
    """Return the arrays that a loop's values are loaded from, and their new names."""
    return (loop.name, new), (loop.end, f"{new} end")


def _rename_loop(
    loop: RecordedLoop, names: Mapping[str, str], found: Mapping[int, Expression]
) -> RecordedLoop:
    return RecordedLoop(
        names[loop.name],
        loop.count,
        {place: found[node.index] for place, node in loop.start.items()},
        {place: found[node.index] for place, node in loop.result.items()},
        loop.until,
        tuple(_rename_loop(inner, names, found) for inner in loop.inner),
    )


def _literal(node: Expression) -> Scalar:
    """Return a constant as a number, so that structural zeros and ones reach what computes with them."""
    return node.data if node.op == "constant" else node
