"""Runs the phases of a GPU kernel on the CPU, with arrays as a caller would have them."""

from __future__ import annotations

import numpy as np
from tests.codegen.gpu.host_kernel import HostKernel

from dalembert.codegen import Rollout
from dalembert.codegen.gpu import ARCHITECTURES, Layout, emit_gpu
from dalembert.tracing.program import Program

SM90 = ARCHITECTURES["sm_90"]

LAYOUTS = {
    "plain": Layout(block=64),
    "planned slots in shared memory": Layout(block=64, values=24, shared=100 * 1024, barriers=3),
    "planned slots, most in local memory": Layout(block=64, values=16, shared=9 * 1024),
    "planned, loops together": Layout(block=64, values=40, shared=12 * 1024, barriers=1),
    "direct": Layout(block=96, shared=0),
    "no shared memory": Layout(block=32, shared=0),
}


def source_of(program: Program, bits: int, layout: Layout, rollout: Rollout | None = None):
    return emit_gpu(program, bits=bits, architecture=SM90, layout=layout, rollout=rollout)


def run_on_host(
    program: Program, arrays: dict[str, np.ndarray], *, layout: Layout, grid: int | None = None
) -> tuple[dict[str, np.ndarray], int]:
    """Outputs of all rows, and the first refused row. Rows behind the batch must stay as they are."""
    inputs = [arrays[spec.name] for spec in program.inputs]
    dtype, rows = inputs[0].dtype, len(inputs[0])
    outputs = [np.full((rows + 2, spec.size), 7.0, dtype) for spec in program.outputs]
    kernel = HostKernel(source_of(program, 8 * dtype.itemsize, layout))
    refused = kernel.run(
        [(array.ctypes.data, array.strides[0]) for array in (*inputs, *outputs)], rows, grid=grid
    )
    assert all(np.all(array[rows:] == 7.0) for array in outputs)
    return {spec.name: array[:rows] for spec, array in zip(program.outputs, outputs)}, refused


def roll_on_host(
    program: Program,
    rollout: Rollout,
    given: dict[str, np.ndarray],
    *,
    rows: int,
    steps: int,
    first: int,
    every: int,
    layout: Layout,
    grid: int | None = None,
) -> tuple[list[np.ndarray], list[np.ndarray], np.ndarray]:
    """Outputs (rows, kept steps, n), final values, refused steps."""
    inputs = [given[spec.name] for spec in program.inputs]
    dtype = inputs[0].dtype
    source = source_of(program, 8 * dtype.itemsize, layout, rollout)
    kept = max(0, (steps - first) // every + 1)
    outputs = [np.full((rows, kept, spec.size), 9.0, dtype) for spec in program.outputs]
    finals = [np.full_like(given[name], 9.0) for name, _ in rollout.carried]
    refused = np.full(rows, 5, np.int64)
    arrays = [*inputs, *outputs, *finals, refused]
    arguments = [number for array in arrays for number in (array.ctypes.data, array.strides[0])]
    grid = -(-rows // source.info.samples) if grid is None else grid
    scratch = np.full(grid * source.info.block * source.info.scratch_bytes // 8 + 1, np.nan)
    kernel = HostKernel(source)
    arguments += [rows, kernel.tables.ctypes.data, 0]
    arguments += [scratch.ctypes.data] if source.info.scratch_bytes else []
    arguments += [steps, first, every]
    arguments += [
        array.strides[1] if spec.name in rollout.streams else 0 for spec, array in zip(program.inputs, inputs)
    ]
    arguments += [array.strides[1] for array in outputs]
    kernel.launch(arguments, grid)
    return outputs, finals, refused
