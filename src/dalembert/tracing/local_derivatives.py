"""The derivative of each operation: dy = sum_k p_k dx_k.

`tangent` applies this linear map to changes of the arguments. In reverse, `edges` gives for each argument its
share of the node's adjoint, and the condition under which the argument matters at all: `select`, `min` and
`max` choose one. `abs` has the derivative of the branch taken, `floor` is constant between its jumps.
Structural zeros are the float 0.0 and are never built.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from dalembert import scalar
from dalembert.scalar import Scalar
from dalembert.tracing.expression import Expression
from dalembert.tracing.operations import BOOLEAN_OPS

__all__ = ["CHOICES", "CONSTANT_OPS", "FREE_OPS", "Edge", "edges", "tangent"]

CHOICES: Final = frozenset({"select", "min", "max"})
"""Operations that hand on one of their arguments."""

CONSTANT_OPS: Final = BOOLEAN_OPS | {"floor", "lookup"}
"""Operations whose derivative is zero wherever it exists."""

FREE_OPS: Final = CHOICES | {"add", "sub", "neg", "abs"}
"""Operations whose partial derivatives are 1 and -1, so that no product is needed."""

Partial = Callable[[Expression], Scalar]


class Edge(NamedTuple):
    """The contribution of a node's adjoint to an argument: `share`, where `condition` is `holds` (None:
    always)."""

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
    if node.op == "div":
        return _quotient(node, changes)
    total: Scalar = 0.0
    partials = _PARTIALS[node.op]
    for k, change in enumerate(changes):
        if not scalar.is_zero(change):
            total = total + partials[k](node) * change
    return total


def edges(node: Expression, weight: Scalar, wanted: Sequence[bool]) -> list[Edge]:
    """Return the shares of the wanted arguments in a node's adjoint."""
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
    partials = _PARTIALS[node.op]
    return [Edge(item, partials[k](node) * weight) for k, item in enumerate(node.args) if wanted[k]]


def _choice(node: Expression) -> tuple[Expression, Expression, Expression]:
    """Return the condition, the argument chosen where it holds, and the argument chosen elsewhere."""
    if node.op == "select":
        condition, a, b = node.args
        return condition, a, b
    a, b = node.args
    return (a < b if node.op == "min" else b < a), a, b


def _quotient(node: Expression, changes: Sequence[Scalar]) -> Scalar:
    """d(a / b) = (da - y db) / b"""
    numerator = changes[0]
    if not scalar.is_zero(changes[1]):
        numerator = numerator - node * changes[1]
    return numerator * (1.0 / node.args[1])


def _unary(partial: Callable[[Expression, Expression], Scalar]) -> tuple[Partial]:
    """Return the partial derivative of a unary operation from p(x, y) with y = f(x)."""
    return (lambda node: partial(node.args[0], node),)


_PARTIALS: Final[Mapping[str, tuple[Partial, ...]]] = {
    "add": (lambda node: 1.0, lambda node: 1.0),
    "sub": (lambda node: 1.0, lambda node: -1.0),
    "mul": (lambda node: node.args[1], lambda node: node.args[0]),
    "neg": (lambda node: -1.0,),
    "sqrt": _unary(lambda x, y: 0.5 / y),
    "sin": _unary(lambda x, y: scalar.cos(x)),
    "cos": _unary(lambda x, y: -scalar.sin(x)),
    "tan": _unary(lambda x, y: 1.0 + y * y),
    "asin": _unary(lambda x, y: 1.0 / scalar.sqrt(1.0 - x * x)),
    "acos": _unary(lambda x, y: -1.0 / scalar.sqrt(1.0 - x * x)),
    "atan2": (
        lambda node: node.args[1] / _squared_radius(node),
        lambda node: -(node.args[0] / _squared_radius(node)),
    ),
    "exp": _unary(lambda x, y: y),
    "log": _unary(lambda x, y: 1.0 / x),
    "fma": (lambda node: node.args[1], lambda node: node.args[0], lambda node: 1.0),
}


def _squared_radius(node: Expression) -> Scalar:
    y, x = node.args
    return x * x + y * y
