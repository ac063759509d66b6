"""Programs to machine code: scheduled, written as LLVM text for scalar or SIMD lanes, compiled, cached and called."""

from __future__ import annotations

import llvmlite.binding as llvm

from dalembert.codegen.cpu import CpuKernel, KernelInfo, compile_object, load_object
from dalembert.codegen.emit_llvm import emit_program
from dalembert.codegen.target import (
    LEVELS,
    check_lanes,
    default_lanes,
    host_level,
    host_levels,
    target_for,
    target_machine,
)
from dalembert.codegen.threads import get_num_threads, set_num_threads
from dalembert.errors import UnknownNameError
from dalembert.tracing.program import Program

__all__ = [
    "LEVELS",
    "CpuKernel",
    "KernelInfo",
    "assembly",
    "compile_program",
    "default_lanes",
    "get_num_threads",
    "host_level",
    "host_levels",
    "llvm_ir",
    "set_num_threads",
]

_BITS = {"float64": 64, "float32": 32}


def compile_program(
    program: Program,
    *,
    dtype: str = "float64",
    lanes: int | None = None,
    level: str | None = None,
    key: str | None = None,
) -> CpuKernel:
    """Compile a program for this machine.

    `lanes`: samples at once, 1 for single calls; None fills the vector registers of `level` ("sse2" | "avx2" | "avx512" |
    "neon"; None: the machine's best).
    """
    chosen = _check_lanes(dtype, lanes, level)
    info, code, tables = compile_object(program, dtype=dtype, lanes=chosen, target=target_for(level))
    return load_object(info, code, tables)


def llvm_ir(
    program: Program, *, dtype: str = "float64", lanes: int | None = None, level: str | None = None
) -> str:
    """The LLVM text of a program's kernel."""
    chosen = _check_lanes(dtype, lanes, level)
    return emit_program(program, bits=_BITS[dtype], lanes=chosen, target=target_for(level)).text


def assembly(
    program: Program, *, dtype: str = "float64", lanes: int | None = None, level: str | None = None
) -> str:
    """The assembly of a program's kernel, for any level of `LEVELS`, this machine's or not."""
    text = llvm_ir(program, dtype=dtype, lanes=lanes, level=level)
    machine = target_machine(target_for(level))
    return str(machine.emit_assembly(llvm.parse_assembly(text)))


def _check_lanes(dtype: str, lanes: int | None, level: str | None) -> int:
    if dtype not in _BITS:
        raise UnknownNameError.of("dtype", dtype, _BITS)
    return default_lanes(dtype, level) if lanes is None else check_lanes(lanes)
