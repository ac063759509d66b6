"""Operational-space control: control of a frame in task space."""

from __future__ import annotations

from typing import Final

import numpy as np

from dalembert.api.calls import Array, ArrayLike, Check, known_frame, result
from dalembert.call.arguments import as_array
from dalembert.control.gains import per_direction, positive_gain
from dalembert.errors import ArgumentError, StateError
from dalembert.host.foreign_arrays import is_foreign
from dalembert.model.model import Model

__all__ = ["consistent_inverse", "operational_inertia", "operational_space"]

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
    >>> x, x_rate, _ = da.point_motion(model, q, v, 0.0 * v, hand)
    >>> tau = da.control.operational_space(model, q, v, hand, x + [0.1, 0.0, 0.0], stiffness=4.0, damping=1.0)
    >>> a = da.forward_dynamics(model, q, v, tau)
    >>> np.allclose(da.point_motion(model, q, v, a, hand)[2], [0.4, 0.0, 0.0] - x_rate)
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
