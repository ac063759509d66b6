"""What is computed beside an output does not change its bits, where code falls into parts."""

import numpy as np
import pytest
from tests.codegen.sample_programs import bits, run

from dalembert import scalar
from dalembert.codegen import compile_program
from dalembert.tracing.program import ArrayArgument
from dalembert.tracing.trace import trace

SAMPLES = np.random.default_rng(8).standard_normal((16, 4))


def random_function(seed):
    """Sums of products before a loop, in it and after it; the values that went into them are at hand."""

    def function(x):
        rng = np.random.default_rng(seed)

        def grown(values, count):
            """Values, and as many more: products, their negatives, sums and differences of any of them."""
            values = list(values)
            for _ in range(count):
                a, b = (values[k] for k in rng.integers(0, len(values), 2))
                kind = rng.integers(0, 8)
                if kind < 3:
                    values.append(a * b)
                elif kind == 3:
                    values.append(-a)
                else:
                    values.append(a + b if kind < 6 else a - b)
            return [scalar.minimum(scalar.maximum(value, -3.0), 3.0) for value in values[-3:]], values

        start, before = grown(x, 25)
        kept = before[4::7]

        def step(carry):
            return grown([*carry, *kept], 12)[0]

        middle = scalar.loop(3, step, start)
        end, after = grown([*middle, *before[4::3]], 25)
        return end, [*before, *after]

    return function


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("seed", range(11))
def test_bits_of_an_output_do_not_depend_on_those_after_it(seed, dtype):
    function = random_function(seed)

    def end_of(outputs):
        program = trace(outputs, [ArrayArgument("x", (4,))]).program()
        return run(compile_program(program, dtype=dtype), {"x": SAMPLES.astype(dtype)})["output0"]

    alone, beside = end_of(lambda x: function(x)[:1]), end_of(function)
    assert np.isfinite(alone).all()
    assert np.ptp(alone) > 0.0
    np.testing.assert_array_equal(bits(beside), bits(alone))
