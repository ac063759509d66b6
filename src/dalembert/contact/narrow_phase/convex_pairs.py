"""Convex solids of any kind against each other, by their support functions.

A unit vector n, from a to b, separates them by s(n) = min over b of n . x - max over a of n . x; their signed
distance is the greatest s of all n, and every s is a bound of it. A search for the nearest points finds the
greatest s of solids that are apart. Solids that overlap are first moved apart along the best n so far.
"""

from __future__ import annotations

from functools import reduce
from typing import NamedTuple

from dalembert.contact.narrow_phase.boxes import best_face
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

    def moved_to(self, place: Vec3) -> SeparatingAxis:
        """Return the axis with the middle at a place, but as far along the normal as before."""
        return self._replace(middle=place + self.normal * self.normal.dot(self.middle - place))


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


# The nearest points of two convex solids, after Gilbert, Johnson and Keerthi 1988.
#
# A triangle of extreme differences moves towards the origin: w is the extreme difference against its nearest
# point v, and the new v is on one of the sides of the tetrahedron of the triangle and w that end in w, or on
# one of the faces between these: other points of the tetrahedron are no nearer than the old v. The search
# ends where |v|^2 - v . w says that nothing is nearer. The origin is never in the tetrahedron: solids that
# overlap are moved apart before.

MIN_SQUARED_SINE = 1e-14
"""The square of the sine between two sides of a triangle below which it is a line, where they are as long."""
MIN_SQUARED_LENGTH = 1e-30
"""The least squared length [m^2] of a segment: shorter ones count as this, so that division is finite."""
MAX_GJK_ITERATIONS = 40
"""The most extreme differences that a search takes."""
GJK_TOLERANCE = 1e-8
"""The relative change of the squared distance below which the search has converged: the direction is then
within 1e-4 rad."""
DISTANCE_TOLERANCE = 1e-8
"""The error [m] of the distance below which the search has converged: the normal of surfaces with a radius of
0.1 m is then within 5e-4 rad. Without it curved surfaces that touch take a third more iterations."""
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
    """A triangle of differences, its nearest point v, the extreme difference against v, and whether rounding
    errors keep the search from coming nearer."""

    corners: Triangle
    nearest: Nearest
    apex: Extreme
    stuck: Scalar

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


def nearest_on_tetrahedron(corners: Triangle, apex: Extreme) -> Nearest:
    """Return the nearest point of the sides that end in the apex and of the faces between them.

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
    for k in range(3):
        i, j = (k + 1) % 3, (k + 2) % 3
        n = e[i].cross(e[j])
        square = n.dot(n)
        longer = maximum(lengths[i], lengths[j])
        area = square > MIN_SQUARED_SINE * (longer * longer)
        x, y = -n.dot(moments[j]), n.dot(moments[i])
        rest = square - x - y
        inside = logical_and(area, minimum(rest, minimum(x, y)) > 0.0)
        scale = 1.0 / select(area, square, 1.0)
        height = n.dot(w)
        foot = height * scale
        distance = select(inside, foot * height, UNKNOWN_SQUARE)
        best = nearer_of(best, Nearest(n * foot, distance, float(k), Vec3(rest, x, y) * scale))
    return best


def nearer_of(old: Nearest, new: Nearest) -> Nearest:
    """Return the new point if it is nearer to the origin, else the old one."""
    return choose(new.square < old.square, new, old)


def _on_side(w: Vec3, e: Vec3, length: Scalar, replaced: float) -> Nearest:
    """Return the nearest point of the side e from w to the second corner after the replaced one."""
    t = maximum(minimum(-w.dot(e) / maximum(length, MIN_SQUARED_LENGTH), 1.0), 0.0)
    point = w + e * t
    return Nearest(point, point.dot(point), replaced, Vec3(1.0 - t, 0.0, t))


def nearest_differences(pair: SolidPair, begin: Search, shift: Vec3, beyond: Scalar = None) -> Search:
    """Return the search for the nearest differences of the cores with b moved by `shift` when it is over, or
    as soon as it shows that the cores are farther apart than `beyond` where b is not moved."""
    moved = pair._replace(p=pair.p + shift)

    def over(search: Search) -> Scalar:
        v, square, w = search.nearest.point, search.nearest.square, search.apex.w
        error = square - v.dot(w)
        found = logical_or(search.stuck > 0.5, error <= GJK_TOLERANCE * square)
        # The distance is |v| - error / |v| or more.
        found = logical_or(found, error * error <= DISTANCE_TOLERANCE**2 * square)
        if beyond is not None:
            # The cores are |w| cos(v, w) apart along v, or more.
            along = maximum(v.dot(w - shift), 0.0)
            found = logical_or(found, along * along > beyond * beyond * v.dot(v))
        return found

    return loop(MAX_GJK_ITERATIONS, lambda search: _step(moved, search), begin, until=over)


def _step(pair: SolidPair, search: Search) -> Search:
    nearest = nearest_on_tetrahedron(search.corners, search.apex)
    stuck = nearest.square >= search.nearest.square
    new = choose(stuck, search.apex, pair.extreme(-nearest.point))
    one, two, three = (
        choose(logical_or(stuck, absolute(nearest.replaced - k) > 0.5), corner, search.apex)
        for k, corner in enumerate(search.corners)
    )
    nearest = choose(stuck, search.nearest, nearest)
    return Search((one, two, three), nearest, new, select(stuck, 1.0, 0.0))


MIN_CROSSING_SINE = 0.01
"""The sine of the angle of two edges below which they touch along a part of their length: they are within
`ON_FACE_MARGIN` of each other along 1 mm there."""


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
        *loop(1, lambda _: _sides_on_a(pair, best, of_b), absent, until=lambda _: nothing_on_a),
        *loop(1, lambda _: _sides_on_b(pair, best, of_a), absent, until=lambda _: nothing_on_b),
    ]


def _sides_on_a(pair: SolidPair, best: SeparatingAxis, of_b: list[Vec3]) -> list[SeparatingAxis]:
    """Return the beginnings of the sides of the face of b within a."""
    n = best.normal
    top = n.dot(best.middle) - 0.5 * best.separation
    on_a = [x + n * (top - n.dot(x)) for x in of_b]
    found = []
    for k, (t, exists) in enumerate(_beginnings(pair.a, on_a, n)):
        gap = n.dot(of_b[k] + (of_b[(k + 1) % 4] - of_b[k]) * t) - top
        middle = on_a[k] + (on_a[(k + 1) % 4] - on_a[k]) * t + n * (0.5 * gap)
        found.append(SeparatingAxis(n, select(exists, gap, ABSENT_POINT_GAP), middle))
    return found


def _sides_on_b(pair: SolidPair, best: SeparatingAxis, of_a: list[Vec3]) -> list[SeparatingAxis]:
    """Return the beginnings of the sides of the face of a within b."""
    n, R = best.normal, pair.R
    bottom = n.dot(best.middle) + 0.5 * best.separation
    on_b = [x + n * (bottom - n.dot(x)) for x in of_a]
    found = []
    seen_from_b = [R.transposed_times(x - pair.p) for x in on_b]
    for k, (t, exists) in enumerate(_beginnings(pair.b, seen_from_b, R.transposed_times(-n))):
        gap = bottom - n.dot(of_a[k] + (of_a[(k + 1) % 4] - of_a[k]) * t)
        middle = on_b[k] + (on_b[(k + 1) % 4] - on_b[k]) * t - n * (0.5 * gap)
        found.append(SeparatingAxis(n, select(exists, gap, ABSENT_POINT_GAP), middle))
    return found


def _beginnings(solid: ConvexSolid, corners: list[Vec3], unit: Vec3) -> list[tuple[Scalar, Scalar]]:
    """Return for each side of a polygon, p + t d from one corner to the next, the t in [0, 1] at which it
    enters a solid that it lies on, and whether it does; a side of no length does not, as the next one begins
    there, too. `unit`: the outward normal of the solid at the polygon."""
    assert solid.clip is not None
    found = []
    for (begin, end), p, q in zip(solid.clip(corners, unit), corners, corners[1:] + corners[:1], strict=True):
        begin, end = maximum(begin, 0.0), minimum(end, 1.0)
        exists = logical_and(begin <= end, logical_not(is_same_place(p, q)))
        found.append((select(exists, begin, 0.0), exists))
    return found


def in_world(X_a: Transform, found: SeparatingAxis) -> ContactPoint:
    return ContactPoint(X_a.transform_point(found.middle), X_a.R @ found.normal, found.separation)


def solid_pair(a: Shape, X_a: Transform, b: Shape, X_b: Transform) -> SolidPair:
    R: Mat3 = X_a.R.transpose() @ X_b.R
    return SolidPair(convex_solid(a), convex_solid(b), R, X_a.inverse_transform_point(X_b.p))


# The best separating axis.
#
# Let n separate the cores by s(n) < 0. With b moved by c n, c > -s(n), they are apart, and their nearest
# points have the normal n' with the greatest s(n') + c n' . n. As this is no less than s(n) + c and n' . n is
# no more than 1, s(n') >= s(n): a search with b moved improves the axis until it is a local maximum of s. The
# first search moves b along the line of centres, as far as n asks for: that finds the greatest maximum more
# often. Of overlaps of up to 5 cm of solids of half a metre 99.8 % are the least depth.

MIN_SEARCH_GAP = 1e-4
"""The separation [m] that b is moved to along the best axis so far, where it is less: rounding errors turn
the normal between points that far apart by 1e-12."""
MIN_CENTRES_COSINE = 0.3
"""The cosine of the angle between the first axis and the line of centres below which the first search moves b
along the axis: along the line of centres it would move too far."""
MIN_GAIN = 1e-7
"""The gain of a search [m] from which another one follows: what is left is far less, as the normal's error
falls to the depth divided by the radius of the surfaces, and the gain is its square."""
MAX_SEARCHES = 6
"""The most searches for a pair."""


class Ascent(NamedTuple):
    """The best axis so far; the last search, with b moved by `shift`; the way to move b next for each metre
    along the axis; how many searches there were, and whether none can improve the axis."""

    best: SeparatingAxis
    search: Search
    shift: Vec3
    way: Vec3
    searches: Scalar
    over: Scalar


def best_separating_axis(pair: SolidPair, reach: Scalar = None) -> SeparatingAxis:
    """Return the separating axis with the greatest separation, in a's coordinates, or any along which they
    are farther apart than `reach` [m]."""
    margin = pair.a.margin + pair.b.margin
    beyond = None if reach is None else maximum(reach, MIN_SEARCH_GAP) + margin
    between = pair.p + pair.R @ pair.b.centre - pair.a.centre
    n, first = _first_axis(pair, between)
    begin = Search((first, first, first), Nearest(n, UNKNOWN_SQUARE, 0.0, Vec3.unit(0)), first, 0.0)

    def ascend(at: Ascent) -> Ascent:
        apart = at.best.separation + margin
        missing = maximum(MIN_SEARCH_GAP - apart, 0.0)
        shift = at.way * missing
        search = nearest_differences(pair, at.search.moved(shift - at.shift), shift, beyond)
        normal = direction(search.nearest.point, at.best.normal).unit
        extreme = Extreme(search.apex.w - shift, search.apex.a)
        found = pair.separation_along(normal, extreme, search.on_a())
        gain = found.separation - at.best.separation
        over = logical_or(missing <= 0.0, logical_and(gain <= MIN_GAIN, at.searches > 0.5))
        if reach is not None:
            over = logical_or(over, found.separation > reach)
        best = choose(gain > SEPARATION_TOLERANCE, found, at.best.moved_to(found.middle))
        return Ascent(best, search, shift, best.normal, at.searches + 1.0, select(over, 1.0, 0.0))

    start = pair.separation_along(n, first, first.a)
    far = 0.0 if reach is None else select(start.separation > reach, 1.0, 0.0)
    along = n.dot(between)
    by_centres = along * along > MIN_CENTRES_COSINE**2 * between.dot(between)
    way = choose(by_centres, between * (1.0 / select(by_centres, along, 1.0)), n)
    ascent = Ascent(start, begin, Vec3.zero(), way, 0.0, far)
    return loop(MAX_SEARCHES, ascend, ascent, until=lambda at: at.over > 0.5).best


def _first_axis(pair: SolidPair, between: Vec3) -> tuple[Vec3, Extreme]:
    """Return the axis that separates the boxes around both cores most, or the line of centres if that is
    better, or where cores overlap the best normal of flat faces; and the extreme difference against it."""
    a, b = pair.a, pair.b
    n = best_face(between, pair.R, a.half, b.half).normal
    faces = [orient_towards(axis, between) for axis in (*a.axes, *(pair.R @ axis for axis in b.axes))]

    def best(at: tuple[Vec3, Extreme]) -> tuple[Vec3, Extreme]:
        for axis in faces:
            extreme = pair.extreme(-axis)
            at = choose(axis.dot(extreme.w) > at[0].dot(at[1].w) + SEPARATION_TOLERANCE, (axis, extreme), at)
        return at

    of_boxes, centres = (n, pair.extreme(-n)), direction(between, n).unit
    of_centres = centres, pair.extreme(-centres)
    start = choose(of_centres[1].w.dot(centres) > of_boxes[1].w.dot(n), of_centres, of_boxes)
    return loop(1, best, start, until=lambda at: at[0].dot(at[1].w) > 0.0)
