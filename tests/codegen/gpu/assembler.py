"""NVIDIA's assembler, where it is installed: the machine code of PTX, its registers and its spills."""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from dalembert.codegen.gpu.launch import Architecture
from dalembert.codegen.target import KERNEL_NAME
from dalembert.errors import CompileError


@dataclass(frozen=True, slots=True)
class Assembled:
    """Machine code, and what the assembler says of it: registers and bytes of spills of a thread."""

    code: bytes
    registers: int
    stack: int
    spill_stores: int
    spill_loads: int
    report: str


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
