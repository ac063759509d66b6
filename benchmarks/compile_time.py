"""How long a user waits: import, first compilation, and a new process that finds the disk cache.

Every figure comes from a new process. Cold: an empty cache folder. Warm: the same folder again. Medians of
repetitions.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable

from contest import pinocchio
from timing import machine, table

IMPORT = "import time; s = time.perf_counter(); import dalembert; print(time.perf_counter() - s)"

FIRST_CALL = """
import json, time
import numpy as np
import dalembert as da
{build}
q, v = model.neutral(), np.zeros(model.nv)
rows = np.repeat(q[None], 4096, axis=0), np.zeros((4096, model.nv)), np.zeros((4096, model.nv))
start = time.perf_counter()
da.{function}(model, {single})
scalar = time.perf_counter()
da.{function}(model, {batch})
print(json.dumps([scalar - start, time.perf_counter() - scalar]))
"""

BUNDLED = "model = da.models.{name}()"
SAMPLE = (
    "import pinocchio as pin; pin.seed(0); "
    "model = da.interop.from_pinocchio(pin.buildSampleModelHumanoidRandom()).model"
)

FUNCTIONS = {
    "forward_dynamics": ("q, v, v", "*rows"),
    "inverse_dynamics": ("q, v, v", "*rows"),
    "mass_matrix": ("q", "rows[0]"),
}


def main() -> int:
    """Print the table; return 1 where a bar is missed."""
    print(f"Waiting times on {machine()}, seconds\n")
    robots = {"arm6": BUNDLED.format(name="arm6"), "humanoid": BUNDLED.format(name="humanoid")}
    if pinocchio() is not None:
        robots["sample humanoid, nv 32"] = SAMPLE
    rows, missed = [], []
    for robot, build in robots.items():
        for function, (single, batch) in FUNCTIONS.items():
            code = FIRST_CALL.format(build=build, function=function, single=single, batch=batch)
            with tempfile.TemporaryDirectory() as cache:
                cold = json.loads(in_new_process(code, cache))
                warm = medians(json.loads(in_new_process(code, cache)) for _ in range(3))
            barred = function == "forward_dynamics" and "humanoid" in robot
            rows.append(
                [robot, function, *(f"{t:.3f}" for t in (*cold, *warm)), "3 cold, 0.1 warm" if barred else ""]
            )
            if barred and (max(cold) > 3.0 or max(warm) > 0.1):
                missed.append(f"{robot} {function}")
    headers = ["robot", "function", "cold scalar", "cold lanes", "warm scalar", "warm lanes", "bar"]
    print(table(headers, rows, names=2))

    with tempfile.TemporaryDirectory() as cache:
        (seconds,) = medians([float(in_new_process(IMPORT, cache))] for _ in range(7))
    print(f"\nimport dalembert: {seconds:.3f} s (bar 0.25 s)")
    if seconds > 0.25:
        missed.append("import")
    print("\nEvery bar is met." if not missed else "\nMissed: " + "; ".join(missed))
    return int(bool(missed))


def in_new_process(code: str, cache: str) -> str:
    """What the code prints last, run in a new interpreter with the given cache folder."""
    environment = os.environ | {"DALEMBERT_CACHE_DIR": cache}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, check=True, stdout=subprocess.PIPE, text=True
    )
    return done.stdout.strip().splitlines()[-1]


def medians(repetitions: Iterable[list[float]]) -> list[float]:
    """Medians, position by position."""
    return [statistics.median(times) for times in zip(*repetitions)]


if __name__ == "__main__":
    sys.exit(main())
