"""The errors of frames relative to their targets, and the Jacobians of these errors.

For a frame at (R, p) with the target (R*, p*), in world axes

    (1)  orientation   psi = log(R R*^T)    [rad]          (2)  position   e = p - p*    [m]
    (3)  (omega, p') = J v                                  J: `jacobian`, "world_aligned"

e' = J_p v. psi' = L(psi)^-1 omega with the left Jacobian L of SO(3), but L psi = L^T psi = psi, so that

    (4)  L^-1 J_w dq = -psi  where  J_w dq = -psi,      d (psi . psi) / dt = 2 psi . omega

J_w itself gives the exact Gauss-Newton step and the exact gradient of the squared error; L is not needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dalembert.algorithms.dense import Matrix
from dalembert.algorithms.jacobians import jacobian
from dalembert.algorithms.kinematics import forward_kinematics
from dalembert.model.model import Model
from dalembert.scalar import Scalar
from dalembert.spatial import Mat3, Transform, Vec3
from dalembert.spatial.exponential import so3_log

__all__ = ["FrameErrors", "FrameTarget", "frame_errors"]


class FrameTarget(NamedTuple):
    """A frame or body by name, and what of its pose is prescribed."""

    frame: str
    orientation: bool
    position: bool


class FrameErrors(NamedTuple):
    """`errors`: three numbers each, of orientations (1) in the order of the targets, then of positions (2);
    `J`: three rows of (3) each.
    """

    errors: list[Vec3]
    J: list[Matrix]


def frame_errors(
    model: Model,
    q: Sequence[Scalar],
    targets: Sequence[FrameTarget],
    rotations: Sequence[Sequence[Sequence[Scalar]]],
    translations: Sequence[Sequence[Scalar]],
    *,
    time: Scalar | None = None,
) -> FrameErrors:
    """Return errors and their Jacobians;
    `rotations` 3x3 and `translations` 3 for the targets that have them."""
    poses = forward_kinematics(model, q, time=time)
    turned, moved = [], []
    turning, moving = [], []
    R_star, p_star = iter(rotations), iter(translations)
    for target in targets:
        frame = model.frame(target.frame)
        at = frame.placement.as_transform()
        X: Transform = at if frame.body < 0 else poses[frame.body].as_transform() @ at
        J = jacobian(model, q, frame, time=time)
        if target.orientation:
            rows = next(R_star)
            wanted = Mat3(*(x for row in rows for x in row))
            turned.append(so3_log(X.R @ wanted.transpose()))  # (1)
            turning.append(J[:3])
        if target.position:
            moved.append(X.p - Vec3(*next(p_star)))  # (2)
            moving.append(J[3:])
    return FrameErrors(turned + moved, turning + moving)
