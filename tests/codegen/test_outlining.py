"""Programs that are split into functions compute the same bits, and no function or block is outsized."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from tests.codegen.sample_programs import (
    chain_loops,
    every_operation,
    random_straight,
    run_arrays,
    straight,
    wide_output,
)

from dalembert.codegen import outlining
from dalembert.codegen.cpu import llvm_function as emit_llvm
from dalembert.codegen.cpu.cpu_kernel import compile_object, load_object
from dalembert.codegen.outlining import cut_points, with_short_blocks
from dalembert.codegen.schedule import schedule
from dalembert.codegen.target import target_for
from dalembert.errors import CompileError, ProgramSizeError
from dalembert.tracing import graph as graph_module
from dalembert.tracing.expression import Expression
from dalembert.tracing.graph import Graph
from dalembert.tracing.program import ArraySpec, Program, Store, Straight


def text_of(program: Program, lanes: int = 1) -> list[str]:
    """Return the texts of a program's modules."""
    emitted = emit_llvm.emit_program(program, bits=64, lanes=lanes, target=target_for(None))
    return [emitted.text, *emitted.parts]


def results(program: Program, lanes: int, dtype: str = "float64") -> tuple[int, list[bytes]]:
    """Return the refused row and the bytes of all outputs of 21 rows."""
    info, codes, tables = compile_object(program, dtype=dtype, lanes=lanes, target=target_for(None))
    rng = np.random.default_rng(1)
    inputs = [rng.uniform(-1.0, 1.0, (21, spec.size)).astype(dtype) for spec in program.inputs]
    outputs = [np.full((21, spec.size), np.nan, dtype) for spec in program.outputs]
    refused = run_arrays(load_object(info, codes, tables), inputs, outputs)
    return refused, [output.tobytes() for output in outputs]


def split_everything(monkeypatch: pytest.MonkeyPatch, length: int) -> None:
    """Split every program into functions of `length` instructions."""
    monkeypatch.setattr(emit_llvm, "SPLIT_OPERATIONS", -1)
    monkeypatch.setattr(outlining, "MIN_FUNCTION_INSTRUCTIONS", 1)
    monkeypatch.setattr(outlining, "MODULE_LINES", 10 * length)
    monkeypatch.setattr(emit_llvm, "FUNCTION_INSTRUCTIONS", length)


def with_check(seed: int) -> Program:
    """Return random arithmetic that refuses the rows in which a long sum of conditions holds."""
    graph = Graph()
    x = [graph.input("x", k) for k in range(4)]
    bad: Expression = graph.condition(False)
    for k in range(60):
        bad = graph.operation("or", bad, graph.operation("lt", 1.9 + 0.001 * k, x[k % 4] + x[(k + seed) % 4]))
    return straight({"x": 4}, {"y": [x[0] * x[1] + 2.0]}, check=bad)


PROGRAMS = {
    "straight": lambda: random_straight(3),
    "loops": lambda: chain_loops(9, 1),
    "every operation": lambda: every_operation()[0],
    "wide output": lambda: wide_output(13),
    "check": lambda: with_check(1),
}


@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_cuts_change_no_bit(name, dtype, lanes, monkeypatch):
    program = PROGRAMS[name]()
    whole = results(program, lanes, dtype)
    for length in (40, 300):
        with monkeypatch.context() as patch:
            split_everything(patch, length)
            assert len(text_of(program, lanes)) > 1
            assert results(program, lanes, dtype) == whole


def test_conditions_pass_a_cut_as_numbers():
    graph = Graph()
    x, y = graph.input("x", 0), graph.input("x", 1)
    mask = x < y
    value = x
    for k in range(50):
        value = graph.operation("select", mask, value * 1.5 + float(k), value - y)
    instructions = schedule([value], fma=True)
    cuts = cut_points(instructions, 20)
    assert len(cuts) > 2
    bounds = [0, *cuts, len(instructions.order)]
    pieces = [instructions.order[a:b] for a, b in pairwise(bounds)]
    for piece in pieces:
        own = set(piece)
        for node in piece:
            for item in instructions.args[node]:
                assert not instructions.is_mask(item) or item in own


def test_a_program_at_the_limit_is_one_function_and_one_above_is_split(monkeypatch):
    program = random_straight(5, size=40)
    size = graph_module.check_size(program)
    monkeypatch.setattr(emit_llvm, "SPLIT_OPERATIONS", size)
    assert len(text_of(program)) == 1
    monkeypatch.setattr(emit_llvm, "SPLIT_OPERATIONS", size - 1)
    assert len(text_of(program)) > 1


def test_many_constants_are_split():
    graph = Graph()
    terms = [graph.input("x", k % 7) * (k + 0.5) for k in range(outlining.SPLIT_CONSTANTS + 1)]
    texts = text_of(straight({"x": 7}, {"y": terms}))
    assert len(texts) > 1
    for text in texts:
        for function in re.split(r"^define ", text, flags=re.MULTILINE)[1:]:
            assert len(set(re.findall(r"0x[0-9A-F]{16}", function))) < outlining.FUNCTION_INSTRUCTIONS / 2


@pytest.mark.parametrize("lanes", [1, 8])
def test_no_block_is_outsized_even_of_constants(lanes):
    graph = Graph()
    values = [graph.constant(float(k % 3)) for k in range(20_000)]
    program = straight({"x": 1}, {"y": [*values, graph.input("x", 0)]})
    for text in text_of(program, lanes):
        lengths = [len(block.splitlines()) for block in re.split(r"^[\w.]+:$", text, flags=re.MULTILINE)]
        assert max(lengths[1:]) <= outlining.MAX_BLOCK_LINES + 10


def test_phis_name_the_last_piece_of_a_long_block():
    lines = ["entry:", "br label %a", "a:", "%i = phi i64 [ 0, %entry ], [ %j, %a ]"]
    lines += [f"%x{k} = add i64 %i, {k}" for k in range(20)]
    lines += ["%j = add i64 %i, 1", "%m = icmp slt i64 %j, %rows", "br i1 %m, label %a, label %b", "b:"]
    lines += ["ret void", "never:", "ret void"]
    short = with_short_blocks(lines, 8)
    labels = [line[:-1] for line in short if line.endswith(":")]
    last = labels[labels.index("b") - 1]
    assert last != "a"
    assert f"%i = phi i64 [ 0, %entry ], [ %j, %{last} ]" in short


def test_a_function_that_cannot_be_split_is_refused_before_llvm_sees_it(monkeypatch):
    monkeypatch.setattr(emit_llvm, "MAX_FUNCTION_LINES", 200)
    inputs = tuple(ArraySpec(f"x{k}", 1) for k in range(100))
    graph = Graph()
    program = Program(
        inputs, (ArraySpec("y", 1),), statements=(Straight((Store.fixed("y", 0, graph.input("x3", 0)),)),)
    )
    with pytest.raises(
        ProgramSizeError, match=r"one function of .* lines of LLVM text for 1 lanes; at most 200"
    ):
        text_of(program)


def test_what_llvm_refuses_is_an_error_of_the_library(monkeypatch):
    emit = emit_llvm.emit_program
    broken = lambda *given, **options: replace(emit(*given, **options), text="define void @f() { ret i1 }")
    with monkeypatch.context() as patch:
        patch.setattr(emit_llvm, "emit_program", broken)
        with pytest.raises(CompileError, match=r"LLVM .* refused a kernel"):
            results(random_straight(3), 1)
    assert results(random_straight(3), 1)[0] < 0


@pytest.mark.parametrize("lanes", [1, 8])
def test_programs_without_inputs_outputs_or_statements_compile(lanes):
    for program in (
        straight({}, {"y": [Graph().constant(1.0)]}),
        Program((ArraySpec("x", 2),), (), statements=(Straight(()),)),
        Program((ArraySpec("x", 0),), (ArraySpec("y", 0),), statements=(Straight(()),)),
        Program((ArraySpec("x", 2),), (ArraySpec("y", 3),)),
    ):
        results(program, lanes)


def test_constants_of_every_size_compile():
    graph = Graph()
    x = graph.input("x", 0)
    numbers = [1e308, -1e308, float("inf"), float("nan"), 5e-324, 1e-320]
    results(straight({"x": 1}, {"y": [x * number for number in numbers]}), 1)
