"""The plain-Python interpreter of programs: their definition, and the oracle of every compiler of them.

It runs on floats, on NumPy arrays (one sample an element), on complex numbers (derivatives by a complex
step), and on any other scalar that `dalembert.scalar` knows, including expressions of another graph.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dalembert.errors import ShapeError, UnknownNameError
from dalembert.scalar import Scalar, lookup
from dalembert.tracing.expression import Address, Expression, IndexTable, live
from dalembert.tracing.graph import Graph
from dalembert.tracing.iteration import all_loops
from dalembert.tracing.operations import OPERATIONS
from dalembert.tracing.program import Loop, Program
from dalembert.tracing.trace import Trace


def interpret(program: Program, inputs: Mapping[str, Sequence[Scalar]]) -> dict[str, list[Scalar]]:
    """Run the program on one sample: the outputs by name, each a list of scalars. `check` is ignored."""
    arrays = _arrays(program, inputs)
    for loop in program.loops:
        _run_loop(loop, arrays, program.tables)
    return {spec.name: arrays[spec.name] for spec in program.outputs}


def refused(program: Program, inputs: Mapping[str, Sequence[Scalar]]) -> Scalar:
    """Return whether `check` holds for the sample (NumPy: for each sample), so that its row is rejected."""
    if program.check is None:
        return False
    return evaluate([program.check], _arrays(program, inputs), tables=program.tables)[0]


def evaluate(
    outputs: Sequence[Expression],
    arrays: Mapping[str, Sequence[Scalar]],
    *,
    tables: Mapping[str, IndexTable] | None = None,
    iteration: int = 0,
) -> list[Scalar]:
    """Return the values of expressions, given the arrays that they read, in one iteration of a loop."""
    values: dict[int, Scalar] = {}
    for node in live(list(outputs)):
        if node.op == "constant":
            value = node.data
        elif node.op == "input":
            array, position = node.data
            value = arrays[array][position]
        elif node.op == "load":
            array, position = node.data.array, node.data.position(tables or {}, iteration)
            value = arrays[array][position] if array in arrays else float((tables or {})[array][position])
        elif node.op == "lookup":
            value = lookup((tables or node.graph.tables)[node.data], values[node.args[0].index])
        else:
            value = OPERATIONS[node.op].evaluate(*[values[item.index] for item in node.args])
        values[node.index] = value
    return [values[node.index] for node in outputs]


def _run_loop(loop: Loop, arrays: dict[str, list[Scalar]], tables: Mapping[str, IndexTable]) -> None:
    for iteration in loop.iterations:
        if _all_done(loop.until, arrays, tables, iteration):
            break
        kind = 0 if loop.kinds is None else int(tables[loop.kinds][iteration])
        if loop.skips and _all_done(loop.skips[kind], arrays, tables, iteration):
            continue
        case = loop.cases[kind]
        values = evaluate([store.value for store in case], arrays, tables=tables, iteration=iteration)
        for store, value in zip(case, values, strict=True):
            array = arrays[store.array]
            position = store.address.position(tables, iteration)
            array[position] = array[position] + value if store.accumulate else value


def _all_done(
    flag: Address | None,
    arrays: Mapping[str, Sequence[Scalar]],
    tables: Mapping[str, IndexTable],
    iteration: int,
) -> bool:
    """Return whether the flag is set for every sample; a symbolic flag counts as not set."""
    value = False if flag is None else arrays[flag.array][flag.position(tables, iteration)]
    return isinstance(value, int | float | complex | np.ndarray | np.generic) and bool(np.all(value))


def _arrays(program: Program, inputs: Mapping[str, Sequence[Scalar]]) -> dict[str, list[Scalar]]:
    arrays: dict[str, list[Scalar]] = {
        spec.name: [0.0] * spec.size for spec in (*program.outputs, *program.states)
    }
    for name in inputs:
        if name not in {spec.name for spec in program.inputs}:
            raise UnknownNameError.of("input", name, [spec.name for spec in program.inputs])
    for spec in program.inputs:
        if spec.name not in inputs:
            raise UnknownNameError(f'input "{spec.name}" is missing')
        given = list(inputs[spec.name])
        if len(given) != spec.size:
            raise ShapeError(f"input {spec.name!r}: expected ({spec.size},), got ({len(given)},)")
        arrays[spec.name] = [item.item() if getattr(item, "ndim", None) == 0 else item for item in given]
    return arrays


# Recorded traces: their copies, their digests, and their arithmetic on other values.
#
# A user's function is traced once. Everything compiled from it later, in any step, derivative or float type,
# comes from that record, so that all of it belongs to the same function.


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
    source = traced.graph
    loops = list(all_loops(source.loops))
    names = {loop.name: graph.loop_name() for loop in loops}
    arrays = names | {loop.end: f"{names[loop.name]} end" for loop in loops}
    roots = list(traced.values)
    for loop in loops:
        roots += [*loop.start.values(), *loop.result.values()]
    found: dict[int, Expression] = {}
    for node in live(roots):
        data: Any = node.data
        args = [found[item.index] for item in node.args]
        if node.op == "constant":
            new = graph.constant(data)
        elif node.op == "input":
            name, position = data
            new = graph.coerce(given[name][position]) if name in given else graph.input(name, position)
        elif node.op == "load":
            new = graph.load(Address.fixed(arrays[data.array], data.offset))
        elif node.op == "lookup":
            new = graph.lookup(source.tables[data], args[0])
        else:
            new = graph.operation(node.op, *args)
        found[node.index] = new
    outer = graph.open_loops[-1].inner if graph.open_loops else graph.loops
    outer.extend(loop.copy(found, names) for loop in source.loops)
    # A constant is handed back as a number, so that structural zeros and ones reach what computes with them.
    results = ([found[value.index] for value in output.values] for output in traced.outputs)
    return [[node.data if node.op == "constant" else node for node in nodes] for nodes in results]
