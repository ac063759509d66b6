"""Programs at the edge of what a program may be: nothing in, nothing out, nothing done, copies, constants."""

import numpy as np
import pytest
from tests.codegen.sample_programs import run_arrays

from dalembert.codegen import compile_program, host_levels
from dalembert.tracing.expression import Address
from dalembert.tracing.graph import Graph
from dalembert.tracing.program import ArraySpec, Loop, Program, Store, Straight

GRAPH = Graph()
X = [GRAPH.input("x", k) for k in range(3)]
IN, OUT = (ArraySpec("x", 3),), (ArraySpec("y", 2),)


def _straight(*values) -> Program:
    return Program(
        IN, OUT, (), (Straight(tuple(Store.fixed("y", k, value) for k, value in enumerate(values))),)
    )


def _constant(value: float):
    return GRAPH.constant(value)


def _many() -> Program:
    names = range(20)
    return Program(
        (*IN, *(ArraySpec(f"a{k}", 2) for k in names)),
        tuple(ArraySpec(f"b{k}", 1) for k in names),
        (),
        (Straight(tuple(Store.fixed(f"b{k}", 0, GRAPH.input(f"a{k}", 1) * 2.0) for k in names)),),
    )


CASES = {
    "no statement": (Program(IN, OUT), lambda x: [0.0 * x[:, :2]]),
    "no output": (Program(IN, ()), lambda x: []),
    "partly stored": (_straight(X[1] * X[2]), lambda x: [np.stack([x[:, 1] * x[:, 2], 0.0 * x[:, 0]], 1)]),
    "copies": (_straight(X[2], X[0]), lambda x: [x[:, [2, 0]]]),
    "the same twice": (_straight(X[0] + X[1], X[0] + X[1]), lambda x: [np.stack([x[:, 0] + x[:, 1]] * 2, 1)]),
    "constants": (
        _straight(_constant(np.nan), _constant(-np.inf)),
        lambda x: [np.tile([np.nan, -np.inf], (len(x), 1))],
    ),
    "sizes of zero": (
        Program(
            (ArraySpec("empty", 0), *IN),
            (ArraySpec("nothing", 0), *OUT),
            (),
            (Straight((Store.fixed("y", 1, X[0] - X[2]),)),),
        ),
        lambda empty, x: [np.zeros((len(x), 0)), np.stack([0.0 * x[:, 0], x[:, 0] - x[:, 2]], 1)],
    ),
    "a loop of no iterations": (
        Program(
            IN,
            OUT,
            (ArraySpec("s", 1),),
            (
                Loop(0, False, None, ((Store(Address("s", None, 1, 0), X[0]),),)),
                Straight((Store.fixed("y", 0, GRAPH.load(Address.fixed("s", 0)) + X[1]),)),
            ),
        ),
        lambda x: [np.stack([x[:, 1], 0.0 * x[:, 0]], 1)],
    ),
    "a table and an input by address": (
        Program(
            IN,
            OUT,
            (),
            (
                Straight(
                    (
                        Store.fixed("y", 0, GRAPH.load(Address.fixed("t", 1))),
                        Store.fixed(
                            "y", 1, GRAPH.load(Address.fixed("x", 2)) * GRAPH.load(Address.fixed("t", 1))
                        ),
                    )
                ),
            ),
            {"t": np.array([3.0, 5.0])},
        ),
        lambda x: [np.stack([0.0 * x[:, 0] + 5.0, 5.0 * x[:, 2]], 1)],
    ),
    "many arrays": (_many(), lambda x, *a: [2.0 * item[:, 1:] for item in a]),
}


@pytest.mark.parametrize("lanes", [1, 2, 8, 32])
@pytest.mark.parametrize("name", CASES)
def test_edges(name, lanes):
    program, expected = CASES[name]
    rng = np.random.default_rng(0)
    inputs = [rng.uniform(-1.0, 1.0, size=(9, spec.size)) for spec in program.inputs]
    for level in host_levels():
        outputs = [np.full((9, spec.size), 7.0) for spec in program.outputs]
        assert run_arrays(compile_program(program, lanes=lanes, level=level), inputs, outputs) == -1
        for output, values in zip(outputs, expected(*inputs), strict=True):
            assert np.array_equal(output, values, equal_nan=True), f"{name}, {lanes} lanes, {level}"
