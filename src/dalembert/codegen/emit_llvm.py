"""A program as the text of one LLVM function over a batch of rows.

    int64 kernel(ptr *inputs, int64 *input_strides, ptr *outputs, int64 *output_strides, int64 rows,
                 ptr tables, ptr scratch)

Strides are those between rows, in bytes: any, 0 to repeat one row; the elements of a row are adjacent. The result is the
first row for which the program's check holds, or -1. Outputs must not overlap inputs. `tables` holds the program's
tables; `scratch` is memory of this call alone, aligned to 64 bytes. `Emitted` tells the size of both.

With one lane, inputs and outputs are used where they lie. With more, a block of rows is turned into lanes in scratch memory,
the statements run on that, and the outputs are turned back (`row_blocks.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, final

from dalembert.codegen.body import emit_instructions
from dalembert.codegen.context import Context
from dalembert.codegen.elementary import definition
from dalembert.codegen.ir import LaneType, Value, Writer
from dalembert.codegen.loops import emit_loop
from dalembert.codegen.memory import Layout, Place, Tables, zero_runs
from dalembert.codegen.row_blocks import LARGE_ROW, RowBlocks, Source
from dalembert.codegen.rows import chunks
from dalembert.codegen.straight import emit_straight
from dalembert.codegen.target import Target
from dalembert.tracing.expression import live
from dalembert.tracing.program import ArraySpec, Loop, Program, Straight

__all__ = ["KERNEL_NAME", "Emitted", "emit_program"]

KERNEL_NAME: Final = "dalembert_kernel"

Tasks = list[Callable[[], None]]


@final
@dataclass(frozen=True, slots=True)
class Emitted:
    """The text of a module, the memory a call needs, and the bytes of the program's tables."""

    text: str
    scratch_bytes: int
    tables: bytes
    work: int
    streamed_bytes: int


def emit_program(program: Program, *, bits: int, lanes: int, target: Target) -> Emitted:
    """Write the kernel of a program for `lanes` samples at once, in numbers of `bits` bits."""
    return _Kernel(program, LaneType(bits, lanes), target).emit()


@final
class _Kernel:
    def __init__(self, program: Program, lane_type: LaneType, target: Target) -> None:
        self.program = program
        self.type = lane_type
        self.target = target
        self.declared: set[str] = set()
        self.globals: list[str] = []
        self.writer = Writer(lane_type, fma=target.fma, declared=self.declared)
        self.tables = Tables(program, lane_type.bits)
        self.layout = Layout()
        self.offsets: dict[str, int] = {}
        self.delivered: frozenset[str] = frozenset()
        self._lay_out()

    def _lay_out(self) -> None:
        """Reserve scratch memory. Outputs of a single straight statement need no array of their own."""
        program, size = self.program, self.type.size
        self.streamed = self._streamed_outputs()
        self.hint = self.layout.reserve(8 if self.streamed else 0)
        self.distances = self.layout.reserve(0)
        arrays: list[ArraySpec] = list(program.states)
        if self.type.lanes > 1:
            count = len(program.inputs) + len(program.outputs)
            self.distances = self.layout.reserve(8 * self.type.lanes * count)
            arrays += program.inputs
            if len(program.statements) == 1 and isinstance(program.statements[0], Straight):
                self.delivered = frozenset(spec.name for spec in program.outputs)
            else:
                arrays += program.outputs
        for spec in arrays:
            self.offsets[spec.name] = self.layout.reserve(spec.size * size)
        constants = {
            store.value.data
            for statement in program.statements
            if isinstance(statement, Straight)
            for store in statement.stores
            if store.value.op == "constant" and store.array in self.delivered
        } | ({0.0} if self.delivered else set())
        self.constants = {number: self.layout.reserve(size) for number in sorted(constants)}
        self.spill_offset = self.layout.size

    def emit(self) -> Emitted:
        writer, program = self.writer, self.program
        pointer, stride = self._arguments()
        writer.line("%nonempty = icmp sgt i64 %rows, 0")
        writer.line("br i1 %nonempty, label %start, label %empty")
        writer.begin("empty")
        writer.line("ret i64 -1")
        writer.begin("never")
        writer.line("ret i64 -2")
        writer.begin("start")
        places = self._places()
        if self.type.lanes > 1:
            writer.line(f"%distances = getelementptr i8, ptr %scratch, i64 {self.distances}")
            self._row_distances(str(self.type.lanes - 1))
            for number, offset in self.constants.items():
                writer.store(writer.constant(number), "%scratch", offset, self.type.align)
        spills = writer.address("%scratch", self.spill_offset)
        stream = self._stream_condition(pointer, stride)
        writer.line("br label %head")
        writer.begin("head")
        writer.line("%row = phi i64 [ 0, %start ], [ %row.next, %tail ]")
        writer.line("%refused = phi i64 [ -1, %start ], [ %refused.next, %tail ]")
        if self.type.lanes > 1:
            writer.line("%last = sub i64 %rows.last, %row")
            writer.line(f"%partial = icmp slt i64 %last, {self.type.lanes - 1}")
            writer.line("br i1 %partial, label %shorten, label %block")
            writer.begin("shorten")
            self._row_distances("%last")
            writer.line("br label %block")
            writer.begin("block")
        first = {
            name: writer.address(base, writer.let(f"mul i64 %row, {stride[name]}"))
            for name, base in pointer.items()
        }
        if self.type.lanes == 1:
            item = self.type.bits // 8
            places.update({name: Place(base, item, 1) for name, base in first.items()})
        context = Context(
            writer,
            places,
            "%tables",
            self.tables.offsets,
            self.target.registers,
            spills,
            ("%nonempty", "never"),
        )
        blocks = RowBlocks(writer, "%distances", self.globals)
        if self.type.lanes > 1:
            used = self._used_inputs()
            for number, spec in enumerate(program.inputs):
                blocks.read(number, first[spec.name], spec.size, places[spec.name].base, used[spec.name])
        self._check(context)
        self._clear(places)
        rows, tasks, late, pieces = self._outputs(blocks, first, stream)
        sources: dict[tuple[str, int], Source] = {}
        for statement in program.statements:
            if isinstance(statement, Straight):
                sources = emit_straight(
                    context,
                    statement,
                    delivered=self.delivered,
                    offsets=self.offsets if self.type.lanes > 1 else {},
                    spill_offset=self.spill_offset,
                    meanwhile=tasks,
                )
            else:
                emit_loop(context, program, statement)
        if self.type.lanes > 1:
            for task in late:
                task()
            for spec in program.outputs:
                blocks.write(
                    rows[spec.name],
                    pieces[spec.name],
                    self._sources(spec, sources),
                    "%scratch",
                    stream if spec.name in self.streamed else None,
                )
        writer.line("br label %tail")
        writer.begin("tail")
        writer.line(f"%row.next = add i64 %row, {self.type.lanes}")
        writer.line("%more = icmp slt i64 %row.next, %rows")
        writer.line("br i1 %more, label %head, label %end")
        writer.begin("end")
        if self.streamed:  # stores past the caches are ordered by nothing else
            self.declared.add("declare void @llvm.x86.sse.sfence()")
            writer.line("call void @llvm.x86.sse.sfence()")
        writer.line("ret i64 %refused.next")
        self.layout.reserve(context.slots * self.type.size)
        return Emitted(
            self._module(context.functions),
            self.layout.size,
            self.tables.data,
            self._work(),
            sum(spec.size * self.type.bits // 8 for spec in program.outputs if spec.name in self.streamed),
        )

    def _arguments(self) -> tuple[dict[str, Value], dict[str, Value]]:
        """Load base addresses and row strides of all arrays."""
        writer, pointer, stride = self.writer, {}, {}
        writer.begin("entry")
        for side, specs in (("input", self.program.inputs), ("output", self.program.outputs)):
            for k, spec in enumerate(specs):
                place = writer.address(f"%{side}s", 8 * k)
                pointer[spec.name] = writer.let(f"load ptr, ptr {place}, align 8")
                place = writer.address(f"%{side}_strides", 8 * k)
                stride[spec.name] = writer.let(f"load i64, ptr {place}, align 8")
        writer.line("%rows.last = sub i64 %rows, 1")
        return pointer, stride

    def _places(self) -> dict[str, Place]:
        writer, item = self.writer, self.type.bits // 8
        places = {
            name: Place(writer.address("%scratch", offset), self.type.size, self.type.align)
            for name, offset in self.offsets.items()
        }
        for name, table in self.program.tables.items():
            if table.dtype.kind == "f":
                base = writer.address("%tables", self.tables.offsets[name])
                places[name] = Place(base, item, item, uniform=True)
        return places

    def _row_distances(self, last: Value) -> None:
        lanes = self.type.lanes
        at = 0
        for side, specs in (("input", self.program.inputs), ("output", self.program.outputs)):
            if specs:
                place = self.writer.address("%distances", at * lanes * 8)
                self.writer.line(
                    f"call void @row_distances(ptr %{side}_strides, ptr {place}, i64 {len(specs)}, i64 {last})"
                )
            at += len(specs)

    def _used_inputs(self) -> dict[str, set[int] | None]:
        """Positions of inputs that straight-line code reads; all (None) where a loop may index them."""
        if not self.delivered:
            return dict.fromkeys(spec.name for spec in self.program.inputs)
        used: dict[str, set[int] | None] = {spec.name: set() for spec in self.program.inputs}
        roots = [
            value for item in self.program.statements if isinstance(item, Straight) for value in item.values
        ]
        for node in live([*roots, *([self.program.check] if self.program.check is not None else [])]):
            if node.op in ("input", "load"):
                array, position = node.data if node.op == "input" else (node.data.array, node.data.offset)
                positions = used.get(array)
                if positions is not None:
                    positions.add(position)
        return used

    def _check(self, context: Context) -> None:
        """Remember the first refused row. All rows are computed all the same."""
        writer, check = self.writer, self.program.check
        if check is None:
            writer.line("%refused.next = add i64 %refused, 0")
            return
        instructions = context.schedule([check])
        values = emit_instructions(
            writer,
            instructions,
            context.plan(instructions),
            fetch=lambda node: context.places[instructions.data[node][0]].load(
                writer, instructions.data[node][1]
            ),
            computed=lambda node, value: None,
            spills=context.spills,
            proceed=context.proceed,
        )
        mask = values[instructions.roots[0]]
        lanes = self.type.lanes
        lane = "0"
        if lanes > 1:
            self.declared.add(f"declare i{lanes} @llvm.cttz.i{lanes}(i{lanes}, i1)")
            bits = writer.let(f"bitcast {self.type.mask} {mask} to i{lanes}")
            zeros = writer.let(f"call i{lanes} @llvm.cttz.i{lanes}(i{lanes} {bits}, i1 false)")
            lane = zeros if lanes == 64 else writer.let(f"zext i{lanes} {zeros} to i64")
        found = writer.let(f"icmp ne i{lanes} {bits}, 0") if lanes > 1 else mask
        new = writer.let(f"and i1 {found}, {writer.let('icmp slt i64 %refused, 0')}")
        here = writer.let(f"add i64 %row, {lane}")
        writer.line(f"%refused.next = select i1 {new}, i64 {here}, i64 %refused")

    def _clear(self, places: dict[str, Place]) -> None:
        """Zero what is read or delivered without having been written."""
        writer = self.writer
        for name, runs in zero_runs(self.program).items():
            if name in self.delivered:
                continue
            for start, stop in runs if len(runs) <= 8 else [(runs[0][0], runs[-1][1])]:
                place = places[name]
                base = writer.address(place.base, start * place.item)
                self.declared.add("declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
                writer.line(
                    f"call void @llvm.memset.p0.i64(ptr {base}, i8 0, i64 {(stop - start) * place.item}, i1 false)"
                )

    def _streamed_outputs(self) -> frozenset[str]:
        """Outputs whose rows are large and made of whole cache lines: they may be written past the caches."""
        program = self.program
        if self.type.size != 64 or self.target.level != "avx512" or len(program.statements) != 1:
            return frozenset()
        if not isinstance(program.statements[0], Straight):
            return frozenset()
        return frozenset(
            spec.name
            for spec in program.outputs
            if spec.size % self.type.lanes == 0 and spec.size * self.type.bits // 8 >= LARGE_ROW
        )

    def _stream_condition(self, pointer: dict[str, Value], stride: dict[str, Value]) -> Value | None:
        """The caller's hint at the start of scratch memory, and all rows aligned."""
        if not self.streamed:
            return None
        writer = self.writer
        place = writer.address("%scratch", self.hint)
        together = "0"
        for name in sorted(self.streamed):
            number = writer.let(f"ptrtoint ptr {pointer[name]} to i64")
            together = writer.let(f"or i64 {together}, {writer.let(f'or i64 {number}, {stride[name]}')}")
        aligned = writer.let(f"icmp eq i64 {writer.let(f'and i64 {together}, 63')}, 0")
        wanted = writer.let(f"icmp ne i64 {writer.let(f'load i64, ptr {place}, align 8')}, 0")
        return writer.let(f"and i1 {aligned}, {wanted}")

    def _outputs(
        self, blocks: RowBlocks, first: dict[str, Value], stream: Value | None
    ) -> tuple[dict[str, list[Value]], Tasks, Tasks, dict[str, list[tuple[int, int]]]]:
        """For each output the addresses of its rows and the pieces to write at the end; what to do meanwhile, and after.

        Constant pieces of small rows are stored after the arithmetic: a store that waits for memory holds up all
        stores behind it.
        """
        program = self.program
        rows: dict[str, list[Value]] = {}
        pieces: dict[str, list[tuple[int, int]]] = {}
        tasks: Tasks = []
        late: Tasks = []
        if self.type.lanes == 1:
            return rows, tasks, late, pieces
        known = {
            (store.array, store.position): store.value.data if store.value.op == "constant" else None
            for statement in program.statements
            if isinstance(statement, Straight)
            for store in statement.stores
        }
        for number, spec in enumerate(program.outputs, len(program.inputs)):
            rows[spec.name] = blocks.pointers(number, first[spec.name]) if spec.size else []
            if spec.name not in self.delivered:
                pieces[spec.name] = chunks(spec.size, self.type.lanes)
                continue
            constants = [known.get((spec.name, k), 0.0) for k in range(spec.size)]
            condition = stream if spec.name in self.streamed else None
            own, pieces[spec.name] = blocks.meanwhile(rows[spec.name], constants, condition)
            (tasks if spec.size * self.type.bits // 8 >= LARGE_ROW else late).extend(own)
        return rows, tasks, late, pieces

    def _sources(self, spec: ArraySpec, found: dict[tuple[str, int], Source]) -> list[Source]:
        if spec.name not in self.delivered:
            base = self.offsets[spec.name]
            return [Source(base + k * self.type.size) for k in range(spec.size)]
        zero = Source(-1, 0.0)
        sources = [found.get((spec.name, k), zero) for k in range(spec.size)]
        return [
            source if source.constant is None else Source(self.constants[source.constant], source.constant)
            for source in sources
        ]

    def _work(self) -> int:
        """Instructions for one block of rows, roughly."""
        loops = sum(item.count for item in self.program.statements if isinstance(item, Loop))
        average = 200  # a body's step; the true number only decides how many threads are worth while
        return len(self.writer.lines) + loops * average

    def _module(self, functions: set[str]) -> str:
        attributes = self.target.attributes
        names = set(functions) | ({"sincos"} if "tan" in functions else set())
        definitions = [
            definition(
                name,
                lanes=self.type.lanes,
                fma=self.target.fma,
                attributes=attributes,
                declared=self.declared,
            )
            for name in sorted(names)
        ]
        if self.type.lanes > 1:
            definitions.append(
                _ROW_DISTANCES.replace("LANES", str(self.type.lanes)).replace("ATTRIBUTES", attributes)
            )
        parameters = (
            "ptr %inputs, ptr %input_strides, ptr %outputs, ptr %output_strides, i64 %rows, "
            "ptr %tables, ptr noalias %scratch"
        )
        return "\n".join(
            [
                f'target triple = "{self.target.triple}"',
                *sorted(self.declared),
                *self.globals,
                *definitions,
                f"define i64 @{KERNEL_NAME}({parameters}) {attributes} {{",
                *self.writer.lines,
                "}",
                "!1 = !{i32 1}",
                '!0 = !{!"branch_weights", i32 1, i32 1000000}',
            ]
        )


_ROW_DISTANCES: Final = """
define internal void @row_distances(ptr %strides, ptr %table, i64 %arrays, i64 %last) ATTRIBUTES {
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
  %row = select i1 %inside, i64 %k, i64 %last
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
