"""Convex solids of any kind against each other, by their support functions.

A unit vector n, from a to b, separates them by s(n) = min over b of n . x - max over a of n . x; their signed
distance is the greatest s of all n, and every s is a bound of it. The normal is the best of a few:
that between the nearest points, exact while the solids are apart; that between the solids moved a little
apart, which does not fail where the solids just touch; the normals of flat faces; and, where
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
from dalembert.contact.narrow_phase.support import ConvexSolid, convex_solid, is_edge, is_same_place
from dalembert.model.shapes import Shape
from dalembert.scalar import (
    Scalar,
    absolute,
    logical_and,
    logical_not,
    logical_or,
    loop,
    maximum,
    minimum,
    select,
)
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

    def extreme(self, d: Vec3) -> Extreme:
        """Return the difference of the cores that lies farthest along d."""
        on_a = self.a.support(-d)
        return Extreme(self.p + self.R @ self.b.support(self.R.transposed_times(d)) - on_a, on_a)

    def separation_along(self, n: Vec3, extreme: Extreme, middle: Vec3) -> SeparatingAxis:
        """Return s(n) = min over b of n . x - max over a of n . x, given the extreme difference along -n;
        `middle` is moved along n to midway between the surfaces."""
        separation = n.dot(extreme.w) - self.a.margin - self.b.margin
        between = n.dot(extreme.a) + self.a.margin + 0.5 * separation
        return SeparatingAxis(n, separation, middle + n * (between - n.dot(middle)))

    def separation_by_face_of_a(self, n: Vec3) -> SeparatingAxis:
        extreme = self.extreme(-n)
        return self.separation_along(n, extreme, extreme.a + extreme.w)

    def separation_by_face_of_b(self, n: Vec3) -> SeparatingAxis:
        extreme = self.extreme(-n)
        return self.separation_along(n, extreme, extreme.a)


def better_of(
    new: SeparatingAxis, old: SeparatingAxis, least: float = SEPARATION_TOLERANCE
) -> SeparatingAxis:
    """Return the new axis if it is better by `least` or more, so that rounding decides between no equals."""
    return choose(new.separation > old.separation + least, new, old)


# The nearest points of two convex solids, after Gilbert, Johnson and Keerthi 1988.
#
# A triangle of extreme differences moves towards the origin: w is the extreme difference against its nearest
# point v, and the new v is on one of the sides of the tetrahedron of the triangle and w that end in w, or on
# one of the faces between these: other points of the tetrahedron are no nearer than the old v. The search
# ends where |v|^2 - v . w says that nothing is nearer, or where the origin is in the tetrahedron: then the
# solids overlap.

MIN_SQUARED_SINE = 1e-14
"""The square of the sine between two sides of a triangle below which it is a line, where they are as long."""
MIN_SQUARED_VOLUME = 1e-12
"""The squared volume, in units of the longest side to the sixth power, below which a tetrahedron is flat."""
MIN_SQUARED_LENGTH = 1e-30
"""The least squared length [m^2] of a segment: shorter ones count as this, so that division is finite."""
MAX_GJK_ITERATIONS = 40
"""The most extreme differences that a search takes."""
GJK_TOLERANCE = 1e-8
"""The relative change of the squared distance below which the search has converged: the direction is then
within 1e-4 rad. With 1e-11 cylinders that touch take up to 40 iterations, now up to 31."""
TOUCHING_DISTANCE = 1e-7
"""The distance [m] below which solids touch: the search with b moved apart then finds the normal."""
UNKNOWN_SQUARE = 1e30
"""The square [m^2] of a distance that is not known yet."""


class Nearest(NamedTuple):
    """The point nearest to the origin, its square, the corner of the triangle that w replaces, and the
    weights of w and of the two corners after it, in turn."""

    point: Vec3
    square: Scalar
    replaced: Scalar
    weights: Vec3


class Search(NamedTuple):
    """A triangle of differences, its nearest point v, the extreme difference against v, and the state:
    0 searching, 1 as near as it comes, 2 overlapping: the origin is in the tetrahedron of both.
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
        x, y, z = self.nearest.weights
        first, second = self.nearest.replaced < 0.5, self.nearest.replaced < 1.5
        weights = choose(first, (x, y, z), choose(second, (z, x, y), (y, z, x)))
        one, two, three = self.corners
        point: Vec3 = one.a * weights[0] + two.a * weights[1] + three.a * weights[2]
        return point

    def moved(self, shift: Vec3) -> Search:
        """Return the search to go on with where b has moved."""
        one, two, three, apex = (Extreme(w + shift, a) for w, a in (*self.corners, self.apex))
        nearest = Nearest(self.nearest.point, UNKNOWN_SQUARE, 0.0, Vec3.unit(0))
        return Search((one, two, three), nearest, apex, 0.0)


def nearest_on_tetrahedron(corners: Triangle, apex: Extreme) -> tuple[Nearest, Scalar]:
    """Return the nearest point of the sides that end in the apex and of the faces between them, and whether
    the origin is inside.

    With sides e_i from the apex w the foot on the face of e_i and e_j is w + x e_i + y e_j, n = e_i x e_j,
    x = -n . (w x e_j) / n^2, y = n . (w x e_i) / n^2.
    """
    w = apex.w
    e = [corner.w - w for corner in corners]
    lengths = [side.dot(side) for side in e]
    best = _on_side(w, e[0], lengths[0], 1.0)
    for k in (1, 2):
        best = nearer_of(best, _on_side(w, e[k], lengths[k], (k + 1.0) % 3.0))
    moments = [w.cross(side) for side in e]
    heights, volume = [], e[0].cross(e[1]).dot(e[2])
    for k in range(3):
        i, j = (k + 1) % 3, (k + 2) % 3
        n = e[i].cross(e[j])
        square, height = n.dot(n), n.dot(w)
        longer = maximum(lengths[i], lengths[j])
        area = square > MIN_SQUARED_SINE * (longer * longer)
        x, y = -n.dot(moments[j]), n.dot(moments[i])
        rest = square - x - y
        inside = logical_and(area, minimum(rest, minimum(x, y)) > 0.0)
        scale = 1.0 / select(area, square, 1.0)
        foot = height * scale
        distance = select(inside, foot * height, UNKNOWN_SQUARE)
        best = nearer_of(best, Nearest(n * foot, distance, float(k), Vec3(rest, x, y) * scale))
        heights.append(height)
    # The signs are those of the volumes with the origin in place of each corner.
    sign = select(volume < 0.0, -1.0, 1.0)
    below = maximum(heights[0] * sign, maximum(heights[1] * sign, heights[2] * sign))
    above = (volume + heights[0] + heights[1] + heights[2]) * sign
    longest = maximum(lengths[0], maximum(lengths[1], lengths[2]))
    solid = volume * volume > MIN_SQUARED_VOLUME * (longest * longest * longest)
    return best, logical_and(solid, logical_and(below < 0.0, above > 0.0))


def nearer_of(old: Nearest, new: Nearest) -> Nearest:
    """Return the new point if it is nearer to the origin, else the old one."""
    return choose(new.square < old.square, new, old)


def _on_side(w: Vec3, e: Vec3, length: Scalar, replaced: float) -> Nearest:
    """Return the nearest point of the side e from w to the second corner after the replaced one."""
    t = maximum(minimum(-w.dot(e) / maximum(length, MIN_SQUARED_LENGTH), 1.0), 0.0)
    point = w + e * t
    return Nearest(point, point.dot(point), replaced, Vec3(1.0 - t, 0.0, t))


def nearest_differences(pair: SolidPair, begin: Search, beyond: Scalar = None) -> Search:
    """Return the search for the nearest differences of the cores when it is over, or as soon as it shows that
    the cores are farther apart than `beyond`."""

    def over(search: Search) -> Scalar:
        v, square = search.nearest.point, search.nearest.square
        along = v.dot(search.apex.w)
        found = logical_or(search.state > 0.5, square - along <= GJK_TOLERANCE * square)
        found = logical_or(found, square < TOUCHING_DISTANCE * TOUCHING_DISTANCE)
        if beyond is not None:
            # The cores are |w| cos(v, w) apart along v, or more.
            along = maximum(along, 0.0)
            found = logical_or(found, along * along > beyond * beyond * square)
        return found

    return loop(MAX_GJK_ITERATIONS, lambda search: _step(pair, search), begin, until=over)


def _step(pair: SolidPair, search: Search) -> Search:
    nearest, inside = nearest_on_tetrahedron(search.corners, search.apex)
    stuck = nearest.square >= search.nearest.square
    stays = logical_or(inside, stuck)
    new = choose(stays, search.apex, pair.extreme(-nearest.point))
    one, two, three = (
        choose(logical_or(stays, absolute(nearest.replaced - k) > 0.5), corner, search.apex)
        for k, corner in enumerate(search.corners)
    )
    nearest = choose(stays, search.nearest, nearest)
    return Search((one, two, three), nearest, new, select(inside, 2.0, select(stuck, 1.0, 0.0)))


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
    """A triangle that a ray passes through, its normal along the ray, and the extreme difference along it."""

    corners: Triangle
    normal: Vec3
    apex: Extreme


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
    portal = loop(
        MAX_PORTAL_REFINEMENTS,
        lambda portal: _portal(pair, _raised(portal, ray), ray),
        _portal(pair, _entrance(search, ray), ray),
        until=lambda portal: portal.normal.dot(portal.apex.w - portal.corners[0].w) <= SEPARATION_TOLERANCE,
    )
    one, two, three = portal.corners
    weights = [_side(two, three, ray), _side(three, one, ray), _side(one, two, ray)]
    total = weights[0] + weights[1] + weights[2]
    scale = 1.0 / select(total > 0.0, total, 1.0)
    middle = Vec3.zero()
    for weight, corner in zip(weights, portal.corners, strict=True):
        middle = middle + (corner.a + corner.w * 0.5) * (weight * scale)
    return pair.separation_along(-portal.normal, portal.apex, middle)


def _portal(pair: SolidPair, corners: Triangle, ray: Vec3) -> Portal:
    one, two, three = corners
    n = direction((two.w - one.w).cross(three.w - one.w), ray).unit
    return Portal(corners, n, pair.extreme(n))


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


def _raised(portal: Portal, ray: Vec3) -> Triangle:
    """Return which of the three triangles with the extreme point over this one the ray passes through."""
    one, two, three = portal.corners
    sides = [_side(corner, portal.apex, ray) for corner in portal.corners]
    first = logical_and(sides[0] <= 0.0, sides[1] >= 0.0)
    second = logical_and(sides[1] <= 0.0, sides[2] >= 0.0)
    return (
        choose(first, one, choose(second, two, three)),
        choose(first, two, choose(second, three, one)),
        portal.apex,
    )


FIRST_SHIFT = 1e-3
"""Where solids touch or overlap, b is moved away from a by this part of the vector between their centres:
0.1 mm for centres 10 cm apart. The normals are those of the solids shrunk about their centres to 0.999."""
SHIFT_GROWTH = 6.0
"""The factor by which the shift grows, besides `FIRST_SHIFT`, while the solids still overlap."""
MAX_SHIFTS = 4
"""The most shifts that are tried: 0.001, 0.007, 0.043 and 0.259. With 0.001 and 0.111 alone solids of 0.2 m
that overlap by 2 cm are in the mean 0.09 mm deeper than by the best normal, with these 0.05 mm."""
MIN_CROSSING_SINE = 0.01
"""The sine of the angle of two edges below which they touch along a part of their length: they are within
`ON_FACE_MARGIN` of each other along 1 mm there."""
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
    """Return the eight corners of the contact area; none exists where a solid touches with a corner alone.

    An edge that lies on the other solid has both its ends, or where it leaves the other, as beginnings of its
    own two sides, so that nothing is clipped by the solid of an edge; edges that cross meet in `best` alone.
    """
    n, reverse = best.normal, pair.R.transposed_times(-best.normal)
    of_a = pair.a.patch(n)
    of_b = [pair.p + pair.R @ y for y in reversed(pair.b.patch(reverse))]
    is_corner = logical_or(
        *(reduce(logical_and, [is_same_place(x, y) for y in rest]) for x, *rest in (of_a, of_b))
    )
    a_is_edge, b_is_edge = is_edge(of_a), is_edge(of_b)
    one, other = of_a[2] - of_a[0], of_b[2] - of_b[0]
    across = one.cross(other)
    cross = across.dot(across) > MIN_CROSSING_SINE**2 * (one.dot(one) * other.dot(other))
    nothing_on_a = logical_or(is_corner, logical_and(a_is_edge, logical_or(logical_not(b_is_edge), cross)))
    nothing_on_b = logical_or(is_corner, b_is_edge)
    absent = [SeparatingAxis(n, ABSENT_POINT_GAP, best.middle)] * 4
    return [
        *loop(1, lambda _: _sides_on_a(pair, n, of_b), absent, until=lambda _: nothing_on_a),
        *loop(1, lambda _: _sides_on_b(pair, n, of_a), absent, until=lambda _: nothing_on_b),
    ]


def _sides_on_a(pair: SolidPair, n: Vec3, of_b: list[Vec3]) -> list[SeparatingAxis]:
    """Return the beginnings of the sides of the face of b within a."""
    top = pair.a.reach(n)
    on_a = [x + n * (top - n.dot(x)) for x in of_b]
    found = []
    for k, (t, exists) in enumerate(_beginnings(pair.a, on_a)):
        gap = n.dot(of_b[k] + (of_b[(k + 1) % 4] - of_b[k]) * t) - top
        middle = on_a[k] + (on_a[(k + 1) % 4] - on_a[k]) * t + n * (0.5 * gap)
        found.append(SeparatingAxis(n, select(exists, gap, ABSENT_POINT_GAP), middle))
    return found


def _sides_on_b(pair: SolidPair, n: Vec3, of_a: list[Vec3]) -> list[SeparatingAxis]:
    """Return the beginnings of the sides of the face of a within b."""
    R = pair.R
    bottom = n.dot(pair.p) - pair.b.reach(R.transposed_times(-n))
    on_b = [x + n * (bottom - n.dot(x)) for x in of_a]
    found = []
    for k, (t, exists) in enumerate(_beginnings(pair.b, [R.transposed_times(x - pair.p) for x in on_b])):
        gap = bottom - n.dot(of_a[k] + (of_a[(k + 1) % 4] - of_a[k]) * t)
        middle = on_b[k] + (on_b[(k + 1) % 4] - on_b[k]) * t - n * (0.5 * gap)
        found.append(SeparatingAxis(n, select(exists, gap, ABSENT_POINT_GAP), middle))
    return found


def _beginnings(solid: ConvexSolid, corners: list[Vec3]) -> list[tuple[Scalar, Scalar]]:
    """Return for each side of a polygon, p + t d from one corner to the next, the t in [0, 1] at which it
    enters a solid, and whether it does; a side of no length does not, as the next one begins there, too."""
    assert solid.clip is not None
    found = []
    for (begin, end), p, q in zip(solid.clip(corners), corners, corners[1:] + corners[:1], strict=True):
        begin, end = maximum(begin, 0.0), minimum(end, 1.0)
        exists = logical_and(begin <= end, logical_not(is_same_place(p, q)))
        found.append((select(exists, begin, 0.0), exists))
    return found


def in_world(X_a: Transform, found: SeparatingAxis) -> ContactPoint:
    return ContactPoint(X_a.transform_point(found.middle), X_a.R @ found.normal, found.separation)


def solid_pair(a: Shape, X_a: Transform, b: Shape, X_b: Transform) -> SolidPair:
    R: Mat3 = X_a.R.transpose() @ X_b.R
    return SolidPair(convex_solid(a), convex_solid(b), R, X_a.inverse_transform_point(X_b.p))


class ShiftedSearch(NamedTuple):
    """A search with b moved away from a by a part of the distance of centres, and the best axis so far."""

    search: Search
    part: Scalar
    best: SeparatingAxis


def best_separating_axis(pair: SolidPair, reach: Scalar = None) -> SeparatingAxis:
    """Return the separating axis with the greatest separation, in a's coordinates, or any along which they
    are farther apart than `reach` [m]."""
    between = pair.p + pair.R @ pair.b.centre - pair.a.centre
    centres = direction(between, Vec3.unit(2)).unit
    first = pair.extreme(-centres)
    beyond = None if reach is None else maximum(reach, MIN_SEPARATED_GAP) + pair.a.margin + pair.b.margin
    nearest = Nearest(first.w, first.w.dot(first.w), 0.0, Vec3.unit(0))
    begin = Search((first, first, first), nearest, pair.extreme(-first.w), 0.0)
    search = nearest_differences(pair, begin, beyond)
    start = pair.separation_along(centres, first, first.a)
    best = _axis_found(pair, search, Vec3.zero(), start)

    def refine(best: SeparatingAxis) -> SeparatingAxis:
        best = _best_of_shifted(pair, search, between, best)
        for axis in pair.a.axes:
            best = better_of(pair.separation_by_face_of_a(orient_towards(axis, centres)), best)
        for axis in pair.b.axes:
            best = better_of(pair.separation_by_face_of_b(orient_towards(pair.R @ axis, centres)), best)
        return deepest_overlap(pair, search, best)

    return loop(1, refine, best, until=lambda best: best.separation > MIN_SEPARATED_GAP)


def _axis_found(pair: SolidPair, search: Search, shift: Vec3, best: SeparatingAxis) -> SeparatingAxis:
    """Return the axis between the nearest points of a search with b moved by `shift`, if these are apart."""
    n = direction(search.nearest.point, best.normal)
    extreme = Extreme(search.apex.w - shift, search.apex.a)
    found = pair.separation_along(n.unit, extreme, search.on_a())
    known = logical_and(logical_not(search.overlaps), n.length > 0.0)
    return choose(logical_and(known, found.separation > best.separation + SEPARATION_TOLERANCE), found, best)


def _best_of_shifted(pair: SolidPair, search: Search, between: Vec3, best: SeparatingAxis) -> SeparatingAxis:
    """Return the best axis of searches with b moved away from a until they are apart."""

    def shifted(at: ShiftedSearch) -> ShiftedSearch:
        part = at.part * SHIFT_GROWTH + FIRST_SHIFT
        shift = between * part
        begin = at.search.moved(between * (part - at.part))
        search = nearest_differences(pair._replace(p=pair.p + shift), begin)
        return ShiftedSearch(search, part, _axis_found(pair, search, shift, at.best))

    begin = ShiftedSearch(search._replace(state=2.0), 0.0, best)
    return loop(MAX_SHIFTS, shifted, begin, until=lambda at: logical_not(at.search.overlaps)).best
