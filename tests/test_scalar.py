"""The elementary functions mean the same on every kind of scalar."""

import math

import numpy as np
import pytest
import sympy
from tests.tracing.interpreter import evaluate

from dalembert import scalar
from dalembert.errors import TracingError, UnknownNameError
from dalembert.tracing import Graph

UNARY = ["sin", "cos", "tan", "asin", "acos", "sqrt", "exp", "log", "absolute", "floor"]
BINARY = ["atan2", "minimum", "maximum"]
REFERENCE = {"absolute": abs, "minimum": min, "maximum": max}


def reference(name):
    return REFERENCE.get(name) or getattr(math, name)


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("number", [0.3, 0.97])
def test_one_argument_on_every_kind(name, number):
    function, expected = getattr(scalar, name), reference(name)(number)
    x = Graph().input("x", 0)
    symbol = sympy.Symbol("x", real=True)
    assert function(number) == pytest.approx(expected, rel=1e-15)
    assert type(function(number)) is float
    assert function(np.float64(number)) == pytest.approx(expected, rel=1e-15)
    np.testing.assert_allclose(function(np.array([number, number])), [expected] * 2, rtol=1e-15)
    assert evaluate([function(x)], {"x": [number]}) == pytest.approx([expected], rel=1e-15)
    assert float(function(symbol).subs(symbol, number)) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("numbers", [(0.3, 0.9), (-1.2, -0.4), (2, -1)])
def test_two_arguments_on_every_mixture(name, numbers):
    function, expected = getattr(scalar, name), reference(name)(*numbers)
    a, b = numbers
    x = Graph().input("x", 0)
    symbol = sympy.Symbol("x", real=True)
    assert function(a, b) == expected
    np.testing.assert_allclose(function(np.array([a]), b), [expected], rtol=1e-15)
    np.testing.assert_allclose(function(a, np.array([b])), [expected], rtol=1e-15)
    assert evaluate([function(x, b), function(a, x)], {"x": [a]})[0] == pytest.approx(expected)
    assert evaluate([function(a, x)], {"x": [b]})[0] == pytest.approx(expected)
    assert float(function(symbol, b).subs(symbol, a)) == pytest.approx(expected)
    assert float(function(a, symbol).subs(symbol, b)) == pytest.approx(expected)


@pytest.mark.parametrize("number", [-0.5, 0.5])
def test_select_takes_the_branch_of_the_condition(number):
    def clipped(x):
        return scalar.select(x < 0.0, 0.0 * x - 1.0, 2.0 * x)

    expected = -1.0 if number < 0.0 else 2.0 * number
    symbol = sympy.Symbol("x", real=True)
    assert clipped(number) == expected
    assert clipped(np.float64(number)) == expected
    np.testing.assert_array_equal(clipped(np.array([number, 3.0])), [expected, 6.0])
    assert evaluate([clipped(Graph().input("x", 0))], {"x": [number]}) == [expected]
    assert float(clipped(symbol).subs(symbol, number)) == expected


@pytest.mark.parametrize("a", [False, True])
@pytest.mark.parametrize("b", [False, True])
def test_logic_on_every_kind(a, b):
    x, symbol = Graph().input("x", 0), sympy.Symbol("x", real=True)
    table = {"logical_and": a and b, "logical_or": a or b}
    for name, expected in table.items():
        function = getattr(scalar, name)
        assert function(a, b) is expected
        assert function(np.array([a]), b).tolist() == [expected]
        assert evaluate([function(x > 0.0, b)], {"x": [1.0 if a else -1.0]}) == [expected]
        assert bool(sympy.sympify(function(symbol > 0.0, b)).subs(symbol, 1 if a else -1)) is expected
    assert scalar.logical_not(a) is (not a)
    assert evaluate([scalar.logical_not(x > 0.0)], {"x": [1.0 if a else -1.0]}) == [not a]


@pytest.mark.parametrize(
    "kind", [float, np.float64, lambda x: np.array([x])], ids=["float", "scalar", "array"]
)
def test_outside_the_domain_is_nan_or_infinity_and_never_raises(kind):
    for name, number in [("sqrt", -1.0), ("log", -1.0), ("asin", 1.5), ("acos", -1.5), ("sin", math.inf)]:
        assert math.isnan(np.ravel(getattr(scalar, name)(kind(number)))[0])
    for name in ("cos", "tan", "sqrt", "exp", "floor", "absolute"):
        assert math.isnan(np.ravel(getattr(scalar, name)(kind(math.nan)))[0])
    assert np.ravel(scalar.exp(kind(1e4)))[0] == math.inf
    assert np.ravel(scalar.log(kind(0.0)))[0] == -math.inf


def test_minimum_and_maximum_give_the_second_where_either_is_nan():
    for kind in (float, lambda x: np.array([x])):
        assert np.ravel(scalar.minimum(kind(math.nan), kind(2.0)))[0] == 2.0
        assert math.isnan(np.ravel(scalar.minimum(kind(2.0), kind(math.nan)))[0])
        assert np.ravel(scalar.maximum(kind(math.nan), kind(2.0)))[0] == 2.0
        assert math.isnan(np.ravel(scalar.maximum(kind(2.0), kind(math.nan)))[0])


@pytest.mark.parametrize("name", ["sin", "cos", "tan", "asin", "acos", "sqrt", "exp", "log"])
def test_complex_steps_differentiate(name):
    x, h = 0.4, 1e-30
    derivative = getattr(scalar, name)(complex(x, h)).imag / h
    difference = (reference(name)(x + 1e-6) - reference(name)(x - 1e-6)) / 2e-6
    assert derivative == pytest.approx(difference, rel=1e-8)


def test_complex_steps_follow_the_branch():
    h = 1e-30
    assert scalar.absolute(complex(-2.0, h)).imag == -h
    assert scalar.minimum(complex(1.0, h), 2.0).imag == h
    assert scalar.maximum(complex(1.0, h), 2.0) == 2.0
    assert scalar.atan2(complex(1.0, h), 2.0).imag == pytest.approx(0.4 * h)


def test_unknown_kinds_are_named():
    with pytest.raises(TracingError, match="str is not a scalar"):
        scalar.sin("0.5")


def test_only_what_is_a_number_by_structure_is_a_literal():
    """A constant that folded inside a trace is as good as the number written down; data never is."""
    graph = Graph()
    x = graph.input("x", 0)
    cases = [
        (1.0, (1.0, 1, graph.constant(1.0), x * 0.0 + 1.0, sympy.Integer(1))),
        (0.0, (0.0, 0, x * 0.0, sympy.Symbol("s") * 0)),
        (None, (x, np.zeros(3), np.float64(0.0), 0j, sympy.Symbol("s"), object())),
    ]
    for number, scalars in cases:
        for item in scalars:
            assert scalar.literal(item) == number
            assert scalar.is_one(item) is (number == 1.0)
            assert scalar.is_zero(item) is (number == 0.0)


def test_a_subclass_is_found_through_its_base():
    class Angle(float):
        pass

    assert scalar.sin(Angle(0.5)) == math.sin(0.5)
    assert scalar.sqrt(2) == math.sqrt(2.0)


def test_unknown_names_are_readable():
    error = UnknownNameError.of("body", "hamd", ["arm", "hand", "foot"])
    assert str(error) == 'unknown body "hamd"; valid: "arm", "hand", "foot"; nearest: "hand"'
    assert isinstance(error, KeyError)
    assert "… (50 in all)" in str(UnknownNameError.of("body", "x", range(50)))
