"""Bodies and joints of a compiled MuJoCo model.

A body of MuJoCo stands in its parent by a pose B and carries any number of joints, all given in its own frame
before any of them has moved. Its pose on the parent is (MuJoCo's `mj_kinematics`)

    B  T(p_1) J_1 T(-p_1)  T(p_2) J_2 T(-p_2)  ...                                              (1)

with the anchor p_k of joint k and its displacement J_k, which is that of q_k - ref_k. Each joint becomes a
body of ours, massless but the last, so that q and v keep MuJoCo's order and the dynamics are the same. Since
J(q - ref) = J(-ref) J(q), a constant displacement in the placement makes our q equal to MuJoCo's qpos. Our
bodies have their frames at the anchors: MuJoCo's frame of the body is T(-p_n) on the last of them.

A free joint with armature or springs has its linear velocity in world axes there, so that it becomes a
translation and a ball joint.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, final

from dalembert.errors import FileError
from dalembert.formats.mjcf_files import Source
from dalembert.formats.report import Report
from dalembert.model import Limits, ModelBuilder
from dalembert.model.joints import Fixed, Free, Joint, Prismatic, Revolute, Spherical, Translation
from dalembert.model.shapes import Shape
from dalembert.spatial import Mat3, RigidInertia, SymMat3, Transform, Vec3
from dalembert.spatial.rotations import quaternion_normalized, rotation_about, rotation_of_quaternion

__all__ = ["Compiled", "Home", "Link", "Place", "Plan", "add_bodies", "plan_bodies", "pose", "unused"]

FREE, BALL, SLIDE, HINGE = range(4)

UNBOUNDED: Final = 1e10
"""A range that reaches this far is no limit: MJCF has no way to write a range with one end only."""


def pose(position: Iterable[float], quaternion: Iterable[float]) -> Transform:
    """The placement of a position [m] and a quaternion (w, x, y, z)."""
    return Transform(
        rotation_of_quaternion(quaternion_normalized([float(x) for x in quaternion])),
        Vec3(*(float(x) for x in position)),
    )


def shift(vector: Vec3) -> Transform:
    """A translation."""
    return Transform(Mat3.identity(), vector)


class Place(NamedTuple):
    """Where a joint of ours stands in MuJoCo's qpos and qvel."""

    qpos: int
    qvel: int


class Home(NamedTuple):
    """The body of ours that carries a body of MuJoCo, and where MuJoCo's frame of it stands there."""

    body: str
    at: Transform


@final
@dataclass(frozen=True)
class Link:
    """One joint of ours, from MuJoCo's frame of the body before to that after."""

    joint: Joint
    name: str
    lead: Transform
    tail: Transform
    place: Place | None = None
    limits: Limits = field(default_factory=Limits)
    rest: tuple[float, ...] | None = None
    stiffness: float = 0.0


@final
class Compiled:
    """A model that MuJoCo has compiled, with a unique name for everything in it."""

    def __init__(self, mujoco: Any, m: Any, source: Source, report: Report) -> None:
        self.mujoco = mujoco
        self.m = m
        self.source = source
        self.report = report
        self.bodies = self._names("BODY", m.nbody, "body")
        self.joints = self._names("JOINT", m.njnt, "joint")
        self.places: dict[str, Place] = {}
        self.shapes: dict[str, list[Shape]] = {}

    def name(self, kind: str, index: int) -> str:
        """MuJoCo's name of an item, or its kind and number."""
        found = self.mujoco.mj_id2name(self.m, getattr(self.mujoco.mjtObj, f"mjOBJ_{kind}"), int(index))
        return found or f"{kind.lower()}_{int(index)}"

    def disabled(self, flag: str) -> bool:
        """Whether an option flag of the file switches a part of the physics off."""
        return bool(self.m.opt.disableflags & int(getattr(self.mujoco.mjtDisableBit, f"mjDSBL_{flag}")))

    def error(self, tags: str | tuple[str, ...], name: str, message: str) -> FileError:
        return self.source.error(tags, name, message)

    def _names(self, kind: str, n: int, stem: str) -> list[str]:
        obj = getattr(self.mujoco.mjtObj, f"mjOBJ_{kind}")
        given = [self.mujoco.mj_id2name(self.m, obj, i) or "" for i in range(n)]
        used = {name for name in given if name}
        return [name or unused(f"{stem}_{i}", used) for i, name in enumerate(given)]


def unused(name: str, used: set[str]) -> str:
    """The name, with a number if it is taken; it is used from now on."""
    free = next(
        item for item in (name, *(f"{name}_{n}" for n in range(2, len(used) + 3))) if item not in used
    )
    used.add(free)
    return free


@final
@dataclass(frozen=True)
class Plan:
    """Where every body of MuJoCo goes (`homes`, the world first), and the bodies and frames to be made."""

    homes: list[Home]
    chains: list[tuple[str, str, Transform, list[Link]]]  # name, parent, start, joints
    inertias: dict[str, RigidInertia]
    frames: list[tuple[str, Home]]


def plan_bodies(compiled: Compiled, root: str | None) -> Plan:
    """Lump what does not move on its parent; the rest becomes chains of bodies."""
    m = compiled.m
    floating = _floating_root(compiled) if root == "floating" else -1
    plan = Plan([Home("world", Transform.identity())], [], {}, [])
    for b in range(1, m.nbody):
        parent = plan.homes[m.body_parentid[b]]
        name = compiled.bodies[b]
        start = parent.at @ pose(m.body_pos[b], m.body_quat[b])
        links = _links(compiled, b, root, floating)
        if links:
            if isinstance(links[0].joint, (Free, Translation)):
                start = Transform.identity()
            plan.chains.append((name, parent.body, start, links))
            home = Home(name, links[-1].tail)
            if any(home.at.p):
                plan.frames.append((f"{name}:origin", home))
        else:
            home = Home(parent.body, start)
            plan.frames.append((name, home))
        plan.homes.append(home)
        own = _inertia(compiled, b, home.at)
        plan.inertias[home.body] = plan.inertias[home.body] + own if home.body in plan.inertias else own
    return plan


def add_bodies(builder: ModelBuilder, compiled: Compiled, plan: Plan) -> None:
    """Add the moving bodies, the shapes that stand still, and the frames of lumped bodies."""
    used = set(compiled.bodies)
    for name, parent, start, links in plan.chains:
        _add_chain(builder, compiled, used, name, parent, start, links, plan.inertias[name])
    static = compiled.shapes.get("world")
    if static:
        own = unused("static_geometry", used)
        builder.add_body(own, "world", Fixed(), unused(own, set(compiled.joints)), shapes=static)
    for name, home in plan.frames:
        builder.add_frame(name if name in compiled.bodies else unused(name, used), *home)


def _add_chain(
    builder: ModelBuilder,
    compiled: Compiled,
    used: set[str],
    name: str,
    parent: str,
    start: Transform,
    links: list[Link],
    inertia: RigidInertia,
) -> None:
    """The joints of one body by (1), each with a body of its own."""
    for k, link in enumerate(links):
        last = k == len(links) - 1
        own = name if last else unused(f"{name}/{link.name}", used)
        if link.place is not None:
            compiled.places[link.name] = link.place
        builder.add_body(
            own,
            parent,
            link.joint,
            link.name,
            placement=start @ link.lead,
            inertia=inertia if last else None,
            limits=link.limits,
            armature=_per_dof(compiled, link, "armature"),
            damping=0.0 if compiled.disabled("DAMPER") else _per_dof(compiled, link, "damping"),
            friction=0.0 if compiled.disabled("FRICTIONLOSS") else _per_dof(compiled, link, "frictionloss"),
            stiffness=0.0 if compiled.disabled("SPRING") else link.stiffness,
            rest=link.rest,
            shapes=compiled.shapes.get(own, ()),
        )
        parent, start = own, link.tail


def _per_dof(compiled: Compiled, link: Link, kind: str) -> tuple[float, ...]:
    values = getattr(compiled.m, f"dof_{kind}")
    if link.place is None:
        return (0.0,) * link.joint.nv
    return tuple(float(x) for x in values[link.place.qvel : link.place.qvel + link.joint.nv])


def _inertia(compiled: Compiled, b: int, at: Transform) -> RigidInertia:
    """The inertia of a body of MuJoCo in the frame in which it stands by `at`."""
    m = compiled.m
    own = pose(m.body_ipos[b], m.body_iquat[b])
    R = at.R @ own.R
    A, B, C = (float(x) for x in m.body_inertia[b])
    xx, xy, xz, _, yy, yz, _, _, zz = R @ Mat3(A, 0.0, 0.0, 0.0, B, 0.0, 0.0, 0.0, C) @ R.transpose()
    return RigidInertia(float(m.body_mass[b]), at.transform_point(own.p), SymMat3(xx, yy, zz, xy, xz, yz))


def _links(compiled: Compiled, b: int, root: str | None, floating: int) -> list[Link]:
    """The joints of a body of MuJoCo as ours; with `root` its free joint may go or come."""
    m = compiled.m
    identity = Transform.identity()
    if b == floating:
        return [Link(Free(), unused(f"{compiled.bodies[b]}:root", set(compiled.joints)), identity, identity)]
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
    """Refuse the forces of joints that are no linear springs and dampers."""
    m, name = compiled.m, compiled.joints[j]
    first = m.jnt_dofadr[j]
    if any(m.jnt_stiffnesspoly[j]) and not compiled.disabled("SPRING"):
        raise compiled.error(
            "joint", name, f'joint "{name}" has a nonlinear spring; only linear ones are kept'
        )
    if any(m.dof_dampingpoly[first]) and not compiled.disabled("DAMPER"):
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
            unused(f"{name}:translation", set(compiled.joints)),
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
            float(x) if abs(x) < UNBOUNDED else math.copysign(math.inf, x) for x in m.jnt_range[j]
        )
    if m.jnt_actfrclimited[j]:
        low, high = (abs(float(x)) for x in m.jnt_actfrcrange[j])
        effort = min(low, high)
        if low != high:
            compiled.report.warn(
                f'joint "{compiled.joints[j]}": its force range is not symmetric; {effort:g} is used both ways'
            )
    return Limits(lower, upper, math.inf, effort)


def _floating_root(compiled: Compiled) -> int:
    """The one body on the world that carries the others and has no joint yet; -1 if the root floats already."""
    m = compiled.m
    roots = [b for b in range(1, m.nbody) if m.body_parentid[b] == 0]
    if any(m.body_jntnum[b] and int(m.jnt_type[m.body_jntadr[b]]) == FREE for b in roots):
        return -1
    moved = {int(m.body_rootid[b]) for b in range(1, m.nbody) if m.body_jntnum[b]}
    bearers = [b for b in roots if b in moved] or roots
    names = ", ".join(f'"{compiled.bodies[b]}"' for b in bearers)
    if len(bearers) != 1:
        raise FileError(
            f'{compiled.source.path}: root="floating" needs one body on the world to set free; there are '
            f"{len(bearers)}: {names or 'none'}"
        )
    if m.body_jntnum[bearers[0]]:
        raise FileError(
            f'{compiled.source.path}: root="floating" cannot set {names} free: it moves on joints of its own; '
            "take them out of the file, or load it as it is"
        )
    return bearers[0]
