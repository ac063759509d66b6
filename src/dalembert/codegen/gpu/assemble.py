"""Assembly: a kernel's text becomes PTX by LLVM, and machine code where NVIDIA's assembler is installed."""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import final

import llvmlite.binding as llvm

from dalembert.codegen.gpu.architectures import ARCHITECTURES, Architecture, target_machine
from dalembert.codegen.gpu.entry_points import gpu_module
from dalembert.codegen.gpu.source import GpuSource
from dalembert.codegen.target import KERNEL_NAME
from dalembert.errors import CompileError

__all__ = ["Assembled", "find_ptxas", "ptx_of", "ptxas"]


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
    machine = target_machine(architecture or ARCHITECTURES[source.info.architecture])
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
