"""The phases of a GPU kernel compiled for the CPU and run thread by thread over a grid.

The very text that becomes PTX is compiled for this machine. A block runs its first phase for all its
threads, then its second, as the barriers between them allow, on memory that stands for the block's shared
memory. It is filled with NaN before, so that a phase that relied on what it finds there would show.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Final, final

import llvmlite.binding as llvm
import numpy as np

from dalembert.codegen.gpu.entry_points import HOST_NAME, host_module
from dalembert.codegen.gpu.slots import VECTOR_LOAD_BYTES
from dalembert.codegen.gpu.source import GpuSource
from dalembert.codegen.gpu.workers import stage_by_stage
from dalembert.codegen.target import target_for, target_machine
from dalembert.errors import CompileError

__all__ = ["HostKernel"]

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
