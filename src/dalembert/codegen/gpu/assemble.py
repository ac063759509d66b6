"""Assembly: a kernel's text becomes PTX by LLVM, and machine code where NVIDIA's assembler is installed."""

from __future__ import annotations

import ctypes
import functools
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

import llvmlite.binding as llvm
import numpy as np

from dalembert.codegen.gpu.entry_points import HOST_NAME, gpu_module, host_module
from dalembert.codegen.gpu.launch import (
    ARCHITECTURES,
    Architecture,
    GpuSource,
    gpu_target_machine,
    stage_by_stage,
)
from dalembert.codegen.gpu.work_partition import VECTOR_LOAD_BYTES
from dalembert.codegen.target import KERNEL_NAME, target_for, target_machine
from dalembert.errors import CompileError


@final
@dataclass(frozen=True, slots=True)
class Assembled:
    """Machine code, and what the assembler says of it: registers and bytes of spills of a thread."""

    code: bytes
    registers: int
    stack: int
    spill_stores: int
    spill_loads: int
    report: str


def ptx_of(source: GpuSource, architecture: Architecture | None = None) -> str:
    """Return the PTX of a kernel."""
    machine = gpu_target_machine(architecture or ARCHITECTURES[source.info.architecture])
    module = llvm.parse_assembly(gpu_module(source))
    module.data_layout = str(machine.target_data)
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(module, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(0)))
    return str(machine.emit_assembly(module))


@functools.cache
def find_ptxas() -> Path | None:
    """Find NVIDIA's assembler: in the package nvidia-cuda-nvcc beside this Python, or on the path."""
    for folder in map(Path, sys.path):
        found = sorted(folder.glob("nvidia/*/bin/ptxas"))
        if found:
            return found[-1]
    on_path = shutil.which("ptxas")
    return Path(on_path) if on_path else None


def ptxas(ptx: str, architecture: Architecture, *, options: tuple[str, ...] = ()) -> Assembled:
    """Assemble PTX."""
    program = find_ptxas()
    if program is None:
        raise CompileError(
            "ptxas was not found; pip install nvidia-cuda-nvcc (Linux x86-64), or a CUDA toolkit"
        )
    with tempfile.TemporaryDirectory() as folder:
        given, made = Path(folder, "kernel.ptx"), Path(folder, "kernel.cubin")
        given.write_text(ptx)
        command: list[str | Path] = [program, "-v", f"-arch={architecture.name}", *options, given, "-o", made]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise CompileError(f"ptxas refuses the kernel for {architecture.name}: {done.stderr.strip()}")
        code = made.read_bytes()

    kernel = done.stderr[done.stderr.index(f"properties for {KERNEL_NAME}") :]

    def number(pattern: str) -> int:
        found = re.search(pattern, kernel)
        return int(found[1]) if found else 0

    return Assembled(
        code,
        number(r"Used (\d+) registers"),
        number(r"(\d+) bytes stack frame"),
        number(r"(\d+) bytes spill stores"),
        number(r"(\d+) bytes spill loads"),
        done.stderr,
    )


# The phases of a GPU kernel compiled for the CPU and run thread by thread over a grid.
#
# The very text that becomes PTX is compiled for this machine. A block runs its first phase for all its
# threads, then its second, as the barriers between them allow, on memory that stands for the block's shared
# memory. It is filled with NaN before, so that a phase that relied on what it finds there would show.

GUARD_NUMBERS: Final = 4096
"""Float64 numbers behind the shared memory that must not change: they detect writes out of bounds."""


@final
class HostKernel:
    """A kernel's phases on the CPU."""

    def __init__(self, source: GpuSource) -> None:
        self.source = source
        module = llvm.parse_assembly(host_module(source))
        self.engine = llvm.create_mcjit_compiler(module, target_machine(target_for(None)))
        self.engine.finalize_object()
        self.local_bytes = stage_by_stage(source, ())[2]
        types = [ctypes.c_void_p if item.startswith("ptr") else ctypes.c_int64 for item in source.parameters]
        self.function = ctypes.CFUNCTYPE(None, *types, ctypes.c_int32, *[ctypes.c_void_p] * 2)(
            self.engine.get_function_address(HOST_NAME)
        )
        self.tables = np.frombuffer(source.tables.ljust(8, b"\0"), np.uint8).copy()

    def launch(self, arguments: Sequence[int], grid: int) -> None:
        """Run a grid; `arguments` are the addresses and numbers of the kernel's parameters in order."""
        size = self.source.info.shared_bytes
        shared = np.full(size // 8 + GUARD_NUMBERS, np.nan)
        before = shared.tobytes()[size:]
        local = np.full(self.source.info.block * self.local_bytes // 8 + 2, np.nan)
        aligned = -(-local.ctypes.data // VECTOR_LOAD_BYTES) * VECTOR_LOAD_BYTES
        self.function(*arguments, grid, shared.ctypes.data, aligned)
        if shared.tobytes()[size:] != before:
            raise CompileError(f"the kernel writes behind the {size} bytes of its shared memory")

    def run(self, arrays: Sequence[tuple[int, int]], rows: int, *, grid: int | None = None) -> int:
        """Run all rows, one step; `arrays` are (address, bytes between rows) of inputs and outputs. The
        result is the first refused row, or -1."""
        info = self.source.info
        refused = np.full(1, -1, np.int64)
        grid = -(-rows // info.samples) if grid is None else grid
        scratch = np.full(grid * info.block * info.scratch_bytes // 8 + 1, np.nan)
        more = [scratch.ctypes.data] if info.scratch_bytes else []
        flat = [number for array in arrays for number in array]
        self.launch([*flat, rows, self.tables.ctypes.data, refused.ctypes.data, *more], grid)
        return int(refused[0])
