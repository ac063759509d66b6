"""The functions of `dalembert.scalar` on traced values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

from dalembert import scalar
from dalembert.scalar import Scalar
from dalembert.scalar.lookups import Table
from dalembert.tracing.expression import Expression
from dalembert.tracing.graph import Graph
from dalembert.tracing.iteration import is_condition, record_loop

__all__ = ["ExpressionFunctions"]


def _graph(*values: Scalar) -> Graph:
    return next(value.graph for value in values if type(value) is Expression)


def _record(op: str) -> Callable[..., Scalar]:
    """Return a method that records one operation in the graph of its arguments."""

    def method(self: object, *args: Scalar) -> Scalar:
        return _graph(*args).operation(op, *args)

    return method


@final
class ExpressionFunctions:
    """The functions of `dalembert.scalar` as operations of the graph."""

    sin, cos, tan = _record("sin"), _record("cos"), _record("tan")
    asin, acos, atan2 = _record("asin"), _record("acos"), _record("atan2")
    sqrt, exp, log = _record("sqrt"), _record("exp"), _record("log")
    absolute, floor = _record("abs"), _record("floor")
    minimum, maximum = _record("min"), _record("max")
    logical_and, logical_or, logical_not = _record("and"), _record("or"), _record("not")

    def select(self, condition: Scalar, a: Scalar, b: Scalar) -> Scalar:
        graph = _graph(condition, a, b)
        if not (is_condition(a) or is_condition(b)):
            return graph.operation("select", condition, a, b)
        # Conditions are no numbers: (condition and a) or (not condition and b).
        chosen = graph.operation("and", condition, a)
        return graph.operation("or", chosen, graph.operation("and", graph.operation("not", condition), b))

    def lookup(self, table: Table, index: Scalar) -> Scalar:
        return _graph(index).lookup(table, index)

    def loop(
        self,
        count: int,
        step: Callable[[Any], Any],
        carry: Any,
        until: Callable[[Any], Scalar] | None,
    ) -> Any:
        return record_loop(count, step, carry, until)

    def literal(self, x: Scalar) -> float | None:
        return x.data if x.op == "constant" else None


scalar.register(Expression, ExpressionFunctions())
