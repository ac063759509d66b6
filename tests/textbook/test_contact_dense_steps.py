"""Steps whose inside is known, by which event-driven simulation finds when something happens."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import dalembert as da
from dalembert.errors import ArgumentError, UnknownNameError


def oscillator(y: Any, t: float) -> Any:
    return np.array([y[1], -y[0] + 0.3 * np.sin(2 * t) * y[0] * y[1]])


@pytest.mark.parametrize(("method", "order"), [("euler", 1), ("heun", 2), ("heun3", 3)])
def test_dense_steps_have_their_order_and_end_at_the_step(method: Any, order: int) -> None:
    """RBDA-11.5-INTERP: orders 1, 2, 3 by refinement; y(1) = y1; the interpolant is that of the book;
    within a step it is as good as the step; shortened steps end on it."""
    exact = solve_ivp(
        lambda t, y: oscillator(y, t), (0, 2), [1.0, 0.0], rtol=1e-12, atol=1e-13, dense_output=True
    )
    ends, inside = [], []
    for n in (40, 80):
        y, worst = np.array([1.0, 0.0]), 0.0
        for i in range(n):
            step = da.textbook.dense_step(oscillator, y, 2 * i / n, 2 / n, method=method)
            t = step.t0 + 0.6 * step.h
            worst = max(worst, np.abs(step.at(0.6) - exact.sol(t)).max())
            y = step.y1
        ends.append(np.abs(y - exact.sol(2.0)).max())
        inside.append(worst)
    assert np.log2(ends[0] / ends[1]) == pytest.approx(order, abs=0.3)
    assert np.log2(inside[0] / inside[1]) == pytest.approx(order, abs=0.4)
    k, h, delta = step.slopes, step.h, 0.37
    if method == "euler":
        np.testing.assert_allclose(step.at(delta), step.y0 + h * k[0] * delta, atol=1e-15)
        np.testing.assert_allclose(step.y1, step.y0 + h * k[0], atol=1e-15)
    if method == "heun":
        book = step.y0 + h * ((delta - 0.75 * delta**2) * k[0] + 0.75 * delta**2 * k[1])
        np.testing.assert_allclose(step.at(delta), book, atol=1e-15)
        np.testing.assert_allclose(step.y1, step.y0 + h * (0.25 * k[0] + 0.75 * k[1]), atol=1e-15)
        np.testing.assert_allclose(
            k[1], oscillator(step.y0 + 2 / 3 * h * k[0], step.t0 + 2 / 3 * h), atol=1e-14
        )
    short = step.shortened(delta)
    assert short.t1 == pytest.approx(step.t0 + delta * h)
    np.testing.assert_array_equal(short.y1, step.at(delta))


def test_any_polynomial_through_slopes_is_integrated_exactly() -> None:
    """RBDA-11.5-INTERP: y' a polynomial of degree n - 1 and n nodes anywhere, also of Adams and Bashforth."""
    rng = np.random.default_rng(0)
    for nodes in ((0.0,), (0.3, 0.9), (0.0, -1.0, -2.0), (0.0, 0.5, 1.0, 1.5)):
        p = np.polynomial.Polynomial(rng.normal(size=len(nodes)))
        t0, h = 0.7, 0.4
        slopes = [np.array([p(t0 + c * h)]) for c in nodes]
        step = da.textbook.fitted_step([2.0], t0, h, slopes, nodes)
        for delta in (0.0, 0.25, 1.0):
            expected = 2.0 + p.integ()(t0 + delta * h) - p.integ()(t0)
            assert step.at(delta)[0] == pytest.approx(expected, abs=1e-13)


def test_wrong_dense_steps_are_named() -> None:
    """RBDA-11.5-PROCEDURE"""
    with pytest.raises(UnknownNameError, match="heun"):
        da.textbook.dense_step(oscillator, [1.0, 0.0], 0.0, 0.1, method="hein")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="from 0 to 1"):
        da.textbook.dense_step(oscillator, [1.0, 0.0], 0.0, 0.1).shortened(1.2)
    with pytest.raises(ArgumentError, match="a slope for each node"):
        da.textbook.fitted_step([0.0], 0.0, 1.0, [np.zeros(1)], (0.0, 0.5))
