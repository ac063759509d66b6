"""A row's result is its own: same bits alone and anywhere in a batch, nothing written outside, any stride."""

import multiprocessing
import os
import subprocess
import sys

import numpy as np
import pytest
from tests.codegen.sample_programs import (
    bits,
    chain_loops,
    random_inputs,
    random_straight,
    run,
    run_arrays,
    straight,
    wide_output,
)

from dalembert import codegen
from dalembert.codegen import compile_program, host_levels, set_num_threads
from dalembert.errors import ArgumentError, UnknownNameError
from dalembert.tracing.graph import Graph

PROGRAMS = {"straight": random_straight(7), "matrix": wide_output(19), "loops": chain_loops(23)}


@pytest.fixture
def two_threads(monkeypatch):
    monkeypatch.setattr(codegen.cpu.threads, "WORTH_A_THREAD", 1)
    before = codegen.get_num_threads()
    yield set_num_threads
    set_num_threads(before)


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_sample_has_the_same_bits_alone_and_in_any_batch(name, dtype):
    program = PROGRAMS[name]
    for level in host_levels():
        single = compile_program(program, dtype=dtype, level=level, lanes=1)
        wide = compile_program(program, dtype=dtype, level=level)
        most = 2 * wide.info.lanes + 1
        arrays = random_inputs(program, most, dtype)
        alone = [
            run(single, {key: array[row : row + 1] for key, array in arrays.items()}) for row in range(most)
        ]
        for rows in range(1, most + 1):
            batch = run(wide, {key: array[most - rows :] for key, array in arrays.items()})
            for key, values in batch.items():
                expected = np.concatenate([alone[row][key] for row in range(most - rows, most)])
                assert np.array_equal(bits(values), bits(expected)), f"{key}, {rows} rows, {level}"


@pytest.mark.parametrize("name", PROGRAMS)
def test_results_do_not_depend_on_the_number_of_threads(name, two_threads):
    kernel = compile_program(PROGRAMS[name])
    arrays = random_inputs(PROGRAMS[name], 203, "float64")
    expected = run(kernel, arrays)
    for threads in (1, 2, 3, 5):
        two_threads(threads)
        found = run(kernel, arrays, threads=True)
        for key, values in expected.items():
            assert np.array_equal(bits(found[key]), bits(values))


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_row_of_nan_leaves_its_neighbours_alone(name):
    program = PROGRAMS[name]
    kernel = compile_program(program)
    arrays = random_inputs(program, 19, "float64")
    expected = run(kernel, arrays)
    spoiled = {key: array.copy() for key, array in arrays.items()}
    for key, array in spoiled.items():
        array[[3, 17]] = [[np.nan], [1e300 if key == "x" else np.inf]]
    found = run(kernel, spoiled)
    others = [row for row in range(19) if row not in (3, 17)]
    for key, values in expected.items():
        assert np.array_equal(bits(found[key][others]), bits(values[others]))
    assert any(np.isnan(values[3]).any() for values in found.values())


@pytest.mark.parametrize("lanes", [1, None])
@pytest.mark.parametrize("name", PROGRAMS)
def test_nothing_is_written_outside_the_outputs_and_any_stride_is_read(name, lanes):
    program = PROGRAMS[name]
    kernel = compile_program(program, lanes=lanes)
    for rows in (1, 2, 7, 8, 9, 13):
        arrays = random_inputs(program, rows, "float64")
        expected = run(kernel, arrays)
        inputs = []
        for key, size in kernel.info.inputs:
            spaced = np.full((rows, size + 3), np.nan)
            spaced[:, 1 : 1 + size] = arrays[key]
            inputs.append(spaced[:, 1 : 1 + size])
        guarded = [np.full((rows + 2, size + 5), 777.0) for _, size in kernel.info.outputs]
        outputs = [array[1:-1, 2 : 2 + size] for array, (_, size) in zip(guarded, kernel.info.outputs)]
        assert run_arrays(kernel, inputs, outputs) == -1
        for array, view, (key, size) in zip(guarded, outputs, kernel.info.outputs):
            assert np.array_equal(bits(view), bits(expected[key]))
            array[1:-1, 2 : 2 + size] = 777.0
            assert np.all(array == 777.0)


@pytest.mark.parametrize("lanes", [1, None])
def test_stride_zero_repeats_a_row_and_negative_strides_reverse(lanes):
    program = PROGRAMS["straight"]
    kernel = compile_program(program, lanes=lanes)
    arrays = random_inputs(program, 11, "float64")
    repeated = {"x": np.broadcast_to(arrays["x"][4], arrays["x"].shape), "y": arrays["y"][::-1]}
    copied = {key: np.ascontiguousarray(array) for key, array in repeated.items()}
    found, expected = run(kernel, repeated), run(kernel, copied)
    for key, values in expected.items():
        assert np.array_equal(bits(found[key]), bits(values))


@pytest.mark.parametrize("lanes", [1, None])
def test_an_empty_batch_touches_nothing(lanes):
    kernel = compile_program(PROGRAMS["straight"], lanes=lanes)
    assert kernel.run([(0, 0)] * 2, [(0, 0)] * 2, 0) == -1


@pytest.mark.parametrize("lanes", [1, None])
def test_the_first_refused_row_is_reported_and_the_others_are_computed(lanes, two_threads):
    graph = Graph()
    x = graph.input("x", 0)
    program = straight(
        {"x": 1}, {"y": [x * 2.0]}, check=graph.operation("lt", 1.0, graph.operation("abs", x))
    )
    kernel = compile_program(program, lanes=lanes)
    two_threads(3)
    for bad in ([], [0], [6], [7, 3], [20, 12], [22]):
        x_values = np.linspace(-0.9, 0.9, 23)[:, None].copy()
        x_values[bad] = -4.0
        result = np.zeros_like(x_values)
        for threads in (False, True):
            assert run_arrays(kernel, [x_values], [result], threads=threads) == min(bad, default=-1)
            assert np.array_equal(result, 2.0 * x_values)
    x_values[5] = np.nan
    x_values[[22]] = 0.5
    assert run_arrays(kernel, [x_values], [result]) == -1, "a NaN row is not refused"


def _child(queue, kernel, arrays):
    queue.put((not codegen.cpu.threads._HELPERS._running, run(kernel, arrays, threads=True)["first"]))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_forked_child_computes_on_threads_of_its_own(two_threads):
    two_threads(2)
    program = PROGRAMS["straight"]
    kernel = compile_program(program)
    arrays = random_inputs(program, 300, "float64")
    expected = run(kernel, arrays, threads=True)["first"]
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_child, args=(queue, kernel, arrays))
    child.start()
    fresh, found = queue.get(timeout=30.0)
    assert fresh, "the parent's threads do not exist in the child"
    child.join(timeout=30.0)
    assert np.array_equal(bits(found), bits(expected))


def test_the_environment_bounds_the_threads():
    code = "from dalembert.codegen.cpu import threads; print(threads.get_num_threads())"
    environment = {**os.environ, "DALEMBERT_NUM_THREADS": "3"}
    found = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True, timeout=120
    )
    assert found.stdout.strip() == "3"
    environment["DALEMBERT_NUM_THREADS"] = "many"
    found = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert "DALEMBERT_NUM_THREADS='many'" in found.stderr


def test_wrong_options_and_arrays_are_named():
    program = PROGRAMS["straight"]
    with pytest.raises(UnknownNameError, match="float16"):
        compile_program(program, dtype="float16")
    with pytest.raises(UnknownNameError, match="avx3"):
        compile_program(program, level="avx3")
    with pytest.raises(ArgumentError, match="power of two"):
        compile_program(program, lanes=3)
    with pytest.raises(ArgumentError, match="at least 1"):
        set_num_threads(0)


@pytest.mark.parametrize("shift", [0, 2])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_large_results_have_the_same_bits_written_past_the_caches(monkeypatch, dtype, shift):
    program = wide_output(32)
    arrays = random_inputs(program, 37, dtype)
    kernel = compile_program(program, dtype=dtype)
    monkeypatch.setattr(codegen.cpu.cpu_kernel, "STREAMED_BATCH", 1 << 62)
    expected = run(kernel, arrays)["matrix"]
    monkeypatch.setattr(codegen.cpu.cpu_kernel, "STREAMED_BATCH", 1)
    guarded = codegen.cpu.threads.aligned_buffer(39 * 1024 * expected.itemsize).view(dtype)
    guarded[:] = 777.0
    start = 1024 + shift
    result = guarded[start : start + 37 * 1024].reshape(37, 1024)
    assert run_arrays(kernel, [arrays["q"]], [result]) == -1
    assert np.array_equal(bits(result), bits(expected))
    assert np.all(guarded[:start] == 777.0)
    assert np.all(guarded[start + 37 * 1024 :] == 777.0)
