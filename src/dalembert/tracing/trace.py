"""Tracing: run a function once on symbols and record its arithmetic.

The symbolic executor of Featherstone 2008 §10.4. Rewriting happens while the function runs.
"""

from __future__ import annotations

import gc
import hashlib
import math
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, Final, TypeAlias, cast, final

import numpy as np
import numpy.typing as npt

from dalembert import scalar
from dalembert.errors import ArgumentError, TracingError
from dalembert.scalar import Scalar, ScalarFunctions
from dalembert.tracing.expression import Address, Expression, live
from dalembert.tracing.graph import Graph
from dalembert.tracing.iteration import all_loops, is_condition
from dalembert.tracing.operations import BOOLEAN_OPS, OPERATIONS
from dalembert.tracing.placement import Placement
from dalembert.tracing.program import ArrayArgument, ArraySpec, Program, Statement, Store, Straight
from dalembert.tracing.row_loops import record_rows
from dalembert.tracing.rules import RULES, RuleSet
from dalembert.tracing.wide_values import record_loop

Flatten: TypeAlias = Callable[[Any], Any]
"""Turns a value that is no scalar, sequence or array into nested lists of scalars."""


def trace(
    function: Callable[..., Any],
    inputs: Sequence[ArrayArgument],
    *,
    flatten: Flatten | None = None,
    names: Sequence[str] | None = None,
    check: Callable[..., Scalar] | None = None,
    rules: RuleSet = RULES,
    share: bool = True,
) -> Trace:
    """Call `function` with one nested list of symbols for each input and record what it returns.

    A tuple returned is several outputs (a named tuple and a mapping name them; `names` does so otherwise);
    anything else is one. An output is a scalar, a nested list of scalars, a NumPy array of them, or what
    `flatten` turns into those. `check` is called with the same symbols; the row is refused where its result
    holds.
    """
    graph = Graph(rules, share=share)
    arguments = [_symbols(graph, item.name, item.shape) for item in inputs]
    collecting = gc.isenabled()
    gc.disable()  # garbage collection would take a third of the time and find nothing
    try:
        result = _call(function, arguments)
    finally:
        if collecting:
            gc.enable()
    parts, keys, rebuild = _parts(result)
    if names is not None:
        if len(names) != len(parts):
            raise ArgumentError(f"{len(names)} names for {len(parts)} outputs: {', '.join(names)}")
        keys = list(names)
    outputs = []
    for key, part in zip(keys, parts, strict=True):
        values: list[Expression] = []
        shape = _collect(graph, key, part, flatten, values)
        graph.wide.require_none(values)
        outputs.append(ArrayOutput(key, shape, tuple(values)))
    refusal = None if check is None else graph.condition(check(*arguments))
    return Trace(graph, tuple(inputs), tuple(outputs), refusal, rebuild)


def _call(function: Callable[..., Any], arguments: Sequence[Any]) -> Any:
    """Call the function; a NumPy function applied to symbols raises an error that names the remedy."""
    try:
        return function(*arguments)
    except TypeError as error:
        if "ufunc" not in str(error):
            raise
        place = traceback.extract_tb(error.__traceback__)[-1]
        raise TracingError(
            f"{place.filename}:{place.lineno}: NumPy has no functions of traced values ({error}); "
            "use those of dalembert.scalar"
        ) from error


@final
@dataclass(frozen=True, slots=True, eq=False)
class ArrayOutput:
    """A result of the traced function: its name, its shape and its elements in row-major order."""

    name: str
    shape: tuple[int, ...]
    values: tuple[Expression, ...]

    @property
    def size(self) -> int:
        return len(self.values)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """A traced function as expressions; `rebuild` gives output arrays the form that it returns."""

    graph: Graph
    inputs: tuple[ArrayArgument, ...]
    outputs: tuple[ArrayOutput, ...]
    check: Expression | None
    rebuild: Callable[[Sequence[Any]], Any]

    @property
    def values(self) -> tuple[Expression, ...]:
        """All elements of all outputs."""
        return tuple(value for output in self.outputs for value in output.values)

    def program(self) -> Program:
        """Return the program: straight-line code and the loops that the function recorded."""
        graph = self.graph
        stores = tuple(
            Store.fixed(output.name, position, value)
            for output in self.outputs
            for position, value in enumerate(output.values)
        )
        states: tuple[ArraySpec, ...] = ()
        statements: tuple[Statement, ...] = (Straight(stores),)
        tables: dict[str, npt.NDArray[Any]] = dict(graph.tables)
        graph.grant(sys.maxsize)  # parts have copies of the nodes: as many as the trace, which was bounded
        if graph.loops:
            placed = Placement(graph, stores)
            statements, states = tuple(placed.statements()), tuple(placed.states())
            tables |= placed.tables
        graph.grant()
        inputs = tuple(ArraySpec(item.name, item.size) for item in self.inputs)
        outputs = tuple(ArraySpec(item.name, item.size) for item in self.outputs)
        return Program(inputs, outputs, states, statements, tables, self.check, dict(graph.rows))


def _symbols(graph: Graph, name: str, shape: tuple[int, ...], start: int = 0) -> Any:
    """Return the elements of an input array as nested lists."""
    if not shape:
        return graph.input(name, start)
    step = math.prod(shape[1:])
    return [_symbols(graph, name, shape[1:], start + step * k) for k in range(shape[0])]


def _parts(result: Any) -> tuple[list[Any], list[str], Callable[[Sequence[Any]], Any]]:
    """Return the outputs that a returned value consists of, names for them, and what arranges them again."""
    if isinstance(result, Mapping | tuple) and not result:
        raise TracingError("a traced function returns one scalar, list or spatial value at least; got none")
    if isinstance(result, Mapping):
        keys = list(result)
        rebuild = lambda arrays: dict(zip(keys, arrays, strict=True))
        return list(result.values()), [str(key) for key in keys], rebuild
    if isinstance(result, tuple):
        kind: Any = type(result)
        fields = getattr(kind, "_fields", None)
        names = fields or (f"output{k}" for k in range(len(result)))
        return list(result), list(names), (lambda arrays: kind(*arrays)) if fields is not None else tuple
    return [result], ["output"], lambda arrays: arrays[0]


def _collect(
    graph: Graph, place: str, value: Any, flatten: Flatten | None, out: list[Expression]
) -> tuple[int, ...]:
    """Append the scalars of a nested value in row-major order and return its shape."""
    if isinstance(value, np.ndarray) and value.ndim > 0:
        if value.size == 0:
            return tuple(value.shape)
        value = list(value)
    if isinstance(value, list | tuple):
        shapes = [_collect(graph, f"{place}[{k}]", item, flatten, out) for k, item in enumerate(value)]
        for k, shape in enumerate(shapes):
            if shape != shapes[0]:
                raise TracingError(
                    f"{place}[{k}] has shape {shape} but {place}[0] has {shapes[0]}; rows of one output must "
                    "have one length; return a tuple for several outputs"
                )
        return (len(shapes), *(shapes[0] if shapes else ()))
    if isinstance(value, Expression | int | float | np.generic | np.ndarray):
        node = graph.coerce(value)
        if node.op in BOOLEAN_OPS:
            raise TracingError(f"{place} is a condition; return scalar.select(condition, 1.0, 0.0)")
        out.append(node)
        return ()
    if flatten is None or value is None:
        kind = type(value).__name__
        raise TracingError(f"{place} is a {kind}; a traced function returns scalars and lists of scalars")
    return _collect(graph, place, flatten(value), None, out)


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
    if source.rows:
        raise TracingError("a traced function with rows cannot be part of another trace")
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
    # A constant is returned as a number, so that structural zeros and ones reach what computes with them.
    results = ([found[value.index] for value in output.values] for output in traced.outputs)
    return [[node.data if node.op == "constant" else node for node in nodes] for nodes in results]


# The functions of `dalembert.scalar` on traced values.


def _graph(*values: Scalar) -> Graph:
    return next(value.graph for value in values if type(value) is Expression)


def _record(op: str) -> Callable[..., Scalar]:
    """Return the function that records one operation in the graph of its arguments."""
    return lambda *args: _graph(*args).operation(op, *args)


def _select(condition: Scalar, a: Scalar, b: Scalar) -> Scalar:
    graph = _graph(condition, a, b)
    if not (is_condition(a) or is_condition(b)):
        return graph.operation("select", condition, a, b)
    # Conditions are no numbers: (condition and a) or (not condition and b).
    chosen = graph.operation("and", condition, a)
    return graph.operation("or", chosen, graph.operation("and", graph.operation("not", condition), b))


_FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    **{operation.text: _record(op) for op, operation in OPERATIONS.items()},
    "select": _select,
    "lookup": lambda table, index: _graph(index).lookup(table, index),
    "loop": record_loop,
    "rows": record_rows,
    "rows_of": lambda x: x.graph.wide.rows_of(x),
    "literal": lambda x: x.data if x.op == "constant" else None,
}

scalar.register(Expression, cast("ScalarFunctions", SimpleNamespace(**_FUNCTIONS)))
