"""Tracing: run a function once on symbols and record its arithmetic.

The symbolic executor of Featherstone 2008 §10.4. Rewriting happens while the function runs.
"""

from __future__ import annotations

import gc
import math
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np

from dalembert.errors import ArgumentError, TracingError
from dalembert.scalar import Scalar
from dalembert.tracing.expression import Expression
from dalembert.tracing.graph import Graph
from dalembert.tracing.operations import BOOLEAN_OPS
from dalembert.tracing.program import ArraySpec, Program, Store
from dalembert.tracing.rewriting import RuleSet
from dalembert.tracing.rules import RULES
from dalembert.tracing.statements import assemble

__all__ = ["ArrayInput", "ArrayOutput", "Trace", "trace"]

Flatten: TypeAlias = Callable[[Any], Any]
"""Turns a value that is no scalar, sequence or array into nested lists of scalars."""


def trace(
    function: Callable[..., Any],
    inputs: Sequence[ArrayInput],
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
    with _garbage_collection_paused():
        result = _call(function, arguments)
    parts, keys = _parts(result)
    if names is not None:
        if len(names) != len(parts):
            raise ArgumentError(f"{len(names)} names for {len(parts)} outputs: {', '.join(names)}")
        keys = list(names)
    outputs = [_output(graph, key, part, flatten) for key, part in zip(keys, parts, strict=True)]
    refusal = None if check is None else graph.condition(check(*arguments))
    return Trace(graph, tuple(inputs), tuple(outputs), refusal, _rebuilder(result))


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
@dataclass(frozen=True, slots=True)
class ArrayInput:
    """An argument of the traced function: its name and its shape, () for a scalar."""

    name: str
    shape: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        return math.prod(self.shape)


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
    """A traced function as expressions; `rebuild` arranges output arrays in the form that the function
    returns."""

    graph: Graph
    inputs: tuple[ArrayInput, ...]
    outputs: tuple[ArrayOutput, ...]
    check: Expression | None
    rebuild: Callable[[Sequence[Any]], Any]

    @property
    def values(self) -> tuple[Expression, ...]:
        """All elements of all outputs."""
        return tuple(value for output in self.outputs for value in output.values)

    def program(self) -> Program:
        """Return the program: straight-line code and the loops that the function recorded."""
        stores = tuple(
            Store(output.name, position, value)
            for output in self.outputs
            for position, value in enumerate(output.values)
        )
        return assemble(
            self.graph,
            [ArraySpec(item.name, item.size) for item in self.inputs],
            [ArraySpec(item.name, item.size) for item in self.outputs],
            stores,
            self.check,
        )


@contextmanager
def _garbage_collection_paused() -> Iterator[None]:
    """Pause garbage collection: nodes live as long as their graph, and visiting them takes a third of the
    time."""
    paused = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if paused:
            gc.enable()


def _symbols(graph: Graph, name: str, shape: tuple[int, ...], start: int = 0) -> Any:
    """Return the elements of an input array as nested lists."""
    if not shape:
        return graph.input(name, start)
    step = math.prod(shape[1:])
    return [_symbols(graph, name, shape[1:], start + step * k) for k in range(shape[0])]


def _parts(result: Any) -> tuple[list[Any], list[str]]:
    """Return the outputs that a returned value consists of, and names for them."""
    if isinstance(result, Mapping | tuple) and not result:
        raise TracingError("a traced function returns one scalar, list or spatial value at least; got none")
    if isinstance(result, Mapping):
        return list(result.values()), [str(key) for key in result]
    if isinstance(result, tuple):
        fields = getattr(result, "_fields", None)
        return list(result), list(fields or (f"output{k}" for k in range(len(result))))
    return [result], ["output"]


def _rebuilder(result: Any) -> Callable[[Sequence[Any]], Any]:
    if isinstance(result, Mapping):
        keys = list(result)
        return lambda arrays: dict(zip(keys, arrays, strict=True))
    if isinstance(result, tuple):
        kind: Any = type(result)
        return lambda arrays: kind(*arrays) if hasattr(kind, "_fields") else tuple(arrays)
    return lambda arrays: arrays[0]


def _output(graph: Graph, name: str, value: Any, flatten: Flatten | None) -> ArrayOutput:
    values: list[Expression] = []
    shape = _collect(graph, name, value, flatten, values)
    return ArrayOutput(name, shape, tuple(values))


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
