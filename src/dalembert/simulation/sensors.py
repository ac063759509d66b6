"""Sensors: declarations of what is measured at the end of a step, compiled with it.

A sensor is a function of the state after a step and of the forces in it, on generic scalars; some remember
numbers from step to step. Readings are made for the steps that are kept only, the last one of a call.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, final

import numpy as np

from dalembert.algorithms.inverse_dynamics import rnea_spatial
from dalembert.algorithms.open_tree import require_open_tree
from dalembert.call.arguments import ArrayArgument, real_array
from dalembert.compiler.recording import RecordedFunction, record_function
from dalembert.contact.narrow_phase.rays import visible_shapes, way_to
from dalembert.errors import ArgumentError, DtypeError, UnknownNameError, items_of, positive_number
from dalembert.model.model import Model
from dalembert.model.tree import PerBody
from dalembert.scalar import Scalar, logical_and, rows, select, sqrt
from dalembert.simulation.sensing import NO_SENSORS, ContactWrenches, Draw, Sensor, SensorSet, StepEnd
from dalembert.spatial import Force, Transform, Vec3
from dalembert.spatial.rotations import quaternion_of_rotation

__all__ = [
    "ContactForce",
    "FootAirTime",
    "FramePose",
    "FrameVelocity",
    "HeightScan",
    "Imu",
    "JointState",
    "JointWrench",
    "Rays",
    "Reading",
    "Sensor",
    "StepEnd",
    "Touch",
]

Names: TypeAlias = str | Sequence[str]


@final
@dataclass(frozen=True)
class Imu(Sensor):
    """An inertial measurement unit on a body or frame: `(6,)`, angular velocity [rad/s], then specific force
    [m/s^2], acceleration less gravity, both along the frame's axes.

    The acceleration is the mean one of the last step. `gyro_noise` [rad/s] and `accelerometer_noise` [m/s^2]:
    standard deviations of each reading; `gyro_walk` [rad/s^1.5] and `accelerometer_walk` [m/s^2.5]: those of
    the biases after 1 s, which walk at random from zero.

    >>> model = da.models.pendulum(length=2.0)
    >>> simulation = da.Simulation(model, [np.pi / 2], dt=1e-4, sensors={"imu": da.sensors.Imu("tip")})
    >>> simulation.step()
    >>> print(simulation.sensors["imu"].round(2) + 0.0)  # it falls freely, but for the rod's pull
    [0. 0. 0. 0. 0. 0.]
    """

    label = "imu"

    frame: str
    gyro_noise: float = 0.0
    accelerometer_noise: float = 0.0
    gyro_walk: float = 0.0
    accelerometer_walk: float = 0.0

    def __post_init__(self) -> None:
        for name in ("gyro_noise", "accelerometer_noise", "gyro_walk", "accelerometer_walk"):
            _require_deviation(f"Imu: {name}", getattr(self, name))

    @property
    def draws(self) -> bool:
        return bool(self.gyro_noise or self.accelerometer_noise or self._walks)

    @property
    def _walks(self) -> bool:
        return bool(self.gyro_walk or self.accelerometer_walk)

    def shape(self, model: Model) -> tuple[int, ...]:
        model.frame(self.frame)
        return (6,)

    def memory_size(self, model: Model) -> int:
        return 6 * self._walks

    def remember(self, end: StepEnd, memory: Sequence[Scalar], draw: Draw) -> list[Scalar]:
        if not self._walks:
            return []
        spread = sqrt(end.dt)
        steps = [self.gyro_walk] * 3 + [self.accelerometer_walk] * 3
        return [bias + size * spread * x for bias, size, x in zip(memory, steps, draw(6), strict=True)]

    def read(self, end: StepEnd, memory: Sequence[Scalar], draw: Draw) -> list[Scalar]:
        before, now = end.motion_at_start(self.frame), end.motion(self.frame)
        R = now.pose.R
        gain = R @ now.velocity.linear - before.pose.R @ before.velocity.linear
        force = R.transposed_times(gain * (1.0 / end.dt) - end.model.gravity)
        found = [*now.velocity.angular, *force]
        if self._walks:
            found = [x + bias for x, bias in zip(found, memory, strict=True)]
        sizes = [self.gyro_noise] * 3 + [self.accelerometer_noise] * 3
        return found if not any(sizes) else _add_noise(found, sizes, draw(6))


@final
@dataclass(frozen=True)
class JointState(Sensor):
    """Positions, velocities or torques of joints, with `noise` of a standard deviation in their unit.

    `quantity`: "position" (numbers of q), "velocity" (of v) or "torque" (of the joint forces in the last
    step); `joints`: their names, None: all.
    """

    label = "joint_state"

    quantity: str = "position"
    joints: Names | None = None
    noise: float = 0.0

    def __post_init__(self) -> None:
        if self.quantity not in ("position", "velocity", "torque"):
            raise UnknownNameError.of("quantity", self.quantity, ("position", "velocity", "torque"))
        _keep_names(self, "joints")
        _require_deviation("JointState: noise", self.noise)

    @property
    def draws(self) -> bool:
        return self.noise > 0.0

    def shape(self, model: Model) -> tuple[int, ...]:
        return (len(self._places(model)),)

    def _places(self, model: Model) -> list[int]:
        kept, whole = (model.nq, "q_slice") if self.quantity == "position" else (model.nv, "v_slice")
        if self.joints is None:
            return list(range(kept))
        bodies = [_body_of_joint(model, name) for name in self.joints]
        return [place for body in bodies for place in range(kept)[getattr(body, whole)]]

    def read(self, end: StepEnd, memory: Sequence[Scalar], draw: Draw) -> list[Scalar]:
        values = {"position": end.q, "velocity": end.v, "torque": end.tau}[self.quantity]
        found = [values[place] for place in self._places(end.model)]
        return _add_noise(found, [self.noise] * len(found), draw(len(found))) if self.draws else found


@final
@dataclass(frozen=True)
class ContactForce(Sensor):
    """The sum of contact forces on bodies or shapes in the last step, `(n, 3)` [N] along world axes."""

    label = "contact_force"

    of: Names

    def __post_init__(self) -> None:
        _keep_names(self, "of")

    def shape(self, model: Model) -> tuple[int, ...]:
        _require_parts(model, self.of)
        return (len(self.of), 3)

    def read(self, end: StepEnd, memory: Sequence[Scalar], draw: Draw) -> list[list[Scalar]]:
        return [list(force) for force, _ in end.contact_forces(self.of)]


@final
@dataclass(frozen=True)
class Touch(Sensor):
    """The sum of the normal forces on bodies or shapes in the last step, `(n,)` [N]: zero where nothing
    touches."""

    label = "touch"

    of: Names

    def __post_init__(self) -> None:
        _keep_names(self, "of")

    def shape(self, model: Model) -> tuple[int, ...]:
        _require_parts(model, self.of)
        return (len(self.of),)

    def read(self, end: StepEnd, memory: Sequence[Scalar], draw: Draw) -> list[Scalar]:
        return [pressure for _, pressure in end.contact_forces(self.of)]


@final
@dataclass(frozen=True)
class FootAirTime(Sensor):
    """How long bodies or shapes have touched nothing, `(n, 2)` [s]: until now, zero in touch, and until they
    last touched down.

    It counts every step, whether or not that is kept.
    """

    label = "foot_air_time"

    of: Names

    def __post_init__(self) -> None:
        _keep_names(self, "of")

    def shape(self, model: Model) -> tuple[int, ...]:
        _require_parts(model, self.of)
        return (len(self.of), 2)

    def memory_size(self, model: Model) -> int:
        return 2 * len(self.of)

    def remember(self, end: StepEnd, memory: Sequence[Scalar], draw: Draw) -> list[Scalar]:
        found: list[Scalar] = []
        for k, (_, pressure) in enumerate(end.contact_forces(self.of)):
            now, last = memory[2 * k], memory[2 * k + 1]
            touches = pressure > 0.0
            landed = logical_and(touches, now > 0.0)
            found += [select(touches, 0.0, now + end.dt), select(landed, now, last)]
        return found

    def read(self, end: StepEnd, memory: Sequence[Scalar], draw: Draw) -> list[list[Scalar]]:
        return [[memory[2 * k], memory[2 * k + 1]] for k in range(len(self.of))]


@final
@dataclass(frozen=True)
class FramePose(Sensor):
    """The pose of a body or frame, `(7,)`: position [m], then a unit quaternion (w, x, y, z) with w >= 0, as
    seen from the body or frame `relative_to`, "world" by default."""

    label = "frame_pose"

    frame: str
    relative_to: str = "world"

    def shape(self, model: Model) -> tuple[int, ...]:
        model.frame(self.frame), model.frame(self.relative_to)
        return (7,)

    def read(self, end: StepEnd, memory: Sequence[Scalar], draw: Draw) -> list[Scalar]:
        X: Transform = end.motion(self.relative_to).pose.inverse() @ end.motion(self.frame).pose
        turn = quaternion_of_rotation(X.R)
        return [*X.p, *(select(turn[0] < 0.0, -x, x) for x in turn)]


@final
@dataclass(frozen=True)
class FrameVelocity(Sensor):
    """The velocity of a body or frame, `(6,)`: angular [rad/s], then that of its origin [m/s].

    It is that seen from the body or frame `relative_to`, along the axes of `axes`: "world", "frame", those of
    the frame itself, or the name of a body or frame.
    """

    label = "frame_velocity"

    frame: str
    relative_to: str = "world"
    axes: str = "world"

    def shape(self, model: Model) -> tuple[int, ...]:
        model.frame(self.frame), model.frame(self.relative_to), model.frame(self._axes)
        return (6,)

    @property
    def _axes(self) -> str:
        return self.frame if self.axes == "frame" else self.axes

    def read(self, end: StepEnd, memory: Sequence[Scalar], draw: Draw) -> list[Scalar]:
        own, other = end.motion(self.frame), end.motion(self.relative_to)
        to_world, back = own.pose.R, other.pose.R
        omega, base = to_world @ own.velocity.angular, back @ other.velocity.angular
        arm = own.pose.p - other.pose.p
        linear = to_world @ own.velocity.linear - back @ other.velocity.linear - base.cross(arm)
        R = end.motion(self._axes).pose.R
        return [*R.transposed_times(omega - base), *R.transposed_times(linear)]


@final
@dataclass(frozen=True)
class JointWrench(Sensor):
    """The wrench that each joint transmits to its body in the last step, `(n, 6)`: moment [N m] about the
    body's origin and force [N], along the body's axes. `joints`: their names, None: all.

    It is the inward pass of the recursive Newton–Euler algorithm (Featherstone 2008 Table 5.1) with the mean
    acceleration of the step, contact forces and external forces. Models without loops.
    """

    label = "joint_wrench"

    joints: Names | None = None

    def __post_init__(self) -> None:
        _keep_names(self, "joints")

    def shape(self, model: Model) -> tuple[int, ...]:
        require_open_tree(model, "JointWrench")
        return (len(self._bodies(model)), 6)

    def _bodies(self, model: Model) -> list[int]:
        if self.joints is None:
            return [body.index for body in model.bodies]
        return [_body_of_joint(model, name).index for name in self.joints]

    def read(self, end: StepEnd, memory: Sequence[Scalar], draw: Draw) -> list[list[Scalar]]:
        model, state = end.model, (end.q_start, end.v_start, end.acceleration)
        clock = end.time - end.dt if model.time_dependent else None
        given: dict[str, Any] = {"time": clock}
        touch = [wrench.to_list() for wrench in end.contact_wrenches]
        found = rnea_spatial(model, *state, external_forces=touch, external_frame="world", **given).f
        if end.external:
            still = ([*end.q_start], [0.0] * model.nv, [0.0] * model.nv)
            given |= {"external_forces": end.external, "external_frame": end.external_frame}
            pushed, alone = rnea_spatial(model, *still, **given).f, rnea_spatial(model, *still, time=clock).f
            found = PerBody([f + p - a for f, p, a in zip(found, pushed, alone, strict=True)])
        return [found[body].to_list() for body in self._bodies(model)]


@final
@dataclass(frozen=True)
class Rays(Sensor):
    """The way along rays from a body or frame to planes, boxes and height fields of the world, `(n,)` [m].

    `directions (n, 3)`: along the frame's axes; `reach` [m]: the reading where nothing is nearer.
    """

    label = "rays"

    frame: str
    directions: Sequence[Sequence[float]]
    reach: float = 10.0

    def __post_init__(self) -> None:
        rays = _rows_of("Rays: directions", self.directions, 3)
        lengths = [math.sqrt(sum(x * x for x in ray)) for ray in rays]
        if min(lengths) == 0.0:
            raise ArgumentError("Rays: a direction is zero; give three numbers that are not all zero")
        unit = tuple(tuple(x / size for x in ray) for ray, size in zip(rays, lengths, strict=True))
        object.__setattr__(self, "directions", unit)
        object.__setattr__(self, "reach", positive_number("Rays: reach", self.reach, "m"))

    def shape(self, model: Model) -> tuple[int, ...]:
        model.frame(self.frame)
        visible_shapes(model.world_shapes)
        return (len(self.directions),)

    def read(self, end: StepEnd, memory: Sequence[Scalar], draw: Draw) -> list[Scalar]:
        pose, shapes = end.motion(self.frame).pose, visible_shapes(end.model.world_shapes)

        def way(ray: list[Scalar]) -> Scalar:
            return way_to(shapes, pose.p, pose.R @ Vec3(*ray), self.reach)

        return _for_each(self.directions, way, pose.p.x)


@final
@dataclass(frozen=True)
class HeightScan(Sensor):
    """The height of planes, boxes and height fields of the world below points of a grid that goes with a body
    or frame, `(n,)` [m], above the frame's origin.

    `points (n, 2)` [m]: the grid in the horizontal plane, x along the frame's x axis as seen from above. Rays
    go down from `above` [m] over the frame's origin, as far as `reach` [m]: readings are above - reach at
    least.
    """

    label = "height_scan"

    frame: str
    points: Sequence[Sequence[float]]
    above: float = 0.5
    reach: float = 3.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "points", _rows_of("HeightScan: points", self.points, 2))
        object.__setattr__(self, "reach", positive_number("HeightScan: reach", self.reach, "m"))

    def shape(self, model: Model) -> tuple[int, ...]:
        model.frame(self.frame)
        visible_shapes(model.world_shapes)
        return (len(self.points),)

    def read(self, end: StepEnd, memory: Sequence[Scalar], draw: Draw) -> list[Scalar]:
        pose, shapes = end.motion(self.frame).pose, visible_shapes(end.model.world_shapes)
        ahead = pose.R.column(0)
        size = sqrt(ahead.x * ahead.x + ahead.y * ahead.y)
        c, s = ahead.x / size, ahead.y / size

        def height(point: list[Scalar]) -> Scalar:
            x, y = point
            o = Vec3(pose.p.x + c * x - s * y, pose.p.y + s * x + c * y, pose.p.z + self.above)
            return self.above - way_to(shapes, o, Vec3(0.0, 0.0, -1.0), self.reach)

        return _for_each(self.points, height, pose.p.x)


def _for_each(
    given: Sequence[Sequence[float]], function: Callable[[list[Scalar]], Scalar], like: Scalar
) -> list[Scalar]:
    """Return a function of each row of numbers, as a loop over them."""
    every = rows(len(given), like=like)
    columns = [every.numbers([float(x) for x in column]) for column in zip(*given, strict=True)]
    found = every.each(lambda row: function([column[row] for column in columns]))
    return [found.at(k) for k in range(len(given))]


def _rows_of(what: str, given: Any, size: int) -> tuple[tuple[float, ...], ...]:
    """Return rows of numbers of that size as tuples."""
    found = real_array(what, given)
    if found.ndim != 2 or found.shape[1] != size or not len(found) or not np.isfinite(found).all():
        raise ArgumentError(f"{what} has the shape {found.shape}; give finite numbers (n, {size})")
    return tuple(map(tuple, found.tolist()))


@final
@dataclass(frozen=True)
class Reading(Sensor):
    """A reading of your own: a function of a `StepEnd` on generic scalars, traced before each use, that
    returns a number or nested lists of numbers. Of the contact forces it has `contact_wrenches`.

    >>> height = da.sensors.Reading(lambda end: end.motion("tip").pose.p.z)
    >>> simulation = da.Simulation(da.models.pendulum(length=2.0), [0.0], sensors={"height": height})
    >>> simulation.step()
    >>> print(simulation.sensors["height"].round(6))
    -2.0
    """

    label = "reading"

    of: Callable[[StepEnd], Any]

    @property
    def has_function(self) -> bool:
        return True

    def shape(self, model: Model) -> tuple[int, ...]:
        raise NotImplementedError("the shape is that of the trace, a RecordedReading")

    def read(self, end: StepEnd, memory: Sequence[Scalar], draw: Draw) -> Any:
        return self.of(end)

    def record(
        self, model: Model, given: Mapping[str, tuple[int, ...]], parameters: Sequence[ArrayArgument]
    ) -> RecordedReading:
        """Return the reading as its function computes now; `given`: the shapes of controls and external
        forces, where there are any, and of nothing else."""
        nq, nv, count = model.nq, model.nv, len(model.bodies)
        shapes = {"time": (), "dt": (), "q": (nq,), "v": (nv,), "q_start": (nq,), "v_start": (nv,)}
        shapes |= {"tau": (nv,), **given, "contact_wrenches": (count, 6)}

        def call(model: Model, *arrays: Any) -> Any:
            found = dict(zip(shapes, arrays, strict=True))
            touch = ContactWrenches([Force.of(six) for six in found.pop("contact_wrenches")])
            return self.of(StepEnd(model, **found, contact=touch))

        arguments = [ArrayArgument(name, shape) for name, shape in shapes.items()]
        recorded = record_function("reading", self.of, model, arguments, parameters, call)
        return RecordedReading(recorded, tuple(shapes))


@final
@dataclass(frozen=True)
class RecordedReading(Sensor):
    """A reading of the caller's as its function computed when it was traced, from these parts of a step."""

    label = "reading"

    recorded: RecordedFunction
    parts: tuple[str, ...]

    @property
    def function(self) -> RecordedFunction:
        return self.recorded

    @property
    def has_function(self) -> bool:
        return True

    def shape(self, model: Model) -> tuple[int, ...]:
        return self.recorded.trace.outputs[0].shape

    def read(self, end: StepEnd, memory: Sequence[Scalar], draw: Draw) -> Any:
        arrays = [getattr(end, name) for name in self.parts[:-1]]
        wrenches = [wrench.to_list() for wrench in end.contact_wrenches]
        return self.recorded(end.model, *arrays, wrenches)


def _add_noise(values: Sequence[Scalar], sizes: Sequence[float], normal: Sequence[Scalar]) -> list[Scalar]:
    return [x + size * n for x, size, n in zip(values, sizes, normal, strict=True)]


def _require_deviation(what: str, value: Any) -> None:
    if value != 0.0:
        positive_number(what, value)


def _keep_names(sensor: Any, option: str) -> None:
    """Keep names as a tuple."""
    given = getattr(sensor, option)
    if given is not None:
        object.__setattr__(sensor, option, (given,) if isinstance(given, str) else tuple(items_of(given)))


def _require_parts(model: Model, names: Names) -> None:
    every = [*model.world_shapes, *(shape for body in model.bodies for shape in body.shapes)]
    shapes = [shape.name for shape in every if shape.name]
    for name in names:
        if not model.bodies.has(name) and name not in shapes:
            raise UnknownNameError.of("body or shape", name, (*model.bodies.names, *shapes))


def _body_of_joint(model: Model, name: str) -> Any:
    model.joint(name)  # which refuses a name that is unknown
    return next(body for body in model.bodies if body.joint_name == name)


Sensors: TypeAlias = Mapping[str, Sensor] | Sequence[Sensor] | Sensor

KINDS: Final = (
    *(ContactForce, FootAirTime, FramePose, FrameVelocity, HeightScan, Imu, JointState, JointWrench, Rays),
    *(Reading, Touch),
)
"""All sensors: kernels on disk are told apart by the numbers of these, and by the trace of a reading."""


def sensors_of(given: Any) -> SensorSet:
    """Return sensors by name: those of a mapping, or of a list by their usual names."""
    found: dict[str, Sensor] = {}
    listed = [given] if isinstance(given, Sensor | Mapping) else items_of(given)
    for item in listed:
        own = item if isinstance(item, Mapping) else {getattr(item, "label", ""): item}
        for name, sensor in own.items():
            if not isinstance(name, str) or type(sensor) not in KINDS:
                raise DtypeError(
                    f"sensors: {name!r} is {type(sensor).__name__}; give sensors of da.sensors, or a dict of "
                    "them; da.sensors.Reading(f) takes a function of yours"
                )
            if name in found:
                raise ArgumentError(f'sensors: "{name}" is the name of two; give a dict of them by name')
            found[name] = sensor
    return SensorSet(tuple(found.items()))


def split_sensors(observe: Any) -> tuple[SensorSet, list[Any]]:
    """Return the sensors among what a rollout observes, and the rest."""
    if observe == () and isinstance(observe, tuple):
        return NO_SENSORS, []
    listed = [observe] if isinstance(observe, str | Mapping | Sensor) else items_of(observe)
    sensors: list[Any] = []
    rest: list[Any] = []
    for item in listed:
        if isinstance(item, Mapping):
            own = {name: value for name, value in item.items() if isinstance(value, Sensor)}
            sensors.append(own)
            rest.append({name: value for name, value in item.items() if name not in own})
        else:
            (sensors if isinstance(item, Sensor) else rest).append(item)
    return sensors_of(sensors), rest
