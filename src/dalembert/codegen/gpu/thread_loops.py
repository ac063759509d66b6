"""Nested loops of a GPU thread.

A `Loop` with inner loops is one sequence of parts, by a table: a b b b c, a b b b c, … A thread that follows
the table must find for each part its number and whether to skip it. If the sequence is a repetition of single
parts and repeated parts, it is written as two nested loops instead.

The code of such loops is larger than the instruction caches. Warps that run it at different times fetch it
separately and stall on that; `together` the warps of a block begin each part at the same time, and run
another iteration as long as one of them needs it. A thread whose sample is done is idle in it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import groupby
from typing import Final, final

from dalembert.codegen.gpu.launch import BARRIER
from dalembert.codegen.gpu.shared_memory import Arrays
from dalembert.codegen.ir import Value
from dalembert.codegen.memory import loop_addresses, only_straight
from dalembert.codegen.registers import BREAK_STEP, Step
from dalembert.codegen.schedule import Instructions, postorder
from dalembert.codegen.statement_code import Context, emit_case, emit_loop, leave
from dalembert.tracing.program import Loop, Program, Straight

ESTIMATED_ITERATIONS: Final = 9
"""The estimated number of iterations of a loop, for the choice of the most used slots."""

ESTIMATED_INNER_ITERATIONS: Final = 20
"""The estimated number of runs of the code of an inner loop."""

Runs = list[tuple[int, int]]


def frequency(loop: Loop, case: int) -> int:
    """Return the estimated number of runs of a case; -1: the code before an inner loop."""
    return (
        ESTIMATED_INNER_ITERATIONS
        if case >= 0 and loop.skips and loop.skips[case] is not None
        else ESTIMATED_ITERATIONS
    )


def emit_nest(context: Context, program: Program, loop: Loop, *, together: bool = False) -> None:
    """Write a loop and its inner loops."""
    runs = _runs(program, loop)
    if runs is None:
        emit_loop(context, program, loop)
        return
    writer = context.writer
    context.entering(loop, -1)
    with writer.loop(loop.count // sum(times for _, times in runs)) as (counter, _, after):
        done = None
        if together and loop.until is not None:
            # A round begins as long as one thread of the block is not done.
            value = context.places[loop.until.array].load(writer, loop.until.offset)
            done = writer.compare("une", value, writer.constant(0.0))
            writer.require(writer.let(f"call i1 @any(i1 {writer.invert(done)})"), after)
        else:
            leave(context, loop.until, counter, after)
        for number, (case, times) in enumerate(runs):
            skip = loop.skips[case] if loop.skips else None
            over = writer.label()
            if done is not None:
                if number:
                    writer.line(BARRIER)
                writer.leave(done, over)
            if times == 1:
                leave(context, skip, counter, over)
                _write(context, program, loop, case, counter)
                writer.jump(over)
            else:
                context.entering(loop, -1)
                with writer.loop(times, after=over) as (inner_counter, *_):
                    leave(context, skip, inner_counter, over)
                    _write(context, program, loop, case, inner_counter)
            writer.begin(over)


def _write(context: Context, program: Program, loop: Loop, case: int, counter: Value) -> None:
    context.entering(loop, case)
    emit_case(context, program, loop, case, counter)


def _runs(program: Program, loop: Loop) -> Runs | None:
    """Return one period of the sequence as (case, times), or None if the sequence is not periodic."""
    if not loop.count or loop.reverse or any(address.scale for address in loop_addresses(loop)):
        return None
    table = [0] * loop.count
    if loop.kinds is not None:
        table = [int(kind) for kind in program.tables[loop.kinds][: loop.count]]
    last = table[-1]
    length = table.index(last) + 1
    if loop.count % length or table != table[:length] * (loop.count // length):
        return None
    runs = [(case, len(list(group))) for case, group in groupby(table[:length])]
    if len({case for case, _ in runs}) < len(runs):
        return None
    for case, stores in enumerate(loop.cases):
        ends = any(store.address == loop.until for store in stores)
        if case != last and ends:
            return None
    return runs


# Large results in pieces: each is computed into columns of shared memory and written as a part of a row.
#
# Results whose different numbers do not fit into shared memory at once, such as derivatives, are cut into
# pieces of neighbouring elements. Values that pieces share are computed with the first that needs them and
# kept in memory. Within a piece, elements that are a row of a square matrix apart follow each other: a
# product of matrices then uses each loaded number for several rows.

PIECE_GRANULARITY: Final = 32
"""The length of a piece is a multiple of so many elements, the size of a warp."""

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
        """Return the pieces, or None if no result is large or there is no room for a piece."""
        statement = only_straight(program)
        if statement is None:
            return None
        large = [(k, spec) for k, spec in enumerate(program.outputs) if arrays.is_direct(spec)]
        length = min(arrays.most - arrays.width, MAX_PIECE_ELEMENTS) // PIECE_GRANULARITY * PIECE_GRANULARITY
        if (
            length <= 0
            or not any(spec.size > length for _, spec in large)
            or arrays.gathered & {spec.name for _, spec in large}
        ):
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
