"""Contact candidates: places where bodies may touch, as geometry hands them to the contact laws."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeVar, final

from dalembert.scalar import Scalar, maximum, minimum, select, sqrt
from dalembert.spatial import Vec3, leaves, rebuild

T = TypeVar("T")

ABSENT_POINT_GAP = 1e3
"""The gap [m] of a point that does not exist in a configuration: far beyond any contact."""


class ContactPoint(NamedTuple):
    """The place where two surfaces are nearest, in world coordinates.

    `normal` is of unit length and points from the first surface to the second; `gap` [m] is negative where
    they overlap; `position` is midway between them.
    """

    position: Vec3
    normal: Vec3
    gap: Scalar


@final
@dataclass(frozen=True, slots=True)
class Candidate:
    """A contact point between two bodies (-1: the world) with the coefficients of the pair.

    `friction`: Coulomb's mu; `restitution`: e of Featherstone 2008 Eq. 11.64; `across`: mu along the second
    direction of the surface, None: the same; `torsion`, `rolling` [m]: friction against turning about the
    normal and across it.
    """

    first: int
    second: int
    friction: Scalar
    restitution: Scalar
    point: ContactPoint
    across: Scalar | None = None
    torsion: Scalar = 0.0
    rolling: Scalar = 0.0


# Branch-free selection and normalisation: every result is finite for any placement.

MIN_SQUARED_DISTANCE = 1e-24
"""The squared distance [m^2] below which two points define no direction."""


class Direction(NamedTuple):
    """A unit vector and the length along it."""

    unit: Vec3
    length: Scalar


def direction(v: Vec3, otherwise: Vec3) -> Direction:
    """Return v as a unit vector, and its length; `otherwise` and zero where v is nearly zero."""
    square = v.dot(v)
    none = square < MIN_SQUARED_DISTANCE
    length = sqrt(select(none, 1.0, square))
    return Direction(choose(none, otherwise, v * (1.0 / length)), select(none, 0.0, length))


def choose(condition: Scalar, a: T, b: T) -> T:
    """Return a where the condition holds, else b: scalars, spatial values, or tuples of these."""
    return rebuild(a, [select(condition, x, y) for x, y in zip(leaves(a), leaves(b), strict=True)])


def clamp(x: Scalar, bound: Scalar) -> Scalar:
    """Return x limited to [-bound, bound]."""
    return maximum(minimum(x, bound), -bound)


def orient_towards(unit: Vec3, towards: Vec3) -> Vec3:
    """Return the unit vector or its opposite, the one with a component along `towards`."""
    return choose(unit.dot(towards) < 0.0, -unit, unit)


def flip(point: ContactPoint) -> ContactPoint:
    """Return the point with the two shapes exchanged."""
    return ContactPoint(point.position, -point.normal, point.gap)
