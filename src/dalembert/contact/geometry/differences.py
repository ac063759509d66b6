"""The Minkowski difference b - a of two convex solids: its distance from the origin is theirs.

Coordinates are those of a; b is placed by R and p.
"""

from __future__ import annotations

from typing import NamedTuple

from dalembert.contact.geometry.directions import choose
from dalembert.contact.geometry.solids import ConvexSolid
from dalembert.scalar import Scalar, select
from dalembert.spatial import Mat3, Vec3

__all__ = [
    "SEPARATION_TOLERANCE",
    "Extreme",
    "SeparatingAxis",
    "SolidPair",
    "Triangle",
    "better_of",
    "choose_triangle",
]

SEPARATION_TOLERANCE = 1e-9
"""The difference [m] below which two separations count as equal."""


class Extreme(NamedTuple):
    """A point w of b - a, and the point of a in it."""

    w: Vec3
    a: Vec3


Triangle = tuple[Extreme, Extreme, Extreme]


class SeparatingAxis(NamedTuple):
    """A unit vector from a to b, the separation along it, and a place midway between the surfaces."""

    normal: Vec3
    separation: Scalar
    middle: Vec3


class SolidPair(NamedTuple):
    """Two solids, b placed in a by R and p."""

    a: ConvexSolid
    b: ConvexSolid
    R: Mat3
    p: Vec3

    def extreme(self, d: Vec3, scale: float = 1.0) -> Extreme:
        """Return the difference of the cores that lies farthest along d; `scale` shrinks both cores."""
        on_a = self.a.core(-d, scale)
        return Extreme(self.p + self.R @ self.b.core(self.R.transposed_times(d), scale) - on_a, on_a)

    def separation_along(self, n: Vec3, w: Vec3, on_a: Vec3) -> SeparatingAxis:
        """Return s(n) = min over b of n . x - max over a of n . x, midway from on_a to on_a + w."""
        surface_a = self.a.reach(n)
        surface_b = n.dot(self.p) - self.b.reach(self.R.transposed_times(-n))
        middle = on_a + w * 0.5
        return SeparatingAxis(
            n, surface_b - surface_a, middle + n * (0.5 * (surface_a + surface_b) - n.dot(middle))
        )

    def separation_by_face_of_a(self, n: Vec3) -> SeparatingAxis:
        on_b = self.p + self.R @ self.b.support(self.R.transposed_times(-n))
        return self.separation_along(n, Vec3.zero(), on_b)

    def separation_by_face_of_b(self, n: Vec3) -> SeparatingAxis:
        return self.separation_along(n, Vec3.zero(), self.a.support(n))


def better_of(
    new: SeparatingAxis, old: SeparatingAxis, least: float = SEPARATION_TOLERANCE
) -> SeparatingAxis:
    """Return the new axis if it is better by `least` or more, so that rounding decides between no equals."""
    better = new.separation > old.separation + least
    return SeparatingAxis(
        choose(better, new.normal, old.normal),
        select(better, new.separation, old.separation),
        choose(better, new.middle, old.middle),
    )


def choose_triangle(condition: Scalar, triangle: Triangle, other: Triangle) -> Triangle:
    one, two, three = (
        Extreme(choose(condition, x.w, y.w), choose(condition, x.a, y.a))
        for x, y in zip(triangle, other, strict=True)
    )
    return one, two, three
