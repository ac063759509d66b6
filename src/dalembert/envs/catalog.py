"""All tasks by name."""

from __future__ import annotations

from dalembert.envs import dm_control_tasks, gymnasium_tasks, velocity_tasks
from dalembert.envs.task import Task
from dalembert.errors import UnknownNameError

TASKS = gymnasium_tasks.TASKS | dm_control_tasks.TASKS | velocity_tasks.TASKS


def task_named(name: str) -> Task:
    """Return the task of this name."""
    if name not in TASKS:
        raise UnknownNameError.of("task", name, TASKS)
    return TASKS[name]
