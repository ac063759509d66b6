"""Loops over rows in machine code: the rows that a block of samples names, the bits of each sample alone."""

from __future__ import annotations

import numpy as np
import pytest
from tests.codegen.sample_programs import bits, run
from tests.tracing.test_row_loops import FUNCTIONS, N

from dalembert.codegen import compile_program, host_levels
from dalembert.tracing.program import ArrayArgument
from dalembert.tracing.trace import trace

ROWS = 37


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_rows_equal_plain_python_and_a_sample_alone_its_row(function, dtype):
    given = np.random.default_rng(7).normal(size=(ROWS, N)).astype(dtype)
    expected = np.array([[float(y) for y in function(x)] for x in given.astype(float).tolist()])
    program = trace(function, [ArrayArgument("x", (N,))]).program()
    for level in host_levels():
        lanes = run(compile_program(program, dtype=dtype, level=level), {"x": given})["output"]
        tolerance = 1e-12 if dtype == "float64" else 2e-4
        np.testing.assert_allclose(lanes, expected, rtol=tolerance, atol=tolerance)
        for width in (1, 2, 4):
            single = run(compile_program(program, dtype=dtype, level=level, lanes=width), {"x": given})
            assert np.array_equal(bits(single["output"]), bits(lanes))
