"""Iteration and tables mean the same on every kind of scalar."""

import dataclasses
import math
from typing import Any, NamedTuple

import numpy as np
import pytest
import sympy
from tests.tracing.interpreter import evaluate, interpret

from dalembert import scalar
from dalembert.errors import ArgumentError, DtypeError, ShapeError, TracingError
from dalembert.model.joints.dual import Dual
from dalembert.spatial import Vec3
from dalembert.tracing import ArrayArgument, Graph, trace


def root(a):
    """Newton's method, which takes more steps for larger numbers."""
    return scalar.loop(60, lambda x: 0.5 * (x + a / x), a, until=lambda x: abs(x * x - a) < 1e-9 * a)


def steps(a):
    def step(carry):
        x, n = carry
        return 0.5 * (x + a / x), n + 1.0

    return scalar.loop(60, step, (a, 0.0), until=lambda carry: abs(carry[0] * carry[0] - a) < 1e-9 * a)[1]


def test_a_sample_among_others_is_as_alone():
    """RBDA-10.4-SYMBOLIC: frozen by itself, bit for bit, whatever its neighbours still do."""
    numbers = np.array([1.0, 2.0, 3.0e4, 0.01, 7.0e9, math.nan])
    together = root(numbers)
    alone = np.array([root(float(x)) for x in numbers])
    np.testing.assert_array_equal(together, alone)
    counts = steps(numbers)
    assert counts[0] == 0.0
    assert counts[-1] == 60.0
    assert len(set(counts.tolist())) == 6
    np.testing.assert_allclose(together[:-1] ** 2, numbers[:-1], rtol=2e-9)


def test_the_step_of_a_float_is_run_as_often_as_it_must():
    ran = []

    def step(x):
        ran.append(x)
        return x + 1.0

    assert scalar.loop(100, step, 0.0, until=lambda x: x >= 3.0) == 3.0
    assert ran == [0.0, 1.0, 2.0]
    assert scalar.loop(0, step, 5.0) == 5.0
    assert len(ran) == 3


def test_arrays_end_early_together():
    ran = []

    def step(x):
        ran.append(1)
        return x + 1.0

    np.testing.assert_array_equal(
        scalar.loop(100, step, np.array([0.0, 2.5]), until=lambda x: x >= 3.0), [3.0, 3.5]
    )
    assert len(ran) == 3


class Pair(NamedTuple):
    a: Any
    b: Any


@dataclasses.dataclass(frozen=True)
class Record:
    name: str
    values: list[Any]


@pytest.mark.parametrize("kind", ["float", "array", "traced"])
def test_any_nesting_is_carried(kind):
    start = (
        Vec3(1.0, 0.0, 0.0),
        [Pair(0.0, None), {"x": 2.0}],
        Record("r", [3.0]),
        np.array([1.0, 2.0], object),
    )

    def function(s):
        def step(carry):
            p, (pair, mapping), record, array = carry
            assert isinstance(pair, Pair)
            assert isinstance(record, Record)
            assert record.name == "r"
            return (
                p + Vec3(0.0, s, 1.0),
                [Pair(pair.a + p.x, None), {"x": mapping["x"] * s}],
                Record("r", [record.values[0] - s]),
                array + s,
            )

        p, (pair, mapping), record, array = scalar.loop(3, step, start)
        return [*p.to_list(), pair.a, mapping["x"], record.values[0], *array]

    expected = [1.0, 1.5, 3.0, 3.0, 0.25, 1.5, 2.5, 3.5]
    if kind == "traced":
        program = trace(function, [ArrayArgument("s")]).program()
        assert interpret(program, {"s": [0.5]})["output"] == expected
    else:
        given = 0.5 if kind == "float" else np.array([0.5, 0.5])
        for found, number in zip(function(given), expected, strict=True):
            np.testing.assert_array_equal(found, np.full(np.shape(found), number))


def test_symbols_are_unrolled():
    def function(x):
        return scalar.loop(4, lambda c: [c[0] * x + 1.0, c[1] + 1.0], [0.0, 0.0], until=lambda c: c[0] > 2.0)

    x = sympy.Symbol("x", real=True)
    found = function(x)
    for number in (0.5, 3.0):
        expected = function(number)
        assert [float(y.subs(x, number)) if hasattr(y, "subs") else y for y in found] == expected


def test_dual_numbers_iterate():
    found = scalar.loop(6, lambda x: 0.5 * (x + Dual(2.0, 1.0, 1) / x), Dual(2.0, 1.0, 1))
    assert found.value == pytest.approx(math.sqrt(2.0))
    assert found.rate == pytest.approx(0.5 / math.sqrt(2.0))


def test_misuse_is_explained():
    with pytest.raises(ArgumentError, match="cannot be run -1 times"):
        scalar.loop(-1, lambda x: x, 0.0)
    with pytest.raises(DtypeError, match="until=condition"):
        scalar.loop(2.5, lambda x: x, 0.0)
    with pytest.raises(DtypeError, match="until=condition"):
        scalar.loop(Graph().input("n", 0), lambda x: x, 0.0)
    with pytest.raises(TracingError, match="given 1 scalars and returned 2"):
        scalar.loop(3, lambda x: [x, x], 0.0)
    with pytest.raises(TracingError, match="given 1 scalars and returned 2"):
        scalar.loop(3, lambda x: [x, x], Graph().input("x", 0))
    with pytest.raises(TracingError, match="a condition of a number"):
        scalar.loop(3, lambda x: x > 0.0, Graph().input("x", 0))


TABLE = [1.0, -2.0, 4.0, 8.0]
INDICES = [-math.inf, -1.0, -0.0, 0.0, 0.5, 0.999999, 1.0, 2.5, 3.0, 3.5, 4.0, 1e300, math.inf, math.nan]
ELEMENTS = [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, -2.0, 4.0, 8.0, 8.0, 8.0, 8.0, 8.0, 1.0]


def test_a_table_is_looked_up_within_its_range():
    graph = Graph()
    node = scalar.lookup(TABLE, graph.input("x", 0))
    for index, element in zip(INDICES, ELEMENTS, strict=True):
        assert scalar.lookup(TABLE, index) == element
        assert scalar.lookup(np.array(TABLE), np.float64(index)) == element
        assert scalar.lookup(TABLE, complex(index, 1e-30)) == element
        assert evaluate([node], {"x": [index]}) == [element]
    np.testing.assert_array_equal(scalar.lookup(TABLE, np.array(INDICES)), ELEMENTS)
    np.testing.assert_array_equal(evaluate([node], {"x": [np.array(INDICES)]})[0], ELEMENTS)
    x = sympy.Symbol("x", real=True)
    found = scalar.lookup(TABLE, x)
    assert [float(found.subs(x, index)) for index in (-7, 0.5, 1, 2.5, 99)] == [1.0, 1.0, -2.0, 4.0, 8.0]
    assert scalar.lookup([5.0], 3.0) == 5.0
    dual = scalar.lookup(TABLE, Dual(1.5, 1.0, 1))
    assert (dual.value, dual.rate) == (-2.0, 0.0)


def test_equal_lookups_are_one_node_and_constants_fold():
    graph = Graph()
    x = graph.input("x", 0)
    assert scalar.lookup(TABLE, x) is scalar.lookup(np.array(TABLE), x)
    assert scalar.lookup(TABLE, x) is not scalar.lookup(TABLE[:-1], x)
    assert len(graph.tables) == 2
    assert scalar.literal(scalar.lookup(TABLE, graph.constant(2.2))) == 4.0


def test_tables_that_are_none_are_refused():
    x = Graph().input("x", 0)
    for table in ([], [[1.0, 2.0]], 3.0):
        with pytest.raises(ShapeError, match="one axis"):
            scalar.lookup(table, 1.0)
    with pytest.raises(DtypeError, match="constants"):
        scalar.lookup([1.0, x], 1.0)
    with pytest.raises(TracingError, match="no index"):
        scalar.lookup([1.0, 2.0], x > 0.0)
