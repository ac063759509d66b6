"""The loop over steps inside a kernel (see `rollout`): one block of rows goes through all its steps.

Carried values stay in scratch memory, and so do the outputs of a step until they are delivered or carried.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, final

from dalembert.codegen.cpu.row_code import LARGE_ROW, RowBlocks, Source, chunks
from dalembert.codegen.ir import Value, Writer
from dalembert.codegen.memory import Layout, Place, Rollout
from dalembert.codegen.statement_code import Context
from dalembert.codegen.target import Target
from dalembert.tracing.program import ArraySpec, Program, Straight

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
#     which
#                   save reading the memory first

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


@final
class TimeLoop:
    """Code around one step. `begin`, the step's arithmetic, `end`; `refuse` in between.

    `held`: names of the arrays that need memory of their own even with one lane. `offsets` tells where all
    arrays in scratch memory are.
    """

    def __init__(self, program: Program, rollout: Rollout, writer: Writer, layout: Layout) -> None:
        rollout.check(program)
        self.program = program
        self.rollout = rollout
        self.writer = writer
        self.type = writer.type
        carried = {name for name, _ in rollout.carried}
        self.initial = tuple(spec for spec in program.inputs if spec.name in carried)
        self.held = (*self.initial, *program.outputs)
        self.more_outputs = rollout.more_outputs(program)
        self.refused = layout.reserve(8 * self.type.lanes)
        self.integers = "i64" if self.type.lanes == 1 else f"<{self.type.lanes} x i64>"
        self.first: Mapping[str, Value] = {}

    def begin(
        self,
        context: Context,
        blocks: RowBlocks,
        first: Mapping[str, Value],
        used: Mapping[str, set[int] | None],
    ) -> None:
        """Bring carried and constant inputs of a block into place, open the loop, bring the streams."""
        writer, lanes = self.writer, self.type.lanes
        self.first = first
        for number, spec in enumerate(self.program.inputs):
            if spec in self.initial and lanes == 1:
                self._copy(context.places[spec.name].base, first[spec.name], spec)
            elif spec.name not in self.rollout.streams and lanes > 1:
                needed = None if spec in self.initial else used[spec.name]
                blocks.read(number, first[spec.name], spec.size, context.places[spec.name].base, needed)
        self._store_refused(self._integer(-1))
        writer.line("br label %time.enter")
        writer.begin("time.enter")
        writer.line("br i1 %any.step, label %time.step, label %time.over")
        writer.begin("time.step")
        writer.line("%now = phi i64 [ 0, %time.enter ], [ %now.next, %time.again ]")
        writer.line("%wait = phi i64 [ %first, %time.enter ], [ %wait.next, %time.again ]")
        writer.line("%written = phi i64 [ 0, %time.enter ], [ %written.next, %time.again ]")
        for number, spec in enumerate(self.program.inputs):
            if spec.name not in self.rollout.streams:
                continue
            stride = self._stride("%input_steps", number)
            here = writer.address(first[spec.name], writer.let(f"mul i64 %now, {stride}"))
            if lanes == 1:
                context.places[spec.name] = Place(here, self.type.bits // 8, 1)
                continue
            blocks.read(number, here, spec.size, context.places[spec.name].base, used[spec.name])
            blocks.prefetch(number, writer.address(here, stride), spec.size)

    def refuse(self, condition: Value) -> None:
        """Record the step for the rows that are rejected for the first time."""
        writer, integers = self.writer, self.integers
        place = writer.address("%scratch", self.refused)
        old = writer.let(f"load {integers}, ptr {place}, align 8")
        untouched = writer.let(f"icmp slt {integers} {old}, {self._integer(0)}")
        new = writer.let(f"and {self.type.mask} {condition}, {untouched}")
        now = "%now"
        if self.type.lanes > 1:
            one = writer.let(f"insertelement {integers} poison, i64 %now, i32 0")
            zeros = f"<{self.type.lanes} x i32> zeroinitializer"
            now = writer.let(f"shufflevector {integers} {one}, {integers} poison, {zeros}")
        self._store_refused(writer.let(f"select {self.type.mask} {new}, {integers} {now}, {integers} {old}"))

    def end(
        self, context: Context, blocks: RowBlocks, scheduler: OutputScheduler, offsets: Mapping[str, int]
    ) -> None:
        """Write the outputs if they are due, carry, close the loop and write the final values."""
        writer, program = self.writer, self.program
        writer.line("%wait.less = sub i64 %wait, 1")
        writer.line("%due = icmp eq i64 %wait.less, 0")
        writer.line("br i1 %due, label %time.deliver, label %time.again")
        writer.begin("time.deliver")
        at = {
            spec.name: writer.address(
                self.first[spec.name],
                writer.let(f"mul i64 %written, {self._stride('%output_steps', number)}"),
            )
            for number, spec in enumerate(program.outputs)
        }
        if self.type.lanes == 1:
            for spec in program.outputs:
                self._copy(at[spec.name], context.places[spec.name].base, spec)
        else:
            scheduler.begin(blocks, at)
            scheduler.finish(blocks, {}, offsets)
        writer.line("br label %time.again")
        writer.begin("time.again")
        for name, number in self.rollout.carried:
            source = context.places[program.outputs[number].name].base
            self._copy(context.places[name].base, source, program.outputs[number])
        writer.line("%wait.next = select i1 %due, i64 %every, i64 %wait.less")
        writer.line("%written.more = zext i1 %due to i64")
        writer.line("%written.next = add i64 %written, %written.more")
        writer.line("%now.next = add i64 %now, 1")
        writer.line("%again = icmp slt i64 %now.next, %steps")
        writer.line("br i1 %again, label %time.step, label %time.over")
        writer.begin("time.over")
        self._deliver_finals(context, blocks, offsets)

    def _deliver_finals(self, context: Context, blocks: RowBlocks, offsets: Mapping[str, int]) -> None:
        writer, lanes = self.writer, self.type.lanes
        start = len(self.program.inputs) + len(self.program.outputs)
        for number, ((name, _), spec) in enumerate(zip(self.rollout.carried, self.more_outputs), start):
            target = self.first[spec.name]
            if lanes == 1:
                self._copy(target, context.places[name].base, spec)
                continue
            sources = [Source(offsets[name] + k * self.type.size) for k in range(spec.size)]
            rows = blocks.pointers(number, target)
            blocks.write(rows, chunks(spec.size, lanes), sources, "%scratch", None)
        target = self.first[self.more_outputs[-1].name]
        last = start + len(self.rollout.carried)
        rows = [target] if lanes == 1 else blocks.pointers(last, target)
        for lane, row in enumerate(rows):
            place = writer.address("%scratch", self.refused + 8 * lane)
            step = writer.let(f"load i64, ptr {place}, align 8")
            writer.line(f"store i64 {step}, ptr {row}, align 8")

    def _stride(self, table: Value, number: int) -> Value:
        return self.writer.let(f"load i64, ptr {self.writer.address(table, 8 * number)}, align 8")

    def _copy(self, target: Value, source: Value, spec: ArraySpec) -> None:
        if not spec.size:
            return
        self.writer.declared.add("declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)")
        size = spec.size * self.type.size
        self.writer.line(
            f"call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr {source}, i64 {size}, i1 false)"
        )

    def _integer(self, number: int) -> Value:
        return str(number) if self.type.lanes == 1 else f"splat (i64 {number})"

    def _store_refused(self, value: Value) -> None:
        place = self.writer.address("%scratch", self.refused)
        self.writer.line(f"store {self.integers} {value}, ptr {place}, align 8")
