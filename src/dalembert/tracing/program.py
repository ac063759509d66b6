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

FORMAT: Final = "dalembert program 3"
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
    """A store of `value` to the element at `address`, or its addition there (`accumulate`).

    `row`: a number by sample; the element is then row * address.scale + address.offset. Numbers outside of
    the array's rows write to its last row, which nothing reads.
    """

    address: Address
    value: Expression
    accumulate: bool = False
    row: Expression | None = None

    @property
    def values(self) -> tuple[Expression, ...]:
        """The value, and the row if it is a number."""
        return (self.value,) if self.row is None else (self.value, self.row)

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
        return tuple(value for store in self.stores for value in store.values)


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


@final
@dataclass(frozen=True, slots=True)
class RowSet:
    """A set of rows: how many it may have and, if it is collected, the set that it lists rows of; `own`:
    whether each sample has rows of its own, so that the samples of a block are at different ones."""

    size: int
    parent: str | None = None
    own: bool = False


@final
@dataclass(frozen=True, slots=True, eq=False)
class Append:
    """The addition of a row to a set, where the `condition` (a fixed element) is not zero for any sample:
    `entry` is its row in the set's parent, `values` are copied from fixed elements to the row's own."""

    to: str
    entry: Address
    condition: Address
    values: tuple[tuple[Address, Address], ...]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Repeat:
    """The statements `body`, repeated for each of the `rows` that a set has, in order, or `count` times.

    `name` is that of its index in addresses. `until`: an element that is not zero once a sample is done, as
    in `Loop`. The sets `empties` lose their rows before it begins. `bounds`: entries of two index tables, the
    first row and how many, where a loop visits a range of the rows.
    """

    name: str
    count: int
    rows: str | None
    body: tuple[Straight | Repeat | Append, ...]
    until: Address | None = None
    empties: tuple[str, ...] = ()
    bounds: tuple[Address, Address] | None = None

    def straights(self) -> Iterator[Straight]:
        """Yield the straight-line code that it contains."""
        for statement in self.body:
            if isinstance(statement, Straight):
                yield statement
            elif isinstance(statement, Repeat):
                yield from statement.straights()


Statement: TypeAlias = Straight | Loop | Repeat


def as_loop(statement: Statement) -> Loop:
    """Return a statement as a loop; straight-line code is a loop of one iteration."""
    if isinstance(statement, Repeat):
        raise ArgumentError("a loop over rows has no table of iterations")
    return Loop(1, False, None, (statement.stores,)) if isinstance(statement, Straight) else statement


def cases_of(statement: Statement) -> tuple[Case, ...]:
    """Return all pieces of straight-line code of a statement."""
    if isinstance(statement, Repeat):
        return tuple(straight.stores for straight in statement.straights())
    return as_loop(statement).cases


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
    rows: Mapping[str, RowSet] = field(default_factory=dict)

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
    def has_rows(self) -> bool:
        """True if there are loops over rows."""
        return any(isinstance(statement, Repeat) for statement in self.statements)

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

        def put_case(case: Case) -> None:
            put("case", *[f"{store.address}\x1d{store.accumulate}" for store in case])
            put_values(value for store in case for value in store.values)

        def put_repeat(repeat: Repeat) -> None:
            put("Repeat", repeat.name, repeat.count, repeat.rows, repeat.until, *repeat.empties)
            put("bounds", *(repeat.bounds or ()))
            for item in repeat.body:
                if isinstance(item, Repeat):
                    put_repeat(item)
                elif isinstance(item, Append):
                    put("Append", item.to, item.entry, item.condition, *item.values)
                else:
                    put_case(item.stores)
            put("end")

        for name, rows in self.rows.items():
            put("rows", name, rows.size, rows.parent, rows.own)
        for statement in self.statements:
            if isinstance(statement, Repeat):
                put_repeat(statement)
                continue
            loop = as_loop(statement)
            put(type(statement).__name__, loop.count, loop.reverse, loop.kinds, len(loop.cases))
            put("until", loop.until, *loop.skips)
            for case in loop.cases:
                put_case(case)
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
            if isinstance(statement, Repeat):
                self._repeat(statement)
                continue
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

    def _repeat(self, repeat: Repeat) -> None:
        """Check that all that a loop over rows reads and writes lies inside of its arrays."""
        if repeat.rows is not None and repeat.rows not in self.program.rows:
            raise UnknownNameError.of("set of rows", repeat.rows, self.program.rows)
        if repeat.bounds is not None and repeat.rows is not None:
            first, counts = (self.tables[str(entry.table)] for entry in repeat.bounds)
            size = self.program.rows[repeat.rows].size
            if len(first) and not (first.min() >= 0 and (first + counts).max() <= size):
                raise ShapeError(f"a range reaches outside of the {size} rows of {repeat.rows}")
        for item in repeat.body:
            if isinstance(item, Repeat):
                self._repeat(item)
                continue
            if isinstance(item, Append):
                addresses = [item.condition, *(at for pair in item.values for at in pair)]
            else:
                values = live(value for store in item.stores for value in store.values)
                addresses = [node.data for node in values if node.op == "load"]
                addresses += [store.address for store in item.stores]
            for address in addresses:
                self._row_address(address)

    def _row_address(self, address: Address) -> None:
        size = self.sizes.get(address.array)
        if size is None:
            raise UnknownNameError.of("array", address.array, self.sizes)
        greatest = address.offset
        if address.scale and address.table is not None:
            greatest += address.scale * int(self.tables[address.table].max(initial=0))
        elif address.scale and address.index is not None:
            greatest += address.scale * max(self.program.rows[address.index.level].size - 1, 0)
        if not 0 <= address.offset <= greatest < max(size, 1):
            raise ShapeError(f"{address} reaches element {greatest}, but its size is {size}")

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
    for statement in program.statements:
        if isinstance(statement, Repeat):
            total += _count_repeat(statement)
            continue
        loop = as_loop(statement)
        for case, own in loop.runs(program.tables):
            sums = OperationCount(additions=sum(store.accumulate for store in case))
            total += len(own) * (count_operations(store.value for store in case) + sums)
    return total


def _count_repeat(repeat: Repeat) -> OperationCount:
    """Return the operations of a loop over rows if it visits all that there may be."""
    total = OperationCount()
    for item in repeat.body:
        if isinstance(item, Repeat):
            total += _count_repeat(item)
        elif isinstance(item, Straight):
            total += count_operations(item.values)
    return repeat.count * total
