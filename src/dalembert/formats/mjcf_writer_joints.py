"""Joints of ours as the stacked joints of one MJCF body.

The placement of a body on the nearest one with mass is a product of constants and joint displacements,

    C_0 J_1 C_1 J_2 ... J_m C_m = B  (T_1^-1 J_1 T_1) ... (T_m^-1 J_m T_m),   T_j = C_j ... C_m     (1)

with B = C_0 T_1, the pose of the MJCF body: joint j of it has the axis R(T_j)^T a_j and the anchor T_j^-1 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, final

from dalembert.errors import FileError
from dalembert.model.body import Body
from dalembert.model.joints import (
    Composite,
    Cylindrical,
    Fixed,
    Free,
    Joint,
    Planar,
    Prismatic,
    Revolute,
    Spherical,
    SphericalEuler,
    Translation,
    Universal,
)
from dalembert.spatial import Transform, Vec3

__all__ = ["Stacked", "Step", "stack", "steps_of"]

AXES: Final = (Vec3.unit(0), Vec3.unit(1), Vec3.unit(2))


@final
@dataclass(frozen=True)
class Step:
    """One MJCF joint: its kind, its axis in its own frame, and its places in the q and v of our joint."""

    kind: str
    axis: Vec3
    q: int
    v: tuple[int, ...]
    body: Body | None = None
    name: str = ""


@final
@dataclass(frozen=True)
class Stacked:
    """An MJCF joint with its axis and anchor in the frame of its MJCF body."""

    step: Step
    axis: Vec3
    anchor: Vec3


Item = Transform | Step


def steps_of(body: Body, losses: list[str]) -> list[Item]:
    """Return a body's placement and joint as constants and steps; refuse a joint that MJCF cannot hold."""
    items: list[Item] = [body.placement.as_transform()]
    if isinstance(body.joint, Free) and not (body.parent < 0 and _is_identity(items[0])):
        losses.append(
            f'joint "{body.joint_name}" is written as three slides and a ball joint: MuJoCo has free joints '
            "on the world's origin only; its velocity is in parent axes there"
        )
        _check_moving_axes(body, (3, 4, 5))
        own = [Step("slide", axis, k, (3 + k,)) for k, axis in enumerate(AXES)]
        items += [*own, Step("ball", AXES[0], 3, (0, 1, 2))]
    else:
        if isinstance(body.joint, Free):
            _check_moving_axes(body, (3, 4, 5))
        if isinstance(body.joint, Planar):
            losses.append(
                f'joint "{body.joint_name}" is written as two slides and a hinge: its velocity is in parent '
                "axes there, in the order x, y, angle"
            )
            _check_moving_axes(body, (1, 2))
        items += _expand_joint(body.joint, body)
    count = sum(isinstance(item, Step) for item in items)
    named: list[Item] = []
    for item in items:
        if isinstance(item, Step):
            number = sum(isinstance(other, Step) for other in named) + 1
            name = body.joint_name if count == 1 else f"{body.joint_name}:{number}"
            item = replace(item, body=body, name=name)
        named.append(item)
    return named


def stack(items: Sequence[Item]) -> tuple[Transform, list[Stacked]]:
    """Return the pose B of the MJCF body and its joints by Eq. (1)."""
    T = Transform.identity()
    found: list[Stacked] = []
    for item in reversed(items):
        if isinstance(item, Transform):
            T = item @ T
            continue
        if item.kind == "ball" and not _is_identity(Transform(T.R, Vec3.zero())):
            raise FileError(
                f'ball joint "{item.name}" is followed by a turned joint on a body without mass; MJCF cannot '
                "hold that: give the body between them some mass"
            )
        if item.kind == "free" and not _is_identity(T):
            raise FileError(f'free joint "{item.name}" cannot be followed by other joints on a massless body')
        found.append(Stacked(item, T.R.transposed_times(item.axis), T.inverse().p))
    return T, found[::-1]


def _is_identity(X: Any) -> bool:
    return list(X.R) == list(Transform.identity().R) and not any(X.p)


def _check_moving_axes(body: Body, linear: tuple[int, ...]) -> None:
    """Refuse different values along axes that turn with the body: MJCF has them along the parent's axes."""
    for what, values in (("damping", body.damping), ("friction", body.friction)):
        if len({values[k] for k in linear}) > 1:
            raise FileError(
                f'joint "{body.joint_name}" has different {what} along its axes, which MJCF cannot hold'
            )
    for what, values in (("armature", body.armature), ("stiffness", body.stiffness)):
        if any(values[k] for k in linear) or (what == "stiffness" and any(values)):
            raise FileError(
                f'joint "{body.joint_name}" of kind {body.joint.kind} has {what}, which means another thing '
                "in MJCF"
            )


def _expand_joint(joint: Joint, body: Body, q: int = 0, v: int = 0) -> list[Item]:
    if isinstance(joint, Composite):
        items: list[Item] = []
        for placement, member in zip(joint.placements, joint.joints, strict=True):
            if isinstance(member, (Free, Planar)):
                raise _unsupported_joint_error(body, f"composite with a {member.kind} joint inside")
            items += [placement, *_expand_joint(member, body, q, v)]
            q, v = q + member.nq, v + member.nv
        return items
    for kind, expand in KINDS.items():
        if isinstance(joint, kind):
            return [replace(s, q=s.q + q, v=tuple(k + v for k in s.v)) for s in expand(joint)]
    raise _unsupported_joint_error(body, joint.kind)


def _unsupported_joint_error(body: Body, kind: str) -> FileError:
    return FileError(
        f'joint "{body.joint_name}" is of kind {kind}, which MJCF does not have; save the model as .json, or '
        "lock the joint"
    )


def _hinge(axis: Vec3, q: int) -> Step:
    return Step("hinge", axis, q, (q,))


def _slide(axis: Vec3, q: int) -> Step:
    return Step("slide", axis, q, (q,))


KINDS: Final[dict[type[Joint], Callable[[Any], list[Step]]]] = {
    Fixed: lambda joint: [],
    Revolute: lambda joint: [_hinge(joint.axis, 0)],
    Prismatic: lambda joint: [_slide(joint.axis, 0)],
    Cylindrical: lambda joint: [_hinge(joint.axis, 0), _slide(joint.axis, 1)],
    Universal: lambda joint: [_hinge(joint.axis1, 0), _hinge(joint.axis2, 1)],
    SphericalEuler: lambda joint: [_hinge(AXES["xyz".index(x)], k) for k, x in enumerate(joint.order)],
    Translation: lambda joint: [_slide(axis, k) for k, axis in enumerate(AXES)],
    Planar: lambda joint: [
        Step("slide", AXES[0], 0, (1,)),
        Step("slide", AXES[1], 1, (2,)),
        Step("hinge", AXES[2], 2, (0,)),
    ],
    Spherical: lambda joint: [Step("ball", AXES[0], 0, (0, 1, 2))],
    Free: lambda joint: [Step("free", AXES[0], 0, (0, 1, 2, 3, 4, 5))],
}
"""The stacked MJCF joints that have the same coordinates as a joint of ours."""
