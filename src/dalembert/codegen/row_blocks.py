"""Turning blocks of rows into lanes and back, inside a kernel.

The distances of the rows of a block from its first stand in a table in scratch memory, written once for full blocks and
again for the last block of a batch, whose missing rows repeat the last one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, final

from dalembert.codegen.ir import Value, Writer
from dalembert.codegen.rows import chunks, load_row, store_row, transpose

__all__ = ["INLINE_CHUNKS", "RowBlocks", "Source"]

INLINE_CHUNKS: Final = 4
"""Rows of more vectors than this are turned by a loop: the instruction cache is the scarcer good."""


@final
@dataclass(frozen=True, slots=True)
class Source:
    """Where the lanes of one output element are: at an offset in scratch memory, or one constant."""

    offset: int
    constant: float | None = None


@final
class RowBlocks:
    """Code for the blocks of rows of one kernel; `table` is the address of the table of distances."""

    def __init__(self, writer: Writer, table: Value, globals_: list[str]) -> None:
        self.writer = writer
        self.table = table
        self.globals = globals_
        self.lanes = writer.type.lanes
        self.item = writer.type.bits // 8

    def pointers(self, array: int, base: Value) -> list[Value]:
        """The addresses of the rows of array number `array`, whose first row is at `base`."""
        writer = self.writer
        result = []
        for lane in range(self.lanes):
            place = writer.address(self.table, (array * self.lanes + lane) * 8)
            distance = writer.let(f"load i64, ptr {place}, align 8")
            result.append(writer.address(base, distance))
        return result

    def read(self, array: int, base: Value, size: int, scratch: Value, used: set[int] | None) -> None:
        """Bring `size` elements of every row into lanes at `scratch`; `used` tells which are needed."""
        pieces = chunks(size, self.lanes)
        if len(pieces) <= INLINE_CHUNKS and used is not None:
            pieces = [piece for piece in pieces if used & set(range(piece[0], piece[0] + piece[1]))]
        if not pieces:
            return
        rows = self.pointers(array, base)
        if len(pieces) > INLINE_CHUNKS:
            full = size // self.lanes
            counter = self._loop_begin()
            column = self.writer.let(f"mul i64 {counter}, {self.lanes * self.item}")
            target = self.writer.let(f"mul i64 {counter}, {self.lanes * self.writer.type.size}")
            self._read_piece(rows, column, self.lanes, self.writer.address(scratch, target))
            self._loop_end(counter, full)
            pieces = pieces[full:]
        for start, width in pieces:
            self._read_piece(
                rows, start * self.item, width, self.writer.address(scratch, start * self.writer.type.size)
            )

    def _read_piece(self, rows: list[Value], start: int | Value, width: int, target: Value) -> None:
        writer = self.writer
        vectors = transpose(writer, [load_row(writer, row, start, width) for row in rows])
        for k, vector in enumerate(vectors[:width]):
            writer.store(vector, target, k * writer.type.size, writer.type.align)

    def write(self, array: int, base: Value, sources: Sequence[Source], scratch: Value) -> None:
        """Deliver one output: element k of every row comes from the lanes of `sources[k]` in `scratch`."""
        writer = self.writer
        rows = self.pointers(array, base) if sources else []
        constant: dict[float, list[tuple[int, int]]] = {}
        general: list[tuple[int, int]] = []
        for start, width in chunks(len(sources), self.lanes):
            values = {(source.constant, source.offset) for source in sources[start : start + width]}
            same = values.pop()[0]
            if values or same is None:
                general.append((start, width))
            else:
                constant.setdefault(same, []).append((start, width))
        for number, places in constant.items():
            for start, width in places:
                for row in rows:
                    store_row(writer, writer.constant(number), row, start * self.item, width)
        if len(general) > INLINE_CHUNKS:
            self._write_loop(rows, [start for start, _ in general], sources, scratch)
            return
        for start, width in general:
            vectors = [
                writer.load(scratch, source.offset, writer.type.align)
                if source.constant is None
                else writer.constant(source.constant)
                for source in sources[start : start + width]
            ]
            vectors += ["poison"] * (self.lanes - width)
            for row, vector in zip(rows, transpose(writer, vectors)):
                store_row(writer, vector, row, start * self.item, width)

    def _write_loop(
        self, rows: list[Value], starts: list[int], sources: Sequence[Source], scratch: Value
    ) -> None:
        """A table gives, for each piece, its place in the row and the offsets of its lanes."""
        writer = self.writer
        entries = []
        for start in starts:
            entries.append(start * self.item)
            entries.extend(source.offset for source in sources[start : start + self.lanes])
        name = f"@pieces{len(self.globals)}"
        numbers = ", ".join(f"i32 {entry}" for entry in entries)
        self.globals.append(f"{name} = private constant [{len(entries)} x i32] [{numbers}], align 64")
        counter = self._loop_begin()
        entry = writer.address(name, writer.let(f"mul i64 {counter}, {4 * (self.lanes + 1)}"))
        offsets = []
        for k in range(self.lanes + 1):
            number = writer.let(f"load i32, ptr {writer.address(entry, 4 * k)}, align 4")
            offsets.append(writer.let(f"zext i32 {number} to i64"))
        vectors = [writer.load(scratch, offset, writer.type.align) for offset in offsets[1:]]
        for row, vector in zip(rows, transpose(writer, vectors)):
            store_row(writer, vector, row, offsets[0], self.lanes)
        self._loop_end(counter, len(starts))

    def _loop_begin(self) -> Value:
        """Open a loop and return its counter, whose name the block's label is derived from."""
        writer = self.writer
        before, label = writer.label(), writer.label()
        writer.line(f"br label %{before}")
        writer.begin(before)
        writer.line(f"br label %{label}")
        writer.begin(label)
        counter = f"%{label}.i"
        writer.line(f"{counter} = phi i64 [ 0, %{before} ], [ {counter}.next, %{label} ]")
        return counter

    def _loop_end(self, counter: Value, count: int) -> None:
        writer = self.writer
        label, after = counter[1:].split(".")[0], writer.label()
        writer.line(f"{counter}.next = add i64 {counter}, 1")
        more = writer.let(f"icmp ult i64 {counter}.next, {count}")
        writer.line(f"br i1 {more}, label %{label}, label %{after}")
        writer.begin(after)
