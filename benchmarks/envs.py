"""Environment steps a second: `da.envs` beside Gymnasium's MuJoCo environments, EnvPool and MuJoCo's rollout.

A step is a control step with random actions, observation, reward, termination and the reset of episodes that
ended; MuJoCo's `rollout` has the physics alone. All use two threads or processes, in turns, and the greatest
rate of several rounds counts. The processor time of a step is that of all threads, the least of the rounds,
which others who use the machine hardly change; for Gymnasium's processes it is not known. Ratios are those to
dalembert.

EnvPool does not import beside newer versions of NumPy everywhere, and is run by a Python of its own:

    python -m venv /tmp/pool && /tmp/pool/bin/pip install envpool
    python benchmarks/envs.py [HalfCheetah Ant Humanoid] [--copies 4096] [--envpool /tmp/pool/bin/python]
"""

from __future__ import annotations

import argparse
import itertools
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from timing import machine, table

import dalembert as da

THREADS = 2
ROUNDS = 5
SECONDS = 0.5
"""[s] The length of a round."""

ENVPOOL = """
import sys, time, numpy as np, envpool
task, copies, threads, seconds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
env = envpool.make(task, env_type="gymnasium", num_envs=copies, num_threads=threads, seed=0)
env.reset()
space = env.action_space
actions = np.random.default_rng(0).uniform(space.low, space.high, (32, copies, *space.shape))
for line in sys.stdin:
    steps, wall, used = 0, time.perf_counter(), time.process_time()
    while time.perf_counter() - wall < seconds:
        env.step(actions[steps % 32])
        steps += 1
    print(steps * copies, time.perf_counter() - wall, time.process_time() - used, flush=True)
"""


class Round(NamedTuple):
    """Environment steps, and the time [s] and processor time [s] that they took."""

    steps: int
    wall: float
    used: float


Contestant = Callable[[], Round]


def random_actions(space: Any, copies: int) -> np.ndarray:
    """Return 32 batches of actions."""
    found = np.random.default_rng(0).uniform(space.low, space.high, (32, copies, *space.shape))
    return found.astype(np.float32)


def repeat(env: Any, actions: np.ndarray) -> Contestant:
    """Return a function that steps an environment for a round."""

    def run() -> Round:
        steps, wall, used = 0, time.perf_counter(), time.process_time()
        while time.perf_counter() - wall < SECONDS:
            env.step(actions[steps % len(actions)])
            steps += 1
        return Round(steps * actions.shape[1], time.perf_counter() - wall, time.process_time() - used)

    return run


def own(task: str, copies: int) -> Contestant:
    """Return a round of `da.envs`."""
    env = da.envs.make(task, copies, seed=0, autoreset_mode="SameStep")
    env.reset()
    run = repeat(env, random_actions(env.single_action_space, copies))
    run()
    return run


def gymnasium_rounds(task: str, mode: str, copies: int) -> Contestant:
    """Return a round of Gymnasium's environments, in one process or in two."""
    import gymnasium

    env = gymnasium.make_vec(f"{task}-v5", num_envs=copies, vectorization_mode=mode)
    env.reset(seed=0)
    return repeat(env, random_actions(env.single_action_space, copies))


def mujoco_rollout(task: str, copies: int = 256, steps: int = 20) -> Contestant:
    """Return a round of MuJoCo's rollout: many control steps in one call, each round where the last ended."""
    import gymnasium
    import mujoco
    from mujoco.rollout import Rollout

    env = gymnasium.make(f"{task}-v5").unwrapped
    kind = mujoco.mjtState.mjSTATE_FULLPHYSICS
    states = np.zeros((copies, mujoco.mj_stateSize(env.model, kind)))
    for k in range(copies):
        env.reset(seed=k)
        mujoco.mj_getState(env.model, env.data, states[k], kind)
    actions = np.random.default_rng(0).uniform(
        env.action_space.low, env.action_space.high, (copies, steps, env.model.nu)
    )
    control = np.repeat(actions, env.frame_skip, axis=1)
    data = [mujoco.MjData(env.model) for _ in range(THREADS)]
    pool = Rollout(nthread=THREADS)

    def run() -> Round:
        count, wall, used, begun = 0, time.perf_counter(), time.process_time(), states
        while time.perf_counter() - wall < SECONDS:
            begun = pool.rollout(env.model, data, begun, control)[0][:, -1]
            count += copies * steps
        return Round(count, time.perf_counter() - wall, time.process_time() - used)

    return run


@contextmanager
def envpool(python: str, task: str, copies: int) -> Iterator[Contestant]:
    """Run EnvPool in a process of its own."""
    command = [python, "-W", "ignore", "-c", ENVPOOL, f"{task}-v4", str(copies), str(THREADS), str(SECONDS)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def run() -> Round:
            process.stdin.write("\n")
            process.stdin.flush()
            steps, wall, used = process.stdout.readline().split()
            return Round(int(steps), float(wall), float(used))

        yield run
        process.stdin.close()


def rows_of(task: str, copies: int, python: str | None) -> list[list[str]]:
    """Return the rates of all contestants in a task."""
    contestants = {
        f"dalembert, {copies:,} copies": own(task, copies),
        "MuJoCo rollout, 2 threads": mujoco_rollout(task),
        "Gymnasium, sync": gymnasium_rounds(task, "sync", 16),
        "Gymnasium, async": gymnasium_rounds(task, "async", 2),
    }
    with ExitStack() as stack:
        if python is not None:
            contestants["EnvPool, 2 threads"] = stack.enter_context(envpool(python, task, 64))
        rounds: dict[str, list[Round]] = {name: [] for name in contestants}
        for _, (name, run) in itertools.product(range(ROUNDS), contestants.items()):
            rounds[name].append(run())
    rates = {name: max(item.steps / item.wall for item in found) for name, found in rounds.items()}
    used = {name: min(1e6 * item.used / item.steps for item in found) for name, found in rounds.items()}
    own_rate, own_time = (next(iter(values.values())) for values in (rates, used))
    rows = []
    for name, rate in rates.items():
        time_columns = (
            [f"{used[name]:.2f}", f"{used[name] / own_time:.1f}"] if "async" not in name else ["", ""]
        )
        rows.append([task, name, f"{rate:,.0f}", f"{own_rate / rate:.1f}", *time_columns])
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tasks", nargs="*", default=["HalfCheetah", "Ant", "Humanoid"])
    parser.add_argument("--copies", type=int, default=4096)
    parser.add_argument("--envpool", metavar="PYTHON")
    given = parser.parse_args()
    sys.modules.setdefault("imageio", ModuleType("imageio"))  # with which Gymnasium saves pictures
    da.set_num_threads(THREADS)
    print(machine())
    head = ["task", "environment", "steps/s", "ratio", "µs of processor a step", "ratio"]
    print(table(head, [row for task in given.tasks for row in rows_of(task, given.copies, given.envpool)]))


if __name__ == "__main__":
    main()
