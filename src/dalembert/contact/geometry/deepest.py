"""The penetration depth of two convex solids: the shortest shift that separates them.

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
    SEPARATION_TOLERANCE,
    Extreme,
    SeparatingAxis,
    SolidPair,
    Triangle,
    better_of,
    choose_triangle,
)
from dalembert.contact.geometry.directions import direction
from dalembert.contact.geometry.nearest import Search
from dalembert.scalar import Scalar, logical_and, loop, minimum, select
from dalembert.spatial import Vec3

__all__ = ["deepest_overlap"]

MAX_RAYS = 4
"""The most rays that are cast for a pair."""
MAX_PORTAL_REFINEMENTS = 30
"""The most extreme points by which the triangle of one ray is raised to the surface."""


class Portal(NamedTuple):
    """A triangle that a ray passes through, and whether it is on the surface."""

    corners: Triangle
    on_surface: Scalar


class Descent(NamedTuple):
    """The best normal so far, and whether the last ray did not improve it."""

    best: SeparatingAxis
    over: Scalar


def deepest_overlap(pair: SolidPair, search: Search, best: SeparatingAxis) -> SeparatingAxis:
    """Return the best axis that rays find if the search found the origin in a tetrahedron, else `best`."""

    def cast(descent: Descent) -> Descent:
        new = _cast(pair, search, descent.best)
        gain = new.separation - descent.best.separation
        # A ray that is as good is taken, for where it meets the surface.
        return Descent(
            better_of(new, descent.best, -SEPARATION_TOLERANCE), select(gain > SEPARATION_TOLERANCE, 0.0, 1.0)
        )

    begin = Descent(best, select(search.overlaps, 0.0, 1.0))
    return loop(MAX_RAYS, cast, begin, until=lambda descent: descent.over > 0.5).best


def _cast(pair: SolidPair, search: Search, best: SeparatingAxis) -> SeparatingAxis:
    ray = -best.normal
    begin = Portal(_entrance(search, ray), 0.0)
    portal = loop(
        MAX_PORTAL_REFINEMENTS,
        lambda portal: _refine_portal(pair, portal, ray),
        begin,
        until=lambda portal: portal.on_surface > 0.5,
    )
    one, two, three = portal.corners
    n = direction((two.w - one.w).cross(three.w - one.w), ray).unit
    weights = [_side(two, three, ray), _side(three, one, ray), _side(one, two, ray)]
    total = weights[0] + weights[1] + weights[2]
    scale = 1.0 / select(total > 0.0, total, 1.0)
    w, on_a = Vec3.zero(), Vec3.zero()
    for weight, corner in zip(weights, portal.corners, strict=True):
        w, on_a = w + corner.w * (weight * scale), on_a + corner.a * (weight * scale)
    return pair.separation_along(-n, w, on_a)


def _side(p: Extreme, q: Extreme, ray: Vec3) -> Scalar:
    """Return a positive number where the ray is on the inner side of the plane through the origin, p and
    q."""
    return p.w.cross(q.w).dot(ray)


def _entrance(search: Search, ray: Vec3) -> Triangle:
    """Return the face of the tetrahedron around the origin that the ray passes through, oriented along it."""
    one, two, three = search.corners
    apex = search.apex
    best: Triangle | None = None
    most: Scalar = 0.0
    for p, q, r in ((one, two, three), (one, two, apex), (two, three, apex), (three, one, apex)):
        reverse = p.w.cross(q.w).dot(r.w) < 0.0
        face = choose_triangle(reverse, (p, r, q), (p, q, r))
        within = minimum(
            _side(face[0], face[1], ray), minimum(_side(face[1], face[2], ray), _side(face[2], face[0], ray))
        )
        if best is None:
            best, most = face, within
        else:
            better = within > most
            best, most = choose_triangle(better, face, best), select(better, within, most)
    assert best is not None
    return best


def _refine_portal(pair: SolidPair, portal: Portal, ray: Vec3) -> Portal:
    """Return which of the three triangles with the extreme point over this one the ray passes through."""
    one, two, three = portal.corners
    n = direction((two.w - one.w).cross(three.w - one.w), ray).unit
    new = pair.extreme(n)
    on_surface = n.dot(new.w - one.w) <= SEPARATION_TOLERANCE
    sides = [_side(corner, new, ray) for corner in portal.corners]
    first = logical_and(sides[0] <= 0.0, sides[1] >= 0.0)
    second = logical_and(sides[1] <= 0.0, sides[2] >= 0.0)
    raised = choose_triangle(
        first, (one, two, new), choose_triangle(second, (two, three, new), (three, one, new))
    )
    return Portal(choose_triangle(on_surface, portal.corners, raised), select(on_surface, 1.0, 0.0))
