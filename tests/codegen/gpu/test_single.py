"""Elementary functions of float32 kernels are right to the last bits, without the help of doubles."""

import numpy as np
import pytest
from tests.codegen.gpu.launching import LAYOUTS, run_on_host
from tests.codegen.sample_programs import straight

from dalembert.tracing.graph import Graph

mpmath = pytest.importorskip("mpmath")

FUNCTIONS = {
    "sin": (np.sin, -10.0, 10.0),
    "cos": (np.cos, -10.0, 10.0),
    "tan": (np.tan, -10.0, 10.0),
    "asin": (np.arcsin, -1.0, 1.0),
    "acos": (np.arccos, -1.0, 1.0),
    "exp": (np.exp, -103.0, 88.7),
    "log": (np.log, 1e-30, 1e3),
}
WORST = {"sin": 1.6, "cos": 1.6, "tan": 2.5, "asin": 2.0, "acos": 1.6, "exp": 1.1, "log": 1.0, "atan2": 1.9}
"""Units in the last place, a little above what was seen."""


def _evaluate(op, *columns):
    graph = Graph()
    program = straight(
        {"x": len(columns)},
        {"y": [graph.operation(op, *(graph.input("x", k) for k in range(len(columns))))]},
    )
    arrays = {"x": np.stack(columns, axis=1).astype(np.float32)}
    return run_on_host(program, arrays, layout=LAYOUTS["plain"])[0]["y"][:, 0]


def _units(found, exact):
    """Errors in units of the last place of the exact value."""
    return np.abs(found.astype(np.longdouble) - exact) / np.spacing(np.abs(exact).astype(np.float32))


def _numbers(low, high, count=20000, seed=0):
    rng = np.random.default_rng(seed)
    even = rng.uniform(low, high, count)
    small = np.sign(even) * np.exp(rng.uniform(-60.0, 0.0, count)) * max(abs(low), abs(high))
    return np.concatenate([even, np.clip(small, low, high), [low, high]]).astype(np.float32)


@pytest.mark.parametrize("op", FUNCTIONS)
def test_functions_are_right_to_the_last_bits(op):
    exact, low, high = FUNCTIONS[op]
    x = _numbers(low, high)
    error = _units(_evaluate(op, x), exact(x.astype(np.longdouble)))
    assert error.max() <= WORST[op]


@pytest.mark.parametrize("op", ["sin", "cos"])
def test_sines_of_large_and_near_multiples_are_reduced_exactly(op):
    """Multiples of a quarter turn as near as float32 has them, and arguments up to the largest number."""
    n = np.concatenate([np.arange(1, 63662, 7), np.arange(1, 300)])
    near = np.float32(n * (np.pi / 2))
    rng = np.random.default_rng(1)
    x = np.concatenate(
        [
            near,
            np.nextafter(near, np.float32(0)),
            np.float32(rng.uniform(-1e5, 1e5, 5000)),
            np.float32(np.exp(rng.uniform(np.log(1e5), np.log(3.4e38), 300))),
        ]
    )
    mpmath.mp.prec = 300
    function = getattr(mpmath, op)
    exact = np.array([np.longdouble(mpmath.nstr(function(mpmath.mpf(float(item))), 25)) for item in x])
    assert _units(_evaluate(op, x), exact).max() <= WORST[op]


def test_arc_tangents_of_both_arguments():
    rng = np.random.default_rng(2)
    y, x = rng.normal(size=(2, 30000)) * np.exp(rng.uniform(-20, 20, (2, 30000)))
    y, x = y.astype(np.float32), x.astype(np.float32)
    exact = np.arctan2(y.astype(np.longdouble), x.astype(np.longdouble))
    assert _units(_evaluate("atan2", y, x), exact).max() <= WORST["atan2"]


def test_special_arguments():
    inf, nan = np.inf, np.nan
    assert np.isnan(_evaluate("sin", [inf, -inf, nan])).all()
    assert np.isnan(_evaluate("tan", [inf, -inf, nan])).all()
    assert np.isnan(_evaluate("acos", [1.5, nan])).all()
    assert np.isnan(_evaluate("asin", [-1.5, nan])).all()
    assert np.array_equal(_evaluate("exp", [-inf, -200.0, 0.0, 200.0, inf]), [0.0, 0.0, 1.0, inf, inf])
    assert np.array_equal(_evaluate("log", [0.0, 1.0, inf]), [-inf, 0.0, inf])
    assert np.isnan(_evaluate("log", [-1.0, nan])).all()
    assert np.isnan(_evaluate("exp", [nan]))[0]
    tiny = np.float32(1e-42)
    assert _evaluate("log", [tiny])[0] == np.float32(np.log(float(tiny)))
    y = np.array([0.0, 0.0, -0.0, 1.0, inf, -inf, 0.0, 3e38], np.float32)
    x = np.array([1.0, -1.0, -1.0, 0.0, inf, -inf, 0.0, 3e38], np.float32)
    assert np.allclose(_evaluate("atan2", y, x), np.arctan2(y, x), rtol=2e-7, atol=0.0)
    assert np.array_equal(np.signbit(_evaluate("atan2", y, x)), np.signbit(np.arctan2(y, x)))
