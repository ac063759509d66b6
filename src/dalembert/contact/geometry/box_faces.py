"""The intersection of two faces that face each other.

The contact area of two boxes is the intersection of a reference face with the face of the other box that
faces it most, as rectangles in the reference face's plane. Every corner of the intersection begins one of its
sides, and its sides are parts of the eight sides of the two faces: the beginnings of these, each clipped by
the other face, are the points. Coordinates x, y of the reference face and alpha, beta of the other one are
from -1 to 1 on either face; both run around in the same sense.
"""

from __future__ import annotations

from typing import NamedTuple

from dalembert.contact.candidates import ABSENT_POINT_GAP, ContactPoint
from dalembert.contact.geometry.box_rounded import crossing
from dalembert.contact.geometry.directions import choose
from dalembert.contact.geometry.low_points import face_arms
from dalembert.scalar import Scalar, maximum, minimum, select
from dalembert.spatial import Mat3, Transform, Vec3

__all__ = ["face_points"]

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
    reference = _face(*_box(swapped, h_b, X_b, h_a, X_a), -outward)
    incident = _face(*_box(swapped, h_a, X_a, h_b, X_b), outward)
    return [
        ContactPoint(
            reference.centre + reference.u * x + reference.v * y + outward * (0.5 * height),
            n,
            select(exists, height, ABSENT_POINT_GAP),
        )
        for x, y, height, exists in _clip_corners(reference, incident, outward)
    ]


def _box(
    condition: Scalar, h: Vec3, X: Transform, other_h: Vec3, other_X: Transform
) -> tuple[Vec3, Transform]:
    """Return the first box where the condition holds, else the other."""
    R = Mat3(*[select(condition, x, y) for x, y in zip(X.R, other_X.R, strict=True)])
    return choose(condition, h, other_h), Transform(R, choose(condition, X.p, other_X.p))


def _face(h: Vec3, X: Transform, n: Vec3) -> Face:
    """Return the face of a box whose outward normal is most opposed to n."""
    arms = [X.R.column(i) * h[i] for i in range(3)]
    u, v, w = face_arms(arms, X.R.transposed_times(n))
    return Face(X.p + w, u, v)


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
    found = []
    for corner, side in zip(CORNERS, SIDES, strict=True):
        start = x.at(*corner), y.at(*corner)
        along = x.along(side), y.along(side)
        t, exists = _beginning(start, along)
        at = height.at(*corner) + height.along(side) * t
        found.append((start[0] + along[0] * t, start[1] + along[1] * t, at, exists))
    alpha, beta = _inverse(x, y)
    for corner, side in zip(CORNERS, SIDES, strict=True):
        start = alpha.at(*corner), beta.at(*corner)
        along = alpha.along(side), beta.along(side)
        t, exists = _beginning(start, along)
        at = height.at(start[0] + along[0] * t, start[1] + along[1] * t)
        found.append((corner[0] + side[0] * t, corner[1] + side[1] * t, at, exists))
    return found


def _inverse(x: Affine, y: Affine) -> tuple[Affine, Affine]:
    """Return alpha and beta as functions of x and y; the faces oppose each other, so the area is not zero."""
    scale = 1.0 / (x.u * y.v - x.v * y.u)
    xx, xy, yx, yy = y.v * scale, -x.v * scale, -y.u * scale, x.u * scale
    return (
        Affine(-(xx * x.origin + xy * y.origin), xx, xy),
        Affine(-(yx * x.origin + yy * y.origin), yx, yy),
    )


def _beginning(start: tuple[Scalar, Scalar], along: tuple[Scalar, Scalar]) -> tuple[Scalar, Scalar]:
    """Return t in [0, 2] at which start + t along enters the square from -1 to 1, and whether it does."""
    low: Scalar = 0.0
    high: Scalar = 2.0
    for at, rate in zip(start, along, strict=True):
        begin, end = crossing(at, rate, 1.0 + ON_FACE_TOLERANCE)
        low, high = maximum(low, begin), minimum(high, end)
    exists = low <= high
    return select(exists, low, 0.0), exists
