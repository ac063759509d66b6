"""The loop over steps inside a kernel (see `rollout`): one block of rows goes through all its steps.

Carried values stay in scratch memory, and so do the outputs of a step until they are delivered or carried.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

from dalembert.codegen.context import Context
from dalembert.codegen.delivery import OutputScheduler
from dalembert.codegen.ir import Value, Writer
from dalembert.codegen.memory import Layout, Place
from dalembert.codegen.rollout import Rollout
from dalembert.codegen.row_blocks import RowBlocks, Source
from dalembert.codegen.rows import chunks
from dalembert.tracing.program import ArraySpec, Program

__all__ = ["TimeLoop"]


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
