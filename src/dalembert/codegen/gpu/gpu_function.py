"""A program as the text of a GPU kernel, from the same schedule as the CPU's: one thread per sample, or four.

    dalembert_kernel(ptr in_0, i64 stride_0, …, ptr out_0, i64 stride_0, …, i64 rows, ptr tables, ptr refused,
                     [ptr scratch,]
                     [i64 steps, i64 first, i64 every, i64 step_stride of each input and each output])

Strides are those between rows, in bytes: any, 0 to repeat one row; the elements of a row are adjacent.
`refused` is one 64-bit integer, preset to all ones, which becomes the least number of the rows for which the
program's check holds. The last line is a rollout's (see `llvm_function`): its outputs are the program's, the
final values of what is carried, and for each row the first refused step, or -1.

A kernel runs phases, each a function of the thread's number, with barriers between them:

    load      rows of the block to the samples' own memory
    stream    rows of what has a value for each step
    compute   the arithmetic
    store     results back to rows
    finish    what is carried, after the last step

Phases share nothing but memory. So the same functions run on the CPU, phase by phase over all the threads of
a block, and that is how kernels are tested where no GPU is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, final

from dalembert.codegen import elementary
from dalembert.codegen.gpu import single
from dalembert.codegen.gpu.choice import default_layout
from dalembert.codegen.gpu.launch import WARP_SIZE, Architecture, GpuInfo, GpuSource, Layout
from dalembert.codegen.gpu.shared_memory import Arrays, Tile, copy_rows, gather_rows, zero_rows
from dalembert.codegen.gpu.thread_code import Compute
from dalembert.codegen.ir import LaneType, Writer
from dalembert.codegen.memory import Rollout, zero_runs
from dalembert.errors import ArgumentError, CompileError
from dalembert.tracing.graph import check_size
from dalembert.tracing.program import ArraySpec, Program, Straight

# Double-precision constants in constant memory.
#
# A GPU instruction has an immediate operand of 32 bits. Other constants would be assembled from halves by two
# more instructions at every use, a quarter of the code of a humanoid's forward dynamics. A load from constant
# memory takes one.

NAME: Final = "@numbers"
MAX_CONSTANTS: Final = 7000
"""Constants that fit: constant memory has 64 kB."""

_NUMBER: Final = re.compile(r"0x[0-9A-F]{16}")
_ARITHMETIC: Final = re.compile(r"= (?:f(?:add|sub|mul|div) double |call double @llvm\.fma\.f64\()")


@final
class ConstantMemory:
    """The constants collected from lines of LLVM text."""

    def __init__(self) -> None:
        self.places: dict[str, int] = {}

    def load_constants(self, lines: list[str]) -> list[str]:
        """Return the lines with arithmetic operands loaded from constant memory if they have more bits than
        an immediate operand."""
        found: list[str] = []
        for line in lines:
            if _ARITHMETIC.search(line):
                line = _NUMBER.sub(lambda match: self._load(match[0], found), line)
            found.append(line)
        return found

    def _load(self, number: str, lines: list[str]) -> str:
        if number.endswith("00000000") or (number not in self.places and len(self.places) >= MAX_CONSTANTS):
            return number
        place = self.places.setdefault(number, len(self.places))
        name = f"%number.{len(lines)}"
        address = f"getelementptr (i8, ptr addrspace(4) {NAME}, i64 {8 * place})"
        lines.append(f"{name} = load double, ptr addrspace(4) {address}, align 8")
        return name

    def definition(self) -> list[str]:
        """Return the definition of the memory. LLVM does not know it as constant, or it would fold the
        loads."""
        if not self.places:
            return []
        numbers = ", ".join(f"double {number}" for number in self.places)
        return [f"{NAME} = internal addrspace(4) global [{len(self.places)} x double] [{numbers}], align 8"]


MAX_GPU_OPERATIONS: Final = 500_000
"""Operations of a program for a GPU, at most. NVIDIA's assembler takes 0.5 to 1.3 ms and 13 kB for each, so
that such a program takes four to eleven minutes and 7 GB. The bundled humanoid with rigid contact has
213,000."""

PHASE_PARAMETERS = (
    "i32 %thread",
    "i32 %block",
    "i32 %home",
    "ptr %shared",
    "ptr %local",
    "i64 %now",
    "i64 %written",
)
"""What a phase gets beside the kernel's parameters: the thread in its block, the block of rows, the block of
the grid, shared and local memory, the step, and how many steps have been written."""


def emit_gpu(
    program: Program,
    *,
    bits: int,
    architecture: Architecture,
    rollout: Rollout | None = None,
    layout: Layout | None = None,
) -> GpuSource:
    """Write the kernel of a program, or of its rollout, in numbers of `bits` bits; `layout` None is chosen by
    rule."""
    check_size(program, MAX_GPU_OPERATIONS)
    if bits not in (32, 64):
        raise ArgumentError(f"bits={bits}: expected 32 or 64")
    if rollout is not None:
        rollout.check(program)
    chosen = layout or default_layout(program, bits=bits, architecture=architecture, rollout=rollout)
    source = _Kernel(program, rollout, LaneType(bits, 1), architecture, chosen).emit()
    if source.info.shared_bytes <= architecture.shared_bytes:
        return source
    if layout is not None:
        raise CompileError(
            f"{source.info.shared_bytes} bytes of shared memory are more than {architecture.name} has: "
            f"{architecture.shared_bytes}; choose fewer parts than {layout.parts}"
        )
    chosen = default_layout(program, bits=bits, architecture=architecture, rollout=rollout, alone=True)
    return _Kernel(program, rollout, LaneType(bits, 1), architecture, chosen).emit()


@final
class _Kernel:
    def __init__(
        self,
        program: Program,
        rollout: Rollout | None,
        lane_type: LaneType,
        architecture: Architecture,
        layout: Layout,
    ) -> None:
        self.program = program
        self.rollout = rollout
        self.type = lane_type
        self.architecture = architecture
        self.layout = layout
        self.declared: set[str] = set()
        self.globals: list[str] = []
        self.arrays = Arrays(program, rollout, lane_type, layout)
        self.streams = frozenset(rollout.streams if rollout else ())
        self.outputs = (*program.outputs, *(rollout.more_outputs(program) if rollout else ()))
        self.zeroed = {
            spec.name for spec in program.outputs if self.arrays.is_direct(spec) and self._sparse(spec)
        }
        self.parameters = self._parameters()

    def _parameters(self) -> tuple[str, ...]:
        sides = [("in", len(self.program.inputs)), ("out", len(self.outputs))]
        texts = [
            text
            for side, count in sides
            for k in range(count)
            for text in (f"ptr %{side}{k}", f"i64 %{side}{k}.stride")
        ]
        texts += ["i64 %rows", "ptr %tables", "ptr %refused"]
        if self.arrays.scratch_elements:
            texts.append("ptr %scratch")
        if self.rollout is not None:
            texts += ["i64 %steps", "i64 %first_kept", "i64 %every"]
            texts += [f"i64 %in{k}.step" for k in range(len(self.program.inputs))]
            texts += [f"i64 %out{k}.step" for k in range(len(self.program.outputs))]
        return tuple(texts)

    def _sparse(self, spec: ArraySpec) -> bool:
        """Return whether a result has structural zeros, or elements that must start at zero."""
        zeros = any(
            store.array == spec.name and store.value.op == "constant" and store.value.data == 0.0
            for statement in self.program.statements
            if isinstance(statement, Straight)
            for store in statement.stores
        )
        return zeros or bool(zero_runs(self.program).get(spec.name))

    def emit(self) -> GpuSource:
        compute = Compute(
            self.program, self.rollout, self.arrays, self.layout, self._writer, zeroed=self.zeroed
        )
        if compute.pieces:
            self.zeroed.clear()
        phases: dict[str, list[str] | None] = {
            "load": self._load(compute.pitch),
            "stream": self._stream(compute.pitch),
        }
        for number, (name, written) in enumerate(compute.phases.items()):
            phases[name] = written
            if compute.pieces:
                phases[f"store{number}"] = self._store_piece(compute, number)
        phases["store"] = self._store(compute)
        phases["finish"] = self._finish(compute.pitch)
        parameters = ", ".join((*self.parameters, *PHASE_PARAMETERS))
        text = self._definitions(compute.functions).splitlines()
        for name, lines in phases.items():
            if lines:
                text.append(f"define internal void @{name}({parameters}) alwaysinline nounwind {{")
                text += [*lines, "}"]
        workers = tuple(map(tuple, compute.workers))
        if self.type.bits == 64:
            numbers = ConstantMemory()
            text = numbers.load_constants(text)
            workers = tuple(tuple(numbers.load_constants(list(lines))) for lines in workers)
            self.globals += numbers.definition()
        text = [*self.globals, *text]
        text.append('!0 = !{!"branch_weights", i32 1, i32 1000000}')
        return GpuSource(
            "\n".join(text),
            frozenset(self.declared),
            self.parameters,
            tuple(name for name, lines in phases.items() if lines is not None),
            compute.local_bytes,
            self._info(compute.pitch),
            self.arrays.tables.data,
            workers,
        )

    def _info(self, pitch: int) -> GpuInfo:
        return GpuInfo(
            inputs=tuple((spec.name, spec.size) for spec in self.program.inputs),
            outputs=tuple((spec.name, spec.size) for spec in self.outputs),
            bits=self.type.bits,
            block=self.layout.block,
            shared_bytes=pitch * self.layout.samples * self.type.size,
            scratch_bytes=self.arrays.scratch_elements * self.type.size,
            checks=self.program.check is not None,
            architecture=self.architecture.name,
            layout=self.layout,
            rollout=self.rollout,
        )

    def _writer(self) -> Writer:
        """Return a writer at the start of a phase; %first is the block's first row and %count its rows."""
        writer, block = Writer(self.type, fma=True, declared=self.declared), self.layout.samples
        writer.begin("entry")
        writer.line("%block.wide = zext i32 %block to i64")
        writer.line(f"%first = mul i64 %block.wide, {block}")
        writer.line("%left = sub i64 %rows, %first")
        writer.line(f"%whole = icmp sgt i64 %left, {block}")
        writer.line(f"%count.wide = select i1 %whole, i64 {block}, i64 %left")
        writer.line("%count = trunc i64 %count.wide to i32")
        writer.line("%count.last = sub i32 %count, 1")
        length = self.arrays.scratch_elements * self.type.size
        if length:
            writer.line("%home.wide = zext i32 %home to i64")
            writer.line(f"%home.at = mul i64 %home.wide, {block * length}")
            writer.line("%scratch.block = getelementptr i8, ptr %scratch, i64 %home.at")
            writer.line(f"%warp = udiv i32 %thread, {WARP_SIZE}")
            writer.line(f"%lane = and i32 %thread, {WARP_SIZE - 1}")
            writer.line("%warp.wide = zext i32 %warp to i64")
            writer.line(f"%warp.at = mul i64 %warp.wide, {WARP_SIZE * length}")
            writer.line("%scratch.warp = getelementptr i8, ptr %scratch.block, i64 %warp.at")
            writer.line("%lane.wide = zext i32 %lane to i64")
            writer.line(f"%lane.at = mul i64 %lane.wide, {self.type.size}")
            writer.line("%scratch.mine = getelementptr i8, ptr %scratch.warp, i64 %lane.at")
        return writer

    def _load(self, pitch: int) -> list[str] | None:
        inputs = [(spec, f"%in{k}") for k, spec in enumerate(self.program.inputs)]
        tiles = [
            self.arrays.tile(spec, base)
            for spec, base in inputs
            if spec.name not in self.streams and not self.arrays.is_direct(spec)
        ]
        writer = self._writer()
        self._copy(writer, tiles, pitch, inward=True)
        for spec in self.program.outputs:
            if spec.name in self.zeroed:
                tile = self.arrays.tile(spec, self.arrays.base[spec.name])
                zero_rows(writer, tile, layout=self.layout)
        if self.rollout is not None:
            self._store_own(writer, f"%out{len(self.outputs) - 1}", "-1")
        writer.line("ret void")
        return writer.lines if tiles or self.zeroed or self.rollout is not None else None

    def _stream(self, pitch: int) -> list[str] | None:
        writer, tiles = self._writer(), []
        for k, spec in enumerate(self.program.inputs):
            if spec.name in self.streams and not self.arrays.is_direct(spec):
                tiles.append(self.arrays.tile(spec, f"%in{k}"))
                self._copy(writer, tiles[-1:], pitch, inward=True, step=f"%in{k}.step", now="%now")
        writer.line("ret void")
        return writer.lines if tiles else None

    def _store(self, compute: Compute) -> list[str] | None:
        writer, tiles, pitch = self._writer(), [], compute.pitch
        for k, spec in enumerate(self.program.outputs):
            if spec.name in self.arrays.gathered:
                tiles.append(self.arrays.tile(spec, f"%out{k}"))
                columns = [compute.gathered[spec.name, position] for position in range(spec.size)]
                self.globals.append(gather_rows(writer, tiles[-1], columns, self.layout, pitch))
            elif not self.arrays.is_direct(spec):
                tiles.append(self.arrays.tile(spec, f"%out{k}"))
                step = f"%out{k}.step" if self.rollout is not None else None
                self._copy(writer, tiles[-1:], pitch, inward=False, step=step, now="%written")
        writer.line("ret void")
        return writer.lines if tiles else None

    def _store_piece(self, compute: Compute, number: int) -> list[str]:
        """Write the part of the rows that a piece has computed."""
        writer, piece = self._writer(), compute.pieces[number]
        tile = Tile(f"%out{piece.number}", piece.stop - piece.start, self.arrays.width, None)
        copy_rows(
            writer,
            tile,
            layout=self.layout,
            pitch=compute.pitch,
            inward=False,
            scratch=0,
            offset=str(piece.start * self.type.size),
        )
        writer.line("ret void")
        return writer.lines

    def _finish(self, pitch: int) -> list[str] | None:
        if self.rollout is None or not self.rollout.carried:
            return None
        writer, sizes = self._writer(), {spec.name: spec for spec in self.program.inputs}
        start = len(self.program.outputs)
        tiles = [
            self.arrays.tile(sizes[name], f"%out{k}")
            for k, (name, _) in enumerate(self.rollout.carried, start)
        ]
        self._copy(writer, tiles, pitch, inward=False)
        writer.line("ret void")
        return writer.lines

    def _copy(
        self,
        writer: Writer,
        tiles: Sequence[Tile],
        pitch: int,
        *,
        inward: bool,
        step: str | None = None,
        now: str = "",
    ) -> None:
        for tile in tiles:
            copy_rows(
                writer,
                tile,
                layout=self.layout,
                pitch=pitch,
                inward=inward,
                scratch=self.arrays.scratch_elements,
                offset="0" if step is None else writer.let(f"mul i64 {now}, {step}"),
            )

    def _store_own(self, writer: Writer, base: str, value: str) -> None:
        """Store a 64-bit integer for the thread's own row."""
        with writer.when(writer.let("icmp ult i32 %thread, %count")):
            row = writer.let(f"add i64 %first, {writer.let('zext i32 %thread to i64')}")
            place = writer.address(base, writer.let(f"mul i64 {row}, {base}.stride"))
            writer.write("i64", value, place)

    def _definitions(self, functions: set[str]) -> str:
        """Return the elementary functions, inlined except the paths for huge arguments."""
        near, far = "alwaysinline nounwind", "noinline nounwind cold"
        wide = (
            functions if self.type.bits == 64 else {name for name in functions if single.needs_double(name)}
        )
        text = "".join(
            elementary.definition(name, lanes=1, fma=True, attributes="nounwind", declared=self.declared)
            for name in sorted(wide | ({"sincos"} if "tan" in wide else set()))
        )
        text = text.replace("nounwind cold {", f"{far} {{").replace("nounwind {", f"{near} {{")
        if self.type.bits == 32:
            for name in sorted(functions):
                text += single.definition(name, near=near, far=far, declared=self.declared)
        return text
