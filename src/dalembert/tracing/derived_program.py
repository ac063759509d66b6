"""Derivatives of functions that are programs with loops; kinds, arguments and charts as in `derivative`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, final

from dalembert.scalar import Scalar, is_zero
from dalembert.tracing.address import Address
from dalembert.tracing.derivative import Chart, Derivative
from dalembert.tracing.graph import Graph
from dalembert.tracing.program import ArraySpec, Program, Statement, Store, Straight
from dalembert.tracing.program_derivatives import Frame, program_jvp, program_vjp
from dalembert.tracing.program_jacobian import program_jacobian
from dalembert.tracing.trace import ArrayInput

__all__ = ["ChartStatements", "StraightCharts", "derived_program"]


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
        return Straight(tuple(Store(target, k, self.graph.coerce(x)) for k, x in enumerate(values)))


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
            before.append(Straight((Store(one, 0, self.charts.graph.constant(1.0)),)))
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
