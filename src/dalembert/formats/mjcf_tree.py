"""Bodies of a compiled MuJoCo model.

A body of MuJoCo stands in its parent by a pose B and carries any number of joints, all given in its own frame
before any of them has moved. Its pose on the parent is (MuJoCo's `mj_kinematics`)

    B  T(p_1) J_1 T(-p_1)  T(p_2) J_2 T(-p_2)  ...                                              (1)

with the anchor p_k of joint k and its displacement J_k. Each joint becomes a body of ours, massless but the
last, so that q and v keep MuJoCo's order and the dynamics are the same. Our bodies have their frames at the
anchors: MuJoCo's frame of the body is T(-p_n) on the last of them. A body without joints is merged into the
one that carries it and leaves a frame of its name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from dalembert.errors import FileError
from dalembert.formats.mjcf_compiled import FREE, Compiled, Home, pose, unique_name
from dalembert.formats.mjcf_joints import Link, links_of
from dalembert.model import ModelBuilder
from dalembert.model.joints import Fixed, Free, Translation
from dalembert.spatial import Mat3, RigidInertia, SymMat3, Transform

__all__ = ["Plan", "add_bodies", "plan_bodies"]


@final
@dataclass(frozen=True)
class Plan:
    """The home of every body of MuJoCo (`homes`, the world first), and the bodies and frames to be made."""

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
        links = links_of(compiled, b, root, floating)
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
    """Add the moving bodies, the shapes of the world, and the frames of lumped bodies."""
    used = set(compiled.bodies)
    for name, parent, start, links in plan.chains:
        _add_chain(builder, compiled, used, name, parent, start, links, plan.inertias[name])
    if not plan.chains:  # a model has a body, if only one that stands still
        builder.add_body(unique_name("static_geometry", used), "world", Fixed())
    for shape in compiled.shapes.get("world", ()):
        builder.add_shape("world", shape)
    for name, home in plan.frames:
        builder.add_frame(name if name in compiled.bodies else unique_name(name, used), *home)


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
    """Add the joints of one body by (1), each with a body of its own."""
    for k, link in enumerate(links):
        last = k == len(links) - 1
        own = name if last else unique_name(f"{name}/{link.name}", used)
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
            damping=0.0 if compiled.is_disabled("DAMPER") else _per_dof(compiled, link, "damping"),
            friction=0.0
            if compiled.is_disabled("FRICTIONLOSS")
            else _per_dof(compiled, link, "frictionloss"),
            stiffness=0.0 if compiled.is_disabled("SPRING") else link.stiffness,
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
    """Return the inertia of a body of MuJoCo in the frame in which it stands by `at`."""
    m = compiled.m
    own = pose(m.body_ipos[b], m.body_iquat[b])
    R = at.R @ own.R
    A, B, C = (float(x) for x in m.body_inertia[b])
    xx, xy, xz, _, yy, yz, _, _, zz = R @ Mat3(A, 0.0, 0.0, 0.0, B, 0.0, 0.0, 0.0, C) @ R.transpose()
    return RigidInertia(float(m.body_mass[b]), at.transform_point(own.p), SymMat3(xx, yy, zz, xy, xz, yz))


def _floating_root(compiled: Compiled) -> int:
    """Return the one body on the world that carries the others and has no joint; -1 if one floats already."""
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
            f'{compiled.source.path}: root="floating" cannot set {names} free: it has joints of its own; '
            "take them out of the file, or load it as it is"
        )
    return bearers[0]
