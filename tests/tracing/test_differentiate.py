"""Derivatives of expressions, against complex steps and differences of the interpreter."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.tracing.interpreter import evaluate
from tests.tracing.recipes import BRANCHING, RING, SMOOTH, cook, recipes

from dalembert import scalar
from dalembert.errors import ShapeError
from dalembert.model.joints.dual import Dual
from dalembert.tracing import NO_RULES, Expression, Graph, count_operations, jacobian, jvp, vjp
from dalembert.tracing.differentiate import _forward
from dalembert.tracing.expression import live
from dalembert.tracing.operations import OPERATIONS

VALUES = st.lists(st.floats(-2.0, 2.0), min_size=3, max_size=3)


def symbols(number):
    graph = Graph()
    return graph, [graph.input("x", k) for k in range(number)]


def node(graph, value):
    return value if type(value) is Expression else graph.constant(value)


def numbers(rows, values):
    """Evaluate nested lists of expressions and floats."""
    return np.array(
        [
            [evaluate([item], {"x": values})[0] if type(item) is Expression else item for item in row]
            for row in rows
        ]
    )


def dense(rows, columns):
    return [[row.get(k, 0.0) for k in range(columns)] for row in rows]


def full(outputs, inputs):
    return dense(jacobian(outputs, inputs), len(inputs))


def forward(outputs, inputs):
    return dense(_forward(outputs, inputs, [{k: 1.0} for k in range(len(inputs))]), len(inputs))


def reverse(outputs, inputs):
    return [vjp([y], inputs, [1.0]) for y in outputs]


def complex_step(outputs, values):
    columns = []
    for k in range(len(values)):
        moved = [complex(x, 1e-40 if i == k else 0.0) for i, x in enumerate(values)]
        columns.append([complex(item).imag / 1e-40 for item in evaluate(outputs, {"x": moved})])
    return np.array(columns).T


@settings(max_examples=150)
@given(recipe=recipes(RING + SMOOTH), values=VALUES)
def test_jacobian_is_the_complex_step(recipe, values):
    graph, x = symbols(3)
    outputs = [node(graph, item) for item in cook(recipe, x)]
    expected = complex_step(outputs, values)
    assume(np.all(np.abs(expected) < 1e6))
    scale = 1e-9 * (1.0 + np.abs(expected).max())
    np.testing.assert_allclose(numbers(full(outputs, x), values), expected, rtol=1e-9, atol=scale)


@settings(max_examples=80)
@given(recipe=recipes(RING + BRANCHING + SMOOTH), values=VALUES, data=st.data())
def test_forward_and_reverse_products_are_those_of_the_jacobian(recipe, values, data):
    """J t and J^T w from their own passes; both ways of accumulating J; all operations, branches included."""
    graph, x = symbols(3)
    outputs = [node(graph, item) for item in cook(recipe, x)][-3:]
    J = numbers(forward(outputs, x), values)
    assume(np.all(np.abs(J) < 1e6))
    tolerance = {"rtol": 1e-8, "atol": 1e-8 * (1.0 + np.abs(J).max())}
    np.testing.assert_allclose(numbers(reverse(outputs, x), values), J, **tolerance)
    np.testing.assert_allclose(numbers(full(outputs, x), values), J, **tolerance)
    t = data.draw(VALUES)
    w = data.draw(VALUES)[: len(outputs)]
    np.testing.assert_allclose(numbers([jvp(outputs, x, t)], values)[0], J @ t, **tolerance)
    np.testing.assert_allclose(numbers([vjp(outputs, x, w)], values)[0], w @ J, **tolerance)


SINGLE = {
    "add": lambda x, y: x + 2.0 * y,
    "sub": lambda x, y: x - 3.0 * y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "neg": lambda x, y: -x * 1.5,
    "sqrt": lambda x, y: scalar.sqrt(x * y),
    "sin": lambda x, y: scalar.sin(x),
    "cos": lambda x, y: scalar.cos(x * y),
    "tan": lambda x, y: scalar.tan(x),
    "asin": lambda x, y: scalar.asin(x * y),
    "acos": lambda x, y: scalar.acos(x / 3.0),
    "atan2": lambda x, y: scalar.atan2(x, y),
    "exp": lambda x, y: scalar.exp(x * y),
    "log": lambda x, y: scalar.log(x + y),
    "abs": lambda x, y: abs(x - y) * x,
    "min": lambda x, y: scalar.minimum(x * x, y),
    "max": lambda x, y: scalar.maximum(x * x, y * x),
    "floor": lambda x, y: math.floor(x * 3.0) * y,
    "select": lambda x, y: scalar.select(x < y, x * x, y * x),
    "fma": lambda x, y: x.graph.operation("fma", x, y, x * x),
}


@pytest.mark.parametrize("name", SINGLE)
@pytest.mark.parametrize("values", [(0.4, 0.7), (0.7, 0.45)])
@pytest.mark.parametrize("mode", [forward, reverse])
def test_each_operation_against_central_differences(name, values, mode):
    _, x = symbols(2)
    outputs = [SINGLE[name](*x)]
    assert any(item.op == name for item in live(outputs))
    h = 1e-6
    expected = [
        (
            evaluate(outputs, {"x": np.add(values, h * step)})[0]
            - evaluate(outputs, {"x": np.subtract(values, h * step)})[0]
        )
        / (2.0 * h)
        for step in np.eye(2)
    ]
    np.testing.assert_allclose(numbers(mode(outputs, x), values)[0], expected, rtol=1e-7, atol=1e-8)


CONDITIONS = {
    "lt": lambda x, y: x * y < 0.3,
    "le": lambda x, y: x + y <= 1.1,
    "eq": lambda x, y: x == 0.4,
    "not": lambda x, y: scalar.logical_not(scalar.logical_and(x < y, y < 1.0)),
    "and": lambda x, y: scalar.logical_and(x < y, y * y < 1.0),
    "or": lambda x, y: scalar.logical_or(x < y, y < 0.2),
}


def test_every_operation_has_its_derivative_checked():
    assert {*SINGLE, *CONDITIONS} == set(OPERATIONS)


@pytest.mark.parametrize("name", [*SINGLE, *CONDITIONS])
@pytest.mark.parametrize("values", [(0.4, 0.7), (0.7, 0.45)])
def test_each_operation_against_complex_steps_and_dual_numbers(name, values):
    """RBDA-10.4-SYMBOLIC: both ways, as a matrix, and the second derivatives by dual numbers again."""
    graph = Graph(NO_RULES)
    x = [graph.input("x", k) for k in range(2)]
    if name in SINGLE:
        y = SINGLE[name](*x)
    else:
        y = scalar.select(CONDITIONS[name](*x), scalar.sin(x[0]) * x[1], scalar.exp(x[1]) / x[0])
    assert any(item.op == name for item in live([y]))
    exact = complex_step([y], values)
    for mode in (forward, reverse, full):
        np.testing.assert_allclose(numbers(mode([y], x), values), exact, rtol=1e-13, atol=1e-13)
    rows = [node(graph, item) for item in reverse([y], x)[0]]
    hessian = numbers(full(rows, x), values)
    for k, e in enumerate(np.eye(2)):
        moved = [Dual(a, d, 1) for a, d in zip(values, e.tolist())]
        (found,) = evaluate([y], {"x": moved})
        np.testing.assert_allclose(found.rate, exact[0, k], rtol=1e-13, atol=1e-13)
        rates = [getattr(item, "rate", 0.0) for item in evaluate(rows, {"x": moved})]
        np.testing.assert_allclose(hessian[:, k], rates, rtol=1e-12, atol=1e-12)


def test_zero_blocks_are_structural():
    _, x = symbols(4)
    outputs = [x[0] * x[1], scalar.sin(x[3])]
    rows = jacobian(outputs, x)
    assert [sorted(row) for row in rows] == [[0, 1], [3]]


def test_the_cheaper_direction_is_taken():
    """One output of many inputs in reverse, many outputs of one input forward, at its own order."""
    _, x = symbols(40)
    product = x[0]
    for item in x[1:]:
        product = product * item + item
    gradient = full([product], x)[0]
    assert count_operations(gradient).total <= 5 * count_operations([product]).total
    _, (t,) = symbols(1)
    curve = [scalar.sin(t * float(k)) * t for k in range(1, 40)]
    column = [row[0] for row in full(curve, [t])]
    assert count_operations(column).total <= 6 * count_operations(curve).total


def test_derivative_by_an_intermediate_value():
    """Inputs need not be leaves: d(s y)/ds with s = sin x is y."""
    _, (x, y) = symbols(2)
    s = scalar.sin(x)
    row = jacobian([s * y], [s, y])[0]
    assert row[0] is y
    assert row[1] is s
    change = numbers([jvp([s * y], [s, x, y], [2.0, 3.0, 5.0])], [0.4, 0.7])[0]
    np.testing.assert_allclose(change, [2.0 * 0.7 + 5.0 * math.sin(0.4)])
    gradient = numbers([vjp([s * y], [s, x, y], [2.0])], [0.4, 0.7])[0]
    np.testing.assert_allclose(gradient, [1.4, 0.0, 2.0 * math.sin(0.4)])


BRANCHES = {
    "select": lambda x, y: scalar.select(x > 0.0, scalar.sqrt(x) * y, y * y),
    "otherwise": lambda x, y: scalar.select(x < 0.0, y * y, scalar.log(x) / x),
    "nested": lambda x, y: scalar.select(
        y > 0.0, scalar.select(x > 0.0, scalar.sqrt(x) * y, y), scalar.select(x > 0.0, y / scalar.sqrt(x), x)
    ),
    "shared": lambda x, y: (
        scalar.select(x > 0.0, scalar.sqrt(x), y) + scalar.select(x > 1.0, y * scalar.sqrt(x), 2.0 * x) + x
    ),
    "both ways": lambda x, y: scalar.select(x > 0.0, scalar.sqrt(x * x) * y, scalar.sqrt(x * x) * x),
    "min": lambda x, y: scalar.minimum(scalar.select(x > 0.0, scalar.log(x), -5.0), y),
    "max": lambda x, y: scalar.maximum(y, scalar.select(x <= 0.0, 9.0, 1.0 / scalar.sqrt(x))),
    "nine": lambda x, y: sum(scalar.select(x > 0.11 * k, scalar.sqrt(x) * y, y) for k in range(9)),
}


@pytest.mark.parametrize("name", BRANCHES)
@pytest.mark.parametrize("values", [(-1.5, 0.73), (1.5, 0.73), (-0.5, -0.73), (0.5, 0.25), (-0.5, 0.25)])
@pytest.mark.parametrize("mode", [forward, reverse])
def test_nan_of_the_branch_not_taken_does_not_spread(name, values, mode):
    """sqrt and log of negative numbers stand in branches that are not taken."""
    _, x = symbols(2)
    outputs = [BRANCHES[name](*x)]
    h = 1e-6
    expected = [
        (
            evaluate(outputs, {"x": np.add(values, h * step)})[0]
            - evaluate(outputs, {"x": np.subtract(values, h * step)})[0]
        )
        / (2.0 * h)
        for step in np.eye(2)
    ]
    np.testing.assert_allclose(
        numbers(mode(outputs, x), values)[0], expected, rtol=1e-7, atol=1e-8, equal_nan=False
    )


def test_negated_conditions_guard_too():
    """A graph without rules keeps `not`, which the rules would take out of `select`."""
    graph = Graph(NO_RULES)
    x, y = (graph.input("x", k) for k in range(2))
    value = scalar.select(scalar.logical_not(x > 0.0), y * y, scalar.sqrt(x) * y)
    gradient = vjp([value], [x, y], [1.0])
    np.testing.assert_allclose(numbers([gradient], [-1.0, 3.0])[0], [0.0, 6.0])
    np.testing.assert_allclose(numbers([gradient], [4.0, 3.0])[0], [0.75, 2.0])


def test_branches_cost_nothing_where_no_adjoints_meet():
    """A gradient inside a branch is cut off once, where it leaves the branch."""
    _, (x, y) = symbols(2)
    inside = scalar.sqrt(scalar.sin(x) * y + scalar.exp(x * y))
    gradient = vjp([scalar.select(x > 0.0, inside * inside * y, 0.0)], [x, y], [1.0])
    assert sum(item.op == "select" for item in live(gradient)) == 2


def chain(x):
    product = x[0]
    for item in x[1:]:
        product = product * item + item
    return product


def test_rows_that_cost_less_in_reverse_are_taken_so():
    """One row of all inputs in reverse, many rows of one long way from one input forward."""
    _, x = symbols(60)
    far = x[0]
    for _ in range(60):
        far = scalar.sin(far) * 1.01
    outputs = [chain(x), *(scalar.cos(far * float(k)) for k in range(1, 31))]
    rows = jacobian(outputs, x)
    values = np.linspace(0.5, 1.4, 60)
    cost = count_operations([item for row in rows for item in row.values()]).total
    assert cost <= 4 * count_operations(outputs).total
    expected = complex_step(outputs, values)
    np.testing.assert_allclose(numbers(dense(rows, 60), values), expected, rtol=1e-11, atol=1e-12)


def test_rows_that_share_their_values_are_taken_in_reverse_together():
    """No row alone would save anything."""
    _, x = symbols(60)
    product = chain(x)
    outputs = [product * x[3], scalar.sin(product)]
    rows = jacobian(outputs, x)
    cost = count_operations([item for row in rows for item in row.values()]).total
    assert cost <= 9 * count_operations(outputs).total
    values = np.linspace(0.5, 1.4, 60)
    np.testing.assert_allclose(
        numbers(dense(rows, 60), values), complex_step(outputs, values), rtol=1e-11, atol=1e-12
    )


def test_second_derivatives():
    _, (x, y) = symbols(2)
    gradient = full([x * x * y + scalar.sin(x * y)], [x, y])[0]
    hessian = numbers(full(gradient, [x, y]), [0.3, 0.8])
    c, s = math.cos(0.24), math.sin(0.24)
    expected = [[1.6 - 0.64 * s, 0.6 + c - 0.24 * s], [0.6 + c - 0.24 * s, -0.09 * s]]
    np.testing.assert_allclose(hessian, expected, rtol=1e-12)


def test_wrong_lengths_are_named():
    _, x = symbols(2)
    with pytest.raises(ShapeError, match="tangents: expected 2, one for each of the inputs, got 1"):
        jvp([x[0]], x, [1.0])
    with pytest.raises(ShapeError, match="cotangents: expected 1"):
        vjp([x[0]], x, [1.0, 2.0])
