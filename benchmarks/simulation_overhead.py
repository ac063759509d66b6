"""What a call of `Simulation.step` costs beside the steps that it takes.

The same steps are taken in one long call and in many short ones, in turns; the difference is what the calls
cost: reading the arguments, calling the kernel, copying the state. `da.rollout` of as many steps is beside
it. One thread. Columns: µs of the steps of a call, of `Simulation.step` beside them, and of a whole
`da.rollout`, each the least of several rounds.

    python benchmarks/simulation_overhead.py [--samples 1 256 4096] [--steps 10]
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import numpy as np
from timing import machine, table

import dalembert as da

BAR = 15.0
"""[µs] The most that a call of one sample may cost beside its steps."""

ROUNDS = 7
CALLS = 100


def a1() -> da.Model:
    """Return Unitree's A1 with its own shapes over a plane."""
    package = metadata.files("example-robot-data") or ()
    [file] = [f for f in package if str(f).endswith("a1_description/urdf/a1.urdf")]
    return da.load(Path(str(file.locate())), root="floating").with_ground()


CASES: dict[str, tuple[Callable[[], da.Model], dict[str, object]]] = {
    "arm, no contact": (da.models.arm6, {}),
    "humanoid, no contact": (da.models.humanoid, {}),
    "humanoid, rigid": (lambda: da.models.humanoid().with_ground(), {"contact": "rigid"}),
    "A1, rigid": (a1, {"contact": "rigid"}),
    "A1, servos, rigid": (a1, {"contact": "rigid", "controls": da.control.Servo(kp=50.0, kd=1.0)}),
}


def measure(model: da.Model, options: dict[str, object], samples: int, steps: int) -> tuple[float, ...]:
    """Return µs of the steps of a call, of `step` beside them, and of a rollout."""
    q = model.neutral()
    if model.nq > model.nv:
        q[2] = 0.4
    q = q if samples == 1 else np.tile(q, (samples, 1))
    simulation = da.Simulation(model, q, **options)
    simulation.step(steps=200)
    state, calls = simulation.state(), max(2, CALLS // samples)
    served = "controls" in options
    u = simulation.q.copy() if served else np.zeros_like(simulation.v)

    def pieces() -> None:
        for _ in range(calls):
            simulation.step(u, steps=steps)

    def whole() -> None:
        simulation.step(u, steps=steps * calls)

    def rollout() -> None:
        held = u if samples == 1 else u[:, None]
        given = {**options, "controls": da.control.Servo(kp=50.0, kd=1.0, q_ref=held) if served else held}
        q, v = state["q"], state["v"]
        da.rollout(model, q, v, steps=steps, every=steps, **given)

    best = [np.inf, np.inf, np.inf]
    rollout()
    for _ in range(ROUNDS):
        for k, work in enumerate((whole, pieces, rollout)):
            simulation.set_state(state)
            begun = time.process_time()
            work()
            best[k] = min(best[k], (time.process_time() - begun) / (calls if k < 2 else 1))
    return best[0] * 1e6, (best[1] - best[0]) * 1e6, best[2] * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--samples", type=int, nargs="+", default=[1, 256])
    parser.add_argument("--steps", type=int, default=10)
    given = parser.parse_args()
    da.set_num_threads(1)
    warnings.simplefilter("ignore")
    print(f"{machine()}; calls of {given.steps} steps, µs; the bar for one sample is {BAR:.0f} µs\n")
    rows = [["model", "samples", "steps alone", "Simulation.step beside them", "da.rollout"]]
    for name, (make, options) in CASES.items():
        model = make()
        for samples in given.samples:
            steps, beside, whole = measure(model, options, samples, given.steps)
            rows.append([name, str(samples), f"{steps:.1f}", f"{beside:.1f}", f"{whole:.0f}"])
    print(table(rows[0], rows[1:]))


if __name__ == "__main__":
    main()
