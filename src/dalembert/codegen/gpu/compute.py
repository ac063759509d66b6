"""The phase of a kernel in which each thread does the arithmetic of its sample, or of one step of it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final, final

from dalembert.codegen.body import emit_instructions
from dalembert.codegen.context import Context
from dalembert.codegen.gpu.arrays import Arrays
from dalembert.codegen.gpu.layout import Layout
from dalembert.codegen.gpu.single import call
from dalembert.codegen.gpu.slots import ThreadSlots
from dalembert.codegen.ir import Value, Writer
from dalembert.codegen.loops import emit_loop
from dalembert.codegen.memory import Place, zero_runs
from dalembert.codegen.rollout import Rollout
from dalembert.codegen.schedule import Instructions
from dalembert.codegen.straight import emit_straight
from dalembert.tracing.program import ArraySpec, Program, Straight

__all__ = ["Compute"]

NEVER: Final = "never"
"""The block that ends the phase if a condition fails that always holds."""

UNBOUNDED: Final = 1_000_000
"""Registers to plan with where the assembler is to spill."""


@final
class Compute:
    """Writes the phase; then `lines`, the functions they call, and the length of a sample's shared row.

    `zeroed` are results whose rows another phase has filled with zeros. `refused_step` names the place of a
    row's refused step, in a rollout.
    """

    def __init__(
        self,
        program: Program,
        rollout: Rollout | None,
        arrays: Arrays,
        layout: Layout,
        writer: Writer,
        *,
        zeroed: Collection[str],
    ) -> None:
        self.program = program
        self.rollout = rollout
        self.arrays = arrays
        self.layout = layout
        self.writer = writer
        self.zeroed = zeroed
        self.slots = ThreadSlots(writer.type, arrays.inputs_end, arrays.width)
        self.context = Context(
            writer=writer,
            places={},
            table_base="%tables",
            table_offsets=arrays.tables.offsets,
            table_lengths={name: len(table) for name, table in program.tables.items()},
            registers=layout.values or UNBOUNDED,
            spills=self.slots,
            proceed=("%nonempty", NEVER),
            call=call,
            calls=False,
            taken=arrays.inputs_end,
        )
        opening = len(writer.lines)
        self._write()
        added = self.slots.place(self.context.slots, arrays.most)
        self.pitch = (arrays.width + added) | 1 if arrays.width + added else 0
        start = [
            *arrays.local_memory(),
            *self.slots.opening(),
            "%mine.row = zext i32 %thread to i64",
            f"%mine.at = mul i64 %mine.row, {self.pitch * writer.type.size}",
            "%mine = getelementptr i8, ptr %shared, i64 %mine.at",
        ]
        self.lines = [*writer.lines[:opening], *start, *self.slots.resolved(writer.lines[opening:])]
        self.functions = self.context.functions

    def _write(self) -> None:
        writer, context = self.writer, self.context
        writer.line("%nonempty = icmp sgt i64 %rows, 0")
        writer.line("%inside = icmp ult i32 %thread, %count")
        writer.line("%own = select i1 %inside, i32 %thread, i32 %count.last")
        writer.line("%own.wide = zext i32 %own to i64")
        writer.line("%row = add i64 %first, %own.wide")
        context.places = self.arrays.places(writer)
        self._check()
        self._clear()
        context.homes = self._homes
        barriers = [lambda: writer.line("call void @pace()")] * self.layout.barriers
        for statement in self.program.statements:
            if isinstance(statement, Straight):
                emit_straight(
                    context,
                    self._without_zeros(statement),
                    delivered=frozenset(),
                    offsets={},
                    spill_offset=0,
                    meanwhile=barriers if len(self.program.statements) == 1 else (),
                )
            else:
                emit_loop(context, self.program, statement)
        self._carry()
        writer.line("ret void")
        writer.begin(NEVER)
        writer.line("ret void")

    def _homes(self, instructions: Instructions) -> dict[int, int]:
        """Slots of staged inputs, whose columns are free after their last use."""
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

    def _without_zeros(self, statement: Straight) -> Straight:
        """Leave out the zeros that another phase has written."""
        return Straight(
            tuple(
                store
                for store in statement.stores
                if not (
                    store.array in self.zeroed and store.value.op == "constant" and store.value.data == 0.0
                )
            )
        )

    def _check(self) -> None:
        """Note the row if it is refused. It is computed all the same."""
        writer, context, check = self.writer, self.context, self.program.check
        if check is None:
            return
        instructions = context.schedule([check])
        data = instructions.data
        values = emit_instructions(
            writer,
            instructions,
            context.plan(instructions),
            fetch=lambda node: context.places[data[node][0]].load(writer, data[node][1]),
            computed=lambda node, value: None,
            spills=context.spills,
            proceed=context.proceed,
            look_up=context.look_up,
            call=context.call,
        )
        refused, accepted = writer.label(), writer.label()
        writer.line(f"br i1 {values[instructions.roots[0]]}, label %{refused}, label %{accepted}")
        writer.begin(refused)
        if self.rollout is None:
            writer.let("atomicrmw umin ptr %refused, i64 %row monotonic, align 8")
        else:
            place = f"%out{len(self.program.outputs) + len(self.rollout.carried)}"
            at = writer.address(place, writer.let(f"mul i64 %row, {place}.stride"))
            old = writer.let(f"load i64, ptr {at}, align 8")
            new = writer.let(f"select i1 {writer.let(f'icmp slt i64 {old}, 0')}, i64 %now, i64 {old}")
            writer.line(f"store i64 {new}, ptr {at}, align 8")
        writer.line(f"br label %{accepted}")
        writer.begin(accepted)

    def _clear(self) -> None:
        """Zero what is read or delivered without having been written."""
        for name, runs in zero_runs(self.program).items():
            if name in self.zeroed:
                continue
            for start, stop in runs if len(runs) <= 8 else [(runs[0][0], runs[-1][1])]:
                self._fill(self.context.places[name], start, stop)

    def _fill(self, place: Place, start: int, stop: int) -> None:
        writer = self.writer
        if stop - start <= 8:
            for position in range(start, stop):
                place.store(writer, writer.constant(0.0), position)
            return
        self._each(start, stop, lambda at: self._put(place, at, writer.constant(0.0)))

    def _put(self, place: Place, at: Value, value: Value) -> None:
        writer = self.writer
        writer.store(value, place.base, writer.let(f"mul i64 {at}, {place.item}"), place.align)

    def _each(self, start: int, stop: int, task: Callable[[Value], None]) -> None:
        """A loop over elements."""
        writer = self.writer
        before, head, after = (writer.label() for _ in range(3))
        at = f"%{head}.at"
        writer.line(f"br label %{before}")
        writer.begin(before)
        writer.line(f"br label %{head}")
        writer.begin(head)
        writer.line(f"{at} = phi i64 [ {start}, %{before} ], [ {at}.next, %{head} ]")
        task(at)
        writer.line(f"{at}.next = add i64 {at}, 1")
        more = writer.let(f"icmp ult i64 {at}.next, {stop}")
        writer.line(f"br i1 {more}, label %{head}, label %{after}")
        writer.begin(after)

    def _carry(self) -> None:
        """What the step gave becomes what the next one takes."""
        if self.rollout is None:
            return
        for name, number in self.rollout.carried:
            spec = self.program.outputs[number]
            self._copy(self.context.places[spec.name], self.context.places[name], spec)

    def _copy(self, source: Place, target: Place, spec: ArraySpec) -> None:
        writer = self.writer

        def move(at: Value) -> None:
            place = writer.let(f"mul i64 {at}, {source.item}")
            self._put(target, at, writer.load(source.base, place, source.align))

        if spec.size:
            self._each(0, spec.size, move)
