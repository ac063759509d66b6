"""Dynamics on a GPU: samples a second, errors, scaling, ceilings of the card, peers.

Kernel time is taken by CUDA events around launches on arrays that are on the GPU, row-major in and out;
results are compared with float64 on the CPU first. The robots are Pinocchio's samples (`benchmarks/robots`):
a humanoid with 32 degrees of freedom and a six-joint arm. "memory": bytes in and out over the bandwidth that
a copy reaches (for what mostly writes: a fill); "arithmetic": operations over those of fused multiply-adds.
Peers, where importable, step the 27-DoF humanoid of their packages without constraints, and so do we.

    python benchmarks/gpu.py [--quick] [--only humanoid32] [--json gpu.json] [--tune]

With --tune every layout of `gpu_layouts.choices` is timed for each case instead; `*` marks the rule's.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from gpu_ceilings import BITS, Clock, ceilings
from gpu_layouts import choices
from timing import table

import dalembert as da
from dalembert.call.cuda.device import Device, device
from dalembert.call.cuda.device_arrays import DeviceArray
from dalembert.call.cuda.kernel import GpuKernel
from dalembert.codegen import gpu
from dalembert.compiler.execution import CompiledFunction
from dalembert.compiler.gpu_calls import link
from dalembert.compiler.library import function, library_recipe
from dalembert.compiler.lowering import lower
from dalembert.model.storage import from_json
from dalembert.tracing.program import count_program

ROBOTS = Path(__file__).parent / "robots"
SAMPLES = 1 << 20
LARGEST = 1 << 22
CHECKED = 4096
SIZES = {"float64": 8, "float32": 4}
LOCAL, REGISTERS = 3, 4
ERRORS = {"float64": (1e-12, 1e-12), "float32": (1e-5, 1e-4)}
"""Bars of 99 % and of all samples."""
SECONDS, TIMES = 10.0, 10.0
"""Bars of compiling the humanoid's forward dynamics, and of steps beside a peer's."""

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


def states(model: Any) -> dict[str, np.ndarray]:
    """`CHECKED` moving states."""
    rng = np.random.default_rng(1)
    q = np.stack([model.random_state(rng)[0] for _ in range(CHECKED)])
    return {"q": q, **{name: rng.standard_normal((CHECKED, model.nv)) for name in ("v", "a", "tau")}}


def repeated(array: np.ndarray, rows: int) -> DeviceArray:
    """Rows on the GPU, repeated there until there are so many; a number stays one."""
    if not array.ndim:
        return DeviceArray.of(array)
    found = DeviceArray.empty((rows, array.shape[1]), array.dtype.name)
    width, done = found.row_bytes, min(len(array), rows)
    device(0).upload(found.address, array[:done])
    while done < rows:
        more = min(done, rows - done)
        device(0).copy_rows(
            (found.address + done * width, more * width), (found.address, more * width), more * width, 1, 0
        )
        done += more
    return found


class Case:
    """A function of a robot with its arrays on the GPU."""

    def __init__(self, name: str, what: str, dtype: str, rows: int) -> None:
        self.model = robot(name)
        self.f: CompiledFunction = function(self.model, what, dtype=dtype)
        self.dtype, self.rows = dtype, rows
        self.given = {n: x.astype(dtype) for n, x in states(self.model).items()}
        self.given["dt"] = np.array(0.001, dtype)
        self.kernel: GpuKernel = self.f._kernels.on_gpu(device(0))
        results = self.f._kernels.results()
        self.arrays = [repeated(self.given[item], rows) for item in self.f.inputs]
        self.results = [DeviceArray.empty((rows, item.size), dtype) for item in results]
        widths = [item.size * SIZES[dtype] for item in results]
        batched = [len(x.shape) > 1 for x in self.arrays]
        self.inputs = [(x.address, x.row_bytes if many else 0) for x, many in zip(self.arrays, batched)]
        self.outputs = [(x.address, width) for x, width in zip(self.results, widths)]
        self.bytes_in = sum(x.row_bytes for x, many in zip(self.arrays, batched) if many)
        self.bytes_out = sum(widths)

    def launch(self, rows: int | None = None) -> None:
        count = rows or self.rows
        with self.kernel.kept_scratch(0, self.rows) as scratch:
            self.kernel.launch(0, self.inputs, self.outputs, count, scratch=scratch)

    def errors(self) -> tuple[float, float]:
        """99 % and all of the first and of the last `CHECKED` samples: max|difference| / max|value| against
        float64 on the CPU, by sample."""
        self.launch()
        exact = function(self.model, self.f.name)
        n = min(self.rows, CHECKED)
        given = [
            self.given[item].astype(np.float64)[:n] if self.given[item].ndim else 0.001
            for item in self.f.inputs
        ]
        wanted = exact(*given)
        worst = np.zeros(n)
        ends = (0, self.rows - n)  # the same states, for `repeated` doubles
        for array, want in zip(self.results, wanted if isinstance(wanted, tuple) else (wanted,)):
            got = np.empty((n, array.shape[1]), self.dtype)
            flat = np.asarray(want).reshape(n, -1)
            scale = np.maximum(np.abs(flat).max(axis=1), 1e-300)
            for start in ends:
                device(0).download(got, array.address + start * array.row_bytes)
                worst = np.maximum(worst, np.abs(got - flat).max(axis=1) / scale)
        return float(np.quantile(worst, 0.99)), float(worst.max())


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


def tune(case: Case, home: Device, clock: Clock) -> list[dict[str, Any]]:
    """Samples a second of every layout, the best first."""
    program, bits = case.f._kernels.lower().program, BITS[case.dtype]
    architecture = gpu.from_capability(*home.capability)
    rule = gpu.default_layout(program, bits=bits, architecture=architecture)
    found = []
    for layout in dict.fromkeys([rule, *choices(architecture, bits)]):
        source = gpu.emit_gpu(program, bits=bits, architecture=architecture, layout=layout)
        try:
            code = link(gpu.ptx_of(source, architecture), home, case.f.name)
            case.kernel = GpuKernel(source.info, code, source.tables, home, case.f.name, {})
            rate = 1e3 * case.rows / clock.best(case.launch)
        except da.errors.DalembertError as error:
            print(f"  {layout}: {error}", file=sys.stderr)
            continue
        numbers = {"registers": case.kernel.attribute(REGISTERS), "local": case.kernel.attribute(LOCAL)}
        found.append({"rate": rate, "rule": layout == rule, **numbers, "layout": asdict(layout)})
    return sorted(found, key=lambda item: -item["rate"])


def scaling(case: Case, clock: Clock, quick: bool) -> dict[str, Any]:
    """Samples a second over the batch, 2^8 to 2^22; the knee; bytes of a sample: arrays, shared, local."""
    found = []
    for rows in (1 << power for power in range(8, 23, 2 if quick else 1)):
        if rows <= case.rows:
            inner = max(1, min(200, (1 << 16) // rows))
            launch = functools.partial(case.launch, rows)
            found.append((rows, 1e3 * rows / clock.best(launch, inner=inner)))
    return {
        "rates": found,
        "knee": knee(found),
        "bytes": case.bytes_in + case.bytes_out,
        "shared_bytes": case.kernel.info.shared_bytes // case.kernel.info.samples,
        "local_bytes": case.kernel.attribute(LOCAL),
    }


def knee(rates: list[tuple[int, float]]) -> int:
    """The smallest batch that reaches four fifths of the best rate."""
    best = max(rate for _, rate in rates)
    return min(rows for rows, rate in rates if rate >= 0.8 * best)


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
    # The driver has a cache of its own, which would hide what linking costs.
    os.environ["CUDA_CACHE_DISABLE"] = "1"
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer batches, no peers")
    parser.add_argument("--only", default="", help="cases whose text has this in it")
    parser.add_argument("--tune", action="store_true", help="time every layout of each case")
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
        if options.tune:
            figures["cases"][label] = tune(case, home, clock)
            print(f"\n{label}")
            for item in figures["cases"][label]:
                mark = "*" if item["rule"] else " "
                print(
                    f"{mark} {item['rate'] / 1e6:8.1f} M/s  {item['registers']:3d} registers "
                    f"{item['local']:5d} bytes local  {item['layout']}"
                )
            continue
        found = figures["cases"][label] = measure(case, clock, top)
        if bar is not None and found["rate"] < bar:
            missed.append(f"{label}: {found['rate'] / 1e6:.0f} of {bar / 1e6:.0f} M/s")
        if not all(x <= most for x, most in zip((found["error_99"], found["error_max"]), ERRORS[dtype])):
            missed.append(f"{label}: errors of {found['error_99']:.0e} and {found['error_max']:.0e}")
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
            largest = case if case.rows >= LARGEST else Case(name, what, dtype, LARGEST)
            figures["scaling"][label] = scaling(largest, clock, options.quick)
    if options.tune:
        if options.json:
            options.json.write_text(json.dumps(figures, indent=1))
        return 0
    headers = ["robot", "computation", "type", "M/s", "bar", "error 99 %", "all", "bytes"]
    print(table([*headers, "memory", "arithmetic", "registers", "local"], rows, names=3))
    print("\nSamples a second (M/s) over the batch; the knee has four fifths of the best; bytes of a sample")
    batches = sorted({rows for item in figures["scaling"].values() for rows, _ in item["rates"]})
    memory = ("knee", "bytes", "shared_bytes", "local_bytes")
    body = [
        [
            label,
            *(f"{dict(item['rates'])[n] / 1e6:.0f}" for n in batches),
            *(str(item[name]) for name in memory),
        ]
        for label, item in figures["scaling"].items()
    ]
    print(table(["", *map(str, batches), "knee", "arrays", "shared", "local"], body))
    figures["compile_seconds"] = compile_seconds("humanoid32", "forward_dynamics", "float32", home)
    said = ", ".join(f"{name} {seconds:.2f}" for name, seconds in figures["compile_seconds"].items())
    print(f"\nCompiling forward dynamics of the humanoid, seconds: {said}")
    if figures["compile_seconds"]["all"] > SECONDS:
        missed.append(f"compiled in {figures['compile_seconds']['all']:.0f} s")
    if not options.quick:
        from gpu_peers import compare

        figures["peers"] = compare(clock)
        slow = [peer for peer, item in figures["peers"].items() if item["ratio"] < TIMES]
        missed += [f"{figures['peers'][peer]['ratio']:.1f} times {peer}" for peer in slow]
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1))
    print("\nEvery bar is met." if not missed else "\nMissed: " + "; ".join(missed))
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
