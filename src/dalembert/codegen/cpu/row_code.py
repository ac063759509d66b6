"""Transposition of blocks of rows into lanes and back, inside a kernel.

The distances of the rows of a block from its first stand in a table in scratch memory, written once for
full blocks and again for the last block of a batch, whose missing rows repeat the last one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, final

from dalembert.codegen.ir import LaneType, Value, Writer
from dalembert.codegen.memory import Layout, only_straight
from dalembert.codegen.target import Target
from dalembert.tracing.program import ArraySpec, Program

# Transposition between rows in the user's memory and lanes in registers.
#
# A block is `lanes` rows. Rows are read as contiguous vectors and turned by shuffles, so that a register
# holds one scalar of all the samples; results are turned back and stored as rows. Rows past the end of a
# batch repeat the last row: they read and write what the last row reads and writes, with the same bits, so
# that nothing out of bounds is ever touched.

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


def load_columns(writer: Writer, rows: list[Value], start: int | Value, width: int) -> list[Value]:
    """Load `width` columns at byte `start` of `lanes` rows.

    Vectors wider than 128 bits are put together from halves of two rows as they are loaded, which costs the
    loading units and saves a third of the shuffles: those compete with the arithmetic.
    """
    whole = writer.type
    lanes, inner = whole.lanes, min(whole.lanes, 128 // whole.bits)
    if width < lanes or lanes == inner or lanes // inner > 4:
        return transpose(writer, [load_row(writer, row, start, width) for row in rows])
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


INLINE_CHUNKS: Final = 4
"""Rows of more vectors than this are transposed by a loop: the instruction cache is the scarcer resource."""


CACHE_LINE: Final = 64
"""[bytes]"""

LARGE_ROW: Final = 1024
"""[bytes] Output rows of this size and more are bound by memory bandwidth: their pieces are written or
prefetched interleaved with the arithmetic."""


@final
@dataclass(frozen=True, slots=True)
class Source:
    """The source of the lanes of one output element: an offset in scratch memory, or one constant."""

    offset: int
    constant: float | None = None


@final
class RowBlocks:
    """Code for the blocks of rows of one kernel; %distances is the table of distances.

    `stream`, where not None, is a condition: write past the caches, for which the rows are aligned.
    """

    def __init__(self, writer: Writer, globals_: list[str]) -> None:
        self.writer = writer
        self.globals = globals_
        self.lanes = writer.type.lanes
        self.item = writer.type.bits // 8

    def pointers(self, array: int, base: Value) -> list[Value]:
        """Load the addresses of the rows of array number `array`, whose first row is at `base`."""
        writer, first = self.writer, array * self.lanes
        return [
            writer.address(base, writer.read("i64", "%distances", (first + lane) * 8))
            for lane in range(self.lanes)
        ]

    def read(self, array: int, base: Value, size: int, scratch: Value, used: set[int] | None) -> None:
        """Transpose `size` elements of every row, of which `used` are needed, into lanes at `scratch`."""
        pieces = chunks(size, self.lanes)
        if len(pieces) <= INLINE_CHUNKS and used is not None:
            pieces = [piece for piece in pieces if used & set(range(piece[0], piece[0] + piece[1]))]
        if not pieces:
            return
        rows = self.pointers(array, base)
        if len(pieces) > INLINE_CHUNKS:
            full = size // self.lanes
            with self.writer.loop(full, tail=False) as (counter, *_):
                column = self.writer.let(f"mul i64 {counter}, {self.lanes * self.item}")
                target = self.writer.let(f"mul i64 {counter}, {self.lanes * self.writer.type.size}")
                self._read_piece(rows, column, self.lanes, self.writer.address(scratch, target))
            pieces = pieces[full:]
        for start, width in pieces:
            self._read_piece(
                rows, start * self.item, width, self.writer.address(scratch, start * self.writer.type.size)
            )

    def prefetch(self, array: int, base: Value, size: int, stride: Value, blocks: int = 1) -> None:
        """Prefetch the rows that are `blocks` strides ahead, while these are computed, unless they are large.

        A block touches a few lines of each of many rows, which the processor's own prefetching follows
        poorly once a batch is larger than the caches. It is harmless beyond the end of the array.
        """
        if size * self.item > LARGE_ROW:
            return
        ahead = stride if blocks == 1 else self.writer.let(f"mul i64 {stride}, {blocks}")
        rows = self.pointers(array, self.writer.address(base, ahead))
        self._prefetch_lines([(row, at) for row in rows for at in range(0, size * self.item, CACHE_LINE)], 0)

    def _prefetch_lines(self, places: Sequence[tuple[Value, int]], for_writing: int) -> None:
        writer = self.writer
        writer.declared.add("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
        for row, at in places:
            place = writer.address(row, at)
            writer.line(f"call void @llvm.prefetch.p0(ptr {place}, i32 {for_writing}, i32 3, i32 1)")

    def _read_piece(self, rows: list[Value], start: int | Value, width: int, target: Value) -> None:
        writer = self.writer
        for k, vector in enumerate(load_columns(writer, rows, start, width)[:width]):
            writer.store(vector, target, k * writer.type.size, writer.type.align)

    def interleaved_work(
        self, rows: list[Value], constants: Sequence[float | None], stream: Value | None
    ) -> tuple[list[Callable[[], None]], list[tuple[int, int]]]:
        """Return the work on an output that needs none of its values, and the pieces that remain.

        `constants` gives the elements that are constants: pieces of one constant are stored. For large rows
        the memory of the other pieces is prefetched, so that later stores do not wait, unless non-temporal
        stores write it.
        """
        tasks: list[Callable[[], None]] = []
        left = []
        for start, width in chunks(len(constants), self.lanes):
            number = constants[start]
            if number is not None and set(constants[start : start + width]) == {number}:
                tasks.append(partial(self._store_constant, rows, start, width, number, stream))
            else:
                left.append((start, width))
                if len(constants) * self.item >= LARGE_ROW:
                    tasks.append(partial(self._prefetch, rows, start, stream))
        return tasks, left

    def _store_constant(
        self, rows: list[Value], start: int, width: int, number: float, stream: Value | None
    ) -> None:
        for past_caches in self._both_ways(stream):
            for row in rows:
                value = self.writer.constant(number)
                self._store(value, row, start * self.item, width, past_caches=past_caches)

    def _both_ways(self, stream: Value | None) -> Iterator[bool]:
        """Yield while code is written for stores past the caches (True), and through them (False)."""
        if stream is None:
            yield False
            return
        past, through, after = (self.writer.label() for _ in range(3))
        self.writer.branch(stream, past, through)
        for label in (past, through):
            self.writer.begin(label)
            yield label == past
            self.writer.jump(after)
        self.writer.begin(after)

    def _prefetch(self, rows: list[Value], start: int, stream: Value | None) -> None:
        places = [(row, start * self.item) for row in rows]
        after = self.writer.label()
        if stream is not None:
            self.writer.leave(stream, after)
        self._prefetch_lines(places, 1)
        if stream is not None:
            self.writer.enter(after)

    def _store(self, value: Value, row: Value, start: int | Value, width: int, *, past_caches: bool) -> None:
        """Store `width` elements; past the caches they must be a whole vector, and aligned."""
        if past_caches:
            place = self.writer.address(row, start)
            self.writer.line(f"store {self.writer.type.text} {value}, ptr {place}, align 64, !nontemporal !1")
        else:
            store_row(self.writer, value, row, start, width)

    def write(
        self,
        rows: list[Value],
        general: list[tuple[int, int]],
        sources: Sequence[Source],
        stream: Value | None = None,
    ) -> None:
        """Write the pieces `general` of an output: element k comes from the lanes of `sources[k]`."""
        writer = self.writer
        if len(general) > (INLINE_CHUNKS if stream is None else 0):
            for past_caches in self._both_ways(stream):
                self._write_loop(rows, [start for start, _ in general], sources, past_caches=past_caches)
            return
        for start, width in general:
            vectors = [
                writer.load("%scratch", source.offset, writer.type.align)
                if source.constant is None
                else writer.constant(source.constant)
                for source in sources[start : start + width]
            ]
            vectors += ["poison"] * (self.lanes - width)
            for row, vector in zip(rows, transpose(writer, vectors)):
                store_row(writer, vector, row, start * self.item, width)

    def _write_loop(
        self, rows: list[Value], starts: list[int], sources: Sequence[Source], *, past_caches: bool
    ) -> None:
        """Write pieces in a loop over a table with the position and the lane offsets of each piece."""
        writer = self.writer
        entries = []
        for start in starts:
            entries.append(start * self.item)
            entries.extend(source.offset for source in sources[start : start + self.lanes])
        name = f"@pieces{len(self.globals)}"
        numbers = ", ".join(f"i32 {entry}" for entry in entries)
        self.globals.append(f"{name} = private constant [{len(entries)} x i32] [{numbers}], align 64")
        with writer.loop(len(starts), tail=False) as (counter, *_):
            entry = writer.address(name, writer.let(f"mul i64 {counter}, {4 * (self.lanes + 1)}"))
            offsets = [
                writer.let(f"zext i32 {writer.read('i32', entry, 4 * k, 4)} to i64")
                for k in range(self.lanes + 1)
            ]
            vectors = [writer.load("%scratch", offset, writer.type.align) for offset in offsets[1:]]
            for row, vector in zip(rows, transpose(writer, vectors)):
                self._store(vector, row, offsets[0], self.lanes, past_caches=past_caches)


ROW_DISTANCES: Final = """
define internal void @row_distances(
  ptr %strides, ptr %table, i64 %arrays, i64 %last, ptr %order
) ATTRIBUTES {
entry:
  br label %array
array:
  %a = phi i64 [ 0, %entry ], [ %a.next, %done ]
  %from = getelementptr i64, ptr %strides, i64 %a
  %stride = load i64, ptr %from, align 8
  %first = mul i64 %a, LANES
  br label %lane
lane:
  %k = phi i64 [ 0, %array ], [ %k.next, %lane ]
  %inside = icmp slt i64 %k, %last
  %own = select i1 %inside, i64 %k, i64 %last
ROW
  %distance = mul i64 %row, %stride
  %place = add i64 %first, %k
  %to = getelementptr i64, ptr %table, i64 %place
  store i64 %distance, ptr %to, align 8
  %k.next = add i64 %k, 1
  %more = icmp slt i64 %k.next, LANES
  br i1 %more, label %lane, label %done
done:
  %a.next = add i64 %a, 1
  %again = icmp slt i64 %a.next, %arrays
  br i1 %again, label %array, label %exit
exit:
  ret void
}
"""
"""The distances of rows 0 … LANES - 1, none beyond `last`, for each of `arrays` strides; ROW is one of the
following two."""

ROW_IN_PLACE: Final = "  %row = add i64 %own, 0"

ROW_BY_ORDER: Final = """\
  %at = getelementptr i64, ptr %order, i64 %own
  %farther = load i64, ptr %at, align 8
  %row = add i64 %own, %farther"""


# Output scheduling: when and how the outputs of a block of rows are written to the user's memory.
#
# Outputs of a program that is one straight statement are *direct*: their lanes need no array of their own but
# are read from where the arithmetic left them, duplicates and constants once each. A piece of a row is one
# vector.
#
#     small rows    all pieces are written after the arithmetic
#     large rows    pieces of one constant (structural zeros) are stored, and the memory of the others is
#                   prefetched, interleaved with the arithmetic
#     streamed      large rows of whole cache lines in a batch that no cache can hold: non-temporal stores,
#                   which save reading the memory first

MAX_INTERLEAVED_PIECES: Final = 10_000
"""Pieces of an output row, at most, that get code interleaved with the arithmetic; all pieces of a longer row
are written by a loop at the end, so that the code does not grow with the row."""

Task = Callable[[], None]


@final
class OutputScheduler:
    """The scheduler of the outputs of one kernel; a kernel of one lane stores where it computes instead.

    `direct`: names of the outputs without an array of their own. `streamed_bytes`: bytes of a row that may be
    written by non-temporal stores. `at_once`: every block is written as soon as it is computed.
    `interleaved`: work to spread over the arithmetic.
    """

    def __init__(
        self, program: Program, blocks: RowBlocks, target: Target, layout: Layout, *, at_once: bool
    ) -> None:
        self.program = program
        self.blocks = blocks
        self.writer = blocks.writer
        self.type = blocks.writer.type
        single = only_straight(program)
        self.stores = single.stores if single else ()
        direct = at_once and single is not None and self.type.lanes > 1
        self.direct = frozenset(spec.name for spec in program.outputs if direct)
        whole_lines = direct and self.type.size == 64 and target.level == "avx512"
        self.streamed = frozenset(
            spec.name
            for spec in program.outputs
            if whole_lines and self._is_large(spec) and spec.size % self.type.lanes == 0
        )
        self.streamed_bytes = sum(
            spec.size * self.type.bits // 8 for spec in program.outputs if spec.name in self.streamed
        )
        self.hint = layout.reserve(8 if self.streamed else 0)
        numbers = {store.value.data for store in self.stores if store.value.op == "constant"} | {0.0}
        self.constants = {number: layout.reserve(self.type.size) for number in sorted(numbers) if direct}
        self.stream: Value | None = None
        self.rows: dict[str, list[Value]] = {}
        self.pieces: dict[str, list[tuple[int, int]]] = {}
        self.interleaved: list[Task] = []
        self.late: list[Task] = []

    def _is_large(self, spec: ArraySpec) -> bool:
        return spec.size * self.type.bits // 8 >= LARGE_ROW

    def prepare(self, pointer: Mapping[str, Value], stride: Mapping[str, Value]) -> None:
        """Store constants before all blocks; stream if the caller asks for it and rows are aligned."""
        writer = self.writer
        for number, offset in self.constants.items():
            writer.store(writer.constant(number), "%scratch", offset, self.type.align)
        if not self.streamed:
            return
        together = "0"
        for name in sorted(self.streamed):
            number = writer.let(f"ptrtoint ptr {pointer[name]} to i64")
            together = writer.let(f"or i64 {together}, {writer.let(f'or i64 {number}, {stride[name]}')}")
        aligned = writer.let(f"icmp eq i64 {writer.let(f'and i64 {together}, 63')}, 0")
        hint = writer.read("i64", "%scratch", self.hint)
        self.stream = writer.let(f"and i1 {aligned}, {writer.let(f'icmp ne i64 {hint}, 0')}")

    def begin(self, first: Mapping[str, Value]) -> None:
        """Find, at the start of a block, the rows and the work that can be interleaved with the arithmetic.

        Constant pieces of small rows are stored after the arithmetic: a store that waits for memory stalls
        all stores behind it.
        """
        program, blocks = self.program, self.blocks
        if self.type.lanes == 1:
            return
        known = {
            (store.array, store.position): store.value.data if store.value.op == "constant" else None
            for store in self.stores
        }
        for number, spec in enumerate(program.outputs, len(program.inputs)):
            rows = blocks.pointers(number, first[spec.name]) if spec.size else []
            self.rows[spec.name] = rows
            if spec.name not in self.direct or spec.size > MAX_INTERLEAVED_PIECES * self.type.lanes:
                self.pieces[spec.name] = chunks(spec.size, self.type.lanes)
                continue
            constants = [known.get((spec.name, k), 0.0) for k in range(spec.size)]
            tasks, self.pieces[spec.name] = blocks.interleaved_work(rows, constants, self._condition(spec))
            (self.interleaved if self._is_large(spec) else self.late).extend(tasks)

    def finish(self, found: Mapping[tuple[str, int], Source], offsets: Mapping[str, int]) -> None:
        """Write all other pieces at the end of a block; `found` gives the sources of direct outputs."""
        for task in self.late:
            task()
        for spec in self.program.outputs:
            lanes = [Source(offsets.get(spec.name, 0) + k * self.type.size) for k in range(spec.size)]
            if spec.name in self.direct:
                lanes = [found.get((spec.name, k), Source(-1, 0.0)) for k in range(spec.size)]
            sources = [
                lane if lane.constant is None else Source(self.constants[lane.constant], lane.constant)
                for lane in lanes
            ]
            self.blocks.write(self.rows[spec.name], self.pieces[spec.name], sources, self._condition(spec))

    def fence(self) -> None:
        """Write a store fence after all blocks, since nothing else orders non-temporal stores."""
        if self.streamed:
            self.writer.declared.add("declare void @llvm.x86.sse.sfence()")
            self.writer.line("call void @llvm.x86.sse.sfence()")

    def _condition(self, spec: ArraySpec) -> Value | None:
        return self.stream if spec.name in self.streamed else None
