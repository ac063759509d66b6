"""Convex solids of any kind against each other, by their support functions.

A unit vector n, from a to b, separates them by s(n) = min over b of n . x - max over a of n . x; their signed
distance is the greatest s of all n, and every s is a bound of it. The normal is the best of a few:
that between the nearest points, exact while the solids are apart; that between slightly shrunk cores of
the solids, which does not fail where the solids just touch; the normals of flat faces; and, where
they overlap, the normals that rays to the surface of their difference find.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from typing import NamedTuple

from dalembert.contact.narrow_phase.candidates import (
    ABSENT_POINT_GAP,
    ContactPoint,
    choose,
    direction,
    orient_towards,
)
from dalembert.contact.narrow_phase.support import ConvexSolid, convex_solid, is_same_place
from dalembert.model.shapes import Shape
from dalembert.scalar import Scalar, logical_and, logical_not, logical_or, loop, maximum, minimum, select
from dalembert.spatial import Mat3, Transform, Vec3

# The Minkowski difference b - a of two convex solids: its distance from the origin is theirs.
#
# Coordinates are those of a; b is placed by R and p.

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
    return choose(new.separation > old.separation + least, new, old)


# The point of a segment, a triangle and a tetrahedron's sides that is nearest to the origin.

MIN_SQUARED_AREA = 1e-14
"""The squared area, in units of the longest side to the fourth power, below which a triangle is a line."""
MIN_SQUARED_VOLUME = 1e-12
"""The squared volume, in units of the size to the sixth power, below which a tetrahedron is flat."""
MIN_SQUARED_LENGTH = 1e-30
"""The least squared length [m^2] of a segment: shorter ones count as this, so that division is finite."""


class Nearest(NamedTuple):
    """A point of a triangle and the weights of its corners."""

    point: Vec3
    square: Scalar
    weights: Vec3


def nearest_on_triangle(p: Vec3, q: Vec3, r: Vec3) -> Nearest:
    """Return the foot of the perpendicular if it is inside, else the nearest point of the three sides."""
    corners = (p, q, r)
    best = reduce(nearer_of, [_on_side(corners, i, (i + 1) % 3) for i in range(3)])
    n = (q - p).cross(r - p)
    square = n.dot(n)
    longest = maximum((q - p).dot(q - p), maximum((r - p).dot(r - p), (r - q).dot(r - q)))
    area = square > MIN_SQUARED_AREA * (longest * longest)
    scale = 1.0 / select(area, square, 1.0)
    weights = Vec3(n.dot(q.cross(r)) * scale, n.dot(r.cross(p)) * scale, n.dot(p.cross(q)) * scale)
    inside = logical_and(area, minimum(weights.x, minimum(weights.y, weights.z)) > 0.0)
    height = n.dot(p) * scale
    return Nearest(
        choose(inside, n * height, best.point),
        select(inside, height * height * square, best.square),
        choose(inside, weights, best.weights),
    )


def nearer_of(old: Nearest, new: Nearest) -> Nearest:
    """Return the new point if it is nearer to the origin, else the old one."""
    return choose(new.square < old.square, new, old)


def holds_origin(p: Vec3, q: Vec3, r: Vec3, s: Vec3) -> Scalar:
    """Return whether the origin is inside the tetrahedron: on the inner side of all four planes."""
    volume = (q - p).cross(r - p).dot(s - p)
    sign = select(volume < 0.0, -1.0, 1.0)
    least = minimum(
        minimum(q.cross(r).dot(s) * sign, -(p.cross(r).dot(s)) * sign),
        minimum(p.cross(q).dot(s) * sign, -(p.cross(q).dot(r)) * sign),
    )
    size = maximum(maximum(p.dot(p), q.dot(q)), maximum(r.dot(r), s.dot(s)))
    return logical_and(least > 0.0, volume * volume > MIN_SQUARED_VOLUME * (size * size * size))


def _on_side(corners: tuple[Vec3, Vec3, Vec3], i: int, j: int) -> Nearest:
    """Return the nearest point of the side from corner i to corner j."""
    p, d = corners[i], corners[j] - corners[i]
    t = maximum(minimum(-p.dot(d) / maximum(d.dot(d), MIN_SQUARED_LENGTH), 1.0), 0.0)
    point = p + d * t
    square, weights = point.dot(point), {i: 1.0 - t, j: t}
    return Nearest(point, square, Vec3(*(weights.get(k, 0.0) for k in range(3))))


# The nearest points of two convex solids, after Gilbert, Johnson and Keerthi 1988.
#
# A triangle of extreme differences moves towards the origin: each step takes the extreme difference w against
# the triangle's nearest point v, and the nearest of the three triangles that w makes with
# two old corners. It ends where |v|^2 - v . w says that nothing is nearer, or where the origin is between the
# old triangle and w: then the solids overlap.

MAX_GJK_ITERATIONS = 40
"""The most extreme differences that a search takes."""
GJK_TOLERANCE = 1e-11
"""The relative change of the squared distance below which the search has converged."""


class Search(NamedTuple):
    """A triangle of differences, its point nearest to the origin, the last corner tried, and the state:
    0 searching, 1 converged, 2 overlapping.
    """

    corners: Triangle
    nearest: Nearest
    apex: Extreme
    state: Scalar

    @property
    def overlaps(self) -> Scalar:
        return self.state > 1.5

    def on_a(self) -> Vec3:
        """Return the point of a that is nearest."""
        total = Vec3.zero()
        for corner, weight in zip(self.corners, self.nearest.weights, strict=True):
            total = total + corner.a * weight
        return total


def nearest_differences(
    pair: SolidPair, start: Vec3, scale: float = 1.0, skip: Scalar = False, beyond: Scalar = None
) -> Search:
    """Return the nearest differences of the cores, shrunk by `scale`; where `skip` holds, do not search. The
    search ends as soon as it shows that the cores are farther apart than `beyond`."""
    first = pair.extreme(-start, scale)
    nearest = Nearest(first.w, first.w.dot(first.w), Vec3(1.0, 0.0, 0.0))
    begin = Search((first, first, first), nearest, first, select(skip, 2.0, 0.0))
    return loop(
        MAX_GJK_ITERATIONS,
        lambda search: _step(search, pair.extreme(-search.nearest.point, scale), beyond),
        begin,
        until=lambda search: search.state > 0.5,
    )


def _step(search: Search, new: Extreme, beyond: Scalar) -> Search:
    one, two, three = search.corners
    triangles: list[Triangle] = [(one, two, new), (two, three, new), (three, one, new)]
    closest, best = triangles[0], _nearest(triangles[0])
    for triangle in triangles[1:]:
        found = _nearest(triangle)
        closest, best = choose(found.square < best.square, (triangle, found), (closest, best))
    v, square = search.nearest.point, search.nearest.square
    found_it = logical_or(square - v.dot(new.w) <= GJK_TOLERANCE * square, best.square >= square)
    if beyond is not None:
        # The cores are |w| cos(v, w) apart along v, or more.
        along = maximum(v.dot(new.w), 0.0)
        found_it = logical_or(found_it, along * along > beyond * beyond * square)
    inside = holds_origin(one.w, two.w, three.w, new.w)
    stays = logical_or(found_it, inside)
    corners, nearest = choose(stays, (search.corners, search.nearest), (closest, best))
    return Search(corners, nearest, new, select(inside, 2.0, select(found_it, 1.0, 0.0)))


def _nearest(triangle: Triangle) -> Nearest:
    one, two, three = triangle
    return nearest_on_triangle(one.w, two.w, three.w)


# The penetration depth of two convex solids: the shortest shift that separates them.
#
# The shift is the distance from the origin to the nearest point of the surface of b - a. From a normal n a
# ray from the origin along -n meets the surface in a point whose normal is as good or better: with the
# surface at distance r along the ray and normal n', the depth along n' is r (n . n') <= r, and r is no more
# than the depth along n. So rays are cast until none improves. A ray is cast as in Snethen's portal
# refinement (Game Programming Gems 7, 2008): the triangle that it passes through is raised to the surface by
# extreme points, from a tetrahedron around the origin.

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
    return reduce(lambda best, face: choose(face[1] > best[1], face, best), _faces(search, ray))[0]


def _faces(search: Search, ray: Vec3) -> Iterator[tuple[Triangle, Scalar]]:
    """Yield the faces of the tetrahedron, and a number that is positive where the ray passes through one."""
    one, two, three = search.corners
    apex = search.apex
    for p, q, r in ((one, two, three), (one, two, apex), (two, three, apex), (three, one, apex)):
        reverse = p.w.cross(q.w).dot(r.w) < 0.0
        face = choose(reverse, (p, r, q), (p, q, r))
        yield (
            face,
            minimum(
                _side(face[0], face[1], ray),
                minimum(_side(face[1], face[2], ray), _side(face[2], face[0], ray)),
            ),
        )


def _refine_portal(pair: SolidPair, portal: Portal, ray: Vec3) -> Portal:
    """Return which of the three triangles with the extreme point over this one the ray passes through."""
    one, two, three = portal.corners
    n = direction((two.w - one.w).cross(three.w - one.w), ray).unit
    new = pair.extreme(n)
    on_surface = n.dot(new.w - one.w) <= SEPARATION_TOLERANCE
    sides = [_side(corner, new, ray) for corner in portal.corners]
    first = logical_and(sides[0] <= 0.0, sides[1] >= 0.0)
    second = logical_and(sides[1] <= 0.0, sides[2] >= 0.0)
    raised = choose(first, (one, two, new), choose(second, (two, three, new), (three, one, new)))
    return Portal(choose(on_surface, portal.corners, raised), select(on_surface, 1.0, 0.0))


CORE_SCALES = (0.999, 0.9)
"""The factors by which solids are shrunk to cores; the second is tried where the first cores overlap."""
MIN_SEPARATED_GAP = 1e-4
"""The separation [m] above which the nearest points alone determine the normal."""


def convex_convex(
    a: Shape, X_a: Transform, b: Shape, X_b: Transform, reach: Scalar = None
) -> list[ContactPoint]:
    """Return one point, where the solids are nearest or overlap most; if they are farther apart than `reach`
    [m], the gap is only known to be more than that."""
    return [in_world(X_a, best_separating_axis(solid_pair(a, X_a, b, X_b), reach))]


def flat_flat(a: Shape, X_a: Transform, b: Shape, X_b: Transform, reach: Scalar = None) -> list[ContactPoint]:
    """Return the point of `convex_convex` and eight of the contact area, for solids that can lie on each
    other.

    As between boxes these are the beginnings of the sides of both faces, each clipped by the other solid;
    a face of more than four corners counts as a quadrangle of them.
    """
    pair = solid_pair(a, X_a, b, X_b)
    best = best_separating_axis(pair, reach)
    if reach is None:
        return [in_world(X_a, axis) for axis in (best, *_contact_area(pair, best))]
    absent = [SeparatingAxis(best.normal, ABSENT_POINT_GAP, best.middle)] * 8
    area = loop(1, lambda _: _contact_area(pair, best), absent, until=lambda _: best.separation > reach)
    return [in_world(X_a, axis) for axis in (best, *area)]


def _contact_area(pair: SolidPair, best: SeparatingAxis) -> list[SeparatingAxis]:
    """Return the eight corners of the contact area; none exists where a solid touches with a corner alone."""
    n, reverse = best.normal, pair.R.transposed_times(-best.normal)
    of_a = pair.a.patch(n)
    of_b = [pair.p + pair.R @ y for y in reversed(pair.b.patch(reverse))]
    is_corner = logical_or(
        *(reduce(logical_and, [is_same_place(x, y) for y in rest]) for x, *rest in (of_a, of_b))
    )
    absent = [SeparatingAxis(n, ABSENT_POINT_GAP, best.middle)] * 8
    return loop(1, lambda _: _clipped_sides(pair, n, of_a, of_b), absent, until=lambda _: is_corner)


def _clipped_sides(pair: SolidPair, n: Vec3, of_a: list[Vec3], of_b: list[Vec3]) -> list[SeparatingAxis]:
    """Return the beginnings of the sides of both faces within the other solid."""
    R, reverse = pair.R, pair.R.transposed_times(-n)
    top, bottom = pair.a.reach(n), n.dot(pair.p) - pair.b.reach(reverse)
    on_a = [x + n * (top - n.dot(x)) for x in of_b]
    on_b = [x + n * (bottom - n.dot(x)) for x in of_a]
    found = []
    for k, (t, exists) in enumerate(_beginnings(pair.a, on_a)):
        gap = n.dot(of_b[k] + (of_b[(k + 1) % 4] - of_b[k]) * t) - top
        middle = on_a[k] + (on_a[(k + 1) % 4] - on_a[k]) * t + n * (0.5 * gap)
        found.append(SeparatingAxis(n, select(exists, gap, ABSENT_POINT_GAP), middle))
    for k, (t, exists) in enumerate(_beginnings(pair.b, [R.transposed_times(x - pair.p) for x in on_b])):
        gap = bottom - n.dot(of_a[k] + (of_a[(k + 1) % 4] - of_a[k]) * t)
        middle = on_b[k] + (on_b[(k + 1) % 4] - on_b[k]) * t - n * (0.5 * gap)
        found.append(SeparatingAxis(n, select(exists, gap, ABSENT_POINT_GAP), middle))
    return found


def _beginnings(solid: ConvexSolid, corners: list[Vec3]) -> list[tuple[Scalar, Scalar]]:
    """Return for each side of a polygon, p + t d from one corner to the next, the t in [0, 1] at which it
    enters a solid, and whether it does."""
    assert solid.clip is not None
    found = []
    for begin, end in solid.clip(corners):
        begin, end = maximum(begin, 0.0), minimum(end, 1.0)
        exists = begin <= end
        found.append((select(exists, begin, 0.0), exists))
    return found


def in_world(X_a: Transform, found: SeparatingAxis) -> ContactPoint:
    return ContactPoint(X_a.transform_point(found.middle), X_a.R @ found.normal, found.separation)


def solid_pair(a: Shape, X_a: Transform, b: Shape, X_b: Transform) -> SolidPair:
    R: Mat3 = X_a.R.transpose() @ X_b.R
    return SolidPair(convex_solid(a), convex_solid(b), R, X_a.inverse_transform_point(X_b.p))


def best_separating_axis(pair: SolidPair, reach: Scalar = None) -> SeparatingAxis:
    """Return the separating axis with the greatest separation, in a's coordinates, or any along which they
    are farther apart than `reach` [m]."""
    R, p = pair.R, pair.p
    centres = direction(p + R @ pair.b.centre - pair.a.centre, Vec3.unit(2)).unit
    beyond = None if reach is None else maximum(reach, MIN_SEPARATED_GAP) + pair.a.margin + pair.b.margin
    search = nearest_differences(pair, centres, beyond=beyond)
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
