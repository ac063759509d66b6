"""Links and joints of a URDF file as they stand there, checked one by one."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from dalembert.errors import ModelError, UnknownNameError
from dalembert.formats.document import Element
from dalembert.formats.report import Report
from dalembert.formats.urdf_values import (
    MIN_INFINITE_LIMIT,
    name_of,
    number,
    numbers,
    placement,
    required_attribute,
)
from dalembert.model import Limits
from dalembert.model.joints.subspaces import unit_axis
from dalembert.model.shapes import Box, Capsule, Cylinder, Mesh, Shape, Sphere
from dalembert.spatial import RigidInertia, SymMat3, Transform, Vec3

__all__ = ["JOINT_TYPES", "Mimic", "UrdfJoint", "UrdfLink", "read_joint", "read_link", "read_materials"]

JOINT_TYPES: Final = ("revolute", "continuous", "prismatic", "fixed", "floating", "planar")

UNIT_TOLERANCE: Final = 1e-4
"""How far from 1 the length of an axis may be before it is reported: files round to a few digits."""

MeshPath = Callable[[Element, str], tuple[str, bool]]
"""What becomes of a mesh's filename: (element, filename) -> (path to keep, whether it may be read)."""

Rgba = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class UrdfLink:
    """One link: its inertia (mass 0 where the file gives none) and its shapes, in the link's frame."""

    name: str
    inertia: RigidInertia
    shapes: tuple[Shape, ...]
    element: Element


@dataclass(frozen=True, slots=True)
class Mimic:
    """q = multiplier * q(leader) + offset."""

    leader: str
    multiplier: float
    offset: float
    element: Element


@dataclass(frozen=True, slots=True)
class UrdfJoint:
    """One joint between two links; `placement` puts the child's frame, at q = 0, into the parent's."""

    name: str
    type: str
    parent: str
    child: str
    placement: Transform
    axis: Vec3
    limits: Limits
    damping: float
    friction: float
    mimic: Mimic | None
    element: Element


def read_link(
    element: Element, materials: Mapping[str, Rgba], mesh_path: MeshPath, report: Report
) -> UrdfLink:
    """Read a `<link>`; shapes of unknown geometry are reported."""
    shapes = []
    for child in element.children:
        if child.tag in ("visual", "collision"):
            shape = _shape(child, materials, mesh_path, report)
            if shape is not None:
                shapes.append(shape)
    return UrdfLink(name_of(element), _inertia(element.only("inertial")), tuple(shapes), element)


def _inertia(inertial: Element | None) -> RigidInertia:
    """Return the inertia about the link's origin; `<inertia>` is about the centre of mass, along the axes of
    `<origin>`.
    """
    if inertial is None:
        return RigidInertia.zero()
    mass_element, moments = inertial.only("mass"), inertial.only("inertia")
    if mass_element is None or moments is None:
        tag = "mass" if mass_element is None else "inertia"
        raise inertial.error(f"there is no <{tag}>; give it, or delete the whole <inertial>")
    mass = number(mass_element, "value")
    if mass < 0.0:
        raise mass_element.error(f"the mass is {mass:g} kg; it must not be negative")
    ixx, ixy, ixz, iyy, iyz, izz = (
        number(moments, word) for word in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
    )
    at_com = SymMat3(ixx, iyy, izz, ixy, ixz, iyz)
    origin = inertial.only("origin")
    X = placement(origin)
    if origin is None or not ("rpy" in origin.attributes or "quat_xyzw" in origin.attributes):
        return RigidInertia(mass, X.p, at_com)
    return X.inverse_apply(RigidInertia(mass, Vec3.zero(), at_com))


def read_materials(robot: Element) -> dict[str, Rgba]:
    """Read the colours by name, of materials at the top and of those that links define for others."""
    found: dict[str, Rgba] = {}
    visuals = [visual for link in robot.all("link") for visual in link.all("visual")]
    for holder in (robot, *visuals):
        for material in holder.all("material"):
            rgba = _colour(material)
            if rgba is not None and "name" in material.attributes:
                found.setdefault(material.attributes["name"], rgba)
    return found


def _colour(material: Element) -> Rgba | None:
    color = material.only("color")
    if color is None:
        return None
    r, g, b, a = (min(max(c, 0.0), 1.0) for c in numbers(color, "rgba", 4))
    return r, g, b, a


def _shape(
    element: Element, materials: Mapping[str, Rgba], mesh_path: MeshPath, report: Report
) -> Shape | None:
    geometry = element.only("geometry")
    if geometry is None:
        raise element.error("there is no <geometry>; give one")
    known = [child for child in geometry.children if child.tag in _GEOMETRIES]
    if len(known) != 1:
        if len(known) > 1:
            raise known[1].error("a second geometry; write a <visual> or <collision> for each")
        report.warn(f"{element.place}: no geometry of a known kind; the shape is left out")
        return None
    collision = element.tag == "collision"
    if not collision and _draws_nothing(known[0]):
        report.warn(f"{known[0].place}: a box of size zero, so that there is nothing to draw")
        return None
    options: dict[str, Any] = {
        "name": element.attributes.get("name", ""),
        "placement": placement(element.only("origin")),
        "visual": not collision,
        "collision": collision,
    }
    material = None if collision else element.only("material")
    rgba = (
        None if material is None else _colour(material) or materials.get(material.attributes.get("name", ""))
    )
    if rgba is not None:
        options["rgba"] = rgba
    try:
        return _GEOMETRIES[known[0].tag](known[0], options, mesh_path)
    except ModelError as error:
        raise known[0].error(str(error)) from None


def _draws_nothing(geometry: Element) -> bool:
    """Return whether the geometry is `<box size="0 0 0"/>`, which marks links without a body."""
    return geometry.tag == "box" and "size" in geometry.attributes and not any(numbers(geometry, "size", 3))


def _mesh(element: Element, options: dict[str, Any], mesh_path: MeshPath) -> Shape:
    filename = required_attribute(element, "filename")
    if not filename.strip():
        raise element.error("attribute filename is empty; name the mesh file")
    scale = numbers(element, "scale", 3, (1.0, 1.0, 1.0))
    path, readable = mesh_path(element, filename)
    return Mesh(path, (scale[0], scale[1], scale[2]), readable=readable, **options)


def _box(element: Element, options: dict[str, Any], _: MeshPath) -> Shape:
    x, y, z = numbers(element, "size", 3)
    return Box((x, y, z), **options)


def _sphere(element: Element, options: dict[str, Any], _: MeshPath) -> Shape:
    return Sphere(number(element, "radius"), **options)


def _cylinder(element: Element, options: dict[str, Any], _: MeshPath) -> Shape:
    return Cylinder(number(element, "radius"), number(element, "length"), **options)


def _capsule(element: Element, options: dict[str, Any], _: MeshPath) -> Shape:
    return Capsule(number(element, "radius"), number(element, "length"), **options)


_GEOMETRIES: Final[dict[str, Callable[[Element, dict[str, Any], MeshPath], Shape]]] = {
    "box": _box,
    "sphere": _sphere,
    "cylinder": _cylinder,
    "capsule": _capsule,
    "mesh": _mesh,
}


def read_joint(element: Element, report: Report) -> UrdfJoint:
    """Read a `<joint>`; doubtful values are reported, impossible ones refused."""
    name = name_of(element)
    kind = required_attribute(element, "type")
    if kind not in JOINT_TYPES:
        raise element.error(str(UnknownNameError.of(f'type of joint "{name}",', kind, JOINT_TYPES)))
    parent, child = element.only("parent"), element.only("child")
    if parent is None or child is None:
        raise element.error(
            f'joint "{name}" has no <{"parent" if parent is None else "child"}>; name the link'
        )
    parent_name, child_name = name_of(parent, "link"), name_of(child, "link")
    if parent_name == child_name:
        raise element.error(f'joint "{name}" connects link "{child_name}" to itself; name two links')
    dynamics = element.only("dynamics")
    damping, friction = (
        0.0 if dynamics is None else _not_negative(dynamics, word) for word in ("damping", "friction")
    )
    return UrdfJoint(
        name=name,
        type=kind,
        parent=parent_name,
        child=child_name,
        placement=placement(element.only("origin")),
        axis=_axis(element, kind, report),
        limits=_limits(element, kind, report),
        damping=damping,
        friction=friction,
        mimic=_mimic(element, kind, report),
        element=element,
    )


def _not_negative(element: Element, word: str, default: float = 0.0) -> float:
    value = number(element, word, default)
    if value < 0.0:
        raise element.error(f"{word} is {value:g}; it must not be negative")
    return value


def _infinite_if_unlimited(bound: float) -> float:
    return math.copysign(math.inf, bound) if abs(bound) >= MIN_INFINITE_LIMIT else bound


def _axis(joint: Element, kind: str, report: Report) -> Vec3:
    """Return the unit axis; URDF's default is x."""
    element = joint.only("axis")
    if element is None:
        if kind == "planar":
            report.note(f"{joint.place}: no <axis>, so the plane is normal to x, URDF's default")
        return Vec3(1.0, 0.0, 0.0)
    if kind in ("fixed", "floating"):
        report.ignore(f"<axis> of a {kind} joint", element.line)
        return Vec3(1.0, 0.0, 0.0)
    x, y, z = numbers(element, "xyz", 3, (1.0, 0.0, 0.0))
    if x == y == z == 0.0:
        raise element.error("the axis is zero; give a direction, such as 0 0 1")
    length = math.hypot(x, y, z)
    if abs(length - 1.0) > UNIT_TOLERANCE:
        report.warn(f"{element.place}: the axis {x:g} {y:g} {z:g} has length {length:.6g}; it is normalised")
    return unit_axis((x, y, z), "axis")


def _limits(joint: Element, kind: str, report: Report) -> Limits:
    element = joint.only("limit")
    if kind in ("fixed", "floating", "planar"):
        if element is not None:
            report.ignore(f"<limit> of a {kind} joint", element.line)
        return Limits()
    if element is None:
        if kind != "continuous":
            report.warn(f"{joint.place}: a {kind} joint without <limit>; it moves without bounds")
        return Limits()
    velocity, effort = (
        _infinite_if_unlimited(_not_negative(element, w, math.inf)) for w in ("velocity", "effort")
    )
    if kind == "continuous":
        for word in ("lower", "upper"):
            if word in element.attributes:
                number(element, word)
                report.ignore(f"{word} limit of a continuous joint", element.line)
        return Limits(velocity=velocity, effort=effort)
    if not {"lower", "upper"} & element.attributes.keys():
        report.warn(f"{element.place}: neither lower nor upper is given; both are 0, as URDF says")
    lower, upper = number(element, "lower", 0.0), number(element, "upper", 0.0)
    if lower > upper:
        raise element.error(f"lower {lower:g} is above upper {upper:g}; exchange them")
    return Limits(_infinite_if_unlimited(lower), _infinite_if_unlimited(upper), velocity, effort)


def _mimic(joint: Element, kind: str, report: Report) -> Mimic | None:
    element = joint.only("mimic")
    if element is None:
        return None
    if kind in ("floating", "planar"):
        raise element.error(f"a {kind} joint cannot mimic another; only joints of one freedom can")
    mimic = Mimic(
        name_of(element, "joint"), number(element, "multiplier", 1.0), number(element, "offset", 0.0), element
    )
    if kind == "fixed":
        report.ignore("<mimic> of a fixed joint", element.line)
        return None
    if mimic.leader == joint.attributes["name"]:
        raise element.error(f'joint "{mimic.leader}" mimics itself; name another joint')
    return mimic


def place_shape(shape: Shape, X: Transform) -> Shape:
    """Return the shape of a child in the frame of the body that carries the child at X."""
    return dataclasses.replace(shape, placement=X @ shape.placement)
