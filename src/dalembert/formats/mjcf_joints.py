"""Joints of a compiled MuJoCo model: the kinds of joints, their anchors, reference positions and springs.

With the anchor p of a joint and its displacement J, which is that of q - ref, a body of MuJoCo is moved by

    T(p) J(q - ref) T(-p) = T(p) J(-ref)  J(q)  T(-p)                                               (1)

in its own frame. The constant displacement before J(q) makes our q equal to MuJoCo's qpos.

A free joint with armature or springs has its linear velocity in world axes there, so that it becomes a
translation and a ball joint.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, final

from dalembert.formats.mjcf_compiled import BALL, FREE, HINGE, SLIDE, Compiled, Place, shift, unique_name
from dalembert.model import Limits
from dalembert.model.joints import Free, Joint, Prismatic, Revolute, Spherical, Translation
from dalembert.spatial import Mat3, Transform, Vec3
from dalembert.spatial.rotations import quaternion_normalized, rotation_about

__all__ = ["Link", "links_of"]

MIN_INFINITE_RANGE_END: Final = 1e10
"""A range that reaches this far [rad, m] is not a limit: MJCF cannot write a range with one end only."""


@final
@dataclass(frozen=True)
class Link:
    """One joint of ours; `lead` and `tail` are what stands before and after J(q) in (1)."""

    joint: Joint
    name: str
    lead: Transform
    tail: Transform
    place: Place | None = None
    limits: Limits = field(default_factory=Limits)
    rest: tuple[float, ...] | None = None
    stiffness: float = 0.0


def links_of(compiled: Compiled, b: int, root: str | None, floating: int) -> list[Link]:
    """Return the joints of a body of MuJoCo as ours; `root` may remove or add its free joint."""
    m = compiled.m
    identity = Transform.identity()
    if b == floating:
        return [
            Link(Free(), unique_name(f"{compiled.bodies[b]}:root", set(compiled.joints)), identity, identity)
        ]
    found: list[Link] = []
    for j in range(m.body_jntadr[b], m.body_jntadr[b] + m.body_jntnum[b]):
        _check_joint(compiled, j)
        kind = int(m.jnt_type[j])
        if kind == FREE and root == "fixed":
            compiled.report.note(f'joint "{compiled.joints[j]}": the free root is fixed at its initial pose')
        else:
            found += KINDS[kind](compiled, j)
    return found


def _check_joint(compiled: Compiled, j: int) -> None:
    """Refuse joint forces other than those of linear springs and dampers."""
    m, name = compiled.m, compiled.joints[j]
    first = m.jnt_dofadr[j]
    if any(m.jnt_stiffnesspoly[j]) and not compiled.is_disabled("SPRING"):
        raise compiled.error(
            "joint", name, f'joint "{name}" has a nonlinear spring; only linear ones are kept'
        )
    if any(m.dof_dampingpoly[first]) and not compiled.is_disabled("DAMPER"):
        raise compiled.error("joint", name, f'joint "{name}" has nonlinear damping; only linear one is kept')
    if m.jnt_springyield[j] > 0.0:
        raise compiled.error(
            "joint", name, f'joint "{name}" has a plastic spring (springyield), which is not supported'
        )


def _free(compiled: Compiled, j: int) -> list[Link]:
    m, name = compiled.m, compiled.joints[j]
    qpos, qvel = int(m.jnt_qposadr[j]), int(m.jnt_dofadr[j])
    identity = Transform.identity()
    k = float(m.jnt_stiffness[j])
    if not any(m.dof_armature[qvel : qvel + 6]) and k == 0.0:
        return [Link(Free(), name, identity, identity, Place(qpos, qvel))]
    compiled.report.note(
        f'joint "{name}": a free joint with armature or springs is a translation and a ball joint here'
    )
    rest = [float(x) for x in m.qpos_spring[qpos : qpos + 7]]
    return [
        Link(
            Translation(),
            unique_name(f"{name}:translation", set(compiled.joints)),
            identity,
            identity,
            Place(qpos, qvel),
            rest=tuple(rest[:3]),
            stiffness=k,
        ),
        Link(
            Spherical(),
            name,
            identity,
            identity,
            Place(qpos + 3, qvel + 3),
            rest=tuple(quaternion_normalized(rest[3:])),
            stiffness=k,
        ),
    ]


def _ball(compiled: Compiled, j: int) -> list[Link]:
    m, name = compiled.m, compiled.joints[j]
    if m.jnt_limited[j]:
        compiled.report.note(
            f'ignored: the limit of ball joint "{name}", {float(m.jnt_range[j][1]):g} rad about any axis'
        )
    anchor = Vec3(*(float(x) for x in m.jnt_pos[j]))
    place = Place(int(m.jnt_qposadr[j]), int(m.jnt_dofadr[j]))
    rest = quaternion_normalized([float(x) for x in m.qpos_spring[place.qpos : place.qpos + 4]])
    return [
        Link(
            Spherical(),
            name,
            shift(anchor),
            shift(-anchor),
            place,
            rest=tuple(rest),
            stiffness=float(m.jnt_stiffness[j]),
        )
    ]


def _scalar(compiled: Compiled, j: int) -> list[Link]:
    m, name = compiled.m, compiled.joints[j]
    place = Place(int(m.jnt_qposadr[j]), int(m.jnt_dofadr[j]))
    axis = Vec3(*(float(x) for x in m.jnt_axis[j]))
    ref = float(m.qpos0[place.qpos])
    if ref:
        compiled.report.note(f'joint "{name}": the reference position of the file is q = {ref:.6g}')
    if int(m.jnt_type[j]) == SLIDE:
        joint: Joint = Prismatic(axis)
        lead, tail = shift(axis * -ref), Transform.identity()
    else:
        joint = Revolute(axis)
        anchor = Vec3(*(float(x) for x in m.jnt_pos[j]))
        R = rotation_about(axis, -ref) if ref else Mat3.identity()
        lead, tail = Transform(R, anchor), shift(-anchor)
    return [
        Link(
            joint,
            name,
            lead,
            tail,
            place,
            limits=_limits(compiled, j),
            rest=(float(m.qpos_spring[place.qpos]),),
            stiffness=float(m.jnt_stiffness[j]),
        )
    ]


KINDS: Final[dict[int, Callable[[Compiled, int], list[Link]]]] = {
    FREE: _free,
    BALL: _ball,
    SLIDE: _scalar,
    HINGE: _scalar,
}


def _limits(compiled: Compiled, j: int) -> Limits:
    m = compiled.m
    lower, upper, effort = -math.inf, math.inf, math.inf
    if m.jnt_limited[j]:
        lower, upper = (
            float(x) if abs(x) < MIN_INFINITE_RANGE_END else math.copysign(math.inf, x)
            for x in m.jnt_range[j]
        )
    if m.jnt_actfrclimited[j]:
        low, high = (abs(float(x)) for x in m.jnt_actfrcrange[j])
        effort = min(low, high)
        if low != high:
            compiled.report.warn(
                f'joint "{compiled.joints[j]}": its force range is not symmetric; {effort:g} is used'
            )
    return Limits(lower, upper, math.inf, effort)
