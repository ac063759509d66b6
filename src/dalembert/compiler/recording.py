"""Functions of the caller's that are compiled into something larger: traced before each use, kept by digest.

A policy, a reference or an observer is traced by itself, on symbols, and its trace is what is compiled: a
kernel is a function of the model, of options and of the digests of such traces, and of nothing else. So a
change of anything that a function reads, wherever it is stored, gives another digest and another kernel, and
equal functions share one. The trace is repeated at each use, unless `captured_values` proves that it would
be the same.

A function that has another trace each time, although nothing was changed by anyone (random numbers, a clock,
an iterator), has no meaning that could be compiled, and is refused.

What is kept belongs to the model: the newest kernels, and traces of functions for as long as the functions
live. Nothing here keeps a function of the caller's alive.
"""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import Callable, Sequence
from types import FunctionType, MethodType
from typing import Any, Final, TypeVar, final
from weakref import ref

from dalembert.call.arguments import ArrayArgument
from dalembert.compiler.lowering import Recipe, trace_recipe
from dalembert.compiler.rollout_execution import CompiledRollout
from dalembert.errors import TracingError
from dalembert.host.captured_values import Reads, reads_of
from dalembert.model.model import Model
from dalembert.scalar import Scalar
from dalembert.scalar.for_each import leaves
from dalembert.tracing.expression import Expression
from dalembert.tracing.graph import Graph
from dalembert.tracing.trace import Trace, digest_of, replay

Made = TypeVar("Made")

KEPT_KERNELS: Final = 16
"""Kernels with functions of the caller's that a model keeps; the one used longest ago goes first. A kernel
that has gone is found in the disk cache, in milliseconds."""

KNOWN_PROGRAMS: Final = 64
"""Programs in one role, with the code that they came from, that came again when they were traced again."""


@final
class RecordedFunction:
    """The arithmetic that a function of (model, arrays) did when it was traced, as such a function."""

    __slots__ = ("digest", "trace")

    def __init__(self, traced: Trace) -> None:
        self.trace = traced
        self.digest = digest_of(traced)

    def __call__(self, model: Model, *arrays: Any) -> list[Scalar]:
        """Return the one output, on traced values; parameters of the model are inputs of the same names."""
        given = {item.name: leaves(array) for item, array in zip(self.trace.inputs, arrays, strict=False)}
        graph: Graph = next(x.graph for values in given.values() for x in values if type(x) is Expression)
        (values,) = replay(self.trace, graph, given)
        return values


@final
class _Recordings:
    """The known functions in one role: their traces, as long as they live, and programs."""

    __slots__ = ("_traces", "programs")

    def __init__(self) -> None:
        self._traces: dict[tuple[int, ...], tuple[list[ref[Any]], Reads, RecordedFunction]] = {}
        self.programs: OrderedDict[tuple[object, str], None] = OrderedDict()

    def find(self, function: Callable[..., Any]) -> RecordedFunction | None:
        """Return the trace of a function, if it would be the same now."""
        owners = _owners(function)
        found = self._traces.get(tuple(map(id, owners)))
        if found is None or not all(reference() is owner for reference, owner in zip(found[0], owners)):
            return None
        return found[2] if found[1].is_unchanged() else None

    def keep(self, function: Callable[..., Any], reads: Reads, new: RecordedFunction) -> None:
        """Keep the trace of a function until the function dies, if that can be told."""
        owners = _owners(function)
        key, traces = tuple(map(id, owners)), self._traces

        def forget(_: object) -> None:
            traces.pop(key, None)

        with contextlib.suppress(TypeError):
            traces[key] = ([ref(owner, forget) for owner in owners], reads, new)
        if len(traces) > KNOWN_PROGRAMS:  # an object that reads itself would live as long as what it reads
            traces.pop(next(iter(traces)), None)


def _owners(function: Callable[..., Any]) -> tuple[Any, ...]:
    """Return the objects that make up a function; a bound method is another object at every mention."""
    return (function.__func__, function.__self__) if type(function) is MethodType else (function,)


def record_function(
    role: str,
    function: Callable[..., Any],
    model: Model,
    arguments: Sequence[ArrayArgument],
    parameters: Sequence[ArrayArgument] = (),
    call: Callable[..., Any] | None = None,
) -> RecordedFunction:
    """Return what a function of a model and arrays computes now.

    `role`: what it is to the caller, such as "policy"; `call(model, *arrays)` calls the function and checks
    what it returns, always in the same way for one role.
    """
    key = ("recordings", role, tuple(parameters))
    known: _Recordings | None = model.functions.get(key)
    if known is None:
        known = model.functions[key] = _Recordings()
    found = known.find(function)
    if found is not None:
        return found
    recipe = Recipe(role, call or function, model, tuple(arguments), tuple(parameters))
    reads = reads_of(function)
    new = RecordedFunction(trace_recipe(recipe))
    if reads is not None and reads.is_unchanged():
        known.keep(function, reads, new)
        return new
    inner = _owners(function)[0]
    is_plain = type(inner) is FunctionType
    name = inner.__qualname__ if is_plain else type(inner).__qualname__
    program = (inner.__code__ if is_plain else name, new.digest)
    if program not in known.programs:
        if digest_of(trace_recipe(recipe)) != new.digest:
            raise TracingError(
                f"the {role} {name} is another program each time it is traced: it reads something "
                "that changes by itself, such as random numbers, a clock or an iterator. Give such values as "
                "an array, by `parameters=`, or take a `callback`, which is called before each step"
            )
        known.programs[program] = None
        if len(known.programs) > KNOWN_PROGRAMS:
            known.programs.popitem(last=False)
    return new


def kept_kernel(
    model: Model, key: tuple[Any, ...], functions: Sequence[RecordedFunction], make: Callable[[], Made]
) -> Made:
    """Return what `make` has made for a model under a key and for such functions, or make it; `make` must
    depend on nothing else."""
    kernels: OrderedDict[Any, Made] | None = model.functions.get("kept kernels")
    if kernels is None:
        kernels = model.functions["kept kernels"] = OrderedDict()
    place = (*key, *(function.digest for function in functions))
    found = kernels.get(place)
    if found is None:
        found = make()
        for older in tuple(kernels.values()):
            if isinstance(older, CompiledRollout):
                older.drop_program()
        kernels[place] = found
    with contextlib.suppress(KeyError):  # another thread may have dropped it
        kernels.move_to_end(place)
        if len(kernels) > KEPT_KERNELS:
            kernels.popitem(last=False)
    return found
