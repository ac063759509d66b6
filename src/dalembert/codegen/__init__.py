"""Code generation: programs are scheduled, written as LLVM text for one lane or many, compiled and cached."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import llvmlite.binding as llvm

from dalembert.codegen.cpu.cpu_kernel import (
    CpuKernel,
    KernelInfo,
    StepArray,
    compile_object,
    load_object,
    run_rollout,
)
from dalembert.codegen.cpu.entry import address_of, make_entry
from dalembert.codegen.cpu.threads import get_num_threads, set_num_threads
from dalembert.codegen.machine_code import (
    cache_directory,
    cache_key,
    cache_writable,
    load_entry,
    store_entry,
)
from dalembert.codegen.memory import Rollout
from dalembert.codegen.target import (
    BITS,
    LEVELS,
    check_lanes,
    default_lanes,
    host_level,
    host_levels,
    target_for,
    target_machine,
)
from dalembert.errors import UnknownNameError
from dalembert.tracing.program import Program

__all__ = [
    "LEVELS",
    "CpuKernel",
    "KernelInfo",
    "Rollout",
    "StepArray",
    "address_of",
    "assembly",
    "cache_directory",
    "cache_writable",
    "compile_program",
    "default_lanes",
    "get_num_threads",
    "host_level",
    "host_levels",
    "llvm_ir",
    "load_kernel",
    "make_entry",
    "run_rollout",
    "set_num_threads",
]


def compile_program(
    program: Program,
    *,
    dtype: str = "float64",
    lanes: int | None = None,
    level: str | None = None,
    key: str | None = None,
    extra: Mapping[str, Any] | None = None,
    rollout: Rollout | None = None,
) -> CpuKernel:
    """Compile a program for this machine, or load what an earlier process compiled.

    `lanes`: samples at once, 1 for single calls; None fills the vector registers of `level` ("sse2" |
    "avx2" | "avx512" | "neon"; None: the machine's best). `key` names the program in the disk cache; None
    takes the program's digest. `extra`, any JSON data, is stored with the kernel and found again as
    `kernel.extra`. `rollout` makes it a kernel of many steps (see `run_rollout`).
    """
    identity = program.digest() if key is None else key
    kernel = load_kernel(identity, dtype=dtype, lanes=lanes, level=level, rollout=rollout)
    if kernel is not None:
        return kernel
    chosen = _check_lanes(dtype, lanes, level)
    info, codes, tables = compile_object(
        program, dtype=dtype, lanes=chosen, target=target_for(level), rollout=rollout
    )
    name = _entry_name(identity, dtype, chosen, level, rollout)
    description = {"info": info.to_json(), "extra": dict(extra or {})}
    store_entry(name, description, [tables, *codes])
    return load_object(info, codes, tables, extra=description["extra"])


def load_kernel(
    key: str,
    *,
    dtype: str = "float64",
    lanes: int | None = None,
    level: str | None = None,
    rollout: Rollout | None = None,
) -> CpuKernel | None:
    """Return the kernel that `compile_program` stored on disk under `key`, or None. Needs no program."""
    name = _entry_name(key, dtype, _check_lanes(dtype, lanes, level), level, rollout)
    entry = load_entry(name)
    if entry is None:
        return None
    description, (tables, *codes) = entry
    return load_object(KernelInfo.from_json(description["info"]), codes, tables, extra=description["extra"])


def _entry_name(identity: str, dtype: str, lanes: int, level: str | None, rollout: Rollout | None) -> str:
    return cache_key(identity, dtype=dtype, lanes=lanes, level=level or host_level(), rollout=rollout)


def llvm_ir(
    program: Program,
    *,
    dtype: str = "float64",
    lanes: int | None = None,
    level: str | None = None,
    rollout: Rollout | None = None,
) -> str:
    """Return the LLVM text of a program's kernel; of a large program, of all its modules."""
    return "\n".join(_module_texts(program, dtype, lanes, level, rollout))


def assembly(
    program: Program, *, dtype: str = "float64", lanes: int | None = None, level: str | None = None
) -> str:
    """Return the assembly of a program's kernel, for any level of `LEVELS`, this machine's or not."""
    machine = target_machine(target_for(level))
    texts = _module_texts(program, dtype, lanes, level, None)
    return "".join(str(machine.emit_assembly(llvm.parse_assembly(text))) for text in texts)


def _module_texts(
    program: Program, dtype: str, lanes: int | None, level: str | None, rollout: Rollout | None
) -> tuple[str, ...]:
    from dalembert.codegen.cpu.llvm_function import emit_program

    chosen = _check_lanes(dtype, lanes, level)
    emitted = emit_program(program, bits=BITS[dtype], lanes=chosen, target=target_for(level), rollout=rollout)
    return (emitted.text, *emitted.parts)


def _check_lanes(dtype: str, lanes: int | None, level: str | None) -> int:
    if dtype not in BITS:
        raise UnknownNameError.of("dtype", dtype, BITS)
    return default_lanes(dtype, level) if lanes is None else check_lanes(lanes)
