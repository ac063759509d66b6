"""A physics step of a task as a traced function: at the last one of a control step, what the agent gets.

    state, ctrl, dt  ->  state, observation, signals

The functions of a task are read as a sensor of the physics step: at the last one of a control step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, final

import numpy as np

from dalembert.call.arguments import Array, ArrayArgument
from dalembert.compiler.compiled import compile
from dalembert.compiler.execution import CompiledFunction
from dalembert.compiler.lowering import Recipe
from dalembert.compiler.rollout_execution import CompiledRollout, compile_rollout
from dalembert.contact.pairs import Placed
from dalembert.envs.task import Moment, Task
from dalembert.model.model import Model
from dalembert.scalar import Row, Scalar, rows, select
from dalembert.simulation.host_rollouts import checked_contact
from dalembert.simulation.sensing import ContactForces, Draw, Sensor, SensorSet, StepEnd
from dalembert.simulation.step_function import take_step
from dalembert.simulation.step_plan import StepPlan
from dalembert.spatial import Force

REWARD, TERMINATED, FIRST_TERM = 0, 1, 2
"""The places of the signals: the reward, whether the episode ends, the terms of the reward, and the info."""


@final
@dataclass(frozen=True, eq=False)
class TaskStep:
    """The kernels of a task; `start`: the configuration in which the model begins."""

    task: Task
    model: Model
    start: Array

    @staticmethod
    def of(task: Task) -> TaskStep:
        """Load the model of a task."""
        model, q = task.load()
        return TaskStep(task, model, np.asarray(q, float))

    @cached_property
    def plan(self) -> StepPlan:
        """The physics of a step."""
        law = checked_contact(self.task.contact)
        options: dict[str, Any] = {"integrator": "midpoint", "external_frame": None, "watch": False}
        return StepPlan.of(self.model, law, None, self.task.actions.drive(self.model), None, **options)

    @cached_property
    def ranges(self) -> list[tuple[float, float]]:
        """The least and the greatest value of each action."""
        return self.task.actions.ranges(self.model)

    @cached_property
    def _rest(self) -> Moment:
        """The beginning of an episode in the initial state."""
        q, v = list(map(float, self.start)), [0.0] * self.model.nv
        return self._begin(self.model, q, v, [0.0] * len(self.task.commands))

    @cached_property
    def _sample(self) -> tuple[list[Scalar], list[str], list[str]]:
        """The observation in the initial state, and the names of the terms of the reward and of the info."""
        now = self._rest
        return list(self.task.observation(now)), list(self.task.reward(now)), list(self.task.info(now))

    @property
    def observations(self) -> int:
        """The number of observed numbers."""
        return len(self._sample[0])

    @property
    def terms(self) -> list[str]:
        """The names of the terms of the reward."""
        return self._sample[1]

    @property
    def infos(self) -> list[str]:
        """The names of what the task tells beside the observation."""
        return self._sample[2]

    @property
    def signals(self) -> int:
        """The number of signals."""
        return FIRST_TERM + len(self.terms) + len(self.infos)

    @cached_property
    def arguments(self) -> dict[str, tuple[int, ...]]:
        """The arguments of the kernel: those of the physics that actions do not decide, then actions, the
        state before, and commands."""
        zero: list[Scalar] = [0.0] * len(self.ranges)
        decided = self.task.actions.arguments(self.model, self.start, zero)
        shapes = {k: v for k, v in self.plan.argument_shapes.items() if k not in decided}
        shapes |= {"action": (len(zero),), "action_before": (len(zero),)}
        shapes |= {"q_before": (self.model.nq,), "v_before": (self.model.nv,)}
        return {**shapes, "command": (len(self.task.commands),)}

    def kernel(self) -> CompiledRollout:
        """Return the kernel of a control step: all its physics steps, then the functions of the task."""
        arguments = tuple(ArrayArgument(*item) for item in self.arguments.items())
        names = tuple(self.task.randomization)
        values = tuple(ArrayArgument(name, np.shape(self.model.value(name))) for name in names)
        recipe = Recipe(f"task {self.task.name}", self, self.model, arguments, values)
        recipe = replace(recipe, divergent=self.plan.is_divergent)
        return compile_rollout(recipe, carried=self.plan.carried_results)

    def begin(self) -> CompiledFunction:
        """Return the function of (q, v, command) that observes the beginning of an episode: the observation,
        and the info."""

        def observe(model: Model, q: Any, v: Any, command: Any) -> Any:
            now = self._begin(model, q, v, command)
            return self.task.observation(now), [*self.task.info(now).values(), 0.0 * q[0]]

        shapes = {"command": (len(self.task.commands),)}
        return compile(observe, self.model, inputs=shapes, parameters=tuple(self.task.randomization))

    def _begin(self, model: Model, q: Any, v: Any, command: Any) -> Moment:
        """Return the beginning of an episode."""
        named = dict(zip(self.task.commands, command, strict=True))
        still: list[Scalar] = [0.0] * len(self.ranges)
        return Moment(model, 0.0 * q[0], q, v, still, still, q, v, self.task.dt, named, {})

    def __call__(self, model: Model, *values: Any) -> tuple[Any, ...]:
        given = dict(zip(self.arguments, values, strict=True))
        given |= self.task.actions.arguments(self.model, self.start, given["action"])
        plan = self.plan.with_functions(sensors=SensorSet((("task", _TaskSensor(self, given)),)))
        results = take_step(plan, model, *(given[item.name] for item in plan.arguments))
        after = dict(zip(plan.results, results, strict=True))
        found = after[plan.sensors.results["task"]]
        observation, signals = found[: self.observations], found[self.observations :]
        signals[TERMINATED] = select(after["fault"] > 0.0, 1.0, signals[TERMINATED])
        return *results[: len(plan.carried_results)], observation, signals


@final
@dataclass(frozen=True, eq=False)
class _TaskSensor(Sensor):
    """The reading of a task at the end of a control step: observation and signals, in one list."""

    step: TaskStep
    given: Mapping[str, Any]

    def shape(self, model: Model) -> tuple[int, ...]:
        return (self.step.observations + self.step.signals,)

    def read(self, end: StepEnd, memory: Sequence[Scalar], draw: Draw) -> list[Scalar]:
        task, given = self.step.task, self.given
        now = Moment(
            end.model,
            time=given["lasted"] * end.dt + end.dt,
            q=end.q,
            v=end.v,
            **{name: given[name] for name in ("action", "action_before", "q_before", "v_before")},
            dt=task.dt,
            command=dict(zip(task.commands, given["command"], strict=True)),
            loads=link_loads(end.model, end.contact) if isinstance(end.contact, ContactForces) else {},
        )
        terms, info = task.reward(now), task.info(now)
        ends = 0.0 if task.termination is None else select(task.termination(now), 1.0, 0.0)
        signals = [sum(terms.values(), 0.0), ends, *terms.values(), *info.values()]
        return [*task.observation(now), *signals]


def link_loads(model: Model, contact: ContactForces) -> dict[str, Force]:
    """Return the sums of contact forces on bodies, and on links that were merged into bodies, by name:
    moments about the world's origin [N m] and forces [N], in world axes."""
    sides = [[_link_of(model, x) for x in (pair.first, pair.second)] for pair in contact.pairs]
    names = sorted({name for both in sides for name in both if name is not None})
    places: dict[str | None, int] = {None: len(names), **{name: k for k, name in enumerate(names)}}
    contacts, table = contact.contacts, rows(len(names) + 1, like=contact.rate)
    first, second = (
        contacts.every.links(table, [places[sides[k][end]] for k in contact.pair_of_point]) for end in (0, 1)
    )

    def forces(row: Row) -> list[tuple[Row, Force]]:
        whole = contact.wrench(row)
        return [(second[row], whole), (first[row], -whole)]

    sums = contacts.near.scatter(forces, table, Force.zero())
    return {name: sums.at(place) for place, name in enumerate(names)}


def _link_of(model: Model, placed: Placed) -> str | None:
    """Return the name of the link that carries a shape, None for the world."""
    return None if placed.body < 0 else placed.shape.link or model.bodies[placed.body].name
