"""Where bodies and frames are, and how they move."""

from __future__ import annotations

from typing import Literal, TypeAlias, cast

from dalembert.api.calls import Array, ArrayLike, Check, known_frame, result, results
from dalembert.model.model import Model
from dalembert.poses import Poses

__all__ = [
    "forward_kinematics",
    "jacobian",
    "jacobian_rate",
    "point_motion",
]

JacobianFrame: TypeAlias = Literal["body", "world", "world_aligned"]


def forward_kinematics(
    model: Model, q: ArrayLike, *, time: ArrayLike | None = None, check: Check = "raise"
) -> Poses:
    """Where every body is in the world.

    `poses.rotation (…, n_bodies, 3, 3)`, `poses.translation (…, n_bodies, 3)`; `poses["hand"]` by name.
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
    check: Check = "raise",
) -> Array:
    """J(q) `(…, 6, nv)`, angular first: the velocity of a body or frame is J v.

    `frame`: "body" at the frame's origin in its axes; "world" at the world's origin in world axes;
    "world_aligned" at the frame's origin in world axes.
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
    check: Check = "raise",
) -> Array:
    """dJ/dt `(…, 6, nv)` along the motion v, in the same frame as `jacobian`."""
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
    check: Check = "raise",
) -> tuple[Array, Array, Array]:
    """Position, velocity and classical acceleration `(…, 3)` each, in world axes, of a frame's origin."""
    options = {"where": known_frame(model, frame_name)}
    return cast(
        "tuple[Array, Array, Array]",
        results(model, "point_motion", (q, v, a), {"time": time}, None, options, None, check),
    )
