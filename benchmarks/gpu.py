"""Dynamics on a GPU: samples a second, errors, scaling, ceilings of the card, peers.

Kernel time is taken by CUDA events around launches on arrays that are on the GPU, row-major in and out;
results are compared with float64 on the CPU first. The robots are Pinocchio's samples (`benchmarks/robots`):
a humanoid with 32 degrees of freedom and a six-joint arm. "memory": bytes in and out over the bandwidth that
a copy reaches (for what mostly writes: a fill); "arithmetic": operations over those of fused multiply-adds.
Peers, where importable, step the 27-DoF humanoid of their packages without constraints, and so do we.

    python benchmarks/gpu.py [--quick] [--only humanoid32] [--json gpu.json]
"""

from __future__ import annotations

import argparse
import ctypes
import functools
import json
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import dalembert as da
from dalembert.cli.timing import table
from dalembert.codegen import gpu
from dalembert.cuda.device import Device, device
from dalembert.cuda.device_array import DeviceArray
from dalembert.cuda.kernel import GpuKernel
from dalembert.cuda.modules import link
from dalembert.execution import CompiledFunction
from dalembert.library import function, library_recipe
from dalembert.lowering import lower
from dalembert.model.storage import from_json
from dalembert.tracing.count import count_program

ROBOTS = Path(__file__).parent / "robots"
SAMPLES = 1 << 20
CHECKED = 4096
SIZES = {"float64": 8, "float32": 4}
BITS = {"float64": 64, "float32": 32}
LOCAL, REGISTERS = 3, 4

CASES = [
    ("humanoid32", "forward_dynamics", "float32", 300e6),
    ("humanoid32", "forward_dynamics", "float64", 150e6),
    ("humanoid32", "inverse_dynamics", "float32", 500e6),
    ("humanoid32", "inverse_dynamics", "float64", None),
    ("humanoid32", "mass_matrix", "float32", 200e6),
    ("humanoid32", "mass_matrix", "float64", None),
    ("humanoid32", "forward_dynamics_derivatives", "float32", 20e6),
    ("humanoid32", "step", "float32", None),
    ("arm6", "forward_dynamics", "float32", 12e9),
    ("arm6", "forward_dynamics", "float64", None),
    ("arm6", "inverse_dynamics", "float32", None),
]


def robot(name: str) -> Any:
    return from_json((ROBOTS / f"{name}.json").read_text())


def states(model: Any, rows: int) -> dict[str, np.ndarray]:
    """Moving states of `CHECKED` kinds, repeated."""
    rng = np.random.default_rng(1)
    q = np.stack([model.random_state(rng)[0] for _ in range(min(rows, CHECKED))])
    few = {"q": q, **{name: rng.standard_normal((len(q), model.nv)) for name in ("v", "a", "tau")}}
    return {name: np.tile(x, (-(-rows // len(q)), 1))[:rows] for name, x in few.items()}


class Clock:
    """Milliseconds between two events on the default stream."""

    def __init__(self, home: Device) -> None:
        self.home = home
        self.events = []
        with home.current():
            for _ in range(2):
                found = ctypes.c_void_p()
                home.driver("cuEventCreate", ctypes.byref(found), 0)
                self.events.append(found.value)

    def best(self, call: Callable[[], None], rounds: int = 10, inner: int = 1) -> float:
        call()
        self.home.synchronize()
        times = []
        for _ in range(rounds):
            with self.home.current():
                self.home.driver("cuEventRecord", self.events[0], 0)
                for _ in range(inner):
                    call()
                self.home.driver("cuEventRecord", self.events[1], 0)
                self.home.driver("cuEventSynchronize", self.events[1])
                elapsed = ctypes.c_float()
                self.home.driver("cuEventElapsedTime", ctypes.byref(elapsed), *self.events)
            times.append(elapsed.value / inner)
        return min(times)


class Case:
    """A function of a robot with its arrays on the GPU."""

    def __init__(self, name: str, what: str, dtype: str, rows: int) -> None:
        self.model = robot(name)
        self.f: CompiledFunction = function(self.model, what, dtype=dtype)
        self.dtype, self.rows = dtype, rows
        self.given = {n: x.astype(dtype) for n, x in states(self.model, rows).items()}
        self.given["dt"] = np.array(0.001, dtype)
        self.kernel: GpuKernel = self.f._kernels.on_gpu(device(0))
        results = self.f._kernels.results()
        self.arrays = [DeviceArray.of(self.given[item]) for item in self.f.inputs]
        self.results = [DeviceArray.empty((rows, item.size), dtype) for item in results]
        widths = [item.size * SIZES[dtype] for item in results]
        batched = [len(x.shape) > 1 for x in self.arrays]
        self.inputs = [(x.address, x.row_bytes if many else 0) for x, many in zip(self.arrays, batched)]
        self.outputs = [(x.address, width) for x, width in zip(self.results, widths)]
        self.bytes_in = sum(x.row_bytes for x, many in zip(self.arrays, batched) if many)
        self.bytes_out = sum(widths)

    def launch(self, rows: int | None = None) -> None:
        count = rows or self.rows
        scratch = self.kernel.kept_scratch(0, self.rows)
        self.kernel.launch(0, self.inputs, self.outputs, count, scratch=scratch)

    def errors(self) -> tuple[float, float]:
        """99 % and all samples: max|difference| / max|value| against float64 on the CPU, by sample."""
        self.launch()
        exact = function(self.model, self.f.name)
        n = min(self.rows, CHECKED)
        given = [
            self.given[item].astype(np.float64)[:n] if self.given[item].ndim else 0.001
            for item in self.f.inputs
        ]
        wanted = exact(*given)
        worst = np.zeros(n)
        for array, want in zip(self.results, wanted if isinstance(wanted, tuple) else (wanted,)):
            got = np.empty((n, array.shape[1]), self.dtype)
            device(0).download(got, array.address)
            flat = np.asarray(want).reshape(n, -1)
            scale = np.maximum(np.abs(flat).max(axis=1), 1e-300)
            worst = np.maximum(worst, np.abs(got - flat).max(axis=1) / scale)
        return float(np.quantile(worst, 0.99)), float(worst.max())


def ceilings(home: Device, clock: Clock) -> dict[str, float]:
    """Bytes a second of a copy (read and written) and of a fill, and operations a second of FMAs."""
    size = 1 << 30
    first, second = home.allocate(size), home.allocate(size)
    copy = clock.best(lambda: home.copy_rows((second, size), (first, size), size, 1, 0))

    def fill() -> None:
        with home.current():
            home.driver("cuMemsetD8Async", first, 0, size, 0)

    found = {"copy": 2e3 * size / copy, "fill": 1e3 * size / clock.best(fill)}
    home.release(first)
    home.release(second)
    for dtype, bits in BITS.items():
        found[f"fma {dtype}"] = fma_rate(home, clock, bits)
    return found


def fma_rate(home: Device, clock: Clock, bits: int) -> float:
    """Operations a second of a kernel that does nothing but fused multiply-adds, eight at a time."""
    kind, many, rounds, block = f"f{bits}", 8, 256, 256
    letter = "f" if bits == 32 else "d"
    names = [f"%{letter}{k}" for k in range(many + 2)]
    body = "\n".join(f"fma.rn.{kind} {x}, {x}, {names[-1]}, {names[-2]};" for x in names[:many] * 8)
    # Values that the assembler does not know, each another, so that nothing is computed beforehand.
    pairs = reversed(list(pairwise(names)))
    loads = [f"ld.global.{kind} {x}, [%t];" for x in names]
    start = "\n".join(loads + [f"add.rn.{kind} {x}, {x}, {y};" for x, y in pairs])
    sums = "\n".join(f"add.rn.{kind} {names[0]}, {names[0]}, {x};" for x in names[1:many])
    text = f"""
.version 8.0
.target sm_80
.address_size 64
.visible .entry dalembert_kernel(.param .u64 target)
{{
.reg .{kind} %{letter}<{many + 2}>;
.reg .u32 %r<2>;
.reg .u64 %t;
.reg .pred %p<2>;
ld.param.u64 %t, [target];
{start}
mov.u32 %r0, 0;
again:
{body}
add.u32 %r0, %r0, 1;
setp.lt.u32 %p0, %r0, {rounds};
@%p0 bra again;
{sums}
setp.eq.{kind} %p1, {names[0]}, {names[-1]};
@%p1 bra done;
st.global.{kind} [%t], {names[0]};
done:
ret;
}}
"""
    code = link(text, home, "fused multiply-adds")
    driver, grid = home.driver, home.processors * 32
    with home.current():
        module = driver.handle("cuModuleLoadData", code)
        kernel = driver.handle("cuModuleGetFunction", module, b"dalembert_kernel")
    target = ctypes.c_int64(home.unread())
    place = (ctypes.c_void_p * 1)(ctypes.addressof(target))

    def launch() -> None:
        with home.current():
            driver("cuLaunchKernel", kernel, grid, 1, 1, block, 1, 1, 0, 0, place, None)

    return 2e3 * grid * block * rounds * many * 8 / clock.best(launch)


def measure(case: Case, clock: Clock, top: dict[str, float]) -> dict[str, Any]:
    near, worst = case.errors()
    ms = clock.best(case.launch)
    rate = 1e3 * case.rows / ms
    writes = case.bytes_out > 4 * case.bytes_in
    operations = count_program(case.f._kernels.lower().program).total
    return {
        "rate": rate,
        "ms": ms,
        "samples": case.rows,
        "error_99": near,
        "error_max": worst,
        "bytes": case.bytes_in + case.bytes_out,
        "operations": operations,
        "memory_share": rate * (case.bytes_in + case.bytes_out) / top["fill" if writes else "copy"],
        "arithmetic_share": rate * operations / top[f"fma {case.dtype}"],
        "registers": case.kernel.attribute(REGISTERS),
        "local_bytes": case.kernel.attribute(LOCAL),
        "shared_bytes": case.kernel.info.shared_bytes,
    }


def scaling(case: Case, clock: Clock, quick: bool) -> list[tuple[int, float]]:
    """Samples a second over the batch."""
    powers = range(8, 23, 4 if quick else 1)
    found = []
    for rows in (1 << power for power in powers):
        if rows <= case.rows:
            inner = max(1, min(200, (1 << 16) // rows))
            launch = functools.partial(case.launch, rows)
            found.append((rows, 1e3 * rows / clock.best(launch, inner=inner)))
    return found


def compile_seconds(name: str, what: str, dtype: str, home: Device) -> dict[str, float]:
    """Trace, emission with PTX, and the driver's linking, without any cache."""
    marks = [time.perf_counter()]
    program = lower(library_recipe(robot(name), what), dtype).program
    marks.append(time.perf_counter())
    architecture = gpu.from_capability(*home.capability)
    source = gpu.emit_gpu(program, bits=BITS[dtype], architecture=architecture)
    text = gpu.ptx_of(source, architecture)
    marks.append(time.perf_counter())
    link(text, home, what)
    marks.append(time.perf_counter())
    names = ("trace", "emit and PTX", "driver")
    return dict(zip(names, np.diff(marks).tolist())) | {"all": marks[-1] - marks[0]}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer batches, no peers")
    parser.add_argument("--only", default="", help="cases whose text has this in it")
    parser.add_argument("--json", type=Path, help="write all figures here")
    options = parser.parse_args()
    try:
        home = device(0)
    except da.errors.DeviceError as error:
        print(error, file=sys.stderr)
        return 1
    clock = Clock(home)
    top = ceilings(home, clock)
    print(f"{home!r}, driver {home.driver.version}")
    print(
        f"copy {top['copy'] / 1e12:.2f} TB/s, fill {top['fill'] / 1e12:.2f} TB/s, fused multiply-adds "
        f"{top['fma float32'] / 1e12:.1f} and {top['fma float64'] / 1e12:.1f} Tflop/s (float32, float64)\n"
    )
    figures: dict[str, Any] = {"device": repr(home), "ceilings": top, "cases": {}, "scaling": {}}
    rows, missed = [], []
    for name, what, dtype, bar in CASES:
        label = f"{name} {what} {dtype}"
        if options.only not in label:
            continue
        samples = SAMPLES >> 3 if "derivatives" in what else SAMPLES << 2 if name == "arm6" else SAMPLES
        case = Case(name, what, dtype, samples)
        found = figures["cases"][label] = measure(case, clock, top)
        if bar is not None and found["rate"] < bar:
            missed.append(f"{label}: {found['rate'] / 1e6:.0f} of {bar / 1e6:.0f} M/s")
        rows.append(
            [
                name,
                what,
                dtype,
                f"{found['rate'] / 1e6:.1f}",
                "" if bar is None else f"{bar / 1e6:.0f}",
                f"{found['error_99']:.0e}",
                f"{found['error_max']:.0e}",
                f"{found['bytes']}",
                f"{100 * found['memory_share']:.0f} %",
                f"{100 * found['arithmetic_share']:.0f} %",
                f"{found['registers']}",
                f"{found['local_bytes']}",
            ]
        )
        print(f"  {label}: {found['rate'] / 1e6:.1f} M/s", file=sys.stderr)
        if what == "forward_dynamics":
            figures["scaling"][label] = scaling(case, clock, options.quick)
    headers = ["robot", "computation", "type", "M/s", "bar", "error 99 %", "all", "bytes"]
    print(table([*headers, "memory", "arithmetic", "registers", "local"], rows, names=3))
    print("\nSamples a second (M/s) over the batch")
    batches = sorted({rows for series in figures["scaling"].values() for rows, _ in series})
    body = [
        [label, *(f"{dict(series).get(n, 0.0) / 1e6:.0f}" for n in batches)]
        for label, series in figures["scaling"].items()
    ]
    print(table(["", *map(str, batches)], body))
    figures["compile_seconds"] = compile_seconds("humanoid32", "forward_dynamics", "float32", home)
    said = ", ".join(f"{name} {seconds:.2f}" for name, seconds in figures["compile_seconds"].items())
    print(f"\nCompiling forward dynamics of the humanoid, seconds: {said}")
    if not options.quick:
        from gpu_peers import compare

        figures["peers"] = compare(clock)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1))
    print("\nEvery bar is met." if not missed else "\nMissed: " + "; ".join(missed))
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
