"""Several threads a sample: the parts fit together, and what they compute is the CPU's, bit for bit."""

import re
from itertools import pairwise

import numpy as np
import pytest
from tests.codegen.gpu.host_kernel import HostKernel
from tests.codegen.gpu.launching import SM90, roll_on_host, run_on_host, source_of
from tests.codegen.gpu.test_assemble import assembler  # noqa: F401  (a fixture)
from tests.codegen.gpu.test_host_run import several_large
from tests.codegen.gpu.test_rollout_phases import _on_cpu
from tests.codegen.sample_programs import (
    bits,
    chain_loops,
    every_operation,
    random_inputs,
    random_straight,
    run,
    run_arrays,
    straight,
    wide_output,
)
from tests.codegen.test_rollout import CASES, _inputs
from tests.conformance import models
from tests.conformance.backends import arrays_of, draw_states
from tests.conformance.enrolment import ENROLLED

from dalembert.codegen import compile_program, host_level
from dalembert.codegen.gpu import ARCHITECTURES, Layout, emit_gpu, ptx_of
from dalembert.codegen.gpu.launch import BARRIER
from dalembert.codegen.gpu.stages import divide
from dalembert.codegen.schedule import schedule
from dalembert.codegen.target import LEVELS
from dalembert.compiler.lowering import lower
from dalembert.errors import ArgumentError, CompileError
from dalembert.tracing.graph import Graph
from dalembert.tracing.program import Straight

exact = pytest.mark.skipif(
    not LEVELS[host_level()].fma, reason="a processor without fused multiply-adds rounds otherwise"
)

LAYOUTS = {
    "two": Layout(block=64, parts=2),
    "two, 64 samples, slots in shared memory": Layout(block=128, parts=2, values=12, shared=100 * 1024),
    "four, slots in local memory": Layout(block=128, parts=4, values=6, shared=12 * 1024),
    "eight": Layout(block=256, parts=8, shared=100 * 1024),
    "three, rows not staged": Layout(block=96, parts=3, shared=0),
}

PROGRAMS = {
    "straight": random_straight(3),
    "longer": random_straight(7, size=800, inputs=40, outputs=60),
    "wide": wide_output(23),
    "several large": several_large(20),
    "every operation": every_operation()[0],
}


def _instructions(program):
    return schedule(list(dict.fromkeys(program.statements[0].values)), fma=True)


@pytest.mark.parametrize("workers", [2, 3, 4, 8])
@pytest.mark.parametrize("name", PROGRAMS)
def test_values_that_cross_pass_a_barrier(name, workers):
    """An operand is of an earlier stage, or the worker's own and of no later one."""
    program = _instructions(PROGRAMS[name])
    parts = divide(program, workers)
    for node in program.order:
        assert 0 <= parts.worker[node] < workers
        assert 0 <= parts.stage[node] < parts.stages
        for operand in program.args[node]:
            if program.is_leaf(operand):
                assert parts.worker[operand] == -1
            elif parts.worker[operand] == parts.worker[node]:
                assert parts.stage[operand] <= parts.stage[node]
            else:
                assert parts.stage[operand] < parts.stage[node]


def _limbs(count, length):
    """Recursions out along limbs and back, joined by one sum: what a tree of bodies gives."""
    graph = Graph()
    total, ends = graph.input("root", 0), []
    for limb in range(count):
        state = [graph.input("root", k) for k in range(4)]
        for k in range(length):
            angle = graph.input("q", limb * length + k)
            s, c = graph.operation("sin", angle), graph.operation("cos", angle)
            state = [s * state[j] + c * state[(j + 1) % 4] + state[(j + 2) % 4] * angle for j in range(4)]
        ends.append(state)
        total = total + state[0] * state[1] + state[2] * state[3]
    results = [x * total + y for state in ends for x, y in pairwise(state)]
    return straight({"root": 4, "q": count * length}, {"y": results})


@pytest.mark.parametrize("workers", [2, 4])
def test_limbs_are_the_parts(workers):
    """Independent recursions are shared evenly, each stays with one worker, and few barriers are needed."""
    program = _instructions(_limbs(4, 12))
    parts = divide(program, workers)
    crossing = {
        operand
        for node in program.order
        for operand in program.args[node]
        if parts.worker[operand] not in (-1, parts.worker[node])
    }
    assert len(crossing) <= 30
    assert parts.stages <= 6
    assert max(map(parts.worker.count, range(workers))) < 1.15 * len(program.order) / workers


@exact
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_parts_compute_what_the_cpu_does(name, layout):
    program = PROGRAMS[name]
    arrays = random_inputs(program, 75, "float64")
    wanted = run(compile_program(program), arrays)
    found, refused = run_on_host(program, arrays, layout=LAYOUTS[layout])
    assert refused == -1
    for output, array in wanted.items():
        assert np.array_equal(bits(array), bits(found[output])), output


@exact
@pytest.mark.parametrize("rows", [1, 31, 64, 65])
def test_rows_of_any_number_and_stride(rows):
    program = PROGRAMS["straight"]
    wide = random_inputs(program, 2 * rows, "float64")
    arrays = {name: array[::2] for name, array in wide.items()}
    arrays["y"] = np.broadcast_to(wide["y"][:1], (rows, 3))
    wanted = run(compile_program(program), arrays)
    found, _ = run_on_host(program, arrays, layout=LAYOUTS["four, slots in local memory"])
    for output, array in wanted.items():
        assert np.array_equal(bits(array), bits(found[output]))


@exact
@pytest.mark.parametrize("parts", [2, 4])
@pytest.mark.parametrize("entry", ENROLLED[::12], ids=lambda entry: entry.name)
def test_enrolled_algorithms_in_parts_compute_what_the_cpu_does(entry, parts):
    tree = getattr(models, entry.models[0] if entry.models else "branched")()
    recipe = entry.recipe(tree)
    program = lower(recipe, "float64").program
    if len(program.statements) != 1 or not isinstance(program.statements[0], Straight):
        pytest.skip("a program with loops has one thread a sample")
    samples = 3
    given = arrays_of(recipe, draw_states(tree, samples, recipe=recipe))
    inputs = [np.ascontiguousarray(array.reshape(samples, -1), np.float64) for array in given]
    wanted = [np.full((samples, spec.size), 7.0) for spec in program.outputs]
    found = [np.full((samples, spec.size), 9.0) for spec in program.outputs]
    assert run_arrays(compile_program(program, lanes=1), inputs, wanted) == -1
    layout = Layout(block=32 * parts, parts=parts, values=40, shared=100 * 1024)
    kernel = HostKernel(emit_gpu(program, bits=64, architecture=SM90, layout=layout))
    arrays = [(array.ctypes.data, array.strides[0]) for array in (*inputs, *found)]
    assert kernel.run(arrays, samples) == -1
    for ours, theirs in zip(found, wanted):
        assert np.array_equal(bits(ours), bits(theirs))


@exact
@pytest.mark.parametrize("layout", ["two", "eight"])
@pytest.mark.parametrize("case", ["straight", "exchange"])
def test_steps_in_one_launch_are_the_cpus(case, layout):
    program, rollout = CASES[case]
    given = _inputs(program, rollout, 70, 7, "float64")
    wanted = _on_cpu(program, rollout, given, 70, 7, 2, 3)
    found = roll_on_host(program, rollout, given, rows=70, steps=7, first=2, every=3, layout=LAYOUTS[layout])
    for theirs, ours in zip(wanted[0] + wanted[1] + [wanted[2]], found[0] + found[1] + [found[2]]):
        assert np.array_equal(bits(theirs), bits(ours))


def test_a_refused_row_is_noted_once():
    graph = Graph()
    x = [graph.input("x", k) for k in range(4)]
    program = straight({"x": 4}, {"y": [a * b for a, b in pairwise(x)]}, check=x[0] < graph.constant(0.0))
    arrays = {"x": np.ones((70, 4))}
    arrays["x"][[41, 66], 0] = -1.0
    found, refused = run_on_host(program, arrays, layout=LAYOUTS["two"])
    assert refused == 41
    assert np.array_equal(found["y"][41], [-1.0, 1.0, 1.0])


@pytest.mark.parametrize(
    ("architecture", "bits"), [("sm_80", 32), ("sm_90", 32), ("sm_90", 64), ("sm_100", 64)]
)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_parts_assemble_and_every_worker_meets_every_barrier(assembler, layout, architecture, bits):  # noqa: F811
    chosen = ARCHITECTURES[architecture]
    source = emit_gpu(PROGRAMS["straight"], bits=bits, architecture=chosen, layout=LAYOUTS[layout])
    barriers = {lines.count(BARRIER) for lines in source.workers}
    assert len(barriers) == 1
    assert len(source.workers) == LAYOUTS[layout].parts
    ptx = ptx_of(source)
    kernel = ptx.partition(".entry dalembert_kernel")[2]
    phases = len(source.phases) - 1
    assert len(re.findall(r"\bbar\.sync", kernel)) == barriers.pop() * len(source.workers) + phases
    assert not re.findall(r"\b(?:ld|st)\.(?:v\d\.)?[bfsu]\d", kernel)
    near = kernel.partition("call.uni")[0] if bits == 32 else kernel
    assert "worker" not in near
    assert f".maxntid {LAYOUTS[layout].block}" in kernel
    assert assembler(ptx, chosen).registers > 0


def test_what_cannot_be_divided_is_refused():
    with pytest.raises(ArgumentError, match="3 warps"):
        Layout(block=96, parts=2)
    with pytest.raises(CompileError, match="straight"):
        source_of(chain_loops(23), 64, Layout(block=64, parts=2))
