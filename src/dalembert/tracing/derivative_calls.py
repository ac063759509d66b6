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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, final

import numpy as np

from dalembert.errors import ArgumentError, TracingError, UnknownNameError
from dalembert.scalar import Scalar, is_zero
from dalembert.tracing.differentiate import jacobian, jvp, vjp
from dalembert.tracing.expression import Address, Expression
from dalembert.tracing.graph import Graph
from dalembert.tracing.program import ArrayArgument, ArraySpec, Program, Statement, Store, Straight
from dalembert.tracing.program_derivatives import Frame, program_jacobian, program_jvp, program_vjp
from dalembert.tracing.trace import ArrayOutput, Trace

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
    tangents: tuple[ArrayArgument, ...] = ()
    cotangents: tuple[ArrayArgument, ...] = ()

    @classmethod
    def of(
        cls,
        kind: str,
        arguments: Sequence[str],
        inputs: Sequence[ArrayArgument],
        outputs: Callable[[], Sequence[tuple[int, ...]]],
        charts: Mapping[str, Chart],
    ) -> Derivative:
        """Check the request; `outputs()`, the shapes of the results, is called in reverse mode only."""
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
        tangents: list[ArrayArgument] = []
        if kind in ("jvp", "hessian_vector"):
            for name in arguments:
                shape = (charts[name].size,) if name in charts else shapes[name]
                tangents.append(ArrayArgument(_free(f"d{name}", taken), shape))
        cotangents: list[ArrayArgument] = []
        if kind in ("vjp", "hessian_vector"):
            results = outputs()
            alone = len(results) == 1
            if not alone or kind == "vjp" or results[0]:  # a single scalar needs no weight
                cotangents = [
                    ArrayArgument(_free("cotangent" if alone else f"cotangent_{k}", taken), shape)
                    for k, shape in enumerate(results)
                ]
        return cls(kind, tuple(arguments), tuple(tangents), tuple(cotangents))

    @property
    def inputs(self) -> tuple[ArrayArgument, ...]:
        """The inputs that the derivative has in addition to the function's."""
        return (*self.tangents, *self.cotangents)


def _free(name: str, taken: set[str]) -> str:
    """Return the name, or one that no other input has."""
    while name in taken:
        name = f"d{name}" if name.startswith("d") else f"{name}_"
    taken.add(name)
    return name


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


@dataclass(slots=True, eq=False)
class Charts:
    """The tangent spaces of a function's arguments in a graph, and the statements that map to and from them.

    `shapes`: of all arguments; one without a chart is its own tangent space.
    """

    graph: Graph
    charts: Mapping[str, Chart]
    shapes: Mapping[str, tuple[int, ...]]

    def tangent_shape(self, argument: str) -> tuple[int, ...]:
        """Return the shape of a change of an argument."""
        return (self.charts[argument].size,) if argument in self.charts else self.shapes[argument]

    def symbols(self, argument: str) -> list[Expression]:
        """Return the elements of an argument."""
        return [self.graph.input(argument, k) for k in range(math.prod(self.shapes[argument]))]

    def directions(self, argument: str) -> list[list[Scalar]]:
        """Return the columns of Q: the rates of the elements of an argument along each direction."""
        if argument in self.charts:
            return self.charts[argument].rates(self.symbols(argument))
        columns: list[list[Scalar]] = np.eye(math.prod(self.shapes[argument])).tolist()
        return columns

    def rates(self, argument: str, change: str) -> list[Scalar]:
        """Return Q dx, with dx the input `change`."""
        columns = self.directions(argument)
        given = [self.graph.input(change, k) for k in range(len(columns))]
        return [_dot(row, given) for row in zip(*columns, strict=True)]

    def slopes(self, argument: str, slopes: Sequence[Scalar]) -> list[Scalar]:
        """Return Q^T slopes."""
        return [_dot(column, slopes) for column in self.directions(argument)]

    def rate(self, argument: str, change: str, target: str) -> Statement:
        """Return the statement target = Q change; `change` is an input."""
        return self._store_values(target, self.rates(argument, change))

    def slope(self, argument: str, slope: str, target: str) -> Statement:
        """Return the statement target = Q^T slope."""
        own = [self.graph.load(Address.fixed(slope, i)) for i in range(math.prod(self.shapes[argument]))]
        return self._store_values(target, self.slopes(argument, own))

    def _store_values(self, target: str, values: Sequence[Scalar]) -> Straight:
        return Straight(tuple(Store.fixed(target, k, self.graph.coerce(x)) for k, x in enumerate(values)))

    def jacobian_results(
        self, results: Sequence[ArrayArgument], arguments: Sequence[str]
    ) -> list[ArrayArgument]:
        """Return the results of a Jacobian: by the first argument, then by the next."""
        return [
            ArrayArgument(
                item.name if len(arguments) == 1 else f"{item.name} by {name}",
                item.shape + self.tangent_shape(name),
            )
            for name in arguments
            for item in results
        ]


def derivative_trace(traced: Trace, derivative: Derivative, given: Mapping[str, Chart]) -> Trace:
    """Return the derivative of a trace without loops, in the same graph."""
    if traced.graph.loops:
        raise TracingError("a trace with loops is differentiated as a program: program_jvp, program_vjp")
    charts = Charts(traced.graph, given, {item.name: item.shape for item in traced.inputs})
    if derivative.kind == "jacobian":
        return _jacobian(traced, derivative, charts)
    if derivative.kind != "jvp":
        traced = _vjp(traced, derivative, charts)
    return traced if derivative.kind == "vjp" else _jvp(traced, derivative, charts)


def _jacobian(traced: Trace, derivative: Derivative, charts: Charts) -> Trace:
    symbols: list[Expression] = []
    seeds: list[dict[int, Scalar]] = []
    spans: list[range] = []
    columns = 0
    for name in derivative.arguments:
        symbols += charts.symbols(name)
        rates = charts.directions(name)
        spans.append(range(columns, columns + len(rates)))
        seeds += [
            {k: rate for k, rate in zip(spans[-1], row, strict=True) if not is_zero(rate)}
            for row in zip(*rates, strict=True)
        ]
        columns += len(rates)
    rows = jacobian(traced.values, symbols, seeds)
    blocks = []
    for span in spans:
        left = iter(rows)
        for output in traced.outputs:
            own = [next(left) for _ in output.values]
            blocks.append(tuple(traced.graph.coerce(row.get(k, 0.0)) for row in own for k in span))
    results = charts.jacobian_results(
        [ArrayArgument(item.name, item.shape) for item in traced.outputs], derivative.arguments
    )
    outputs = [ArrayOutput(item.name, item.shape, block) for item, block in zip(results, blocks, strict=True)]
    return replace(traced, outputs=tuple(outputs))


def _jvp(traced: Trace, derivative: Derivative, charts: Charts) -> Trace:
    symbols: list[Expression] = []
    changes: list[Scalar] = []
    for name, tangent in zip(derivative.arguments, derivative.tangents, strict=True):
        symbols += charts.symbols(name)
        changes += charts.rates(name, tangent.name)
    moved = iter(jvp(traced.values, symbols, changes))
    outputs = [
        replace(output, values=tuple(traced.graph.coerce(next(moved)) for _ in output.values))
        for output in traced.outputs
    ]
    return replace(traced, inputs=(*traced.inputs, *derivative.tangents), outputs=tuple(outputs))


def _vjp(traced: Trace, derivative: Derivative, charts: Charts) -> Trace:
    graph = traced.graph
    weights: list[Scalar] = [
        graph.input(item.name, k) for item in derivative.cotangents for k in range(item.size)
    ] or [1.0]
    owns = [charts.symbols(name) for name in derivative.arguments]
    gradient = iter(vjp(traced.values, [x for own in owns for x in own], weights))
    outputs = []
    for name, own in zip(derivative.arguments, owns, strict=True):
        values = charts.slopes(name, [next(gradient) for _ in own])
        shape = charts.tangent_shape(name)
        outputs.append(ArrayOutput(name, shape, tuple(graph.coerce(item) for item in values)))
    return replace(traced, inputs=(*traced.inputs, *derivative.cotangents), outputs=tuple(outputs))


def _dot(a: Sequence[Scalar], b: Sequence[Scalar]) -> Scalar:
    return sum((x * y for x, y in zip(a, b, strict=True) if not (is_zero(x) or is_zero(y))), 0.0)


# Derivatives of functions that are programs with loops; kinds, arguments and charts as in `derivative`.


def derived_program(
    program: Program,
    results: Sequence[ArrayArgument],
    derivatives: Sequence[Derivative],
    arguments: Sequence[ArrayArgument],
    charts: Charts,
) -> tuple[Program, tuple[ArrayArgument, ...]]:
    """Return the program of the derivatives, each of the one before, and its results.

    `arguments` are all inputs, those of the derivatives included, in the order that the program is to have.
    """
    function = _Function(program, tuple(results), charts)
    for number, derivative in enumerate(derivatives):
        if derivative.kind == "jacobian":
            function = function.jacobian(derivative, number)
        if derivative.kind in ("vjp", "hessian_vector"):
            function = function.vjp(derivative, number)
        if derivative.kind in ("jvp", "hessian_vector"):
            function = function.jvp(derivative, number)
    return replace(function.program, inputs=_specs(arguments)), function.results


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Function:
    """A program, and its results in the order of its outputs."""

    program: Program
    results: tuple[ArrayArgument, ...]
    charts: Charts

    def jvp(self, derivative: Derivative, number: int) -> _Function:
        """Return the JVP along changes of the arguments, of a configuration along its rates."""
        changes: dict[str, str] = {}
        states, before = [], []
        for name, tangent in zip(derivative.arguments, derivative.tangents, strict=True):
            changes[name] = tangent.name
            if name in self.charts.charts:
                changes[name] = f"rate {number} of {name}"
                states.append(ArraySpec(changes[name], math.prod(self.charts.shapes[name])))
                before.append(self.charts.rate(name, tangent.name, changes[name]))
        frame = Frame(_specs(derivative.tangents), tuple(states), tuple(before))
        return replace(self, program=program_jvp(self.program, self.charts.graph, changes, frame))

    def vjp(self, derivative: Derivative, number: int) -> _Function:
        """Return the gradient; with respect to a configuration, on its tangent space."""
        adjoints: dict[str, str] = {}
        states, before, after, outputs = [], [], [], []
        for name in derivative.arguments:
            target = f"gradient {number} by {name}"
            adjoints[name] = target
            outputs.append(ArraySpec(target, math.prod(self.charts.tangent_shape(name))))
            if name in self.charts.charts:
                adjoints[name] = f"slope {number} by {name}"
                states.append(ArraySpec(adjoints[name], math.prod(self.charts.shapes[name])))
                after.append(self.charts.slope(name, adjoints[name], target))
        weights = {
            spec.name: item.name
            for spec, item in zip(self.program.outputs, derivative.cotangents, strict=False)
        }
        if not derivative.cotangents:  # a single scalar
            one = f"weight {number}"
            weights = {self.program.outputs[0].name: one}
            states.append(ArraySpec(one, 1))
            before.append(Straight((Store.fixed(one, 0, self.charts.graph.constant(1.0)),)))
        frame = Frame(_specs(derivative.cotangents), tuple(states), tuple(before), tuple(after))
        gradient = program_vjp(self.program, self.charts.graph, weights, adjoints, outputs, frame)
        results = (ArrayArgument(name, self.charts.tangent_shape(name)) for name in derivative.arguments)
        return replace(self, program=gradient, results=tuple(results))

    def jacobian(self, derivative: Derivative, number: int) -> _Function:
        """Return all columns; with respect to a configuration, along the directions of its tangent space."""
        names, charts = derivative.arguments, self.charts
        directions = {name: charts.directions(name) for name in names}
        moved = program_jacobian(self.program, charts.graph, directions, f"derivative {number} of")
        return replace(self, program=moved, results=tuple(charts.jacobian_results(self.results, names)))


def _specs(items: Sequence[ArrayArgument]) -> tuple[ArraySpec, ...]:
    return tuple(ArraySpec(item.name, item.size) for item in items)
