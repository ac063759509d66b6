"""Programs: the form of a trace that a compiler takes.

A program computes output arrays from input arrays for one sample, through state arrays that live only while
it runs. All arrays are one-dimensional; outputs and states start at zero. Nearly every program is one
`Straight`; a large tree becomes `Loop`s over tables. In one `Straight`, and in one iteration of a `Loop`,
all values are computed first, from what the arrays held before, and then stored in order.
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Final, TypeAlias, final

import numpy as np
import numpy.typing as npt

from dalembert.errors import ArgumentError, ShapeError, UnknownNameError
from dalembert.tracing.expression import Address, Expression, IndexTable, live
from dalembert.tracing.operations import BOOLEAN_OPS, LEAF_OPS, OPERATIONS

FORMAT: Final = "dalembert program 2"
"""Prefix of the canonical encoding; changes with it, so that old digests never match."""


@final
@dataclass(frozen=True, slots=True)
class ArraySpec:
    """The name of an array and its number of scalars in one sample."""

    name: str
    size: int

    def __post_init__(self) -> None:
        if not self.name:
            raise ArgumentError("an array needs a name")
        if self.size < 0:
            raise ShapeError(f"array {self.name!r}: size {self.size} is negative")


@final
@dataclass(frozen=True, slots=True)
class ArrayArgument:
    """Name and shape of one argument or result of a function, without batch axes; () for a scalar."""

    name: str
    shape: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        return math.prod(self.shape)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Store:
    """A store of `value` to the element at `address`, or its addition there (`accumulate`)."""

    address: Address
    value: Expression
    accumulate: bool = False

    @classmethod
    def fixed(cls, array: str, position: int, value: Expression) -> Store:
        """Return a store to one element, the only form that a `Straight` may have."""
        return cls(Address.fixed(array, position), value)

    @property
    def array(self) -> str:
        return self.address.array

    @property
    def position(self) -> int:
        """The element of a store to one element."""
        return self.address.offset


Case: TypeAlias = tuple[Store, ...]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Straight:
    """Straight-line code."""

    stores: Case

    @property
    def values(self) -> tuple[Expression, ...]:
        return tuple(store.value for store in self.stores)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Loop:
    """A loop of `count` iterations, each of one of several cases, `tables[kinds][i]`, or of the only one.

    i runs from 0 up, or with `reverse` from count - 1 down. `until` is the exit flag, an element of a state
    that is not zero once a sample is done: later iterations change nothing that is read, and may be skipped.
    `skips` has such a flag, or None, for each case: an iteration of that case may be skipped. If it is not,
    the elements that it reads of the same array have been written.
    """

    count: int
    reverse: bool
    kinds: str | None
    cases: tuple[Case, ...]
    until: Address | None = None
    skips: tuple[Address | None, ...] = ()

    def flags(self, case: int) -> list[Address]:
        """Return the exit flags of a case: elements that are not zero once a sample is done."""
        own = self.skips[case] if self.skips else None
        return [flag for flag in (self.until, own) if flag is not None]

    @property
    def iterations(self) -> range:
        return range(self.count - 1, -1, -1) if self.reverse else range(self.count)

    def runs(self, tables: Mapping[str, IndexTable]) -> Iterator[tuple[Case, npt.NDArray[np.int64]]]:
        """Yield every case with the iterations that run it."""
        for number, case in enumerate(self.cases):
            if self.kinds is None:
                yield case, np.arange(self.count, dtype=np.int64)
            else:
                yield case, np.flatnonzero(tables[self.kinds][: self.count] == number)


Statement: TypeAlias = Straight | Loop


def as_loop(statement: Statement) -> Loop:
    """Return a statement as a loop; straight-line code is a loop of one iteration."""
    return Loop(1, False, None, (statement.stores,)) if isinstance(statement, Straight) else statement


@final
@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """Statements that compute `outputs` from `inputs`; a row for which `check` holds is rejected."""

    inputs: tuple[ArraySpec, ...]
    outputs: tuple[ArraySpec, ...]
    states: tuple[ArraySpec, ...] = ()
    statements: tuple[Statement, ...] = ()
    tables: Mapping[str, IndexTable] = field(default_factory=dict)
    check: Expression | None = None

    def __post_init__(self) -> None:
        names = [spec.name for spec in (*self.inputs, *self.outputs, *self.states)] + list(self.tables)
        repeated = {name for name, times in Counter(names).items() if times > 1}
        if repeated:
            raise ArgumentError(
                f"arrays and tables need names of their own; given twice: {', '.join(sorted(repeated))}"
            )
        for name, table in self.tables.items():
            if table.ndim != 1 or table.dtype.kind not in "iuf":
                raise ShapeError(
                    f"table {name!r} has shape {table.shape} and type {table.dtype}; expected one axis of "
                    "numbers"
                )
        _Validation(self).run()

    @property
    def loops(self) -> list[Loop]:
        """The statements as loops, straight-line code as one of one iteration."""
        return [as_loop(statement) for statement in self.statements]

    def digest(self) -> str:
        """Return the SHA-256 of a canonical encoding: equal for equal programs, in every process and
        machine. Nodes are numbered by their place among the live ones, so that dead code is ignored."""
        digest = hashlib.sha256()

        def put(*items: object) -> None:
            digest.update(("\x1f".join(map(str, items)) + "\x1e").encode())

        def put_values(values: Iterable[Expression]) -> None:
            roots = list(values)
            number: dict[int, int] = {}
            for node in live(roots):
                number[node.index] = len(number)
                data = struct.pack("<d", node.data).hex() if node.op == "constant" else node.data
                put(node.op, *[number[item.index] for item in node.args], data)
            put("roots", *[number[item.index] for item in roots])

        put(FORMAT)
        for group in (self.inputs, self.outputs, self.states):
            put("arrays", *[f"{spec.name}\x1d{spec.size}" for spec in group])
        for name, table in sorted(self.tables.items()):
            numbers = np.ascontiguousarray(table, "<f8" if table.dtype.kind == "f" else "<i8")
            put("table", name, numbers.dtype.str, len(numbers))
            digest.update(numbers.tobytes())
        for statement, loop in zip(self.statements, self.loops, strict=True):
            put(type(statement).__name__, loop.count, loop.reverse, loop.kinds, len(loop.cases))
            put("until", loop.until, *loop.skips)
            for case in loop.cases:
                put("case", *[f"{store.address}\x1d{store.accumulate}" for store in case])
                put_values(store.value for store in case)
        if self.check is not None:
            put("check")
            put_values([self.check])
        return digest.hexdigest()


@final
class _Validation:
    """The arrays and tables that the statements of a program may use."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.tables = program.tables
        self.inputs = {spec.name: spec.size for spec in program.inputs}
        self.written = {spec.name: spec.size for spec in (*program.outputs, *program.states)}
        self.integers = {name: len(t) for name, t in self.tables.items() if t.dtype.kind in "iu"}
        self.floats = {name: len(t) for name, t in self.tables.items() if t.dtype.kind == "f"}
        self.sizes = self.inputs | self.written | self.floats

    def run(self) -> None:
        """Raise an error if a statement is ill-formed, or reaches outside its arrays."""
        for statement in self.program.statements:
            if isinstance(statement, Loop):
                self._loop(statement)
            for case, own in as_loop(statement).runs(self.tables):
                for store in case:
                    if store.array not in self.written:
                        raise UnknownNameError.of("output or state", store.array, self.written)
                    self._address(store.address, own, statement)
                    if store.value.op in BOOLEAN_OPS:
                        raise ArgumentError(
                            f"a condition ({store.value.op}) cannot be stored; store "
                            "scalar.select(condition, 1.0, 0.0)"
                        )
                self._leaves([store.value for store in case], own, statement)
        check = self.program.check
        if check is not None:
            if check.op not in BOOLEAN_OPS:
                raise ArgumentError(f"check must be a condition, got the operation {check.op!r}")
            self._leaves([check], np.zeros(1, np.int64), None)

    def _loop(self, loop: Loop) -> None:
        if loop.count < 0:
            raise ArgumentError(f"a loop of {loop.count} iterations")
        if loop.kinds is None:
            if len(loop.cases) != 1:
                raise ArgumentError(f"a loop without a table of kinds has one case, got {len(loop.cases)}")
        else:
            self._index_table(loop.kinds, loop.count)
            chosen = self.tables[loop.kinds][: loop.count]
            if loop.count and not (chosen.min() >= 0 and chosen.max() < len(loop.cases)):
                raise ArgumentError(f"table {loop.kinds!r} names a case outside 0 … {len(loop.cases) - 1}")
        if loop.skips and len(loop.skips) != len(loop.cases):
            raise ArgumentError(f"a loop of {len(loop.cases)} cases has {len(loop.skips)} skips")
        if loop.until is not None and (loop.until.table is not None or loop.until.scale):
            raise ArgumentError(f"a loop ends by {loop.until}; it must be one fixed element")
        for number, (_, own) in enumerate(loop.runs(self.tables)):
            for flag in loop.flags(number):
                self._address(flag, own, loop)

    def _leaves(
        self, values: list[Expression], own: npt.NDArray[np.int64], statement: Statement | None
    ) -> None:
        """Check all that values read in the iterations `own` of a statement; None for the check."""
        for node in live(values):
            if node.op == "input":
                array, position = node.data
                if array not in self.inputs:
                    raise UnknownNameError.of("input", array, self.inputs)
                if not 0 <= position < self.inputs[array]:
                    raise ShapeError(f"input {array}[{position}], but its size is {self.inputs[array]}")
            elif node.op == "lookup":
                if node.data not in self.floats:
                    raise UnknownNameError.of("table of floats", node.data, self.floats)
                if not self.floats[node.data]:
                    raise ShapeError(f"table {node.data!r} is looked up but empty")
            elif node.op == "load":
                if statement is None:
                    raise ArgumentError(
                        f"check must depend on inputs alone, but it loads {node.data.array!r}"
                    )
                self._address(node.data, own, statement)

    def _address(self, address: Address, own: npt.NDArray[np.int64], statement: Statement) -> None:
        size = self.sizes.get(address.array)
        if size is None:
            raise UnknownNameError.of("array", address.array, self.sizes)
        if isinstance(statement, Straight) and (address.table is not None or address.scale):
            raise ArgumentError(f"straight-line code has {address}; only a loop can index by a table")
        if address.table is not None:
            self._index_table(address.table, as_loop(statement).count)
        least = greatest = address.offset
        if address.scale and len(own):
            positions = address.positions(self.tables, own)
            least, greatest = positions.min(), positions.max()
        if len(own) and not (least >= 0 and greatest < size):
            worst = least if least < 0 else greatest
            raise ShapeError(f"{address} reaches element {worst}, but its size is {size}")

    def _index_table(self, name: str, count: int) -> None:
        if name not in self.integers:
            raise UnknownNameError.of("table of integers", name, self.integers)
        if self.integers[name] < count:
            raise ShapeError(f"table {name!r} has {self.integers[name]} entries for {count} iterations")


# The operation counter, in the terms of Featherstone 2008 §10.3.
#
# Multiplications include divisions, additions include subtractions, negation is free, and sines and cosines
# are counted apart. Only live operations count: what no result depends on is never executed.


@final
@dataclass(frozen=True, slots=True)
class OperationCount:
    """The number of operations of each kind; `divisions` are among the `multiplications` as well."""

    multiplications: int = 0
    additions: int = 0
    divisions: int = 0
    square_roots: int = 0
    trigonometric: int = 0
    other: int = 0

    @property
    def total(self) -> int:
        """Multiplications, divisions, additions and subtractions: the book's floating-point operations."""
        return self.multiplications + self.additions

    def __add__(self, other: OperationCount) -> OperationCount:
        return OperationCount(*[getattr(self, f.name) + getattr(other, f.name) for f in fields(self)])

    def __mul__(self, times: int) -> OperationCount:
        return OperationCount(*[times * getattr(self, f.name) for f in fields(self)])

    __rmul__ = __mul__

    def __str__(self) -> str:
        divisions = f" (of which {self.divisions} divisions)" if self.divisions else ""
        text = f"{self.multiplications} m{divisions} + {self.additions} a"
        apart = {"sqrt": self.square_roots, "trigonometric": self.trigonometric, "other": self.other}
        return text + "".join(f", {number} {name}" for name, number in apart.items() if number)


def count_operations(outputs: Iterable[Expression]) -> OperationCount:
    """Return the operations that the outputs need, each shared one counted once."""
    found: Counter[str] = Counter()
    for node in live(outputs):
        if node.op not in LEAF_OPS:
            found.update(("other",) if node.op == "lookup" else OPERATIONS[node.op].counts)
    return OperationCount(**found)


def count_program(program: Program) -> OperationCount:
    """Return the operations of one run: those of a loop's case as often as it is chosen, without `check`."""
    total = OperationCount()
    for loop in program.loops:
        for case, own in loop.runs(program.tables):
            sums = OperationCount(additions=sum(store.accumulate for store in case))
            total += len(own) * (count_operations(store.value for store in case) + sums)
    return total
