"""Tracing a function: shapes of arguments and results, and what cannot be recorded."""

from typing import NamedTuple

import numpy as np
import pytest
from tests.tracing.interpreter import interpret, refused

from dalembert import scalar
from dalembert.errors import ArgumentError, TracingError
from dalembert.tracing import ArrayArgument, trace


class Pose(NamedTuple):
    angle: object
    point: object


def run(recorded, **inputs):
    """Interpret and give the outputs the shapes and the structure that the function returned."""
    results = interpret(
        recorded.program(), {name: np.ravel(value).tolist() for name, value in inputs.items()}
    )
    return recorded.rebuild([np.reshape(results[item.name], item.shape) for item in recorded.outputs])


def test_arguments_are_nested_lists_in_row_major_order():
    recorded = trace(
        lambda A, x, s: [s * sum(a * b for a, b in zip(row, x)) for row in A],
        [ArrayArgument("A", (2, 3)), ArrayArgument("x", (3,)), ArrayArgument("s")],
    )
    A, x = np.arange(6.0).reshape(2, 3), np.array([1.0, -2.0, 0.5])
    np.testing.assert_allclose(run(recorded, A=A, x=x, s=3.0), 3.0 * A @ x)


@pytest.mark.parametrize(
    ("function", "shapes"),
    [
        (lambda x: x[0], [()]),
        (lambda x: x, [(2,)]),
        (lambda x: [[x[0], 1.0], [2, x[1]]], [(2, 2)]),
        (lambda x: (x[0], [x[1], x[0]]), [(), (2,)]),
        (lambda x: np.array([x, x, x]), [(3, 2)]),
        (lambda x: np.outer(np.array(x), np.array(x)), [(2, 2)]),
        (lambda x: (np.eye(2), []), [(2, 2), (0,)]),
        (lambda x: [(x[0], x[1])], [(1, 2)]),
        (lambda x: np.float64(1.5), [()]),
    ],
)
def test_results_keep_their_shapes(function, shapes):
    recorded = trace(function, [ArrayArgument("x", (2,))])
    assert [item.shape for item in recorded.outputs] == shapes
    numbers = [0.3, -0.7]
    expected = function(numbers)
    result = run(recorded, x=numbers)
    assert isinstance(result, tuple) is isinstance(expected, tuple)
    for ours, theirs in zip(
        result if isinstance(result, tuple) else [result],
        expected if isinstance(expected, tuple) else [expected],
        strict=True,
    ):
        np.testing.assert_array_equal(ours, np.asarray(theirs, dtype=float))


def test_named_results_name_the_outputs():
    recorded = trace(lambda x: Pose(x[0], x), [ArrayArgument("x", (2,))])
    assert [item.name for item in recorded.outputs] == ["angle", "point"]
    assert run(recorded, x=[1.0, 2.0]).angle == 1.0
    mapping = trace(lambda x: {"a": x[0], "b": x[1]}, [ArrayArgument("x", (2,))])
    assert run(mapping, x=[1.0, 2.0]) == {"a": 1.0, "b": 2.0}
    named = trace(lambda x: (x[0], x[1]), [ArrayArgument("x", (2,))], names=["first", "second"])
    assert [item.name for item in named.outputs] == ["first", "second"]


def test_values_of_other_classes_are_flattened_by_the_caller():
    class Pair:
        def __init__(self, a, b):
            self.a, self.b = a, b

    recorded = trace(
        lambda x: [Pair(x[0], 2.0), Pair(0.0, x[1])],
        [ArrayArgument("x", (2,))],
        flatten=lambda pair: [pair.a, pair.b],
    )
    np.testing.assert_array_equal(run(recorded, x=[3.0, 4.0]), [[3.0, 2.0], [0.0, 4.0]])


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: [[x[0]], [x[0], x[1]]], r"output\[1\] has shape \(2,\) but output\[0\] has \(1,\)"),
        (lambda x: (x[0], None), r"output1 is a NoneType"),
        (lambda x: [x[0], "a"], r"output\[1\] is a str"),
        (lambda x: [x[0] < 1.0], r"output\[0\] is a condition.*select"),
    ],
)
def test_results_that_are_no_arrays_are_named(function, message):
    with pytest.raises(TracingError, match=message):
        trace(function, [ArrayArgument("x", (2,))])


def test_wrong_number_of_names():
    with pytest.raises(ArgumentError, match="2 names for 1 outputs"):
        trace(lambda x: x, [ArrayArgument("x", (2,))], names=["a", "b"])


def test_a_check_refuses_rows():
    recorded = trace(
        lambda x: x[0],
        [ArrayArgument("x", (2,))],
        check=lambda x: scalar.absolute(x[0] * x[0] + x[1] * x[1] - 1.0) > 1e-6,
    )
    program = recorded.program()
    assert not refused(program, {"x": [0.6, 0.8]})
    assert refused(program, {"x": [0.6, 0.9]})
    assert not refused(program, {"x": [float("nan"), 0.8]})
    rows = np.array([[0.6, 0.8], [1.0, 1.0]])
    np.testing.assert_array_equal(refused(program, {"x": list(rows.T)}), [False, True])
    assert refused(trace(lambda x: x, [ArrayArgument("x")], check=lambda x: True).program(), {"x": [0.0]})
    assert not refused(trace(lambda x: x, [ArrayArgument("x")]).program(), {"x": [0.0]})


def test_numpy_functions_are_refused_where_they_stand():
    with pytest.raises(TracingError, match=r"test_trace\.py:\d+: NumPy has no functions.*dalembert\.scalar"):
        trace(lambda x: np.sin(x[0]), [ArrayArgument("x", (2,))])
