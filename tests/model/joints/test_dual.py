"""Dual numbers: exact directional derivatives, also of second order, over every scalar kind."""

from __future__ import annotations

import cmath
import math

import numpy as np
import pytest

from dalembert import scalar
from dalembert.model.joints.dual import Dual, directional_derivative

UNARY = {
    "sin": (scalar.sin, cmath.sin),
    "cos": (scalar.cos, cmath.cos),
    "tan": (scalar.tan, cmath.tan),
    "asin": (scalar.asin, cmath.asin),
    "acos": (scalar.acos, cmath.acos),
    "sqrt": (scalar.sqrt, cmath.sqrt),
    "exp": (scalar.exp, cmath.exp),
    "log": (scalar.log, cmath.log),
    "cube": (lambda x: x**3, lambda x: x**3),
    "inverse square": (lambda x: x**-2, lambda x: x**-2),
    "reciprocal": (lambda x: 2.0 / x - x / 3.0, lambda x: 2.0 / x - x / 3.0),
    "difference": (lambda x: (1.0 - x) * (x - 2.0) + -x, lambda x: (1.0 - x) * (x - 2.0) - x),
}


@pytest.mark.parametrize("name", UNARY)
def test_derivative_is_that_of_a_complex_step(name: str) -> None:
    """RBDA-4.4-USERJOINT: the derivative of every elementary function, against an imaginary step of 1e-30."""
    ours, reference = UNARY[name]
    for x in (0.3, 0.71):
        value, rate = directional_derivative(lambda q: ours(q[0]), [x], [2.0])
        assert math.isclose(value, reference(x).real, rel_tol=1e-14)
        assert math.isclose(rate, 2.0 * reference(complex(x, 1e-30)).imag * 1e30, rel_tol=1e-13)


def test_two_arguments_and_choices() -> None:
    """RBDA-4.4-USERJOINT: atan2, minimum, maximum, select, absolute, floor and the logical functions."""

    def function(q):
        x, y = q
        inside = scalar.logical_and(x > 0.0, scalar.logical_not(y <= 0.0))
        either = scalar.logical_or(x >= 10.0, y < 10.0)
        chosen = scalar.select(inside, scalar.atan2(y, x), 0.0)
        other = scalar.select(either, scalar.minimum(x, y) * scalar.maximum(2.0, x), y)
        return [chosen, other, scalar.absolute(-x * y), scalar.floor(x) + abs(x)]

    x, y, dx, dy = 0.6, 0.8, 0.3, -0.5
    value, rate = directional_derivative(function, [x, y], [dx, dy])
    np.testing.assert_allclose(value, [math.atan2(y, x), 2.0 * x, x * y, x])
    np.testing.assert_allclose(rate, [(x * dy - y * dx) / (x * x + y * y), 2.0 * dx, dx * y + x * dy, dx])


def test_second_derivatives_by_nesting() -> None:
    """RBDA-4.4-USERJOINT: a derivative of a derivative; the levels are not confused."""

    def first(q):
        return directional_derivative(lambda p: scalar.sin(p[0]) * q[0] * p[1], q, [1.0, 0.0])[1]

    # The derivative along (1, 2) of cos(x) x y, in which the inner derivative held the factor x constant.
    x, y = 0.4, 0.9
    _, rate = directional_derivative(first, [x, y], [1.0, 2.0])
    assert math.isclose(rate, (math.cos(x) - x * math.sin(x)) * y + 2.0 * x * math.cos(x), rel_tol=1e-14)


def test_batches_stay_batches() -> None:
    """RBDA-4.4-USERJOINT: arrays as parts, on either side of an operator, and in a choice."""
    x = np.array([0.2, -0.7, 1.1])

    def function(q):
        return scalar.select(q[0] > 0.0, x * q[0], 3.0 - q[0])

    value, rate = directional_derivative(function, [x], [np.ones(3)])
    np.testing.assert_allclose(value, np.where(x > 0, x * x, 3.0 - x))
    np.testing.assert_allclose(rate, np.where(x > 0, x, -1.0))


def test_fractional_powers_are_refused() -> None:
    """A dual number has whole powers only; sqrt, exp and log serve the rest."""
    with pytest.raises(TypeError):
        Dual(2.0, 1.0, 1) ** 0.5
