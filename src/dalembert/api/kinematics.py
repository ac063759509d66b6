"""Kinematics of bodies and frames: poses, Jacobians and the motion of points."""

from __future__ import annotations

from typing import Literal, TypeAlias, cast

from dalembert.api.calls import Array, ArrayLike, Check, known_frame, result, results
from dalembert.api.poses import Poses
from dalembert.model.model import Model

__all__ = [
    "forward_kinematics",
    "jacobian",
    "jacobian_rate",
    "point_motion",
]

JacobianFrame: TypeAlias = Literal["body", "world", "world_aligned"]


def forward_kinematics(
    model: Model, q: ArrayLike, *, time: ArrayLike | None = None, check: Check = None
) -> Poses:
    """Compute the poses of all bodies in the world: X_i = X_parent(i) X_T X_J(q_i), from the root outward.

    `poses.rotation (…, n_bodies, 3, 3)` has the body axes as columns; `poses.translation (…, n_bodies, 3)`
    are the origins [m]; `poses["hand"]` is the pose of a body or frame by name. Featherstone 2008 Examples
    4.3 and 4.4.

    >>> model = da.models.two_link_arm()
    >>> poses = da.forward_kinematics(model, [np.pi / 2, 0.0])  # straight up
    >>> print(poses["tip"].translation.round(6) + 0.0)
    [0. 0. 2.]
    >>> print(poses.translation.round(6) + 0.0)
    [[0. 0. 0.]
     [0. 0. 1.]]
    """
    rotation, translation = results(model, "forward_kinematics", (q,), {"time": time}, None, {}, None, check)
    return Poses(model, rotation, translation)


def jacobian(
    model: Model,
    q: ArrayLike,
    frame_name: str,
    *,
    frame: JacobianFrame = "world_aligned",
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = None,
) -> Array:
    """Compute the Jacobian J(q) `(…, 6, nv)` of a body or frame: (omega, velocity) = J v, angular first.

    Columns of the joints that support the body are their S in the chosen frame; the others are zero. `frame`:
    "body" at the frame's origin in its axes; "world" at the world's origin in world axes; "world_aligned" at
    the frame's origin in world axes. Featherstone 2008 Eqs 4.4 to 4.6.

    >>> model = da.models.two_link_arm()
    >>> J = da.jacobian(model, [0.0, 0.0], "tip")
    >>> print(J[3:].round(6) + 0.0)  # stretched out along x, both joints lift the tip
    [[0. 0.]
     [0. 0.]
     [2. 1.]]
    """
    options = {"where": known_frame(model, frame_name), "frame": frame}
    return result(model, "jacobian", (q,), {"time": time}, None, options, out, check)


def jacobian_rate(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    frame_name: str,
    *,
    frame: JacobianFrame = "world_aligned",
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = None,
) -> Array:
    """Compute dJ/dt `(…, 6, nv)` along the motion v, in the frame of `jacobian`.

    The acceleration is J a + dJ/dt v. The columns are dS_i/dt = v_i x S_i + ring S_i. Featherstone 2008 Eqs
    2.57 and 4.5.

    >>> model = da.models.two_link_arm()
    >>> rate = da.jacobian_rate(model, [0.0, 0.0], [2.0, 0.0], "tip")
    >>> print((rate @ [2.0, 0.0])[3:].round(6) + 0.0)  # centripetal, 2 m from the axis
    [-8.  0.  0.]
    """
    options = {"where": known_frame(model, frame_name), "frame": frame}
    return result(model, "jacobian_rate", (q, v), {"time": time}, None, options, out, check)


def point_motion(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    frame_name: str,
    *,
    time: ArrayLike | None = None,
    check: Check = None,
) -> tuple[Array, Array, Array]:
    """Compute position p, velocity dp/dt and acceleration d²p/dt² of a frame's origin, `(…, 3)` each.

    All are in world axes [m, m/s, m/s^2]. The acceleration is the classical one, d²p/dt² = a_O + omega x v_O
    of the spatial acceleration (Featherstone 2008 Eq. 2.49). `a`: dv/dt.

    >>> model = da.models.pendulum(length=2.0)
    >>> p, velocity, acceleration = da.point_motion(model, [0.0], [3.0], [0.0], "tip")
    >>> print(velocity + 0.0, acceleration + 0.0)  # at the bottom: 6 m/s, and v^2 / l = 18 m/s^2 upward
    [-6.  0.  0.] [ 0.  0. 18.]
    """
    options = {"where": known_frame(model, frame_name)}
    return cast(
        "tuple[Array, Array, Array]",
        results(model, "point_motion", (q, v, a), {"time": time}, None, options, None, check),
    )
