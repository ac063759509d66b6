"""Many steps in one call against a loop of `da.step`: microseconds a sample and step.

Semi-implicit steps with forces that change from step to step; the loop keeps the motion in arrays, as the
rollout does. One thread is measured by the processor's time, two by the clock, the best of several runs; on a
machine with other work the latter says little.

    python benchmarks/rollouts.py [--rounds 10]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
from timing import cores, machine, table

import dalembert as da
from dalembert.compiler.library import library_recipe
from dalembert.compiler.rollout_execution import CompiledRollout, compile_rollout

DT = 1e-3
CASES = (("arm6", 1, 1000), ("humanoid", 1, 1000), ("arm6", 1024, 100), ("humanoid", 1024, 100))


def best(call: Callable[[], object], rounds: int, clock: Callable[[], float]) -> float:
    call()
    times = []
    for _ in range(rounds):
        start = clock()
        call()
        times.append(clock() - start)
    return min(times)


def stepping(model: da.Model) -> CompiledRollout:
    recipe = library_recipe(model, "step", options=(("integrator", "semi_implicit"),))
    return compile_rollout(recipe, carried={"q": 0, "v": 1}, streams=("tau",))


def row(name: str, samples: int, steps: int, rounds: int) -> list[str]:
    model = getattr(da.models, name)()
    batch = () if samples == 1 else (samples,)
    rng = np.random.default_rng(0)
    q = np.stack([model.random_state(k)[0] for k in range(samples)]).reshape(*batch, model.nq)
    v, tau = 0.1 * rng.normal(size=(*batch, model.nv)), 0.1 * rng.normal(size=(*batch, steps, model.nv))
    by_step = np.ascontiguousarray(np.moveaxis(tau, -2, 0))
    rollout = stepping(model)

    def loop() -> None:
        Q, V = np.empty((*batch, steps, model.nq)), np.empty((*batch, steps, model.nv))
        now = q, v
        for step in range(steps):
            now = da.step(model, *now, by_step[step], DT)
            Q[..., step, :], V[..., step, :] = now

    per = 1e6 / (samples * steps)
    da.set_num_threads(1)
    one = [
        best(call, rounds, time.process_time) * per
        for call in (
            loop,
            lambda: rollout(q, v, tau, DT, steps=steps),
            lambda: rollout(q, v, tau, DT, steps=steps, every=10),
        )
    ]
    two = "–"
    if samples > 1 and cores() > 1:
        alone = best(lambda: rollout(q, v, tau, DT, steps=steps), rounds, time.perf_counter)
        da.set_num_threads(2)
        two = f"{alone / best(lambda: rollout(q, v, tau, DT, steps=steps), rounds, time.perf_counter):.2f} x"
    return [f"{name}, nv {model.nv}", str(samples), str(steps), *(f"{x:.3f}" for x in one), two]


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=10)
    rounds = parser.parse_args().rounds
    print(f"Rollouts on {machine()}, microseconds a sample and step\n")
    headers = ["robot", "samples", "steps", "loop of da.step", "rollout", "every 10th kept", "two threads"]
    print(table(headers, [row(*case, rounds) for case in CASES]))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
