"""Rollouts of the humanoid of dm_control's suite on the floor, beside MuJoCo: ms a simulated second.

Both engines have the geoms and pairs of one file (the floor against every geom), one thread, one process, and
each the largest step of at most 5 ms at which the humanoid, held upright by the same springs and dampers in
its hinges, overlaps the floor by less than 5 mm for 10 s. MuJoCo's Newton solver has its defaults; its cost
with iterations=1, ls_iterations=4 is printed beside, and then both engines with self-collision. Lying:
dropped limp in random poses, each engine measured from its own states after 3 s. The processor's time counts,
the least of several runs; that of two threads is the clock's, and says little on a machine with other work.

    python benchmarks/simulation.py [--rounds 3] [--samples 1024]
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from timing import cores, machine, table

import dalembert as da
from dalembert.simulation import SimulationWarning

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests.engines import mujoco_humanoid as humanoid

Array = np.ndarray[Any, np.dtype[np.float64]]

TIME_STEPS = (0.005, 0.004, 0.003, 0.002, 0.001)
DEEPEST = 5e-3
HURRIED = (1, 4)
BARS = {"rigid": 5.0, "compliant": 8.0}
ALONE = 1.0
THREADS = 1.7


class Scene(NamedTuple):
    """What is simulated: the start of every sample, whether the figure is held upright, and whether it
    touches itself."""

    name: str
    q: Array
    v: Array
    held: bool
    self_collision: bool = False


def contact(kind: str, self_collision: bool) -> Any:
    law = da.contact.Rigid if kind == "rigid" else da.contact.Compliant
    return law(self_collision=True) if self_collision else law(pairs=humanoid.floor_pairs())


class Ours:
    """Rollouts here."""

    def __init__(self, kind: str, scene: Scene, dt: float) -> None:
        self.dt, self.scene = dt, scene
        self.law = contact(kind, scene.self_collision)
        self.model = humanoid.held() if scene.held else humanoid.figure()

    def run(self, q: Array, v: Array, steps: int, *, record: bool = False, every: int = 1) -> da.Trajectory:
        return da.rollout(
            self.model,
            q,
            v,
            steps=steps,
            dt=self.dt,
            contact=self.law,
            record_contacts=record,
            every=every,
        )

    def settled(self, steps: int) -> tuple[Array, Array]:
        if not steps:
            return self.scene.q, self.scene.v
        end = self.run(self.scene.q, self.scene.v, steps, every=steps)
        return end.q[:, -1], end.v[:, -1]


class Theirs:
    """MuJoCo's rollouts."""

    def __init__(self, scene: Scene, dt: float, *, iterations: tuple[int, int] | None = None) -> None:
        self.dt, self.scene = dt, scene
        self.model = humanoid.peer(dt, self_collision=scene.self_collision)
        if scene.held:
            humanoid.hold(self.model)
        if iterations is not None:
            self.model.opt.iterations, self.model.opt.ls_iterations = iterations

    def run(self, q: Array, v: Array, steps: int) -> Array:
        return humanoid.peer_rollouts(self.model, humanoid.peer_states(self.model, q, v), steps)

    def settled(self, steps: int) -> tuple[Array, Array]:
        if not steps:
            return self.scene.q, self.scene.v
        return humanoid.own_states(self.model, self.run(self.scene.q, self.scene.v, steps)[:, -1])


def least(call: Callable[[], object], rounds: int, clock: Callable[[], float]) -> float:
    times = []
    for _ in range(rounds):
        start = clock()
        call()
        times.append(clock() - start)
    return min(times)


def scenes(samples: int) -> list[Scene]:
    rng = np.random.default_rng(0)
    still = np.zeros((samples, 27))
    upright = np.tile(humanoid.standing(), (samples, 1))
    return [
        Scene("lying", humanoid.random_poses(samples, 0, height=1.5), still, False),
        Scene("standing", upright, 0.05 * rng.normal(size=(samples, 27)), True),
    ]


def upright(q: Array, height: float) -> bool:
    return bool(np.isfinite(q).all() and np.abs(q[..., 2] - height).max() < 0.1)


def largest_step(kind: str, scene: Scene) -> tuple[float, float]:
    """The largest step at which the standing figure keeps out of the floor, and how deep it goes."""
    for dt in TIME_STEPS:
        motion = Ours(kind, scene, dt).run(scene.q[:8], scene.v[:8], round(10.0 / dt), record=True)
        assert motion.contacts is not None
        deepest = -float(motion.contacts.gap.min())
        if upright(motion.q, scene.q[0, 2]) and deepest < DEEPEST:
            return dt, deepest
    raise SystemExit(f"{kind}: the humanoid does not stand at any step")


def largest_peer_step(scene: Scene, iterations: tuple[int, int] | None) -> tuple[float, float]:
    """The same of MuJoCo; zeros where it stands at none."""
    for dt in TIME_STEPS:
        theirs = Theirs(scene, dt, iterations=iterations)
        q, _ = humanoid.own_states(theirs.model, theirs.run(scene.q[:8], scene.v[:8], round(10.0 / dt)))
        if upright(q, scene.q[0, 2]):
            deepest = -float(humanoid.lowest(q).min())
            if deepest < DEEPEST:
                return dt, deepest
    return 0.0, 0.0


def main() -> int:
    """Print the tables; 1 if a bar is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--samples", type=int, default=1024)
    chosen = parser.parse_args()
    warnings.simplefilter("ignore", SimulationWarning)
    da.set_num_threads(1)
    print(f"Simulation with contact on {machine()}\n")
    lying, standing = scenes(chosen.samples)
    steps = {kind: largest_step(kind, standing) for kind in BARS}
    peers = {"MuJoCo": largest_peer_step(standing, None), "MuJoCo 1, 4": largest_peer_step(standing, HURRIED)}
    rows = [[name, f"{1e3 * dt:g}", f"{1e3 * deep:.2f}"] for name, (dt, deep) in {**steps, **peers}.items()]
    print(table(["standing 10 s", "dt [ms]", "overlap [mm]"], rows), "\n")
    missed: list[str] = []
    rows = []
    for scene in (lying, standing):
        for samples in (chosen.samples, 1):
            rows += contest(scene, samples, steps, peers, chosen.rounds, missed)
    heads = ["scene", "samples", "law", "ms a simulated second", "MuJoCo", "ratio", "bar", "MuJoCo 1, 4"]
    print(table(heads, rows), "\n")
    rows = []
    for scene in (lying, standing):
        touching = scene._replace(self_collision=True)
        rows += contest(touching, chosen.samples, steps, peers, chosen.rounds, missed=None)
    print(table([*heads[:2], "law, with self-collision", *heads[3:]], rows), "\n")
    if cores() > 1:
        print(two_threads(standing, steps["rigid"][0], chosen.rounds, missed), "\n")
    print("every bar is met" if not missed else "not met: " + "; ".join(missed))
    return bool(missed)


def contest(
    scene: Scene,
    samples: int,
    steps: dict[str, tuple[float, float]],
    peers: dict[str, tuple[float, float]],
    rounds: int,
    missed: list[str] | None,
) -> list[list[str]]:
    """One scene: every law of ours beside MuJoCo; `missed`: where to note bars that are missed, if there are
    any."""
    scene = scene._replace(q=scene.q[:samples], v=scene.v[:samples])
    wait, span = (0.0 if scene.held else 3.0), (0.5 if samples > 1 else 5.0)

    def cost(engine: Ours | Theirs) -> float:
        q, v = engine.settled(round(wait / engine.dt))
        count = round(span / engine.dt)
        shape = (samples,) if samples > 1 else ()
        if isinstance(engine, Ours):
            q, v = q.reshape(*shape, -1), v.reshape(*shape, -1)
            engine.run(q, v, count)
        return least(lambda: engine.run(q, v, count), rounds, time.process_time) / (samples * span) * 1e3

    theirs = cost(Theirs(scene, peers["MuJoCo"][0]))
    hurried = "fails"
    if peers["MuJoCo 1, 4"][0] > 0.0:
        hurried = f"{cost(Theirs(scene, peers['MuJoCo 1, 4'][0], iterations=HURRIED)):.3f}"
    rows = []
    for kind, (dt, _) in steps.items():
        ours = cost(Ours(kind, scene, dt))
        bar = BARS[kind] if samples > 1 else ALONE
        if missed is not None and theirs / ours < bar:
            missed.append(f"{scene.name}, {samples} samples, {kind}: {theirs / ours:.2f} of {bar:g}")
        rows.append(
            [
                scene.name,
                str(samples),
                kind,
                f"{ours:.3f}",
                f"{theirs:.3f}",
                f"{theirs / ours:.2f}",
                "" if missed is None else f"{bar:g}",
                hurried,
            ]
        )
    return rows


def two_threads(scene: Scene, dt: float, rounds: int, missed: list[str]) -> str:
    """The clock of a batch in one thread and in two."""
    engine = Ours("rigid", scene, dt)
    clocks = []
    for threads in (1, 2):
        da.set_num_threads(threads)
        engine.run(scene.q, scene.v, 20)
        clocks.append(least(lambda: engine.run(scene.q, scene.v, 100), 2 * rounds, time.perf_counter))
    da.set_num_threads(1)
    gain = clocks[0] / clocks[1]
    if gain < THREADS:
        missed.append(f"two threads: {gain:.2f} of {THREADS:g}")
    return f"two threads: {gain:.2f} x, bar {THREADS:g}"


if __name__ == "__main__":
    raise SystemExit(main())
