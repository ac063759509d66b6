"""Reading of sensors: this module has the end of a step, random numbers, and how a step reads its sensors.

Random numbers come from counters: number n of sample s is a function of (seed, s, n), the same bits however
samples are batched and calls are cut. That function is a Feistel network over two words L, R of 26 bits,

    (L, R) <- (R + floor((L + k)^2 / 2^13), L)   modulo 2^26,                                          (1)

the middle of a square as von Neumann's, exact in float64, with keys k that change from round to round.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Final, TypeAlias, final

import numpy as np
import numpy.typing as npt

from dalembert.algorithms.kinematics import BodyMotion, body_motions, relative_motion
from dalembert.call.arguments import ArrayArgument
from dalembert.compiler.recording import RecordedFunction
from dalembert.contact.contacts import Contacts
from dalembert.contact.pairs import ContactPair
from dalembert.errors import ArgumentError, short_repr
from dalembert.model.model import Model
from dalembert.model.tree import PerBody
from dalembert.scalar import Row, Scalar, cos, floor, log, loop, rows, select, sin, sqrt
from dalembert.scalar.for_each import leaves
from dalembert.spatial import Force, Motion, Vec3

Draw: TypeAlias = Callable[[int], list[Scalar]]
"""Independent normal numbers of variance one, others at each call."""

# Random numbers by counters.

WORD: Final = float(1 << 26)
"""The number of words: the square of one has 52 bits, which float64 holds exactly."""

KEY_STEP: Final = 16180339.0
"""The difference of keys from round to round: digits without pattern, those of the golden ratio."""

FEISTEL_ROUNDS: Final = 10
"""Six pass tests of pairs of neighbouring counters, keys and places in 64 x 64 classes of 2^20 numbers."""

DRAWS_APART: Final = 1024
"""Pairs of random numbers that one sensor may draw in a step."""


def stream_keys(seed: Any, batch: tuple[int, ...]) -> npt.NDArray[np.float64]:
    """Return the key of each sample's random numbers, two words `(…, 2)`, by splitmix64 of (seed, number of
    the sample), or of the seeds of samples `(…)` alone."""
    seeds = np.asarray(seed)
    if seeds.dtype.kind not in "iu" or np.any(seeds < 0):
        raise ArgumentError(
            f"seed is {short_repr(seed)}; give a whole number from 0 on, or one for each sample"
        )
    x = np.zeros(math.prod(batch), np.uint64)
    numbers = np.arange(len(x), dtype=np.uint64) if seeds.ndim == 0 else x
    for more in (np.broadcast_to(seeds, batch).astype(np.uint64).ravel(), numbers):
        x = (x + more + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            x = (x ^ (x >> np.uint64(shift))) * np.uint64(factor)
        x = x ^ (x >> np.uint64(31))
    low = np.uint64((1 << 26) - 1)
    return np.stack([x & low, (x >> np.uint64(26)) & low], axis=-1).astype(np.float64).reshape((*batch, 2))


def uniform_pair(key: Sequence[Scalar], counter: Scalar, place: int) -> tuple[Scalar, Scalar]:
    """Return two independent numbers between 0 and 1 of a stream; `counter` a whole number from 0 on, `place`
    below 2^20 tells draws at the same counter apart."""
    high = floor(counter * (1.0 / WORD))
    left, right = counter - high * WORD, float(place) + high * float(1 << 20)
    a, b = key
    for _ in range(FEISTEL_ROUNDS):
        middle = floor(_word(left + a) * _word(left + a) * 2.0**-13)
        left, right = _word(right + middle), left  # (1)
        a, b = _word(b + KEY_STEP), a
    return (left + 0.5) * (1.0 / WORD), (right + 0.5) * (1.0 / WORD)


def _word(x: Scalar) -> Scalar:
    """Return a whole number modulo 2^26."""
    return x - floor(x * (1.0 / WORD)) * WORD


@final
class Drawing:
    """The normal numbers that one sensor draws at one counter."""

    def __init__(self, key: Sequence[Scalar], counter: Scalar, place: int) -> None:
        self._key, self._counter, self._place = key, counter, place

    def __call__(self, count: int) -> list[Scalar]:
        """Return normal numbers by Box and Muller's method."""
        found: list[Scalar] = []
        for _ in range(-(-count // 2)):
            a, b = uniform_pair(self._key, self._counter, self._place)
            self._place += 1
            radius = sqrt(-2.0 * log(a))
            found += [radius * cos(math.tau * b), radius * sin(math.tau * b)]
        return found[:count]


# The end of a step, of which sensors are functions.


@final
@dataclass(frozen=True, eq=False)
class ContactForces:
    """The contact forces of a step: wrench by rows of contact points, zero where the step failed."""

    contacts: Contacts
    pairs: Sequence[ContactPair]
    pair_of_point: Sequence[int]
    impulses: Any
    rate: Scalar
    good: Scalar

    def force(self, row: Row) -> Vec3:
        """Return the force on the second body of a point [N], along world axes."""
        impulse = self.impulses[row].linear
        return Vec3(*(select(self.good, x * self.rate, 0.0) for x in impulse))

    def wrench(self, row: Row) -> Force:
        """Return the wrench on the second body of a point about the world's origin, along world axes."""
        force, turning = self.force(row), self.impulses[row].angular
        moment = self.contacts.points[row].position.cross(force)
        if turning is not None:
            moment = moment + Vec3(*(select(self.good, x * self.rate, 0.0) for x in turning))
        return Force(moment, force)

    def pressure(self, row: Row) -> Scalar:
        """Return the normal force of a point [N]."""
        return self.contacts.points[row].normal.dot(self.force(row))

    def of_bodies(self, count: int) -> list[Force]:
        """Return the wrench on each body about the world's origin, along world axes."""
        contacts = self.contacts

        def parts(row: Row) -> list[tuple[Row, Force]]:
            found = self.wrench(row)
            return [(contacts.second[row], found), (contacts.first[row], -found)]

        sums = contacts.near.scatter(parts, contacts.bodies, Force.zero())
        return [sums.at(body) for body in range(count)]

    def of_parts(self, model: Model, names: Sequence[str]) -> list[tuple[Vec3, Scalar]]:
        """Return the force on each named body or shape along world axes [N], and the sum of its normal
        forces."""
        sides = [(self.pairs[k].first, self.pairs[k].second) for k in self.pair_of_point]
        chosen = [_members(model, name, sides) for name in names]
        known = {side: k for k, side in enumerate(dict.fromkeys(x for own in chosen for x in own))}
        contacts, like = self.contacts, [self.rate]
        table = rows(len(known) + 1, like=like)
        places = [
            contacts.every.links(table, [known.get(_side(own[end]), len(known)) for own in sides])
            for end in (0, 1)
        ]

        def parts(row: Row) -> list[tuple[Row, list[Any]]]:
            force, pressure = self.force(row), self.pressure(row)
            return [(places[1][row], [force, pressure]), (places[0][row], [-force, pressure])]

        sums = contacts.near.scatter(parts, table, [Vec3.zero(), 0.0])
        found = []
        for own in chosen:
            total: list[Any] = [Vec3.zero(), 0.0]
            for side in own:
                part = sums.at(known[side])
                total = [total[0] + part[0], total[1] + part[1]]
            found.append((total[0], total[1]))
        return found


@final
@dataclass(frozen=True, eq=False)
class ContactWrenches:
    """The contact forces of a step where they are known as a wrench on each body alone."""

    wrenches: Sequence[Force]

    def of_bodies(self, count: int) -> list[Force]:
        """Return the wrench on each body about the world's origin, along world axes."""
        return list(self.wrenches)

    def of_parts(self, model: Model, names: Sequence[str]) -> list[tuple[Vec3, Scalar]]:
        """Refuse to tell forces of shapes and normal forces."""
        raise ArgumentError(
            "a Reading has the contact_wrenches of bodies; give a ContactForce or a Touch beside it for "
            "forces of shapes and normal forces"
        )


def _side(side: Any) -> tuple[int, int]:
    return side.body, side.number


def _members(model: Model, name: str, sides: Sequence[tuple[Any, Any]]) -> list[tuple[int, int]]:
    """Return the shapes that a name of a body or of a shape means, of those that may touch."""
    index = model.bodies[name].index if model.bodies.has(name) else None
    return [
        _side(side)
        for side in dict.fromkeys(x for pair in sides for x in pair)
        if (side.body == index if index is not None else side.shape.name == name)
    ]


@final
@dataclass(frozen=True, eq=False)
class StepEnd:
    """The state at the end of a step, where it began, and the forces in it.

    `time` [s]; `q`, `v` at the end and `q_start`, `v_start` at the start; `tau`: the joint forces;
    `controls`: what `step` was given, joint forces, targets or signals; `external (n_bodies, 6)` in
    `external_frame`.
    """

    model: Model
    time: Scalar
    dt: Scalar
    q: Sequence[Scalar]
    v: Sequence[Scalar]
    q_start: Sequence[Scalar]
    v_start: Sequence[Scalar]
    tau: Sequence[Scalar]
    controls: Sequence[Scalar] = ()
    contact: ContactForces | ContactWrenches | None = None
    external: Sequence[Sequence[Scalar]] = ()
    external_frame: str = "body"

    @property
    def clock(self) -> Scalar:
        """The time for functions of a model; None if that does not depend on it."""
        return self.time if self.model.time_dependent else None

    @cached_property
    def acceleration(self) -> list[Scalar]:
        """The mean rate of v in the step, `(nv,)`."""
        rate = 1.0 / self.dt
        return [(a - b) * rate for a, b in zip(self.v, self.v_start, strict=True)]

    @cached_property
    def motions(self) -> PerBody[BodyMotion]:
        """Pose, velocity and acceleration of each body at the end."""
        return body_motions(self.model, self.q, self.v, self.acceleration, time=self.clock)

    @cached_property
    def motions_at_start(self) -> PerBody[BodyMotion]:
        """Pose and velocity of each body where the step began, and its acceleration without dv/dt."""
        clock = self.time - self.dt if self.model.time_dependent else None
        return body_motions(self.model, self.q_start, self.v_start, time=clock)

    def motion(self, name: str) -> BodyMotion:
        """Return the motion of a body or frame at the end, in its own coordinates."""
        return self._of_frame(name, lambda: self.motions)

    def motion_at_start(self, name: str) -> BodyMotion:
        """Return the motion of a body or frame where the step began, as `motions_at_start` has it."""
        return self._of_frame(name, lambda: self.motions_at_start)

    def _of_frame(self, name: str, motions: Callable[[], PerBody[BodyMotion]]) -> BodyMotion:
        place = self.model.frame(name)
        if place.body < 0:
            return BodyMotion(place.placement.as_transform(), Motion.zero(), Motion.zero())
        return relative_motion(motions()[place.body], place.placement.as_transform())

    @cached_property
    def contact_wrenches(self) -> list[Force]:
        """The contact wrench on each body about the world's origin, along world axes [N m, N]."""
        count = len(self.model.bodies)
        return [Force.zero()] * count if self.contact is None else self.contact.of_bodies(count)

    def contact_forces(self, names: Sequence[str]) -> list[tuple[Vec3, Scalar]]:
        """Return the contact force on each named body or shape along world axes [N], and the sum of its
        normal forces."""
        if self.contact is None:
            return [(Vec3.zero(), 0.0)] * len(names)
        return self.contact.of_parts(self.model, names)


# Sensors.


class Sensor(ABC):
    """The abstract base of sensors: a reading of a fixed shape, made at the end of a step."""

    label: ClassVar[str]
    """The name of the reading, where none is given."""

    @abstractmethod
    def shape(self, model: Model) -> tuple[int, ...]:
        """Return the shape of the reading; refuse names that the model does not have."""

    @abstractmethod
    def read(self, end: StepEnd, memory: Sequence[Scalar], draw: Draw) -> Any:
        """Return the reading: a scalar, or nested lists or spatial values of that shape."""

    def memory_size(self, model: Model) -> int:
        """Return the count of numbers that the sensor remembers, zero at the start."""
        return 0

    def remember(self, end: StepEnd, memory: Sequence[Scalar], draw: Draw) -> list[Scalar]:
        """Return what is remembered after a step; called in every step, before `read`."""
        return []

    @property
    def draws(self) -> bool:
        """True if the sensor draws random numbers."""
        return False

    @property
    def function(self) -> RecordedFunction | None:
        """The caller's function that is read, as it was traced; None without one."""
        return None

    @property
    def has_function(self) -> bool:
        """True if the reading is a function of the caller's."""
        return False

    def record(
        self, model: Model, given: Mapping[str, tuple[int, ...]], parameters: Sequence[ArrayArgument]
    ) -> Sensor:
        """Return the sensor with what a function of the caller's computes now; `given`: the shapes of
        controls and external forces, where there are any."""
        return self


@final
@dataclass(frozen=True)
class SensorSet:
    """The sensors of a step, by name."""

    sensors: tuple[tuple[str, Sensor], ...] = ()

    @property
    def draws(self) -> bool:
        """True if a sensor draws random numbers."""
        return any(sensor.draws for _, sensor in self.sensors)

    @property
    def has_functions(self) -> bool:
        """True if a reading is a function of the caller's."""
        return any(sensor.has_function for _, sensor in self.sensors)

    @property
    def functions(self) -> tuple[RecordedFunction, ...]:
        """The recorded functions."""
        found = (sensor.function for _, sensor in self.sensors)
        return tuple(item for item in found if item is not None)

    @property
    def identity(self) -> tuple[Any, ...]:
        """The key that tells the sensors from others with the same functions."""
        return tuple((name, None if sensor.has_function else sensor) for name, sensor in self.sensors)

    @property
    def results(self) -> dict[str, str]:
        """The result of a step that has the reading, by the name of each sensor."""
        return {name: f"sensor {name}" for name, _ in self.sensors}

    def record(
        self, model: Model, given: Mapping[str, tuple[int, ...]], parameters: Sequence[ArrayArgument]
    ) -> SensorSet:
        """Return the sensors with what functions of the caller's compute now, as `Sensor.record` does."""
        return SensorSet(tuple((name, item.record(model, given, parameters)) for name, item in self.sensors))

    def carried_values(self, model: Model) -> dict[str, list[Scalar] | Scalar]:
        """Return what is carried from step to step, as it is at the start."""
        sizes = {f"memory of {name}": sensor.memory_size(model) for name, sensor in self.sensors}
        found: dict[str, Any] = {"draws": 0.0} if self.draws else {}
        return found | {name: [0.0] * size for name, size in sizes.items() if size}

    def read_all(
        self, make_end: Callable[[], StepEnd], given: Mapping[str, Any], good: Scalar
    ) -> dict[str, Any]:
        """Return what is carried on, where the step is good, and the readings, by the names of results.

        `given`: the arguments of the step. The readings are a loop of one pass, with a `StepEnd` of its own,
        which steps leave out whose results are not kept.
        """
        here = make_end()
        found: dict[str, Any] = {"draws": given["draws"] + 1.0} if self.draws else {}

        def drawing(number: int, part: int) -> Drawing:
            stream, counter = given.get("stream", (0.0, 0.0)), found.get("draws", 0.0)
            return Drawing(stream, counter, (2 * number + part) * DRAWS_APART)

        for number, (name, sensor) in enumerate(self.sensors):
            old = given.get(f"memory of {name}")
            if old is not None:
                new = sensor.remember(here, old, drawing(number, 0))
                found[f"memory of {name}"] = [select(good, a, b) for a, b in zip(new, old, strict=True)]

        def read(_: list[list[Scalar]]) -> list[list[Scalar]]:
            end = make_end()
            return [
                leaves(sensor.read(end, found.get(f"memory of {name}", ()), drawing(number, 1)))
                for number, (name, sensor) in enumerate(self.sensors)
            ]

        shapes = [sensor.shape(here.model) for _, sensor in self.sensors]
        readings = loop(1, read, [[0.0] * math.prod(shape) for shape in shapes])
        for result, shape, values in zip(self.results.values(), shapes, readings, strict=True):
            found[result] = _nest(values, shape)
        return found


NO_SENSORS: Final = SensorSet()


def _nest(values: Sequence[Scalar], shape: tuple[int, ...]) -> Any:
    """Return scalars in row-major order as nested lists."""
    if not shape:
        return values[0]
    size = len(values) // max(shape[0], 1)
    return [_nest(values[k * size : (k + 1) * size], shape[1:]) for k in range(shape[0])]
