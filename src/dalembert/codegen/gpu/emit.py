"""A program as the text of a GPU kernel: one thread a sample, from the same schedule as the CPU's.

    dalembert_kernel(ptr in_0, i64 stride_0, …, ptr out_0, i64 stride_0, …, i64 rows, ptr tables, ptr refused)

Strides are those between rows, in bytes: any, 0 to repeat one row; the elements of a row are adjacent.
`refused` is one 64-bit integer, preset to all ones, which becomes the least number of the rows for which the
program's check holds.

The kernel runs phases, each a function of the thread's number, with a barrier between them: `load` brings
the rows of the block to shared memory, `compute` does the arithmetic, `store` takes the results back. Phases
share nothing but memory. So the same functions run on the CPU, phase by phase over all the threads of a block
(`host.py`), and that is how kernels are tested where no GPU is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, final

from dalembert.codegen.body import emit_instructions
from dalembert.codegen.context import Context
from dalembert.codegen.elementary import definition
from dalembert.codegen.gpu.architectures import Architecture
from dalembert.codegen.gpu.layout import Layout
from dalembert.codegen.gpu.single import call, sincos_definition
from dalembert.codegen.gpu.slots import ThreadSlots
from dalembert.codegen.gpu.staging import Tile, copy_rows, zero_rows
from dalembert.codegen.ir import LaneType, Writer
from dalembert.codegen.memory import Place, Tables
from dalembert.codegen.schedule import Instructions
from dalembert.codegen.straight import emit_straight
from dalembert.codegen.target import KERNEL_NAME
from dalembert.tracing.program import Program, Straight

__all__ = ["GpuInfo", "GpuSource", "emit_gpu"]

NEVER: Final = "never"
STAGED_RESULTS: Final = 128
"""Results of more numbers than this go straight to global memory: they would fill the shared one."""


@final
@dataclass(frozen=True, slots=True)
class GpuInfo:
    """What a launch must know: arrays (name, numbers a row), threads and shared memory of a block."""

    inputs: tuple[tuple[str, int], ...]
    outputs: tuple[tuple[str, int], ...]
    bits: int
    block: int
    shared_bytes: int
    checks: bool
    architecture: str
    layout: Layout

    def to_json(self) -> dict[str, Any]:
        return {
            "kernel": KERNEL_NAME,
            "inputs": [list(item) for item in self.inputs],
            "outputs": [list(item) for item in self.outputs],
            "bits": self.bits,
            "block": self.block,
            "shared_bytes": self.shared_bytes,
            "checks": self.checks,
            "architecture": self.architecture,
            "layout": self.layout.to_json(),
        }


@final
@dataclass(frozen=True, slots=True)
class GpuSource:
    """The phases of a kernel and the functions they call, without an entry point: `assemble` and `host` add
    theirs. `parameters` are those of the kernel, `phases` the names of its parts in order."""

    text: str
    declared: frozenset[str]
    parameters: tuple[str, ...]
    phases: tuple[str, ...]
    info: GpuInfo
    tables: bytes


def emit_gpu(program: Program, *, bits: int, architecture: Architecture, layout: Layout) -> GpuSource:
    """Write the kernel of a program in numbers of `bits` bits."""
    return _Kernel(program, bits, architecture, layout).emit()


@final
class _Kernel:
    def __init__(self, program: Program, bits: int, architecture: Architecture, layout: Layout) -> None:
        self.program = program
        self.type = LaneType(bits, 1)
        self.architecture = architecture
        self.layout = layout
        self.declared: set[str] = set()
        self.tables = Tables(program, bits)
        self.columns: dict[str, int] = {}
        self.width = 0
        if layout.staged:
            for spec in program.inputs:
                self._reserve(spec.name, spec.size)
        self.inputs_end = self.width
        if layout.staged:
            for spec in program.outputs:
                if spec.size <= STAGED_RESULTS:
                    self._reserve(spec.name, spec.size)
        item = bits // 8
        self.most = max((layout.shared // (layout.block * item) - 1) // 2 * 2 + 1, self.width | 1)
        arrays = (
            *(("in", k) for k in range(len(program.inputs))),
            *(("out", k) for k in range(len(program.outputs))),
        )
        self.parameters = (
            *(text for side, k in arrays for text in (f"ptr %{side}{k}", f"i64 %{side}{k}.stride")),
            "i64 %rows",
            "ptr %tables",
            "ptr %refused",
        )
        self.base = {
            spec.name: f"%{side}{k}"
            for side, specs in (("in", program.inputs), ("out", program.outputs))
            for k, spec in enumerate(specs)
        }

    def _reserve(self, name: str, size: int) -> None:
        self.columns[name] = self.width
        self.width += size

    def emit(self) -> GpuSource:
        compute, functions, pitch = self._compute()
        phases = {"load": self._load(pitch), "compute": compute, "store": self._store(pitch)}
        present = {name: lines for name, lines in phases.items() if lines is not None}
        parameters = ", ".join((*self.parameters, "i32 %thread", "i32 %block", "ptr %shared"))
        text = [self._definitions(functions)]
        for name, lines in present.items():
            text.append(f"define internal void @{name}({parameters}) alwaysinline nounwind {{")
            text += lines
            text.append("}")
        text.append('!0 = !{!"branch_weights", i32 1, i32 1000000}')
        info = GpuInfo(
            inputs=tuple((spec.name, spec.size) for spec in self.program.inputs),
            outputs=tuple((spec.name, spec.size) for spec in self.program.outputs),
            bits=self.type.bits,
            block=self.layout.block,
            shared_bytes=pitch * self.layout.block * self.type.size,
            checks=self.program.check is not None,
            architecture=self.architecture.name,
            layout=self.layout,
        )
        return GpuSource(
            "\n".join(text), frozenset(self.declared), self.parameters, tuple(present), info, self.tables.data
        )

    def _writer(self) -> Writer:
        """A writer at the start of a phase, where %first is the block's first row and %count its rows."""
        writer = Writer(self.type, fma=True, declared=self.declared)
        writer.begin("entry")
        writer.line("%block.wide = zext i32 %block to i64")
        writer.line(f"%first = mul i64 %block.wide, {self.layout.block}")
        writer.line("%left = sub i64 %rows, %first")
        writer.line(f"%whole = icmp sgt i64 %left, {self.layout.block}")
        writer.line(f"%count.wide = select i1 %whole, i64 {self.layout.block}, i64 %left")
        writer.line("%count = trunc i64 %count.wide to i32")
        writer.line("%count.last = sub i32 %count, 1")
        return writer

    def _load(self, pitch: int) -> list[str] | None:
        tiles = [
            self._tile(spec.name, spec.size) for spec in self.program.inputs if spec.name in self.columns
        ]
        writer = self._writer()
        for tile in tiles:
            copy_rows(writer, tile, block=self.layout.block, pitch=pitch, inward=True)
        for spec in self.program.outputs:
            if spec.name not in self.columns and self._sparse(spec.name, spec.size):
                tiles.append(self._tile(spec.name, spec.size))
                zero_rows(writer, tiles[-1], block=self.layout.block)
        writer.line("ret void")
        return writer.lines if tiles else None

    def _store(self, pitch: int) -> list[str] | None:
        tiles = [
            self._tile(spec.name, spec.size) for spec in self.program.outputs if spec.name in self.columns
        ]
        writer = self._writer()
        for tile in tiles:
            copy_rows(writer, tile, block=self.layout.block, pitch=pitch, inward=False)
        writer.line("ret void")
        return writer.lines if tiles else None

    def _tile(self, name: str, size: int) -> Tile:
        base = self.base[name]
        return Tile(base, f"{base}.stride", size, self.columns.get(name, 0))

    def _sparse(self, name: str, size: int) -> bool:
        """Whether elements of a result are never written, or only with zero."""
        return len(self._written(name)) < size

    def _written(self, name: str) -> set[int]:
        return {
            store.position
            for statement in self.program.statements
            if isinstance(statement, Straight)
            for store in statement.stores
            if store.array == name and not (store.value.op == "constant" and store.value.data == 0.0)
        }

    def _compute(self) -> tuple[list[str], set[str], int]:
        """The lines of the arithmetic, the functions it calls, and the length of a shared row."""
        writer, item = self._writer(), self.type.size
        writer.line("%nonempty = icmp sgt i64 %rows, 0")
        writer.line("%inside = icmp ult i32 %thread, %count")
        writer.line("%own = select i1 %inside, i32 %thread, i32 %count.last")
        writer.line("%own.wide = zext i32 %own to i64")
        writer.line("%row = add i64 %first, %own.wide")
        slots = ThreadSlots(self.type, self.inputs_end, self.width)
        places: dict[str, Place] = {}
        for name, base in self.base.items():
            if name in self.columns:
                places[name] = Place("%mine", item, item)
                places[name] = Place(writer.address("%mine", self.columns[name] * item), item, item)
            else:
                places[name] = Place(
                    writer.address(base, writer.let(f"mul i64 %row, {base}.stride")), item, item
                )
        for name, table in self.program.tables.items():
            if table.dtype.kind == "f":
                places[name] = Place(
                    writer.address("%tables", self.tables.offsets[name]), item, item, uniform=True
                )
        context = Context(
            writer=writer,
            places=places,
            table_base="%tables",
            table_offsets=self.tables.offsets,
            table_lengths={name: len(table) for name, table in self.program.tables.items()},
            registers=self.layout.values or 1_000_000,
            spills=slots,
            proceed=("%nonempty", NEVER),
            call=call,
            calls=False,
            homes=self._homes,
        )
        self._check(context)
        for statement in self.program.statements:
            if isinstance(statement, Straight):
                emit_straight(
                    context,
                    self._without_zeros(statement),
                    delivered=frozenset(),
                    offsets={},
                    spill_offset=0,
                    meanwhile=[lambda: writer.line("call void @pace()")] * self.layout.barriers,
                )
        writer.line("ret void")
        writer.begin(NEVER)
        writer.line("ret void")
        in_shared = slots.place(context.slots, self.most)
        pitch = (self.width + in_shared) | 1 if self.width + in_shared else 0
        start = ["%mine.row = zext i32 %thread to i64", f"%mine.at = mul i64 %mine.row, {pitch * item}"]
        start.append("%mine = getelementptr i8, ptr %shared, i64 %mine.at")
        lines = [*writer.lines[:1], *start, *slots.opening(), *slots.resolved(writer.lines[1:])]
        return lines, context.functions, pitch

    def _homes(self, instructions: Instructions) -> dict[int, int]:
        """The slots of inputs, in rows of shared memory that nobody else reads."""
        if self.layout.values is None or len(self.program.statements) != 1:
            return {}
        return {
            node: self.columns[instructions.data[node][0]] + instructions.data[node][1]
            for node in range(len(instructions.ops))
            if instructions.ops[node] == "input" and instructions.data[node][0] in self.columns
        }

    def _without_zeros(self, statement: Straight) -> Straight:
        """Leave out the zeros that the phase before has written."""
        direct = {spec.name for spec in self.program.outputs if spec.name not in self.columns}
        return Straight(
            tuple(
                store
                for store in statement.stores
                if store.array not in direct or store.position in self._positions(store.array)
            )
        )

    def _positions(self, name: str) -> set[int]:
        return self._written(name)

    def _check(self, context: Context) -> None:
        """Note the row if it is refused. It is computed all the same."""
        writer, check = context.writer, self.program.check
        if check is None:
            return
        instructions = context.schedule([check])
        data = instructions.data
        homes, context.homes = context.homes, lambda instructions: {}
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
        context.homes = homes
        refused, accepted = writer.label(), writer.label()
        writer.line(f"br i1 {values[instructions.roots[0]]}, label %{refused}, label %{accepted}")
        writer.begin(refused)
        writer.let("atomicrmw umin ptr %refused, i64 %row monotonic, align 8")
        writer.line(f"br label %{accepted}")
        writer.begin(accepted)

    def _definitions(self, functions: set[str]) -> str:
        names = functions | ({"sincos"} if "tan" in functions else set())
        text = "".join(
            definition(name, lanes=1, fma=True, attributes="nounwind", declared=self.declared)
            for name in sorted(names)
        )
        text = text.replace("nounwind {", "alwaysinline nounwind {").replace(
            "nounwind cold {", "noinline nounwind cold {"
        )
        if "sincos" in names and self.type.bits == 32:
            writer = Writer(self.type, fma=True, declared=self.declared)
            text += sincos_definition(writer, "alwaysinline nounwind", "noinline nounwind cold")
        return text
