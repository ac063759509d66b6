"""The size of programs: counted, bounded while tracing and before compiling."""

from __future__ import annotations

import pytest
from tests.codegen.sample_programs import chain_loops, straight

import dalembert as da
from dalembert import codegen
from dalembert.codegen.gpu import gpu_function as gpu_emit
from dalembert.codegen.gpu.launch import ARCHITECTURES
from dalembert.errors import ArgumentError, CompileError, ProgramSizeError
from dalembert.tracing.graph import (
    ENVIRONMENT,
    MAX_OPERATIONS,
    Graph,
    check_size,
    max_nodes,
    max_operations,
)
from dalembert.tracing.program import ArrayArgument
from dalembert.tracing.trace import trace


def products(count: int):
    """Return a program of `count` products, each stored once."""
    graph = Graph()
    return straight({"x": 2}, {"y": [graph.input("x", 0) * (k + 2.0) for k in range(count)]})


def test_operations_and_stores_are_counted_once_whatever_a_loop_runs():
    assert check_size(products(10)) == 20
    assert check_size(chain_loops(5)) == check_size(chain_loops(50))


def test_a_program_at_the_limit_compiles_and_one_above_is_refused(monkeypatch):
    monkeypatch.setenv(ENVIRONMENT, "20")
    codegen.llvm_ir(products(10))
    with pytest.raises(ProgramSizeError, match="22 operations to compile; at most 20 are allowed"):
        codegen.llvm_ir(products(11))
    with pytest.raises(ProgramSizeError, match="22 operations"):
        codegen.compile_program(products(11))


def test_gpu_programs_have_a_limit_of_their_own(monkeypatch):
    architecture = next(iter(ARCHITECTURES.values()))
    monkeypatch.setattr(gpu_emit, "MAX_GPU_OPERATIONS", 20)
    gpu_emit.emit_gpu(products(10), bits=64, architecture=architecture)
    with pytest.raises(ProgramSizeError, match="22 operations to compile; at most 20"):
        gpu_emit.emit_gpu(products(11), bits=64, architecture=architecture)


def test_a_function_that_would_be_traced_for_ever_is_refused_while_it_is_traced(monkeypatch):
    monkeypatch.setenv(ENVIRONMENT, "1000")

    def endless(x):
        while True:
            x = x * x + 1.0

    with pytest.raises(ProgramSizeError, match="more than 2,000 operations traced, and only 1,000 may be"):
        trace(endless, [ArrayArgument("x")])


def test_the_refusal_names_function_model_size_and_remedy(monkeypatch):
    monkeypatch.setenv(ENVIRONMENT, "2000")
    model = da.models.humanoid()
    with pytest.raises(CompileError) as caught:
        da.compile(lambda tree, q: da.algorithms.mass_matrix(tree, q), model)(model.neutral())
    text = str(caught.value)
    assert "operations" in text
    assert repr(model) in text
    assert "2,000" in text
    assert "DALEMBERT_MAX_OPERATIONS" in text
    assert "pairs=" in text


@pytest.mark.parametrize("given", ["", "  "])
def test_without_a_variable_the_limit_is_the_documented_one(given, monkeypatch):
    monkeypatch.setenv(ENVIRONMENT, given)
    assert max_operations() == MAX_OPERATIONS
    assert max_nodes() > MAX_OPERATIONS


@pytest.mark.parametrize("given", ["many", "-3", "0", "1e6"])
def test_a_limit_that_is_no_number_of_operations_is_refused(given, monkeypatch):
    monkeypatch.setenv(ENVIRONMENT, given)
    with pytest.raises(ArgumentError, match="DALEMBERT_MAX_OPERATIONS"):
        max_operations()
