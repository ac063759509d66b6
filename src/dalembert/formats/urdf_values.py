"""Numbers, vectors, names and placements as they stand in the attributes of a URDF file."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Final

from dalembert.formats.document import Element
from dalembert.spatial import Mat3, Transform, Vec3
from dalembert.spatial.rotations import rotation_of_quaternion

__all__ = [
    "MIN_INFINITE_LIMIT",
    "name_of",
    "number",
    "numbers",
    "placement",
    "required_attribute",
    "rotation_of_rpy",
    "rpy_of_rotation",
]

MIN_INFINITE_LIMIT: Final = 1e300
"""A limit of this size or more means no limit: URDF cannot write infinity, so that files write the largest
float.
"""

# Each character can be matched in one way only: a long word that is no number must not cost its square.
_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_DECIMAL_COMMA: Final = re.compile(r"[0-9],[0-9]")
_SHOWN: Final = 40


def required_attribute(element: Element, attribute: str) -> str:
    """Return the text of a required attribute."""
    value = element.attributes.get(attribute)
    if value is None:
        raise element.error(f"attribute {attribute!r} is missing")
    return value


def name_of(element: Element, attribute: str = "name") -> str:
    """Return a name: any text but an empty one."""
    name = element.attributes.get(attribute)
    if name is None or not name.strip():
        fact = "missing" if name is None else "empty"
        raise element.error(f"attribute {attribute!r} is {fact}; every <{element.tag}> needs it")
    return name


def number(element: Element, attribute: str, default: float | None = None) -> float:
    """Return one finite number; without a default the attribute must be there."""
    if default is not None and attribute not in element.attributes:
        return default
    return numbers(element, attribute, 1)[0]


def numbers(
    element: Element, attribute: str, count: int, default: tuple[float, ...] | None = None
) -> tuple[float, ...]:
    """Return `count` finite numbers, separated by white space."""
    if default is not None and attribute not in element.attributes:
        return default
    text = required_attribute(element, attribute)
    words = text.split()
    values = []
    for word in words:
        if _NUMBER.fullmatch(word) is None:
            raise element.error(f"attribute {attribute} holds {word[:_SHOWN]!r}; {_remedy(word)}")
        values.append(float(word))
        if math.isinf(values[-1]):
            raise element.error(f"attribute {attribute} holds {word[:_SHOWN]!r}, which is too large a number")
    if len(values) != count:
        wanted = "one number" if count == 1 else f"{count} numbers"
        raise element.error(
            f"attribute {attribute} holds {len(values)} numbers, {text[:_SHOWN]!r}; give {wanted}"
        )
    return tuple(values)


def _remedy(word: str) -> str:
    if _DECIMAL_COMMA.search(word):
        return "decimals are written with a point, as in 1.5, and numbers are separated by spaces"
    if word.lstrip("+-").lower() in ("nan", "inf", "infinity"):
        return "give a finite number"
    if "$" in word:
        return "this is a xacro expression; expand the file first: xacro model.urdf.xacro > model.urdf"
    return "give a number, such as 0.5 or 1e-3"


def placement(element: Element | None) -> Transform:
    """Return the placement that an `<origin>` gives: shift xyz [m], then turns rpy [rad] about fixed x, y, z.

    R = Rz(yaw) Ry(pitch) Rx(roll); `quat_xyzw` may stand in the place of `rpy` (URDF 1.2). No element is the
    identity.
    """
    if element is None:
        return Transform.identity()
    x, y, z = numbers(element, "xyz", 3, (0.0, 0.0, 0.0))
    if "quat_xyzw" in element.attributes:
        return Transform(_rotation_of_quaternion(element), Vec3(x, y, z))
    roll, pitch, yaw = numbers(element, "rpy", 3, (0.0, 0.0, 0.0))
    if roll == pitch == yaw == 0.0:
        return Transform(Mat3.identity(), Vec3(x, y, z))
    return Transform(rotation_of_rpy(roll, pitch, yaw), Vec3(x, y, z))


def rotation_of_rpy(roll: float, pitch: float, yaw: float) -> Mat3:
    """Return Rz(yaw) Ry(pitch) Rx(roll), written out: this runs for every element of a large file."""
    cr, sr, cp, sp = math.cos(roll), math.sin(roll), math.cos(pitch), math.sin(pitch)
    cy, sy = math.cos(yaw), math.sin(yaw)
    return Mat3(
        cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr,
        sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr,
        -sp, cp * sr, cp * cr,
    )  # fmt: skip


def _rotation_of_quaternion(element: Element) -> Mat3:
    if "rpy" in element.attributes:
        raise element.error("both rpy and quat_xyzw are given; keep one")
    x, y, z, w = numbers(element, "quat_xyzw", 4)
    length = math.hypot(w, x, y, z)
    if abs(length - 1.0) > 1e-3:
        raise element.error(f"the quaternion has length {length:.6g}; a rotation has length 1")
    return rotation_of_quaternion([w / length, x / length, y / length, z / length])


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
