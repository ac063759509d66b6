"""Control laws on the dynamics: functions of a state and a target that return joint forces.

Every law takes one sample or any leading batch shape and is compiled for the model on first use, like the
functions of `dalembert` itself. `dalembert.algorithms.control_laws` has them on generic scalars, for use
inside functions of your own that `da.compile` compiles.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from dalembert.api.calls import Array, ArrayLike, Check, checked_time_step, known_frame, result
from dalembert.call.arguments import DTYPES, as_array, pick_dtype
from dalembert.compiler.library import no_model
from dalembert.errors import ArgumentError, ShapeError, StateError
from dalembert.host.foreign_arrays import bridge_of, is_foreign
from dalembert.model.model import Model

GAINS: Final = ("stiffness", "damping", "kp", "kd", "effort")
"""Arguments of joint laws that are one number, or one for each velocity variable; none may be negative."""

ROTATION_TOLERANCE: Final = {"float64": 1e-6, "float32": 1e-4}
"""Largest deviation of R R^T from the identity."""


def gravity_compensation(
    model: Model,
    q: ArrayLike,
    *,
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = None,
) -> Array:
    """Compute tau = g(q) = +dV/dq `(…, nv)` [N m or N], which holds the system at rest in any configuration.

    Source: Todorov, "Using the dynamics for control", with the gravity term.

    >>> model = da.models.arm6()
    >>> q, v = model.random_state(0)
    >>> a = da.forward_dynamics(model, q, 0.0 * v, da.control.gravity_compensation(model, q))
    >>> np.allclose(a, 0.0, atol=1e-9)
    True
    """
    return result(model, "gravity_compensation", (q,), {"time": time}, None, {}, out, check)


def feedback_linearization(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    q_ref: ArrayLike,
    v_ref: ArrayLike | None = None,
    a_ref: ArrayLike | None = None,
    *,
    stiffness: ArrayLike,
    damping: ArrayLike | None = None,
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = None,
) -> Array:
    """Compute tau = b + M a* `(…, nv)` [N m or N], with which the error e obeys e'' + B e' + K e = 0.

    a* = a_ref - B (v - v_ref) - K (q - q_ref). e = `difference(q_ref, q)`, which for quaternions is the
    rotation vector of the error. `q_ref (…, nq)`, `v_ref` and `a_ref` `(…, nv)`: the reference motion, at
    rest by default. `stiffness` K [1/s^2] and `damping` B [1/s]: one number, or one for each velocity
    variable; B is critical, 2 sqrt(K), by default. Every joint must be actuated.

    Source: Todorov, "Using the dynamics for control".

    >>> model = da.models.arm6()
    >>> q, v = model.random_state(0)
    >>> tau = da.control.feedback_linearization(model, q, v, model.neutral(), stiffness=25.0, damping=10.0)
    >>> np.allclose(da.forward_dynamics(model, q, v, tau), -10.0 * v - 25.0 * q)
    True
    """
    optional = {"v_ref": v_ref, "a_ref": a_ref, "damping": damping, "time": time}
    required = {"q": q, "v": v, "q_ref": q_ref, "stiffness": stiffness}
    return _joint_law("feedback_linearization", model, required, optional, out, check)


def posture_forces(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    q_ref: ArrayLike,
    *,
    stiffness: ArrayLike,
    damping: ArrayLike | None = None,
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = None,
) -> Array:
    """Compute tau_0 = M a* `(…, nv)` [N m or N]: `feedback_linearization` without the bias forces b.

    a* = -B v - K (q - q_ref). Pass the result to `operational_space` as `null_space` to move an arm towards
    the posture q_ref as far as its task allows. Gains as in `feedback_linearization`.

    Source: Todorov, "Using the dynamics for control".

    >>> model = da.models.arm6()
    >>> q, v = model.random_state(0)
    >>> tau = da.control.posture_forces(model, q, v, model.neutral(), stiffness=25.0)
    >>> np.allclose(tau, da.mass_matrix(model, q) @ (-10.0 * v - 25.0 * q))
    True
    """
    optional = {"damping": damping, "time": time}
    required = {"q": q, "v": v, "q_ref": q_ref, "stiffness": stiffness}
    return _joint_law("posture_forces", model, required, optional, out, check)


def pd(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    q_ref: ArrayLike,
    v_ref: ArrayLike | None = None,
    *,
    kp: ArrayLike,
    kd: ArrayLike,
    effort: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = None,
) -> Array:
    """Compute tau = kp (q_ref - q) + kd (v_ref - v) `(…, nv)` [N m or N], limited to ± effort.

    q_ref - q is `difference(q, q_ref)`, for a ball joint the rotation vector of the error. `q_ref (…, nq)`,
    `v_ref (…, nv)`: the reference motion, at rest by default. `kp` [N m/rad or N/m] and `kd` [N m s/rad or N
    s/m]: one number, or one for each velocity variable. `effort`: the largest torques or forces likewise; by
    default the model's limits. Free joints, and joints not in `model.actuated`, have no motor and no force.
    Applied for a step of dt the law is explicit: it requires dt kd well below the inertias; `stable_pd` does
    not.

    Source: the "voluntary" and "response" motions of physically based animation.

    >>> model = da.models.two_link_arm()
    >>> print(da.control.pd(model, [0.1, 0.0], [0.0, 1.0], [0.3, 0.0], kp=[10.0, 5.0], kd=1.0))
    [ 2. -1.]
    """
    required = {"q": q, "v": v, "q_ref": q_ref, "kp": kp, "kd": kd}
    return _joint_law("pd", model, required, {"v_ref": v_ref, "effort": effort}, out, check)


def stable_pd(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    q_ref: ArrayLike,
    v_ref: ArrayLike | None = None,
    *,
    kp: ArrayLike,
    kd: ArrayLike,
    dt: ArrayLike,
    effort: ArrayLike | None = None,
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = None,
) -> Array:
    """Compute tau = kp (q_ref - q') + kd (v_ref - v') `(…, nv)` [N m or N], q' and v' after a step dt [s].

    v' = v + dt a, q' = q + dt v' and (M + dt kd + dt^2 kp) a = kp (q_ref - q - dt v) + kd (v_ref - v) - b +
    passive forces. Hold tau during the step; it is stable for all gains. The other arguments as in `pd`. In a
    rollout `da.control.Servo` is the same law.

    Source: Tan, Liu and Turk, "Stable Proportional-Derivative Controllers", 2011, who leave out dt^2 kp.

    >>> model = da.models.pendulum()
    >>> q, v = np.array([0.0]), np.array([0.0])
    >>> for _ in range(100):  # gains a thousand times beyond what `pd` stands at this step
    ...     tau = da.control.stable_pd(model, q, v, [0.5], kp=1e6, kd=1e4, dt=0.01)
    ...     q, v = da.step(model, q, v, tau, 0.01)
    >>> print(q.round(4))
    [0.5]
    """
    checked_time_step(dt)
    required = {"q": q, "v": v, "q_ref": q_ref, "kp": kp, "kd": kd, "dt": dt}
    optional = {"v_ref": v_ref, "effort": effort, "time": time}
    return _joint_law("stable_pd", model, required, optional, out, check)


def _joint_law(
    law: str,
    model: Model,
    required: Mapping[str, ArrayLike],
    optional: Mapping[str, ArrayLike | None],
    out: Array | None,
    check: Check,
) -> Array:
    """Return a law of q, v and q_ref, its `GAINS` expanded to one for each velocity variable."""
    if not isinstance(model, Model):
        raise no_model(law, model)
    beside = [(name, required[name]) for name in ("q", "v", "q_ref")]

    def expand(name: str, value: Any) -> Any:
        if value is None or name not in GAINS:
            return value
        return positive_gain(name, per_direction(name, value, model.nv, beside))

    values = tuple(expand(name, value) for name, value in required.items())
    arrays = {name: expand(name, value) for name, value in optional.items()}
    return result(model, law, values, arrays, None, {}, out, check)


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
    return result(model, "operational_space", (q, v, K), arrays, None, options, out, check)


def operational_inertia(
    model: Model,
    q: ArrayLike,
    frame_name: str,
    *,
    rotation: bool = True,
    position: bool = True,
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = None,
) -> Array:
    """Compute the operational-space inertia Lambda = (J M^-1 J^T)^-1 `(…, m, m)` of a frame.

    The m = 6 rows are angular first, along world axes at the frame's origin [kg m^2, kg m, kg]; m = 3 without
    the `rotation` or without the `position`. Lambda does not exist if rows are dependent or cannot move. In
    models with loops M^-1 is restricted to the motions that the loops allow.

    Source: Featherstone 2008 Eq. 7.12; Todorov, "Using the dynamics for control".

    >>> model = da.models.arm6()
    >>> q, v = model.random_state(0)
    >>> hand = model.bodies[-1].name
    >>> J = da.jacobian(model, q, hand)
    >>> Lambda = da.control.operational_inertia(model, q, hand)
    >>> np.allclose(Lambda @ J @ da.inverse_mass_matrix(model, q) @ J.T, np.eye(6))
    True
    """
    options = {"where": known_frame(model, frame_name), "rotation": rotation, "position": position}
    return result(model, "operational_inertia", (q,), {"time": time}, None, options, out, check)


def consistent_inverse(
    model: Model,
    q: ArrayLike,
    frame_name: str,
    *,
    rotation: bool = True,
    position: bool = True,
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = None,
) -> Array:
    """Compute the dynamically consistent inverse J# = M^-1 J^T Lambda `(…, nv, m)` of a frame's Jacobian.

    Of all joint velocities with J v = x', J# x' has the least kinetic energy. 1 - J# J projects onto the
    motions that do not move the frame, and its transpose onto the joint forces that do not accelerate it.
    Loops are treated as in `operational_inertia`.

    Source: Khatib 1987; Todorov, "Using the dynamics for control".

    >>> model = da.models.arm7()
    >>> q, v = model.random_state(0)
    >>> hand = model.bodies[-1].name
    >>> J, inverse = da.jacobian(model, q, hand), da.control.consistent_inverse(model, q, hand)
    >>> np.allclose(J @ inverse, np.eye(6))
    True
    """
    options = {"where": known_frame(model, frame_name), "rotation": rotation, "position": position}
    return result(model, "consistent_inverse", (q,), {"time": time}, None, options, out, check)


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


def per_direction(
    name: str,
    value: ArrayLike,
    size: int,
    beside: Sequence[tuple[str, object]],
    *,
    before: int = 0,
    after: int = 0,
) -> Array:
    """Return an array `(…, size)` from one number or `size` numbers, in the float type of the arrays `beside`
    it.

    `before` and `after`: zeros to add at either end.
    """
    dtype = DTYPES[pick_dtype([*beside, (name, value)])]
    bridge = bridge_of([value])
    if bridge is not None:
        foreign: Any = value
        if foreign.ndim == 0:
            foreign = foreign * bridge.alike(np.ones(size), foreign)
        return foreign @ bridge.alike(np.eye(size, before + size + after, before), foreign)  # type: ignore[no-any-return]
    array = as_array(name, value, (), follow=True).astype(dtype)
    if array.ndim == 0:
        array = np.full(size, array)
    if array.shape[-1] != size:
        raise ShapeError(
            f"{name}: expected one number or {size}, got shape {array.shape}; a batch is (…, {size})"
        )
    return np.pad(array, [(0, 0)] * (array.ndim - 1) + [(before, after)]) if before or after else array


def positive_gain(name: str, gain: Array) -> Array:
    """Return the gain after checking that it is not negative; a negative gain drives away from the target."""
    if not is_foreign(gain) and np.any(gain < 0.0):
        raise ArgumentError(f"{name} has negative numbers, which drive the system away; give gains >= 0")
    return gain
