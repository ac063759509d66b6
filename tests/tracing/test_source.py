"""Emitted Python source computes what the program computes."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tracing.interpreter import interpret
from tests.tracing.recipes import BRANCHING, RING, SMOOTH, cook, recipes

from dalembert import scalar
from dalembert.errors import ArgumentError
from dalembert.tracing import RULES, ArrayArgument, Graph, Program, Store, Straight, python_source, trace
from dalembert.tracing.program import ArraySpec

VALUES = st.lists(st.floats(-3.0, 3.0), min_size=3, max_size=3)


def compiled(program):
    scope: dict = {}
    exec(python_source(program, name="f"), scope)
    return scope["f"]


@settings(max_examples=200)
@given(recipe=recipes(RING + BRANCHING + SMOOTH, longest=25), values=VALUES)
def test_emitted_code_is_bit_for_bit_the_interpreter(recipe, values):
    """RBDA-10.4-SYMBOLIC"""
    program = trace(lambda x: cook(recipe, x), [ArrayArgument("x", (3,))], rules=RULES).program()
    np.testing.assert_array_equal(compiled(program)(values), interpret(program, {"x": values})["output"])


def test_a_double_pendulum_reads_as_written():
    """RBDA-10.4-SYMBOLIC: inverse dynamics of a two-link arm, traced, emitted and run."""

    def torques(q, v, a):
        c, s = scalar.cos(q[1]), scalar.sin(q[1])
        h = 0.5 * s
        first = (1.5 + c) * a[0] + (0.25 + 0.5 * c) * a[1] - h * (2.0 * v[0] * v[1] + v[1] * v[1])
        return [first, (0.25 + 0.5 * c) * a[0] + 0.25 * a[1] + h * v[0] * v[0]]

    recorded = trace(torques, [ArrayArgument(name, (2,)) for name in "qva"], names=["tau"])
    source = python_source(recorded.program(), name="torques")
    assert "from dalembert.scalar import cos, sin" in source
    assert "def torques(q, v, a):" in source
    scope: dict = {}
    exec(source, scope)
    for q, v, a in np.random.default_rng(5).normal(size=(5, 3, 2)).tolist():
        assert scope["torques"](q, v, a) == pytest.approx(torques(q, v, a), rel=1e-13)
    batch = np.random.default_rng(6).normal(size=(3, 2, 4))
    np.testing.assert_allclose(scope["torques"](*batch), torques(*batch), rtol=1e-12)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: (-x[0]) - (x[1] - x[2]),
        lambda x: x[0] / (x[1] / x[2]),
        lambda x: (x[0] / x[1]) / x[2],
        lambda x: -(x[0] + x[1]) * x[2],
        lambda x: x[0] - (x[1] + x[2]),
        lambda x: scalar.select(x[0] + 1.0 < x[1] * 2.0, -x[0], x[2] - -3.0),
        lambda x: scalar.select(scalar.logical_or(x[0] < x[1], x[1] <= x[2]), 1.0, x[0]),
    ],
)
def test_parentheses_are_where_they_must_be(function):
    graph_rules = trace(function, [ArrayArgument("x", (3,))]).program()
    values = [0.7, -1.3, 2.1]
    assert compiled(graph_rules)(values) == interpret(graph_rules, {"x": values})["output"]
    assert compiled(graph_rules)(values) == pytest.approx([function(values)], rel=1e-14)


def test_nonfinite_constants_and_fused_operations_are_written():
    graph = Graph()
    x = graph.input("x", 0)
    stores = [
        graph.constant(math.inf),
        graph.operation("fma", x, x, -1.0),
        graph.constant(-2.0) * 1.0,
        x * math.nan,
    ]
    program = Program(
        (ArraySpec("x", 1),),
        (ArraySpec("y", 4),),
        statements=(Straight(tuple(Store.fixed("y", k, v) for k, v in enumerate(stores))),),
    )
    np.testing.assert_array_equal(
        compiled(program)([1.0 + 2.0**-30]), interpret(program, {"x": [1.0 + 2.0**-30]})["y"]
    )


@pytest.mark.parametrize("name", ["q.1", "for", "sin", "upper arm", "1st", "i"])
def test_arrays_that_python_cannot_name_get_a_name_that_it_can(name):
    program = trace(lambda x: 2.0 * x, [ArrayArgument(name)]).program()
    assert compiled(program)([3.0]) == [6.0]


def test_two_arrays_that_would_share_an_identifier_are_refused():
    program = trace(lambda x, y: x + y, [ArrayArgument("a.b"), ArrayArgument("a b")]).program()
    with pytest.raises(ArgumentError, match="are both a_b"):
        python_source(program)
