"""Models as URDF text.

Every body becomes a link on a link "world", every frame a link without mass on a fixed joint. Numbers are
written so that they read back bit for bit. What URDF has no words for is an error where it is a joint, a loop
or a coupling, and a listed loss where it is a number.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final, final

import numpy as np

from dalembert.errors import FileError
from dalembert.formats.document import XmlText, numbers
from dalembert.formats.resources import reject_functions
from dalembert.formats.urdf.elements import SOLIDS, VOCABULARY, planar_about
from dalembert.model import Body, Coupling, Model
from dalembert.model.body import LIMITS, bounds_of
from dalembert.model.joints import Composite, Fixed, Free, Planar, Prismatic, Revolute
from dalembert.model.joints.subspaces import unit_axis
from dalembert.model.shapes import Mesh, Shape
from dalembert.model.shapes.shape import GREY, USUAL_FRICTION
from dalembert.spatial import Mat3, Placement, RigidInertia, Transform, Vec3

WORLD: Final = "world"
GRAVITY_OF_READERS: Final = (0.0, 0.0, -9.81)
_LARGEST: Final = sys.float_info.max


def urdf_text(model: Model, *, folder: Path | None = None) -> tuple[str, list[str]]:
    """Return the model as URDF, and a line for each loss; meshes below `folder` are named relative to it.

    Lines that begin with `CHANGES_DYNAMICS` are about losses without which the model moves otherwise.
    """
    if model.loops:
        raise FileError(
            f'URDF cannot hold loop joints, such as "{model.loops[0].name}"; save as .json, or model.tree()'
        )
    reject_functions(model, "URDF")
    return _Writer(model, folder).text()


@final
class _Writer:
    """The writer of one file."""

    def __init__(self, model: Model, folder: Path | None) -> None:
        self.model = model
        self.folder = None if folder is None else folder.resolve()
        self.xml = XmlText()
        self.joint_names = set(model.joints.names)
        self.followers = {coupling.dependent: _leader(coupling) for coupling in model.couplings}

    def text(self) -> tuple[str, list[str]]:
        model, xml = self.model, self.xml
        gravity = f"gravity is {numbers(model.gravity)}; URDF has none, loaders take "
        changed = tuple(model.gravity) != GRAVITY_OF_READERS
        xml.lose(changed, gravity + numbers(GRAVITY_OF_READERS), grave=True)
        xml.lose(model.actuated != model.joints.names, "which joints are actuated; loaders take all")
        contact = model.contact_exclusions or model.contact_pairs
        xml.lose(contact, "exclusions and pairs of contact, which belong into an SRDF file")
        for spring in model.springs:
            xml.lose(True, f'spring "{spring.name}" between points is left out', grave=True)
        xml.lose(model.fluid is not None, "the fluid and its drag are left out", grave=True)
        with xml.inside("robot", name=model.name):
            self._link(WORLD, RigidInertia.zero(), model.world_shapes)
            for body in model.bodies:
                self._body(body)
            for frame in model.frames:
                xml.leaf("link", name=frame.name)
                joint = f"{frame.name}_frame"
                while joint in self.joint_names:
                    joint += "_"
                self.joint_names.add(joint)
                self._joint(joint, "fixed", frame.body, frame.name, frame.placement)
                xml.close("joint")
        return '<?xml version="1.0"?>\n' + xml.text(), xml.losses

    def _body(self, body: Body) -> None:
        """Write the link and the joint of one body."""
        kind, axis = _type_of(body)
        for word, values in (("armature", body.armature), ("stiffness", body.stiffness)):
            what = f'joint "{body.joint_name}": {word} {numbers(values)}'
            self.xml.lose(any(values), what, grave=True)
        self._link(body.name, body.inertia, body.shapes)
        self._joint(body.joint_name, kind, body.parent, body.name, body.placement)
        if axis is not None:
            self.xml.leaf("axis", xyz=numbers(axis))
        self._limit(body, kind)
        same = {}
        for word, values in (("damping", body.damping), ("friction", body.friction)):
            differs = len(set(values)) > 1
            self.xml.lose(differs, f'joint "{body.joint_name}": {word} {numbers(values)}', grave=True)
            if any(values) and not differs:
                same[word] = numbers(values[:1])
        if same:
            self.xml.leaf("dynamics", **same)
        if body.joint_name in self.followers:
            leader, multiplier, offset = self.followers[body.joint_name]
            self.xml.leaf("mimic", joint=leader, multiplier=numbers([multiplier]), offset=numbers([offset]))
        self.xml.close("joint")

    def _joint(self, name: str, kind: str, parent: int, child: str, placement: Placement) -> None:
        """Begin a joint."""
        self.xml.open("joint", name=name, type=kind)
        self.xml.leaf("parent", link=WORLD if parent < 0 else self.model.bodies[parent].name)
        self.xml.leaf("child", link=child)
        self._origin(placement)

    def _origin(self, placement: Placement) -> None:
        X = placement.as_transform()
        turned = X.R.to_list() != Mat3.identity().to_list()
        turn = {"rpy": numbers(rpy_of_rotation(X.R))} if turned else {}
        self.xml.leaf("origin", xyz=numbers(X.p), **turn)

    def _link(self, name: str, inertia: RigidInertia, shapes: Sequence[Shape]) -> None:
        """Write a link with its inertia, about axes parallel to the link's, and its shapes."""
        heavy = any(inertia.leaves())
        if not shapes and not heavy:
            self.xml.leaf("link", name=name)
            return
        with self.xml.inside("link", name=name):
            if heavy:
                at_com, words = inertia.inertia_at_com, VOCABULARY["inertia"].attributes
                with self.xml.inside("inertial"):
                    self._origin(Transform(Mat3.identity(), inertia.com))
                    self.xml.leaf("mass", value=numbers([inertia.mass]))
                    self.xml.leaf("inertia", **{word: numbers([getattr(at_com, word[1:])]) for word in words})
            for shape in shapes:
                self._shape(name, shape)

    def _limit(self, body: Body, kind: str) -> None:
        """Write the limits; the largest float means no limit, since other readers require the numbers."""
        what = f'joint "{body.joint_name}"'
        bounds = {word: bounds_of(body, word) for word in LIMITS}
        if kind not in ("revolute", "prismatic"):
            limited = map(math.isfinite, bounds.pop("lower") + bounds.pop("upper"))
            self.xml.lose(any(limited), f"{what}: its position limits")
            if not any(map(math.isfinite, bounds["velocity"] + bounds["effort"])):
                return
            if kind != "continuous":
                self.xml.lose(True, f"{what}: its velocity and effort limits")
                return
        clamped = {word: max(-_LARGEST, min(_LARGEST, bound[0])) for word, bound in bounds.items()}
        self.xml.leaf("limit", **{word: numbers([bound]) for word, bound in clamped.items()})

    def _shape(self, link: str, shape: Shape) -> None:
        what = f'the {shape.kind} of body "{link}"'
        attributes = {}
        if isinstance(shape, Mesh):
            attributes = {"filename": self._mesh_name(shape.path), "scale": numbers(shape.scale)}
        elif shape.kind in SOLIDS:
            words = VOCABULARY[shape.kind].attributes
            attributes = {word: numbers(np.ravel(getattr(shape, word))) for word in words}
        else:
            self.xml.lose(True, f"{what}: URDF has no such shape")
            return
        surface = shape.friction not in (None, USUAL_FRICTION) or shape.restitution != 0.0
        self.xml.lose(surface, f"{what}: its friction and restitution")
        self.xml.lose((shape.group, shape.collides_with) != (1, 1), f"{what}: its group and mask of contact")
        name = {"name": shape.name} if shape.name else {}
        for tag, wanted in (("visual", shape.visual), ("collision", shape.collision)):
            if wanted:
                with self.xml.inside(tag, **name):
                    self._origin(shape.placement)
                    self.xml.group("geometry", [(shape.kind, attributes)])
                    if tag == "visual" and shape.rgba != GREY:
                        with self.xml.inside("material", name=""):
                            self.xml.leaf("color", rgba=numbers(shape.rgba))

    def _mesh_name(self, path: str) -> str:
        """Return a mesh name free of this machine's paths: relative to the folder, else in a package."""
        path = path.removeprefix("file://")
        if not Path(path).is_absolute():
            return path
        if self.folder is not None and Path(path).is_relative_to(self.folder):
            return Path(path).relative_to(self.folder).as_posix()
        name = f"package://{Path(path).parent.name or 'meshes'}/{Path(path).name}"
        self.xml.lose(True, f"the folder of a mesh, now named {name}; give the folder above it in roots=[…]")
        return name


def _type_of(body: Body) -> tuple[str, Vec3 | None]:
    """Return URDF's word for a joint, and its axis if it has one."""
    joint = body.joint
    if isinstance(joint, Revolute):
        limited = any(map(math.isfinite, bounds_of(body, "lower") + bounds_of(body, "upper")))
        return "revolute" if limited else "continuous", joint.axis
    if isinstance(joint, Prismatic):
        return "prismatic", joint.axis
    if isinstance(joint, Fixed | Free):
        return "fixed" if isinstance(joint, Fixed) else "floating", None
    if isinstance(joint, Planar):
        return "planar", Vec3.unit(2)
    # The loader makes such a joint for another plane than x-y.
    if isinstance(joint, Composite) and [member.kind for member in joint.joints] == ["planar", "fixed"]:
        normal = unit_axis(joint.placements[0].R @ Vec3.unit(2), "planar")
        if planar_about(normal).parameters() == joint.parameters():
            return "planar", normal
    raise FileError(
        f'URDF cannot hold joint "{body.joint_name}" of kind {joint.kind}; it knows revolute, prismatic, '
        "fixed, free and planar joints: save as .json, or replace the joint"
    )


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


def rpy_of_rotation(R: Mat3) -> tuple[float, float, float]:
    """Return (roll, pitch, yaw) [rad] of R, to rounding everywhere: each angle is read off after the last is
    undone.

    In gimbal lock, where cos(pitch) is 0, any yaw will do; the one that rounding leaves is taken and roll
    makes up for it.
    """
    M: Sequence[Sequence[float]] = R.to_list()
    yaw = math.atan2(M[1][0], M[0][0])
    c, s = math.cos(yaw), math.sin(yaw)
    pitch = math.atan2(-M[2][0], c * M[0][0] + s * M[1][0])
    roll = math.atan2(s * M[0][2] - c * M[1][2], c * M[1][1] - s * M[0][1])
    return roll + 0.0, pitch + 0.0, yaw + 0.0
