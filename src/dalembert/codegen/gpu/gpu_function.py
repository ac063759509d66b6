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
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Final, final

from dalembert.codegen import elementary
from dalembert.codegen.gpu import single
from dalembert.codegen.gpu.launch import WARP_SIZE, Architecture, GpuInfo, GpuSource, Layout
from dalembert.codegen.gpu.shared_memory import STAGED_RESULTS, Arrays, RowCopier, Tile, gathered_columns
from dalembert.codegen.gpu.thread_code import Compute
from dalembert.codegen.ir import LaneType, Writer
from dalembert.codegen.memory import Rollout, only_straight, stored_values, zero_runs
from dalembert.codegen.schedule import Instructions, schedule
from dalembert.errors import ArgumentError, CompileError
from dalembert.tracing.expression import live
from dalembert.tracing.graph import check_size
from dalembert.tracing.program import Program, Straight

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


def _load_constants(texts: Iterable[Iterable[str]]) -> tuple[list[list[str]], list[str]]:
    """Return the lines of texts with operands loaded that have more bits than an immediate operand, and the
    definition of their memory."""
    places: dict[str, int] = {}
    found: list[list[str]] = []

    def load(match: re.Match[str]) -> str:
        number, lines = match[0], found[-1]
        if number.endswith("00000000") or (number not in places and len(places) >= MAX_CONSTANTS):
            return number
        place = places.setdefault(number, len(places))
        name = f"%number.{len(lines)}"
        address = f"getelementptr (i8, ptr addrspace(4) {NAME}, i64 {8 * place})"
        lines.append(f"{name} = load double, ptr addrspace(4) {address}, align 8")
        return name

    for text in texts:
        found.append([])
        for line in text:
            found[-1].append(_NUMBER.sub(load, line) if _ARITHMETIC.search(line) else line)
    # Not defined as constant: LLVM would fold the loads.
    numbers = ", ".join(f"double {number}" for number in places)
    memory = f"{NAME} = internal addrspace(4) global [{len(places)} x double] [{numbers}], align 8"
    return found, [memory] if places else []


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
    """Write the kernel of a program, or of its rollout, in `bits` bits; `layout` None is chosen by rule."""
    check_size(program, MAX_GPU_OPERATIONS)
    if bits not in (32, 64):
        raise ArgumentError(f"bits={bits}: expected 32 or 64")
    if rollout is not None:
        rollout.check(program)
    lane_type = LaneType(bits, 1)
    chosen = layout or default_layout(program, bits=bits, architecture=architecture, rollout=rollout)
    source = _Kernel(Arrays(program, rollout, lane_type, chosen), architecture).emit()
    if source.info.shared_bytes <= architecture.shared_bytes:
        return source
    if layout is not None:
        raise CompileError(
            f"{source.info.shared_bytes} bytes of shared memory are more than {architecture.name} has: "
            f"{architecture.shared_bytes}; choose fewer parts than {layout.parts}"
        )
    chosen = default_layout(program, bits=bits, architecture=architecture, rollout=rollout, alone=True)
    return _Kernel(Arrays(program, rollout, lane_type, chosen), architecture).emit()


@final
class _Kernel:
    """The writer of one kernel."""

    def __init__(self, arrays: Arrays, architecture: Architecture) -> None:
        self.arrays = arrays
        self.architecture = architecture
        self.program, self.rollout = arrays.program, arrays.rollout
        self.type, self.layout = arrays.type, arrays.layout
        self.declared: set[str] = set()
        self.globals: list[str] = []
        more = self.rollout.more_outputs(self.program) if self.rollout else ()
        self.outputs = (*self.program.outputs, *more)
        self.opening = len(self._writer().lines)
        # Results in the caller's memory with structural zeros, or elements that must start at zero.
        zeros = {
            store.array
            for statement in self.program.statements
            if isinstance(statement, Straight)
            for store in statement.stores
            if store.value.op == "constant" and store.value.data == 0.0
        }
        zeros |= {name for name, runs in zero_runs(self.program).items() if runs}
        direct = {spec.name for spec in self.program.outputs if arrays.is_direct(spec)}
        compute = Compute(arrays, self._writer, zeroed=zeros & direct)
        self.compute = compute
        self.zeroed = set() if compute.pieces else zeros & direct

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

    def emit(self) -> GpuSource:
        compute, carried = self.compute, self.rollout.carried if self.rollout else ()
        phases: dict[str, list[str] | None] = {"load": self._load(), "stream": self._stream()}
        for number, (name, written) in enumerate(compute.phases.items()):
            phases[name] = written
            if compute.pieces:
                piece, copier = compute.pieces[number], self._copier()
                tile = Tile(f"%out{piece.number}", piece.stop - piece.start, self.arrays.width)
                copier.store(tile, piece.start * self.type.size)
                phases[f"store{number}"] = self._end(copier)
        phases["store"] = self._store()
        copier, inputs = self._copier(), {spec.name: spec for spec in self.program.inputs}
        for k, (name, _) in enumerate(carried, len(self.program.outputs)):
            copier.store(self.arrays.tile(inputs[name], f"%out{k}"))
        phases["finish"] = self._end(copier)
        kernel_parameters = self._parameters()
        parameters = ", ".join((*kernel_parameters, *PHASE_PARAMETERS))
        text = self._definitions(compute.context.functions).splitlines()
        for name, lines in phases.items():
            if lines:
                text.append(f"define internal void @{name}({parameters}) alwaysinline nounwind {{")
                text += [*lines, "}"]
        workers = compute.workers
        if self.type.bits == 64:
            (text, *workers), memory = _load_constants([text, *workers])
            self.globals += memory
        info = GpuInfo(
            inputs=tuple((spec.name, spec.size) for spec in self.program.inputs),
            outputs=tuple((spec.name, spec.size) for spec in self.outputs),
            bits=self.type.bits,
            block=self.layout.block,
            shared_bytes=compute.pitch * self.layout.samples * self.type.size,
            scratch_bytes=self.arrays.scratch_elements * self.type.size,
            checks=self.program.check is not None,
            architecture=self.architecture.name,
            layout=self.layout,
            rollout=self.rollout,
        )
        return GpuSource(
            "\n".join([*self.globals, *text, '!0 = !{!"branch_weights", i32 1, i32 1000000}']),
            frozenset(self.declared),
            kernel_parameters,
            tuple(name for name, lines in phases.items() if lines is not None),
            compute.slots.local_bytes,
            info,
            self.arrays.tables.data,
            tuple(map(tuple, workers)),
        )

    def _writer(self) -> Writer:
        """Return a writer at the start of a phase; %first is the block's first row and %count its rows."""
        writer, block = Writer(self.type, fma=True, declared=self.declared), self.layout.samples
        writer.lines += [
            "entry:",
            "%block.wide = zext i32 %block to i64",
            f"%first = mul i64 %block.wide, {block}",
            "%left = sub i64 %rows, %first",
            f"%whole = icmp sgt i64 %left, {block}",
            f"%count.wide = select i1 %whole, i64 {block}, i64 %left",
            "%count = trunc i64 %count.wide to i32",
            "%count.last = sub i32 %count, 1",
        ]
        length = self.arrays.scratch_elements * self.type.size
        if length:
            writer.lines += [
                "%home.wide = zext i32 %home to i64",
                f"%home.at = mul i64 %home.wide, {block * length}",
                "%scratch.block = getelementptr i8, ptr %scratch, i64 %home.at",
                f"%warp = udiv i32 %thread, {WARP_SIZE}",
                f"%lane = and i32 %thread, {WARP_SIZE - 1}",
                "%warp.wide = zext i32 %warp to i64",
                f"%warp.at = mul i64 %warp.wide, {WARP_SIZE * length}",
                "%scratch.warp = getelementptr i8, ptr %scratch.block, i64 %warp.at",
                "%lane.wide = zext i32 %lane to i64",
                f"%lane.at = mul i64 %lane.wide, {self.type.size}",
                "%scratch.mine = getelementptr i8, ptr %scratch.warp, i64 %lane.at",
            ]
        return writer

    def _copier(self) -> RowCopier:
        """Return the writer of a phase that copies rows."""
        return RowCopier(self._writer(), self.layout, self.compute.pitch, self.arrays.scratch_elements)

    def _end(self, copier: RowCopier) -> list[str] | None:
        """End a phase and return its lines, None if it does nothing."""
        lines = copier.writer.lines
        return [*lines, "ret void"] if len(lines) > self.opening else None

    def _load(self) -> list[str] | None:
        copier, arrays = self._copier(), self.arrays
        for k, spec in enumerate(self.program.inputs):
            if spec.name not in arrays.streams and not arrays.is_direct(spec):
                copier.load(arrays.tile(spec, f"%in{k}"))
        for spec in self.program.outputs:
            if spec.name in self.zeroed:
                copier.zero(arrays.tile(spec, arrays.base[spec.name]))
        if self.rollout is not None:  # no step of the thread's own row is rejected yet
            writer, base = copier.writer, f"%out{len(self.outputs) - 1}"
            with writer.when(writer.let("icmp ult i32 %thread, %count")):
                row = writer.let(f"add i64 %first, {writer.let('zext i32 %thread to i64')}")
                place = writer.address(base, writer.let(f"mul i64 {row}, {base}.stride"))
                writer.write("i64", "-1", place)
        return self._end(copier)

    def _stream(self) -> list[str] | None:
        copier = self._copier()
        for k, spec in enumerate(self.program.inputs):
            if spec.name in self.arrays.streams and not self.arrays.is_direct(spec):
                offset = copier.writer.let(f"mul i64 %now, %in{k}.step")
                copier.load(self.arrays.tile(spec, f"%in{k}"), offset)
        return self._end(copier)

    def _store(self) -> list[str] | None:
        copier = self._copier()
        for k, spec in enumerate(self.program.outputs):
            if self.arrays.is_direct(spec):
                continue
            tile = self.arrays.tile(spec, f"%out{k}")
            if spec.name in self.arrays.gathered:
                columns = [self.compute.gathered[spec.name, position] for position in range(spec.size)]
                self.globals.append(copier.gather(tile, columns))
            elif self.rollout is not None:
                copier.store(tile, copier.writer.let(f"mul i64 %written, {tile.base}.step"))
            else:
                copier.store(tile)
        return self._end(copier)

    def _definitions(self, functions: set[str]) -> str:
        """Return the elementary functions, inlined except the paths for huge arguments."""
        near, far = "alwaysinline nounwind", "noinline nounwind cold"
        wide = functions if self.type.bits == 64 else functions & single.CALLS_DOUBLE
        text = "".join(
            elementary.definitions(wide, lanes=1, fma=True, attributes="nounwind", declared=self.declared)
        )
        text = text.replace("nounwind cold {", f"{far} {{").replace("nounwind {", f"{near} {{")
        if self.type.bits == 32:
            for name in sorted(functions):
                text += single.definition(name, near=near, far=far, declared=self.declared)
        return text


# The default launch layout of a kernel: a rule from measurements (design/gpu.md).
#
# The number of operations and the largest number of live values decide. Long programs, whose code is larger
# than the instruction cache, use four threads per sample, each with a part of the code; so do shorter ones
# with low register pressure when divided among four threads. Together their registers hold all live values:
# 128 per thread if that is enough, else 168 or 255. A small batch, which leaves most of the GPU idle, then
# takes half the time, and a large one loses nothing.
#
# Other programs, results in pieces and loops use one thread per sample. With few live values the assembler
# chooses: many threads with few registers. With many, a thread has all 255 registers and spills to shared
# memory, with two warps per scheduler of a multiprocessor. In between, and for double precision, whose values
# take two registers each, higher occupancy with fewer registers hides more latency than the spills cost.
#
# Rollouts whose code is far larger than the instruction caches use larger blocks, whose warps run it in
# phase: the code is fetched once for all of them. (Four threads per sample are in phase anyway.)
#
# Loops over rows read and write scratch memory, whose latency is most of their time. Shared memory and the
# cache of a multiprocessor are one memory, so such programs leave it to the cache, in small blocks.

MAX_ASSEMBLER_LIVE_VALUES: Final = 110
"""Live values up to which the assembler keeps all in registers at high occupancy."""

MAX_HIGH_OCCUPANCY_LIVE_VALUES: Final = 300
"""Live values up to which, with one thread per sample, more threads with fewer registers are faster than
threads with all registers."""

THREADS_PER_SAMPLE: Final = 4
"""Threads per sample: as many as most robots have limbs, and a multiprocessor has schedulers."""

INSTRUCTION_CACHE_OPERATIONS: Final = 5000
"""Operations from which on the code exceeds the instruction cache: four threads per sample are then faster
for batches of nearly every size."""

MIN_MULTITHREAD_OPERATIONS: Final = 3000
"""Operations from which on four threads are faster if their register pressure is low, and from which on
spills are planned in programs with loops, for which the assembler takes long."""

LOW_REGISTER_PRESSURE: Final = 0.6
"""Live values over planned registers, up to which the register pressure counts as low."""

MAX_REGISTER_PRESSURE: Final = 1.1
"""Live values over planned registers, at most, for four threads per sample."""

LARGE_ROLLOUT_OPERATIONS: Final = 12_000
"""Operations from which on the code of a rollout is fetched again at every step."""

ROLLOUT_BARRIERS: Final = 8
"""Barriers in such code, where the warps of a block wait for each other and stay in phase."""

ROW_SHARED_BYTES: Final = 4096
"""Shared memory of a block in programs with loops over rows: with 16 kB a step of rigid contact (A1, 4,096
samples) took 1.13 times as long, with 57 kB 1.38 times."""

RESERVED_REGISTERS: Final = 25
"""Registers of a thread that hold no planned value: addresses and operands in flight."""


def max_live_values(instructions: Instructions) -> int:
    """Return the largest number of computed values that are live at once."""
    last = {
        operand: time for time, node in enumerate(instructions.order) for operand in instructions.args[node]
    }
    live_values = most = 0
    for time, node in enumerate(instructions.order):
        live_values += node in last
        most = max(most, live_values)
        live_values -= sum(
            last[operand] == time and not instructions.is_leaf(operand)
            for operand in set(instructions.args[node])
        )
    return most


def default_layout(
    program: Program,
    *,
    bits: int,
    architecture: Architecture,
    rollout: Rollout | None = None,
    alone: bool = False,
) -> Layout:
    """Return the layout by rule; `alone`: with one thread per sample."""
    plan = partial(planned_layout, architecture, bits)
    many = plan(block=64, registers=255, blocks=4)
    size = sum(len(live(stored_values(statement))) for statement in program.statements)
    large = rollout is not None and size > LARGE_ROLLOUT_OPERATIONS
    together = replace(plan(block=128, registers=255, blocks=2), barriers=ROLLOUT_BARRIERS)
    if program.has_rows and size > MIN_MULTITHREAD_OPERATIONS:
        return replace(many, shared=ROW_SHARED_BYTES, barriers=ROLLOUT_BARRIERS if large else 0)
    statement = only_straight(program)
    if statement is None:
        return together if large else many if size > MIN_MULTITHREAD_OPERATIONS else Layout(block=128)
    instructions = schedule(list(dict.fromkeys(statement.values)), fma=True)
    live_values, operations = max_live_values(instructions), len(instructions.order)
    gathered = gathered_columns(program) if rollout is None else 0
    in_pieces = not gathered and any(spec.size > STAGED_RESULTS for spec in program.outputs)
    taken = (sum(spec.size for spec in program.inputs) + gathered) * WARP_SIZE * bits // 8
    for registers, blocks in ((128, 4), (168, 3), (255, 2)):
        parts = THREADS_PER_SAMPLE
        layout = plan(block=WARP_SIZE * parts, registers=registers, blocks=blocks, parts=parts)
        pressure = live_values / (parts * (layout.values or 1))
        if taken <= layout.shared and pressure <= MAX_REGISTER_PRESSURE:
            break
    long = operations >= INSTRUCTION_CACHE_OPERATIONS or (
        operations >= MIN_MULTITHREAD_OPERATIONS
        and live_values > MAX_ASSEMBLER_LIVE_VALUES
        and pressure <= LOW_REGISTER_PRESSURE
    )
    held = not Arrays(program, rollout, LaneType(bits, 1), layout).scratch_elements
    if long and held and not alone and not (in_pieces and rollout is None):
        return layout
    if large:
        return together
    for blocks in (5, 4, 3, 2) if gathered else ():
        layout = plan(block=WARP_SIZE, registers=255, blocks=blocks)
        if taken <= layout.shared:
            return layout
    if live_values <= MAX_ASSEMBLER_LIVE_VALUES:
        return Layout(block=128 if bits == 32 else 64)
    high_occupancy = live_values <= MAX_HIGH_OCCUPANCY_LIVE_VALUES
    if bits == 32:
        return plan(block=64, registers=168, blocks=6) if high_occupancy else many
    return many if high_occupancy else plan(block=64, registers=128, blocks=8)


def planned_layout(
    architecture: Architecture, bits: int, *, block: int, registers: int, blocks: int, parts: int = 1
) -> Layout:
    """Return a layout whose spill slots are planned so that `blocks` blocks share a multiprocessor."""
    return Layout(
        block=block,
        registers=registers,
        values=(registers - RESERVED_REGISTERS) * 32 // bits,
        shared=min(architecture.sm_bytes // blocks - 1024, architecture.shared_bytes) // 128 * 128,
        parts=parts,
    )
