"""Code generation: programs are scheduled, written as LLVM text for one lane or many, compiled and cached."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict, Unpack

from dalembert.codegen.cpu.cpu_kernel import (
    BoundSteps,
    CpuKernel,
    KernelInfo,
    StepArray,
    compile_object,
    load_object,
)
from dalembert.codegen.cpu.entry import address_of, make_entry
from dalembert.codegen.cpu.threads import get_num_threads, set_num_threads
from dalembert.codegen.machine_code import KERNELS, cache_key
from dalembert.codegen.memory import Rollout
from dalembert.codegen.target import (
    BITS,
    LEVELS,
    check_lanes,
    default_lanes,
    host_level,
    host_levels,
    parse_module,
    target_for,
    target_machine,
)
from dalembert.tracing.program import Program

__all__ = [
    "LEVELS",
    "BoundSteps",
    "CpuKernel",
    "KernelInfo",
    "Options",
    "Rollout",
    "StepArray",
    "address_of",
    "assembly",
    "compile_program",
    "default_lanes",
    "get_num_threads",
    "host_level",
    "host_levels",
    "llvm_ir",
    "load_kernel",
    "make_entry",
    "set_num_threads",
]


class Options(TypedDict, total=False):
    """Options of a kernel: `dtype`, float64 or float32; `lanes`, the samples at once, 1 for single calls,
    None to fill the vector registers of `level` ("sse2" | "avx2" | "avx512" | "neon"; None: the machine's
    best); `rollout` for a kernel of many steps (see `BoundSteps`)."""

    dtype: str
    lanes: int | None
    level: str | None
    rollout: Rollout | None


def compile_program(
    program: Program,
    *,
    key: str | None = None,
    extra: Mapping[str, Any] | None = None,
    **options: Unpack[Options],
) -> CpuKernel:
    """Compile a program for this machine, or load what an earlier process compiled.

    `key` names the program in the disk cache; None takes the program's digest. `extra`, any JSON data, is
    stored with the kernel and found again as `kernel.extra`.
    """
    identity = program.digest() if key is None else key
    kernel = load_kernel(identity, **options)
    if kernel is not None:
        return kernel
    info, codes, tables = compile_object(program, **_check_options(**options))
    description = {"info": info.to_json(), "extra": dict(extra or {})}
    KERNELS.store(_entry_name(identity, **options), description, [tables, *codes])
    return load_object(info, codes, tables, extra=description["extra"])


def load_kernel(key: str, **options: Unpack[Options]) -> CpuKernel | None:
    """Return the kernel that `compile_program` stored on disk under `key`, or None. Needs no program."""
    entry = KERNELS.load(_entry_name(key, **options))
    if entry is None:
        return None
    description, (tables, *codes) = entry
    return load_object(KernelInfo.from_json(description["info"]), codes, tables, extra=description["extra"])


def _entry_name(identity: str, **options: Unpack[Options]) -> str:
    chosen = _check_options(**options)
    return cache_key(identity, **chosen | {"target": chosen["target"].level})


def llvm_ir(program: Program, **options: Unpack[Options]) -> str:
    """Return the LLVM text of a program's kernel; of a large program, of all its modules."""
    return "\n".join(_module_texts(program, **options))


def assembly(program: Program, **options: Unpack[Options]) -> str:
    """Return the assembly of a program's kernel, for any level of `LEVELS`, this machine's or not."""
    machine = target_machine(target_for(options.get("level")))
    texts = _module_texts(program, **options)
    return "".join(str(machine.emit_assembly(parse_module(text))) for text in texts)


def _module_texts(program: Program, **options: Unpack[Options]) -> tuple[str, ...]:
    from dalembert.codegen.cpu.llvm_function import emit_program

    chosen = _check_options(**options)
    emitted = emit_program(program, bits=BITS[chosen.pop("dtype")], **chosen)
    return (emitted.text, *emitted.parts)


def _check_options(
    dtype: str = "float64", lanes: int | None = None, level: str | None = None, rollout: Rollout | None = None
) -> dict[str, Any]:
    """Return the options that `compile_object` takes."""
    widest = default_lanes(dtype, level)
    lanes = widest if lanes is None else check_lanes(lanes)
    return {"dtype": dtype, "lanes": lanes, "target": target_for(level), "rollout": rollout}
