"""From a kernel's text to PTX, through LLVM alone, and to machine code where NVIDIA's assembler is."""

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

from dalembert.codegen.gpu.architectures import ARCHITECTURES, TRIPLE, Architecture, target_machine
from dalembert.codegen.gpu.emit import GpuSource
from dalembert.codegen.target import KERNEL_NAME
from dalembert.errors import CompileError

__all__ = ["Assembled", "find_ptxas", "module_text", "ptx_of", "ptxas"]

BARRIER = "@llvm.nvvm.barrier.cta.sync.aligned.all"


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


def module_text(source: GpuSource) -> str:
    """The whole module for a GPU: the phases, and a kernel that runs them."""
    layout = source.info.layout
    attributes = [f'"nvvm.maxntid"="{layout.block}"']
    if layout.registers is not None:
        attributes.append(f'"nvvm.maxnreg"="{layout.registers}"')
    names = [item.split()[1] for item in source.parameters]
    kernel = [item.replace("ptr %", "ptr addrspace(1) %global.") for item in source.parameters]
    body = []
    for item, name in zip(source.parameters, names):
        if item.startswith("ptr"):
            body.append(f"{name} = addrspacecast ptr addrspace(1) %global.{name[1:]} to ptr")
    body.append("%thread = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()")
    body.append("%block = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()")
    body.append("%shared = addrspacecast ptr addrspace(3) @shared to ptr")
    arguments = ", ".join((*source.parameters, "i32 %thread", "i32 %block", "ptr %shared"))
    for number, phase in enumerate(source.phases):
        if number:
            body.append(f"call void {BARRIER}(i32 0)")
        body.append(f"call void @{phase}({arguments})")
    return "\n".join(
        [
            f'target triple = "{TRIPLE}"',
            *sorted(source.declared),
            f"declare void {BARRIER}(i32) convergent",
            "declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()",
            "declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()",
            "@shared = external addrspace(3) global [0 x i8], align 16",
            f"define internal void @pace() alwaysinline convergent {{ call void {BARRIER}(i32 0) ret void }}",
            source.text,
            f"define ptx_kernel void @{KERNEL_NAME}({', '.join(kernel)}) {' '.join(attributes)} {{",
            *body,
            "ret void",
            "}",
        ]
    )


def ptx_of(source: GpuSource, architecture: Architecture | None = None) -> str:
    """The PTX of a kernel."""
    machine = target_machine(architecture or ARCHITECTURES[source.info.architecture])
    module = llvm.parse_assembly(module_text(source))
    module.data_layout = str(machine.target_data)
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(module, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(0)))
    return str(machine.emit_assembly(module))


@functools.cache
def find_ptxas() -> Path | None:
    """NVIDIA's assembler: of the package nvidia-cuda-nvcc beside this Python, or on the path."""
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
