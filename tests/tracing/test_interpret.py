"""The interpreter equals the function it was traced from, on floats and on samples."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tracing.interpreter import evaluate, interpret
from tests.tracing.recipes import BRANCHING, RING, SMOOTH, cook, recipes

from dalembert.tracing import NO_RULES, OPERATIONS, ArrayArgument, Graph, trace
from dalembert.tracing.operations import divide, fused_multiply_add

VALUES = st.lists(st.floats(-3.0, 3.0), min_size=3, max_size=3)


@settings(max_examples=200)
@given(recipe=recipes(RING + BRANCHING + SMOOTH), values=VALUES)
def test_a_program_without_rules_computes_bit_for_bit_what_was_written(recipe, values):
    recorded = trace(lambda x: cook(recipe, x), [ArrayArgument("x", (3,))], rules=NO_RULES)
    direct = [float(item) for item in cook(recipe, values)]
    result = interpret(recorded.program(), {"x": values})["output"]
    np.testing.assert_array_equal(result, direct)


@settings(max_examples=60)
@given(recipe=recipes(RING + BRANCHING + SMOOTH), rows=st.lists(VALUES, min_size=1, max_size=4))
def test_samples_are_independent(recipe, rows):
    """A batch of NumPy samples gives each row what it gets alone."""
    program = trace(lambda x: cook(recipe, x), [ArrayArgument("x", (3,))]).program()
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    batch = interpret(program, {"x": columns})["output"]
    for number, row in enumerate(rows):
        alone = interpret(program, {"x": row})["output"]
        together = [np.broadcast_to(item, len(rows))[number] for item in batch]
        np.testing.assert_allclose(together, alone, rtol=1e-12, atol=1e-300)


def test_every_operation_on_constants_folds_to_its_definition():
    graph = Graph()
    for op, operation in OPERATIONS.items():
        if op in ("and", "or", "not", "select"):
            continue
        numbers = [0.75, -0.5, 0.25][: operation.arity]
        node = graph.operation(op, *numbers)
        expected = operation.evaluate(*numbers)
        found = evaluate([node], {})[0]
        assert found == expected or (math.isnan(found) and math.isnan(expected)), op


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (1.0, 0.0, math.inf),
        (-1.0, 0.0, -math.inf),
        (1.0, -0.0, -math.inf),
        (0.0, 0.0, math.nan),
        (math.nan, 0.0, math.nan),
    ],
)
def test_division_by_zero_is_that_of_ieee(a, b, expected):
    np.testing.assert_equal(divide(a, b), expected)
    np.testing.assert_equal(divide(np.array([a]), b), [expected])


@given(a=st.floats(-1e10, 1e10), b=st.floats(-1e10, 1e10), c=st.floats(-1e10, 1e10))
def test_fused_multiply_add_rounds_once(a, b, c):
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    assert Fraction(fused_multiply_add(a, b, c)) == Fraction(float(exact))
    assert fused_multiply_add(np.array([a]), b, c)[0] == float(exact)


def test_fused_multiply_add_at_the_edges():
    assert fused_multiply_add(math.inf, 1.0, 0.0) == math.inf
    assert math.isnan(fused_multiply_add(math.inf, 0.0, 1.0))
    assert fused_multiply_add(1e308, 10.0, -1e308) == math.inf
    assert math.copysign(1.0, fused_multiply_add(-1.0, 0.0, -0.0)) == -1.0


def test_the_interpreter_runs_on_expressions_of_another_graph():
    program = trace(lambda x: [x[0] * x[1] + 1.0], [ArrayArgument("x", (2,))]).program()
    other = Graph()
    (node,) = interpret(program, {"x": [other.input("u", 0), 2.0]})["output"]
    assert node is 2.0 * other.input("u", 0) + 1.0
