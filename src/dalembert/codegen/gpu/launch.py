"""Launch layouts: threads, registers and memory of a kernel.

The assembler allocates registers. This library chooses the order of the instructions and the place of spilled
values: with `values`, that number of values is kept in registers, by Belady's rule, and the others have
slots in the block's shared memory up to `shared` bytes, then in the thread's local memory. Without `values`
the assembler spills, always to local memory.
"""

from __future__ import annotations

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
    block may have, through which rows go as far as there is room, so that neighbouring threads read and write
    neighbouring numbers. `barriers`: places in the arithmetic where the threads of a block wait for each
    other, so that they run the same instructions while these are in the caches; with some, they go through
    loops together, too.
    """

    block: int = 128
    registers: int | None = None
    values: int | None = None
    shared: int = 48 * 1024
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

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> GpuInfo:
        return cls(**{**decode_description(data), "layout": Layout(**data["layout"])})


@final
@dataclass(frozen=True, slots=True)
class GpuSource:
    """The phases of a kernel and the functions they call, without an entry point: `gpu_module` adds one.

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


# The lines by which the code of a worker, one of several threads that compute a sample, is divided.

BARRIER: Final = "call void @pace()"
"""The line between two stages."""

BEGIN: Final = "; the stages"
"""The line after what all stages of a worker begin with."""

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
