"""Environments for reinforcement learning: many copies of a task at once, as Gymnasium's vector environments.

Importing this package registers its tasks with Gymnasium, if that is installed (extra `rl`), under ids such
as "dalembert/HalfCheetah-v0".
"""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Any

from dalembert.envs import dm_control_tasks, gymnasium_tasks, velocity_tasks
from dalembert.envs.task import Moment, NoisyStart, Normal, Random, Signals, Targets, Task, Uniform, Widening
from dalembert.errors import MissingExtraError, UnknownNameError

if TYPE_CHECKING:
    from dalembert.envs.vector_env import VectorEnv

__all__ = [
    "Moment",
    "NoisyStart",
    "Normal",
    "Random",
    "Signals",
    "Targets",
    "Task",
    "Uniform",
    "Widening",
    "make",
    "names",
]


TASKS = gymnasium_tasks.TASKS | dm_control_tasks.TASKS | velocity_tasks.TASKS
"""All tasks by name."""


def names() -> list[str]:
    """Return the names of the tasks.

    >>> "HalfCheetah" in da.envs.names()
    True
    """
    return list(TASKS)


def make(
    task: str | Task, num_envs: int = 1, *, device: str = "cpu", seed: int | None = None, **options: Any
) -> VectorEnv:
    """Return `num_envs` copies of a task, by its name or your own, as a `gymnasium.vector.VectorEnv`.

    Copies take their control steps side by side in one call of machine code, which computes all physics
    steps, observation, reward and termination. `seed`: that of the first copy; copy i has seed + i, and
    begins its episodes alike in any number of copies. `autoreset_mode`: "NextStep" (as Gymnasium's own),
    "SameStep" or "Disabled"; `arrays`: "numpy", or "torch" for tensors that share the memory of the arrays;
    `max_episode_steps`, instead of the task's; `render_mode`: None or "rgb_array". `device`: "cpu" so far.

    >>> env = da.envs.make("InvertedPendulum", num_envs=256, seed=0)
    >>> observation, info = env.reset()
    >>> observation, reward, terminated, truncated, info = env.step(np.zeros((256, 1)))
    >>> print(observation.shape, reward.sum())
    (256, 4) 256.0
    """
    if importlib.util.find_spec("gymnasium") is None:
        raise MissingExtraError("environments need Gymnasium; install it: pip install 'dalembert[rl]'")
    from dalembert.envs.vector_env import VectorEnv

    return VectorEnv(task, num_envs, device=device, seed=seed, **options)


def task_named(name: str) -> Task:
    """Return the task of this name."""
    if name not in TASKS:
        raise UnknownNameError.of("task", name, TASKS)
    return TASKS[name]


def _register() -> None:
    """Tell Gymnasium of the tasks."""
    from gymnasium.envs.registration import register

    for name in TASKS:
        register(
            id=f"dalembert/{name}-v0",
            entry_point="dalembert.envs.vector_env:SingleEnv",
            vector_entry_point="dalembert.envs.vector_env:VectorEnv",
            kwargs={"task": name},
        )


if importlib.util.find_spec("gymnasium") is not None:
    _register()
