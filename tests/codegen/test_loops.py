"""Loops over tables compute what the interpreter computes."""

import numpy as np
import pytest
from tests.codegen.sample_programs import bits, chain_loops, random_inputs, run
from tests.tracing.interpreter import interpret

from dalembert.codegen import compile_program, host_levels
from dalembert.codegen.memory import loop_hazards, zero_runs
from dalembert.tracing.expression import Address
from dalembert.tracing.graph import Graph
from dalembert.tracing.program import ArraySpec, Loop, Program, Store, Straight


@pytest.mark.parametrize("count", [1, 2, 9, 60])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_loops_equal_the_interpreter(count, dtype):
    program = chain_loops(count, seed=count)
    arrays = random_inputs(program, 11, dtype)
    columns = {name: list(array.T.astype(np.float64)) for name, array in arrays.items()}
    expected = interpret(program, columns)
    for level in host_levels():
        single = run(compile_program(program, dtype=dtype, level=level, lanes=1), arrays)
        lanes = run(compile_program(program, dtype=dtype, level=level), arrays)
        for name, values in expected.items():
            reference = np.stack(np.broadcast_arrays(*values, np.zeros(11))[:-1], axis=1)
            tolerance = 1e-12 if dtype == "float64" else 1e-4
            np.testing.assert_allclose(
                lanes[name], reference, rtol=tolerance, atol=tolerance * abs(reference).max()
            )
            assert np.array_equal(bits(lanes[name]), bits(single[name]))


def test_straight_code_reads_what_stood_before_it_stored():
    graph = Graph()
    a, b = (graph.load(Address.fixed("s", k)) for k in range(2))
    x = [graph.input("x", k) for k in range(2)]
    program = Program(
        (ArraySpec("x", 2),),
        (ArraySpec("y", 4),),
        (ArraySpec("s", 2),),
        (
            Straight((Store.fixed("s", 0, x[0] * 2.0), Store.fixed("s", 1, x[1] * 3.0))),
            Straight(
                (
                    Store.fixed("s", 0, b),
                    Store.fixed("s", 1, a),
                    Store.fixed("y", 0, a + b),
                    Store.fixed("y", 1, a),
                )
            ),
            Straight(
                (Store.fixed("y", 2, a - b), Store.fixed("y", 3, graph.constant(4.0)), Store.fixed("y", 1, a))
            ),
        ),
    )
    arrays = {"x": np.array([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0]])}
    p, q = 2.0 * arrays["x"][:, 0], 3.0 * arrays["x"][:, 1]
    expected = np.stack([p + q, q, q - p, np.full(3, 4.0)], axis=1)
    for lanes in (1, 2, None):
        assert np.array_equal(run(compile_program(program, lanes=lanes), arrays)["y"], expected)


def test_hazards_are_found_exactly():
    graph = Graph()
    own, other = graph.load(Address("s", None, 1, 1)), graph.load(Address("s", "t", 1, 0))

    def hazards(*stores: Store, table: list[int]):
        program = Program(
            (),
            (ArraySpec("y", 4),),
            (ArraySpec("s", 9),),
            (Loop(3, False, None, (stores,)),),
            {"t": np.array(table)},
        )
        return loop_hazards(program, program.statements[0], 0)

    store = Store(Address("s", None, 1, 1), other + 1.0)
    assert not hazards(store, table=[0, 1, 2]).eager
    assert hazards(store, table=[0, 2, 0]).eager == {"s"}
    second = Store(Address("s", "t", 1, 0), own)
    assert hazards(store, second, table=[0, 2, 0]).deferred == {"s"}
    assert not hazards(store, second, table=[0, 1, 2]).deferred


def test_only_what_is_read_before_it_is_written_is_zeroed():
    program = chain_loops(6)
    runs = zero_runs(program)
    assert runs["motion"] == []
    assert runs["force"] == [(0, 14)]
    assert runs["result"] == []
    assert runs["total"] == [(2, 3)]
    assert runs["twice"] == [(0, 1)]
