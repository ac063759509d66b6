"""A program as the text of one LLVM function over a batch of rows, and of more that it calls if it is large.

    int64 kernel(ptr *inputs, int64 *input_strides, ptr *outputs, int64 *output_strides, int64 rows,
                 ptr tables, ptr scratch)

Strides are those between rows, in bytes: any, 0 to repeat one row; the elements of a row are adjacent. The
result is the first row for which the program's check holds, or -1. Outputs must not overlap inputs.
`tables` holds the program's tables; `scratch` is memory of this call alone, aligned to 64 bytes. `Emitted`
tells the size of both.

With one lane, inputs and outputs are used where they lie. With more, a block of rows is turned into lanes
in scratch memory, the statements run on that, and the outputs are turned back (`row_code`). The kernel of a
rollout takes many steps in one call, and more arguments:

                 int64 steps, int64 first, int64 every, int64 *input_step_strides, int64 *output_step_strides

    for each row, for step in 0 … steps - 1:
        carried inputs    the caller's array at the first step, then what the step before gave
        streams           the caller's array at `step` times its step stride
        other inputs      the caller's array, the same at every step
        outputs           written after `first` steps, then after every `every`, each a step stride further
    after the last step: the carried values

Its outputs are the program's, then one array for each carried input with the values that the last step gave,
then 64-bit integers: the first step at which the program's check held for the row, or -1. Final values may be
written where the initial ones stand. The kernel itself returns -1. A last array is read: for each row a
64-bit integer, how many rows farther the sample lies that takes the row's place in its block, so that
samples that do alike work can share a block wherever they lie.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, final

from dalembert.codegen.cpu.row_code import (
    ROW_BY_ORDER,
    ROW_DISTANCES,
    ROW_IN_PLACE,
    OutputScheduler,
    RowBlocks,
    Source,
    chunks,
)
from dalembert.codegen.elementary import definitions
from dalembert.codegen.ir import NEVER, TIME_AGAIN, TIME_DELIVER, TIME_STEP, LaneType, Value, Writer
from dalembert.codegen.memory import (
    LIST_ENTRY_BYTES,
    REFUSED_STEP,
    Layout,
    Place,
    Rollout,
    RowList,
    Tables,
    ranges_to_zero,
    split_delivery,
    stored_values,
)
from dalembert.codegen.outlining import (
    FUNCTION_INSTRUCTIONS,
    MAX_FUNCTION_LINES,
    SPLIT_CONSTANTS,
    SPLIT_OPERATIONS,
    OutlinedFunction,
    Outliner,
    group_into_modules,
    with_short_blocks,
)
from dalembert.codegen.row_items import ItemList, calls_functions, item_bytes, kept_elements
from dalembert.codegen.statement_code import Context, emit_condition, emit_loop, emit_repeat, emit_straight
from dalembert.codegen.target import KERNEL_NAME, Target
from dalembert.errors import ProgramSizeError
from dalembert.tracing.expression import live
from dalembert.tracing.graph import check_size
from dalembert.tracing.program import ArraySpec, Loop, Program, Repeat, RowSet, Statement, Straight

ROW_ORDER: Final = ArraySpec("row order", 0)
"""The last array of a rollout kernel: the places of rows in blocks, integers."""

BODY_INSTRUCTIONS: Final = 200
"""Instructions in one iteration of a loop, roughly; it only decides how many threads are worth while."""


@final
@dataclass(frozen=True, slots=True)
class Emitted:
    """The text of a module, the memory a call needs, the bytes of the program's tables.

    `parts`: the texts of more modules, whose functions the kernel of a large program calls (`outlining.py`).
    `work`: instructions for one block of rows, and one step, roughly. `streamed_bytes`: bytes of a row that
    may be written past the caches, if the first word of scratch memory is not zero.
    """

    text: str
    scratch_bytes: int
    tables: bytes
    work: int
    streamed_bytes: int
    parts: tuple[str, ...] = ()


def emit_program(
    program: Program, *, bits: int, lanes: int, target: Target, rollout: Rollout | None = None
) -> Emitted:
    """Write the kernel of a program, or of its rollout, for `lanes` samples at once, in `bits` bits."""
    operations = check_size(program)
    lane_type = LaneType(bits, lanes)
    registers = max(1, lane_type.size // target.vector_bytes)
    values = [value for statement in program.statements for value in stored_values(statement)]
    constants = sum(node.op == "constant" for node in live(values))
    large = operations * registers > SPLIT_OPERATIONS or constants > SPLIT_CONSTANTS
    for split in (True,) if large else (False, True):
        kernel = _Kernel(program, lane_type, target, rollout, registers)
        emitted = kernel.emit(split=split)
        if kernel.longest <= MAX_FUNCTION_LINES // registers:
            return emitted
    raise ProgramSizeError(
        f"one function of {operations:,} operations has {kernel.longest:,} lines of LLVM text for "
        f"{lanes} lanes; at most {MAX_FUNCTION_LINES // registers:,} are compiled; take fewer arguments "
        "and results"
    )


@final
class _Kernel:
    """The writer of one kernel.

    `first` gives the addresses of each array's first row in a block. In a rollout one block of rows goes
    through all its steps: `carried` values stay in scratch memory, and so do the outputs of a step until they
    are delivered or carried, even with one lane.
    """

    def __init__(
        self, program: Program, lane_type: LaneType, target: Target, rollout: Rollout | None, registers: int
    ) -> None:
        self.program = program
        self.rollout = rollout
        self.registers = registers
        self.longest = 0
        self.type = lane_type
        self.target = target
        self.declared: set[str] = set()
        self.globals: list[str] = []
        self.writer = Writer(lane_type, fma=target.fma, declared=self.declared)
        self.blocks = RowBlocks(self.writer, self.globals)
        self.tables = Tables(program, lane_type.bits)
        self.layout = Layout()
        self.scheduler = OutputScheduler(program, self.blocks, target, self.layout, at_once=rollout is None)
        self.more_outputs: tuple[ArraySpec, ...] = ()
        self.carried: tuple[ArraySpec, ...] = ()
        if rollout is not None:
            rollout.check(program)
            names = {name for name, _ in rollout.carried}
            self.carried = tuple(spec for spec in program.inputs if spec.name in names)
            self.more_outputs = (*rollout.more_outputs(program), ROW_ORDER)
            self.refused_step = self.layout.reserve(8 * lane_type.lanes)
        self.outputs = (*program.outputs, *self.more_outputs)
        self.distances = self.layout.reserve(0)
        arrays: list[ArraySpec] = list(program.states)
        if lane_type.lanes > 1:
            self.distances = self.layout.reserve(
                8 * lane_type.lanes * (len(program.inputs) + len(self.outputs))
            )
            arrays += program.inputs
            arrays += [spec for spec in program.outputs if spec.name not in self.scheduler.direct]
        elif rollout is not None:
            arrays += (*self.carried, *program.outputs)
        self.offsets = {spec.name: self.layout.reserve(spec.size * lane_type.size) for spec in arrays}
        self.lists = {
            name: self.layout.reserve(self._list_bytes(rows))
            for name, rows in program.rows.items()
            if rows.parent is not None
        }
        self.item_type = LaneType(
            lane_type.bits, max(lane_type.lanes, 8 * target.vector_bytes // lane_type.bits)
        )
        if calls_functions(program):  # which have the lanes of a block
            self.item_type = lane_type
        self.kept_items = self.layout.reserve(kept_elements(program) * self.item_type.size)
        self.spill_offset = self.layout.size

    def emit(self, *, split: bool) -> Emitted:
        """Write the kernel, with `split` as several functions, and note how many lines the `longest` has."""
        writer, lanes = self.writer, self.type.lanes
        if split:  # into functions that have the lanes of a block
            self.item_type = self.type
        pointer, self.stride = self._enter()
        places = {
            name: Place(writer.address("%scratch", offset), self.type.size, self.type.align)
            for name, offset in self.offsets.items()
        } | self.tables.places(writer)
        spills = writer.address("%scratch", self.spill_offset)
        if lanes > 1:
            writer.line(f"%distances = getelementptr i8, ptr %scratch, i64 {self.distances}")
            if self.rollout is None:
                self._row_distances(str(lanes - 1))
        self.scheduler.prepare(pointer, self.stride)
        self.first = self._begin_block(pointer)
        if lanes == 1:
            places = {name: Place(base, self.type.bits // 8, 1) for name, base in self.first.items()} | places
        length = FUNCTION_INSTRUCTIONS // self.registers if split else 0
        self.outliner = Outliner(writer, self.target.attributes, length)
        self.context = Context(
            writer=writer,
            places=places,
            tables=self.tables,
            registers=self.target.registers,
            spills=Place(spills, self.type.size, self.type.align),
            outliner=self.outliner,
            sizes={spec.name: spec.size for spec in self.program.states},
            contiguous=True,
            lists={name: self._list(name, at) for name, at in self.lists.items()},
        )
        self._body()
        writer.enter("tail")
        writer.line(f"%row.next = add i64 %row, {lanes}")
        writer.line("%more = icmp slt i64 %row.next, %rows")
        writer.branch("%more", "head", "end", then="end")
        self.scheduler.fence()
        writer.line("ret i64 %refused.next")
        self.layout.reserve(self.context.slots * self.type.size)
        lengths = [len(writer.lines), *(function.lines for function in self.outliner.functions)]
        self.longest = max(lengths)
        loops = sum(item.count for item in self.program.statements if not isinstance(item, Straight))
        return Emitted(
            text=self._kernel(),
            scratch_bytes=self.layout.size,
            tables=self.tables.data,
            work=sum(lengths) + loops * BODY_INSTRUCTIONS,
            streamed_bytes=self.scheduler.streamed_bytes,
            parts=tuple(map(self._part, group_into_modules(self.outliner.functions))),
        )

    def _enter(self) -> tuple[dict[str, Value], dict[str, Value]]:
        """Load base addresses and row strides of all arrays; leave if there is no row."""
        writer = self.writer
        pointer: dict[str, Value] = {}
        stride: dict[str, Value] = {}
        writer.begin("entry")
        for side, specs in (("input", self.program.inputs), ("output", self.outputs)):
            for k, spec in enumerate(specs):
                pointer[spec.name] = writer.read("ptr", f"%{side}s", 8 * k)
                stride[spec.name] = writer.read("i64", f"%{side}_strides", 8 * k)
        writer.line("%rows.last = sub i64 %rows, 1")
        writer.line("%nonempty = icmp sgt i64 %rows, 0")
        if self.rollout is not None:
            writer.line("%any.step = icmp sgt i64 %steps, 0")
        writer.branch("%nonempty", "start", "empty")
        writer.lines += ["empty:", "ret i64 -1", f"{NEVER}:", "ret i64 -2", "start:"]
        return pointer, stride

    def _begin_block(self, pointer: dict[str, Value]) -> dict[str, Value]:
        """Open the loop over blocks; the addresses of each array's first row in the block."""
        writer = self.writer
        writer.enter("head")
        writer.line("%row = phi i64 [ 0, %start ], [ %row.next, %tail ]")
        writer.line("%refused = phi i64 [ -1, %start ], [ %refused.next, %tail ]")
        first = {
            name: writer.address(base, writer.let(f"mul i64 %row, {self.stride[name]}"))
            for name, base in pointer.items()
        }
        if self.type.lanes > 1:
            full = self.type.lanes - 1
            writer.line("%last = sub i64 %rows.last, %row")
            writer.line(f"%partial = icmp slt i64 %last, {full}")
            if self.rollout is not None:
                last = writer.let(f"select i1 %partial, i64 %last, i64 {full}")
                self._row_distances(last, first[ROW_ORDER.name])
                return first
            writer.branch("%partial", "shorten", "block", then="shorten")
            self._row_distances("%last")
            writer.enter("block")
        return first

    def _list_bytes(self, rows: RowSet) -> int:
        """Return the memory for the list of a set."""
        if rows.own and self.type.lanes > 1:
            return item_bytes(rows.size, self.type.lanes)
        return LIST_ENTRY_BYTES * (1 + rows.size)

    def _list(self, name: str, offset: int) -> RowList | ItemList:
        """Return the list of a set; one sample's own rows are listed as any others."""
        base = self.writer.address("%scratch", offset)
        if not self.program.rows[name].own or self.type.lanes == 1:
            return RowList(base)
        return ItemList(base, self.item_type, self.writer.address("%scratch", self.kept_items))

    def _body(self) -> None:
        program, lanes, blocks = self.program, self.type.lanes, self.blocks
        used = self._used_inputs() if lanes > 1 else {}
        if self.rollout is not None:
            self.writer.line("%refused.next = add i64 %refused, 0")
            self._begin_step(self.rollout, used)
            if program.check is not None:  # record the step for the rows that are rejected for the first time
                writer, integers, mask = self.writer, self.type.of("i64"), self.type.mask
                condition = emit_condition(self.context, program.check)
                old = writer.read(integers, "%scratch", self.refused_step)
                untouched = writer.let(f"icmp slt {integers} {old}, {self.type.splat('i64', 0)}")
                new = writer.let(f"and {mask} {condition}, {untouched}")
                now = writer.splat("i64", "%now")
                found = writer.let(f"select {mask} {new}, {integers} {now}, {integers} {old}")
                writer.write(integers, found, "%scratch", self.refused_step)
            self._clear()
            needed, late = split_delivery(program, self.rollout)
            self._statements(needed)
            self._end_step(self.rollout, late)
            return
        if lanes > 1:
            for number, spec in enumerate(program.inputs):
                base = self.context.places[spec.name].base
                blocks.read(number, self.first[spec.name], spec.size, base, used[spec.name])
            for number, spec in enumerate(program.inputs):
                blocks.prefetch(number, self.first[spec.name], spec.size, self.stride[spec.name], lanes)
        self._check()
        self._clear()
        self.scheduler.begin(self.first)
        sources = self._statements(program.statements)
        if lanes > 1:
            self.scheduler.finish(sources, self.offsets)

    def _statements(self, statements: Sequence[Statement]) -> dict[tuple[str, int], Source]:
        """Write the arithmetic; return the sources of the outputs without an array of their own."""
        sources: dict[tuple[str, int], Source] = {}
        for statement in statements:
            if isinstance(statement, Straight):
                sources = emit_straight(
                    self.context,
                    statement,
                    unstored=self.scheduler.direct,
                    offsets=self.offsets if self.type.lanes > 1 else {},
                    spill_offset=self.spill_offset,
                    interleaved=self.scheduler.interleaved,
                )
            elif isinstance(statement, Repeat):
                emit_repeat(self.context, self.program, statement)
            else:
                emit_loop(self.context, self.program, statement)
        return sources

    def _row_distances(self, last: Value, order: Value = "null") -> None:
        at = 0
        for side, specs in (("input", self.program.inputs), ("output", self.outputs)):
            if specs:
                place = self.writer.address("%distances", at * self.type.lanes * 8)
                given = f"ptr %{side}_strides, ptr {place}, i64 {len(specs)}, i64 {last}, ptr {order}"
                self.writer.line(f"call void @row_distances({given})")
            at += len(specs)

    def _used_inputs(self) -> dict[str, set[int] | None]:
        """Return the positions of inputs that straight-line code reads; None if a loop may index them."""
        program = self.program
        if any(isinstance(statement, Loop | Repeat) for statement in program.statements):
            return dict.fromkeys(spec.name for spec in program.inputs)
        used: dict[str, set[int] | None] = {spec.name: set() for spec in program.inputs}
        roots = [value for statement in program.statements for value in stored_values(statement)]
        for node in live([*roots, *([program.check] if program.check is not None else [])]):
            if node.op in ("input", "load"):
                array, position = node.data if node.op == "input" else (node.data.array, node.data.offset)
                positions = used.get(array)
                if positions is not None:
                    positions.add(position)
        return used

    def _check(self) -> None:
        """Record the first rejected row. All rows are computed all the same."""
        writer, check, lanes = self.writer, self.program.check, self.type.lanes
        if check is None:
            writer.line("%refused.next = add i64 %refused, 0")
            return
        found = emit_condition(self.context, check)
        lane = "0"
        if lanes > 1:
            self.declared.add(f"declare i{lanes} @llvm.cttz.i{lanes}(i{lanes}, i1)")
            bits = writer.let(f"bitcast {self.type.mask} {found} to i{lanes}")
            zeros = writer.let(f"call i{lanes} @llvm.cttz.i{lanes}(i{lanes} {bits}, i1 false)")
            lane = zeros if lanes == 64 else writer.let(f"zext i{lanes} {zeros} to i64")
            found = writer.let(f"icmp ne i{lanes} {bits}, 0")
        new = writer.let(f"and i1 {found}, {writer.let('icmp slt i64 %refused, 0')}")
        here = writer.let(f"add i64 %row, {lane}")
        writer.line(f"%refused.next = select i1 {new}, i64 {here}, i64 %refused")

    def _clear(self) -> None:
        """Zero what is read or delivered without having been written."""
        writer = self.writer
        for name, start, stop in ranges_to_zero(self.program):
            if name not in self.scheduler.direct:
                place = self.context.places[name]
                base = writer.address(place.base, start * place.item)
                self.declared.add("declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
                size = (stop - start) * place.item
                writer.line(f"call void @llvm.memset.p0.i64(ptr {base}, i8 0, i64 {size}, i1 false)")

    # The steps of a rollout ---------------------------------------------------------------------------------

    def _begin_step(self, rollout: Rollout, used: Mapping[str, set[int] | None]) -> None:
        """Bring carried and constant inputs of a block into place, open the loop, bring the streams."""
        writer, lanes, places, blocks = self.writer, self.type.lanes, self.context.places, self.blocks
        for number, spec in enumerate(self.program.inputs):
            if spec in self.carried and lanes == 1:
                self._copy(places[spec.name].base, self.first[spec.name], spec)
            elif spec.name not in rollout.streams and lanes > 1:
                needed = None if spec in self.carried else used[spec.name]
                blocks.read(number, self.first[spec.name], spec.size, places[spec.name].base, needed)
        integers = self.type.of("i64")
        writer.write(integers, self.type.splat("i64", -1), "%scratch", self.refused_step)
        writer.enter("time.enter")
        writer.branch("%any.step", "time.step", "time.over")
        writer.lines += [line.replace("FIRST", "%first") for line in TIME_STEP]
        for number, spec in enumerate(self.program.inputs):
            if spec.name not in rollout.streams:
                continue
            stride = writer.read("i64", "%input_steps", 8 * number)
            here = writer.address(self.first[spec.name], writer.let(f"mul i64 %now, {stride}"))
            if lanes == 1:
                places[spec.name] = Place(here, self.type.bits // 8, 1)
                continue
            blocks.read(number, here, spec.size, places[spec.name].base, used[spec.name])
            blocks.prefetch(number, here, spec.size, stride)

    def _end_step(self, rollout: Rollout, late: Sequence[Statement]) -> None:
        """Write the outputs if they are due, after the statements that only they need; carry, close the loop
        and write the final values."""
        writer, program, lanes, places = self.writer, self.program, self.type.lanes, self.context.places
        writer.lines += TIME_DELIVER
        self._statements(late)
        at = {}
        for number, spec in enumerate(program.outputs):
            stride = writer.read("i64", "%output_steps", 8 * number)
            at[spec.name] = writer.address(self.first[spec.name], writer.let(f"mul i64 %written, {stride}"))
        if lanes == 1:
            for spec in program.outputs:
                self._copy(at[spec.name], places[spec.name].base, spec)
        else:
            self.scheduler.begin(at)
            self.scheduler.finish({}, self.offsets)
        writer.enter("time.again")
        for name, number in rollout.carried:
            spec = program.outputs[number]
            self._copy(places[name].base, places[spec.name].base, spec)
        writer.lines += TIME_AGAIN
        start = len(program.inputs) + len(program.outputs)
        for number, ((name, _), spec) in enumerate(zip(rollout.carried, self.more_outputs), start):
            target = self.first[spec.name]
            if lanes == 1:
                self._copy(target, places[name].base, spec)
                continue
            sources = [Source(self.offsets[name] + k * self.type.size) for k in range(spec.size)]
            self.blocks.write(self.blocks.pointers(number, target), chunks(spec.size, lanes), sources)
        target = self.first[REFUSED_STEP.name]
        rows = [target] if lanes == 1 else self.blocks.pointers(start + len(rollout.carried), target)
        for lane, row in enumerate(rows):
            writer.write("i64", writer.read("i64", "%scratch", self.refused_step + 8 * lane), row)

    def _copy(self, target: Value, source: Value, spec: ArraySpec) -> None:
        if spec.size:
            self.declared.add("declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)")
            given = f"ptr {target}, ptr {source}, i64 {spec.size * self.type.size}, i1 false"
            self.writer.line(f"call void @llvm.memcpy.p0.p0.i64({given})")

    # Modules ------------------------------------------------------------------------------------------------

    def _kernel(self) -> str:
        """Return the module of the kernel itself."""
        functions = self._elementary(self.context.functions)
        if self.type.lanes > 1:
            place = ROW_IN_PLACE if self.rollout is None else ROW_BY_ORDER
            text = ROW_DISTANCES.replace("ROW", place).replace("LANES", str(self.type.lanes))
            functions.append(text.replace("ATTRIBUTES", self.target.attributes))
        functions += [function.declaration for function in self.outliner.functions]
        parameters = (
            "ptr %inputs, ptr %input_strides, ptr %outputs, ptr %output_strides, i64 %rows, "
            "ptr %tables, ptr noalias %scratch"
        )
        if self.rollout is not None:
            parameters += ", i64 %steps, i64 %first, i64 %every, ptr %input_steps, ptr %output_steps"
        head = f"define i64 @{KERNEL_NAME}({parameters}) {self.target.attributes} {{"
        body = with_short_blocks(self.writer.lines)
        return self._module([*self.globals, *functions, head, *body, "}"])

    def _part(self, functions: list[OutlinedFunction]) -> str:
        """Return a module of functions that the kernel calls, and the elementary functions that they call."""
        texts = [function.text for function in functions]
        needed = {name for name in self.context.functions if any(f"@{name}(" in text for text in texts)}
        return self._module([*self._elementary(needed), *texts])

    def _elementary(self, names: set[str]) -> list[str]:
        """Return the definitions of elementary functions."""
        target = self.target
        return definitions(
            names, lanes=self.type.lanes, fma=target.fma, attributes=target.attributes, declared=self.declared
        )

    def _module(self, lines: list[str]) -> str:
        return "\n".join(
            [
                f'target triple = "{self.target.triple}"',
                *sorted(self.declared),
                *lines,
                '!0 = !{!"branch_weights", i32 1, i32 1000000}',
                "!1 = !{i32 1}",
            ]
        )
