"""Links and joints of a URDF file as they stand there: every tag and attribute, checked one by one.

A name in no row of `VOCABULARY` is listed in the report, unless it lies within two letters of something that
is used here: then it is taken for a misspelling, which would change the dynamics silently, and rejected.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, final

from dalembert.errors import ModelError, UnknownNameError
from dalembert.formats.document import Element
from dalembert.formats.resources import Report
from dalembert.model import Limits
from dalembert.model.joints import Composite, Fixed, Free, Joint, Planar, Prismatic, Revolute
from dalembert.model.joints.subspaces import basis_around, unit_axis
from dalembert.model.shapes import Box, Capsule, Cylinder, Mesh, Shape, Sphere
from dalembert.spatial import Mat3, RigidInertia, SymMat3, Transform, Vec3
from dalembert.spatial.rotations import rotation_of_quaternion

MAX_MISSPELLED_LETTERS: Final = 2
"""A name at most this many letters from a known one is taken for a misspelling of it."""
MAX_UNREPORTED_DEVIATION: Final = 1e-4
"""How far from 1 the length of an axis may be before it is reported: files round to a few digits."""
MAX_QUATERNION_DEVIATION: Final = 1e-3
"""How far from 1 the length of a quaternion may be."""
MIN_INFINITE_LIMIT: Final = 1e300
"""A limit of this size or more means none: URDF cannot write infinity, so files have the largest float."""

Read = Callable[[Element, str], Any]


def _text(element: Element, attribute: str) -> str:
    return element.attributes.get(attribute, "")


def _number(default: float | None = None, *, least: float = -math.inf, what: str = "") -> Read:
    """Return a reader of one number; without a default the attribute must be there."""

    def read(element: Element, attribute: str) -> float:
        if default is not None and attribute not in element.attributes:
            return default
        (value,) = element.numbers(attribute, 1)
        if value < least:
            named = what.format(value) if what else f"{attribute} is {value:g}"
            raise element.error(f"{named}; it must not be negative")
        return value

    return read


def _numbers(count: int, *default: float) -> Read:
    """Return a reader of numbers; without a default the attribute must be there."""
    return lambda element, attribute: (
        default if default and attribute not in element.attributes else element.numbers(attribute, count)
    )


@final
class Words(NamedTuple):
    """Attributes of an element with their readers, tags of its children; `ignored` ones have no effect."""

    attributes: dict[str, Read]
    children: tuple[str, ...]
    ignored_attributes: tuple[str, ...]
    ignored_children: tuple[str, ...]


def _words(
    attributes: dict[str, Read] | None = None, children: str = "", *, ignored: str = "", ignoring: str = ""
) -> Words:
    return Words(attributes or {}, tuple(children.split()), tuple(ignored.split()), tuple(ignoring.split()))


_ROUND: Final = _words({"radius": _number(), "length": _number()})
_NAME: Final[dict[str, Read]] = {"name": Element.name}
_LINK: Final[dict[str, Read]] = {"link": Element.name}

VOCABULARY: Final[dict[str, Words]] = {
    "robot": _words(
        {"name": _text}, "link joint material", ignored="version",
        ignoring="transmission gazebo sensor ros2_control group group_state",
    ),
    "link": _words(
        _NAME, "inertial visual collision", ignored="type",
        ignoring="contact sensor self_collision_checking collision_checking",
    ),
    "inertial": _words(children="origin mass inertia"),
    "origin": _words({
        "xyz": _numbers(3, 0.0, 0.0, 0.0), "rpy": _numbers(3, 0.0, 0.0, 0.0),
        "quat_xyzw": _numbers(4, 0.0, 0.0, 0.0, 1.0),
    }),
    "mass": _words({"value": _number(least=0.0, what="the mass is {:g} kg")}),
    "inertia": _words({word: _number() for word in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")}),
    "joint": _words(
        _NAME | {"type": Element.attribute}, "origin parent child axis limit dynamics mimic",
        ignoring="calibration safety_controller hardwareInterface",
    ),
    "parent": _words(_LINK),
    "child": _words(_LINK),
    "axis": _words({"xyz": _numbers(3, 1.0, 0.0, 0.0)}),
    "limit": _words(
        {
            "lower": _number(0.0), "upper": _number(0.0),
            "velocity": _number(math.inf, least=0.0), "effort": _number(math.inf, least=0.0),
        },
        ignored="acceleration deceleration jerk",
    ),
    "dynamics": _words({"damping": _number(0.0, least=0.0), "friction": _number(0.0, least=0.0)}),
    "mimic": _words({"joint": Element.name, "multiplier": _number(1.0), "offset": _number(0.0)}),
    "visual": _words({"name": _text}, "origin geometry material", ignoring="meshes"),
    "collision": _words(
        {"name": _text}, "origin geometry", ignored="group",
        ignoring="verbose material contact_coefficients",
    ),
    "geometry": _words(children="box sphere cylinder capsule mesh"),
    "box": _words({"size": _numbers(3)}),
    "sphere": _words({"radius": _number()}),
    "cylinder": _ROUND,
    "capsule": _ROUND,
    "mesh": _words({"filename": Element.attribute, "scale": _numbers(3, 1.0, 1.0, 1.0)}),
    "material": _words({"name": _text}, "color", ignoring="texture script ambient"),
    "color": _words({"rgba": _numbers(4)}),
}  # fmt: skip
"""What the loader understands, by the tag of the element; the units are those of SI."""

SOLIDS: Final[dict[str, Callable[..., Shape]]] = {
    "box": Box, "sphere": Sphere, "cylinder": Cylinder, "capsule": Capsule,
}  # fmt: skip
"""Geometries whose attributes are those of our shapes."""

_LOOKS: Final = frozenset({"visual", "material", "color"})
"""Elements in which a misspelling changes a picture only."""


def values_of(element: Element) -> dict[str, Any]:
    """Return the attributes of an element as its row of `VOCABULARY` reads them."""
    return {name: read(element, name) for name, read in VOCABULARY[element.tag].attributes.items()}


def check_words(root: Element, report: Report) -> None:
    """List what has no effect; reject misspellings of what has."""
    waiting = [root]
    while waiting:
        element = waiting.pop()
        words = VOCABULARY[element.tag]
        if element.text:
            report.ignore(f"text inside <{element.tag}>", element.line)
        for name in element.attributes:
            if name not in words.attributes and not name.startswith("xmlns"):
                if name not in words.ignored_attributes:
                    _reject_misspelling(element, f"attribute {name[:40]!r}", name, words.attributes)
                report.ignore(f"attribute {name[:40]!r} of <{element.tag}>", element.line)
        for child in element.children:
            if child.tag in words.children:
                waiting.append(child)
                continue
            if child.tag.startswith("xacro:"):
                what = "a xacro macro is not URDF; expand the file first"
                raise child.error(f"{what}: xacro model.urdf.xacro > model.urdf")
            if child.tag not in words.ignored_children:
                _reject_misspelling(child, f"unknown tag <{child.tag[:40]}>", child.tag, words.children)
            report.ignore(f"<{child.tag[:40]}> in <{element.tag}>", child.line)


def _reject_misspelling(element: Element, what: str, name: str, known: Iterable[str]) -> None:
    if element.tag in _LOOKS or (element.parent is not None and element.parent.tag in _LOOKS):
        return
    for word in known:
        if letters_apart(name.lower(), word.lower(), MAX_MISSPELLED_LETTERS) <= MAX_MISSPELLED_LETTERS:
            raise element.error(
                f"{what} looks like a misspelling of {word!r}, which affects the model; correct or delete it"
            )


def letters_apart(a: str, b: str, limit: int) -> int:
    """Return the Damerau-Levenshtein distance of two words; limit + 1 if it is larger than the limit."""
    if abs(len(a) - len(b)) > limit:
        return limit + 1
    before: list[int] = []
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, start=1):
        last, before, row = before, row, [i] + [0] * len(b)
        for j, y in enumerate(b, start=1):
            row[j] = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (x != y))
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                row[j] = min(row[j], last[j - 2] + 1)
        if min(row) > limit:
            return limit + 1
    return min(row[-1], limit + 1)


def placement(element: Element | None) -> Transform:
    """Return the placement that an `<origin>` gives: shift xyz [m], then turns rpy [rad] about fixed x, y, z.

    R = Rz(yaw) Ry(pitch) Rx(roll); `quat_xyzw` may stand in the place of `rpy` (URDF 1.2). No element is the
    identity.
    """
    if element is None:
        return Transform.identity()
    xyz, rpy, (x, y, z, w) = values_of(element).values()
    R = Mat3.identity()
    if "quat_xyzw" in element.attributes:
        element.require("rpy" not in element.attributes, "both rpy and quat_xyzw are given; keep one")
        length = math.hypot(w, x, y, z)
        what = f"the quaternion has length {length:.6g}; a rotation has length 1"
        element.require(abs(length - 1.0) <= MAX_QUATERNION_DEVIATION, what)
        R = rotation_of_quaternion([w / length, x / length, y / length, z / length])
    elif any(rpy):
        R = rotation_of_rpy(*rpy)
    return Transform(R, Vec3(*xyz))


def rotation_of_rpy(roll: float, pitch: float, yaw: float) -> Mat3:
    """Return Rz(yaw) Ry(pitch) Rx(roll), written out: this runs for every element of a large file."""
    cr, sr, cp, sp = math.cos(roll), math.sin(roll), math.cos(pitch), math.sin(pitch)
    cy, sy = math.cos(yaw), math.sin(yaw)
    return Mat3(
        cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr,
        sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr,
        -sp, cp * sr, cp * cr,
    )  # fmt: skip


# Links

MeshPath = Callable[[Element, str], tuple[str, bool]]
"""What becomes of a mesh's filename: (element, filename) -> (path to keep, whether it may be read)."""

Rgba = tuple[float, ...]


@final
@dataclass(frozen=True, slots=True)
class UrdfLink:
    """One link: its inertia (mass 0 where the file gives none) and its shapes, in the link's frame."""

    name: str
    inertia: RigidInertia
    shapes: tuple[Shape, ...]
    element: Element


def read_link(
    element: Element, materials: Mapping[str, Rgba], mesh_path: MeshPath, report: Report
) -> UrdfLink:
    """Read a `<link>`; shapes of unknown geometry are reported."""
    drawn = [child for child in element.children if child.tag in ("visual", "collision")]
    shapes = (_shape(child, materials, mesh_path, report) for child in drawn)
    seen = tuple(shape for shape in shapes if shape is not None)
    return UrdfLink(element.name(), _inertia(element.only("inertial")), seen, element)


def _inertia(inertial: Element | None) -> RigidInertia:
    """Return the inertia about the link's origin; that of the file is at the centre of mass."""
    if inertial is None:
        return RigidInertia.zero()
    mass_element, moments = inertial.only("mass"), inertial.only("inertia")
    if mass_element is None or moments is None:
        tag = "mass" if mass_element is None else "inertia"
        raise inertial.error(f"there is no <{tag}>; give it, or delete the whole <inertial>")
    (mass,) = values_of(mass_element).values()
    ixx, ixy, ixz, iyy, iyz, izz = values_of(moments).values()
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
    return None if color is None else tuple(min(max(c, 0.0), 1.0) for c in values_of(color)["rgba"])


def _shape(
    element: Element, materials: Mapping[str, Rgba], mesh_path: MeshPath, report: Report
) -> Shape | None:
    holder = element.only("geometry")
    if holder is None:
        raise element.error("there is no <geometry>; give one")
    known = [child for child in holder.children if child.tag in VOCABULARY["geometry"].children]
    if not known:
        report.warn(f"{element.place}: no geometry of a known kind; the shape is left out")
        return None
    if len(known) > 1:
        raise known[1].error("a second geometry; write a <visual> or <collision> for each")
    (geometry,) = known
    values, collision = values_of(geometry), element.tag == "collision"
    if not collision and geometry.tag == "box" and not any(values["size"]):  # marks a link without a body
        report.warn(f"{geometry.place}: a box of size zero, so that there is nothing to draw")
        return None
    options: dict[str, Any] = {
        "name": _text(element, "name"), "placement": placement(element.only("origin")),
        "visual": not collision, "collision": collision,
    }  # fmt: skip
    material = None if collision else element.only("material")
    if material is not None and (rgba := _colour(material) or materials.get(_text(material, "name"))):
        options["rgba"] = rgba
    try:
        if geometry.tag != "mesh":
            return SOLIDS[geometry.tag](**values, **options)
        filename, scale = values.values()
        geometry.require(filename.strip(), "attribute filename is empty; name the mesh file")
        path, readable = mesh_path(geometry, filename)
        return Mesh(path, scale, readable=readable, **options)
    except ModelError as error:
        raise geometry.error(str(error)) from None


# Joints


def planar_about(normal: Vec3) -> Joint:
    """Return a joint in the plane with that unit normal; the frames at both ends stay the link's own."""
    if (normal.x, normal.y, normal.z) == (0.0, 0.0, 1.0):
        return Planar()
    turn = Transform(Mat3.from_columns(*basis_around(normal)), Vec3.zero())
    return Composite([Planar(), Fixed()], [turn, turn.inverse()])


JOINT_TYPES: Final[dict[str, Callable[[Vec3], Joint]]] = {
    "revolute": Revolute,
    "continuous": Revolute,
    "prismatic": Prismatic,
    "fixed": lambda axis: Fixed(),
    "floating": lambda axis: Free(),
    "planar": planar_about,
}
"""The joint of each type about, along or normal to a unit axis."""


@final
class Mimic(NamedTuple):
    """q = multiplier * q(leader) + offset."""

    leader: str
    multiplier: float
    offset: float
    element: Element


@final
@dataclass(frozen=True, slots=True)
class UrdfJoint:
    """One joint between two links; `placement` puts the child's frame, at q = 0, into the parent's."""

    name: str
    type: str
    parent: str
    child: str
    placement: Transform
    joint: Joint
    limits: Limits
    damping: float
    friction: float
    mimic: Mimic | None
    element: Element


def read_joint(element: Element, report: Report) -> UrdfJoint:
    """Read a `<joint>`; doubtful values are reported, impossible ones rejected."""
    name, kind = values_of(element).values()
    if kind not in JOINT_TYPES:
        raise element.error(str(UnknownNameError.of(f'type of joint "{name}",', kind, JOINT_TYPES)))
    ends = {tag: element.only(tag) for tag in ("parent", "child")}
    for tag, end in ends.items():
        element.require(end, f'joint "{name}" has no <{tag}>; name the link')
    parent, child = (end.name("link") for end in ends.values() if end is not None)
    element.require(parent != child, f'joint "{name}" connects link "{child}" to itself; name two links')
    dynamics = element.only("dynamics")
    return UrdfJoint(
        name,
        kind,
        parent,
        child,
        placement(element.only("origin")),
        JOINT_TYPES[kind](_axis(element, kind, report)),
        _limits(element, kind, report),
        **({"damping": 0.0, "friction": 0.0} if dynamics is None else values_of(dynamics)),
        mimic=_mimic(element, kind, report),
        element=element,
    )


def _axis(joint: Element, kind: str, report: Report) -> Vec3:
    """Return the unit axis; URDF's default is x."""
    element = joint.only("axis")
    if element is None or kind in ("fixed", "floating"):
        if element is not None:
            report.ignore(f"<axis> of a {kind} joint", element.line)
        elif kind == "planar":
            report.note(f"{joint.place}: no <axis>, so the plane is normal to x, URDF's default")
        return Vec3(1.0, 0.0, 0.0)
    x, y, z = values_of(element)["xyz"]
    element.require(x or y or z, "the axis is zero; give a direction, such as 0 0 1")
    length = math.hypot(x, y, z)
    if abs(length - 1.0) > MAX_UNREPORTED_DEVIATION:
        report.warn(f"{element.place}: the axis {x:g} {y:g} {z:g} has length {length:.6g}; it is normalised")
    return unit_axis((x, y, z), "axis")


def _limits(joint: Element, kind: str, report: Report) -> Limits:
    element = joint.only("limit")
    if element is None:
        if kind in ("revolute", "prismatic"):
            report.warn(f"{joint.place}: a {kind} joint without <limit>; it moves without bounds")
        return Limits()
    if kind in ("fixed", "floating", "planar"):
        report.ignore(f"<limit> of a {kind} joint", element.line)
        return Limits()
    values = {
        word: math.copysign(math.inf, value) if abs(value) >= MIN_INFINITE_LIMIT else value
        for word, value in values_of(element).items()
    }
    given = [word for word in ("lower", "upper") if word in element.attributes]
    if kind == "continuous":
        for word in given:
            report.ignore(f"{word} limit of a continuous joint", element.line)
        return Limits(velocity=values["velocity"], effort=values["effort"])
    if not given:
        report.warn(f"{element.place}: neither lower nor upper is given; both are 0, as URDF says")
    lower, upper = values["lower"], values["upper"]
    element.require(lower <= upper, f"lower {lower:g} is above upper {upper:g}; exchange them")
    return Limits(**values)


def _mimic(joint: Element, kind: str, report: Report) -> Mimic | None:
    element = joint.only("mimic")
    if element is None:
        return None
    free = kind in ("floating", "planar")
    element.require(not free, f"a {kind} joint cannot mimic another; only joints of one freedom can")
    leader, multiplier, offset = values_of(element).values()
    mimic = Mimic(leader, multiplier, offset, element)
    if kind == "fixed":
        report.ignore("<mimic> of a fixed joint", element.line)
        return None
    itself = mimic.leader == joint.attributes["name"]
    element.require(not itself, f'joint "{mimic.leader}" mimics itself; name another joint')
    return mimic
