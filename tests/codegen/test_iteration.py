"""Loops with an end of their own for each sample, and tables, in machine code."""

import math

import numpy as np
import pytest
from tests.codegen.sample_programs import bits, run
from tests.tracing.interpreter import interpret
from tests.tracing.test_iteration import newton

from dalembert import scalar
from dalembert.codegen import compile_program, default_lanes, host_levels
from dalembert.codegen.memory import zero_runs
from dalembert.tracing.expression import Address
from dalembert.tracing.graph import Graph
from dalembert.tracing.program import ArrayArgument, ArraySpec, Loop, Program, Store, Straight
from dalembert.tracing.trace import trace

ROWS = 37


def program_of(function):
    return trace(function, [ArrayArgument("x", (3,))]).program()


def samples(dtype="float64"):
    return np.random.default_rng(5).uniform(0.5, 30.0, (ROWS, 3)).astype(dtype)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_iteration_equals_the_interpreter_and_a_sample_alone_its_row(dtype):
    """RBDA-10.4-SYMBOLIC: trip counts differ from row to row; every lane width gives the same bits."""
    program = program_of(newton)
    given = samples(dtype)
    columns = interpret(program, {"x": list(given.T.astype(np.float64))})["output"]
    expected = np.stack([np.broadcast_to(y, ROWS) for y in columns], axis=1)
    assert len({tuple(row) for row in expected[:, 1:3].tolist()}) > 5
    for level in host_levels():
        lanes = run(compile_program(program, dtype=dtype, level=level), {"x": given})["output"]
        tolerance = 1e-10 if dtype == "float64" else 2e-4
        np.testing.assert_allclose(lanes[:, [0, 3]], expected[:, [0, 3]], rtol=tolerance)
        if dtype == "float64":
            np.testing.assert_array_equal(lanes[:, 1:3], expected[:, 1:3])
        for width in {1, 2, 4}:
            single = run(compile_program(program, dtype=dtype, level=level, lanes=width), {"x": given})
            assert np.array_equal(bits(single["output"]), bits(lanes))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_bits_of_a_row_do_not_depend_on_its_neighbours(dtype):
    """In every place of a block, beside rows that end at once, that never end, and that are NaN."""
    program = program_of(newton)
    kernel = compile_program(program, dtype=dtype)
    given = samples(dtype)
    whole = run(kernel, {"x": given})["output"]
    width = default_lanes(dtype)
    others = np.array([[1.0, 1.0, 0.0], [3e4, 1e4, 1.0], [math.nan, 1.0, 1.0]], dtype)
    for row in range(5):
        for place in range(width):
            for other in others:
                block = np.tile(other, (width, 1))
                block[place] = given[row]
                found = run(kernel, {"x": block})["output"][place]
                assert np.array_equal(bits(found), bits(whole[row]))
    for shift in range(1, width):
        assert np.array_equal(bits(run(kernel, {"x": given[shift:]})["output"]), bits(whole[shift:]))


def counting(count, *, inner):
    """Iterations are counted in a cell that no flag freezes, so that those left out are seen: the flag is set
    once a sample has counted to its input."""
    graph = Graph()
    steps, flag, limit = graph.load(Address.fixed("s", 0)), Address.fixed("s", 1), graph.input("x", 0)
    case = (
        Store(Address.fixed("s", 0), steps + 1.0),
        Store(flag, scalar.select(limit <= steps + 1.0, 1.0, 0.0)),
    )
    start = Straight((Store.fixed("s", 1, scalar.select(limit <= 0.0, 1.0, 0.0)),))
    loop = Loop(count, False, None, (case,), None if inner else flag, (flag,) if inner else ())
    end = Straight((Store.fixed("y", 0, steps),))
    return Program((ArraySpec("x", 1),), (ArraySpec("y", 1),), (ArraySpec("s", 2),), (start, loop, end))


@pytest.mark.parametrize("inner", [False, True])
@pytest.mark.parametrize("level", host_levels())
def test_a_block_ends_with_its_last_sample_and_not_before(level, inner):
    program = counting(20, inner=inner)
    limits = np.array([[3.0], [1.0], [5.0], [2.0], [0.0], [0.0], [0.0], [0.0], [50.0], [1.0]])
    alone = run(compile_program(program, level=level, lanes=1), {"x": limits})["y"]
    np.testing.assert_array_equal(alone, np.minimum(limits, 20.0))
    four = run(compile_program(program, level=level, lanes=4), {"x": limits})["y"].ravel()
    np.testing.assert_array_equal(four, [5.0] * 4 + [0.0] * 4 + [20.0] * 2)
    assert interpret(program, {"x": [limits[:4, 0]]})["y"] == [5.0]


def test_what_a_loop_may_leave_unwritten_is_cleared():
    """After a loop that may end before it begins, its stores count as not made; inside it they do."""
    graph = Graph()
    flag, cell, own = (Address.fixed("s", k) for k in range(3))
    case = (
        Store(flag, graph.load(own)),
        Store(cell, graph.load(cell) + 1.0),
        Store(Address.fixed("y", 0), graph.input("x", 0)),
    )
    first = (Store(own, graph.input("x", 0)),)
    start = Straight((Store.fixed("s", 0, graph.input("x", 0)), Store.fixed("s", 1, graph.constant(0.0))))
    tables = {"turn": np.array([0, 1] * 3)}
    loop = Loop(6, False, "turn", (first, case), flag)
    program = Program(
        (ArraySpec("x", 1),), (ArraySpec("y", 1),), (ArraySpec("s", 3),), (start, loop), tables=tables
    )
    assert zero_runs(program) == {"y": [(0, 1)], "s": []}
    for lanes in (1, None):
        kernel = compile_program(program, lanes=lanes)
        assert np.array_equal(run(kernel, {"x": np.array([[1.0]] * 9)})["y"], [[0.0]] * 9)
        assert np.array_equal(run(kernel, {"x": np.array([[0.0]] * 9)})["y"], [[0.0]] * 9)


TABLE = np.random.default_rng(2).normal(size=300)
EDGES = [-math.inf, -1.0, -0.0, 0.0, 0.5, 1.0, 298.9, 299.0, 299.5, 300.0, 1e9, 1e30, math.inf, math.nan]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("size", [1, 2, 300])
def test_tables_are_looked_up_as_the_interpreter_does(dtype, size):
    """Every lane its own element, never one outside, NaN the first."""

    def function(x):
        return [scalar.lookup(TABLE[:size], x[0]) * x[1], scalar.lookup(TABLE[:size], x[2] * 3.0)]

    program = program_of(function)
    given = np.random.default_rng(5).uniform(-20.0, 320.0, (ROWS, 3)).astype(dtype)
    given[: len(EDGES), 0] = EDGES
    table = TABLE.astype(dtype)
    place = np.clip(np.nan_to_num(np.floor(given[:, 0]), nan=0.0), 0, size - 1).astype(int)
    far = np.clip(np.floor(given[:, 2] * np.dtype(dtype).type(3.0)), 0, size - 1).astype(int)
    expected = np.stack([table[place] * given[:, 1], table[far]], axis=1)
    for level in host_levels():
        for lanes in (1, 2, None):
            kernel = compile_program(program, dtype=dtype, level=level, lanes=lanes)
            assert np.array_equal(bits(run(kernel, {"x": given})["output"]), bits(expected))


def test_the_last_element_of_a_table_longer_than_single_precision_counts():
    """2^24 + 1 is no float32: its neighbour above would be outside."""
    size = 2**24 + 4
    table = np.zeros(size, np.float32)
    table[-1] = 7.0
    program = program_of(lambda x: [scalar.lookup(table, x[0])])
    given = np.full((9, 3), 1e9, np.float32)
    for lanes in (1, None):
        found = run(compile_program(program, dtype="float32", lanes=lanes), {"x": given})["output"]
        assert np.all(found == 7.0)


def test_a_loop_looks_up():
    """A piecewise-constant control, read step by step inside the loop."""
    commands = [0.5, -1.0, 2.0, 0.25]

    def function(x):
        def step(carry):
            y, t = carry
            return y + x[1] * scalar.lookup(commands, t), t + 0.4

        return [scalar.loop(12, step, (x[0], 0.0))[0]]

    given = samples()
    expected = np.array([function(row) for row in given.tolist()])
    for lanes in (1, None):
        found = run(compile_program(program_of(function), lanes=lanes), {"x": given})["output"]
        np.testing.assert_allclose(found, expected, rtol=1e-13)
