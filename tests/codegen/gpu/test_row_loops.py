"""Loops over rows of a GPU thread: each lists its own rows, and has the bits of the CPU's scalar code."""

from __future__ import annotations

import re

import numpy as np
import pytest
from tests.codegen.gpu import host_kernel as host
from tests.codegen.gpu.host_kernel import HostKernel, host_module
from tests.codegen.gpu.launching import LAYOUTS, SM90, run_on_host, source_of
from tests.codegen.gpu.test_assemble import assembler  # noqa: F401
from tests.codegen.gpu.test_thread_loops import ENDS, TOGETHER, same_rounding
from tests.codegen.sample_programs import bits, run
from tests.tracing.interpreter import interpret
from tests.tracing.test_row_loops import FUNCTIONS, N, collected, nested, packed, relaxed, springs

from dalembert import scalar
from dalembert.codegen import compile_program
from dalembert.codegen.gpu import Layout, default_layout, emit_gpu, ptx_of
from dalembert.codegen.gpu.shared_memory import Arrays
from dalembert.codegen.gpu.thread_loops import without_row_exit_tests
from dalembert.codegen.ir import LaneType
from dalembert.scalar import absolute
from dalembert.tracing import ArrayArgument, trace
from dalembert.tracing.expression import live
from dalembert.tracing.program import Program, Repeat

SAMPLES = 133


def program_of(function) -> Program:
    return trace(function, [ArrayArgument("x", (N,))]).program()


def samples(dtype="float64"):
    return np.random.default_rng(7).normal(size=(SAMPLES, N)).astype(dtype)


@same_rounding
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_every_layout_computes_what_the_cpu_does(function, layout):
    program, given = program_of(function), samples()
    wanted = run(compile_program(program, lanes=1), {"x": given})["output"]
    found, _ = run_on_host(program, {"x": given}, layout=LAYOUTS[layout])
    assert np.array_equal(bits(found["output"]), bits(wanted))


@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-12), ("float32", 2e-4)])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_threads_compute_what_programs_mean(function, dtype, tolerance):
    program, given = program_of(function), samples(dtype)
    wanted = [interpret(program, {"x": x})["output"] for x in given.astype(float).tolist()]
    found, _ = run_on_host(program, {"x": given}, layout=LAYOUTS["plain"])
    np.testing.assert_allclose(found["output"], np.array(wanted, float), rtol=tolerance, atol=tolerance)


def test_a_thread_visits_its_own_rows_alone():
    """The lanes of a CPU visit those of all samples of a block."""

    def visits(x):
        nodes = scalar.rows(N, like=x)
        at = nodes.stack(x)
        return [nodes.where(lambda i: at[i] > 0.5).fold(lambda count, _: count + 1.0, 0.0)]

    given = samples()
    found, _ = run_on_host(program_of(visits), {"x": given}, layout=LAYOUTS["plain"])
    assert np.array_equal(found["output"][:, 0], np.sum(given > 0.5, axis=1))
    assert len(np.unique(found["output"])) > 4


@same_rounding
@pytest.mark.parametrize("function", [relaxed, nested])
def test_rounds_for_others_change_nothing(function, monkeypatch):
    """As if another thread of the block had not ended before the last iteration."""
    program, given = program_of(function), samples()
    wanted, _ = run_on_host(program, {"x": given}, layout=TOGETHER)
    monkeypatch.setattr(host, "host_module", lambda source: host_module(source).replace(ENDS, "ret i1 true"))
    found, _ = run_on_host(program, {"x": given}, layout=TOGETHER)
    assert np.array_equal(bits(found["output"]), bits(wanted["output"]))


@pytest.mark.parametrize(("function", "votes"), [(relaxed, 1), (nested, 0), (springs, 0)])
def test_warps_iterate_together_where_all_threads_of_a_block_come_by(function, votes):
    """Not in the step of rows: their number may differ from thread to thread, and a barrier would wait."""
    program = program_of(function)
    assert source_of(program, 64, TOGETHER).text.count("call i1 @any(") == votes
    assert "@any(" not in source_of(program, 64, LAYOUTS["plain"]).text


@same_rounding
@pytest.mark.parametrize("function", [collected, packed])
def test_a_small_grid_goes_over_all_rows(function):
    """Lists and families of the samples before are still in the memory of a thread that takes its turn."""
    program, given = program_of(function), samples()
    whole, _ = run_on_host(program, {"x": given}, layout=Layout(block=32))
    turns, _ = run_on_host(program, {"x": given}, layout=Layout(block=32), grid=2)
    assert np.array_equal(bits(whole["output"]), bits(turns["output"]))


def test_a_thread_inside_a_loop_does_not_ask_whether_it_is_done():
    def asked(repeats):
        found, flags = 0, set()
        for repeat in repeats:
            flags |= {repeat.until}
            values = live(value for straight in repeat.straights() for value in straight.values)
            found += sum(node.op == "load" and node.data in flags for node in values)
        return found

    for function in (relaxed, nested):
        statements = [item for item in program_of(function).statements if isinstance(item, Repeat)]
        inner = [item for repeat in statements for item in (repeat, *repeat.body) if isinstance(item, Repeat)]
        loops = [item for item in inner if item.until is not None]
        assert asked(loops)
        assert not asked([without_row_exit_tests(loop) for loop in loops])


def many_rows(count: int) -> Program:
    """Sums over the pairs of `count` places on a line that are near: a large set, of which few are listed."""
    first, second = np.triu_indices(count, 1)

    def near(x):
        nodes, pairs = scalar.rows(count, like=x), scalar.rows(len(first), like=x)
        at, one, two = nodes.stack([-y for y in x]), pairs.links(nodes, first), pairs.links(nodes, second)
        found = pairs.where(lambda i: absolute(at[one[i]] - at[two[i]]) < 0.1)

        def force(i):
            gap = at[two[i]] - at[one[i]]
            yield one[i], [scalar.select(absolute(gap) < 0.1, gap, 0.0)]

        sums = found.scatter(force, nodes, [0.0])
        return [sums.at(k)[0] for k in range(count)]

    return trace(near, [ArrayArgument("x", (count,))]).program()


@pytest.mark.parametrize("layout", ["plain", "planned slots in shared memory"])
@pytest.mark.parametrize("size", [4, 8])
def test_families_and_lists_are_in_scratch_memory(size, layout):
    """A row costs the numbers of its families and four bytes of each list; what has one place costs none."""
    count = 60
    program, pairs = many_rows(count), count * (count - 1) // 2
    source = source_of(program, 8 * size, LAYOUTS[layout])
    assert source.info.scratch_bytes == 2 * count * size + -(-4 * (1 + pairs) // size) * size
    arrays = Arrays(program, None, LaneType(8 * size, 1), LAYOUTS[layout])
    assert set(arrays.scratch) == {"loop 0 rows", "loop 2 sums"}
    assert set(arrays.lists) == {"rows 2"}
    assert set(arrays.local) | set(arrays.cells) == {"loop 1 appended"}


@pytest.mark.parametrize(("dtype", "size"), [("float64", 8), ("float32", 4)])
def test_threads_write_to_their_own_scratch_memory(dtype, size):
    """Lists and families of all threads are as each left them, the 32 of a warp side by side. (On the host
    threads run one after the other, so that a wrong number of one would not disturb the next.)"""
    count, threads = 20, 128
    program, layout = many_rows(count), Layout(block=64)
    given = np.random.default_rng(1).uniform(size=(threads, count)).astype(dtype)
    kernel = HostKernel(source_of(program, 8 * size, layout))
    sums = np.zeros((threads, count), dtype)
    kernel.run([(array.ctypes.data, array.strides[0]) for array in (given, sums)], threads)
    warps = kernel.scratch.view(np.uint8)[: threads * kernel.source.info.scratch_bytes].reshape(4, -1)
    arrays = Arrays(program, None, LaneType(8 * size, 1), layout)
    first, second = np.triu_indices(count, 1)
    for warp in range(4):
        numbers = warps[warp].view(dtype).reshape(-1, 32)
        for name, values in (("loop 0 rows", -given), ("loop 2 sums", sums)):
            own = numbers[arrays.scratch[name] :][:count]
            assert np.array_equal(own, values[32 * warp : 32 * warp + 32].T)
        entries = warps[warp][arrays.lists["rows 2"] * 32 * size :].view(np.int32).reshape(-1, 32)
        for lane in range(32):
            x = given[32 * warp + lane]
            near = np.flatnonzero(np.abs(x[first] - x[second]) < 0.1)
            assert entries[0, lane] == len(near) > 0
            assert np.array_equal(entries[1 : 1 + len(near), lane], near)


@same_rounding
def test_a_large_set_is_searched_by_every_thread():
    program = many_rows(60)
    given = np.random.default_rng(1).uniform(size=(70, 60))
    wanted = run(compile_program(program, lanes=1), {"x": given})["output"]
    found, _ = run_on_host(program, {"x": given}, layout=Layout(block=32), grid=1)
    assert np.array_equal(bits(found["output"]), bits(wanted))


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_rows_assemble(assembler, function, bits):  # noqa: F811
    """Without generic addresses, and hardly any local memory: a thread keeps a row in registers."""
    source = emit_gpu(program_of(function), bits=bits, architecture=SM90)
    ptx = ptx_of(source)
    kernel = ptx[ptx.index(".entry dalembert_kernel") :]
    assert not re.findall(r"\b(?:ld|st)\.(?:v\d\.)?[bfsu]\d", kernel)
    made = assembler(ptx, SM90)
    assert made.stack <= 8


def test_the_code_does_not_grow_with_the_rows():
    few, many = (ptx_of(source_of(many_rows(count), 32, Layout())) for count in (50, 60))
    per_node = (len(many.splitlines()) - len(few.splitlines())) / 10
    assert per_node < 20
    assert default_layout(many_rows(60), bits=32, architecture=SM90) == Layout(block=128)
