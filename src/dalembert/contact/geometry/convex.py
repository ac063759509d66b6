"""Convex solids of any kind against each other, by their support functions.

A unit vector n, from a to b, separates them by s(n) = min over b of n . x - max over a of n . x; their signed
distance is the greatest s of all n, and every s is a bound of it. The normal is the best of a few:
that between the nearest points, exact while the solids are apart; that between slightly shrunk cores of
the solids, which does not fail where the solids just touch; the normals of flat faces; and, where
they overlap, the normals that rays to the surface of their difference find.
"""

from __future__ import annotations

from dalembert.contact.candidates import ABSENT_POINT_GAP, ContactPoint
from dalembert.contact.geometry.deepest import deepest_overlap
from dalembert.contact.geometry.differences import SeparatingAxis, SolidPair, better_of
from dalembert.contact.geometry.directions import choose, direction, orient_towards
from dalembert.contact.geometry.nearest import nearest_differences
from dalembert.contact.geometry.solids import ConvexSolid, convex_solid
from dalembert.model.shapes import Shape
from dalembert.scalar import Scalar, logical_not, logical_or, maximum, minimum, select
from dalembert.spatial import Mat3, Transform, Vec3

__all__ = ["convex_convex", "flat_flat"]

CORE_SCALES = (0.999, 0.9)
"""The factors by which solids are shrunk to cores; the second is tried where the first cores overlap."""
MIN_SEPARATED_GAP = 1e-4
"""The separation [m] above which the nearest points alone determine the normal."""


def convex_convex(a: Shape, X_a: Transform, b: Shape, X_b: Transform) -> list[ContactPoint]:
    """Return one point, where the solids are nearest or overlap most."""
    return [in_world(X_a, best_separating_axis(solid_pair(a, X_a, b, X_b)))]


def flat_flat(a: Shape, X_a: Transform, b: Shape, X_b: Transform) -> list[ContactPoint]:
    """Return the point of `convex_convex` and eight of the contact area, for solids that can lie on each
    other.

    As between boxes these are the beginnings of the sides of both faces, each clipped by the other solid;
    a face of more than four corners counts as a quadrangle of them.
    """
    pair = solid_pair(a, X_a, b, X_b)
    best = best_separating_axis(pair)
    n, reverse = best.normal, pair.R.transposed_times(-best.normal)
    top, bottom = pair.a.reach(n), n.dot(pair.p) - pair.b.reach(reverse)
    of_a = pair.a.patch(n)
    of_b = [pair.p + pair.R @ y for y in reversed(pair.b.patch(reverse))]
    found = [best]
    for k in range(4):
        x, along = of_b[k], of_b[(k + 1) % 4] - of_b[k]
        on_a, along_a = x - n * (n.dot(x) - top), along - n * n.dot(along)
        t, exists = _beginning(pair.a, on_a, along_a)
        gap = n.dot(x + along * t) - top
        found.append(
            SeparatingAxis(n, select(exists, gap, ABSENT_POINT_GAP), on_a + along_a * t + n * (0.5 * gap))
        )
    for k in range(4):
        x, along = of_a[k], of_a[(k + 1) % 4] - of_a[k]
        on_b, along_b = x + n * (bottom - n.dot(x)), along - n * n.dot(along)
        t, exists = _beginning(
            pair.b, pair.R.transposed_times(on_b - pair.p), pair.R.transposed_times(along_b)
        )
        gap = bottom - n.dot(x + along * t)
        found.append(
            SeparatingAxis(n, select(exists, gap, ABSENT_POINT_GAP), on_b + along_b * t - n * (0.5 * gap))
        )
    return [in_world(X_a, axis) for axis in found]


def _beginning(solid: ConvexSolid, p: Vec3, d: Vec3) -> tuple[Scalar, Scalar]:
    """Return t in [0, 1] at which p + t d enters a solid, and whether it does."""
    assert solid.within is not None
    begin, end = solid.within(p, d)
    begin, end = maximum(begin, 0.0), minimum(end, 1.0)
    exists = begin <= end
    return select(exists, begin, 0.0), exists


def in_world(X_a: Transform, found: SeparatingAxis) -> ContactPoint:
    return ContactPoint(X_a.transform_point(found.middle), X_a.R @ found.normal, found.separation)


def solid_pair(a: Shape, X_a: Transform, b: Shape, X_b: Transform) -> SolidPair:
    R: Mat3 = X_a.R.transpose() @ X_b.R
    return SolidPair(convex_solid(a), convex_solid(b), R, X_a.inverse_transform_point(X_b.p))


def best_separating_axis(pair: SolidPair) -> SeparatingAxis:
    """Return the separating axis with the greatest separation, in a's coordinates."""
    R, p = pair.R, pair.p
    centres = direction(p + R @ pair.b.centre - pair.a.centre, Vec3.unit(2)).unit
    search = nearest_differences(pair, centres)
    n = choose(search.overlaps, centres, direction(search.nearest.point, centres).unit)
    best = pair.separation_along(n, search.nearest.point, search.on_a())
    done: Scalar = best.separation > MIN_SEPARATED_GAP
    for scale in CORE_SCALES:
        cores = nearest_differences(pair, centres, scale, done)
        n = choose(cores.overlaps, centres, direction(cores.nearest.point, centres).unit)
        best = better_of(pair.separation_along(n, cores.nearest.point, cores.on_a()), best)
        done = logical_or(done, logical_not(cores.overlaps))
    for axis in pair.a.axes:
        best = better_of(pair.separation_by_face_of_a(orient_towards(axis, centres)), best)
    for axis in pair.b.axes:
        best = better_of(pair.separation_by_face_of_b(orient_towards(R @ axis, centres)), best)
    return deepest_overlap(pair, search, best)
