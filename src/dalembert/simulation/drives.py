"""Motors under PD control inside a step: what `da.control.Servo` means, on generic scalars."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias, final

import numpy as np
import numpy.typing as npt

from dalembert.algorithms.aligned import aligned
from dalembert.algorithms.control_laws import stable_pd_forces
from dalembert.call.arguments import Array, ArrayArgument, as_array
from dalembert.compiler.recording import RecordedFunction, record_function
from dalembert.contact.step_terms import Motor
from dalembert.control import Reference, Servo, driven_places
from dalembert.errors import DtypeError, ShapeError, TracingError
from dalembert.model.model import Model
from dalembert.model.tree import Tree
from dalembert.scalar import Scalar, literal, logical_or, maximum, minimum, select

NO_DAMPING = 1e-12
"""The damping of a motor without any, so that it can be divided by."""

# The inputs of a simulated system: arrays for all steps, or step by step.

Callback: TypeAlias = Callable[[Array, Array, Array], npt.ArrayLike]
"""tau `(…, nv)` from the time `(…,)` and the state of all samples."""
Policy: TypeAlias = Callable[[Model, Scalar, Sequence[Scalar], Sequence[Scalar]], Sequence[Scalar]]
"""tau `(nv,)` of (model, t, q, v), on generic scalars."""


class Series(NamedTuple):
    """Values of all steps `(…, steps, *own)`, or `(…, *own)` where they are held."""

    values: Array
    stepwise: bool

    def at_frames(self, batch: tuple[int, ...], frames: int, every: int) -> Array:
        """Return the values in the last step before each frame but the first, `(…, T, n)`."""
        last = self.values[..., every - 1 :: every, :] if self.stepwise else self.values[..., np.newaxis, :]
        last = last[..., :frames, :].copy()  # the caller may go on using the array
        return np.broadcast_to(last, (*batch, frames, last.shape[-1]))


def series(name: str, given: npt.ArrayLike, own: tuple[int, ...], steps: int) -> Series:
    """Return a series from values `own` (held), `(…, 1, *own)` (held by sample) or `(…, steps, *own)`."""
    values = as_array(name, given, own)
    axis = values.ndim - len(own) - 1
    if axis < 0:
        return Series(values, False)
    if values.shape[axis] == 1:
        return Series(np.squeeze(values, axis), False)
    if values.shape[axis] == steps:
        return Series(values, True)
    wanted = ", ".join(map(str, own))
    raise ShapeError(
        f"{name} has the shape {values.shape}; expected (…, {steps}, {wanted}), a value for each of the "
        f"{steps} steps, or ({wanted},), or (…, 1, {wanted}), held throughout"
    )


@final
class Asked:
    """Joint forces that a Python function gives step by step, written where the kernel reads them."""

    def __init__(self, callback: Callback, values: Array, start: Array, dt: Array) -> None:
        """`values (…, steps, nv)`: what the kernel reads."""
        self._callback = callback
        self._start, self._dt = start, dt
        self.values = values

    def before(self, step: int, q: Array, v: Array) -> None:
        """Ask for the forces of a step."""
        found = self._callback(self._start + step * self._dt, q.copy(), v.copy())
        tau = np.asarray(found)
        if tau.dtype.kind not in "biuf":
            what = "None" if found is None else f"an array of type {tau.dtype}"
            raise DtypeError(f"the callback returned {what}; expected the joint forces, real numbers")
        expected = self.values[..., step, :].shape
        try:
            self.values[..., step, :] = tau
        except ValueError:
            raise ShapeError(
                f"the callback returned an array of the shape {tau.shape}; expected {expected}"
            ) from None


def recorded_policy(
    policy: Policy, model: Model, parameters: Sequence[ArrayArgument] = ()
) -> RecordedFunction:
    """Return what a policy computes now, as a policy."""

    def call(model: Model, time: Scalar, q: Sequence[Scalar], v: Sequence[Scalar]) -> list[Scalar]:
        return forces_of(policy, model, time, q, v)

    arguments = [ArrayArgument("time", ()), ArrayArgument("q", (model.nq,)), ArrayArgument("v", (model.nv,))]
    return record_function("policy", policy, model, arguments, parameters, call)


def forces_of(
    policy: Policy, model: Model, time: Scalar, q: Sequence[Scalar], v: Sequence[Scalar]
) -> list[Scalar]:
    """Return tau `(nv,)` of a policy, or refuse another shape."""
    found: Any = policy(model, time, q, v)
    try:
        tau = list(found)
    except (TypeError, TracingError):
        what = "None" if found is None else "one number"
        raise DtypeError(f"the policy returned {what}; expected a list of {model.nv} joint forces") from None
    if len(tau) != model.nv:
        raise ShapeError(f"the policy returned {len(tau)} joint forces; this model has {model.nv}")
    for force in tau:
        if isinstance(force, str | complex | list | tuple | dict | None):
            raise DtypeError(f"the policy returned {force!r} among the joint forces; expected numbers")
    return tau


def drive_of(servo: Servo, gains: Mapping[str, Array]) -> Drive:
    """Return the drive that a servo with these gains compiles into a step."""
    v_ref = servo.v_ref if callable(servo.v_ref) else servo.v_ref is not None
    reference = servo.q_ref if callable(servo.q_ref) else None
    return Drive(driven_places(gains), reference, v_ref, servo.no_load_speed is not None, servo.longest_delay)


@final
@dataclass(frozen=True)
class Drive:
    """The motors of a model: the places of their velocity variables, and where their targets come from:
    traced functions, else arguments of the step, `v_ref` only if there is one; whether the speed bounds the
    force; the longest delay of targets.
    """

    driven: tuple[int, ...]
    q_ref: Reference | None = None
    v_ref: Reference | bool = False
    has_speed_limit: bool = False
    delay: int = 0

    @property
    def delayed_argument(self) -> str:
        """The argument that is delayed."""
        return "q_ref"

    def record(self, model: Model, parameters: Sequence[ArrayArgument]) -> Drive:
        """Return the drive with what the functions of the caller's compute now."""

        def record(name: str, size: int) -> Any:
            function = getattr(self, name)
            if not callable(function):
                return function

            def call(model: Model, time: Scalar) -> list[Scalar]:
                return _target(name, function, model, time, size)

            time = [ArrayArgument("time", ())]
            return record_function(f"reference {name}", function, model, time, parameters, call)

        return replace(self, q_ref=record("q_ref", model.nq), v_ref=record("v_ref", model.nv))

    @property
    def has_functions(self) -> bool:
        """True if a target is a function of the caller's."""
        return callable(self.q_ref) or callable(self.v_ref)

    @property
    def functions(self) -> tuple[RecordedFunction, ...]:
        """The targets that are recorded functions, q_ref first."""
        return tuple(item for item in (self.q_ref, self.v_ref) if isinstance(item, RecordedFunction))

    def arguments(self, model: Model) -> dict[str, tuple[int, ...]]:
        """Return the arguments of a step, with shapes."""
        shapes: dict[str, tuple[int, ...]] = dict.fromkeys(("kp", "kd", "effort"), (model.nv,))
        if self.q_ref is None:
            shapes["q_ref"] = (model.nq,)
        if self.v_ref is True:
            shapes["v_ref"] = (model.nv,)
        if self.has_speed_limit:
            shapes |= dict.fromkeys(("no_load_speed", "stall"), (model.nv,))
        return shapes | ({"delay": ()} if self.delay else {})

    @property
    def identity(self) -> tuple[Any, ...]:
        """The key that tells the drive from others of the same model and arguments."""
        return self.driven if not self.delay else (*self.driven, "delay", self.delay)

    def motors(self, model: Model, given: dict[str, Any], time: Scalar) -> tuple[list[Scalar], list[Motor]]:
        """Return joint forces beside the motors, zero, and one motor for each driven velocity variable, in
        the state at the start of a step.
        """
        q, kp, kd, effort = given["q"], given["kp"], given["kd"], given["effort"]
        q_ref, v_ref = self._targets(model, given, time)
        error: list[Scalar] = [0.0] * model.nv
        for body in model.bodies:
            own = range(body.v_slice.start, body.v_slice.stop)
            if body.dependence is None and not set(own).isdisjoint(self.driven):
                error[body.v_slice] = body.joint.difference(body.own_q(q), body.own_q(q_ref))
        # A sample without gains at a joint that others drive: a motor that does nothing.
        motors = [
            Motor(i, error[i], v_ref[i], kp[i], maximum(kd[i], NO_DAMPING), effort[i]) for i in self.driven
        ]
        tau: list[Scalar] = [0.0] * model.nv
        if self.has_speed_limit:
            for k, motor in enumerate(motors):
                low, high = self._range(given, motor.place)
                tau[motor.place], motors[k] = _within_range(motor, low, high)
        return tau, motors

    def _range(self, given: dict[str, Any], i: int) -> tuple[Scalar, Scalar]:
        """Return the bounds of the force of motor i at its speed where the step begins."""
        speed, stall, effort = (
            given["v"][i] / given["no_load_speed"][i],
            given["stall"][i],
            given["effort"][i],
        )
        high = maximum(minimum(stall * (1.0 - speed), effort), 0.0)
        return -maximum(minimum(stall * (1.0 + speed), effort), 0.0), high

    def stable_forces(self, model: Model, given: dict[str, Any], time: Scalar) -> list[Scalar]:
        """Return tau `(nv,)` of stable PD, to be held for a step without contact."""
        q_ref, v_ref = self._targets(model, given, time)
        tau = stable_pd_forces(
            aligned(model),
            given["q"],
            given["v"],
            q_ref,
            given["dt"],
            v_ref,
            **{name: given[name] for name in ("kp", "kd", "effort")},
            time=time if model.time_dependent else None,
        )
        if self.has_speed_limit:
            for i in self.driven:
                low, high = self._range(given, i)
                tau[i] = maximum(minimum(tau[i], high), low)
        return tau

    def _targets(
        self, model: Model, given: dict[str, Any], time: Scalar
    ) -> tuple[Sequence[Scalar], Sequence[Scalar]]:
        q_ref = given["q_ref"] if self.q_ref is None else _target("q_ref", self.q_ref, model, time, model.nq)
        if self.v_ref is True:
            return q_ref, given["v_ref"]
        if self.v_ref:
            return q_ref, _target("v_ref", self.v_ref, model, time, model.nv)
        return q_ref, [0.0] * model.nv


def _within_range(motor: Motor, low: Scalar, high: Scalar) -> tuple[Scalar, Motor]:
    """Return a constant force and a motor that together have the force of a motor, within a range:
    tau = m + clip(tau - m), m the middle of the range."""
    stiff = motor.kp > 0.0
    middle = select(logical_or(stiff, motor.kd > NO_DAMPING), 0.5 * (low + high), 0.0)
    by_position = select(stiff, middle, 0.0) / select(stiff, motor.kp, 1.0)
    by_velocity = select(stiff, 0.0, middle) / motor.kd
    return middle, motor._replace(
        error=motor.error - by_position, v_ref=motor.v_ref - by_velocity, effort=0.5 * (high - low)
    )


def delay_line(given: dict[str, Any], name: str, most: int) -> tuple[list[Scalar], list[list[Scalar]]]:
    """Return the target that acts in a step, and the targets of the steps until now, the newest first;
    before the first step its target had been given."""
    now, first = list(given[name]), given["lasted"] <= 0.0
    history = [now]
    for row in given["targets"]:
        history.append([select(first, a, b) for a, b in zip(now, row, strict=True)])
    acting = now
    for k in range(1, most + 1):
        late = given["delay"] > k - 0.5
        acting = [select(late, a, b) for a, b in zip(history[k], acting, strict=True)]
    return acting, history[:most]


def motor_forces(model: Tree, motors: Sequence[Motor], v: Sequence[Scalar], dt: Scalar) -> list[Scalar]:
    """Return tau `(nv,)` that motors gave in a step that ended with velocities v."""
    tau: list[Scalar] = [0.0] * model.nv
    for motor in motors:
        u, bound = v[motor.place], motor.effort
        force = motor.kp * (motor.error - dt * u) + motor.kd * (motor.v_ref - u)
        if literal(bound) != math.inf:
            force = maximum(minimum(force, bound), -bound)
        tau[motor.place] = tau[motor.place] + force
    return tau


def _target(name: str, function: Reference, model: Model, time: Scalar, size: int) -> list[Scalar]:
    found = list(function(model, time))
    if len(found) != size:
        raise ShapeError(f"Servo: {name} returned {len(found)} numbers; this model has {size}")
    return found
