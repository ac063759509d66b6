"""Vectors chosen and made unit without branches: every result is finite whatever the placement."""

from __future__ import annotations

from typing import NamedTuple

from dalembert.contact.candidates import ContactPoint
from dalembert.scalar import Scalar, maximum, minimum, select, sqrt
from dalembert.spatial import Vec3

__all__ = ["Direction", "choose", "chosen", "clamp", "direction", "facing", "flipped"]

COINCIDENT = 1e-24
"""The square [m^2] of a distance at which two points have no direction from one to the other."""


class Direction(NamedTuple):
    """A unit vector and the length along it."""

    unit: Vec3
    length: Scalar


def direction(v: Vec3, otherwise: Vec3) -> Direction:
    """v as a unit vector and its length; `otherwise`, a unit vector, and zero where v is as good as zero."""
    square = v.dot(v)
    none = square < COINCIDENT
    length = sqrt(select(none, 1.0, square))
    return Direction(choose(none, otherwise, v * (1.0 / length)), select(none, 0.0, length))


def choose(condition: Scalar, a: Vec3, b: Vec3) -> Vec3:
    """a where the condition holds, else b."""
    return Vec3(*[select(condition, x, y) for x, y in zip(a, b, strict=True)])


def chosen(condition: Scalar, a: ContactPoint, b: ContactPoint) -> ContactPoint:
    """a where the condition holds, else b."""
    return ContactPoint(
        choose(condition, a.position, b.position),
        choose(condition, a.normal, b.normal),
        select(condition, a.gap, b.gap),
    )


def clamp(x: Scalar, bound: Scalar) -> Scalar:
    """x between -bound and bound."""
    return maximum(minimum(x, bound), -bound)


def facing(unit: Vec3, towards: Vec3) -> Vec3:
    """The unit vector or its opposite, whichever looks the way of `towards`."""
    return choose(unit.dot(towards) < 0.0, -unit, unit)


def flipped(point: ContactPoint) -> ContactPoint:
    """The point as seen with the two shapes exchanged."""
    return ContactPoint(point.position, -point.normal, point.gap)
