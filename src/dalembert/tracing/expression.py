"""Traced scalars: a hash-consed graph of arithmetic.

An `Expression` is one node: an operation on earlier nodes. Equal operations on equal arguments are one
object (hash-consing), so that common subexpressions vanish while the function runs; the graph's rewrite
rules are applied at construction, so that structural zeros and ones never become nodes. `index` counts
nodes in order of creation, which is a topological order.

Departures from IEEE arithmetic, by design: a structural zero wins over everything (0 x = 0 even where x is
NaN or infinite), and the sign of a zero constant is dropped. Every other fold keeps NaN and infinity.
"""

from __future__ import annotations

import operator
import os
import sys
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any, Final, NoReturn, final

import numpy as np

from dalembert.errors import TracingError, UnknownNameError
from dalembert.scalar import Scalar
from dalembert.tracing.operations import OPERATIONS
from dalembert.tracing.rewriting import RuleSet
from dalembert.tracing.rules import RULES

__all__ = ["Expression", "Graph", "live"]

LOGICAL_OPS: Final = frozenset({"and", "or", "not"})

MAX_EXPONENT: Final = 64
"""The largest whole exponent that `x ** n` unrolls into multiplications."""


def live(outputs: Iterable[Expression]) -> list[Expression]:
    """Every node that the outputs depend on, in topological order; the rest of the graph is dead code."""
    seen: dict[int, Expression] = {}
    stack = list(outputs)
    while stack:
        node = stack.pop()
        if node.index not in seen:
            seen[node.index] = node
            stack.extend(node.args)
    return [seen[index] for index in sorted(seen)]


@final
class Expression:
    """A scalar known only when the traced program runs. Do arithmetic with it; never branch on it."""

    __slots__ = ("args", "data", "graph", "index", "op")

    __array_ufunc__ = None  # NumPy scalars and arrays hand `array * expression` over to the methods below.

    op: str
    args: tuple[Expression, ...]
    data: Any
    graph: Graph
    index: int

    def __init__(self, graph: Graph, op: str, args: tuple[Expression, ...], data: Any, index: int) -> None:
        self.graph = graph
        self.op = op
        self.args = args
        self.data = data
        self.index = index

    def __add__(self, other: Scalar) -> Any:
        graph = self.graph
        if type(other) is Expression and other.graph is graph:
            return graph.add(self, other)
        return _mixed(operator.add, graph.add, self, other, False)

    def __radd__(self, other: Scalar) -> Any:
        return _mixed(operator.add, self.graph.add, self, other, True)

    def __sub__(self, other: Scalar) -> Any:
        graph = self.graph
        if type(other) is Expression and other.graph is graph:
            return graph.sub(self, other)
        return _mixed(operator.sub, graph.sub, self, other, False)

    def __rsub__(self, other: Scalar) -> Any:
        return _mixed(operator.sub, self.graph.sub, self, other, True)

    def __mul__(self, other: Scalar) -> Any:
        graph = self.graph
        if type(other) is Expression and other.graph is graph:
            return graph.mul(self, other)
        return _mixed(operator.mul, graph.mul, self, other, False)

    def __rmul__(self, other: Scalar) -> Any:
        return _mixed(operator.mul, self.graph.mul, self, other, True)

    def __truediv__(self, other: Scalar) -> Any:
        return _mixed(operator.truediv, self.graph.div, self, other, False)

    def __rtruediv__(self, other: Scalar) -> Any:
        return _mixed(operator.truediv, self.graph.div, self, other, True)

    def __lt__(self, other: Scalar) -> Any:
        return _mixed(operator.lt, self.graph.lt, self, other, False)

    def __le__(self, other: Scalar) -> Any:
        return _mixed(operator.le, self.graph.le, self, other, False)

    def __gt__(self, other: Scalar) -> Any:
        return _mixed(operator.lt, self.graph.lt, self, other, True)

    def __ge__(self, other: Scalar) -> Any:
        return _mixed(operator.le, self.graph.le, self, other, True)

    def __eq__(self, other: object) -> Any:
        return _mixed(operator.eq, self.graph.eq, self, other, False)

    def __ne__(self, other: object) -> Any:
        equal = self == other
        return self.graph.operation("not", equal) if type(equal) is Expression else NotImplemented

    __hash__ = object.__hash__

    def __neg__(self) -> Expression:
        return self.graph.neg(self)

    def __pos__(self) -> Expression:
        return self

    def __abs__(self) -> Expression:
        return self.graph.operation("abs", self)

    def __floor__(self) -> Expression:
        return self.graph.operation("floor", self)

    def __pow__(self, exponent: Scalar) -> Any:
        if isinstance(exponent, Expression) and exponent.op == "constant":
            exponent = exponent.data
        if isinstance(exponent, int | float | np.generic):
            if exponent == 0.5:
                return self.graph.operation("sqrt", self)
            if float(exponent).is_integer() and abs(float(exponent)) <= MAX_EXPONENT:
                return _whole_power(self, int(exponent))
        raise TracingError(
            f"{_place()}: x ** {exponent!r} of a traced value; only 0.5 and whole exponents up to "
            f"{MAX_EXPONENT} are recorded; write scalar.exp(exponent * scalar.log(x))"
        )

    def __bool__(self) -> bool:
        raise TracingError(
            f"{_place()}: a traced value has no truth value, so it cannot stand in `if`, `while`, `and`, "
            "`or`, `not`, `min`, `max` or `in`; write scalar.select(condition, a, b) and scalar.logical_and, "
            "logical_or, logical_not, minimum, maximum"
        )

    def __float__(self) -> float:
        self._no_number("float")

    def __int__(self) -> int:
        self._no_number("int")

    def __index__(self) -> int:
        self._no_number("an index")

    def __complex__(self) -> complex:
        self._no_number("complex")

    def __iter__(self) -> NoReturn:
        raise TracingError(f"{_place()}: a traced value is one scalar; it has no length and no elements")

    def _no_number(self, wanted: str) -> NoReturn:
        raise TracingError(
            f"{_place()}: a traced value has no number yet and cannot become {wanted}; use the functions of "
            "dalembert.scalar instead of those of math and NumPy"
        )

    def __repr__(self) -> str:
        if self.op == "constant":
            return f"%{self.index} = {self.data!r}"
        arguments = ", ".join(f"%{item.index}" for item in self.args) if self.args else repr(self.data)
        return f"%{self.index} = {self.op}({arguments})"


@final
class Graph:
    """The nodes of one trace; `rules` apply at construction; `share=False` records every operation anew."""

    def __init__(self, rules: RuleSet = RULES, *, share: bool = True) -> None:
        self.rules = rules
        self.share = share
        self.nodes: list[Expression] = []
        self._constants: dict[Any, Expression] = {}
        self._leaves: dict[Any, Expression] = {}
        self._known: dict[str, dict[Any, Expression]] = {name: {} for name in OPERATIONS}
        self._builders: dict[str, Callable[..., Expression]] = {
            name: _builder(self, name, operation.arity) for name, operation in OPERATIONS.items()
        }
        self.add, self.sub = self._builders["add"], self._builders["sub"]
        self.mul, self.div = self._builders["mul"], self._builders["div"]
        self.neg, self.eq = self._builders["neg"], self._builders["eq"]
        self.lt, self.le = self._builders["lt"], self._builders["le"]

    def constant(self, value: float) -> Expression:
        """The number; all NaNs are one, and so are the two zeros."""
        found = self._constants.get(value)
        if found is None:
            number = float(value) + 0.0
            key = number if number == number else "nan"
            found = self._constants.get(key)
            if found is None:
                found = self._constants[key] = self._new("constant", (), number)
        return found

    def input(self, array: str, position: int) -> Expression:
        """Element `position` of the input array."""
        return self._leaf("input", (array, position))

    def load(self, address: Any) -> Expression:
        """The element at an `Address`, before the stores of the same iteration."""
        return self._leaf("load", address)

    def operation(self, op: str, *args: Scalar) -> Expression:
        """The operation on expressions and numbers, folded and shared."""
        builder = self._builders.get(op)
        if builder is None:
            raise UnknownNameError.of("operation", op, OPERATIONS)
        if len(args) != OPERATIONS[op].arity:
            raise TracingError(f"operation {op!r} takes {OPERATIONS[op].arity} arguments, got {len(args)}")
        if op in LOGICAL_OPS:
            return builder(*[self.condition(item) for item in args])
        if op == "select":
            return builder(self.condition(args[0]), self.coerce(args[1]), self.coerce(args[2]))
        return builder(*[self.coerce(item) for item in args])

    def existing(self, op: str, a: Expression, b: Expression) -> Expression | None:
        """What the operation on these two gave when it was constructed before; None if it was not."""
        return self._known[op].get((a.index, b.index))

    def rewritten(self, op: str, a: Expression, b: Expression) -> Expression | None:
        """What the rules make of the operation; None where it would be a node of its own."""
        for rule in self.rules.dispatch(op)[a.op][b.op]:
            found: Expression | None = rule(a, b)
            if found is not None:
                return found
        return None

    def boolean(self, value: bool) -> Expression:
        """A condition that always or never holds: 0 <= 0 or 0 < 0, so that emitters need no literal."""
        op = "le" if value else "lt"
        found = self._leaves.get(op)
        if found is None:
            zero = self.constant(0.0)
            found = self._leaves[op] = self._new(op, (zero, zero), None)
        return found

    def condition(self, value: Scalar) -> Expression:
        """A condition of this graph from an expression or a truth value."""
        if isinstance(value, bool | np.bool_):
            return self.boolean(bool(value))
        return self.coerce(value)

    def coerce(self, value: Scalar) -> Expression:
        """An expression of this graph from an expression or a number."""
        if type(value) is Expression:
            if value.graph is not self:
                raise TracingError(
                    f"{_place()}: a traced value of another trace; values must not be kept between traces"
                )
            return value
        if isinstance(value, int | float | np.integer | np.floating | np.bool_):
            return self.constant(float(value))
        if isinstance(value, np.ndarray) and value.ndim == 0:
            return self.coerce(value.item())
        raise TracingError(
            f"{_place()}: {type(value).__name__} in arithmetic with a traced value; "
            "use floats, ints, NumPy scalars or other traced values"
        )

    def _leaf(self, op: str, data: Any) -> Expression:
        found = self._leaves.get(data)
        if found is None:
            found = self._leaves[data] = self._new(op, (), data)
        return found

    def _new(self, op: str, args: tuple[Expression, ...], data: Any) -> Expression:
        node = Expression(self, op, args, data, len(self.nodes))
        self.nodes.append(node)
        return node


def _builder(graph: Graph, op: str, arity: int) -> Callable[..., Expression]:
    """The constructor of one operation: look up, rewrite, else make a node. Closures, for speed."""
    nodes, share = graph.nodes, graph.share
    append = nodes.append
    dispatch = graph.rules.dispatch(op)
    commutative = graph.rules.canonical_order and OPERATIONS[op].commutative
    known = graph._known[op]
    lookup = known.get

    def unary(a: Expression) -> Expression:
        key = a.index
        found = lookup(key)
        if found is not None:
            return found
        for rule in dispatch[a.op]:
            found = rule(a)
            if found is not None:
                break
        else:
            append(found := Expression(graph, op, (a,), None, len(nodes)))
        if share:
            known[key] = found
        return found

    def binary(a: Expression, b: Expression) -> Expression:
        if commutative and a.index > b.index:
            a, b = b, a
        key = (a.index, b.index)
        found = lookup(key)
        if found is not None:
            return found
        for rule in dispatch[a.op][b.op]:
            found = rule(a, b)
            if found is not None:
                break
        else:
            append(found := Expression(graph, op, (a, b), None, len(nodes)))
        if share:
            known[key] = found
        return found

    def ternary(a: Expression, b: Expression, c: Expression) -> Expression:
        key = (a.index, b.index, c.index)
        found = lookup(key)
        if found is not None:
            return found
        for rule in dispatch[a.op]:
            found = rule(a, b, c)
            if found is not None:
                break
        else:
            append(found := Expression(graph, op, (a, b, c), None, len(nodes)))
        if share:
            known[key] = found
        return found

    return (unary, binary, ternary)[arity - 1]


def _mixed(function: Any, build: Any, a: Expression, b: Any, reflected: bool) -> Any:
    """An operation of an expression and anything: number, expression, or NumPy array (element by element)."""
    if type(b) is float:
        other = a.graph.constant(b)
    elif isinstance(b, np.ndarray) and b.ndim > 0:
        results = [function(item, a) if reflected else function(a, item) for item in b.flat]
        array = np.empty(len(results), dtype=object)
        array[:] = results
        return array.reshape(b.shape)
    elif isinstance(b, Expression | int | float | np.generic | np.ndarray):
        other = a.graph.coerce(b)
    else:
        return NotImplemented
    return build(other, a) if reflected else build(a, other)


def _whole_power(x: Expression, exponent: int) -> Scalar:
    """x ** n by repeated squaring."""
    if exponent < 0:
        return 1.0 / _whole_power(x, -exponent)
    if exponent == 0:
        return x.graph.constant(1.0)
    half = _whole_power(x, exponent // 2) if exponent > 1 else None
    square = x if half is None else half * half
    return square * x if exponent % 2 and exponent > 1 else square


def _place() -> str:
    """The innermost line outside this package, and the one inside it if that is where it happened."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    hidden = (os.path.join(package, "tracing", ""), os.path.join(package, "scalar", ""))
    inner = ""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith(package + os.sep):
            return f"{file}:{frame.f_lineno}{inner}"
        if not inner and not file.startswith(hidden):
            inner = f" (in dalembert{file[len(package) :]}:{frame.f_lineno})"
        frame = frame.f_back
    return f"dalembert{inner}"
