"""Control of a hand or any frame in the space of its task."""

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
"""How far R R^T may be from one."""


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
    """tau = b + J^T Lambda (x''* - J' v) + N^T tau_0 `(…, nv)` [N m or N]: a frame like a mass on a spring.

    x''* = x''_ref - D (x' - x'_ref) - K (x - x_ref), Lambda = (J M^-1 J^T)^-1, N = 1 - M^-1 J^T Lambda J.
    `position (…, 3)` [m] and `rotation (…, 3, 3)` (frame to world): where the frame named shall be, both or
    one of them, in the world. The task has three rows for each, angular first, along world axes; the error
    of a rotation is its rotation vector. `velocity` and `acceleration` of the target have a number a row and
    are zero if omitted; `stiffness` K [1/s^2] and `damping` D [1/s] one number, or one a row; D omitted:
    critical. `null_space`: joint forces tau_0 `(…, nv)` that act where the task leaves the joints free (see
    `posture_forces`). `regularization`: epsilon on the diagonal of J M^-1 J^T, which bounds the forces near
    singularities. Every joint must be actuated.

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
    """Lambda = (J M^-1 J^T)^-1 `(…, m, m)`: the inertia that a frame shows to a hand that moves it.

    m = 6 rows, angular first, along world axes at the frame's origin [kg m^2, kg m, kg]; 3 without the
    `rotation` or without the `position`. Rows that depend on others, or that nothing moves, have none. Of a
    model with loops M^-1 is that of the motions which they allow.

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
    """J# = M^-1 J^T Lambda `(…, nv, m)`: the dynamically consistent inverse of a frame's Jacobian.

    Of all joint velocities with J v = x', J# x' has the least kinetic energy; 1 - J# J projects on the
    motions that the frame does not see, and its transpose on the joint forces that do not accelerate it.
    Loops count as in `operational_inertia`.

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
    """Refuse a target that is no rotation, R R^T = 1 and det R = 1; samples of NaN pass."""
    R = as_array("rotation", rotation, (3, 3), follow=True)
    with np.errstate(invalid="ignore"):
        error = np.abs(R @ np.swapaxes(R, -1, -2) - np.eye(3)).max(axis=(-2, -1), initial=0.0)
        wrong = (error > ROTATION_TOLERANCE[R.dtype.name]) | (np.linalg.det(R) < 0.0)
    if np.any(wrong):
        raise StateError(
            f"operational_space: rotation is no rotation matrix, R R^T is off by {np.nanmax(error):.3g}; its "
            "columns are the axes of the frame in the world"
        )
