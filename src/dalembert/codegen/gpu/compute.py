"""The phase of a kernel in which each thread does the arithmetic of its sample, or of one step of it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
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
from dalembert.codegen.row_blocks import Source
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

    `zeroed` are results whose rows another phase has filled with zeros. `gathered` gives the column of shared
    memory that holds each element of the result to be gathered.
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
        self.gathered: dict[int, int] = {}
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
        self.slots.count = max(self.slots.count, self.context.slots)
        columns = self.slots.place(arrays.most)
        self.pitch = columns | 1 if columns else 0
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
                gathered = self.arrays.gathered
                sources = emit_straight(
                    context,
                    self._without_zeros(statement),
                    delivered=frozenset() if gathered is None else frozenset({gathered}),
                    offsets={},
                    spill_offset=0,
                    meanwhile=barriers if len(self.program.statements) == 1 else (),
                )
                if gathered is not None:
                    self._gather(gathered, sources)
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
            if name == self.arrays.gathered:
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

    def _gather(self, name: str, sources: Mapping[tuple[str, int], Source]) -> None:
        """Note where each element of a result is; constants get columns, zero that of what is not stored."""
        writer, size = self.writer, self.writer.type.size
        slots = {place: source.offset // size for place, source in sources.items() if source.constant is None}
        self.slots.keep(set(slots.values()))
        constants = {0.0: self.slots.constant(writer, 0.0)}
        (spec,) = [spec for spec in self.program.outputs if spec.name == name]
        for position in range(spec.size):
            place = (name, position)
            if place in slots:
                self.gathered[position] = self.slots.kept_column(slots[place])
                continue
            number = (sources[place].constant or 0.0) if place in sources else 0.0
            if number not in constants:
                constants[number] = self.slots.constant(writer, number)
            self.gathered[position] = constants[number]

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
