"""Models as URDF text.

Every body becomes a link on a link "world", every frame a link without mass on a fixed joint. Numbers are
written so that they read back bit for bit. What URDF has no words for is an error where it is a joint, a loop
or a coupling, and a listed loss where it is a number.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final
from xml.sax.saxutils import quoteattr

from dalembert.errors import FileError
from dalembert.formats.report import CHANGES_DYNAMICS, refuse_functions
from dalembert.formats.urdf_values import rpy_of_rotation
from dalembert.model import Body, Coupling, Model
from dalembert.model.joints import Composite, Fixed, Free, Joint, Planar, Prismatic, Revolute
from dalembert.model.joints.subspaces import unit_axis
from dalembert.model.shapes import Box, Capsule, Cylinder, Mesh, Shape, Sphere
from dalembert.model.shapes.shape import GREY, USUAL_FRICTION
from dalembert.spatial import Mat3, Placement, RigidInertia, Transform, Vec3

__all__ = ["urdf_text"]

WORLD: Final = "world"
_GRAVITY: Final = (0.0, 0.0, -9.81)
_LARGEST: Final = sys.float_info.max
_NOT_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def urdf_text(model: Model, *, folder: Path | None = None) -> tuple[str, list[str]]:
    """Return the model as URDF, and a line for each loss; meshes below `folder` are named relative to it.

    Lines that begin with `CHANGES_DYNAMICS` are about losses without which the model moves otherwise.
    """
    if model.loops:
        raise FileError(
            f'URDF cannot hold loop joints, such as "{model.loops[0].name}"; save as .json, or model.tree()'
        )
    refuse_functions(model, "URDF")
    writer = _Writer(model, folder)
    writer.link(WORLD, RigidInertia.zero(), model.world_shapes)
    for body in model.bodies:
        writer.body(body)
    for frame in model.frames:
        carrier = WORLD if frame.body < 0 else model.bodies[frame.body].name
        writer.frame(frame.name, carrier, frame.placement)
    return writer.text(), writer.all_losses()


def _numbers(values: Iterable[float]) -> str:
    """Return numbers as the shortest text that reads back the same."""
    return " ".join(repr(float(value) + 0.0) for value in values)


def _quote_name(name: str, what: str) -> str:
    if _NOT_XML.search(name):
        raise FileError(f"{what} {name!r} holds a character that XML cannot hold; choose another name")
    return quoteattr(name)


class _Writer:
    """Lines of the file, in order, and the losses so far."""

    def __init__(self, model: Model, folder: Path | None) -> None:
        self.model = model
        self.folder = None if folder is None else folder.resolve()
        self.lines: list[str] = []
        self.losses: list[str] = []
        self.joint_names = set(model.joints.names)
        self.followers = {coupling.dependent: _leader(coupling) for coupling in model.couplings}

    def text(self) -> str:
        head = ['<?xml version="1.0"?>', f"<robot name={_quote_name(self.model.name, 'model')}>"]
        return "\n".join([*head, *self.lines, "</robot>", ""])

    def all_losses(self) -> list[str]:
        """Return the losses of the whole model, then those of its bodies."""
        whole = []
        if tuple(self.model.gravity) != _GRAVITY:
            whole.append(
                f"{CHANGES_DYNAMICS}gravity is {_numbers(self.model.gravity)}; URDF has none, loaders take "
                f"{_numbers(_GRAVITY)}"
            )
        if self.model.actuated != self.model.joints.names:
            whole.append("which joints are actuated; loaders take all")
        if self.model.contact_exclusions or self.model.contact_pairs:
            whole.append("exclusions and pairs of contact, which belong into an SRDF file")
        return whole + self.losses

    def body(self, body: Body) -> None:
        """Write the link and the joint of one body."""
        kind, axis = _type_of(body)
        what = f'joint "{body.joint_name}"'
        self._lose(any(body.armature), f"{what}: armature {_numbers(body.armature)}", grave=True)
        self._lose(any(body.stiffness), f"{what}: stiffness {_numbers(body.stiffness)}", grave=True)
        self.link(body.name, body.inertia, body.shapes)
        parent = WORLD if body.parent < 0 else self.model.bodies[body.parent].name
        self.lines.append(f'  <joint name={_quote_name(body.joint_name, "joint")} type="{kind}">')
        self._ends(parent, body.name, body.placement)
        if axis is not None:
            self.lines.append(f'    <axis xyz="{_numbers(axis)}"/>')
        self._limit(body, kind)
        self._dynamics(body)
        self._mimic(body)
        self.lines.append("  </joint>")

    def frame(self, name: str, carrier: str, placement: Placement) -> None:
        """Write a frame as a link without mass."""
        joint = f"{name}_frame"
        while joint in self.joint_names:
            joint += "_"
        self.joint_names.add(joint)
        self.lines.append(f"  <link name={_quote_name(name, 'frame')}/>")
        self.lines.append(f'  <joint name={_quote_name(joint, "joint")} type="fixed">')
        self._ends(carrier, name, placement)
        self.lines.append("  </joint>")

    def _lose(self, lost: bool, what: str, *, grave: bool = False) -> None:
        if lost:
            self.losses.append(CHANGES_DYNAMICS + what if grave else what)

    def _ends(self, parent: str, child: str, placement: Placement) -> None:
        self.lines.append(f"    <parent link={_quote_name(parent, 'link')}/>")
        self.lines.append(f"    <child link={_quote_name(child, 'link')}/>")
        self.lines.append(f"    {_origin(placement)}")

    def link(self, name: str, inertia: RigidInertia, shapes: Sequence[Shape]) -> None:
        """Write a link with its inertia and shapes."""
        if not shapes and not any(inertia.leaves()):
            self.lines.append(f"  <link name={_quote_name(name, 'link')}/>")
            return
        self.lines.append(f"  <link name={_quote_name(name, 'link')}>")
        if any(inertia.leaves()):
            self.lines += _inertial(inertia)
        for shape in shapes:
            self._shape(name, shape)
        self.lines.append("  </link>")

    def _limit(self, body: Body, kind: str) -> None:
        """Write the limits; the largest float means no limit, since other readers require the numbers."""
        limits = body.limits
        bounds = [_entries(item) for item in (limits.lower, limits.upper, limits.velocity, limits.effort)]
        if kind not in ("revolute", "prismatic"):
            free = all(math.isinf(bound) for bound in (bounds[0] + bounds[1]))
            self._lose(not free, f'joint "{body.joint_name}": its position limits')
            if all(math.isinf(bound) for bound in bounds[2] + bounds[3]):
                return
            if kind != "continuous":
                self._lose(True, f'joint "{body.joint_name}": its velocity and effort limits')
                return
        words = ("velocity", "effort") if kind == "continuous" else ("lower", "upper", "velocity", "effort")
        chosen = bounds[2:] if kind == "continuous" else bounds
        parts = [
            f'{word}="{_numbers([max(-_LARGEST, min(_LARGEST, bound[0]))])}"'
            for word, bound in zip(words, chosen)
        ]
        self.lines.append(f"    <limit {' '.join(parts)}/>")

    def _dynamics(self, body: Body) -> None:
        parts = []
        for word, values in (("damping", body.damping), ("friction", body.friction)):
            if len(set(values)) > 1:
                self._lose(True, f'joint "{body.joint_name}": {word} {_numbers(values)}', grave=True)
            elif any(values):
                parts.append(f'{word}="{_numbers(values[:1])}"')
        if parts:
            self.lines.append(f"    <dynamics {' '.join(parts)}/>")

    def _mimic(self, body: Body) -> None:
        if body.joint_name in self.followers:
            leader, multiplier, offset = self.followers[body.joint_name]
            self.lines.append(
                f"    <mimic joint={_quote_name(leader, 'joint')} "
                f'multiplier="{_numbers([multiplier])}" offset="{_numbers([offset])}"/>'
            )

    def _shape(self, link: str, shape: Shape) -> None:
        geometry = self._geometry(link, shape)
        if geometry is None:
            return
        what = f'the {shape.kind} of body "{link}"'
        surface = shape.friction not in (None, USUAL_FRICTION) or shape.restitution != 0.0
        self._lose(surface, f"{what}: its friction and restitution")
        self._lose((shape.group, shape.collides_with) != (1, 1), f"{what}: its group and mask of contact")
        name = f" name={_quote_name(shape.name, 'shape')}" if shape.name else ""
        for tag, wanted in (("visual", shape.visual), ("collision", shape.collision)):
            if wanted:
                self.lines.append(f"    <{tag}{name}>")
                self.lines.append(f"      {_origin(shape.placement)}")
                self.lines.append(f"      <geometry>{geometry}</geometry>")
                if tag == "visual" and shape.rgba != GREY:
                    colour = f'<color rgba="{_numbers(shape.rgba)}"/>'
                    self.lines.append(f'      <material name="">{colour}</material>')
                self.lines.append(f"    </{tag}>")

    def _geometry(self, link: str, shape: Shape) -> str | None:
        if isinstance(shape, Box):
            return f'<box size="{_numbers(shape.size)}"/>'
        if isinstance(shape, Sphere):
            return f'<sphere radius="{_numbers([shape.radius])}"/>'
        if isinstance(shape, Cylinder | Capsule):
            return f'<{shape.kind} radius="{_numbers([shape.radius])}" length="{_numbers([shape.length])}"/>'
        if isinstance(shape, Mesh):
            return (
                f"<mesh filename={_quote_name(self._mesh_name(shape.path), 'mesh')} "
                f'scale="{_numbers(shape.scale)}"/>'
            )
        self._lose(True, f'the {shape.kind} of body "{link}": URDF has no such shape')
        return None

    def _mesh_name(self, path: str) -> str:
        """Return a mesh name free of this machine's paths: relative to the folder, else in a package."""
        path = path.removeprefix("file://")
        if not Path(path).is_absolute():
            return path
        if self.folder is not None and Path(path).is_relative_to(self.folder):
            return Path(path).relative_to(self.folder).as_posix()
        name = f"package://{Path(path).parent.name or 'meshes'}/{Path(path).name}"
        self._lose(True, f"the folder of a mesh, now named {name}; give the folder above it in roots=[…]")
        return name


def _entries(bounds: tuple[float, ...] | float) -> list[float]:
    return [bounds] if isinstance(bounds, int | float) else list(bounds)


def _is_unlimited(body: Body) -> bool:
    return all(math.isinf(bound) for bound in (*_entries(body.limits.lower), *_entries(body.limits.upper)))


def _type_of(body: Body) -> tuple[str, Vec3 | None]:
    """Return URDF's word for a joint, and its axis if it has one."""
    joint = body.joint
    if isinstance(joint, Revolute):
        return "continuous" if _is_unlimited(body) else "revolute", joint.axis
    if isinstance(joint, Prismatic):
        return "prismatic", joint.axis
    if isinstance(joint, Fixed):
        return "fixed", None
    if isinstance(joint, Free):
        return "floating", None
    if isinstance(joint, Planar):
        return "planar", Vec3.unit(2)
    normal = _normal_of_planar(joint)
    if normal is not None:
        return "planar", normal
    raise FileError(
        f'URDF cannot hold joint "{body.joint_name}" of kind {joint.kind}; it knows revolute, prismatic, '
        "fixed, free and planar joints: save as .json, or replace the joint"
    )


def _normal_of_planar(joint: Joint) -> Vec3 | None:
    """Return the normal of a planar joint in another plane than x-y, as the loader makes them."""
    from dalembert.formats.urdf_assembly import planar_about

    if not isinstance(joint, Composite) or [member.kind for member in joint.joints] != ["planar", "fixed"]:
        return None
    normal = unit_axis(joint.placements[0].R @ Vec3.unit(2), "planar")
    return normal if planar_about(normal).parameters() == joint.parameters() else None


def _leader(coupling: Coupling) -> tuple[str, float, float]:
    """Return (leader, multiplier, offset) of a coupling between two joints."""
    terms = dict(coupling.coefficients)
    own = terms.pop(coupling.dependent)
    if len(terms) != 1:
        raise FileError(
            f'URDF cannot hold coupling "{coupling.name}" of {len(terms) + 1} joints; a joint mimics '
            "one other: save as .json"
        )
    ((leader, k),) = terms.items()
    return leader, -k / own, -coupling.offset / own


def _origin(placement: Placement) -> str:
    X = placement.as_transform()
    rpy = "" if _is_identity(X.R) else f' rpy="{_numbers(rpy_of_rotation(X.R))}"'
    return f'<origin xyz="{_numbers(X.p)}"{rpy}/>'


def _is_identity(R: Mat3) -> bool:
    return bool(R.to_list() == Mat3.identity().to_list())


def _inertial(inertia: RigidInertia) -> list[str]:
    """Return the inertial of a link, its axes parallel to the link's."""
    at_com = inertia.inertia_at_com
    moments = " ".join(
        f'{word}="{_numbers([getattr(at_com, word[1:])])}"'
        for word in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
    )
    return [
        "    <inertial>",
        f"      {_origin(Transform(Mat3.identity(), inertia.com))}",
        f'      <mass value="{_numbers([inertia.mass])}"/>',
        f"      <inertia {moments}/>",
        "    </inertial>",
    ]
