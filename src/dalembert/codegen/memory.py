"""Memory layout of a kernel: the places of arrays, what a rollout carries from step to step, hazards within
iterations, and elements to zero first.

All positions that a program accesses are known at compile time, since tables are constants. So aliasing and
reads before writes are determined exactly, by checking every iteration of every loop.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, NamedTuple, final

import numpy as np
import numpy.typing as npt

from dalembert.codegen.ir import Value, Writer
from dalembert.errors import ArgumentError, ShapeError, UnknownNameError
from dalembert.tracing.expression import Address, Expression, live
from dalembert.tracing.program import (
    Append,
    ArraySpec,
    Loop,
    Program,
    Repeat,
    Statement,
    Store,
    Straight,
    as_loop,
    cases_of,
)

Positions = npt.NDArray[np.int64]

REGION_ALIGNMENT: Final = 64
"""[bytes] A cache line, and the widest vector."""

LIST_ENTRY_BYTES: Final = 4
"""[bytes] An entry of the list of a set's rows: a 32-bit integer."""

REFUSED_STEP: Final = ArraySpec("refused step", 0)
"""The array of the steps at which rows were refused, which are no floats."""

NEVER: Final = np.iinfo(np.int64).max


@final
@dataclass(frozen=True, slots=True)
class Place:
    """An array at address `base`, elements `item` bytes apart; `uniform`: one number for all lanes."""

    base: Value
    item: int
    align: int
    uniform: bool = False
    scattered: ClassVar[bool] = False

    def load(self, writer: Writer, position: int, base: Value | None = None) -> Value:
        """Load element `position`, counted from the address `base` if that is not the array's."""
        base = self.base if base is None else base
        if not self.uniform or writer.type.lanes == 1:
            return writer.load(base, position * self.item, self.align)
        element = writer.type.element
        return writer.splat(element, writer.read(element, base, position * self.item, self.align))

    def look_up(self, writer: Writer, index: Value, length: int) -> Value:
        """Load element floor(index) of a table in each lane, by 32-bit integers within 0 … length - 1."""
        lane_type, zero = writer.type, writer.constant(0.0)
        positive = writer.select(writer.compare("ogt", index, zero), index, zero)
        last = writer.constant(length - 1)
        near = writer.select(writer.compare("olt", positive, last), positive, last)
        integer = lane_type.of("i32")
        whole = writer.let(f"fptosi {lane_type.text} {near} to {integer}")
        # In single precision the number of the last element may be rounded up.
        end = lane_type.splat("i32", length - 1)
        inside = writer.let(f"icmp slt {integer} {whole}, {end}")
        whole = writer.let(f"select {lane_type.mask} {inside}, {integer} {whole}, {integer} {end}")
        if lane_type.lanes == 1:
            return self._element(writer, whole)
        result = "poison"
        for lane in range(lane_type.lanes):
            number = self._element(writer, writer.let(f"extractelement {integer} {whole}, i32 {lane}"))
            result = writer.let(
                f"insertelement {lane_type.text} {result}, {lane_type.element} {number}, i32 {lane}"
            )
        return result

    def _element(self, writer: Writer, position: Value) -> Value:
        """Load the number at a 32-bit position."""
        wide = writer.let(f"zext i32 {position} to i64")
        place = writer.address(self.base, writer.let(f"mul i64 {wide}, {self.item}"))
        return writer.read(writer.type.element, place, align=self.align)

    def store(self, writer: Writer, value: Value, position: int, base: Value | None = None) -> None:
        """Store element `position`, counted from the address `base` if that is not the array's."""
        writer.store(value, self.base if base is None else base, position * self.item, self.align)

    def copy(self, writer: Writer, position: int, source: Place, begin: int, length: int) -> None:
        """Copy elements of another array that lies as this one."""
        target = writer.address(self.base, position * self.item)
        start = writer.address(source.base, begin * self.item)
        writer.declared.add("declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)")
        given = f"ptr {target}, ptr {start}, i64 {length * self.item}, i1 false"
        writer.line(f"call void @llvm.memcpy.p0.p0.i64({given})")


@final
@dataclass(frozen=True, slots=True)
class RowList:
    """A collected set of rows at address `base`: 32-bit integers, `item` bytes apart: how many rows it has,
    then the row of the set's parent for each."""

    base: Value
    item: int = LIST_ENTRY_BYTES

    def count(self, writer: Writer) -> Value:
        """Load the number of rows."""
        return self._wide(writer, self.base)

    def entry(self, writer: Writer, place: Value) -> Value:
        """Load the parent's row of the row `place`."""
        return self._wide(writer, self._at(writer, place))

    def clear(self, writer: Writer) -> None:
        """Remove all rows."""
        self._put(writer, "0", self.base)

    def append(self, writer: Writer, place: Value, row: Value) -> None:
        """Add a row of the parent to a list that has `place` rows."""
        self._put(writer, row, self._at(writer, place))
        self._put(writer, writer.let(f"add i64 {place}, 1"), self.base)

    def _at(self, writer: Writer, place: Value) -> Value:
        distance = writer.let(f"mul i64 {place}, {self.item}")
        return writer.address(writer.address(self.base, distance), self.item)

    def _wide(self, writer: Writer, address: Value) -> Value:
        return writer.let(f"zext i32 {writer.read('i32', address, align=LIST_ENTRY_BYTES)} to i64")

    def _put(self, writer: Writer, number: Value, address: Value) -> None:
        narrow = writer.let(f"trunc i64 {number} to i32")
        writer.line(f"store i32 {narrow}, ptr {address}, align {LIST_ENTRY_BYTES}")


@final
class Layout:
    """Regions of one piece of memory, each aligned."""

    def __init__(self) -> None:
        self.size = 0

    def reserve(self, size: int) -> int:
        """Reserve a new region of `size` bytes and return its offset."""
        offset = self.size
        self.size += -(-size // REGION_ALIGNMENT) * REGION_ALIGNMENT
        return offset


@final
class Tables:
    """The program's tables in one piece of memory: 32-bit integers, and floats of the program's type."""

    def __init__(self, program: Program, bits: int) -> None:
        layout, parts = Layout(), []
        self.offsets: dict[str, int] = {}
        self.lengths = {name: len(table) for name, table in program.tables.items()}
        for name, table in sorted(program.tables.items()):
            kind: Any = np.int32 if table.dtype.kind in "iu" else np.dtype(f"f{bits // 8}")
            data = np.ascontiguousarray(table, dtype=kind).tobytes()
            self.offsets[name] = layout.reserve(len(data))
            parts.append(data.ljust(layout.size - self.offsets[name], b"\0"))
        self.data = b"".join(parts)
        self.floats = [name for name, table in program.tables.items() if table.dtype.kind == "f"]
        self.item = bits // 8

    def places(self, writer: Writer) -> dict[str, Place]:
        """Return the places of the tables of floats."""
        return {
            name: Place(writer.address("%tables", self.offsets[name]), self.item, self.item, uniform=True)
            for name in self.floats
        }


@final
@dataclass(frozen=True, slots=True)
class Rollout:
    """The data flow between the steps of a program.

    `carried`: inputs, each with the number of the output that it becomes at the next step; `streams`: inputs
    that have a value for each step. All others are the same at every step.
    """

    carried: tuple[tuple[str, int], ...]
    streams: tuple[str, ...] = ()

    def check(self, program: Program) -> None:
        """Raise where a program has no such arrays."""
        inputs = {spec.name: spec.size for spec in program.inputs}
        named = [*(name for name, _ in self.carried), *self.streams]
        for name in named:
            if name not in inputs:
                raise UnknownNameError.of("input", name, inputs)
        if len(set(named)) < len(named):
            raise ArgumentError(
                f"an input is carried, or a stream, or neither, once; given: {', '.join(named)}"
            )
        for name, number in self.carried:
            if not 0 <= number < len(program.outputs):
                raise ArgumentError(
                    f"{name} becomes output {number}, but there are {len(program.outputs)} outputs"
                )
            if program.outputs[number].size != inputs[name]:
                raise ShapeError(
                    f"{name} has {inputs[name]} numbers, but the output {program.outputs[number].name!r} "
                    f"that it becomes has {program.outputs[number].size}"
                )

    def more_outputs(self, program: Program) -> tuple[ArraySpec, ...]:
        """Return the outputs of a rollout kernel beside the program's; the rejected steps are not floats."""
        sizes = {spec.name: spec.size for spec in program.inputs}
        finals = [ArraySpec(f"final {name}", sizes[name]) for name, _ in self.carried]
        return (*finals, REFUSED_STEP)


MIN_COPIED_RUN: Final = 16
"""Adjacent elements from which on a copy is one piece of memory instead of a load and a store for each."""


class CopiedRun(NamedTuple):
    """`length` elements of the array `target` from `position` on, copied from those of `source` from `begin`
    on."""

    target: str
    position: int
    source: str
    begin: int
    length: int

    def is_followed_by(self, other: CopiedRun) -> bool:
        """Return whether another run goes on where this one ends."""
        end = self.target, self.position + self.length, self.source, self.begin + self.length
        return end == other[:4]


def copied_runs(wanted: Mapping[tuple[str, int], Expression]) -> list[CopiedRun]:
    """Return the long runs of copies from arrays that the statement does not change, to arrays that it does
    not read."""
    leaves = [node for node in live(wanted.values()) if node.op in ("load", "input")]
    read = {node.data.array if node.op == "load" else node.data[0] for node in leaves}
    changed = {array for array, _ in wanted}
    runs: list[CopiedRun] = []
    for place in sorted(wanted):
        value = wanted[place]
        if value.op != "load" or value.data.array in changed or place[0] in read:
            continue
        run = CopiedRun(*place, value.data.array, value.data.offset, 1)
        if runs and runs[-1].is_followed_by(run):
            runs[-1] = runs[-1]._replace(length=runs[-1].length + 1)
        else:
            runs.append(run)
    return [run for run in runs if run.length >= MIN_COPIED_RUN]


# What a step computes for delivery alone.
#
# A rollout delivers the outputs of a step only now and then. Loops over rows that nothing but such outputs
# needs, and copies to these, are left out of all other steps.


def split_delivery(program: Program, rollout: Rollout) -> tuple[tuple[Statement, ...], tuple[Statement, ...]]:
    """Return the statements that every step needs, and those that only the delivery of its outputs needs,
    which come after them."""
    wanted = {program.outputs[number].name for _, number in rollout.carried}
    delivered = {spec.name for spec in program.outputs} - wanted
    changed: set[str] = set()
    needed: list[Statement] = []
    late: list[Statement] = []

    def keep(statement: Statement) -> None:
        nonlocal wanted, changed
        needed.append(statement)
        wanted, changed = wanted | _reads([statement]), changed | _writes([statement])

    for statement in reversed(program.statements):
        if isinstance(statement, Straight):
            copies: list[Store] = []
            rest: list[Store] = []
            for store in statement.stores:
                is_copy = store.array in delivered and not store.value.args
                is_late = is_copy and changed.isdisjoint(_reads([Straight((store,))]))
                (copies if is_late else rest).append(store)
            if copies:
                late.append(Straight(tuple(copies)))
            if rest:
                keep(Straight(tuple(rest)))
        elif isinstance(statement, Repeat) and wanted.isdisjoint(_writes([statement])):
            touched = _reads([statement]) | _writes([statement])
            if changed.isdisjoint(touched):
                late.append(statement)
            else:
                keep(statement)
        else:
            keep(statement)
    return tuple(reversed(needed)), tuple(reversed(late))


def _writes(items: Iterable[Straight | Loop | Repeat | Append]) -> set[str]:
    """Return the names of the arrays and of the sets of rows that statements change."""
    found: set[str] = set()
    for item in items:
        if isinstance(item, Append):
            found |= {item.to, *(target.array for target, _ in item.values)}
        elif isinstance(item, Repeat):
            found |= {*item.empties, *_writes(item.body)}
        else:
            found |= {store.array for case in cases_of(item) for store in case}
    return found


def _reads(items: Iterable[Straight | Loop | Repeat | Append]) -> set[str]:
    """Return the names of the arrays and of the sets of rows that statements read, or write a part of."""
    found: set[str] = set()
    for item in items:
        if isinstance(item, Append):
            addresses = [item.entry, item.condition, *(source for _, source in item.values)]
        elif isinstance(item, Repeat):
            found |= _reads(item.body) | ({item.rows} if item.rows is not None else set())
            addresses = [flag for flag in (item.until,) if flag is not None]
        else:
            cases = cases_of(item)
            addresses = [address for case in cases for address in _loads(case)]
            addresses += [store.address for case in cases for store in case]
            addresses += [flag for k in range(len(cases)) for flag in as_loop(item).flags(k)]
        found |= {x.index.level for x in addresses if x.index is not None}
        found |= {x.array for x in addresses}
    return found


def decode_description(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the description of a kernel as JSON has it, with tuples in place of lists, and its rollout."""
    arrays = {side: tuple((name, size) for name, size in data[side]) for side in ("inputs", "outputs")}
    rollout = data["rollout"]
    if rollout is not None:
        carried = tuple((name, number) for name, number in rollout["carried"])
        rollout = Rollout(carried, tuple(rollout["streams"]))
    return {**data, **arrays, "rollout": rollout}


@final
@dataclass(frozen=True, slots=True)
class Hazards:
    """The hazards of one case of a loop: arrays to load before all stores, and to store after all values."""

    eager: frozenset[str]
    deferred: frozenset[str]


def loop_hazards(program: Program, loop: Loop, case: int) -> Hazards:
    """Return the arrays in which, within one iteration, a load and a store, or two stores, alias."""
    stores, own = list(loop.runs(program.tables))[case]
    loads = _loads(stores)
    eager, deferred = set(), set()
    for array in {store.array for store in stores}:
        written = [store.address.positions(program.tables, own) for store in stores if store.array == array]
        read = [address.positions(program.tables, own) for address in loads if address.array == array]
        if not len(own):
            continue
        addresses = [*(store.address for store in stores), *loads]
        if not any(address.scale for address in addresses if address.array == array):
            # All iterations use the same elements.
            written, read = [item[:1] for item in written], [item[:1] for item in read]
        if len(written) > 1:
            ordered = np.sort(np.stack(written), axis=0)
            if np.any(ordered[1:] == ordered[:-1]):
                deferred.add(array)
        # Positions of different iterations are told apart by a multiple of the size.
        spread = np.arange(len(written[0])) * (1 + max(int(item.max()) for item in written + read))
        if read and np.intersect1d(np.stack(read) + spread, np.stack(written) + spread).size:
            eager.add(array)
    return Hazards(frozenset(eager), frozenset(deferred))


def row_hazards(stores: Sequence[Store]) -> Hazards:
    """Return the hazards of straight-line code in a loop over rows, whose rows are known at run time only:
    every array that is both read and written, but for different fixed elements."""
    loads = _loads(tuple(stores))
    eager = set()
    for array in {store.array for store in stores}:
        read = [address for address in loads if address.array == array]
        written = [store.address for store in stores if store.array == array]
        fixed = not any(address.scale for address in (*read, *written))
        if read and (not fixed or {x.offset for x in read} & {x.offset for x in written}):
            eager.add(array)
    return Hazards(frozenset(eager), frozenset(eager))


def _loads(stores: tuple[Store, ...]) -> list[Address]:
    values = [value for store in stores for value in store.values]
    return [node.data for node in live(values) if node.op == "load"]


def loop_addresses(loop: Loop | Repeat) -> Iterator[Address]:
    """Yield the addresses that a loop stores to, loads from and tests, with those of loops inside."""
    if isinstance(loop, Repeat):
        yield from () if loop.until is None else (loop.until,)
        for item in loop.body:
            if isinstance(item, Repeat):
                yield from loop_addresses(item)
            elif isinstance(item, Append):
                yield from (item.condition, *(address for pair in item.values for address in pair))
            else:
                yield from (*(store.address for store in item.stores), *_loads(item.stores))
        return
    for case, stores in enumerate(loop.cases):
        yield from (store.address for store in stores)
        yield from (*_loads(stores), *loop.flags(case))


def zero_runs(program: Program) -> dict[str, list[tuple[int, int]]]:
    """Return the runs (start, stop) of states and outputs that are read or output before any write: none
    where there are loops over rows, which write what they read."""
    if program.has_rows:
        return {}
    delivered = {spec.name for spec in program.outputs}
    sizes = {spec.name: spec.size for spec in (*program.outputs, *program.states)}
    first_write = {name: np.full(size, NEVER, dtype=np.int64) for name, size in sizes.items()}
    missing = {name: np.zeros(size, dtype=bool) for name, size in sizes.items()}
    for start, sure, (reads, writes) in _accesses(program):
        before = first_write if sure else {name: times.copy() for name, times in first_write.items()}
        for array, positions, times in writes:
            np.minimum.at(first_write[array], positions, times + start)
        for array, positions, times in reads:
            late = first_write[array][positions] >= times + start
            missing[array][positions[late]] = True
        first_write = before
    for name in delivered:
        missing[name] |= first_write[name] == NEVER
    return {name: _runs(mask) for name, mask in missing.items()}


def ranges_to_zero(program: Program) -> Iterator[tuple[str, int, int]]:
    """Yield (array, start, stop) of elements to zero first; many runs of an array are joined to one."""
    for name, runs in zero_runs(program).items():
        for start, stop in runs if len(runs) <= 8 else [(runs[0][0], runs[-1][1])]:
            yield name, start, stop


def stored_values(statement: Statement) -> list[Expression]:
    """Return the values that a statement stores."""
    return [value for case in cases_of(statement) for store in case for value in store.values]


def only_straight(program: Program) -> Straight | None:
    """Return the statement of a program that is one straight statement, else None."""
    if len(program.statements) == 1 and isinstance(program.statements[0], Straight):
        return program.statements[0]
    return None


def without_zeros(statement: Straight, zeroed: Collection[str]) -> Straight:
    """Drop the stores of zeros to arrays that are zeroed before."""

    def stands(store: Store) -> bool:
        return store.array in zeroed and store.value.op == "constant" and store.value.data == 0.0

    return Straight(tuple(store for store in statement.stores if not stands(store)))


Access = tuple[str, Positions, Positions]


def _accesses(program: Program) -> Iterator[tuple[int, bool, tuple[list[Access], list[Access]]]]:
    """Yield for each statement its first time, whether all of it is certain to run, and its reads and writes
    as (array, positions, times)."""
    now = 0
    arrays = {spec.name for spec in (*program.outputs, *program.states)}
    for loop in map(as_loop, program.statements):
        reads: list[Access] = []
        writes: list[Access] = []
        for case, (stores, own) in enumerate(loop.runs(program.tables)):
            moments = loop.count - 1 - own if loop.reverse else own
            skip = loop.skips[case] if loop.skips else None
            guarded = set() if skip is None else {skip.array}
            for address in [*_loads(stores), *loop.flags(case)]:
                if address.array in arrays - guarded:
                    reads.append((address.array, address.positions(program.tables, own), moments))
            for store in stores:
                access = (store.array, store.address.positions(program.tables, own), moments)
                if skip is None:
                    writes.append(access)
                if store.accumulate:
                    reads.append(access)
        yield now, loop.until is None, (reads, writes)
        now += loop.count


def _runs(mask: npt.NDArray[np.bool_]) -> list[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(np.concatenate(([0], mask.astype(np.int8), [0]))))
    return [(int(start), int(stop)) for start, stop in edges.reshape(-1, 2)]
