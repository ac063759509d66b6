"""Programs: the form of a trace that a compiler takes.

A program computes output arrays from input arrays for one sample, through state arrays that live only while
it runs. All arrays are one-dimensional; outputs and states start at zero. Nearly every program is one
`Straight`; a large tree becomes `Loop`s over tables. In one `Straight`, and in one iteration of a `Loop`,
all values are computed first, from what the arrays held before, and then stored in order.
"""

from __future__ import annotations

import hashlib
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

FORMAT: Final = "dalembert program 1"
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
@dataclass(frozen=True, slots=True, eq=False)
class Store:
    """A store of `value` to element `position` of an output or state."""

    array: str
    position: int
    value: Expression


@final
@dataclass(frozen=True, slots=True, eq=False)
class IndexedStore:
    """A store of `value` to the element at `address`, or its addition there (`accumulate`)."""

    address: Address
    value: Expression
    accumulate: bool = False


@final
@dataclass(frozen=True, slots=True, eq=False)
class Straight:
    """Straight-line code."""

    stores: tuple[Store, ...]

    @property
    def values(self) -> tuple[Expression, ...]:
        return tuple(store.value for store in self.stores)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Loop:
    """A loop of `count` iterations, each of one of several cases: `tables[kinds][i]`; None: there is one
    case.

    i runs from 0 up, or with `reverse` from count - 1 down. `until` is the exit flag, an element of a state
    that is not zero once a sample is done: later iterations change nothing that is read, and may be skipped.
    `skips` has such a flag, or None, for each case: an iteration of that case may be skipped. If it is not,
    the elements that it reads of the same array have been written.
    """

    count: int
    reverse: bool
    kinds: str | None
    cases: tuple[tuple[IndexedStore, ...], ...]
    until: Address | None = None
    skips: tuple[Address | None, ...] = ()

    def flags(self, case: int) -> list[Address]:
        """Return the exit flags of a case: elements that are not zero once a sample is done."""
        own = self.skips[case] if self.skips else None
        return [flag for flag in (self.until, own) if flag is not None]

    @property
    def iterations(self) -> range:
        return range(self.count - 1, -1, -1) if self.reverse else range(self.count)

    def own_iterations(self, tables: Mapping[str, IndexTable], case: int) -> npt.NDArray[np.int64]:
        """Return the iterations that run a case."""
        if self.kinds is None:
            return np.arange(self.count, dtype=np.int64)
        return np.flatnonzero(tables[self.kinds][: self.count] == case)

    def written_positions(
        self, tables: Mapping[str, IndexTable]
    ) -> Iterator[tuple[IndexedStore, npt.NDArray[np.int64]]]:
        """Yield every store with the positions that it writes."""
        for number, case in enumerate(self.cases):
            own = self.own_iterations(tables, number)
            for store in case:
                yield store, store.address.positions(tables, own)


Statement: TypeAlias = Straight | Loop


@final
@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """A program: statements that compute `outputs` from `inputs`; a row for which `check` holds is
    rejected."""

    inputs: tuple[ArraySpec, ...]
    outputs: tuple[ArraySpec, ...]
    states: tuple[ArraySpec, ...] = ()
    statements: tuple[Statement, ...] = ()
    tables: Mapping[str, IndexTable] = field(default_factory=dict)
    check: Expression | None = None

    def __post_init__(self) -> None:
        _validate(self)

    def digest(self) -> str:
        """Return the SHA-256 of a canonical encoding: equal for equal programs, in every process and
        machine."""
        return _digest(self)


def _validate(program: Program) -> None:
    specs = (*program.inputs, *program.outputs, *program.states)
    names = [spec.name for spec in specs] + list(program.tables)
    repeated = {name for name, times in Counter(names).items() if times > 1}
    if repeated:
        raise ArgumentError(
            f"arrays and tables need names of their own; given twice: {', '.join(sorted(repeated))}"
        )
    for name, table in program.tables.items():
        if table.ndim != 1 or table.dtype.kind not in "iuf":
            raise ShapeError(
                f"table {name!r} has shape {table.shape} and type {table.dtype}; expected one axis of numbers"
            )
    for statement in program.statements:
        if isinstance(statement, Straight):
            _validate_straight(program, statement)
        else:
            _validate_loop(program, statement)
    if program.check is not None:
        if program.check.op not in BOOLEAN_OPS:
            raise ArgumentError(f"check must be a condition, got the operation {program.check.op!r}")
        for node in live([program.check]):
            if node.op == "load":
                raise ArgumentError(
                    "check must depend on inputs alone, but it loads " + repr(node.data.array)
                )
            _validate_leaf(program, node, None)


def _validate_straight(program: Program, statement: Straight) -> None:
    sizes = {spec.name: spec.size for spec in (*program.outputs, *program.states)}
    for store in statement.stores:
        if store.array not in sizes:
            raise UnknownNameError.of("output or state", store.array, sizes)
        if not 0 <= store.position < sizes[store.array]:
            raise ShapeError(
                f"store to {store.array}[{store.position}], but its size is {sizes[store.array]}"
            )
        _validate_value(store.value)
    for node in live(statement.values):
        _validate_leaf(program, node, None)


def _validate_loop(program: Program, loop: Loop) -> None:
    if loop.count < 0:
        raise ArgumentError(f"a loop of {loop.count} iterations")
    iterations = np.arange(loop.count, dtype=np.int64)
    if loop.kinds is None:
        if len(loop.cases) != 1:
            raise ArgumentError(f"a loop without a table of kinds has one case, got {len(loop.cases)}")
        chosen = np.zeros(loop.count, dtype=np.int64)
    else:
        chosen = _index_table(program, loop.kinds, loop.count)[: loop.count]
        if loop.count and not (chosen.min() >= 0 and chosen.max() < len(loop.cases)):
            raise ArgumentError(f"table {loop.kinds!r} names a case outside 0 … {len(loop.cases) - 1}")
    if loop.skips and len(loop.skips) != len(loop.cases):
        raise ArgumentError(f"a loop of {len(loop.cases)} cases has {len(loop.skips)} skips")
    if loop.until is not None and (loop.until.table is not None or loop.until.scale):
        raise ArgumentError(f"a loop ends by {loop.until}; it must be one fixed element")
    writable = {spec.name for spec in (*program.outputs, *program.states)}
    for number, case in enumerate(loop.cases):
        own = iterations[chosen == number]
        for flag in loop.flags(number):
            _validate_address(program, flag, own, loop.count)
        for store in case:
            if store.address.array not in writable:
                raise UnknownNameError.of("output or state", store.address.array, writable)
            _validate_address(program, store.address, own, loop.count)
            _validate_value(store.value)
        for node in live([store.value for store in case]):
            _validate_leaf(program, node, own, loop.count)


def _validate_value(value: Expression) -> None:
    if value.op in BOOLEAN_OPS:
        raise ArgumentError(
            f"a condition ({value.op}) cannot be stored; store scalar.select(condition, 1.0, 0.0)"
        )


def _validate_leaf(
    program: Program, node: Expression, own: npt.NDArray[np.int64] | None, count: int = 0
) -> None:
    if node.op == "input":
        sizes = {spec.name: spec.size for spec in program.inputs}
        array, position = node.data
        if array not in sizes:
            raise UnknownNameError.of("input", array, sizes)
        if not 0 <= position < sizes[array]:
            raise ShapeError(f"input {array}[{position}], but its size is {sizes[array]}")
    elif node.op == "lookup":
        tables = {name: table for name, table in program.tables.items() if table.dtype.kind == "f"}
        if node.data not in tables:
            raise UnknownNameError.of("table of floats", node.data, tables)
        if not len(tables[node.data]):
            raise ShapeError(f"table {node.data!r} is looked up but empty")
    elif node.op == "load":
        if own is None:
            if node.data.table is not None or node.data.scale:
                raise ArgumentError(f"straight-line code loads {node.data}; only a loop can index by a table")
            own = np.zeros(1, dtype=np.int64)
        _validate_address(program, node.data, own, count)


def _validate_address(program: Program, address: Address, own: npt.NDArray[np.int64], count: int) -> None:
    sizes = {spec.name: spec.size for spec in (*program.inputs, *program.outputs, *program.states)}
    sizes.update({name: len(table) for name, table in program.tables.items() if table.dtype.kind == "f"})
    if address.array not in sizes:
        raise UnknownNameError.of("array", address.array, sizes)
    if address.table is not None:
        _index_table(program, address.table, count)
    positions = address.positions(program.tables, own)
    if len(positions) and not (positions.min() >= 0 and positions.max() < sizes[address.array]):
        worst = positions.min() if positions.min() < 0 else positions.max()
        raise ShapeError(
            f"{address} reaches element {worst}, but {address.array!r} has size {sizes[address.array]}"
        )


def _index_table(program: Program, name: str, count: int) -> IndexTable:
    tables = {key: table for key, table in program.tables.items() if table.dtype.kind in "iu"}
    if name not in tables:
        raise UnknownNameError.of("table of integers", name, tables)
    if len(tables[name]) < count:
        raise ShapeError(f"table {name!r} has {len(tables[name])} entries for {count} iterations")
    return tables[name]


def _digest(program: Program) -> str:
    """Hash a program. Nodes are numbered by their place among the live ones, so that dead code is ignored."""
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
    for group in (program.inputs, program.outputs, program.states):
        put("arrays", *[f"{spec.name}\x1d{spec.size}" for spec in group])
    for name in sorted(program.tables):
        table = np.ascontiguousarray(
            program.tables[name], "<f8" if program.tables[name].dtype.kind == "f" else "<i8"
        )
        put("table", name, table.dtype.str, len(table))
        digest.update(table.tobytes())
    for statement in program.statements:
        if isinstance(statement, Straight):
            put("straight", *[f"{store.array}\x1d{store.position}" for store in statement.stores])
            put_values(statement.values)
        else:
            put("loop", statement.count, statement.reverse, statement.kinds, len(statement.cases))
            if statement.until is not None or statement.skips:
                put("until", statement.until, *statement.skips)
            for case in statement.cases:
                put("case", *[f"{store.address}\x1d{store.accumulate}" for store in case])
                put_values(store.value for store in case)
    if program.check is not None:
        put("check")
        put_values([program.check])
    return digest.hexdigest()


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
    """Return the operations of one run: those of a loop's case as often as it is chosen; `check` is not
    counted."""
    total = OperationCount()
    for statement in program.statements:
        if isinstance(statement, Straight):
            total += count_operations(statement.values)
            continue
        for number, case in enumerate(statement.cases):
            times = statement.count
            if statement.kinds is not None:
                times = int(np.count_nonzero(program.tables[statement.kinds][: statement.count] == number))
            sums = OperationCount(additions=sum(store.accumulate for store in case))
            total += times * (count_operations(store.value for store in case) + sums)
    return total
