"""The coefficients of exponential maps; oracle: closed forms in forty digits."""

import numpy as np
import pytest
from tests.tracing.interpreter import evaluate

from dalembert.spatial.exponential import ExponentialCoefficients
from dalembert.tracing import Graph, count_operations

mpmath = pytest.importorskip("mpmath")

# Both sides of the seam at s = 1/4, where the series are longest and the closed forms cancel most.
SQUARES = [1e-12, 1e-6, 0.01, 0.2, 0.25 * (1 - 1e-15), 0.25, 0.3, 1.0, 4.0, 9.8, 30.0]


def exact(name, s):
    """The coefficient by its definition."""

    def B(s):
        return (1 - mpmath.cos(mpmath.sqrt(s))) / s

    def C(s):
        return (mpmath.sqrt(s) - mpmath.sin(mpmath.sqrt(s))) / (s * mpmath.sqrt(s))

    t = mpmath.sqrt(s)
    A = mpmath.sin(t) / t
    return {
        "half_cosine": lambda: mpmath.cos(t / 2),
        "half_sine": lambda: mpmath.sin(t / 2) / (t / 2),
        "A": lambda: A,
        "B": lambda: B(s),
        "C": lambda: C(s),
        "D": lambda: (1 - A / (2 * B(s))) / s,
        "E": lambda: (mpmath.cos(t) - 1 + s / 2) / s**2,
        "F": lambda: (mpmath.sin(t) - t + t * s / 6) / (s**2 * t),
        "B_rate": lambda: mpmath.diff(B, s),
        "C_rate": lambda: mpmath.diff(C, s),
    }[name]()


ACCURACY = {
    "half_cosine": 3e-16, "half_sine": 3e-16, "A": 3e-16, "B": 1e-15, "C": 1e-14, "D": 2e-14,
    "E": 2e-14, "F": 1e-12, "B_rate": 1e-13, "C_rate": 1e-12,
}  # fmt: skip


@pytest.mark.parametrize("name", ACCURACY)
def test_each_coefficient_on_both_sides_of_the_seam(name):
    """LJ-5.2-EXPMAP0: series and closed form both have the digits of their definition"""
    with mpmath.workdps(60):
        expected = [float(exact(name, mpmath.mpf(s))) for s in SQUARES]
    found = [getattr(ExponentialCoefficients(s), name) for s in SQUARES]
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=ACCURACY[name])
    np.testing.assert_allclose(getattr(ExponentialCoefficients(np.array(SQUARES)), name), found, rtol=1e-14)


def test_at_zero_every_coefficient_is_its_limit():
    """LJ-5.2-EXPMAP0: no NaN where the angle vanishes, in floats or in a trace"""
    limits = {
        "half_cosine": 1, "half_sine": 1, "A": 1, "B": 1 / 2, "C": 1 / 6, "D": 1 / 12, "E": 1 / 24,
        "F": 1 / 120, "B_rate": -1 / 24, "C_rate": -1 / 120,
    }  # fmt: skip
    s = Graph().input("s", 0)
    for name, limit in limits.items():
        assert getattr(ExponentialCoefficients(0.0), name) == pytest.approx(limit, rel=1e-15)
        traced = evaluate([getattr(ExponentialCoefficients(s), name)], {"s": [0.0]})
        assert traced[0] == pytest.approx(limit, rel=1e-15)


def test_all_coefficients_share_one_root_and_three_sines():
    """What the coefficients have in common is computed once"""
    k = ExponentialCoefficients(Graph().input("s", 0))
    count = count_operations([getattr(k, name) for name in ACCURACY])
    assert count.square_roots == 1
    assert count.trigonometric == 3
