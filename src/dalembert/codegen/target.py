"""Processors to generate code for: instruction set, width of vectors, number of registers."""

from __future__ import annotations

import functools
import platform
from dataclasses import dataclass, replace
from typing import Any, Final, final

import llvmlite.binding as llvm

from dalembert.errors import ArgumentError, CompileError, UnknownNameError

BITS: Final = {"float64": 64, "float32": 32}
"""The float types of kernels."""

KERNEL_NAME: Final = "dalembert_kernel"
"""The function that object code exports."""


@final
@dataclass(frozen=True, slots=True)
class Target:
    """A processor: `level` names the instruction set; `registers` are those left to values, a few being
    needed for operands."""

    level: str
    triple: str
    cpu: str
    features: str
    fma: bool
    vector_bytes: int
    registers: int

    @property
    def attributes(self) -> str:
        """Attributes of every function: full vectors even where a processor would rather have half ones."""
        bits = self.vector_bytes * 8
        widths = f'"prefer-vector-width"="{bits}" "min-legal-vector-width"="{bits}"'
        return f'nounwind {widths} "frame-pointer"="none"'


_X86: Final = "x86_64-unknown-linux-gnu"

LEVELS: Final[dict[str, Target]] = {
    "sse2": Target("sse2", _X86, "x86-64", "", False, 16, 12),
    "avx2": Target("avx2", _X86, "x86-64-v3", "", True, 32, 12),
    "avx512": Target("avx512", _X86, "x86-64-v4", "", True, 64, 24),
    "neon": Target("neon", "aarch64-unknown-linux-gnu", "generic", "+neon", True, 16, 24),
}

_NEEDED: Final = {
    "avx512": ("avx512f", "avx512dq", "avx512bw", "avx512vl", "avx512cd", "fma", "avx2", "bmi2"),
    "avx2": ("avx2", "fma", "bmi2", "f16c"),
    "sse2": (),
}


@functools.cache
def initialize() -> None:
    """Start the parts of LLVM that make code for this machine."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


@functools.cache
def _host_features() -> dict[str, bool]:
    return dict(llvm.get_host_cpu_features())


@functools.cache
def host_levels() -> tuple[str, ...]:
    """Return the levels that this machine runs, the best first."""
    machine = platform.machine().lower()
    if machine in ("aarch64", "arm64"):
        return ("neon",)
    if machine not in ("x86_64", "amd64"):
        raise CompileError(
            f"no code generator for the processor {machine!r}; x86-64 and AArch64 are supported"
        )
    features = _host_features()
    return tuple(level for level, needed in _NEEDED.items() if all(features.get(item) for item in needed))


def host_level() -> str:
    """Return the best level of this machine."""
    return host_levels()[0]


def default_lanes(dtype: str, level: str | None = None) -> int:
    """Return the number of samples in one vector register: 8 float64 at the level avx512."""
    if dtype not in BITS:
        raise UnknownNameError.of("dtype", dtype, BITS)
    return target_for(level).vector_bytes * 8 // BITS[dtype]


@functools.cache
def target_for(level: str | None = None) -> Target:
    """Return the target of a level; the host's best is tuned for the very processor."""
    best = host_level()
    level = level or best
    if level not in LEVELS:
        raise UnknownNameError.of("level", level, LEVELS)
    base = LEVELS[level]
    if level not in host_levels():
        return base
    here = replace(base, triple=llvm.get_process_triple())
    if level != best:
        return here
    features = (
        "+" * present + "-" * (not present) + name for name, present in sorted(_host_features().items())
    )
    return replace(here, cpu=llvm.get_host_cpu_name(), features=",".join(features))


def check_lanes(lanes: int) -> int:
    """Check that lanes are a power of two and return them."""
    if not (1 <= lanes <= 64 and lanes & (lanes - 1) == 0):
        raise ArgumentError(f"lanes={lanes}: expected a power of two from 1 to 64")
    return lanes


def parse_module(text: str) -> Any:
    """Parse LLVM text in a context of its own; a context keeps every constant that it has seen to its end."""
    return llvm.parse_assembly(text, llvm.create_context())


def target_machine(target: Target) -> Any:
    """Return LLVM's code generator for a target.

    Optimisation level 1: at level 2 the code generator takes longer for the same code, since nothing is
    left to be optimised. Small code model and position-independent code: constants are addressed relative
    to the instruction.
    """
    initialize()
    if target.level not in host_levels():
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
    return llvm.Target.from_triple(target.triple).create_target_machine(
        cpu=target.cpu, features=target.features, opt=1, reloc="pic", codemodel="small", jit=True
    )
