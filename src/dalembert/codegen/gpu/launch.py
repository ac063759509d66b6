"""Launch layouts: threads, registers and memory of a kernel.

The assembler allocates registers. This library chooses the order of the instructions and the place of spilled
values: with `values`, so many values are planned to be in registers, by Belady's rule, and the others have
slots in the block's shared memory up to `shared` bytes, then in the thread's local memory. Without `values`
the assembler spills, always to local memory.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, final

import llvmlite.binding as llvm

from dalembert.codegen.memory import Rollout, decode_description
from dalembert.errors import ArgumentError, DeviceError

WARP_SIZE = 32
MAX_BLOCK_THREADS = 1024
"""Threads of a warp, and of a block at most, on every CUDA architecture."""


@final
@dataclass(frozen=True, slots=True)
class Layout:
    """The launch layout of a kernel.

    `block`: threads. `parts`: threads a sample; the warps of a block then have different parts of the
    arithmetic (`stages.py`). `registers`: the most a thread may have; None leaves it to the assembler.
    `values`: how many values are planned to be in registers, or None. `shared`: bytes of shared memory a
    block may have. `staged`: rows go through shared memory, so that neighbouring threads read and write
    neighbouring numbers. `barriers`: places in the arithmetic where the threads of a block wait for each
    other, so that they run the same instructions while these are in the caches; with some, they go through
    loops together, too.
    """

    block: int = 128
    registers: int | None = None
    values: int | None = None
    shared: int = 48 * 1024
    staged: bool = True
    barriers: int = 0
    parts: int = 1

    def __post_init__(self) -> None:
        if not (WARP_SIZE <= self.block <= MAX_BLOCK_THREADS and self.block % WARP_SIZE == 0):
            raise ArgumentError(
                f"block={self.block}: expected a multiple of {WARP_SIZE} "
                f"from {WARP_SIZE} to {MAX_BLOCK_THREADS}"
            )
        if self.parts < 1 or self.samples % WARP_SIZE or self.samples * self.parts != self.block:
            raise ArgumentError(
                f"parts={self.parts}: expected to divide the {self.block // WARP_SIZE} warps of a block"
            )
        if self.registers is not None and not 24 <= self.registers <= 255:
            raise ArgumentError(f"registers={self.registers}: expected 24 to 255, or None")

    @property
    def samples(self) -> int:
        """Samples of a block."""
        return self.block // self.parts

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


# The text of an emitted GPU kernel and the description that a launch needs.


@final
@dataclass(frozen=True, slots=True)
class GpuInfo:
    """The description of a kernel that a launch needs.

    `inputs`, `outputs`: (name, numbers a row); of a rollout also the final values and the refused steps,
    which are 64-bit integers. `block`: threads of a block, for `samples` samples. `shared_bytes`: dynamic
    shared memory of a block. `scratch_bytes`: global memory for each thread in flight; if there is any, the
    kernel takes its address, and a grid of any size goes over all rows. `checks`: whether rows may be
    refused.
    """

    inputs: tuple[tuple[str, int], ...]
    outputs: tuple[tuple[str, int], ...]
    bits: int
    block: int
    shared_bytes: int
    scratch_bytes: int
    checks: bool
    architecture: str
    layout: Layout
    rollout: Rollout | None = None

    @property
    def samples(self) -> int:
        """Samples of a block."""
        return self.layout.samples

    @property
    def dtype(self) -> str:
        return f"float{self.bits}"

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> GpuInfo:
        return cls(**{**decode_description(data), "layout": Layout(**data["layout"])})


@final
@dataclass(frozen=True, slots=True)
class GpuSource:
    """The phases of a kernel and the functions they call, without an entry point: `entry_points` adds one for
    the GPU or the host.

    `parameters` are those of the kernel, `phases` the names of the functions in `text`, in order: of load,
    stream, compute, store, finish those that there are, or compute0, store0, compute1 … of results in pieces.
    `local_bytes`: memory of a thread that lasts over the phases. `workers`: the code of each, where several
    threads compute a sample.
    """

    text: str
    declared: frozenset[str]
    parameters: tuple[str, ...]
    phases: tuple[str, ...]
    local_bytes: int
    info: GpuInfo
    tables: bytes
    workers: tuple[tuple[str, ...], ...] = ()


# The code of workers, where several threads compute a sample, as functions for the GPU and for the host.
#
# On the GPU each worker is one function that runs through all its stages, with barriers on the way, and a
# phase calls that of the thread's worker. On the host, where a phase is a loop over threads, each stage is a
# phase of its own: the same lines, cut at the barriers, and what a worker keeps in registers over one goes
# through the thread's memory, by a store after its definition and a load at the start of the stages that use
# it.

BARRIER: Final = "call void @pace()"
"""The line between two stages."""

BEGIN: Final = "; the stages"
"""The line after what all stages of a worker begin with."""

NEVER: Final = "never"
"""The block that ends the phase if a condition fails that always holds."""

_DEFINED: Final = re.compile(r"(%[\w.]+) = (.*)")
_USED: Final = re.compile(r"%[\w.]+")
_CONDITION: Final = re.compile(r"[fi]cmp |(?:and|or|xor) i1 ")


def dispatch_phase(source: GpuSource, phase_parameters: Sequence[str]) -> list[str]:
    """Return the phase for the GPU, which dispatches each thread to the code of its worker."""
    if not source.workers:
        return []
    return _phase(source, phase_parameters, "compute", list(source.workers))


def stage_by_stage(source: GpuSource, phase_parameters: Sequence[str]) -> tuple[list[str], int, int]:
    """Return the phases for the host, their number, and the bytes of a thread's memory."""
    if not source.workers:
        return [], 0, source.local_bytes
    start = -(-source.local_bytes // 8) * 8
    found = [_cut(lines, "float" if source.info.bits == 32 else "double", start) for lines in source.workers]
    count = len(found[0][0])
    text: list[str] = []
    for number in range(count):
        functions = [stages[number] for stages, _ in found]
        text += _phase(source, phase_parameters, f"compute.{number}", functions)
    return text, count, max(size for _, size in found)


def _phase(
    source: GpuSource, phase_parameters: Sequence[str], name: str, functions: Sequence[Sequence[str]]
) -> list[str]:
    """Return the functions of the workers, and one that calls the function of the thread's worker."""
    parameters = ", ".join((*source.parameters, *phase_parameters))
    text = []
    for k, lines in enumerate(functions):
        text.append(f"define internal void @{name}.worker{k}({parameters}) alwaysinline nounwind {{")
        text += [*lines, "}"]
    text += [f"define internal void @{name}({parameters}) alwaysinline nounwind {{", "entry:"]
    text.append(f"%part = udiv i32 %thread, {source.info.samples}")
    cases = " ".join(f"i32 {k}, label %part{k}" for k in range(1, len(functions)))
    text.append(f"switch i32 %part, label %part0 [ {cases} ]")
    for k in range(len(functions)):
        text += [f"part{k}:", f"call void @{name}.worker{k}({parameters})", "ret void"]
    return [*text, "}"]


def _cut(lines: Sequence[str], kind: str, start: int) -> tuple[list[list[str]], int]:
    """Return the stages of a worker as functions, and the end of the thread's memory. Values that outlive a
    stage are in the thread's memory from byte `start` on."""
    opening = lines.index(BEGIN)
    stages: list[list[str]] = [[]]
    for line in lines[opening + 1 :]:
        if line == BARRIER:
            stages[-1] += ["ret void", f"{NEVER}:", "ret void"]
            stages.append([])
        else:
            stages[-1].append(line)
    known: dict[str, str] = {}
    places: dict[str, int] = {}
    brought: list[list[str]] = []
    for stage in stages:
        own = {match[1]: match[2] for line in stage if (match := _DEFINED.match(line))}
        used = {name for line in stage for name in _USED.findall(line)}
        brought.append(sorted((used & known.keys()) - own.keys()))
        for name in brought[-1]:
            places.setdefault(name, start + 8 * len(places))
        known |= own

    def reach(name: str) -> tuple[str, str]:
        """Return the line that computes the address of a kept value, and its type."""
        line = f"{name}.home = getelementptr i8, ptr %local, i64 {places[name]}"
        return line, "i1" if _CONDITION.match(known[name]) else kind

    found = []
    for stage, names in zip(stages, brought):
        text = list(lines[:opening])
        for name in names:
            place, its = reach(name)
            text += [place, f"{name} = load {its}, ptr {name}.home, align 8"]
        for line in stage:
            text.append(line)
            match = _DEFINED.match(line)
            if match and match[1] in places:
                place, its = reach(match[1])
                text += [place, f"store {its} {match[1]}, ptr {match[1]}.home, align 8"]
        found.append(text)
    return found, start + 8 * len(places)


# GPU architectures to generate code for.

TRIPLE: Final = "nvptx64-nvidia-cuda"


@final
@dataclass(frozen=True, slots=True)
class Architecture:
    """A GPU architecture: `name` as the assembler knows it, `ptx` the PTX version of its code.

    `shared_bytes`: memory that a block may have for its own; `sm_bytes`: that of a whole processor, of
    which each block costs 1 kB more than it asks for.
    """

    name: str
    ptx: str
    shared_bytes: int
    sm_bytes: int

    @property
    def capability(self) -> tuple[int, int]:
        """Its compute capability: (9, 0) for sm_90."""
        number = int(self.name.removeprefix("sm_"))
        return number // 10, number % 10


ARCHITECTURES: Final[dict[str, Architecture]] = {
    item.name: item
    for item in (
        Architecture("sm_80", "+ptx80", 163 * 1024, 164 * 1024),
        Architecture("sm_90", "+ptx80", 227 * 1024, 228 * 1024),
        Architecture("sm_100", "+ptx86", 227 * 1024, 228 * 1024),
    )
}
"""Those that this release writes code for, oldest first. Newer devices run the code of the newest."""


def from_capability(major: int, minor: int) -> Architecture:
    """Return the newest architecture whose code a device of compute capability `major`.`minor` runs."""
    fitting = [item for item in ARCHITECTURES.values() if item.capability <= (major, minor)]
    if not fitting:
        raise DeviceError(
            f"the device has compute capability {major}.{minor}; kernels need 8.0 (Ampere) or newer"
        )
    return fitting[-1]


def gpu_target_machine(architecture: Architecture) -> Any:
    """Return LLVM's code generator for an architecture."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return llvm.Target.from_triple(TRIPLE).create_target_machine(
        cpu=architecture.name, features=architecture.ptx, opt=1
    )
