"""Control laws on the dynamics: functions of a state and a target that return joint forces.

`Servo` is PD control inside a rollout, `Actuators` drives the actuators of a model, `Belt` is a motion for
`prescribed` joints. Every other law takes one
sample or any leading batch shape and is compiled for the model on first use, like the functions of
`dalembert` itself. `dalembert.algorithms.control_laws` has them on generic scalars, for use inside functions
of your own that `da.compile` compiles.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias, final

import numpy as np
import numpy.typing as npt

import dalembert.algorithms.control_laws
import dalembert.algorithms.springs  # noqa: F401 (both declare functions of this module)
from dalembert.api.calls import Array, ArrayLike, Check, known_frame, per_direction, positive_gain, results
from dalembert.api.declared import actuator_forces as actuator_forces
from dalembert.api.declared import consistent_inverse as consistent_inverse
from dalembert.api.declared import feedback_linearization as feedback_linearization
from dalembert.api.declared import gravity_compensation as gravity_compensation
from dalembert.api.declared import operational_inertia as operational_inertia
from dalembert.api.declared import pd as pd
from dalembert.api.declared import posture_forces as posture_forces
from dalembert.api.declared import stable_pd as stable_pd
from dalembert.call.arguments import as_array
from dalembert.errors import ArgumentError, ModelError, StateError, short_repr
from dalembert.host.foreign_arrays import is_foreign
from dalembert.model.joints import Free
from dalembert.model.model import Model
from dalembert.scalar import Scalar

__all__ = [
    "Actuators",
    "Belt",
    "Servo",
    "actuator_forces",
    "consistent_inverse",
    "feedback_linearization",
    "gravity_compensation",
    "operational_inertia",
    "operational_space",
    "pd",
    "posture_forces",
    "stable_pd",
]

Signal: TypeAlias = Callable[[Model, Scalar, Sequence[Scalar], Sequence[Scalar]], Sequence[Scalar]]
"""Control signals `(nu,)` of (model, t, q, v), on generic scalars."""

MotionFunction: TypeAlias = Callable[[Model, Scalar], Scalar | Sequence[Scalar]]
"""Positions or velocities of a joint as a function of (model, t), on generic scalars."""

ROTATION_TOLERANCE: Final = {"float64": 1e-6, "float32": 1e-4}
"""Largest deviation of R R^T from the identity."""


def operational_space(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    frame_name: str,
    position: ArrayLike | None = None,
    rotation: ArrayLike | None = None,
    *,
    velocity: ArrayLike | None = None,
    acceleration: ArrayLike | None = None,
    stiffness: ArrayLike,
    damping: ArrayLike | None = None,
    null_space: ArrayLike | None = None,
    regularization: ArrayLike | None = None,
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = None,
) -> Array:
    """Compute tau = b + J^T Lambda (x''* - J' v) + N^T tau_0 `(…, nv)`, which drives a frame to a target.

    tau [N m or N] moves the frame like a mass on a spring: x''* = x''_ref - D (x' - x'_ref) - K (x - x_ref),
    Lambda = (J M^-1 J^T)^-1, N = 1 - M^-1 J^T Lambda J. `position (…, 3)` [m] and `rotation (…, 3, 3)` (frame
    to world): the target of the frame in the world, both or one of them. The task has three rows for each,
    angular first, along world axes; the error of a rotation is its rotation vector. `velocity` and
    `acceleration` of the target have one number for each row and are zero by default. `stiffness` K [1/s^2]
    and `damping` D [1/s]: one number, or one for each row; D is critical by default. `null_space`: joint
    forces tau_0 `(…, nv)` that act in the null space of the task (see `posture_forces`). `regularization`:
    epsilon on the diagonal of J M^-1 J^T, which bounds the forces near singularities. Every joint must be
    actuated.

    Source: Todorov, "Using the dynamics for control"; Khatib 1987; Featherstone 2008 §7.2.

    >>> model = da.models.arm6()
    >>> q, v = model.random_state(0)
    >>> hand = model.bodies[-1].name
    >>> x, x_rate, _ = da.kinematics.point_motion(model, q, v, 0.0 * v, hand)
    >>> tau = da.control.operational_space(model, q, v, hand, x + [0.1, 0.0, 0.0], stiffness=4.0, damping=1.0)
    >>> a = da.forward_dynamics(model, q, v, tau)
    >>> np.allclose(da.kinematics.point_motion(model, q, v, a, hand)[2], [0.4, 0.0, 0.0] - x_rate)
    True
    """
    if position is None and rotation is None:
        raise ArgumentError("operational_space: give a position, a rotation or both as the target")
    if rotation is not None and check in (None, "raise") and not is_foreign(rotation):
        _require_rotation(rotation)
    known = regularization is not None and not is_foreign(regularization)
    if known and np.any(as_array("regularization", regularization, (), follow=True) < 0.0):
        raise ArgumentError(f"operational_space: regularization is {regularization!r}; give a number >= 0")
    beside = [("q", q), ("v", v)]
    rows = 3 * ((position is not None) + (rotation is not None))
    before, after = 3 * (rotation is None), 3 * (position is None)

    def per_row(name: str, value: ArrayLike) -> Array:
        return per_direction(name, value, rows, beside, before=before, after=after)

    arrays = {
        "position": position,
        "rotation": rotation,
        "velocity": None if velocity is None else per_row("velocity", velocity),
        "acceleration": None if acceleration is None else per_row("acceleration", acceleration),
        "damping": None if damping is None else positive_gain("damping", per_row("damping", damping)),
        "null_space": null_space,
        "regularization": regularization,
        "time": time,
    }
    K = positive_gain("stiffness", per_row("stiffness", stiffness))
    options = {"where": known_frame(model, frame_name)}
    forces: Array = results(model, "operational_space", (q, v, K), arrays, None, options, out, check)
    return forces


def _require_rotation(rotation: ArrayLike) -> None:
    """Raise an error for a target that is not a rotation, R R^T = 1 and det R = 1; NaN samples pass."""
    R = as_array("rotation", rotation, (3, 3), follow=True)
    with np.errstate(invalid="ignore"):
        error = np.abs(R @ np.swapaxes(R, -1, -2) - np.eye(3)).max(axis=(-2, -1), initial=0.0)
        wrong = (error > ROTATION_TOLERANCE[R.dtype.name]) | (np.linalg.det(R) < 0.0)
    if np.any(wrong):
        raise StateError(
            f"operational_space: rotation is no rotation matrix, R R^T is off by {np.nanmax(error):.3g}; its "
            "columns are the axes of the frame in the world"
        )


Reference: TypeAlias = Callable[[Model, Scalar], Sequence[Scalar]]
"""A target as a function of (model, t), on generic scalars."""

MAX_DELAY: Final = 256
"""The longest delay [steps]: so many targets are carried from step to step."""

UNBOUNDED_EFFORT: Final = 1e30
"""Finite effort [N m, N] that replaces an infinite limit, so that products with zero stay finite."""


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Servo:
    """PD control of the actuated joints, for the `controls` of `da.rollout`:

        tau = kp (q_ref - q') + kd (v_ref - v'),        |tau| <= effort

    with q', v' at the end of the step, so that it is stable for all gains. q_ref - q' is the displacement of
    `da.difference`, for a ball joint the rotation vector. With rigid contact tau is solved together with the
    contact forces; without, it is that of `stable_pd`, constant during the step of the integrator.

    `kp` [N m/rad, N/m] and `kd` [N m s/rad, N s/m]: one number for all joints that have motors, or one for
    each velocity variable `(…, nv)`; joints with neither move freely. `q_ref`: None holds the initial
    configuration; `(nq,)` or `(…, 1, nq)` is constant, `(…, steps, nq)` has one target for each step; or a
    function of (model, t) on generic scalars. `v_ref` likewise `(nv,)`; None: at rest. `effort` [N m, N]: one
    number or `(…, nv)`; None: the model's limits.

    Motors: `no_load_speed` v_0 [rad/s, m/s] and `stall` tau_s [N m, N], numbers or `(…, nv)`, bound the force
    by the speed v where the step begins, as a direct-current motor does:

        -tau_s (1 + v / v_0) <= tau <= tau_s (1 - v / v_0),    within the effort and zero

    without v_0 they have no such bound; without tau_s it is the effort. `delay`: whole number of steps, or
    one for each sample, from the time that a target q_ref is given to when it acts; until then the first one
    does. Friction of drives is that of joints in the model.

    Source: Tan, Liu and Turk, "Stable Proportional-Derivative Controllers", 2011.

    >>> model = da.models.pendulum()
    >>> servo = da.control.Servo(kp=1e6, kd=1e4, q_ref=[0.5])
    >>> held = da.rollout(model, [0.0], [0.0], servo, steps=200, dt=0.01)
    >>> print(f"{held.q[-1, 0]:.4f}")
    0.5000
    """

    kp: npt.ArrayLike
    kd: npt.ArrayLike
    q_ref: npt.ArrayLike | Reference | None = None
    v_ref: npt.ArrayLike | Reference | None = None
    effort: npt.ArrayLike | None = None
    no_load_speed: npt.ArrayLike | None = None
    stall: npt.ArrayLike | None = None
    delay: npt.ArrayLike = 0

    def __post_init__(self) -> None:
        if callable(self.q_ref) and self.longest_delay:
            raise ArgumentError(
                "Servo: delay is for targets that are given; let the function q_ref of time lag"
            )
        if self.stall is not None and self.no_load_speed is None:
            raise ArgumentError("Servo: stall without no_load_speed bounds nothing; give both, or an effort")

    def gains(self, model: Model) -> dict[str, Array]:
        """Return kp, kd and effort for each velocity variable, `(…, nv)`; zero where there is no motor."""
        driven, limits = _motors(model)
        found: dict[str, Array] = {}
        for name, given in (("kp", self.kp), ("kd", self.kd)):
            values = positive_gain(name, per_direction(name, given, model.nv, [("q", np.zeros(1))]))
            if not np.isfinite(values).all():
                raise ArgumentError(f"Servo: {name} holds numbers that are not finite")
            if np.ndim(given) and np.any(values[..., ~driven]):
                place = int(np.argwhere((values * ~driven).any(axis=tuple(range(values.ndim - 1))))[0, 0])
                joint = next(
                    body.joint_name
                    for body in model.bodies
                    if body.dependence is None and body.v_slice.start <= place < body.v_slice.stop
                )
                raise ModelError(
                    f'Servo: {name} has a gain for joint "{joint}", which has no motor; set zero there, or '
                    "name it in builder.set_actuated"
                )
            found[name] = values * driven
        effort = limits if self.effort is None else per_direction("effort", self.effort, model.nv, [])
        if np.any(~(effort >= 0.0)):
            raise ArgumentError("Servo: effort must be a torque or force from 0 on")
        found["effort"] = np.minimum(effort, UNBOUNDED_EFFORT) * driven
        if self.no_load_speed is not None:
            speed = per_direction("no_load_speed", self.no_load_speed, model.nv, [])
            found["no_load_speed"] = positive_gain("no_load_speed", speed)
            if np.any(speed == 0.0):
                raise ArgumentError("Servo: no_load_speed must be above zero")
            stall = effort if self.stall is None else per_direction("stall", self.stall, model.nv, [])
            found["stall"] = np.minimum(positive_gain("stall", stall), UNBOUNDED_EFFORT)
        if self.longest_delay:
            found["delay"] = np.asarray(self.delay, np.float64)
        return found

    @property
    def longest_delay(self) -> int:
        """The longest delay of any sample [steps]."""
        return longest_delay("Servo", self.delay)

    def driven(self, model: Model) -> tuple[int, ...]:
        """Return the indices of the velocity variables that have a gain in some sample."""
        return driven_places(self.gains(model))


def driven_places(gains: Mapping[str, Array]) -> tuple[int, ...]:
    """Return the indices of the velocity variables that have a gain in some sample."""
    stiff = [np.any(gains[name] > 0.0, axis=tuple(range(gains[name].ndim - 1))) for name in ("kp", "kd")]
    return tuple(int(place) for place in np.flatnonzero(stiff[0] | stiff[1]))


def _motors(model: Model) -> tuple[npt.NDArray[np.bool_], Array]:
    """Return which velocity variables have motors, free joints have none, and the limits of their efforts."""
    if "motors" not in model.functions:  # kept with the model, since each rollout asks twice
        driven, efforts = np.zeros(model.nv, bool), np.full(model.nv, math.inf)
        for body in model.bodies:
            if body.dependence is None:
                driven[body.v_slice] = body.joint_name in model.actuated and not isinstance(body.joint, Free)
                efforts[body.v_slice] = as_array("effort", body.limits.effort, ())
        model.functions["motors"] = driven, efforts
    return model.functions["motors"]  # type: ignore[no-any-return]


@final
@dataclass(frozen=True, eq=False)
class Actuators:
    """Control signals of `model.actuators`, for the `controls` of `da.rollout`:

        f = gain u + b0 + b1 l' + b2 dl'/dt,     tau = J^T f,     J = dl/dq

    with the length l', gear ratios times positions of joints or lengths of tendons, and its rate at the end
    of the step where b1 and b2 resist motion (servos) and the actuator drives one joint, so that stiff servos
    are stable; elsewhere at its start. u and f are clipped to the ranges of
    the actuator, and joint forces to the joint's effort.

    `ctrl`: u `(nu,)` is held throughout, `(…, steps, nu)` has one for each step, `(…, 1, nu)` is held but
    different from sample to sample; or a function of (model, t, q, v) on generic scalars; None: zero.
    `delay`: whole number of steps, or one for each sample, from the time that a signal is given to when it
    acts. An MJCF file brings its actuators; `ModelBuilder.add_actuator` adds one.

    >>> builder = da.ModelBuilder()
    >>> rod = da.RigidInertia(1.0, (0.5, 0.0, 0.0), (0.0, 1 / 12, 1 / 12))
    >>> builder.add_body("rod", "world", da.Revolute((0, 1, 0)), "hinge", inertia=rod)
    >>> builder.add_actuator("servo", {"hinge": 1.0}, gain=1e5, bias=(0.0, -1e5, -1e3))
    >>> model = builder.build()
    >>> moved = da.rollout(model, [0.0], [0.0], da.control.Actuators([0.3]), steps=300, dt=0.01)
    >>> print(f"{moved.q[-1, 0]:.3f}")
    0.300
    """

    ctrl: npt.ArrayLike | Signal | None = None
    delay: npt.ArrayLike = 0

    def __post_init__(self) -> None:
        if callable(self.ctrl) and self.longest_delay:
            raise ArgumentError("Actuators: delay is for signals that are given; let the function ctrl lag")

    @property
    def longest_delay(self) -> int:
        """The longest delay of any sample [steps]."""
        return longest_delay("Actuators", self.delay)


def longest_delay(what: str, delay: npt.ArrayLike) -> int:
    """Return the longest of some delays, whole numbers of steps."""
    steps = np.asarray(delay)
    if steps.dtype.kind not in "iu" or np.any(steps < 0) or np.any(steps > MAX_DELAY):
        raise ArgumentError(f"{what}: delay is {short_repr(delay)}; give whole steps from 0 to {MAX_DELAY}")
    return int(steps.max(initial=0))


@final
@dataclass(frozen=True, eq=False)
class Belt:
    """A prescribed joint whose velocity is given while its position stays: a conveyor belt, a treadmill.

    What touches the joint's body is carried along by friction, and the body is where it was: a prismatic
    joint along a box makes a straight belt of it, a revolute joint through a cylinder a roller.
    `velocity` [m/s, rad/s]: one number, `(nv,)` of the joint, `(…, steps, nv)` at the end of each step,
    `(…, 1, nv)` different from sample to sample, or a function of (model, t).

    >>> builder = da.ModelBuilder()
    >>> strip = da.shapes.Box((2.0, 0.5, 0.1), friction=(0.5, 0.0, 0.0))
    >>> builder.add_body("belt", joint=da.Prismatic((1, 0, 0)), joint_name="drive", shapes=[strip],
    ...                  inertia=strip.inertia(mass=5.0))
    >>> cube = da.shapes.Box((0.1, 0.1, 0.1))
    >>> builder.add_body("cube", joint=da.Free(), inertia=cube.inertia(mass=1.0), shapes=[cube])
    >>> model = builder.build()
    >>> q = model.neutral()
    >>> q[3] = 0.1  # on the belt
    >>> moved = da.rollout(model, q, np.zeros(model.nv), steps=500, contact="rigid",
    ...                    prescribed={"drive": da.control.Belt(0.5)})
    >>> print(moved.v[-1, 4].round(3), moved.q[-1, 0])  # the cube goes with the belt, which stays
    0.5 0.0
    """

    velocity: npt.ArrayLike | MotionFunction
