"""Tasks of reinforcement learning are models, and functions of the end of a control step."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, TypeAlias, final

import numpy as np

from dalembert.algorithms.kinematics import body_velocities, forward_kinematics
from dalembert.algorithms.springs import require_actuators
from dalembert.call.arguments import Array
from dalembert.contact.law import Law
from dalembert.contact.options import Compliant, Rigid
from dalembert.control import Servo
from dalembert.errors import ArgumentError, MissingExtraError
from dalembert.formats.mjcf import read_mjcf
from dalembert.model.body import Body
from dalembert.model.conventions import convert_state
from dalembert.model.model import Model
from dalembert.model.tree import PerBody
from dalembert.scalar import Scalar
from dalembert.simulation.actuator_drive import ActuatorDrive
from dalembert.simulation.drives import Drive, drive_of
from dalembert.spatial import Force, Motion, Transform, Vec3


@final
@dataclass(frozen=True, eq=False)
class Moment:
    """The end of a control step, as the functions of a task see it.

    `time` since the episode began [s]; q, v; the `action` of the step, and that of the one before; q_before,
    v_before: the state in which it began; `dt`: its length [s]; `command`: numbers drawn for the episode, by
    name; `loads`: the sums of contact forces on what may touch in the last physics step, by names of bodies,
    or of frames of links that were merged into bodies: moments about the world's origin [N m], and forces
    [N], in world axes. When an episode begins, the action is zero and the states are the same.
    """

    model: Model
    time: Scalar
    q: Sequence[Scalar]
    v: Sequence[Scalar]
    action: Sequence[Scalar]
    action_before: Sequence[Scalar]
    q_before: Sequence[Scalar]
    v_before: Sequence[Scalar]
    dt: float
    command: Mapping[str, Scalar]
    loads: Mapping[str, Force]

    @cached_property
    def poses(self) -> PerBody[Transform]:
        """The poses of the bodies in the world."""
        return forward_kinematics(self.model, self.q)

    @cached_property
    def poses_before(self) -> PerBody[Transform]:
        """The poses of the bodies when the step began."""
        return forward_kinematics(self.model, self.q_before)

    @cached_property
    def velocities(self) -> PerBody[Motion]:
        """The spatial velocities of the bodies in body coordinates."""
        return body_velocities(self.model, self.q, self.v)

    def position(self, name: str) -> Vec3:
        """Return the origin of a body or frame in the world [m]."""
        frame = self.model.frame(name)
        placement = frame.placement.p
        return placement if frame.body < 0 else self.poses[frame.body].transform_point(placement)


Terms: TypeAlias = dict[str, Scalar]
"""Numbers by name."""


class Random:
    """Random numbers of samples, each a function of its sample's key and of how many were drawn before.

    Vigna's SplitMix64: a sample draws the same numbers alone and in any batch.
    """

    def __init__(self, seeds: Any, episodes: Any) -> None:
        """`seeds`, `episodes (n,)`: what a sample's key is made of."""
        self._keys = _mix(_mix(seeds.astype(np.uint64)) + _STRIDE * episodes.astype(np.uint64))
        self._drawn = 0

    def uniform(self, low: Any, high: Any, size: int) -> Array:
        """Return `size` numbers between low and high for each sample, `(n, size)`."""
        counts = np.arange(self._drawn + 1, self._drawn + size + 1, dtype=np.uint64)
        self._drawn += size
        bits = _mix(self._keys[:, np.newaxis] + _STRIDE * counts) >> np.uint64(11)
        found: Array = low + (np.asarray(high) - low) * (bits.astype(np.float64) * 2.0**-53)
        return found

    def normal(self, size: int) -> Array:
        """Return `size` numbers of mean 0 and standard deviation 1 for each sample, by Box and Muller."""
        radius = np.sqrt(-2.0 * np.log1p(-self.uniform(0.0, 1.0, size)))
        found: Array = radius * np.cos(self.uniform(0.0, 2.0 * math.pi, size))
        return found


_STRIDE = np.uint64(0x9E3779B97F4A7C15)


def _mix(x: Any) -> Any:
    """Return the bits of 64-bit numbers, mixed."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@final
@dataclass(frozen=True)
class Widening:
    """A curriculum: a range that goes from `first` to `last` in as many `episodes` of a copy."""

    first: tuple[float, float]
    last: tuple[float, float]
    episodes: int

    def at(self, episodes: Array) -> tuple[Array, Array]:
        """Return the ends of the range in an episode of each copy, from 0 on."""
        done = np.minimum(episodes / self.episodes, 1.0)
        low, high = ((1.0 - done) * a + done * b for a, b in zip(self.first, self.last, strict=True))
        return low, high


Range: TypeAlias = tuple[float, float] | Widening
"""The range from which a number is drawn for each episode."""


def draw_in(range_: Range, random: Random, episodes: Array) -> Array:
    """Return a number in a range for each sample `(n,)`, in episodes of these numbers."""
    low, high = range_.at(episodes) if isinstance(range_, Widening) else range_
    found: Array = low + (np.asarray(high) - low) * random.uniform(0.0, 1.0, 1)[:, 0]
    return found


@final
@dataclass(frozen=True)
class Uniform:
    """Noise between -width and width."""

    width: float

    def draw(self, random: Random, size: int) -> Array:
        """Return the noise of each sample, `(n, size)`."""
        return random.uniform(-self.width, self.width, size)


@final
@dataclass(frozen=True)
class Normal:
    """Noise of this standard deviation."""

    deviation: float

    def draw(self, random: Random, size: int) -> Array:
        """Return the noise of each sample, `(n, size)`."""
        return self.deviation * random.normal(size)


class Start(Protocol):
    """A function that draws the state in which episodes begin, `(n, nq)` and `(n, nv)`."""

    def __call__(self, model: Model, q: Array, random: Random) -> tuple[Array, Array]: ...


@final
@dataclass(frozen=True)
class NoisyStart:
    """Episodes begin in the initial configuration with noise on q and v, in MuJoCo's variables: the linear
    velocity of a free body is along world axes. Quaternions are normalized."""

    q: Uniform | Normal = Uniform(0.0)
    v: Uniform | Normal = Uniform(0.0)

    def __call__(self, model: Model, q: Array, random: Random) -> tuple[Array, Array]:
        """Return the states in which episodes begin."""
        found = q + self.q.draw(random, model.nq)
        for body in model.bodies:
            for place in body.joint.unit_quaternions:
                own = found[:, body.q_slice][:, place]
                own /= np.linalg.norm(own, axis=-1, keepdims=True)
        v = self.v.draw(random, model.nv)
        begun, rates = convert_state(model, found, v, source="mujoco", target="dalembert")
        assert rates is not None
        return begun, rates


@final
@dataclass(frozen=True)
class Signals:
    """Actions are the signals of the model's actuators, within their ranges."""

    def ranges(self, model: Model) -> list[tuple[float, float]]:
        """Return the least and the greatest value of each action."""
        return [item.control or (-math.inf, math.inf) for item in require_actuators(model).actuators]

    def drive(self, model: Model) -> ActuatorDrive:
        """Return what moves the model in a step."""
        return ActuatorDrive()

    def arguments(self, model: Model, start: Array, action: Sequence[Scalar]) -> dict[str, Sequence[Scalar]]:
        """Return what actions mean for a step, by the names of its arguments."""
        return {"ctrl": action}


@final
@dataclass(frozen=True)
class Targets:
    """Actions from -1 to 1 are targets of PD control, which moves joints of one variable.

    q_ref = q_start + scale * action; gains `kp` and `kd` and the greatest `effort` as in `da.control.Servo`;
    `scale` [rad, m]; `joints`: names, None: all that have motors.
    """

    kp: float
    kd: float
    scale: float = 0.25
    effort: float | None = None
    joints: tuple[str, ...] | None = None

    def _bodies(self, model: Model) -> list[Body]:
        """Return the bodies that actions move."""
        if self.joints is not None:
            return [model.joint(name).body for name in self.joints]
        driven = self._servo().driven(model)
        return [body for body in model.bodies if body.nq == body.nv == 1 and body.v_slice.start in driven]

    def _servo(self) -> Servo:
        return Servo(kp=self.kp, kd=self.kd, effort=self.effort)

    def ranges(self, model: Model) -> list[tuple[float, float]]:
        """Return the least and the greatest value of each action."""
        return [(-1.0, 1.0)] * len(self._bodies(model))

    def drive(self, model: Model) -> Drive:
        """Return what moves the model in a step."""
        servo = self._servo()
        return drive_of(servo, servo.gains(model))

    def arguments(self, model: Model, start: Array, action: Sequence[Scalar]) -> dict[str, Sequence[Scalar]]:
        """Return what actions mean for a step, by the names of its arguments."""
        q_ref: list[Scalar] = [float(x) for x in start]
        for body, x in zip(self._bodies(model), action, strict=True):
            q_ref[body.q_slice.start] = q_ref[body.q_slice.start] + self.scale * x
        gains = self._servo().gains(model)
        return {"q_ref": q_ref, **{name: [float(x) for x in values] for name, values in gains.items()}}


@final
@dataclass(frozen=True, eq=False)
class Task:
    """A task of reinforcement learning: what an agent sees, what it gets, and when an episode ends.

    `load` returns the model and the configuration in which it begins. `observation`, `reward`, `termination`
    and `info` are functions of a `Moment` on generic scalars, which are compiled with the physics: choices
    by value go through `da.scalar.select`. `observation` returns a list; `reward` the terms of a sum, by
    name; `termination` a condition; `info` further numbers, by name.

    `time_step` [s] of the physics, of which a control step has `frame_skip`; `contact` as in `da.rollout`;
    `episode_steps`: control steps after which an episode is cut off; `start` draws the states in which
    episodes begin; `actions`: what actions mean, `Signals` of actuators or `Targets` of servos. `commands`
    and `randomization`: ranges, (low, high) or `Widening`, from which numbers are drawn for each episode, by
    name: a command is seen by the functions; a randomized number is a value of the model, as in `da.compile`,
    which it multiplies.
    """

    name: str
    load: Callable[[], tuple[Model, Array]]
    observation: Callable[[Moment], list[Scalar]]
    reward: Callable[[Moment], Terms]
    termination: Callable[[Moment], Scalar] | None = None
    info: Callable[[Moment], Terms] = lambda now: {}
    time_step: float = 0.01
    frame_skip: int = 5
    episode_steps: int = 1000
    contact: str | Rigid | Compliant | Law | None = "compliant"
    start: Start = NoisyStart()
    actions: Signals | Targets = Signals()
    commands: Mapping[str, Range] = field(default_factory=dict)
    randomization: Mapping[str, Range] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.frame_skip < 1 or self.episode_steps < 1 or not self.time_step > 0.0:
            raise ArgumentError(
                f'task "{self.name}": time_step is {self.time_step}, frame_skip {self.frame_skip}, '
                f"episode_steps {self.episode_steps}; all must be greater than zero"
            )
        for name, range_ in {**self.commands, **self.randomization}.items():
            for low, high in (range_.first, range_.last) if isinstance(range_, Widening) else (range_,):
                if not low <= high:
                    raise ArgumentError(
                        f'task "{self.name}": {name} has the range ({low}, {high}); exchange its ends'
                    )

    @property
    def dt(self) -> float:
        """The length of a control step [s]."""
        return self.time_step * self.frame_skip


# Models that other packages install are read from their files, when a task is made.

DISTRIBUTIONS = {"gymnasium": "'dalembert[rl]'", "dm_control": "dm-control"}
"""What pip installs for a package."""


def installed_model(package: str, path: str) -> Callable[[], tuple[Model, Array]]:
    """Return a function that returns the model of an MJCF file in a package, and where the file places it."""

    def load() -> tuple[Model, Array]:
        found = importlib.util.find_spec(package)
        if found is None or found.origin is None:
            raise MissingExtraError(
                f"{path} is a file of {package}, which is not installed: pip install {DISTRIBUTIONS[package]}"
            )
        file = read_mjcf(Path(found.origin).parent / path)
        return file.model, file.start.q

    return load
