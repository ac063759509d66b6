"""Loops over rows on a GPU: balls, all pairs of which are a set, with forces between those that touch.

A step finds the pairs that are near, sums their forces by body, and iterates over the bodies until hardly
anything moves. Memory and the assembler's figures need no GPU; where there is one, launches are timed for
several layouts and compared with float64 on the CPU.

    python benchmarks/gpu_rows.py [--samples 131072] [--balls 8 27 64]
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any, Literal

import numpy as np
from gpu_ceilings import Clock
from timing import table

import dalembert as da
from dalembert import scalar
from dalembert.call.cuda.device import Device, device
from dalembert.call.cuda.device_arrays import DeviceArray
from dalembert.call.cuda.kernel import GpuKernel
from dalembert.codegen import gpu
from dalembert.codegen.gpu import Layout
from dalembert.compiler.execution import CompiledFunction
from dalembert.compiler.gpu_calls import link
from dalembert.errors import DalembertError

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests.codegen.gpu.assembler import ptxas

Dtype = Literal["float64", "float32"]

BITS: dict[Dtype, int] = {"float64": 64, "float32": 32}
CHECKED = 2048
"""Samples that are compared with the CPU."""

ITERATIONS, SETTLED = 30, 1e-3
SPACING, NOISE = 1.05, 0.1
"""[diameters] Between neighbors of a cubic grid, and its standard deviation: of 64 balls 45 pairs touch."""

LAYOUTS = [Layout(block=block) for block in (32, 64, 128, 256)]


def relaxed_forces(count: int) -> CompiledFunction:
    """Return the function of the places of `count` balls."""
    first, second = np.triu_indices(count, 1)

    def forces(model: da.Model, x: Any) -> Any:
        bodies, pairs = scalar.rows(count, like=x), scalar.rows(len(first), like=x)
        at = bodies.stack([list(x[3 * k : 3 * k + 3]) for k in range(count)])
        one, two = pairs.links(bodies, first), pairs.links(bodies, second)

        def gap(i: Any) -> Any:
            d = [b - a for a, b in zip(at[one[i]], at[two[i]])]
            return d, scalar.sqrt(d[0] * d[0] + d[1] * d[1] + d[2] * d[2])

        def push(i: Any) -> Any:
            d, distance = gap(i)
            size = scalar.select(distance < 1.0, (1.0 - distance) / distance, 0.0)
            yield one[i], [-size * a for a in d]
            yield two[i], [size * a for a in d]

        sums = pairs.where(lambda i: gap(i)[1] < 1.0).scatter(push, bodies, [0.0] * 3)

        def step(carry: Any) -> Any:
            old, _ = carry
            new = bodies.each(lambda i: [0.5 * a + b for a, b in zip(old[i], sums[i])])
            change = bodies.fold(
                lambda most, i: scalar.maximum(most, scalar.absolute(new[i][0] - old[i][0])), 0.0
            )
            return [new, change]

        found, _ = scalar.loop(ITERATIONS, step, [sums, 1.0], until=lambda carry: carry[1] < SETTLED)
        return [a for k in range(count) for a in found.at(k)]

    return da.compile(forces, da.models.pendulum(), inputs={"x": (3 * count,)})


def places(count: int, samples: int) -> np.ndarray:
    side = int(np.ceil(count ** (1 / 3)))
    grid = SPACING * np.stack(np.unravel_index(np.arange(count), (side,) * 3), axis=1)
    noise = NOISE * np.random.default_rng(1).standard_normal((samples, count, 3))
    return (grid + noise).reshape(samples, -1)


def assembled(f: CompiledFunction, dtype: Dtype) -> dict[str, Any]:
    """Return what a kernel needs by the rule for layouts, as NVIDIA's assembler says."""
    chosen = gpu.ARCHITECTURES["sm_90"]
    source = gpu.emit_gpu(f._kernels.lower().program, bits=BITS[dtype], architecture=chosen)
    ptx = gpu.ptx_of(source)
    start = time.perf_counter()
    made = ptxas(ptx, chosen)
    return {
        "lines of PTX": len(ptx.splitlines()),
        "ptxas, s": f"{time.perf_counter() - start:.2f}",
        "registers": made.registers,
        "spilled": made.spill_stores + made.spill_loads,
        "scratch a sample": source.info.scratch_bytes,
    }


def timed(f: CompiledFunction, dtype: Dtype, x: np.ndarray, layout: Layout, home: Device) -> dict[str, Any]:
    """Return million samples a second and the largest error of a layout."""
    chosen = gpu.from_capability(*home.capability)
    program = f._kernels.lower().program
    source = gpu.emit_gpu(program, bits=BITS[dtype], architecture=chosen, layout=layout)
    code = link(gpu.ptx_of(source, chosen), home, "balls")
    kernel = GpuKernel(source.info, code, source.tables, home, "balls", {})
    given, result = DeviceArray.of(x.astype(dtype)), DeviceArray.empty(x.shape, dtype)

    def launch() -> None:
        with kernel.kept_scratch(0, len(x)) as scratch:
            sides = [[(array.address, array.row_bytes)] for array in (given, result)]
            kernel.launch(0, *sides, len(x), scratch=scratch)

    ms = Clock(home).best(launch)
    wanted = f(x[:CHECKED].astype(dtype).astype(np.float64))
    error = np.abs(result.numpy()[:CHECKED] - wanted).max(axis=1) / np.abs(wanted).max()
    return {
        "block": layout.block,
        "M/s": f"{len(x) / ms / 1e3:.2f}",
        "error, 99 %": f"{np.quantile(error, 0.99):.1e}",
        "largest": f"{error.max():.1e}",
        "scratch, MB": kernel.scratch_bytes(len(x)) >> 20,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--samples", type=int, default=1 << 17)
    parser.add_argument("--balls", type=int, nargs="+", default=[8, 27, 64])
    given = parser.parse_args()
    try:
        home = device(0)
    except DalembertError as error:
        print(f"No launches are timed: {error}\n")
        home = None
    needs, speeds = [], []
    for count in given.balls:
        f, x = relaxed_forces(count), places(count, given.samples)
        for dtype in BITS:
            about = {"balls": count, "pairs": count * (count - 1) // 2, "type": dtype}
            needs.append({**about, **assembled(f, dtype)})
            for layout in LAYOUTS if home is not None else ():
                speeds.append({**about, **timed(f, dtype, x, layout, home)})
    for rows in (needs, speeds):
        if rows:
            print(table(list(rows[0]), [[str(x) for x in row.values()] for row in rows]), end="\n\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
