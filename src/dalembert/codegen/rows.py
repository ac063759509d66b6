"""Between rows in the user's memory and lanes in registers.

A block is `lanes` rows. Rows are read as contiguous vectors and turned by shuffles, so that a register holds one scalar of all
the samples; results are turned back and stored as rows. Rows past the end of a batch repeat the last row: they read
and write what the last row reads and writes, with the same bits, so that nothing out of bounds is ever touched.
"""

from __future__ import annotations

import functools

from dalembert.codegen.ir import LaneType, Value, Writer

__all__ = ["chunks", "load_row", "store_row", "transpose"]

Shuffle = tuple[int, ...]


def chunks(columns: int, lanes: int) -> list[tuple[int, int]]:
    """(start, width) of the pieces of a row: full vectors, the last moved back to end with the row.

    A row shorter than one vector is one piece.
    """
    if columns <= lanes:
        return [(0, columns)] if columns else []
    starts = list(range(0, columns - lanes + 1, lanes))
    if columns % lanes:
        starts.append(columns - lanes)
    return [(start, lanes) for start in starts]


def transpose(writer: Writer, vectors: list[Value]) -> list[Value]:
    """Turn `lanes` vectors: element j of vector i becomes element i of vector j."""
    stages, order = _network(writer.type.lanes, 128 // writer.type.bits)
    for distance, low, high in stages:
        turned = list(vectors)
        for k in range(len(vectors)):
            if not k & distance:
                pair = vectors[k], vectors[k + distance]
                turned[k], turned[k + distance] = _shuffle(writer, *pair, low), _shuffle(writer, *pair, high)
        vectors = turned
    return [vectors[k] for k in order]


@functools.cache
def _network(lanes: int, grains: int) -> tuple[list[tuple[int, Shuffle, Shuffle]], list[int]]:
    """Stages (distance of the vectors paired, two shuffles of each pair), and where each result ends.

    First inside the 128-bit parts, by interleaving ever larger grains; then among the parts, taking the even and the
    odd parts of each pair. Each shuffle is one instruction on SSE2, AVX2, AVX-512 and NEON.
    """
    inner = min(lanes, grains)
    stages: list[tuple[int, Shuffle, Shuffle]] = []
    distance = 1
    while distance < inner:
        halves = []
        for half in (0, inner // 2):
            starts = [
                part + half + block
                for part in range(0, lanes, inner)
                for block in range(0, inner // 2, distance)
            ]
            halves.append(
                tuple(at + k + vector for at in starts for vector in (0, lanes) for k in range(distance))
            )
        stages.append((distance, halves[0], halves[1]))
        distance *= 2
    while distance < lanes:
        even = tuple(part + k for part in range(0, 2 * lanes, 2 * inner) for k in range(inner))
        stages.append((distance, even, tuple(k + inner for k in even)))
        distance *= 2
    # Follow the elements (row, column) through the network to see which column each vector becomes.
    table = [[(row, column) for column in range(lanes)] for row in range(lanes)]
    for distance, low, high in stages:
        for k in range(lanes):
            if not k & distance:
                both = table[k] + table[k + distance]
                table[k], table[k + distance] = [both[i] for i in low], [both[i] for i in high]
    order = [0] * lanes
    for k, vector in enumerate(table):
        order[vector[0][1]] = k
    return stages, order


def _shuffle(writer: Writer, a: Value, b: Value, positions: Shuffle) -> Value:
    """A vector of elements of a (0 … lanes - 1) and b (lanes …); -1 is any."""
    text = writer.type.text
    mask = ", ".join("i32 poison" if k < 0 else f"i32 {k}" for k in positions)
    return writer.let(f"shufflevector {text} {a}, {text} {b}, <{len(positions)} x i32> <{mask}>")


def _powers(width: int) -> list[tuple[int, int]]:
    """(start, width) of pieces whose widths are falling powers of two."""
    pieces, start = [], 0
    while start < width:
        piece = 1 << (width - start).bit_length() - 1
        pieces.append((start, piece))
        start += piece
    return pieces


def load_row(writer: Writer, base: Value, start: int | Value, width: int) -> Value:
    """A vector of the `width` elements at byte `start` of a row, never reading past them."""
    whole = writer.type
    lanes, item = whole.lanes, whole.bits // 8
    if width == lanes:
        return writer.load(base, start, 1)
    base, result = writer.address(base, start), "poison"
    for at, piece in _powers(width):
        narrow = writer.as_type(LaneType(whole.bits, piece))
        value = narrow.load(base, at * item, 1)
        if piece == 1:
            result = writer.let(f"insertelement {whole.text} {result}, {whole.element} {value}, i32 {at}")
            continue
        wide = _shuffle(narrow, value, "poison", tuple(k if k < piece else -1 for k in range(lanes)))
        places = tuple(k if k < at else lanes + k - at if k < at + piece else -1 for k in range(lanes))
        result = wide if result == "poison" else _shuffle(writer, result, wide, places)
    return result


def store_row(writer: Writer, value: Value, base: Value, start: int | Value, width: int) -> None:
    """Store the first `width` elements of a vector at byte `start` of a row."""
    whole = writer.type
    item = whole.bits // 8
    if width == whole.lanes:
        writer.store(value, base, start, 1)
        return
    base = writer.address(base, start)
    for at, piece in _powers(width):
        narrow = writer.as_type(LaneType(whole.bits, piece))
        if piece == 1:
            part = writer.let(f"extractelement {whole.text} {value}, i32 {at}")
        else:
            part = _shuffle(writer, value, "poison", tuple(range(at, at + piece)))
        narrow.store(part, base, at * item, 1)
