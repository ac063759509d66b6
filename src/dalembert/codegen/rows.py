"""Transposition between rows in the user's memory and lanes in registers.

A block is `lanes` rows. Rows are read as contiguous vectors and turned by shuffles, so that a register
holds one scalar of all the samples; results are turned back and stored as rows. Rows past the end of a
batch repeat the last row: they read and write what the last row reads and writes, with the same bits, so
that nothing out of bounds is ever touched.
"""

from __future__ import annotations

from dalembert.codegen.ir import LaneType, Value, Writer

__all__ = ["chunks", "load_columns", "load_row", "store_row", "transpose"]

Shuffle = tuple[int, ...]


def chunks(columns: int, lanes: int) -> list[tuple[int, int]]:
    """Return (start, width) of the pieces of a row: full vectors, the last moved back to end with the row.

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
    lanes = writer.type.lanes
    rows = [[(row, column) for column in range(lanes)] for row in range(lanes)]
    inner = min(lanes, 128 // writer.type.bits)
    return _run(writer, vectors, rows, _stages(lanes, inner, lanes))


def load_columns(writer: Writer, rows: list[Value], start: int | Value) -> list[Value]:
    """Load the `lanes` columns at byte `start` of `lanes` rows.

    Vectors wider than 128 bits are put together from halves of two rows as they are loaded, which costs the
    loading units and saves a third of the shuffles: those compete with the arithmetic.
    """
    whole = writer.type
    lanes, inner = whole.lanes, min(whole.lanes, 128 // whole.bits)
    if lanes == inner or lanes // inner > 4:
        return transpose(writer, [load_row(writer, row, start, lanes) for row in rows])
    half = lanes // 2
    narrow = writer.as_type(LaneType(whole.bits, half))
    bases = [writer.address(row, start) for row in rows]
    columns = []
    for first in (0, half):
        vectors, table = [], []
        for group in range(0, lanes, 2 * inner):
            for row in range(group, group + inner):
                parts = [narrow.load(bases[each], first * whole.bits // 8, 1) for each in (row, row + inner)]
                vectors.append(_shuffle(narrow, parts[0], parts[1], tuple(range(lanes))))
                table.append([(each, first + k) for each in (row, row + inner) for k in range(half)])
        columns += _run(writer, vectors, table, _stages(lanes, inner, half))
    return columns


Stage = tuple[int, Shuffle, Shuffle]
Table = list[list[tuple[int, int]]]


def _stages(lanes: int, inner: int, count: int) -> list[Stage]:
    """Return (distance of the vectors paired, two shuffles of each pair), for `count` vectors.

    First inside the 128-bit parts, by interleaving ever larger grains; then among the parts, taking the
    even and the odd parts of each pair. Each shuffle is one instruction on SSE2, AVX2, AVX-512 and NEON.
    """
    stages: list[Stage] = []
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
    while distance < count:
        even = tuple(part + k for part in range(0, 2 * lanes, 2 * inner) for k in range(inner))
        stages.append((distance, even, tuple(k + inner for k in even)))
        distance *= 2
    return stages


def _run(writer: Writer, vectors: list[Value], table: Table, stages: list[Stage]) -> list[Value]:
    """Write the shuffles, following the elements (row, column) to see which column each vector becomes."""
    vectors, table = list(vectors), list(table)
    for distance, low, high in stages:
        for k in range(len(vectors)):
            if not k & distance:
                other = k + distance
                pair, both = (vectors[k], vectors[other]), table[k] + table[other]
                vectors[k], vectors[other] = _shuffle(writer, *pair, low), _shuffle(writer, *pair, high)
                table[k], table[other] = [both[i] for i in low], [both[i] for i in high]
    order = sorted(range(len(vectors)), key=lambda k: table[k][0][1])
    return [vectors[k] for k in order]


def _shuffle(writer: Writer, a: Value, b: Value, positions: Shuffle) -> Value:
    """Write a vector of elements of a (0 … lanes - 1) and b (lanes …); -1 is any."""
    text = writer.type.text
    mask = ", ".join("i32 poison" if k < 0 else f"i32 {k}" for k in positions)
    return writer.let(f"shufflevector {text} {a}, {text} {b}, <{len(positions)} x i32> <{mask}>")


def _powers(width: int) -> list[tuple[int, int]]:
    """Return (start, width) of pieces whose widths are decreasing powers of two."""
    pieces, start = [], 0
    while start < width:
        piece = 1 << (width - start).bit_length() - 1
        pieces.append((start, piece))
        start += piece
    return pieces


def load_row(writer: Writer, base: Value, start: int | Value, width: int) -> Value:
    """Load a vector of the `width` elements at byte `start` of a row, never reading past them."""
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
