"""How two convex solids that overlap are parted by the shortest shift.

The shift is the distance from the origin to the nearest point of the surface of b - a. From a normal
n a ray from the origin along -n meets the surface in a point whose normal is as good or better:
with the surface at distance r along the ray and normal n', the depth along n' is r (n . n') <= r, and r is no
more than the depth along n. So rays are cast until none improves. A ray is cast as in Snethen's
portal refinement (Game Programming Gems 7, 2008): the triangle that it passes through is raised to the
surface by extreme points, from a tetrahedron around the origin.
"""

from __future__ import annotations

from typing import NamedTuple

from dalembert.contact.geometry.differences import (
    LEVEL,
    Extreme,
    Parting,
    SolidPair,
    Triangle,
    better_of,
    chosen_triangle,
)
from dalembert.contact.geometry.directions import direction
from dalembert.contact.geometry.nearest import Search
from dalembert.scalar import Scalar, logical_and, loop, minimum, select
from dalembert.spatial import Vec3

__all__ = ["deepest_overlap"]

RAYS = 4
RAISES = 30


class Portal(NamedTuple):
    """A triangle that a ray passes through, and whether it is on the surface."""

    corners: Triangle
    raised: Scalar


class Descent(NamedTuple):
    """The best normal so far, and whether the last ray did not improve it."""

    best: Parting
    over: Scalar


def deepest_overlap(pair: SolidPair, search: Search, best: Parting) -> Parting:
    """The best parting from rays, where the search found the origin in a tetrahedron; else as it was."""

    def cast(descent: Descent) -> Descent:
        new = _cast(pair, search, descent.best)
        gain = new.separation - descent.best.separation
        # A ray that is as good is taken, for where it meets the surface.
        return Descent(better_of(new, descent.best, -LEVEL), select(gain > LEVEL, 0.0, 1.0))

    begin = Descent(best, select(search.overlaps, 0.0, 1.0))
    return loop(RAYS, cast, begin, until=lambda descent: descent.over > 0.5).best


def _cast(pair: SolidPair, search: Search, best: Parting) -> Parting:
    ray = -best.normal
    begin = Portal(_entrance(search, ray), 0.0)
    portal = loop(
        RAISES, lambda portal: _raised(pair, portal, ray), begin, until=lambda portal: portal.raised > 0.5
    )
    one, two, three = portal.corners
    n = direction((two.w - one.w).cross(three.w - one.w), ray).unit
    weights = [_side(two, three, ray), _side(three, one, ray), _side(one, two, ray)]
    total = weights[0] + weights[1] + weights[2]
    scale = 1.0 / select(total > 0.0, total, 1.0)
    w, on_a = Vec3.zero(), Vec3.zero()
    for weight, corner in zip(weights, portal.corners, strict=True):
        w, on_a = w + corner.w * (weight * scale), on_a + corner.a * (weight * scale)
    return pair.parted(-n, w, on_a)


def _side(p: Extreme, q: Extreme, ray: Vec3) -> Scalar:
    """Positive where the ray passes on the inner side of the plane through the origin, p and q."""
    return p.w.cross(q.w).dot(ray)


def _entrance(search: Search, ray: Vec3) -> Triangle:
    """The face of the tetrahedron around the origin that the ray passes through, in the sense of the ray."""
    one, two, three = search.corners
    apex = search.apex
    best: Triangle | None = None
    most: Scalar = 0.0
    for p, q, r in ((one, two, three), (one, two, apex), (two, three, apex), (three, one, apex)):
        reverse = p.w.cross(q.w).dot(r.w) < 0.0
        face = chosen_triangle(reverse, (p, r, q), (p, q, r))
        within = minimum(
            _side(face[0], face[1], ray), minimum(_side(face[1], face[2], ray), _side(face[2], face[0], ray))
        )
        if best is None:
            best, most = face, within
        else:
            better = within > most
            best, most = chosen_triangle(better, face, best), select(better, within, most)
    assert best is not None
    return best


def _raised(pair: SolidPair, portal: Portal, ray: Vec3) -> Portal:
    """The one of the three triangles with the extreme point over this one that the ray passes through."""
    one, two, three = portal.corners
    n = direction((two.w - one.w).cross(three.w - one.w), ray).unit
    new = pair.extreme(n)
    on_surface = n.dot(new.w - one.w) <= LEVEL
    sides = [_side(corner, new, ray) for corner in portal.corners]
    first = logical_and(sides[0] <= 0.0, sides[1] >= 0.0)
    second = logical_and(sides[1] <= 0.0, sides[2] >= 0.0)
    raised = chosen_triangle(
        first, (one, two, new), chosen_triangle(second, (two, three, new), (three, one, new))
    )
    return Portal(chosen_triangle(on_surface, portal.corners, raised), select(on_surface, 1.0, 0.0))
