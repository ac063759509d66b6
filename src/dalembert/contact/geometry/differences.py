"""Two convex solids as the set of differences b - a, whose distance from the origin is theirs.

Coordinates are those of a; b is placed by R and p.
"""

from __future__ import annotations

from typing import NamedTuple

from dalembert.contact.geometry.directions import choose
from dalembert.contact.geometry.solids import ConvexSolid
from dalembert.scalar import Scalar, select
from dalembert.spatial import Mat3, Vec3

__all__ = ["LEVEL", "Extreme", "Parting", "SolidPair", "Triangle", "better_of", "chosen_triangle"]

LEVEL = 1e-9
"""Separations [m] that differ by less are the same."""


class Extreme(NamedTuple):
    """A point w of b - a, and the point of a in it."""

    w: Vec3
    a: Vec3


Triangle = tuple[Extreme, Extreme, Extreme]


class Parting(NamedTuple):
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

    def extreme(self, d: Vec3, share: float = 1.0) -> Extreme:
        """The difference of the cores that lies farthest along d; both drawn together to a share."""
        on_a = self.a.core(-d, share)
        return Extreme(self.p + self.R @ self.b.core(self.R.transposed_times(d), share) - on_a, on_a)

    def parted(self, n: Vec3, w: Vec3, on_a: Vec3) -> Parting:
        """s(n) = min over b of n . x - max over a of n . x, midway from on_a to on_a + w."""
        surface_a = self.a.reach(n)
        surface_b = n.dot(self.p) - self.b.reach(self.R.transposed_times(-n))
        middle = on_a + w * 0.5
        return Parting(n, surface_b - surface_a, middle + n * (0.5 * (surface_a + surface_b) - n.dot(middle)))

    def parted_by_face_of_a(self, n: Vec3) -> Parting:
        on_b = self.p + self.R @ self.b.support(self.R.transposed_times(-n))
        return self.parted(n, Vec3.zero(), on_b)

    def parted_by_face_of_b(self, n: Vec3) -> Parting:
        return self.parted(n, Vec3.zero(), self.a.support(n))


def better_of(new: Parting, old: Parting, least: float = LEVEL) -> Parting:
    """The new one if it is better by `least` or more, so that no rounding chooses between equal ones."""
    better = new.separation > old.separation + least
    return Parting(
        choose(better, new.normal, old.normal),
        select(better, new.separation, old.separation),
        choose(better, new.middle, old.middle),
    )


def chosen_triangle(condition: Scalar, triangle: Triangle, other: Triangle) -> Triangle:
    one, two, three = (
        Extreme(choose(condition, x.w, y.w), choose(condition, x.a, y.a))
        for x, y in zip(triangle, other, strict=True)
    )
    return one, two, three
