"""Loops over rows on a real GPU, where there is one. Run: `pytest -m gpu`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import pytest
from tests.codegen.gpu.launching import LAYOUTS
from tests.codegen.gpu.test_rollout_phases import _on_cpu
from tests.codegen.test_rollout import CASES, _inputs
from tests.cuda.test_on_device import _no_gpu, to_host, to_torch
from tests.tracing.test_row_loops import FUNCTIONS, N

import dalembert as da
from dalembert.call.cuda.device import Device, device
from dalembert.call.cuda.kernel import GpuKernel
from dalembert.codegen import Rollout
from dalembert.codegen.gpu import Layout, emit_gpu, from_capability, ptx_of
from dalembert.compiler.gpu_calls import link
from dalembert.tracing.program import Program

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(bool(_no_gpu()), reason="no GPU here")]

SAMPLES = 150_000
"""More than the threads of an H200 that have scratch memory at a time, 67,584: they take turns."""

STEPS, FIRST, EVERY = 7, 2, 3


@pytest.mark.parametrize("function", FUNCTIONS)
def test_values_are_those_of_the_cpu(function: Callable[..., Any]) -> None:
    """In float32 few samples go another way where a condition is decided by rounding."""
    model, given = da.models.pendulum(), np.random.default_rng(7).normal(size=(SAMPLES, N))
    wanted = da.compile(lambda model, x: function(x), model, inputs={"x": (N,)})(given)
    cases: list[tuple[Literal["float64", "float32"], float, float]] = [
        ("float64", 1e-12, 1.0),
        ("float32", 1e-3, 0.99),
    ]
    for dtype, tolerance, part in cases:
        f = da.compile(lambda model, x: function(x), model, dtype=dtype, inputs={"x": (N,)})
        found = to_host(f(to_torch(given.astype(dtype))))
        assert found.dtype == dtype
        near = np.isclose(found, wanted, rtol=tolerance, atol=tolerance).all(axis=1)
        assert near.mean() >= part, dtype


@pytest.mark.parametrize("layout", LAYOUTS)
def test_steps_in_one_launch_are_those_of_the_cpu(layout: str) -> None:
    """In every layout: also where the warps of a block go through iterations together."""
    program, rollout = CASES["rows"]
    rows = 3000
    given = _inputs(program, rollout, rows, STEPS, "float64")
    outputs, finals, _ = _on_cpu(program, rollout, given, rows, STEPS, FIRST, EVERY)
    kernel = _kernel(program, rollout, LAYOUTS[layout], device(0))
    inputs = [to_torch(given[spec.name]) for spec in program.inputs]
    found = [to_torch(np.zeros_like(array)) for array in (*outputs, *finals, np.zeros(rows, np.int64))]
    steps = [8 * N if spec.name in rollout.streams else 0 for spec in program.inputs]
    steps += [x.stride(1) * 8 for x in found[: len(outputs)]]
    with kernel.kept_scratch(0, rows) as scratch:
        sides = [[(x.data_ptr(), x.stride(0) * 8) for x in side] for side in (inputs, found)]
        kernel.launch(0, *sides, rows, scratch=scratch, more=(STEPS, FIRST, EVERY, *steps))
    device(0).synchronize()
    for ours, theirs in zip(found, [*outputs, *finals]):
        np.testing.assert_allclose(to_host(ours), theirs, rtol=1e-11, atol=1e-12)


def _kernel(program: Program, rollout: Rollout, layout: Layout, home: Device) -> GpuKernel:
    chosen = from_capability(*home.capability)
    source = emit_gpu(program, bits=64, architecture=chosen, rollout=rollout, layout=layout)
    code = link(ptx_of(source, chosen), home, "rows")
    return GpuKernel(source.info, code, source.tables, home, "rows", {})
