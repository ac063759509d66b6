"""The point of a segment, a triangle and a tetrahedron's sides that is nearest to the origin."""

from __future__ import annotations

from typing import NamedTuple

from dalembert.contact.geometry.directions import choose
from dalembert.scalar import Scalar, logical_and, maximum, minimum, select
from dalembert.spatial import Vec3

__all__ = ["Nearest", "holds_origin", "nearest_on_triangle"]

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
    sides = [_on_segment(p, q), _on_segment(q, r), _on_segment(r, p)]
    spread = [
        Nearest(found.point, found.square, Vec3(*weights))
        for found, weights in zip(
            sides,
            (
                (sides[0].weights.x, sides[0].weights.y, 0.0),
                (0.0, sides[1].weights.x, sides[1].weights.y),
                (sides[2].weights.y, 0.0, sides[2].weights.x),
            ),
            strict=True,
        )
    ]
    best = spread[0]
    for other in spread[1:]:
        best = nearer(other, best)
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


def nearer(a: Nearest, b: Nearest) -> Nearest:
    closer = a.square < b.square
    return Nearest(
        choose(closer, a.point, b.point),
        select(closer, a.square, b.square),
        choose(closer, a.weights, b.weights),
    )


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


def _on_segment(p: Vec3, q: Vec3) -> Nearest:
    d = q - p
    t = maximum(minimum(-p.dot(d) / maximum(d.dot(d), MIN_SQUARED_LENGTH), 1.0), 0.0)
    point = p + d * t
    return Nearest(point, point.dot(point), Vec3(1.0 - t, t, 0.0))
