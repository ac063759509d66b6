"""Output scheduling: when and how the outputs of a block of rows are written to the user's memory.

Outputs of a program that is one straight statement are *direct*: their lanes need no array of their own but
are read from where the arithmetic left them, duplicates and constants once each. A piece of a row is one
vector.

    small rows    all pieces are written after the arithmetic
    large rows    pieces of one constant (structural zeros) are stored, and the memory of the others is
                  prefetched, interleaved with the arithmetic
    streamed      large rows of whole cache lines in a batch that no cache can hold: non-temporal stores,
    which
                  save reading the memory first
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, final

from dalembert.codegen.ir import Value, Writer
from dalembert.codegen.memory import Layout
from dalembert.codegen.row_blocks import LARGE_ROW, RowBlocks, Source
from dalembert.codegen.rows import chunks
from dalembert.codegen.target import Target
from dalembert.tracing.program import ArraySpec, Program, Straight

__all__ = ["OutputScheduler"]

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
        self, program: Program, writer: Writer, target: Target, layout: Layout, *, at_once: bool = True
    ) -> None:
        self.program = program
        self.writer = writer
        self.type = writer.type
        single = program.statements[0] if len(program.statements) == 1 else None
        self.stores = single.stores if isinstance(single, Straight) else ()
        direct = at_once and isinstance(single, Straight) and self.type.lanes > 1
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
        """Store constants in lanes before all blocks; stream if the caller asks for it and rows are
        aligned."""
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
        hint = writer.let(f"load i64, ptr {writer.address('%scratch', self.hint)}, align 8")
        self.stream = writer.let(f"and i1 {aligned}, {writer.let(f'icmp ne i64 {hint}, 0')}")

    def begin(self, blocks: RowBlocks, first: Mapping[str, Value]) -> None:
        """Find, at the start of a block, the rows and the work that can be interleaved with the arithmetic.

        Constant pieces of small rows are stored after the arithmetic: a store that waits for memory stalls
        all stores behind it.
        """
        program = self.program
        if self.type.lanes == 1:
            return
        known = {
            (store.array, store.position): store.value.data if store.value.op == "constant" else None
            for store in self.stores
        }
        for number, spec in enumerate(program.outputs, len(program.inputs)):
            rows = blocks.pointers(number, first[spec.name]) if spec.size else []
            self.rows[spec.name] = rows
            if spec.name not in self.direct:
                self.pieces[spec.name] = chunks(spec.size, self.type.lanes)
                continue
            if spec.size > MAX_INTERLEAVED_PIECES * self.type.lanes:
                self.pieces[spec.name] = chunks(spec.size, self.type.lanes)
                continue
            constants = [known.get((spec.name, k), 0.0) for k in range(spec.size)]
            tasks, self.pieces[spec.name] = blocks.interleaved_work(rows, constants, self._condition(spec))
            (self.interleaved if self._is_large(spec) else self.late).extend(tasks)

    def finish(
        self, blocks: RowBlocks, found: Mapping[tuple[str, int], Source], offsets: Mapping[str, int]
    ) -> None:
        """Write all other pieces at the end of a block; `found` gives the sources of direct outputs."""
        for task in self.late:
            task()
        for spec in self.program.outputs:
            if spec.name in self.direct:
                sources = [self._source(found.get((spec.name, k))) for k in range(spec.size)]
            else:
                sources = [Source(offsets[spec.name] + k * self.type.size) for k in range(spec.size)]
            blocks.write(
                self.rows[spec.name], self.pieces[spec.name], sources, "%scratch", self._condition(spec)
            )

    def fence(self) -> None:
        """Write a store fence after all blocks, since nothing else orders non-temporal stores."""
        if self.streamed:
            self.writer.declared.add("declare void @llvm.x86.sse.sfence()")
            self.writer.line("call void @llvm.x86.sse.sfence()")

    def _condition(self, spec: ArraySpec) -> Value | None:
        return self.stream if spec.name in self.streamed else None

    def _source(self, found: Source | None) -> Source:
        number = 0.0 if found is None else found.constant
        if found is not None and number is None:
            return found
        return Source(self.constants[number or 0.0], number)
