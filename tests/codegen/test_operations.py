"""Every operation, in every lane width and at every level of this machine, is what the interpreter says."""

import numpy as np
import pytest
from tests.codegen.sample_programs import bits, every_operation, random_inputs, random_straight, run
from tests.tracing.interpreter import interpret

from dalembert.codegen import compile_program, host_levels

PROGRAM, NAMES = every_operation()
EXACT = (
    "neg",
    "abs",
    "sqrt",
    "floor",
    "add",
    "sub",
    "mul",
    "div",
    "min",
    "max",
    "lt",
    "le",
    "eq",
    "and",
    "or",
    "not",
)
TOLERANCE = {"float64": 1e-15, "float32": 6e-7}


def _samples(dtype: str) -> np.ndarray:
    rng = np.random.default_rng(0)
    regular = rng.uniform(-3.0, 3.0, size=(30, 2))
    unit = rng.uniform(-1.0, 1.0, size=(30, 2))
    large = rng.uniform(-700.0, 700.0, size=(10, 2))
    special = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        2.0,
        np.inf,
        -np.inf,
        np.nan,
        1e-300 if dtype == "float64" else 1e-38,
    ]
    pairs = np.array([(a, b) for a in special for b in special])
    return np.concatenate([regular, unit, large, pairs]).astype(dtype)


def _expected(samples: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        columns = [samples[:, k].astype(np.float64) for k in range(2)]
        return np.stack(interpret(PROGRAM, {"x": columns})["result"], axis=1)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("level", host_levels())
def test_every_operation_equals_its_definition_in_every_width(level, dtype):
    samples = _samples(dtype)
    with np.errstate(all="ignore"):
        expected = _expected(samples).astype(dtype)
    first = None
    for lanes in (1, 2, 4, 8, 16):
        found = run(compile_program(PROGRAM, dtype=dtype, level=level, lanes=lanes), {"x": samples})["result"]
        if first is None:
            first = found
            for k, name in enumerate(NAMES):
                np.testing.assert_allclose(
                    found[:, k],
                    expected[:, k],
                    rtol=4.0 * TOLERANCE[dtype],
                    atol=0.0,
                    err_msg=f"{name} {level} {dtype}",
                )
        assert np.array_equal(bits(found), bits(first)), f"lanes {lanes} differ from a single sample"
    if dtype == "float64":
        for k in [NAMES.index(name) for name in EXACT]:
            assert np.array_equal(first[:, k], expected[:, k], equal_nan=True), NAMES[k]
            number = ~np.isnan(expected[:, k])
            assert np.array_equal(np.signbit(first[number, k]), np.signbit(expected[number, k])), NAMES[k]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("level", host_levels())
def test_random_programs_equal_the_interpreter(level, dtype):
    for seed in range(3):
        program = random_straight(seed)
        arrays = random_inputs(program, 21, dtype, seed)
        columns = {name: list(array.T.astype(np.float64)) for name, array in arrays.items()}
        expected = interpret(program, columns)
        single = run(compile_program(program, dtype=dtype, level=level, lanes=1), arrays)
        lanes = run(compile_program(program, dtype=dtype, level=level), arrays)
        for name, values in expected.items():
            reference = np.stack(np.broadcast_arrays(*values, np.zeros(21))[:-1], axis=1)
            np.testing.assert_allclose(lanes[name], reference, atol=3e-12 if dtype == "float64" else 1e-3)
            assert np.array_equal(bits(lanes[name]), bits(single[name]))
