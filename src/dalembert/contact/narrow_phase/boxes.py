"""Boxes against boxes: the separating axis of fifteen with the greatest separation, and where faces meet.

A unit vector n separates a pair of convex bodies by s(n) = min over b of n . x - max over a of n . x; the
signed distance of boxes that overlap is the greatest s over the normals of both and the cross products of
their edges (Gottschalk, Lin, Manocha 1996). A face of a is preferred to one of b, and faces to edges, by a
fraction of the depth, so that a box at rest on a face keeps its normal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import reduce
from typing import NamedTuple, TypeAlias, TypeVar

from dalembert.contact.narrow_phase.candidates import ABSENT_POINT_GAP, ContactPoint, choose
from dalembert.contact.narrow_phase.grounds import face_arms
from dalembert.contact.narrow_phase.rounded_shapes import crossing, half_lengths, nearest_on_segments
from dalembert.model.shapes import Box
from dalembert.scalar import Scalar, absolute, maximum, minimum, select, sqrt
from dalembert.spatial import Mat3, Transform, Vec3

# The intersection of two faces that face each other.
#
# The contact area of two boxes is the intersection of a reference face with the face of the other box that
# faces it most, as rectangles in the reference face's plane. Every corner of the intersection begins one of
# its sides, and its sides are parts of the eight sides of the two faces: the beginnings of these, each
# clipped by the other face, are the points. Coordinates x, y of the reference face and alpha, beta of the
# other one are from -1 to 1 on either face; both run around in the same sense.

ON_FACE_TOLERANCE = 1e-6
"""The distance, in half lengths of a face, by which a point may lie outside the face and still be on it."""
CORNERS = ((-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0))
SIDES = ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0))


class Face(NamedTuple):
    """The centre of a face and its half edges, in world coordinates."""

    centre: Vec3
    u: Vec3
    v: Vec3


class Affine(NamedTuple):
    """f(alpha, beta) = origin + u alpha + v beta."""

    origin: Scalar
    u: Scalar
    v: Scalar

    def at(self, alpha: Scalar, beta: Scalar) -> Scalar:
        return self.origin + self.u * alpha + self.v * beta

    def along(self, side: tuple[float, float]) -> Scalar:
        return self.u * side[0] + self.v * side[1]


def face_points(
    h_a: Vec3, X_a: Transform, h_b: Vec3, X_b: Transform, n: Vec3, swapped: Scalar
) -> list[ContactPoint]:
    """Return the corners of the intersection: four on sides of the incident face, four on the reference
    face's.

    n from a to b, in the world; the reference face is a's, or b's where `swapped`.
    """
    outward = choose(swapped, -n, n)
    a, b = (X_a.R, h_a, X_a.p), (X_b.R, h_b, X_b.p)
    reference = _face(*choose(swapped, b, a), -outward)
    incident = _face(*choose(swapped, a, b), outward)
    return [
        ContactPoint(
            reference.centre + reference.u * x + reference.v * y + outward * (0.5 * height),
            n,
            select(exists, height, ABSENT_POINT_GAP),
        )
        for x, y, height, exists in _clip_corners(reference, incident, outward)
    ]


def _face(R: Mat3, h: Vec3, p: Vec3, n: Vec3) -> Face:
    """Return the face of a box at R and p whose outward normal is most opposed to n."""
    arms = [R.column(i) * h[i] for i in range(3)]
    u, v, w = face_arms(arms, R.transposed_times(n))
    return Face(p + w, u, v)


def _clip_corners(
    reference: Face, incident: Face, outward: Vec3
) -> list[tuple[Scalar, Scalar, Scalar, Scalar]]:
    """Return x, y, the height over the reference face, and whether the corner exists, for each corner."""
    offset = incident.centre - reference.centre
    x_axis = reference.u * (1.0 / reference.u.dot(reference.u))
    y_axis = reference.v * (1.0 / reference.v.dot(reference.v))
    x, y, height = (
        Affine(axis.dot(offset), axis.dot(incident.u), axis.dot(incident.v))
        for axis in (x_axis, y_axis, outward)
    )
    turn = select(x.u * y.v - x.v * y.u < 0.0, -1.0, 1.0)
    x, y, height = (line._replace(v=line.v * turn) for line in (x, y, height))
    found: list[tuple[Scalar, Scalar, Scalar, Scalar]] = []
    for corner, side, start, along, t, exists in _clip_sides(x, y):
        at = height.at(*corner) + height.along(side) * t
        found.append((start[0] + along[0] * t, start[1] + along[1] * t, at, exists))
    for corner, side, start, along, t, exists in _clip_sides(*_inverse(x, y)):
        at = height.at(start[0] + along[0] * t, start[1] + along[1] * t)
        found.append((corner[0] + side[0] * t, corner[1] + side[1] * t, at, exists))
    return found


Pair: TypeAlias = tuple[Scalar, Scalar]


def _clip_sides(x: Affine, y: Affine) -> Iterator[tuple[Pair, Pair, Pair, Pair, Scalar, Scalar]]:
    """Yield the sides of a face as (corner, side, start, along, t, exists): points corner + t side, which are
    at start + t along of the square from -1 to 1, and enter it at t in [0, 2] if they do."""
    for corner, side in zip(CORNERS, SIDES, strict=True):
        start = x.at(*corner), y.at(*corner)
        along = x.along(side), y.along(side)
        low: Scalar = 0.0
        high: Scalar = 2.0
        for at, rate in zip(start, along, strict=True):
            begin, end = crossing(at, rate, 1.0 + ON_FACE_TOLERANCE)
            low, high = maximum(low, begin), minimum(high, end)
        exists = low <= high
        yield corner, side, start, along, select(exists, low, 0.0), exists


def _inverse(x: Affine, y: Affine) -> tuple[Affine, Affine]:
    """Return alpha and beta as functions of x and y; the faces oppose each other, so the area is not zero."""
    scale = 1.0 / (x.u * y.v - x.v * y.u)
    xx, xy, yx, yy = y.v * scale, -x.v * scale, -y.u * scale, x.u * scale
    return (
        Affine(-(xx * x.origin + xy * y.origin), xx, xy),
        Affine(-(yx * x.origin + yy * y.origin), yx, yy),
    )


RELATIVE_AXIS_PREFERENCE = 0.05
"""The fraction of its depth by which a preferred axis may be deeper than another and still be chosen."""
AXIS_PREFERENCE_PER_EDGE = 1e-4
"""The further depth by which a preferred axis may be deeper, in units of the shortest edge."""
MIN_SQUARED_SINE = 1e-8
"""The squared sine below which two edges have no cross product."""


class Axis(NamedTuple):
    """A unit vector in a's coordinates, from a to b, and the separation along it."""

    normal: Vec3
    separation: Scalar


class Edges(NamedTuple):
    """An axis that is the cross product of two edges: those along unit vectors of a's and of b's own axes."""

    normal: Vec3
    separation: Scalar
    of_a: Vec3
    of_b: Vec3


AnyAxis = TypeVar("AnyAxis", Axis, Edges)


def box_box(a: Box, X_a: Transform, b: Box, X_b: Transform) -> list[ContactPoint]:
    """Return eight points of face against face; where edges touch, the first is that of edge against edge."""
    h_a, h_b = half_lengths(a), half_lengths(b)
    R: Mat3 = X_a.R.transpose() @ X_b.R
    p = X_a.inverse_transform_point(X_b.p)
    least = AXIS_PREFERENCE_PER_EDGE * reduce(minimum, (*a.size, *b.size))
    face_a, face_b = _face_of_a(p, R, h_a, h_b), _face_of_b(p, R, h_a, h_b)
    edges = _best(_edges(p, R, h_a, h_b))
    swapped = _is_better(face_b.separation, face_a.separation, least)
    face = choose(swapped, face_b, face_a)
    by_edges = _is_better(edges.separation, face.separation, least)

    points = face_points(h_a, X_a, h_b, X_b, X_a.R @ face.normal, swapped)
    middle = _edge_point(edges, p, R, h_a, h_b)
    first = ContactPoint(
        choose(by_edges, X_a.transform_point(middle), points[0].position),
        choose(by_edges, X_a.R @ edges.normal, points[0].normal),
        select(by_edges, edges.separation, points[0].gap),
    )
    return [
        first,
        *(point._replace(gap=select(by_edges, ABSENT_POINT_GAP, point.gap)) for point in points[1:]),
    ]


def best_face(p: Vec3, R: Mat3, h_a: Vec3, h_b: Vec3) -> Axis:
    """Return the normal of a face of two boxes along which they are farthest apart: half edges h_a and h_b,
    the centre of b at p in the frame of a."""
    return _best([_face_of_a(p, R, h_a, h_b), _face_of_b(p, R, h_a, h_b)])


def _is_better(separation: Scalar, than: Scalar, least: Scalar) -> Scalar:
    """Return whether an axis beats a preferred one by more than the preference."""
    return separation > than + (absolute(than) * RELATIVE_AXIS_PREFERENCE + least)


def _face_of_a(p: Vec3, R: Mat3, h_a: Vec3, h_b: Vec3) -> Axis:
    """Return the best e_i: its separation is |p_i| - h_i - sum over k of |R_ik| h_k."""
    axes = [
        Axis(_towards(Vec3.unit(i), p[i]), absolute(p[i]) - (h_a[i] + _reach(R.row(i), h_b)))
        for i in range(3)
    ]
    return _best(axes)


def _face_of_b(p: Vec3, R: Mat3, h_a: Vec3, h_b: Vec3) -> Axis:
    axes = []
    for k in range(3):
        column = R.column(k)
        along = column.dot(p)
        axes.append(Axis(_towards(column, along), absolute(along) - (h_b[k] + _reach(column, h_a))))
    return _best(axes)


def _best(axes: Iterable[AnyAxis]) -> AnyAxis:
    """Return the axis with the greatest separation, of equals the first."""
    return reduce(lambda best, axis: choose(axis.separation > best.separation, axis, best), axes)


def _edges(p: Vec3, R: Mat3, h_a: Vec3, h_b: Vec3) -> Iterator[Edges]:
    """Yield all e_i x R e_k; parallel edges have the separation -`ABSENT_POINT_GAP`."""
    for k in range(3):
        column = R.column(k)
        for i in range(3):
            cross = Vec3.unit(i).cross(column)
            square = cross.dot(cross)
            none = square < MIN_SQUARED_SINE
            scale = 1.0 / sqrt(select(none, 1.0, square))
            along = cross.dot(p)
            reach = _reach(cross, h_a) + _reach(R.transposed_times(cross), h_b)
            separation = select(none, -ABSENT_POINT_GAP, (absolute(along) - reach) * scale)
            yield Edges(_towards(cross, along) * scale, separation, Vec3.unit(i), Vec3.unit(k))


def _towards(axis: Vec3, along: Scalar) -> Vec3:
    """Return the axis, turned to b."""
    sign: Scalar = select(along < 0.0, -1.0, 1.0)
    return Vec3(axis.x * sign, axis.y * sign, axis.z * sign)


def _reach(direction: Vec3, h: Vec3) -> Scalar:
    """Return how far a box reaches along a direction in its own axes."""
    return Vec3(*[absolute(c) for c in direction]).dot(h)


def _edge_point(edges: Edges, p: Vec3, R: Mat3, h_a: Vec3, h_b: Vec3) -> Vec3:
    """Return the point midway between the two edges that face each other, in a's coordinates."""
    n = edges.normal
    on_a, half_a = _outer_edge(edges.of_a, n, h_a)
    on_b, half_b = _outer_edge(edges.of_b, R.transposed_times(-n), h_b)
    start: Vec3 = p + R @ on_b
    u, v = edges.of_a, R @ edges.of_b
    s, t = nearest_on_segments(start - on_a, u, half_a, v, half_b)
    middle: Vec3 = (on_a + u * s + start + v * t) * 0.5
    return middle


def _outer_edge(along: Vec3, direction: Vec3, h: Vec3) -> tuple[Vec3, Scalar]:
    """Return the middle of the edge along a unit vector that lies farthest in a direction, and its half
    length."""
    middle = [
        select(c < 0.0, -limit, limit) * (1.0 - own)
        for own, c, limit in zip(along, direction, h, strict=True)
    ]
    return Vec3(*middle), along.dot(h)
