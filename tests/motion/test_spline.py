"""Splines: exact on cubics, of fourth order, and right at their nodes."""

from __future__ import annotations

import numpy as np
import pytest

from dalembert.motion.differentiation import hermite, spline_slopes


@pytest.mark.parametrize("count", [2, 3, 4, 5, 6, 7, 30])
def test_slopes_of_polynomials_are_exact(count: int) -> None:
    rng = np.random.default_rng(count)
    time = np.cumsum(rng.uniform(0.1, 0.3, count))
    polynomial = np.polynomial.Polynomial(
        rng.normal(size=min(count, 4))
    )  # cubic at most: what a spline can be
    slopes = spline_slopes(time, polynomial(time)[:, None])
    np.testing.assert_allclose(slopes[:, 0], polynomial.deriv()(time), rtol=1e-9, atol=1e-9)


def test_slopes_are_those_of_the_clamped_spline() -> None:
    interpolate = pytest.importorskip("scipy.interpolate")
    rng = np.random.default_rng(0)
    time, values = np.cumsum(rng.uniform(0.05, 0.3, 40)), rng.normal(size=(40, 3))
    slopes = spline_slopes(time, values)
    reference = interpolate.CubicSpline(time, values, bc_type=((1, slopes[0]), (1, slopes[-1])))
    np.testing.assert_allclose(slopes, reference(time, 1), atol=1e-10)
    between = np.linspace(time[0], time[-1], 333)
    np.testing.assert_allclose(hermite(time, values, slopes, between), reference(between), atol=1e-12)


def test_slopes_and_their_slopes_converge_with_the_fourth_order() -> None:
    errors = []
    for count in (41, 81):
        time = np.linspace(0.0, 2.0, count)
        first = spline_slopes(time, np.sin(3.0 * time + 0.3)[:, None])
        second = spline_slopes(time, first)
        errors.append(
            (
                np.abs(first[:, 0] - 3.0 * np.cos(3.0 * time + 0.3)).max(),
                np.abs(second[:, 0] + 9.0 * np.sin(3.0 * time + 0.3)).max(),
            )
        )
    orders = np.log2(np.array(errors[0]) / np.array(errors[1]))
    assert (orders > 3.7).all(), orders


@pytest.mark.parametrize("unit", [1e-90, 1e90])
def test_slopes_scale_with_any_unit_of_time(unit: float) -> None:
    """A damaged file may name frames of 1e90 s: its powers are beyond all numbers, its slopes are not."""
    time = np.linspace(0.0, 1.0, 9)
    values = np.sin(3.0 * time)[:, None]
    np.testing.assert_allclose(
        spline_slopes(time * unit, values) * unit, spline_slopes(time, values), rtol=1e-9
    )


def test_one_sample_stands_still() -> None:
    assert not spline_slopes(np.zeros(1), np.ones((1, 2))).any()
    np.testing.assert_array_equal(
        hermite(np.zeros(1), np.ones((1, 2)), np.zeros((1, 2)), np.zeros(3)), np.ones((3, 2))
    )
