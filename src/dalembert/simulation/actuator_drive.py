"""Actuators inside a step: what `da.control.Actuators` means, on generic scalars.

An actuator of one joint with the gear ratio k acts on it as

    tau = k (gain u + b0 + b1 l' + b2 dl'/dt) = tau_0 - kp h v' - kd v',                               (1)

    kp = -b1 k^2,   kd = -b2 k^2,   tau_0 = k (gain u + b0 + b1 l)

with l' = l + h k v' at the end of a step of h: where kp and kd are not negative it is a motor under PD
control, implicit in the step, whose force is clipped to a range. A range that is not symmetric about zero is
one about its middle, which acts as a force of its own. Other actuators act by their force at the start.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, final

import numpy as np

from dalembert.algorithms.aligned import aligned
from dalembert.algorithms.control_laws import implicit_acceleration
from dalembert.algorithms.springs import actuator_lengths, clip_to_range, require_actuators
from dalembert.call.arguments import Array, ArrayArgument
from dalembert.compiler.recording import RecordedFunction, record_function
from dalembert.contact.step_terms import Motor
from dalembert.control import Actuators, Servo, Signal
from dalembert.errors import ShapeError
from dalembert.model.body import bounds_of
from dalembert.model.force_elements import Actuator
from dalembert.model.model import Model
from dalembert.scalar import Scalar, is_zero, literal
from dalembert.simulation.drives import Drive, drive_of, motor_forces


class _ImplicitForce(NamedTuple):
    """A force on one velocity variable by Eq. (1), and the range to which it is clipped."""

    place: int
    constant: Scalar
    kp: float
    kd: float
    low: float
    high: float


def drive_and_constants(
    controls: object, model: Model
) -> tuple[Drive | ActuatorDrive | None, dict[str, Array]]:
    """Return the motors or actuators that controls compile into a step of a model, None for others, and their
    arguments that are the same in all steps, such as gains."""
    if isinstance(controls, Servo):
        gains = controls.gains(model)
        return drive_of(controls, gains), gains
    if not isinstance(controls, Actuators):
        return None, {}
    require_actuators(model)
    most = controls.longest_delay
    drive = ActuatorDrive(controls.ctrl if callable(controls.ctrl) else None, most)
    return drive, {"delay": np.asarray(controls.delay, np.float64)} if most else {}


@final
@dataclass(frozen=True)
class ActuatorDrive:
    """The actuators of a model; `signal`: where their control signals come from, else an argument; the
    longest delay of these."""

    signal: Signal | None = None
    delay: int = 0

    @property
    def delayed_argument(self) -> str:
        """The argument that is delayed."""
        return "ctrl"

    def record(self, model: Model, parameters: Sequence[ArrayArgument]) -> ActuatorDrive:
        """Return the drive with what the function of the caller's computes now."""
        if self.signal is None:
            return self
        signal = self.signal

        def call(model: Model, time: Scalar, q: Sequence[Scalar], v: Sequence[Scalar]) -> list[Scalar]:
            found = list(signal(model, time, q, v))
            if len(found) != len(model.actuators):
                raise ShapeError(
                    f"Actuators: ctrl returned {len(found)} numbers; this model has {len(model.actuators)} "
                    "actuators"
                )
            return found

        given = [ArrayArgument("time", ()), ArrayArgument("q", (model.nq,)), ArrayArgument("v", (model.nv,))]
        return replace(self, signal=record_function("ctrl", signal, model, given, parameters, call))

    @property
    def has_functions(self) -> bool:
        """True if the signals are a function of the caller's."""
        return self.signal is not None

    @property
    def functions(self) -> tuple[RecordedFunction, ...]:
        """The signals, if they are a recorded function."""
        return (self.signal,) if isinstance(self.signal, RecordedFunction) else ()

    @property
    def identity(self) -> tuple[Any, ...]:
        """The key that tells the drive from others of the same model and arguments."""
        return ("actuators", self.delay)

    def arguments(self, model: Model) -> dict[str, tuple[int, ...]]:
        """Return the arguments of a step, with shapes."""
        shapes: dict[str, tuple[int, ...]] = {"delay": ()} if self.delay else {}
        return shapes if self.signal is not None else {"ctrl": (len(model.actuators),), **shapes}

    def motors(self, model: Model, given: dict[str, Any], time: Scalar) -> tuple[list[Scalar], list[Motor]]:
        """Return the forces that act as they are, and the motors, in the state at the start of a step."""
        tau, implicit = self._forces(model, given, time)
        motors = []
        for item in implicit:
            limited = math.isfinite(item.low) and math.isfinite(item.high)
            middle = 0.5 * (item.low + item.high) if limited else 0.0
            effort = 0.5 * (item.high - item.low) if limited else math.inf
            if middle:
                tau[item.place] = tau[item.place] + middle
            constant = item.constant - middle
            error, v_ref = (constant / item.kp, 0.0) if item.kp > 0.0 else (0.0, constant / item.kd)
            motors.append(Motor(item.place, error, v_ref, item.kp, item.kd, effort))
        return tau, motors

    def stable_forces(self, model: Model, given: dict[str, Any], time: Scalar) -> list[Scalar]:
        """Return tau `(nv,)` to be held for a step without contact: that of stable PD."""
        q, v, dt = given["q"], given["v"], given["dt"]
        tau, motors = self.motors(model, given, time)
        gain: list[Scalar] = [0.0] * model.nv
        start = list(tau)
        for motor in motors:
            gain[motor.place] = gain[motor.place] + motor.kd + dt * motor.kp
            own = motor.kp * (motor.error - dt * v[motor.place]) + motor.kd * (motor.v_ref - v[motor.place])
            start[motor.place] = start[motor.place] + own
        clock = time if model.time_dependent else None
        a = implicit_acceleration(aligned(model), q, v, start, gain, dt, clock)
        end = [x + dt * y for x, y in zip(v, a, strict=True)]
        return [x + y for x, y in zip(tau, motor_forces(model, motors, end, dt), strict=True)]

    def _forces(
        self, model: Model, given: dict[str, Any], time: Scalar
    ) -> tuple[list[Scalar], list[_ImplicitForce]]:
        """Return the forces of actuators that act as at the start, and those that are implicit."""
        q, v = given["q"], given["v"]
        u = given["ctrl"] if self.signal is None else list(self.signal(model, time, q, v))
        lengths = actuator_lengths(model, q, time=time if model.time_dependent else None)
        efforts = _efforts(model)
        tau: list[Scalar] = [0.0] * model.nv
        servos: dict[int, list[_ImplicitForce]] = {}
        for item, signal, path in zip(model.actuators, u, lengths, strict=True):
            row = path.row
            places = [place for place, ratio in enumerate(row) if not is_zero(ratio)]
            force = item.gain * clip_to_range(signal, item.control) + item.bias[0]
            k = (literal(row[places[0]]) or 0.0) if len(places) == 1 else 0.0
            kp, kd = max(0.0, -item.bias[1]) * k * k, max(0.0, -item.bias[2]) * k * k
            force = force + item.bias[1] * path.length  # its change in the step is that of kp in Eq. (1)
            if not kd:
                force = force + item.bias[2] * path.rate(v)
            if k:
                own = _ImplicitForce(places[0], k * force, kp, kd, *_range(item, k))
                servos.setdefault(places[0], []).append(own)
                continue
            force = clip_to_range(force, item.force)
            for place in places:
                tau[place] = tau[place] + row[place] * force
        return tau, _within_efforts(servos, efforts, tau)


def _within_efforts(
    servos: dict[int, list[_ImplicitForce]], efforts: Sequence[float], tau: list[Scalar]
) -> list[_ImplicitForce]:
    """Return the implicit forces, one for all actuators of a joint that have no range; what is not implicit
    is added to tau.

    The effort of a joint limits the sum of all these forces; an implicit force with a range of its own is
    limited by itself.
    """
    found = []
    for place, effort in enumerate(efforts):
        constant, kp, kd = tau[place], 0.0, 0.0
        for item in servos.get(place, ()):
            limited = item.high != math.inf
            if limited and (item.kp or item.kd):
                found.append(item._replace(low=max(item.low, -effort), high=min(item.high, effort)))
                continue
            constant = constant + clip_to_range(item.constant, (item.low, item.high) if limited else None)
            kp, kd = kp + item.kp, kd + item.kd
        tau[place] = 0.0
        if kp or kd:
            found.append(_ImplicitForce(place, constant, kp, kd, -effort, effort))
        else:
            tau[place] = constant if effort == math.inf else clip_to_range(constant, (-effort, effort))
    return found


def _efforts(model: Model) -> list[float]:
    """Return the greatest force of the motors of each velocity variable."""
    found = [math.inf] * model.nv
    for body in model.bodies:
        if body.dependence is None:
            found[body.v_slice] = [float(x) for x in bounds_of(body, "effort")]
    return found


def _range(item: Actuator, k: float) -> tuple[float, float]:
    """Return the range of the joint force of an actuator with the gear ratio k."""
    if item.force is None:
        return -math.inf, math.inf
    a, b = k * item.force[0], k * item.force[1]
    return min(a, b), max(a, b)
