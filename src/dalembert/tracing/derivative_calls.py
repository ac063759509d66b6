"""Derivatives of a traced function: another trace, of more inputs or other outputs.

    jacobian         d f / d x for each argument x asked for, shape (*output, *x)
    jvp              J dx: one more input `d<x>` an argument; shapes of the outputs
    vjp              J^T w: one more input `cotangent`, or `cotangent_<k>` an output; shapes of the arguments
    hessian_vector   the change of J^T w along dx; w = 1 where f is one scalar; shapes of the arguments

An argument may live on a manifold: its `Chart` gives the rates of its elements for each direction of the
tangent space, and derivatives by it, changes of it and gradients have the tangent space's size.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol, final

from dalembert.errors import ArgumentError, TracingError, UnknownNameError
from dalembert.scalar import Scalar, is_zero
from dalembert.tracing.differentiate import jacobian, jvp, vjp
from dalembert.tracing.expression import Address, Expression
from dalembert.tracing.graph import Graph
from dalembert.tracing.program import ArraySpec, Program, Statement, Store, Straight
from dalembert.tracing.program_derivatives import Frame, program_jvp, program_vjp
from dalembert.tracing.program_jacobian import program_jacobian
from dalembert.tracing.trace import ArrayInput, ArrayOutput, Trace

KINDS: Final = ("jacobian", "jvp", "vjp", "hessian_vector")


@final
@dataclass(frozen=True, slots=True, eq=False)
class Chart:
    """The tangent space of an argument: `rates(symbols)` is one list of element rates for each direction."""

    size: int
    rates: Callable[[Sequence[Scalar]], list[list[Scalar]]]


@final
@dataclass(frozen=True, slots=True)
class Derivative:
    """A requested derivative: its kind, the arguments to differentiate by, and the inputs that it adds."""

    kind: str
    arguments: tuple[str, ...]
    tangents: tuple[ArrayInput, ...] = ()
    cotangents: tuple[ArrayInput, ...] = ()

    @classmethod
    def of(
        cls,
        kind: str,
        arguments: Sequence[str],
        inputs: Sequence[ArrayInput],
        outputs: Callable[[], Sequence[tuple[int, ...]]],
        charts: Mapping[str, Chart],
    ) -> Derivative:
        """Check the request; `outputs()` gives the shapes of the results and is called in reverse mode
        only."""
        if kind not in KINDS:
            raise UnknownNameError.of("kind of derivative", kind, KINDS)
        shapes = {item.name: item.shape for item in inputs}
        if not arguments:
            raise ArgumentError(
                f"{kind} needs the argument to differentiate by, one or more of: {', '.join(shapes)}"
            )
        for name in arguments:
            if name not in shapes:
                raise UnknownNameError.of("argument", name, shapes)
        if len(set(arguments)) < len(arguments):
            raise ArgumentError(f"{kind}: an argument is named twice: {', '.join(arguments)}")
        taken = set(shapes)
        tangents: list[ArrayInput] = []
        if kind in ("jvp", "hessian_vector"):
            for name in arguments:
                tangents.append(ArrayInput(_free(f"d{name}", taken), _tangent_shape(name, shapes, charts)))
        cotangents: tuple[ArrayInput, ...] = ()
        if kind in ("vjp", "hessian_vector"):
            cotangents = cotangents_for(outputs(), taken, scalar=kind == "vjp")
        return cls(kind, tuple(arguments), tuple(tangents), cotangents)

    @property
    def inputs(self) -> tuple[ArrayInput, ...]:
        """The inputs that the derivative has in addition to the function's."""
        return (*self.tangents, *self.cotangents)


def cotangents_for(
    shapes: Sequence[tuple[int, ...]], taken: set[str], *, scalar: bool = True
) -> tuple[ArrayInput, ...]:
    """Return the inputs for the weights of the outputs; none for a single scalar unless `scalar`."""
    if len(shapes) == 1:
        return (ArrayInput(_free("cotangent", taken), shapes[0]),) if scalar or shapes[0] else ()
    return tuple(ArrayInput(_free(f"cotangent_{k}", taken), shape) for k, shape in enumerate(shapes))


def derivative_trace(traced: Trace, derivative: Derivative, charts: Mapping[str, Chart]) -> Trace:
    """Return the derivative of a trace without loops, in the same graph."""
    if traced.graph.loops:
        raise TracingError("a trace with loops is differentiated as a program: program_jvp, program_vjp")
    if derivative.kind == "jacobian":
        return _jacobian(traced, derivative, charts)
    if derivative.kind == "jvp":
        return _jvp(traced, derivative, charts)
    gradient = _vjp(traced, derivative, charts)
    return gradient if derivative.kind == "vjp" else _jvp(gradient, derivative, charts)


def group_results(
    results: Sequence[Any], derivatives: Sequence[Derivative], base: Callable[[list[Any]], Any]
) -> Any:
    """Arrange the results of derivatives as they are returned: in the form of the function's own results, for
    each argument; a gradient alone, or a tuple with one gradient per argument.
    """
    if not derivatives:
        return base(list(results))
    last, rest = derivatives[-1], derivatives[:-1]
    if last.kind == "jvp":
        return group_results(results, rest, base)
    number = len(last.arguments)
    if last.kind != "jacobian":
        return results[0] if number == 1 else tuple(results)
    if number == 1:
        return group_results(results, rest, base)
    size = len(results) // number
    return tuple(group_results(results[k * size : (k + 1) * size], rest, base) for k in range(number))


def _jacobian(traced: Trace, derivative: Derivative, charts: Mapping[str, Chart]) -> Trace:
    symbols: list[Expression] = []
    seeds: list[dict[int, Scalar]] = []
    spans: list[tuple[str, tuple[int, ...], int, int]] = []
    columns = 0
    shapes = {item.name: item.shape for item in traced.inputs}
    for name in derivative.arguments:
        own = _symbols(traced, name)
        rates = _rates(charts.get(name), own)
        symbols += own
        seeds += [
            {columns + j: rate[i] for j, rate in enumerate(rates) if not is_zero(rate[i])}
            for i in range(len(own))
        ]
        spans.append((name, _tangent_shape(name, shapes, charts), columns, len(rates)))
        columns += len(rates)
    rows = jacobian(traced.values, symbols, seeds)
    outputs = []
    for name, shape, start, size in spans:
        done = 0
        for output in traced.outputs:
            values = tuple(
                traced.graph.coerce(row.get(start + j, 0.0))
                for row in rows[done : done + output.size]
                for j in range(size)
            )
            done += output.size
            label = output.name if len(spans) == 1 else f"{output.name} by {name}"
            outputs.append(ArrayOutput(label, output.shape + shape, values))
    return replace(traced, outputs=tuple(outputs))


def _jvp(traced: Trace, derivative: Derivative, charts: Mapping[str, Chart]) -> Trace:
    graph = traced.graph
    symbols: list[Expression] = []
    changes: list[Scalar] = []
    for name, tangent in zip(derivative.arguments, derivative.tangents, strict=True):
        own = _symbols(traced, name)
        given = [graph.input(tangent.name, k) for k in range(tangent.size)]
        rates = _rates(charts.get(name), own)
        symbols += own
        changes += [_sum(rate[i] * d for rate, d in zip(rates, given, strict=True)) for i in range(len(own))]
    moved = iter(jvp(traced.values, symbols, changes))
    outputs = [
        replace(output, values=tuple(graph.coerce(next(moved)) for _ in output.values))
        for output in traced.outputs
    ]
    return replace(traced, inputs=(*traced.inputs, *derivative.tangents), outputs=tuple(outputs))


def _vjp(traced: Trace, derivative: Derivative, charts: Mapping[str, Chart]) -> Trace:
    graph = traced.graph
    weights: list[Scalar] = [
        graph.input(item.name, k) for item in derivative.cotangents for k in range(item.size)
    ] or [1.0]
    shapes = {item.name: item.shape for item in traced.inputs}
    owns = [_symbols(traced, name) for name in derivative.arguments]
    gradient = iter(vjp(traced.values, [x for own in owns for x in own], weights))
    outputs = []
    for name, own in zip(derivative.arguments, owns, strict=True):
        slopes = [next(gradient) for _ in own]
        rates = _rates(charts.get(name), own)
        values = [_sum(a * b for a, b in zip(rate, slopes, strict=True)) for rate in rates]
        shape = _tangent_shape(name, shapes, charts)
        outputs.append(ArrayOutput(name, shape, tuple(graph.coerce(item) for item in values)))
    return replace(traced, inputs=(*traced.inputs, *derivative.cotangents), outputs=tuple(outputs))


def _symbols(traced: Trace, name: str) -> list[Expression]:
    size = next(item.size for item in traced.inputs if item.name == name)
    return [traced.graph.input(name, k) for k in range(size)]


def _rates(chart: Chart | None, symbols: Sequence[Expression]) -> list[list[Scalar]]:
    if chart is None:
        return [[1.0 if i == j else 0.0 for i in range(len(symbols))] for j in range(len(symbols))]
    return chart.rates(symbols)


def _tangent_shape(
    name: str, shapes: Mapping[str, tuple[int, ...]], charts: Mapping[str, Chart]
) -> tuple[int, ...]:
    return (charts[name].size,) if name in charts else shapes[name]


def _free(name: str, taken: set[str]) -> str:
    """Return the name, or one that no other input has."""
    while name in taken:
        name = f"d{name}" if name.startswith("d") else f"{name}_"
    taken.add(name)
    return name


def _sum(terms: Iterable[Scalar]) -> Scalar:
    return sum((term for term in terms if not is_zero(term)), 0.0)


# Derivatives of functions that are programs with loops; kinds, arguments and charts as in `derivative`.


def derived_program(
    program: Program,
    results: Sequence[ArrayInput],
    derivatives: Sequence[Derivative],
    arguments: Sequence[ArrayInput],
    charts: ChartStatements,
) -> tuple[Program, tuple[ArrayInput, ...]]:
    """Return the program of the derivatives, each of the one before, and its results.

    `arguments` are all inputs, those of the derivatives included, in the order that the program is to have.
    """
    function = _Function(program, tuple(results), {item.name: item.shape for item in arguments}, charts)
    for number, derivative in enumerate(derivatives):
        if derivative.kind == "jacobian":
            function = function.jacobian(derivative, number)
        if derivative.kind in ("vjp", "hessian_vector"):
            function = function.vjp(derivative, number)
        if derivative.kind in ("jvp", "hessian_vector"):
            function = function.jvp(derivative, number)
    inputs = tuple(ArraySpec(item.name, item.size) for item in arguments)
    return replace(function.program, inputs=inputs), function.results


class ChartStatements(Protocol):
    """The statements that map tangent vectors to rates of configurations, and gradients to the tangent
    space."""

    graph: Graph

    def sizes(self) -> Mapping[str, int]:
        """Return the sizes of the tangent spaces, by argument; an argument not listed is its own tangent
        space."""
        ...

    def rate(self, argument: str, change: str, target: str) -> Statement:
        """Return the statement target = Q change; the columns of Q are the rates of the argument's elements,
        and `change` is an input."""
        ...

    def slope(self, argument: str, slope: str, target: str) -> Statement:
        """Return the statement target = Q^T slope."""
        ...

    def directions(self, argument: str) -> list[list[Scalar]]:
        """Return the columns of Q."""
        ...


@final
class StraightCharts:
    """Charts in straight-line code."""

    def __init__(self, graph: Graph, charts: Mapping[str, Chart], sizes: Mapping[str, int]) -> None:
        """Keep the charts; `sizes` are those of the arguments themselves."""
        self.graph = graph
        self._charts = charts
        self._sizes = sizes

    def sizes(self) -> Mapping[str, int]:
        return {name: chart.size for name, chart in self._charts.items()}

    def rate(self, argument: str, change: str, target: str) -> Statement:
        columns = self.directions(argument)
        given = [self.graph.input(change, k) for k in range(len(columns))]
        return self._store_values(
            target,
            [_dot([column[i] for column in columns], given) for i in range(self._sizes[argument])],
        )

    def slope(self, argument: str, slope: str, target: str) -> Statement:
        own = [self.graph.load(Address.fixed(slope, i)) for i in range(self._sizes[argument])]
        return self._store_values(target, [_dot(column, own) for column in self.directions(argument)])

    def directions(self, argument: str) -> list[list[Scalar]]:
        return self._charts[argument].rates(
            [self.graph.input(argument, k) for k in range(self._sizes[argument])]
        )

    def _store_values(self, target: str, values: Sequence[Scalar]) -> Straight:
        return Straight(tuple(Store.fixed(target, k, self.graph.coerce(x)) for k, x in enumerate(values)))


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Function:
    """A program, its results in the order of its outputs, and the shapes of all its inputs."""

    program: Program
    results: tuple[ArrayInput, ...]
    shapes: Mapping[str, tuple[int, ...]]
    charts: ChartStatements

    def jvp(self, derivative: Derivative, number: int) -> _Function:
        """Return the JVP along changes of the arguments; the change of a configuration follows from its
        rates."""
        changes: dict[str, str] = {}
        states, before = [], []
        for name, tangent in zip(derivative.arguments, derivative.tangents, strict=True):
            changes[name] = tangent.name
            if name in self.charts.sizes():
                changes[name] = f"rate {number} of {name}"
                states.append(ArraySpec(changes[name], math.prod(self.shapes[name])))
                before.append(self.charts.rate(name, tangent.name, changes[name]))
        frame = Frame(
            inputs=tuple(ArraySpec(item.name, item.size) for item in derivative.tangents),
            states=tuple(states),
            before=tuple(before),
        )
        return replace(self, program=program_jvp(self.program, self.charts.graph, changes, frame))

    def vjp(self, derivative: Derivative, number: int) -> _Function:
        """Return the gradient; with respect to a configuration, on its tangent space."""
        adjoints: dict[str, str] = {}
        states, after, outputs = [], [], []
        for name in derivative.arguments:
            target = f"gradient {number} by {name}"
            adjoints[name] = target
            outputs.append(ArraySpec(target, math.prod(self._tangent_shape(name))))
            if name in self.charts.sizes():
                adjoints[name] = f"slope {number} by {name}"
                states.append(ArraySpec(adjoints[name], math.prod(self.shapes[name])))
                after.append(self.charts.slope(name, adjoints[name], target))
        weights = {
            spec.name: item.name
            for spec, item in zip(self.program.outputs, derivative.cotangents, strict=False)
        }
        before = []
        if not derivative.cotangents:  # a single scalar
            one = f"weight {number}"
            weights = {self.program.outputs[0].name: one}
            states.append(ArraySpec(one, 1))
            before.append(Straight((Store.fixed(one, 0, self.charts.graph.constant(1.0)),)))
        frame = Frame(
            inputs=tuple(ArraySpec(item.name, item.size) for item in derivative.cotangents),
            states=tuple(states),
            before=tuple(before),
            after=tuple(after),
        )
        gradient = program_vjp(self.program, self.charts.graph, weights, adjoints, outputs, frame)
        results = tuple(ArrayInput(name, self._tangent_shape(name)) for name in derivative.arguments)
        return replace(self, program=gradient, results=results)

    def jacobian(self, derivative: Derivative, number: int) -> _Function:
        """Return all columns; with respect to a configuration, along the directions of its tangent space."""
        directions: dict[str, list[list[Scalar]]] = {}
        outputs: dict[str, list[ArraySpec]] = {}
        results: list[ArrayInput] = []
        for name in derivative.arguments:
            size = math.prod(self.shapes[name])
            directions[name] = (
                self.charts.directions(name)
                if name in self.charts.sizes()
                else [[1.0 if i == j else 0.0 for i in range(size)] for j in range(size)]
            )
            shape = self._tangent_shape(name)
            for result in self.results:
                label = result.name if len(derivative.arguments) == 1 else f"{result.name} by {name}"
                results.append(ArrayInput(label, result.shape + shape))
            outputs[name] = [
                ArraySpec(f"derivative {number} of {spec.name} by {name}", spec.size * math.prod(shape))
                for spec in self.program.outputs
            ]
        moved = program_jacobian(self.program, self.charts.graph, directions, outputs)
        return replace(self, program=moved, results=tuple(results))

    def _tangent_shape(self, name: str) -> tuple[int, ...]:
        sizes = self.charts.sizes()
        return (sizes[name],) if name in sizes else self.shapes[name]


def _dot(a: Sequence[Scalar], b: Sequence[Scalar]) -> Scalar:
    return sum((x * y for x, y in zip(a, b, strict=True) if not is_zero(x)), 0.0)
