"""Traced scalars: sharing, Python's operators, and errors instead of silent nonsense."""

import math
import operator

import numpy as np
import pytest
from tests.tracing.interpreter import evaluate

from dalembert import scalar
from dalembert.errors import DalembertError, TracingError, UnknownNameError
from dalembert.tracing import NO_RULES, Expression, Graph, live


@pytest.fixture
def graph():
    return Graph()


@pytest.fixture
def x(graph):
    return graph.input("x", 0)


@pytest.fixture
def y(graph):
    return graph.input("x", 1)


def value(node, *numbers):
    return evaluate([node], {"x": numbers})[0]


def test_equal_operations_are_one_object(graph, x, y):
    assert x * y + scalar.sin(x) is x * y + scalar.sin(x)
    assert graph.input("x", 0) is x
    assert graph.constant(2) is graph.constant(2.0)
    assert graph.constant(-0.0) is graph.constant(0.0)
    assert graph.constant(math.nan) is graph.constant(-math.nan)


def test_a_graph_without_sharing_records_every_operation(graph):
    own = Graph(NO_RULES, share=False)
    x = own.input("x", 0)
    assert x * x is not x * x


def test_index_is_a_topological_order(x, y):
    nodes = live([scalar.sqrt(x * y + 1.0) / (x - y)])
    assert all(item.index < node.index for node in nodes for item in node.args)
    assert [node.index for node in nodes] == sorted(node.index for node in nodes)


@pytest.mark.parametrize(
    "op", [operator.add, operator.sub, operator.mul, operator.truediv], ids=lambda op: op.__name__
)
@pytest.mark.parametrize(
    "number", [3, 2.5, np.float64(1.25), np.float32(0.5), np.int64(-2), np.array(4.0), True]
)
def test_arithmetic_with_numbers_from_both_sides(x, op, number):
    assert type(op(x, number)) is Expression
    assert value(op(x, number), 0.7) == pytest.approx(op(0.7, float(number)), rel=1e-15)
    assert value(op(number, x), 0.7) == pytest.approx(op(float(number), 0.7), rel=1e-15)


@pytest.mark.parametrize("op", [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne])
@pytest.mark.parametrize("numbers", [(1.0, 2.0), (2.0, 1.0), (1.5, 1.5)])
def test_comparisons(x, y, op, numbers):
    assert value(op(x, y), *numbers) is op(*numbers)
    assert value(op(x, 1.5), *numbers) is op(numbers[0], 1.5)
    assert value(op(1.5, x), *numbers) is op(1.5, numbers[0])


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 7, -1, -2, 0.5, 2.0, np.int64(3)])
def test_powers(x, exponent):
    assert value(x**exponent, 1.7) == pytest.approx(1.7 ** float(exponent), rel=1e-14)


def test_powers_use_repeated_squaring(x):
    assert sum(node.op == "mul" for node in live([x**8])) == 3


def test_unary_operators(x):
    assert value(-x, 2.0) == -2.0
    assert value(abs(x), -2.0) == 2.0
    assert value(math.floor(x), 2.7) == 2.0
    assert +x is x


def test_numpy_arrays_meet_a_traced_value_element_by_element(x, y):
    for array in (np.array([1.0, 2.0]) * x, x * np.array([1.0, 2.0]), np.array([x, 2.0 * x]) * 1.0):
        assert array.shape == (2,)
        assert [value(item, 3.0) for item in array] == [3.0, 6.0]
    product = np.array([[1.0, 2.0], [0.0, 1.0]]) @ np.array([x, y])
    assert [value(item, 3.0, 5.0) for item in product] == [13.0, 5.0]
    assert [value(item, 3.0) for item in np.array([4.0, 5.0]) - x] == [1.0, 2.0]


def test_branching_on_a_traced_value_names_the_line_and_the_remedy(x):
    """bad input: a traced value in `if`"""

    def sign(x):
        return 1.0 if x > 0.0 else -1.0

    line = sign.__code__.co_firstlineno + 1
    with pytest.raises(TracingError, match=rf"test_expression\.py:{line}: .*scalar\.select") as caught:
        sign(x)
    assert isinstance(caught.value, TypeError)
    assert isinstance(caught.value, DalembertError)


@pytest.mark.parametrize(
    "misuse",
    [
        float,
        int,
        complex,
        math.sin,
        bool,
        lambda x: [1, 2][x],
        lambda x: max(x, 0.0),
        lambda x: x in [1.0],
        list,
    ]
    + [lambda x: x**2.5, lambda x: x**x, lambda x: (x < 1.0) + 1.0, lambda x: scalar.select(x, 1.0, 2.0)]
    + [lambda x: scalar.logical_not(x), lambda x: scalar.sqrt(x < 1.0), lambda x: x == 0.0 or x],
)
def test_what_has_no_recording_raises(x, misuse):
    with pytest.raises(TracingError):
        misuse(x)


@pytest.mark.parametrize("misuse", [np.sin, lambda x: x + "1", lambda x: x * 1j, lambda x: x + None])
def test_foreign_operands_are_type_errors(x, misuse):
    with pytest.raises(TypeError):
        misuse(x)


def test_values_of_two_traces_do_not_mix(x):
    with pytest.raises(TracingError, match="another trace"):
        x + Graph().input("x", 0)


def test_errors_inside_elementary_functions_name_the_line_that_called_them(x):
    def greater(x, y):
        return scalar.maximum(x, y)

    line = greater.__code__.co_firstlineno + 1
    with pytest.raises(TracingError, match=rf"test_expression\.py:{line}: a traced value of another trace"):
        greater(x, Graph().input("y", 0))


def test_unknown_operations_are_named(graph, x):
    with pytest.raises(UnknownNameError, match=r'unknown operation "sine".*nearest: "sin"'):
        graph.operation("sine", x)
    with pytest.raises(TracingError, match="takes 2 arguments, got 1"):
        graph.operation("add", x)


def test_conditions_are_chosen_by_logic(x, y):
    chosen = scalar.select(x < 0.0, y < 1.0, y > 2.0)
    for numbers in [(-1.0, 0.5), (-1.0, 3.0), (1.0, 0.5), (1.0, 3.0)]:
        expected = numbers[1] < 1.0 if numbers[0] < 0.0 else numbers[1] > 2.0
        assert value(scalar.select(chosen, 1.0, 0.0), *numbers) == float(expected)


def test_nodes_print_readably(graph, x):
    assert repr(x * 2.0).endswith("mul(%0, %1)")
    assert repr(graph.constant(2.0)) == "%1 = 2.0"
