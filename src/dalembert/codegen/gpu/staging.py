"""Staging: coalesced copies of a block's rows between global memory and the samples' own memory.

A block's numbers of an array are numbered consecutively: number e = k block + thread is element e mod n of
row e div n. In shared memory each sample has a row of its own, whose length is odd: the 32 threads of a warp
then reach 32 different banks whether they read one column of their own rows or neighbouring numbers of one
row. Rows past the end of the batch repeat its last row; they are never written back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from dalembert.codegen.gpu.layout import WARP_SIZE, Layout
from dalembert.codegen.ir import Value, Writer

__all__ = ["Tile", "copy_rows", "gather_rows", "zero_rows"]

LOADS_IN_FLIGHT: Final = 8
"""Loads that are in flight at once."""


@final
class Tile:
    """The rows of one array in a block: `base`, the address of the batch's first row, with a value
    `base`.stride; `size` numbers a row; the samples' own copy at a column of shared memory or an element of
    scratch memory."""

    __slots__ = ("base", "element", "shared", "size", "stride")

    def __init__(self, base: Value, size: int, shared: int | None, element: int | None) -> None:
        self.base = base
        self.stride = f"{base}.stride"
        self.size = size
        self.shared = shared
        self.element = element


def copy_rows(
    writer: Writer, tile: Tile, *, layout: Layout, pitch: int, inward: bool, scratch: int, offset: Value = "0"
) -> None:
    """Copy the block's rows to the samples' own memory (`inward`) or back.

    `pitch` numbers are a shared row, `scratch` numbers the scratch memory of a sample; `offset` bytes are
    added to global addresses. Uses %thread, %first (the block's first row), %count (its rows), %shared and
    %scratch.block.
    """
    item = writer.type.size
    base = writer.address(tile.base, offset) if offset != "0" else tile.base

    def own(row: Value, column: Value) -> Value:
        if tile.shared is not None:
            return _shared_address(writer, row, column, tile.shared, pitch)
        return _scratch_address(writer, row, column, tile.element or 0, scratch)

    def load(numbers: list[Value]) -> list[tuple[Value, Value, Value]]:
        found = []
        for number in numbers:
            row, column = _row_and_column(writer, number, tile.size)
            if inward:
                inside = writer.let(f"icmp ult i32 {row}, %count")
                last = writer.let(f"select i1 {inside}, i32 {row}, i32 %count.last")
                value = writer.load(_global_address(writer, base, tile.stride, last, column), 0, item)
                found.append((value, own(row, column), row))
            else:
                value = writer.load(own(row, column), 0, item)
                found.append((value, _global_address(writer, base, tile.stride, row, column), row))
        return found

    def put(found: list[tuple[Value, Value, Value]]) -> None:
        for value, place, row in found:
            if inward:
                writer.store(value, place, 0, item)
            else:
                _store_inside(writer, value, place, row)

    _each_number(writer, tile.size, layout, lambda numbers: put(load(numbers)))


def gather_rows(writer: Writer, tile: Tile, columns: list[int], layout: Layout, pitch: int) -> str:
    """Write the block's rows, each element from a column of the sample's shared row; the text of a table.

    A thread has the same elements of every row, so that a warp writes neighbouring numbers.
    """
    item, block = writer.type.size, layout.block
    table = f"@columns.{tile.base[1:]}"
    if tile.size < block:
        return _gather_short_rows(writer, tile, columns, layout, pitch, table)
    own = -(-tile.size // block)
    padded = columns + [0] * (own * block - tile.size)
    offsets = ", ".join(f"i32 {column * item}" for column in padded)
    places = []
    for k in range(own):
        number = writer.let(f"zext i32 {writer.let(f'add i32 %thread, {k * block}')} to i64")
        entry = writer.address(table, writer.let(f"shl i64 {number}, 2"))
        offset = writer.let(f"zext i32 {writer.let(f'load i32, ptr {entry}, align 4')} to i64")
        places.append(writer.address("%shared", offset))
    wide = writer.let("zext i32 %thread to i64")
    first = writer.address(tile.base, writer.let(f"mul i64 %first, {tile.stride}"))
    first = writer.address(first, writer.let(f"mul i64 {wide}, {item}"))
    before, head, after = (writer.label() for _ in range(3))
    row = f"%{head}.row"
    writer.line(f"br label %{before}")
    writer.begin(before)
    writer.line(f"br label %{head}")
    writer.begin(head)
    back = writer.label()
    writer.line(f"{row} = phi i64 [ 0, %{before} ], [ {row}.next, %{back} ]")
    shared = writer.let(f"mul i64 {row}, {pitch * item}")
    there = writer.address(first, writer.let(f"mul i64 {row}, {tile.stride}"))
    values = [writer.load(writer.address(place, shared), 0, item) for place in places]
    for k, value in enumerate(values):
        if (k + 1) * block <= tile.size:
            writer.store(value, there, k * block * item, item)
        else:
            inside, outside = writer.label(), writer.label()
            test = writer.let(f"icmp ult i32 %thread, {tile.size - k * block}")
            writer.line(f"br i1 {test}, label %{inside}, label %{outside}")
            writer.begin(inside)
            writer.store(value, there, k * block * item, item)
            writer.line(f"br label %{outside}")
            writer.begin(outside)
    writer.line(f"br label %{back}")
    writer.begin(back)
    writer.line(f"{row}.next = add i64 {row}, 1")
    more = writer.let(f"icmp slt i64 {row}.next, %count.wide")
    writer.line(f"br i1 {more}, label %{head}, label %{after}")
    writer.begin(after)
    return f"{table} = private constant [{own * block} x i32] [{offsets}]"


def _gather_short_rows(
    writer: Writer, tile: Tile, columns: list[int], layout: Layout, pitch: int, table: str
) -> str:
    """Gather rows with fewer elements than the block has threads: elements are numbered consecutively."""
    item = writer.type.size

    def move(numbers: list[Value]) -> None:
        found = []
        for number in numbers:
            row, column = _row_and_column(writer, number, tile.size)
            entry = writer.address(table, writer.let(f"zext i32 {writer.let(f'shl i32 {column}, 2')} to i64"))
            offset = writer.let(f"load i32, ptr {entry}, align 4")
            at = writer.let(f"add i32 {offset}, {writer.let(f'mul i32 {row}, {pitch * item}')}")
            value = writer.load(writer.address("%shared", writer.let(f"zext i32 {at} to i64")), 0, item)
            found.append((value, _global_address(writer, tile.base, tile.stride, row, column), row))
        for value, place, row in found:
            _store_inside(writer, value, place, row)

    _each_number(writer, tile.size, layout, move)
    offsets = ", ".join(f"i32 {column * item}" for column in columns)
    return f"{table} = private constant [{tile.size} x i32] [{offsets}]"


def zero_rows(writer: Writer, tile: Tile, *, layout: Layout) -> None:
    """Write zeros to the block's rows in global memory."""

    def put(numbers: list[Value]) -> None:
        for number in numbers:
            row, column = _row_and_column(writer, number, tile.size)
            place = _global_address(writer, tile.base, tile.stride, row, column)
            _store_inside(writer, writer.constant(0.0), place, row)

    _each_number(writer, tile.size, layout, put)


def _each_number(writer: Writer, size: int, layout: Layout, task: Callable[[list[Value]], None]) -> None:
    """Give a thread its numbers, `size` for each sample in all, a few at a time. Where they cannot be shared
    evenly, some threads have the last one again."""
    block, own, last = layout.block, -(-size // layout.parts), size * layout.samples - 1

    def numbers(start: Value, count: int) -> list[Value]:
        found = [writer.let(f"add i32 {start}, {k * block}") for k in range(count)]
        if size % layout.parts == 0:
            return found
        inside = [writer.let(f"icmp ult i32 {number}, {last}") for number in found]
        return [
            writer.let(f"select i1 {test}, i32 {number}, i32 {last}") for test, number in zip(inside, found)
        ]

    rounds, rest = divmod(own, LOADS_IN_FLIGHT)
    if rounds < 3:
        rounds, rest = 0, own
    start: Value = "%thread"
    if rounds:
        before, head, back, after = (writer.label() for _ in range(4))
        at = f"%{head}.at"
        writer.line(f"br label %{before}")
        writer.begin(before)
        writer.line(f"br label %{head}")
        writer.begin(head)
        writer.line(f"{at} = phi i32 [ %thread, %{before} ], [ {at}.next, %{back} ]")
        task(numbers(at, LOADS_IN_FLIGHT))
        writer.line(f"br label %{back}")
        writer.begin(back)
        writer.line(f"{at}.next = add i32 {at}, {LOADS_IN_FLIGHT * block}")
        more = writer.let(f"icmp ult i32 {at}.next, {rounds * LOADS_IN_FLIGHT * block}")
        writer.line(f"br i1 {more}, label %{head}, label %{after}")
        writer.begin(after)
        start = f"{at}.next"
    for first in range(0, rest, LOADS_IN_FLIGHT):
        count = min(LOADS_IN_FLIGHT, rest - first)
        task(numbers(writer.let(f"add i32 {start}, {first * block}"), count))


def _row_and_column(writer: Writer, number: Value, size: int) -> tuple[Value, Value]:
    row = writer.let(f"udiv i32 {number}, {size}")
    return row, writer.let(f"sub i32 {number}, {writer.let(f'mul i32 {row}, {size}')}")


def _shared_address(writer: Writer, row: Value, column: Value, first: int, pitch: int) -> Value:
    at = writer.let(f"add i32 {column}, {writer.let(f'mul i32 {row}, {pitch}')}")
    place = writer.let(f"mul i32 {at}, {writer.type.size}")
    wide = writer.let(f"zext i32 {place} to i64")
    return writer.address(writer.address("%shared", wide), first * writer.type.size)


def _scratch_address(writer: Writer, row: Value, column: Value, first: int, length: int) -> Value:
    warp, lane = writer.let(f"udiv i32 {row}, {WARP_SIZE}"), writer.let(f"and i32 {row}, {WARP_SIZE - 1}")
    element = writer.let(f"add i32 {writer.let(f'mul i32 {warp}, {length}')}, {first}")
    element = writer.let(f"add i32 {element}, {column}")
    at = writer.let(f"add i32 {writer.let(f'mul i32 {element}, {WARP_SIZE}')}, {lane}")
    place = writer.let(f"mul i64 {writer.let(f'zext i32 {at} to i64')}, {writer.type.size}")
    return writer.address("%scratch.block", place)


def _global_address(writer: Writer, base: Value, stride: Value, row: Value, column: Value) -> Value:
    wide = writer.let(f"add i64 %first, {writer.let(f'zext i32 {row} to i64')}")
    at_row = writer.address(base, writer.let(f"mul i64 {wide}, {stride}"))
    offset = writer.let(f"zext i32 {writer.let(f'mul i32 {column}, {writer.type.size}')} to i64")
    return writer.address(at_row, offset)


def _store_inside(writer: Writer, value: Value, place: Value, row: Value) -> None:
    """Store what belongs to a row of the batch."""
    inside, outside = writer.label(), writer.label()
    writer.line(f"br i1 {writer.let(f'icmp ult i32 {row}, %count')}, label %{inside}, label %{outside}")
    writer.begin(inside)
    writer.store(value, place, 0, writer.type.size)
    writer.line(f"br label %{outside}")
    writer.begin(outside)
