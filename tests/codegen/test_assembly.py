"""The generated code uses the vectors and instructions that its level promises."""

import ctypes
import os
import re
import sys
from pathlib import Path

import pytest
from tests.codegen.sample_programs import chain_loops, random_straight, wide_output

from dalembert.codegen import LEVELS, assembly, compile_program, host_levels, llvm_ir
from dalembert.codegen.target import parse_module
from dalembert.errors import CompileError

PROGRAM = random_straight(5)


def test_aarch64_code_computes_on_whole_vectors():
    text = assembly(PROGRAM, level="neon")
    for instruction in ("fmla", "fmul", "fadd"):
        assert re.search(rf"\b{instruction}\s+v\d+\.2d, v\d+\.2d, v\d+\.2d", text), instruction
    single = assembly(PROGRAM, level="neon", dtype="float32")
    assert re.search(r"\bfmla\s+v\d+\.4s, v\d+\.4s, v\d+\.4s", single)


@pytest.mark.parametrize(("level", "register"), [("avx512", "zmm"), ("avx2", "ymm"), ("sse2", "xmm")])
def test_x86_code_fills_the_registers_of_its_level(level, register):
    text = assembly(PROGRAM, level=level)
    assert re.search(rf"\bv?mulpd\s.*%{register}\d+", text)
    wider = {"avx512": "none", "avx2": "zmm", "sse2": "ymm"}[level]
    assert wider not in text
    assert ("vfmadd" in text) == (level != "sse2")


@pytest.mark.parametrize("level", LEVELS)
def test_rows_are_turned_without_gathering(level):
    for program in (PROGRAM, chain_loops(20), wide_output(20)):
        assert "gather" not in assembly(program, level=level)


def test_no_fast_math_is_ever_written():
    text = llvm_ir(PROGRAM)
    assert not re.search(r"\b(fast|contract|reassoc|nnan|ninf|arcp|afn|nsz)\b", text)


@pytest.mark.parametrize("level", [level for level in LEVELS if level not in host_levels()])
def test_code_for_another_machine_is_not_loaded(level):
    with pytest.raises(CompileError, match="cannot run"):
        compile_program(PROGRAM, level=level)


@pytest.mark.skipif(sys.platform != "linux", reason="reads the memory of the process from /proc")
def test_modules_give_their_constants_back():
    """LLVM keeps constants as long as their context: those of 400,000 numbers are 100 MB."""

    def resident_megabytes() -> float:
        if hasattr(library := ctypes.CDLL(None), "malloc_trim"):
            library.malloc_trim(0)
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20

    def parse(first: int) -> None:
        numbers = "\n".join(f"  store volatile double {k}.5, ptr %p" for k in range(first, first + 100_000))
        parse_module(f"define void @f(ptr %p) {{\n{numbers}\n  ret void\n}}")

    parse(0)
    before = resident_megabytes()
    for round_ in range(1, 5):
        parse(round_ * 100_000)
    assert resident_megabytes() - before < 20.0
