"""Convex solids of any kind against each other, by their support functions.

A unit vector n, from a to b, parts them by s(n) = min over b of n . x - max over a of n . x; their signed
distance is the greatest s of all n, and every s is a bound of it. The normal is the best of a few:
that between the nearest points, exact while the solids are apart; that between the solids drawn together to
`SHARE` of their sizes, which does not fail where they just touch; the normals of flat faces; and, where
they overlap, what rays to the surface of their difference find.
"""

from __future__ import annotations

from dalembert.contact.candidates import FAR, ContactPoint
from dalembert.contact.geometry.deepest import deepest_overlap
from dalembert.contact.geometry.differences import Parting, SolidPair, better_of
from dalembert.contact.geometry.directions import choose, direction, facing
from dalembert.contact.geometry.nearest import nearest_differences
from dalembert.contact.geometry.solids import ConvexSolid, convex_solid
from dalembert.model.shapes import Shape
from dalembert.scalar import Scalar, select
from dalembert.spatial import Mat3, Transform, Vec3

__all__ = ["convex_convex", "flat_flat"]

SHARE = 0.9
"""To what share of their sizes solids are drawn together where they touch."""
APART = 1e-4
"""From which distance [m] on the nearest points alone say the normal."""

ON_FACE = 1e-4
"""How far [m] a point may be outside a solid and still lie on its face."""


def convex_convex(a: Shape, X_a: Transform, b: Shape, X_b: Transform) -> list[ContactPoint]:
    """One point, where they are nearest or overlap most."""
    return [in_world(X_a, best_parting(solid_pair(a, X_a, b, X_b)))]


def flat_flat(a: Shape, X_a: Transform, b: Shape, X_b: Transform) -> list[ContactPoint]:
    """Solids that can lie on each other: the point of `convex_convex`, four points of b near it over
    a flat face of a, and four of a over one of b.
    """
    pair = solid_pair(a, X_a, b, X_b)
    best = best_parting(pair)
    n, reverse = best.normal, pair.R.transposed_times(-best.normal)
    top = pair.a.reach(n)
    bottom = n.dot(pair.p) - pair.b.reach(reverse)
    found = [best]
    for y in pair.b.patch(reverse):
        at = pair.p + pair.R @ y
        gap = n.dot(at) - top
        exists = beyond(pair.a, at - n * gap) < ON_FACE
        found.append(Parting(n, select(exists, gap, FAR), at - n * (0.5 * gap)))
    for x in pair.a.patch(n):
        gap = bottom - n.dot(x)
        exists = beyond(pair.b, pair.R.transposed_times(x + n * gap - pair.p)) < ON_FACE
        found.append(Parting(n, select(exists, gap, FAR), x + n * (0.5 * gap)))
    return [in_world(X_a, parting) for parting in found]


def beyond(solid: ConvexSolid, x: Vec3) -> Scalar:
    return FAR if solid.outside is None else solid.outside(x)


def in_world(X_a: Transform, found: Parting) -> ContactPoint:
    return ContactPoint(X_a.transform_point(found.middle), X_a.R @ found.normal, found.separation)


def solid_pair(a: Shape, X_a: Transform, b: Shape, X_b: Transform) -> SolidPair:
    R: Mat3 = X_a.R.transpose() @ X_b.R
    return SolidPair(convex_solid(a), convex_solid(b), R, X_a.inverse_transform_point(X_b.p))


def best_parting(pair: SolidPair) -> Parting:
    """The best of all normals, in a's coordinates."""
    R, p = pair.R, pair.p
    centres = direction(p + R @ pair.b.centre - pair.a.centre, Vec3.unit(2)).unit
    search = nearest_differences(pair, centres)
    n = choose(search.overlaps, centres, direction(search.nearest.point, centres).unit)
    best = pair.parted(n, search.nearest.point, search.on_a())
    best = better_of(_of_cores(pair, centres, best.separation > APART), best)
    for axis in pair.a.axes:
        best = better_of(pair.parted_by_face_of_a(facing(axis, centres)), best)
    for axis in pair.b.axes:
        best = better_of(pair.parted_by_face_of_b(facing(R @ axis, centres)), best)
    return deepest_overlap(pair, search, best)


def _of_cores(pair: SolidPair, centres: Vec3, skip: Scalar) -> Parting:
    """By the nearest points of the solids drawn together."""
    search = nearest_differences(pair, centres, SHARE, skip)
    n = choose(search.overlaps, centres, direction(search.nearest.point, centres).unit)
    return pair.parted(n, search.nearest.point, search.on_a())
