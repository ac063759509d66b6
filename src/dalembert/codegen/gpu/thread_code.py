"""The phase of a kernel in which each thread does the arithmetic of its sample, or of one step of it.

Beside straight-line code a thread has nested loops (`thread_loops.py`), and results too large for shared
memory, in pieces.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Final, cast, final

from dalembert.codegen.gpu.launch import BARRIER, BEGIN
from dalembert.codegen.gpu.shared_memory import Arrays, SpillSlots
from dalembert.codegen.gpu.single import call
from dalembert.codegen.gpu.stages import Team
from dalembert.codegen.gpu.thread_loops import (
    emit_nest,
    emit_rows,
    estimated_runs,
    frequency,
    without_exit_tests,
    without_row_exit_tests,
)
from dalembert.codegen.ir import NEVER, Value, Writer
from dalembert.codegen.memory import Place, only_straight, ranges_to_zero, without_zeros
from dalembert.codegen.outlining import Outliner
from dalembert.codegen.schedule import BREAK_STEP, Instructions, Step, allocate, postorder
from dalembert.codegen.statement_code import (
    Context,
    Position,
    emit_condition,
    emit_instructions,
    emit_straight,
)
from dalembert.errors import CompileError
from dalembert.tracing.program import Loop, Program, Repeat, Straight

# Large results in pieces: each is computed into columns of shared memory and written as a part of a row.
#
# Results whose different numbers do not fit into shared memory at once, such as derivatives, are cut into
# pieces of neighbouring elements. Values that pieces share are computed with the first that needs them and
# kept in memory. Within a piece, elements that are a row of a square matrix apart follow each other: a
# product of matrices then uses each loaded number for several rows.

PIECE_GRANULARITY: Final = 32
"""[elements] The length of a piece is a multiple of this, the size of a warp."""

MAX_PIECE_ELEMENTS: Final = 128


@final
@dataclass(frozen=True, slots=True)
class Piece:
    """Elements `start` to `stop` of output `number`, an array of `size` named `array`."""

    number: int
    array: str
    size: int
    start: int
    stop: int

    def positions(self) -> list[int]:
        """Return its elements, by columns if the array is a square matrix and the piece begins with a row."""
        side = math.isqrt(self.size)
        inside = range(self.start, self.stop)
        if side * side != self.size or self.start % side:
            return list(inside)
        return sorted(inside, key=lambda position: (position % side, position))


@final
class Pieces:
    """The pieces of a program's large results. `values` are all results that are computed, `constants` those
    that are not; `area` is the first of the `columns` for a piece."""

    def __init__(self, program: Program, statement: Straight, pieces: list[Piece], area: int) -> None:
        self.pieces = pieces
        self.area = area
        self.columns = pieces[0].stop - pieces[0].start
        stored = {(store.array, store.position): store.value for store in statement.stores}
        computed = {place: value for place, value in stored.items() if value.op != "constant"}
        self.places, self.values = list(computed), list(computed.values())
        every = ((spec.name, position) for spec in program.outputs for position in range(spec.size))
        self.constants = {
            place: stored[place].data if place in stored else 0.0 for place in every if place not in computed
        }
        self.breaks: list[int] = []

    @classmethod
    def of(cls, program: Program, arrays: Arrays) -> Pieces | None:
        """Return the pieces, or None if no result is large or there is no room for a piece, or where results
        are gathered from the slots of one phase."""
        statement = only_straight(program)
        if statement is None or arrays.gathered:
            return None
        large = [(k, spec) for k, spec in enumerate(program.outputs) if arrays.is_direct(spec)]
        length = min(arrays.most - arrays.width, MAX_PIECE_ELEMENTS) // PIECE_GRANULARITY * PIECE_GRANULARITY
        if length <= 0 or not any(spec.size > length for _, spec in large):
            return None
        pieces = [
            Piece(number, spec.name, spec.size, start, min(start + length, spec.size))
            for number, spec in large
            for start in range(0, spec.size, length)
        ]
        return cls(program, statement, pieces, arrays.width)

    def order(self, instructions: Instructions) -> bool:
        """Order the instructions by pieces, with a copy at the place of every result; False where a condition
        would have to wait in memory."""
        copies = {
            place: instructions.append("copy", (root,), place)
            for place, root in zip(self.places, instructions.roots)
        }
        chosen = {node: time for time, node in enumerate(instructions.order)}
        placed = [instructions.is_leaf(node) for node in range(len(instructions.ops))]
        cut = {piece.array for piece in self.pieces}
        order: list[int] = []
        piece_of: dict[int, int] = {}
        for number, piece in enumerate(self.pieces):
            wanted = [
                copies[key] for position in piece.positions() if (key := (piece.array, position)) in copies
            ]
            if number == len(self.pieces) - 1:
                wanted += [node for place, node in copies.items() if place[0] not in cut]
            new = postorder(instructions.args, wanted, placed)
            if number == 0:
                new.sort(key=lambda node: chosen.get(node, chosen.get(instructions.args[node][0], -1) + 0.5))
            else:
                self.breaks.append(len(order))
            for node in new:
                placed[node] = True
                piece_of[node] = number
            order += new
        instructions.order = order
        return not any(
            instructions.is_mask(item) and piece_of[item] != piece_of[node]
            for node in order
            for item in instructions.args[node]
        )

    def parts(self, steps: list[Step]) -> list[list[Step]]:
        """Return the steps of each piece."""
        found: list[list[Step]] = [[]]
        for step in steps:
            if step[0] == BREAK_STEP:
                found.append([])
            else:
                found[-1].append(step)
        return found + [[] for _ in range(len(self.pieces) - len(found))]


# Loops of one thread over elements of its arrays.

MAX_UNROLLED_ELEMENTS: Final = 512
"""Elements up to which a copy is unrolled."""

LOADS_IN_FLIGHT: Final = 16
"""Loads of a copy that are in flight at once."""


def fill(writer: Writer, place: Place, start: int, stop: int) -> None:
    """Fill the elements from `start` to `stop` with zeros."""
    zero = writer.constant(0.0)
    if place.scattered or stop - start <= 8:
        for position in range(start, stop):
            place.store(writer, zero, position)
        return
    with writer.loop(stop, start=start) as (at, *_):
        _put(writer, place, at, zero)


def copy(writer: Writer, source: Place, target: Place, size: int) -> None:
    """Copy the first `size` elements of one array into another."""
    if size > MAX_UNROLLED_ELEMENTS:
        with writer.loop(size) as (at, *_):
            place = writer.let(f"mul i64 {at}, {source.item}")
            _put(writer, target, at, writer.load(source.base, place, source.align))
        return
    for start in range(0, size, LOADS_IN_FLIGHT):
        positions = range(start, min(start + LOADS_IN_FLIGHT, size))
        values = [source.load(writer, position) for position in positions]
        for position, value in zip(positions, values):
            target.store(writer, value, position)


def _put(writer: Writer, place: Place, at: Value, value: Value) -> None:
    writer.store(value, place.base, writer.let(f"mul i64 {at}, {place.item}"), place.align)


UNLIMITED_REGISTERS: Final = 1_000_000
"""Registers to plan with if the assembler is to spill."""


@final
class Compute:
    """The writer of the phase, or of one phase for each piece of the results: `phases`, the functions that
    they call, and the length of a sample's shared row.

    `begin` makes a writer at the start of a phase. `zeroed` are results whose rows another phase has filled
    with zeros. `gathered` gives the column of shared memory that holds each element of the result to be
    gathered.
    """

    def __init__(self, arrays: Arrays, begin: Callable[[], Writer], *, zeroed: Collection[str]) -> None:
        self.program = arrays.program
        self.rollout = arrays.rollout
        self.arrays = arrays
        self.layout = arrays.layout
        self.begin = begin
        self.zeroed = zeroed
        self.writer = writer = begin()
        self.sample = "%sample" if self.layout.parts > 1 else "%thread"
        self.gathered: dict[tuple[str, int], int] = {}
        self.slots = SpillSlots(writer.type, arrays.inputs_end, arrays.width)
        self.context = Context(
            writer=writer,
            places={},
            tables=arrays.tables,
            registers=self.layout.values or UNLIMITED_REGISTERS,
            spills=self.slots,
            outliner=Outliner(writer),
            call=call,
            calls=False,
            taken=arrays.inputs_end,
            share=True,
            entering=self._weigh,
            copy_address=lambda writer, base: base,  # a copy would hide which memory the address is in
            sizes={spec.name: spec.size for spec in arrays.program.states},
        )
        self.runs = dict(estimated_runs(self.program.statements))
        self.cells = {name: self.slots.state(size) for name, size in arrays.cells.items()}
        self.pieces: list[Piece] = []
        self.workers: list[list[str]] = []
        written = self._write_workers() or self._write_pieces() or {"compute": self._write()}
        self.slots.count = max(self.slots.count, self.context.slots)
        columns = self.slots.place(arrays.most)
        self.pitch = columns | 1 if columns else 0
        self.phases = {name: self._insert_addresses(lines) for name, lines in written.items()}
        self.workers = [self._insert_addresses(lines) for lines in self.workers]

    def _insert_addresses(self, lines: list[str]) -> list[str]:
        """Return the lines of a phase with its memory and the addresses of slots inserted."""
        if not lines:
            return []
        lane_type = self.writer.type
        start = [
            *(
                f"%local.{k} = alloca [{max(size, 1)} x {lane_type.text}], align {lane_type.size}"
                for k, size in enumerate(self.arrays.local.values())
            ),
            f"%sample = urem i32 %thread, {self.layout.samples}",
            f"%mine.row = zext i32 {self.sample} to i64",
            f"%mine.at = mul i64 %mine.row, {self.pitch * lane_type.size}",
            "%mine = getelementptr i8, ptr %shared, i64 %mine.at",
        ]
        return [lines[0], *start, *self.slots.insert_addresses(lines[1:])]

    def _open(self) -> None:
        self.writer.lines += [
            "%nonempty = icmp sgt i64 %rows, 0",
            f"%inside = icmp ult i32 {self.sample}, %count",
            f"%own = select i1 %inside, i32 {self.sample}, i32 %count.last",
            "%own.wide = zext i32 %own to i64",
            "%row = add i64 %first, %own.wide",
        ]
        self.context.writer = self.writer
        cells = cast("dict[str, Place]", self.cells)  # they have what code at fixed positions uses of places
        self.context.places = self.arrays.places(self.writer) | cells
        self.context.lists = {**self.arrays.row_lists(self.writer)}

    def _close(self) -> list[str]:
        self.writer.lines += ["ret void", f"{NEVER}:", "ret void"]
        return self.writer.lines

    def _write(self) -> list[str]:
        """Write all statements in one phase."""
        writer, context = self.writer, self.context
        self._open()
        self._check()
        self._clear()
        context.homes = self._homes
        together, with_rows = self.layout.barriers > 0, self.program.has_rows
        # Between loops over rows there are many straight parts, most of them short: one barrier before each.
        barriers = [lambda: writer.line(BARRIER)] * (0 if with_rows else self.layout.barriers)
        for statement in self.program.statements:
            if with_rows and together and not (isinstance(statement, Straight) and not statement.stores):
                writer.line(BARRIER)
            if isinstance(statement, Straight):
                sources = emit_straight(
                    context,
                    without_zeros(statement, self.zeroed),
                    unstored=self.arrays.gathered,
                    offsets={},
                    spill_offset=0,
                    interleaved=barriers,
                )
                if self.arrays.gathered:
                    size = writer.type.size
                    numbers = {p: x.constant for p, x in sources.items() if x.constant is not None}
                    slots = {p: x.offset // size for p, x in sources.items() if p not in numbers}
                    columns = self.slots.keep(set(slots.values()))
                    self._gather({p: columns[slot] for p, slot in slots.items()}, numbers)
            elif isinstance(statement, Repeat):
                emit_rows(context, self.program, without_row_exit_tests(statement), together=together)
                self.slots.weight = 1
            else:
                emit_nest(context, self.program, without_exit_tests(statement), together=together)
                self.slots.weight = 1
        self._carry()
        return self._close()

    def _weigh(self, loop: Loop | Repeat, case: int) -> None:
        self.slots.weight = self.runs[loop.name] if isinstance(loop, Repeat) else frequency(loop, case)

    def _write_workers(self) -> dict[str, list[str]]:
        """Write the code of each worker, if several threads compute a sample; the phase is then empty."""
        if self.layout.parts == 1:
            return {}
        statement = only_straight(self.program)
        if statement is None:
            raise CompileError(f"parts={self.layout.parts}: the program is not one straight statement")
        if self.arrays.scratch_elements:
            raise CompileError(f"parts={self.layout.parts}: what a step carries does not fit shared memory")
        results = {
            (store.array, store.position): store.value
            for store in without_zeros(statement, self.zeroed).stores
        }
        instructions = self.context.schedule(list(results.values()))
        team = Team(
            self.context,
            instructions,
            dict(zip(results, instructions.roots)),
            self.slots,
            workers=self.layout.parts,
            gathered=self.arrays.gathered,
        )
        for worker in range(self.layout.parts):
            if worker:
                self.writer = self.begin()
            self._open()
            self.writer.line(BEGIN)
            if not worker:
                self._check()
                self._clear()
                self._gather(*team.write_leaves())
            team.write(worker)
            if self.rollout is not None:
                self.writer.line(BARRIER)
                if not worker:
                    self._carry()
            self.workers.append(self._close())
        self.slots.count = self.slots.homes + team.own_slots * team.workers
        return {"compute": []}

    def _write_pieces(self) -> dict[str, list[str]] | None:
        """Write one phase for each piece if results are divided; None if they need not or cannot be."""
        work = Pieces.of(self.program, self.arrays) if self.layout.values is not None else None
        if work is None or self.rollout is not None:
            return None
        context = self.context
        instructions = context.schedule(work.values)
        if not work.order(instructions):
            return None
        plan = allocate(
            instructions,
            registers=context.registers,
            homes=self._homes(instructions),
            taken=context.taken,
            calls=False,
            breaks=work.breaks,
        )
        context.slots = plan.slots
        self.pieces = work.pieces
        self.slots.taken += work.columns
        phases = {}
        for number, (piece, steps) in enumerate(zip(work.pieces, work.parts(plan.steps))):
            if number:
                self.writer = self.begin()
            self._open()
            if not number:
                self._check()
            self._write_piece(work, piece, instructions, steps)
            phases[f"compute{number}"] = self._close()
        return phases

    def _write_piece(self, work: Pieces, piece: Piece, instructions: Instructions, steps: list[Step]) -> None:
        writer, context, item = self.writer, self.context, self.writer.type.size
        area = Place(writer.address("%mine", work.area * item), item, item)

        def store_result(node: int, value: Value) -> None:
            if instructions.ops[node] == "copy":
                array, position = instructions.data[node]
                if array == piece.array:
                    area.store(writer, value, position - piece.start)
                else:
                    context.places[array].store(writer, value, position)

        emit_instructions(context, instructions, steps, store_result=store_result)
        for position in range(piece.start, piece.stop):
            number = work.constants.get((piece.array, position))
            if number is not None:
                area.store(writer, writer.constant(number), position - piece.start)
        if piece is work.pieces[-1]:
            for (array, position), number in work.constants.items():
                if array in self.arrays.shared:
                    context.places[array].store(writer, writer.constant(number), position)

    def _homes(self, instructions: Instructions) -> dict[int, int]:
        """Return the slots of staged inputs, whose columns are free after their last use."""
        if self.layout.values is None or len(self.program.statements) != 1:
            return {}
        constant = set()
        if self.rollout is not None:
            changing = {*(name for name, _ in self.rollout.carried), *self.rollout.streams}
            constant = {spec.name for spec in self.program.inputs} - changing
        shared, results = self.arrays.shared, set(instructions.roots)
        leaves = [node for node, op in enumerate(instructions.ops) if op == "input" and node not in results]
        return {
            node: shared[instructions.data[node][0]] + instructions.data[node][1]
            for node in leaves
            if instructions.data[node][0] in shared.keys() - constant
        }

    def _check(self) -> None:
        """Record a rejected row. It is computed all the same."""
        writer, check = self.writer, self.program.check
        if check is None:
            return
        found = emit_condition(self.context, check)
        with writer.when(found):
            if self.rollout is None:
                writer.let("atomicrmw umin ptr %refused, i64 %row monotonic, align 8")
                return
            place = f"%out{len(self.program.outputs) + len(self.rollout.carried)}"
            at = writer.address(place, writer.let(f"mul i64 %row, {place}.stride"))
            old = writer.read("i64", at)
            new = writer.let(f"select i1 {writer.let(f'icmp slt i64 {old}, 0')}, i64 %now, i64 {old}")
            writer.write("i64", new, at)

    def _clear(self) -> None:
        """Zero the elements that are read or output without having been written."""
        for name, start, stop in ranges_to_zero(self.program):
            if name not in self.zeroed and name not in self.arrays.gathered:
                fill(self.writer, self.context.places[name], start, stop)

    def _gather(self, columns: Mapping[Position, int], numbers: Mapping[Position, float]) -> None:
        """Record the columns of the results' elements, constants included; elements not stored are zero."""
        constants: dict[float, int] = {}
        for spec in self.program.outputs:
            if spec.name not in self.arrays.gathered:
                continue
            for place in ((spec.name, position) for position in range(spec.size)):
                number = numbers.get(place, 0.0)
                if place not in columns and number not in constants:
                    constants[number] = self.slots.constant(self.writer, number)
                self.gathered[place] = columns[place] if place in columns else constants[number]

    def _carry(self) -> None:
        """Copy the results of the step to the carried inputs of the next one."""
        if self.rollout is None:
            return
        for name, number in self.rollout.carried:
            spec = self.program.outputs[number]
            copy(self.writer, self.context.places[spec.name], self.context.places[name], spec.size)
