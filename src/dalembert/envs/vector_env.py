"""Many copies of a task as one environment of Gymnasium: one call of machine code a step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias, final

import numpy as np
import numpy.typing as npt
from gymnasium import Env
from gymnasium.spaces import Box
from gymnasium.vector import AutoresetMode
from gymnasium.vector import VectorEnv as GymnasiumVectorEnv
from gymnasium.vector.utils import batch_space

from dalembert.call.arguments import empty
from dalembert.compiler.rollout_execution import ArrayBlock
from dalembert.envs import task_named
from dalembert.envs.task import Random, Task, draw_in
from dalembert.envs.task_step import FIRST_TERM, REWARD, TERMINATED, TaskStep
from dalembert.errors import ArgumentError, DeviceError, ShapeError, require_choice, whole_number
from dalembert.motion.clip import Frames
from dalembert.simulation.alike_samples import BlockOrder
from dalembert.viewer.contact_sheet import sheet

Array: TypeAlias = npt.NDArray[Any]
Infos: TypeAlias = dict[str, Any]

RENDER_MODES: Final = ("rgb_array",)

PICTURE: Final = (480, 480)
"""Width and height of a picture in pixels."""


@final
class VectorEnv(GymnasiumVectorEnv[Any, Any, Any]):
    """`num_envs` copies of a task, as `gymnasium.vector.VectorEnv`.

    Observations are float64 `(num_envs, n)`, actions those of the action space. `autoreset_mode`: what
    happens when an episode ends; `arrays`: "numpy", or "torch" for tensors on the CPU, which share the
    memory of the arrays. `seed`: that of the first copy; copy i has seed + i, and draws the same numbers
    however many copies there are.
    """

    def __init__(
        self,
        task: Task | str,
        num_envs: int = 1,
        *,
        device: str = "cpu",
        seed: int | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        max_episode_steps: int | None = None,
        arrays: str = "numpy",
        render_mode: str | None = None,
    ) -> None:
        if device != "cpu":
            raise DeviceError(f'environments run on the CPU so far, not on "{device}"; give device="cpu"')
        require_choice("arrays", arrays, ("numpy", "torch"))
        if render_mode is not None:
            require_choice("render_mode", render_mode, RENDER_MODES)
        self.task = task if isinstance(task, Task) else task_named(task)
        self.render_mode = render_mode
        self.num_envs = whole_number("num_envs", num_envs, 1, 2**31)
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.max_episode_steps = max_episode_steps or self.task.episode_steps
        self.metadata = {
            "autoreset_mode": self.autoreset_mode,
            "render_modes": list(RENDER_MODES),
            "render_fps": round(1.0 / self.task.dt),
        }
        self._step = TaskStep.of(self.task)
        self.model = self._step.model
        self._as_tensors = arrays == "torch"
        self._set_spaces()
        self._allocate()
        if seed is not None:
            self._set_seeds(seed, np.ones(self.num_envs, bool))

    def _set_spaces(self) -> None:
        low, high = np.array(self._step.ranges, np.float32).T
        self.single_action_space = Box(low, high, dtype=np.float32)
        self.single_observation_space = Box(-np.inf, np.inf, (self._step.observations,), np.float64)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)

    def _allocate(self) -> None:
        step, n = self._step, self.num_envs
        kernel = step.kernel()
        self._fresh = {"q": step.start, "v": np.zeros(self.model.nv), **step.plan.initial}
        carried = ArrayBlock({name: value.shape for name, value in self._fresh.items()}, (n,))
        self._state = carried.arrays
        shapes = step.arguments | {name: np.shape(self.model.value(name)) for name in self.task.randomization}
        self._held = {name: np.zeros((n, *own)) for name, own in shapes.items() if name not in self._state}
        self._held["dt"][...] = self.task.time_step
        for name in self.task.randomization:
            self._held[name][...] = self.model.value(name)
        self._begin = step.begin()
        self._steps = kernel.in_place(carried, self._held)
        self._seen, self._signals = self._steps.outputs[-2:]
        ordered = "memory" in self._state and n > self._steps.lanes
        self._order = BlockOrder(self._steps) if ordered else None
        self._taken = np.zeros(n, np.int64)
        self._over = np.zeros(n, bool)
        self._seeds: Array | None = None
        self._episodes = np.zeros(n, np.int64)

    # The state, for those who look at it.

    @property
    def q(self) -> Array:
        """The configurations `(num_envs, nq)`."""
        return self._state["q"]

    @property
    def v(self) -> Array:
        """The velocities `(num_envs, nv)`."""
        return self._state["v"]

    @property
    def parameters(self) -> dict[str, Array]:
        """The values of the model that are drawn for each episode, by name."""
        return {name: self._held[name] for name in self.task.randomization}

    def set_state(self, q: npt.ArrayLike, v: npt.ArrayLike) -> None:
        """Put all copies into states `(num_envs, nq)` and `(num_envs, nv)`, without contact in memory."""
        for name, value in {**self._fresh, "q": q, "v": v}.items():
            self._state[name][...] = value

    # Gymnasium's interface.

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, Infos]:
        """Begin new episodes, in all copies or where `options["reset_mask"]` holds."""
        super().reset(seed=seed if isinstance(seed, int) else None)
        mask = self._mask_of(options)
        if seed is not None:
            self._set_seeds(seed, mask)
        rows, infos = np.flatnonzero(mask), Infos()
        self._start_episodes(rows, infos)
        return self._out(self._seen.copy()), infos

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, Infos]:
        """Take one control step in all copies."""
        over = self._over
        if self.autoreset_mode is AutoresetMode.DISABLED and over.any():
            raise ArgumentError(
                f"step: the episodes of {over.sum()} copies are over; reset them with "
                'reset(options={"reset_mask": terminated | truncated})'
            )
        self._advance(actions)
        observation, signals = empty(self._seen.shape, "float64"), self._signals
        observation[...] = self._seen
        self._taken += 1
        rewards, terminated = signals[:, REWARD].copy(), signals[:, TERMINATED] > 0.0
        truncated = self._taken >= self.max_episode_steps
        infos, told = Infos(), signals[:, FIRST_TERM:].copy()
        if self.autoreset_mode is AutoresetMode.NEXT_STEP and over.any():
            self._tell(infos, told, self._names, ~over)
            rows = np.flatnonzero(over)
            observation[rows] = self._start_episodes(rows, infos)
            rewards[rows], terminated[rows], truncated[rows] = 0.0, False, False
        else:
            self._tell(infos, told, self._names, np.ones(self.num_envs, bool))
        self._over = terminated | truncated
        if self.autoreset_mode is AutoresetMode.SAME_STEP and self._over.any():
            self._reset_in_step(observation, infos)
        results = [self._out(item) for item in (observation, rewards, terminated, truncated)]
        return results[0], results[1], results[2], results[3], infos

    def render(self) -> tuple[Array, ...] | None:
        """Return a picture of each copy, `(height, width, 3)`, in the mode "rgb_array"."""
        if self.render_mode is None:
            return None
        none = np.zeros(1)
        return tuple(sheet(Frames(self.model, none, q[np.newaxis]), PICTURE) for q in self.q)

    def close_extras(self, **kwargs: Any) -> None:
        """Do nothing: there is nothing to be closed."""

    # What these are made of.

    @property
    def _names(self) -> list[str]:
        return [*self._step.terms, *self._step.infos]

    def _out(self, array: Array) -> Any:
        """Return an array as the caller wants it, without a copy."""
        if not self._as_tensors:
            return array
        import torch

        return torch.from_numpy(array)

    def _advance(self, actions: Any) -> None:
        """Take the physics steps of a control step, which write observations and signals."""
        given = np.asarray(actions.detach() if self._as_tensors else actions)
        held, state = self._held, self._state
        if given.shape != held["action"].shape:
            expected = held["action"].shape
            raise ShapeError(f"step: actions have the shape {given.shape}, expected {expected}")
        if not np.isfinite(given).all():
            copy = int(np.argmin(np.isfinite(given).all(axis=1)))
            raise ArgumentError(f"step: the action of copy {copy} is not finite: {given[copy]}")
        held["action_before"][...] = held["action"]
        held["action"][...] = given
        held["q_before"][...], held["v_before"][...] = state["q"], state["v"]
        self._steps.advance(self.task.frame_skip, "off")
        if self._order is not None:
            self._order.update()

    def _reset_in_step(self, observation: Array, infos: Infos) -> None:
        """Begin new episodes where one ended in this step, after telling how it ended."""
        ended = self._over.copy()
        rows, final = np.flatnonzero(ended), np.full(self.num_envs, None, object)
        for row in rows:
            final[row] = self._out(observation[row].copy())
        told = {key: np.where(ended, value, 0) for key, value in infos.items() if key[0] != "_"}
        masks = {f"_{key}": ended.copy() for key in told}
        begun: Infos = {}
        observation[rows] = self._start_episodes(rows, begun)
        for key in self._step.infos:
            infos[key] = np.where(ended, begun[key], infos[key])
        for key in self._step.terms:
            infos[f"_{key}"] = infos[f"_{key}"] & ~ended
        infos.update(final_obs=final, final_info={**told, **masks}, _final_obs=ended, _final_info=ended)

    def _start_episodes(self, rows: Array, infos: Infos) -> Array:
        """Begin new episodes in some copies; return what is observed there."""
        if self._seeds is None:
            self._set_seeds(int(self.np_random.integers(2**62)), np.ones(self.num_envs, bool))
        assert self._seeds is not None
        random, episodes = Random(self._seeds[rows], self._episodes[rows]), self._episodes[rows]
        for name, value in self._fresh.items():
            self._state[name][rows] = value
        self._state["q"][rows], self._state["v"][rows] = self.task.start(self.model, self._step.start, random)
        for place, range_ in enumerate(self.task.commands.values()):
            self._held["command"][rows, place] = draw_in(range_, random, episodes)
        for name, range_ in self.task.randomization.items():
            value = np.asarray(self.model.value(name), float)
            factor = draw_in(range_, random, episodes).reshape(-1, *[1] * value.ndim)
            self._held[name][rows] = value * factor
        self._episodes[rows] += 1
        self._held["action"][rows] = 0.0
        self._taken[rows], self._over[rows] = 0, False
        observation, told = self._begin_observation(rows)
        values, mask = np.zeros((self.num_envs, told.shape[1])), np.zeros(self.num_envs, bool)
        values[rows], mask[rows] = told, True
        self._tell(infos, values, self._step.infos, mask)
        self._seen[rows] = observation
        return observation

    def _begin_observation(self, rows: Array) -> tuple[Array, Array]:
        """Return what some copies observe, and their info, as if their episodes began."""
        values = {name: array[rows] for name, array in self.parameters.items()}
        q, v = self._state["q"][rows], self._state["v"][rows]
        observation, told = self._begin(q, v, self._held["command"][rows], parameters=values or None)
        return observation, told

    def _tell(self, infos: Infos, values: Array, names: Sequence[str], mask: Array) -> None:
        """Add numbers to the infos, each with a mask of the copies that have it."""
        for place, name in enumerate(names):
            known = infos.get(name)
            infos[name] = values[:, place] if known is None else np.where(mask, values[:, place], known)
            infos[f"_{name}"] = mask | infos.get(f"_{name}", False)

    def _set_seeds(self, seed: int | Sequence[int | None], mask: Array) -> None:
        given = [seed + i for i in range(self.num_envs)] if isinstance(seed, int) else list(seed)
        if len(given) != self.num_envs:
            raise ShapeError(f"reset: {len(given)} seeds for {self.num_envs} environments; give one for each")
        if self._seeds is None:
            self._seeds = self.np_random.integers(2**62, size=self.num_envs)
        for row, value in enumerate(given):
            if mask[row] and value is not None:
                self._seeds[row], self._episodes[row] = value, 0

    def _mask_of(self, options: dict[str, Any] | None) -> Array:
        mask = (options or {}).get("reset_mask")
        if mask is None:
            return np.ones(self.num_envs, bool)
        found = np.asarray(mask)
        if found.shape != (self.num_envs,) or found.dtype != np.bool_ or not found.any():
            raise ArgumentError(
                f"reset: reset_mask has the shape {found.shape} and the type {found.dtype}; give "
                f"({self.num_envs},) truth values, one of them true"
            )
        return found


@final
class SingleEnv(Env[Any, Any]):
    """One copy of a task, as `gymnasium.Env`."""

    def __init__(self, task: Task | str, **options: Any) -> None:
        self.copies = VectorEnv(task, 1, autoreset_mode=AutoresetMode.DISABLED, **options)
        self.observation_space = self.copies.single_observation_space
        self.action_space = self.copies.single_action_space
        self.metadata = {k: v for k, v in self.copies.metadata.items() if k != "autoreset_mode"}
        self.render_mode = self.copies.render_mode

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, Infos]:
        """Begin a new episode."""
        super().reset(seed=seed)
        observation, infos = self.copies.reset(seed=seed, options=options)
        return observation[0], _of_first(infos)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, Infos]:
        """Take one control step."""
        found = self.copies.step(np.asarray(action)[np.newaxis])
        observation, reward, terminated, truncated, infos = found
        return observation[0], float(reward[0]), bool(terminated[0]), bool(truncated[0]), _of_first(infos)

    def render(self) -> Any:
        """Return a picture in the mode "rgb_array"."""
        found = self.copies.render()
        return None if found is None else found[0]


def _of_first(infos: Infos) -> Infos:
    return {
        key: float(value[0]) for key, value in infos.items() if f"_{key}" in infos and infos[f"_{key}"][0]
    }
