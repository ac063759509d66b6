"""Elementary functions are accurate everywhere; the reference is mpmath at a precision beyond doubt."""

import mpmath
import numpy as np
import pytest
from tests.codegen.sample_programs import bits, run, straight

from dalembert.codegen import compile_program, host_levels
from dalembert.tracing.graph import Graph

FUNCTIONS = ("sin", "cos", "tan", "asin", "acos", "exp", "log", "atan2")


def _program():
    graph = Graph()
    x, y = graph.input("x", 0), graph.input("x", 1)
    values = [graph.operation(name, x) for name in FUNCTIONS[:-1]] + [graph.operation("atan2", y, x)]
    return straight({"x": 2}, {"y": values})


PROGRAM = _program()
ULP_BOUND = {
    "sin": 2.0,
    "cos": 2.0,
    "tan": 3.5,
    "asin": 1.5,
    "acos": 1.5,
    "exp": 1.5,
    "log": 1.5,
    "atan2": 2.5,
}


def _ulps(found: np.ndarray, exact: list, dtype: str) -> float:
    errors = [0.0]
    for value, reference in zip(found, exact):
        spacing = np.spacing(np.abs(np.asarray(float(reference), dtype=dtype)))
        errors.append(abs(float((mpmath.mpf(float(value)) - reference) / float(spacing))))
    return max(errors)


def _near_multiples(rng, count: int) -> np.ndarray:
    """The floats nearest to whole multiples of pi/2, where reduction loses the most."""
    return np.array([float(mpmath.mpf(int(k)) * mpmath.pi / 2) for k in rng.integers(1, 630_000, size=count)])


def _arguments(dtype: str) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(3)
    top = 300.0 if dtype == "float64" else 37.0
    with mpmath.workprec(200):
        near = _near_multiples(rng, 100)
    angles = np.concatenate(
        [
            rng.uniform(-10.0, 10.0, 100),
            rng.uniform(-1e6, 1e6, 100),
            near,
            [1e22 if dtype == "float64" else 1e12, 1.5e6, 1.5000001e6, -1e6],
            10.0 ** rng.uniform(6.0, top, 60) * rng.choice([-1.0, 1.0], 60),
        ]
    )
    unit = np.concatenate([rng.uniform(-1.0, 1.0, 150), [0.5, -0.5, 1.0, -1.0, 0.4999999, 1e-9]])
    limit = 700.0 if dtype == "float64" else 85.0
    return {
        **dict.fromkeys(("sin", "cos", "tan"), angles),
        **dict.fromkeys(("asin", "acos"), unit),
        "exp": np.concatenate([rng.uniform(-limit, limit, 100), rng.uniform(-1.0, 1.0, 100)]),
        "log": np.concatenate([10.0 ** rng.uniform(-37.0, 37.0, 100), rng.uniform(0.5, 2.0, 100)]),
        "atan2": np.concatenate([rng.normal(size=100), 10.0 ** rng.uniform(-30.0, 30.0, 100)]),
    }


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("level", host_levels())
def test_elementary_functions_are_within_their_ulps(level, dtype):
    kernel = compile_program(PROGRAM, dtype=dtype, level=level)
    rng = np.random.default_rng(4)
    for k, name in enumerate(FUNCTIONS):
        x = _arguments(dtype)[name].astype(dtype)
        y = rng.permutation(x) * rng.choice([-1.0, 1.0], len(x)).astype(dtype)
        found = run(kernel, {"x": np.stack([x, y], axis=1)})["y"][:, k]
        with mpmath.workprec(1300):
            numbers = [(mpmath.mpf(float(a)), mpmath.mpf(float(b))) for a, b in zip(x, y)]
            function = getattr(mpmath, name)
            exact = [function(b, a) if name == "atan2" else function(a) for a, b in numbers]
            worst = _ulps(found, exact, dtype)
        assert worst <= (ULP_BOUND[name] if dtype == "float64" else 0.6), f"{name}: {worst} ulp"


@pytest.mark.parametrize("level", host_levels())
def test_infinity_and_nan_give_nan_and_a_huge_lane_changes_no_other(level):
    kernel = compile_program(PROGRAM, level=level)
    x = np.linspace(-3.0, 3.0, 16)[:, None] * [1.0, 0.5]
    expected = run(kernel, {"x": x})["y"]
    x[[2, 5, 11], 0] = [np.inf, np.nan, 1e22]
    found = run(kernel, {"x": x})["y"]
    assert np.isnan(found[[2, 5], :3]).all()
    np.testing.assert_allclose(found[11, 0], -0.8522008497671888, rtol=4e-16)
    others = [row for row in range(16) if row not in (2, 5, 11)]
    assert np.array_equal(bits(found[others]), bits(expected[others]))


def test_atan2_knows_the_quadrants_of_zeros_and_infinities():
    values = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, 1e308, 5e-324]
    pairs = np.array([(x, y) for x in values for y in values])
    found = run(compile_program(PROGRAM), {"x": pairs})["y"][:, -1]
    expected = np.arctan2(pairs[:, 1], pairs[:, 0])
    np.testing.assert_allclose(found, expected, rtol=5e-16, atol=0.0)
    assert np.array_equal(np.signbit(found), np.signbit(expected))
