"""The generated code uses the vectors and instructions that its level promises."""

import re

import pytest
from tests.codegen.sample_programs import chain_loops, random_straight, wide_output

from dalembert.codegen import LEVELS, assembly, compile_program, host_levels, llvm_ir
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
