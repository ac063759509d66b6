"""Traced scalars.

An `Expression` is one node of a `Graph`: an operation on earlier nodes. `index` counts nodes in order of
creation, which is a topological order.
"""

from __future__ import annotations

import operator
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn, TypeAlias, final

import numpy as np
import numpy.typing as npt

from dalembert.errors import TracingError
from dalembert.scalar import Scalar

if TYPE_CHECKING:
    from dalembert.tracing.graph import Graph


MAX_EXPONENT: Final = 64
"""The largest whole exponent that `x ** n` unrolls into multiplications."""


def live(outputs: Iterable[Expression]) -> list[Expression]:
    """Return every node that the outputs depend on, in topological order; all other nodes are dead code."""
    seen: dict[int, Expression] = {}
    stack = list(outputs)
    while stack:
        node = stack.pop()
        if node.index not in seen:
            seen[node.index] = node
            stack.extend(node.args)
    return [seen[index] for index in sorted(seen)]


def replace_leaves(
    values: Iterable[Expression], replacement: Callable[[Expression], Expression]
) -> dict[int, Expression]:
    """Return all that values depend on, by the index of the old node, on other leaves."""
    new: dict[int, Expression] = {}
    for node in live(values):
        args = [new[item.index] for item in node.args]
        new[node.index] = node.graph.with_arguments(node, args) if args else replacement(node)
    return new


def _method(function: Any, op: str, *, reflected: bool = False) -> Callable[[Any, Any], Any]:
    """Return the method of an operator that records the operation `op`."""

    def method(self: Expression, other: Any) -> Any:
        build = self.graph.builders[op]
        if type(other) is Expression and other.graph is self.graph:  # most operations
            return build(other, self) if reflected else build(self, other)
        return _binary(function, build, self, other, reflected)

    return method


def _no_number(wanted: str) -> Callable[[Any], NoReturn]:
    """Return the method that refuses the conversion to a number."""

    def method(self: Any) -> NoReturn:
        raise TracingError(
            f"{caller()}: a traced value has no number yet and cannot become {wanted}; use the functions of "
            "dalembert.scalar instead of those of math and NumPy"
        )

    return method


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

    __add__ = _method(operator.add, "add")
    __sub__ = _method(operator.sub, "sub")
    __mul__ = _method(operator.mul, "mul")
    __radd__ = _method(operator.add, "add", reflected=True)
    __rsub__ = _method(operator.sub, "sub", reflected=True)
    __rmul__ = _method(operator.mul, "mul", reflected=True)
    __truediv__ = _method(operator.truediv, "div")
    __rtruediv__ = _method(operator.truediv, "div", reflected=True)
    __lt__ = _method(operator.lt, "lt")
    __le__ = _method(operator.le, "le")
    __gt__ = _method(operator.lt, "lt", reflected=True)
    __ge__ = _method(operator.le, "le", reflected=True)
    __eq__ = _method(operator.eq, "eq")

    def __ne__(self, other: object) -> Any:
        equal = self == other
        return self.graph.operation("not", equal) if type(equal) is Expression else NotImplemented

    __hash__ = object.__hash__

    def __neg__(self) -> Expression:
        return self.graph.builders["neg"](self)

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
            f"{caller()}: x ** {exponent!r} of a traced value; only 0.5 and whole exponents up to "
            f"{MAX_EXPONENT} are recorded; write scalar.exp(exponent * scalar.log(x))"
        )

    def __bool__(self) -> bool:
        raise TracingError(
            f"{caller()}: a traced value has no truth value, so it cannot stand in `if`, `while`, `and`, "
            "`or`, `not`, `min`, `max` or `in`; write scalar.select(condition, a, b) and scalar.logical_and, "
            "logical_or, logical_not, minimum, maximum"
        )

    __float__, __int__ = _no_number("float"), _no_number("int")
    __index__, __complex__ = _no_number("an index"), _no_number("complex")

    def __iter__(self) -> NoReturn:
        raise TracingError(f"{caller()}: a traced value is one scalar; it has no length and no elements")

    def __repr__(self) -> str:
        if self.op == "constant":
            return f"%{self.index} = {self.data!r}"
        arguments = ", ".join(f"%{item.index}" for item in self.args) if self.args else repr(self.data)
        return f"%{self.index} = {self.op}({arguments})"


def _binary(function: Any, build: Any, a: Expression, b: Any, reflected: bool) -> Any:
    """Apply an operation to an expression and a number, an expression or (elementwise) an array."""
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
    """Return x ** n by repeated squaring."""
    if exponent < 0:
        return 1.0 / _whole_power(x, -exponent)
    if exponent == 0:
        return x.graph.constant(1.0)
    half = _whole_power(x, exponent // 2) if exponent > 1 else None
    square = x if half is None else half * half
    return square * x if exponent % 2 and exponent > 1 else square


def caller() -> str:
    """Return the source line of the traced function: the innermost one outside this package, and the one
    inside it if any."""
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


# Addresses: the array element that a program reads or writes, by an index table or in order.

IndexTable: TypeAlias = npt.NDArray[Any]


class RowIndex(NamedTuple):
    """The index i of the row that a loop over rows is at: of the set `level`, which is the loop's own or one
    that its set was collected from."""

    loop: str
    level: str

    def __str__(self) -> str:
        return f"i of {self.level} in {self.loop}"


@final
@dataclass(frozen=True, slots=True)
class Address:
    """The element `tables[table][i] * scale + offset` of an array in iteration i; without a table, the
    element `i * scale + offset`.

    `array` names an input, a state, an output, or a table of floats (the same for all samples); `index` is i
    in programs with loops over rows, which may be nested; None: the iteration of the loop around.
    """

    array: str
    table: str | None
    scale: int
    offset: int
    index: RowIndex | None = None

    def __str__(self) -> str:
        i = "i" if self.index is None else str(self.index)
        entry = i if self.table is None else f"{self.table}[{i}]"
        return f"{self.array}[{f'{entry} * {self.scale} + ' if self.scale else ''}{self.offset}]"

    @classmethod
    def fixed(cls, array: str, position: int) -> Address:
        """Return the address of one element, the only form that a `Straight` may load."""
        return cls(array, None, 0, position)

    def position(self, tables: Mapping[str, IndexTable], iteration: int) -> int:
        """Return the element's position in iteration i."""
        entry = iteration if self.table is None else int(tables[self.table][iteration])
        return entry * self.scale + self.offset

    def positions(
        self, tables: Mapping[str, IndexTable], iterations: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.int64]:
        """Return the element's positions in many iterations."""
        entries = iterations if self.table is None else tables[self.table][iterations].astype(np.int64)
        return entries * self.scale + self.offset
