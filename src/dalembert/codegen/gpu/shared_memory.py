"""Staging: coalesced copies of a block's rows between global memory and the samples' own memory.

A block's numbers of an array are numbered consecutively: number e = k block + thread is element e mod n of
row e div n. In shared memory each sample has a row of its own, whose length is odd: the 32 threads of a warp
then reach 32 different banks whether they read one column of their own rows or neighbouring numbers of one
row. Rows past the end of the batch repeat its last row; they are never written back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final, final

from dalembert.codegen.gpu.launch import WARP_SIZE, Layout
from dalembert.codegen.ir import LaneType, Value, Writer
from dalembert.codegen.memory import (
    LIST_ENTRY_BYTES,
    Place,
    Rollout,
    RowList,
    Tables,
    loop_addresses,
    only_straight,
)
from dalembert.tracing.program import ArraySpec, Loop, Program, Repeat, Straight

LOADS_IN_FLIGHT: Final = 8
"""Loads that are in flight at once."""

At = Callable[[Value, Value], Value]
"""Writes what belongs to a row and a column."""


@final
@dataclass(frozen=True, slots=True)
class Tile:
    """The rows of one array in a block: `base`, the address of the batch's first row, with a value
    `base`.stride; `size` numbers a row; the samples' own copy at a column of shared memory or an element of
    scratch memory."""

    base: Value
    size: int
    shared: int | None
    element: int | None = None


@final
@dataclass(frozen=True, slots=True)
class RowCopier:
    """A writer of copies of a block's rows: `pitch` numbers are a shared row, `scratch` numbers the scratch
    memory of a sample. Uses %thread, %first (the block's first row), %count (its rows), %shared and
    %scratch.block."""

    writer: Writer
    layout: Layout
    pitch: int
    scratch: int

    def load(self, tile: Tile, offset: int | Value = 0) -> None:
        """Copy the block's rows, `offset` bytes behind their addresses, to the samples' own memory."""
        writer, item = self.writer, self.writer.type.size
        base = writer.address(tile.base, offset)

        def read(row: Value, column: Value) -> Value:
            inside = writer.let(f"icmp ult i32 {row}, %count")
            last = writer.let(f"select i1 {inside}, i32 {row}, i32 %count.last")
            return writer.load(self._global_address(tile, base, last, column), 0, item)

        def put(value: Value, place: Value, row: Value) -> None:
            writer.store(value, place, 0, item)

        self._move(tile, read, lambda row, column: self._own_address(tile, row, column), put)

    def store(self, tile: Tile, offset: int | Value = 0) -> None:
        """Copy the samples' own memory to the block's rows, `offset` bytes behind their addresses."""
        base = self.writer.address(tile.base, offset)
        self._store_from(tile, base, lambda row, column: self._own_address(tile, row, column))

    def _store_from(self, tile: Tile, base: Value, source: At) -> None:
        """Write the block's rows at `base`; `source` writes the address of the number of a row and column."""
        self._store(tile, base, lambda *at: self.writer.load(source(*at), 0, self.writer.type.size))

    def _store(self, tile: Tile, base: Value, read: At) -> None:
        """Write what `read` gives for a row and column to the block's rows at `base`."""

        def put(value: Value, place: Value, row: Value) -> None:
            with self.writer.when(self.writer.let(f"icmp ult i32 {row}, %count")):
                self.writer.store(value, place, 0, self.writer.type.size)

        self._move(tile, read, lambda row, column: self._global_address(tile, base, row, column), put)

    def _move(self, tile: Tile, read: At, place: At, put: Callable[[Value, Value, Value], None]) -> None:
        """Read and place the numbers of all rows and columns, with several loads in flight."""

        def move(numbers: list[Value]) -> None:
            found = []
            for number in numbers:
                row = self.writer.let(f"udiv i32 {number}, {tile.size}")
                start = self.writer.let(f"mul i32 {row}, {tile.size}")
                column = self.writer.let(f"sub i32 {number}, {start}")
                found.append((read(row, column), place(row, column), row))
            for value, at, row in found:
                put(value, at, row)

        self._each_number(tile.size, move)

    def gather(self, tile: Tile, columns: list[int]) -> str:
        """Write the block's rows, each element from a column of the sample's shared row; the text of a table.

        A thread has the same elements of every row, so that a warp writes neighbouring numbers. If a row has
        fewer elements than the block has threads, they are numbered consecutively.
        """
        writer, item, block = self.writer, self.writer.type.size, self.layout.block
        table = f"@columns.{tile.base[1:]}"
        own = -(-tile.size // block)
        padded = columns + [0] * (own * block - tile.size) if tile.size >= block else columns
        offsets = ", ".join(f"i32 {column * item}" for column in padded)
        text = f"{table} = private constant [{len(padded)} x i32] [{offsets}]"

        def source(row: Value, column: Value) -> Value:
            entry = writer.address(table, writer.let(f"zext i32 {writer.let(f'shl i32 {column}, 2')} to i64"))
            offset = writer.read("i32", entry, align=4)
            at = writer.let(f"add i32 {offset}, {writer.let(f'mul i32 {row}, {self.pitch * item}')}")
            return writer.address("%shared", writer.let(f"zext i32 {at} to i64"))

        if tile.size < block:
            self._store_from(tile, tile.base, source)
            return text
        places = []
        for k in range(own):
            number = writer.let(f"zext i32 {writer.let(f'add i32 %thread, {k * block}')} to i64")
            entry = writer.address(table, writer.let(f"shl i64 {number}, 2"))
            offset = writer.let(f"zext i32 {writer.read('i32', entry, align=4)} to i64")
            places.append(writer.address("%shared", offset))
        wide = writer.let("zext i32 %thread to i64")
        first = writer.address(tile.base, writer.let(f"mul i64 %first, {tile.base}.stride"))
        first = writer.address(first, writer.let(f"mul i64 {wide}, {item}"))
        with writer.loop("%count.wide") as (row, *_):
            shared = writer.let(f"mul i64 {row}, {self.pitch * item}")
            there = writer.address(first, writer.let(f"mul i64 {row}, {tile.base}.stride"))
            values = [writer.load(writer.address(place, shared), 0, item) for place in places]
            for k, value in enumerate(values):
                if (k + 1) * block <= tile.size:
                    writer.store(value, there, k * block * item, item)
                    continue
                with writer.when(writer.let(f"icmp ult i32 %thread, {tile.size - k * block}")):
                    writer.store(value, there, k * block * item, item)
        return text

    def zero(self, tile: Tile) -> None:
        """Write zeros to the block's rows in global memory."""
        self._store(tile, tile.base, lambda row, column: self.writer.constant(0.0))

    def _each_number(self, size: int, task: Callable[[list[Value]], None]) -> None:
        """Give a thread its numbers, `size` for each sample in all, a few at a time. Where they cannot be
        shared evenly, some threads have the last one again."""
        writer, block, parts = self.writer, self.layout.block, self.layout.parts
        own, last = -(-size // parts), size * self.layout.samples - 1

        def numbers(start: Value, count: int) -> list[Value]:
            found = [writer.let(f"add i32 {start}, {k * block}") for k in range(count)]
            if size % parts == 0:
                return found
            inside = [writer.let(f"icmp ult i32 {number}, {last}") for number in found]
            return [
                writer.let(f"select i1 {test}, i32 {number}, i32 {last}")
                for test, number in zip(inside, found)
            ]

        rounds, rest = divmod(own, LOADS_IN_FLIGHT)
        if rounds < 3:
            rounds, rest = 0, own
        start: Value = "%thread"
        if rounds:
            step = LOADS_IN_FLIGHT * block
            with writer.loop(rounds * step, start=start, step=step, kind="i32") as (at, *_):
                task(numbers(at, LOADS_IN_FLIGHT))
            start = f"{at}.next"
        for first in range(0, rest, LOADS_IN_FLIGHT):
            count = min(LOADS_IN_FLIGHT, rest - first)
            task(numbers(writer.let(f"add i32 {start}, {first * block}"), count))

    def _own_address(self, tile: Tile, row: Value, column: Value) -> Value:
        writer, item = self.writer, self.writer.type.size
        if tile.shared is not None:
            at = writer.let(f"add i32 {column}, {writer.let(f'mul i32 {row}, {self.pitch}')}")
            wide = writer.let(f"zext i32 {writer.let(f'mul i32 {at}, {item}')} to i64")
            return writer.address(writer.address("%shared", wide), tile.shared * item)
        warp, lane = writer.let(f"udiv i32 {row}, {WARP_SIZE}"), writer.let(f"and i32 {row}, {WARP_SIZE - 1}")
        element = writer.let(f"mul i32 {warp}, {self.scratch}")
        element = writer.let(f"add i32 {element}, {tile.element or 0}")
        element = writer.let(f"add i32 {element}, {column}")
        at = writer.let(f"add i32 {writer.let(f'mul i32 {element}, {WARP_SIZE}')}, {lane}")
        place = writer.let(f"mul i64 {writer.let(f'zext i32 {at} to i64')}, {item}")
        return writer.address("%scratch.block", place)

    def _global_address(self, tile: Tile, base: Value, row: Value, column: Value) -> Value:
        writer = self.writer
        wide = writer.let(f"add i64 %first, {writer.let(f'zext i32 {row} to i64')}")
        at_row = writer.address(base, writer.let(f"mul i64 {wide}, {tile.base}.stride"))
        offset = writer.let(f"mul i32 {column}, {writer.type.size}")
        return writer.address(at_row, writer.let(f"zext i32 {offset} to i64"))


# Memory spaces of a program's arrays in a GPU kernel.
#
#     shared    a row of each sample in the block's shared memory: staged inputs and results, what a rollout
#               carries, spill slots. All in one row of odd length.
#   gathered  results of one straight statement: each distinct value once in shared memory, in reused columns
#               where possible, from where all elements, zeros and repeated ones included, are written in the
#               order of the row
#     direct    where the caller has them, in global memory
#     local     the thread's own memory: small states
#     cells     states at fixed positions, element by element among the spill slots (`slots`)
#     scratch   global memory of the threads in flight, the 32 numbers of a warp side by side: families and
#               lists of rows, states and carried values that find no room elsewhere
#
# Only local memory is lost between the phases of a kernel.

STAGED_RESULTS: Final = 64
"""Results of more numbers than this have no row of their own in shared memory: they would fill it."""

LOCAL_BYTES: Final = 16 * 1024
"""States larger than this are in scratch memory: local memory is reserved for every thread a GPU can hold."""


def gathered_columns(program: Program) -> int:
    """Return the number of distinct values of the one large result of a straight program, zero included; 0
    without such a result."""
    statement = only_straight(program)
    if statement is None:
        return 0
    large = [spec.name for spec in program.outputs if spec.size > STAGED_RESULTS]
    if len(large) != 1:
        return 0
    values = [store.value for store in statement.stores if store.array == large[0]]
    different = {value.index for value in values if value.op != "constant"}
    return len(different) + len({value.data for value in values if value.op == "constant"} | {0.0})


@final
class Arrays:
    """The memory spaces of all arrays: `shared` gives the column of an array in the samples' rows, `scratch`
    and `lists` the first element of an array or of a list of rows there; `gathered` names results; `width` of
    `most` columns are taken."""

    def __init__(
        self, program: Program, rollout: Rollout | None, lane_type: LaneType, layout: Layout
    ) -> None:
        self.program = program
        self.rollout = rollout
        self.layout = layout
        self.type = lane_type
        self.tables = Tables(program, lane_type.bits)
        self.shared: dict[str, int] = {}
        self.scratch: dict[str, int] = {}
        self.local: dict[str, int] = {}
        self.cells: dict[str, int] = {}
        self.lists: dict[str, int] = {}
        loops = [statement for statement in program.statements if not isinstance(statement, Straight)]
        self.lean = bool(rollout is not None and loops and layout.values is not None)
        self.width = self.scratch_elements = 0
        self.most = max((layout.shared // (layout.samples * lane_type.size) - 1) // 2 * 2 + 1, 0)
        carried = {name for name, _ in rollout.carried} if rollout else set()
        self.streams = set(rollout.streams) if rollout else set()
        held = {spec.name for spec in program.outputs} if rollout else set()
        for spec in sorted(program.inputs, key=lambda spec: spec.name not in carried | self.streams):
            self._give(spec, needed=spec.name in carried)
        self.inputs_end = self.width
        planned = layout.values is not None and layout.parts == 1
        self.gathered = frozenset() if rollout else self._gathered_results(small=planned)
        for spec in program.outputs:
            if spec.name not in self.gathered and (spec.name in held or spec.size <= STAGED_RESULTS):
                self._give(spec, needed=spec.name in held)
        self._place_states(loops)
        self.base = {spec.name: f"%in{k}" for k, spec in enumerate(program.inputs)}
        self.base |= {spec.name: f"%out{k}" for k, spec in enumerate(program.outputs)}

    def _place_states(self, loops: Sequence[Loop | Repeat]) -> None:
        """Choose the memory of states. Families of rows of any size are in scratch memory."""
        states = self.program.states
        # States of which iterations use different elements.
        moving = {address.array for loop in loops for address in loop_addresses(loop) if address.scale}
        families = moving if self.program.has_rows else set()
        others = sum(spec.size for spec in states if spec.name not in families)
        small = others * self.type.size <= LOCAL_BYTES
        for spec in states:
            if not small or spec.name in families:
                self._scratch(spec)
            elif self.layout.values is not None and spec.name not in moving:
                self.cells[spec.name] = spec.size
            else:
                self.local[spec.name] = spec.size
        for name, rows in self.program.rows.items():
            if rows.parent is not None:
                self.lists[name] = self.scratch_elements
                self.scratch_elements += -(-LIST_ENTRY_BYTES * (1 + rows.size) // self.type.size)

    def row_lists(self, writer: Writer) -> dict[str, RowList]:
        """Return the lists of the thread's collected sets; uses %scratch.warp and %lane.wide."""
        if not self.lists:
            return {}
        lane = writer.let(f"mul i64 %lane.wide, {LIST_ENTRY_BYTES}")
        mine, element = writer.address("%scratch.warp", lane), WARP_SIZE * self.type.size
        return {
            name: RowList(writer.address(mine, start * element), WARP_SIZE * LIST_ENTRY_BYTES)
            for name, start in self.lists.items()
        }

    def _gathered_results(self, *, small: bool) -> frozenset[str]:
        """Return the results whose distinct values fit into shared memory: a large one, and `small` ones."""
        if only_straight(self.program) is None:
            return frozenset()
        little = [spec for spec in self.program.outputs if spec.size <= STAGED_RESULTS]
        room = self.most - self.width - sum(spec.size + 1 for spec in little)
        columns = gathered_columns(self.program)
        large = len(little) < len(self.program.outputs)
        names = {spec.name for spec in little} if small and room >= 0 and (columns or not large) else set()
        if columns and columns <= room:
            names |= {spec.name for spec in self.program.outputs if spec.size > STAGED_RESULTS}
        return frozenset(names)

    def _give(self, spec: ArraySpec, *, needed: bool) -> None:
        """Reserve columns of shared memory if there is room, else scratch memory if the array is `needed`."""
        if self.lean:
            self._scratch(spec)
        elif self.width + spec.size <= self.most:
            self.shared[spec.name] = self.width
            self.width += spec.size
        elif needed:
            self._scratch(spec)

    def _scratch(self, spec: ArraySpec) -> None:
        self.scratch[spec.name] = self.scratch_elements
        self.scratch_elements += spec.size

    def is_direct(self, spec: ArraySpec) -> bool:
        """Return whether an array is accessed in the caller's memory."""
        held = (self.shared, self.scratch, self.local, self.cells, self.gathered)
        return not any(spec.name in arrays for arrays in held)

    def tile(self, spec: ArraySpec, base: str) -> Tile:
        """Return the block's rows of an array, whose first row is at `base`, and the place of their copy."""
        return Tile(base, spec.size, self.shared.get(spec.name), self.scratch.get(spec.name))

    def places(self, writer: Writer) -> dict[str, Place]:
        """Return the places of the thread's arrays, and of tables; uses %mine, %scratch.mine and %row."""
        item = self.type.size
        places: dict[str, Place] = {}
        for spec in (*self.program.inputs, *self.program.outputs, *self.program.states):
            name = spec.name
            if name in self.cells:
                continue
            if name in self.shared:
                places[name] = Place(writer.address("%mine", self.shared[name] * item), item, item)
            elif name in self.scratch:
                start = self.scratch[name] * WARP_SIZE * item
                places[name] = Place(writer.address("%scratch.mine", start), WARP_SIZE * item, item)
            elif name in self.local:
                places[name] = Place(f"%local.{list(self.local).index(name)}", item, item)
            else:
                base = writer.address(self.base[name], writer.let(f"mul i64 %row, {self.base[name]}.stride"))
                if name in self.streams:
                    base = writer.address(base, writer.let(f"mul i64 %now, {self.base[name]}.step"))
                places[name] = Place(base, item, item)
        return places | self.tables.places(writer)


# Spill slots of a thread: memory for spilled values and for the states of loops.
#
# Slots below the number of staged inputs are the columns of these inputs, free after their last use. The next
# slots are columns of shared memory beyond inputs and results, as far as there is room, and the rest are in
# local memory. Their number is known only when all code is written; the addresses are inserted then. A *cell*
# is an element of a state. The slots and cells with most uses, in loops weighted by `weight`, get the columns
# of shared memory; the others are in local memory in the order in which the most frequent code loads them, so
# that one instruction loads several neighbours.

LOAD_MARK: Final = "from slot "
STORE_MARK: Final = "into slot "

VECTOR_LOAD_BYTES: Final = 16
"""[bytes] The widest load of a thread."""

VECTOR_LOAD_WINDOW: Final = 60
"""[lines] Neighbours that are loaded within this number of lines are loaded by one instruction."""

NEVER_LOADED: Final = (1, 0)
"""The sort key of a slot that is never loaded: behind all others."""

FIRST_CELL: Final = 1_000_000
"""The number of the first cell, above the numbers of all slots."""


@final
@dataclass(slots=True)
class SpillSlots:
    """The spill slots of a thread.

    `homes`: slots that are columns of inputs; `taken`: columns of shared memory that arrays have; `count`:
    all slots; `weight`: the estimated number of runs of the code that is being written. Slots to keep have
    the columns after those of arrays."""

    type: LaneType
    homes: int
    taken: int
    count: int = 0
    cells: int = FIRST_CELL
    weight: int = 1
    uses: Counter[int] = field(default_factory=Counter)
    first: dict[int, tuple[int, int]] = field(default_factory=dict)
    kept: dict[int, int] = field(default_factory=dict)
    column: dict[int, int] = field(default_factory=dict)
    local: dict[int, int] = field(default_factory=dict)

    def state(self, size: int) -> SlotView:
        """Return cells for the elements of a state."""
        self.cells += size
        return SlotView(self, self.cells - size)

    def load(self, writer: Writer, position: int) -> Value:
        self.uses[position] += self.weight
        when = (-self.weight, len(self.first))
        self.first[position] = min(self.first.get(position, when), when)
        return writer.let(f"{LOAD_MARK}{position}")

    def store(self, writer: Writer, value: Value, position: int) -> None:
        self.uses[position] += self.weight
        writer.line(f"{value} {STORE_MARK}{position}")

    def keep(self, slots: set[int]) -> dict[int, int]:
        """Keep these slots in shared memory after the phase; return their columns."""
        own = sorted(slot for slot in slots if slot >= self.homes)
        self.kept = {slot: self.taken + k for k, slot in enumerate(own)}
        self.taken += len(own)
        return {slot: self.kept.get(slot, slot) for slot in slots}

    def constant(self, writer: Writer, number: float) -> int:
        """Store a number in a new column and return the column."""
        self.taken += 1
        place = writer.address("%mine", (self.taken - 1) * self.type.size)
        writer.store(writer.constant(number), place, 0, self.type.size)
        return self.taken - 1

    def place(self, columns: int) -> int:
        """Place the slots in rows of at most `columns` columns; return how many are taken."""
        free = [slot for slot in range(self.homes, self.count) if slot not in self.kept]
        if self.cells > FIRST_CELL:
            free = [*free, *(cell for cell in range(FIRST_CELL, self.cells) if self.uses[cell])]
            free.sort(key=lambda slot: -self.uses[slot])
        shared = max(min(len(free), columns - self.taken), 0)
        self.column = {slot: self.taken + k for k, slot in enumerate(free[:shared])} | self.kept
        self.column |= {slot: slot for slot in range(self.homes)}
        local = free[shared:]
        if self.cells > FIRST_CELL:
            local.sort(key=lambda slot: self.first.get(slot, NEVER_LOADED))
        self.local = {slot: k for k, slot in enumerate(local)}
        return self.taken + shared

    def insert_addresses(self, lines: list[str]) -> list[str]:
        """Return the lines with the addresses of slots inserted; neighbours in local memory that are loaded
        soon after one another are loaded by one instruction."""
        found: list[str] = []
        together: dict[int, tuple[str, int]] = {}
        for number, line in enumerate(lines):
            if LOAD_MARK in line:
                name, slot = line.split(f" = {LOAD_MARK}")
                if number not in together:
                    self._load_wide(found, lines, number, int(slot), together)
                if number in together:
                    wide, k = together[number]
                    found.append(f"{name} = extractelement {self._wide} {wide}, i32 {k}")
                    continue
                place = self._address(found, int(slot))
                found.append(f"{name} = load {self.type.text}, ptr {place}, align {self.type.size}")
            elif STORE_MARK in line:
                value, slot = line.split(f" {STORE_MARK}")
                place = self._address(found, int(slot))
                found.append(f"store {self.type.text} {value}, ptr {place}, align {self.type.size}")
            else:
                found.append(line)
        return found

    @property
    def local_bytes(self) -> int:
        """[bytes] The local memory of a thread."""
        return -(-len(self.local) * self.type.size // VECTOR_LOAD_BYTES) * VECTOR_LOAD_BYTES

    @property
    def _wide(self) -> str:
        return f"<{VECTOR_LOAD_BYTES // self.type.size} x {self.type.text}>"

    def _load_wide(
        self, found: list[str], lines: list[str], number: int, slot: int, together: dict[int, tuple[str, int]]
    ) -> None:
        """Load the neighbours of a slot with it, if some of them are loaded soon."""
        count = VECTOR_LOAD_BYTES // self.type.size
        if slot not in self.local or self.cells == FIRST_CELL:
            return
        group = self.local[slot] // count
        wanted = {}
        for at in range(number, min(number + VECTOR_LOAD_WINDOW, len(lines))):
            line = lines[at]
            if line.endswith(":") or line.startswith("br "):
                break
            if LOAD_MARK in line or STORE_MARK in line:
                other = int(line.rpartition(" ")[2])
                if self.local.get(other, -1) // count != group:
                    continue
                if STORE_MARK in line:
                    break
                wanted[at] = self.local[other] % count
        if len(set(wanted.values())) < 2:
            return
        name = f"%wide.{len(found)}"
        found.append(f"{name}.at = getelementptr i8, ptr %local, i64 {group * VECTOR_LOAD_BYTES}")
        found.append(f"{name} = load {self._wide}, ptr {name}.at, align {VECTOR_LOAD_BYTES}")
        together |= {at: (name, k) for at, k in wanted.items()}

    def _address(self, lines: list[str], slot: int) -> Value:
        base, place = ("%local", self.local[slot]) if slot in self.local else ("%mine", self.column[slot])
        name = f"%slot.{len(lines)}"
        lines.append(f"{name} = getelementptr i8, ptr {base}, i64 {place * self.type.size}")
        return name


@final
@dataclass(frozen=True, slots=True)
class SlotView:
    """Every `stride`th slot from `first` on: the cells of a state, or the slots of one worker of several. A
    view has what `memory.Place` has for arrays, at fixed positions alone."""

    slots: SpillSlots
    first: int
    stride: int = 1
    base: ClassVar[Value] = ""
    scattered: ClassVar[bool] = True

    def load(self, writer: Writer, position: int, base: Value | None = None) -> Value:
        return self.slots.load(writer, self.first + position * self.stride)

    def store(self, writer: Writer, value: Value, position: int, base: Value | None = None) -> None:
        self.slots.store(writer, value, self.first + position * self.stride)
