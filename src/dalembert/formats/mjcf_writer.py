"""Models as MJCF text.

A body without mass between two joints has no place in MJCF: its joints are stacked on the body that it
carries. Positions keep their meaning, and so do velocities but where a loss says otherwise. What would change
the dynamics is an error; what the format cannot hold otherwise is a loss.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, final

import numpy as np

from dalembert.errors import FileError
from dalembert.formats.document import MAX_DEPTH
from dalembert.formats.mjcf_writer_constraints import (
    closure_sites,
    write_actuators,
    write_constraints,
    write_contact,
)
from dalembert.formats.mjcf_writer_geometry import Assets, write_geom
from dalembert.formats.mjcf_writer_joints import Item, Stacked, stack, steps_of
from dalembert.formats.mjcf_writer_lines import Lines, number, numbers, placement_attributes
from dalembert.model import Model
from dalembert.model.body import Body
from dalembert.spatial import Mat3, RigidInertia, physical_problems
from dalembert.spatial.rotations import quaternion_of_rotation

__all__ = ["mjcf_text"]

MIN_MOMENT_OF_INERTIA: Final = 2e-15
"""Smaller moments are written as this [kg m^2]: twice the least that MuJoCo accepts (mjMINVAL, 1e-15)."""

INFINITE_RANGE_END: Final = 1e15
"""Replaces an infinite end of a range [rad, m] whose other end is finite; our loader reads it as none."""


def mjcf_text(model: Model, *, folder: Path | None = None) -> tuple[str, list[str]]:
    """Return the model as MJCF, and a sentence for each thing that the text does not hold.

    `folder` is where the text will be stored: meshes are named if they lie below it.
    """
    if model.time_dependent:
        raise FileError(
            "the model has joints that depend on time, which MJCF does not have; save it as .json"
        )
    return _Writer(model, folder).text()


def principal(inertia: RigidInertia) -> tuple[list[float], list[float]]:
    """Return the principal moments about the centre of mass [kg m^2] and the quaternion of their axes."""
    I = np.array(inertia.inertia_at_com.to_list(), dtype=float)
    if not np.any(I - np.diag(np.diag(I))):
        return [float(x) for x in np.diag(I)], [1.0, 0.0, 0.0, 0.0]
    if not np.isfinite(I).all():
        raise FileError("MJCF cannot hold an inertia that overflows; correct the mass and the centre of mass")
    moments, axes = np.linalg.eigh(I)
    if np.linalg.det(axes) < 0.0:
        axes[:, 0] = -axes[:, 0]
    R = Mat3(*(float(x) for x in axes.ravel()))
    return [float(x) for x in moments], [float(x) for x in quaternion_of_rotation(R)]


@final
class _Writer:
    """The lines of one file, while they are collected."""

    def __init__(self, model: Model, folder: Path | None) -> None:
        self.model = model
        self.losses: list[str] = []
        self.lines = Lines(depth=1)
        self.assets = Assets(self.losses, folder)
        self.children: dict[int, list[Body]] = {}
        for body in model.bodies:
            self.children.setdefault(body.parent, []).append(body)
        self.sites: dict[int, list[tuple[str, Any]]] = {}
        for frame in model.frames:
            self.sites.setdefault(frame.body, []).append((frame.name, frame.placement))
        for loop in model.loops:
            for carrier, site in closure_sites(loop):
                self.sites.setdefault(carrier, []).append(site)
        self.order: list[str] = []
        self.written = {"world"}

    def text(self) -> tuple[str, list[str]]:
        self._worldbody()
        head = Lines()
        head.open("mujoco", model=self.model.name)
        head.leaf("compiler", angle="radian", autolimits="true", inertiafromgeom="false")
        head.leaf("option", gravity=numbers(self.model.gravity))
        self.assets.write(head)
        write_contact(self.model, self.lines, self.written, self.assets.names, self.losses)
        write_constraints(self.model, self.lines, self.losses)
        write_actuators(self.model, self.lines, self.losses)
        self.lines.close("mujoco")
        moving = [body.joint_name for body in self.model.bodies if body.nv]
        if self.order != moving:
            self.losses.append("joints stand in another order in q and v: " + ", ".join(self.order))
        return head.text() + self.lines.text(), self.losses

    def _worldbody(self) -> None:
        """Write the bodies depth first without recursion: a stack holds bodies to open and tags to close."""
        self.lines.open("worldbody")
        for shape in self.model.world_shapes:
            write_geom(shape, self.lines, self.assets, moving=False, place="world")
        self._sites(-1)
        waiting: list[Body | None] = [*reversed(self.children.get(-1, []))]
        while waiting:
            body = waiting.pop()
            if body is None:
                self.lines.close("body")
                continue
            body = self._body(body)
            waiting.append(None)
            waiting.extend(reversed(self.children.get(body.index, [])))
        self.lines.close("worldbody")

    def _body(self, body: Body) -> Body:
        """Open a body, massless ones before it stacked on it; returns the body that was written."""
        items: list[Item] = steps_of(body, self.losses)
        self._note_order(body)
        while self._is_massless_mover(body):
            below = self.children.get(body.index, [])
            if len(below) != 1 or body.shapes or self._carries_loop(body):
                raise FileError(
                    f'body "{body.name}" moves and has no mass, which MuJoCo refuses; give it some mass, or '
                    "merge fixed bodies with model.lumped()"
                )
            lost = [name for name, _ in self.sites.get(body.index, [])]
            self.losses += [f'frame "{name}" on the massless body "{body.name}" is left out' for name in lost]
            body = below[0]
            items += steps_of(body, self.losses)
            self._note_order(body)
        pose, joints = stack(items)
        freedoms = sum(len(joint.step.v) for joint in joints)
        if freedoms > 6:
            raise FileError(
                f'body "{body.name}" carries {freedoms} freedoms with the massless bodies before it; MJCF '
                "has six at most: give those bodies some mass"
            )
        if self.lines.depth >= MAX_DEPTH - 2:
            raise FileError(f'body "{body.name}" is nested deeper than {MAX_DEPTH} elements; save as .json')
        self.lines.open("body", name=body.name, **placement_attributes(pose))
        self.written.add(body.name)
        for joint in joints:
            self._joint(joint)
        self._inertial(body, moving=bool(joints))
        for shape in body.shapes:
            moving = bool(joints) or body.parent >= 0
            write_geom(shape, self.lines, self.assets, moving=moving, place=body.name)
        self._sites(body.index)
        return body

    def _note_order(self, body: Body) -> None:
        if body.nv:
            self.order.append(body.joint_name)

    def _is_massless_mover(self, body: Body) -> bool:
        return bool(body.nv) and not any(body.inertia.leaves())

    def _carries_loop(self, body: Body) -> bool:
        return any(body.index in (loop.predecessor, loop.successor) for loop in self.model.loops)

    def _joint(self, joint: Stacked) -> None:
        step = joint.step
        body = step.body
        assert body is not None
        attributes: dict[str, str] = {"name": step.name, "type": step.kind}
        if step.kind in ("hinge", "slide"):
            attributes["axis"] = numbers(joint.axis)
        if step.kind in ("hinge", "ball") and any(joint.anchor):
            attributes["pos"] = numbers(joint.anchor)
        for key, values in (
            ("armature", body.armature),
            ("damping", body.damping),
            ("frictionloss", body.friction),
            ("stiffness", body.stiffness),
        ):
            own = {float(values[k]) for k in step.v}
            if len(own) > 1:
                raise FileError(
                    f'joint "{body.joint_name}" has different {key} for its freedoms; a {step.kind} joint of '
                    "MJCF has one number for all"
                )
            if value := own.pop():
                attributes[key] = number(value)
        self._spring(step, body, attributes)
        self._limits(step, body, attributes)
        self.lines.leaf("joint", **attributes)

    def _spring(self, step: Any, body: Body, attributes: dict[str, str]) -> None:
        if "stiffness" not in attributes:
            return
        if step.kind in ("hinge", "slide"):
            attributes["springref"] = number(body.rest[step.q])
        elif list(body.rest[step.q : step.q + 4]) != [1.0, 0.0, 0.0, 0.0]:
            raise FileError(
                f'ball joint "{body.joint_name}" has a spring that is slack at {list(body.rest)}; MJCF has '
                "springs of ball joints at the identity only"
            )

    def _limits(self, step: Any, body: Body, attributes: dict[str, str]) -> None:
        limits: dict[str, Sequence[float]] = {
            key: np.broadcast_to(getattr(body.limits, key), n).tolist()
            for key, n in (("lower", body.nq), ("upper", body.nq), ("velocity", body.nv), ("effort", body.nv))
        }
        what = f'joint "{step.name}"'
        if any(math.isfinite(limits["velocity"][k]) for k in step.v):
            self.losses.append(f"{what}: limits of velocity are left out")
        if step.kind not in ("hinge", "slide"):
            width = {"ball": 4, "free": 7}[step.kind]
            ends = [limits[key][step.q + k] for key in ("lower", "upper") for k in range(width)]
            if any(map(math.isfinite, [*ends, *(limits["effort"][k] for k in step.v)])):
                self.losses.append(f"{what}: limits of a {step.kind} joint are left out")
            return
        low, high = limits["lower"][step.q], limits["upper"][step.q]
        if low == high:
            self.losses.append(f"{what}: a range of no width, {low:g}, is left out")
        elif math.isfinite(low) or math.isfinite(high):
            attributes["range"] = numbers([max(low, -INFINITE_RANGE_END), min(high, INFINITE_RANGE_END)])
        effort = limits["effort"][step.v[0]]
        if math.isfinite(effort) and effort > 0.0:
            attributes["actuatorfrcrange"] = numbers([-effort, effort])
        elif effort == 0.0:
            self.losses.append(f"{what}: an effort limit of zero is left out")

    def _inertial(self, body: Body, *, moving: bool) -> None:
        inertia = body.inertia
        if not any(inertia.leaves()):
            return
        if problems := physical_problems(inertia):
            raise FileError(f'body "{body.name}": {"; ".join(problems)}; MuJoCo refuses such a body')
        moments, quaternion = principal(inertia)
        if min(moments) < MIN_MOMENT_OF_INERTIA and moving:
            moments = [max(moment, MIN_MOMENT_OF_INERTIA) for moment in moments]
            self.losses.append(
                f'body "{body.name}": moments of inertia are raised to {MIN_MOMENT_OF_INERTIA:g} kg m^2'
            )
        greatest = moments.index(max(moments))
        # A lamina's moments may break the triangle inequality by rounding, which MuJoCo does not allow.
        moments[greatest] = min(moments[greatest], sum(moments) - moments[greatest])
        self.lines.leaf(
            "inertial",
            mass=number(inertia.mass),
            pos=numbers(inertia.com),
            quat=numbers(quaternion),
            diaginertia=numbers(max(0.0, moment) for moment in moments),
        )

    def _sites(self, body: int) -> None:
        for name, placement in self.sites.get(body, []):
            self.lines.leaf("site", name=name, **placement_attributes(placement))
