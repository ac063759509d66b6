"""Spheres and capsules against boxes, in the box's coordinates.

A point c has the distance |c - clamp(c)| from a box; inside, minus the least depth under a face.
"""

from __future__ import annotations

from dalembert.contact.candidates import ABSENT_POINT_GAP, ContactPoint
from dalembert.contact.geometry.directions import Direction, choose, clamp, direction
from dalembert.contact.geometry.sizes import BoxForm
from dalembert.model.shapes import Box, Capsule, Sphere
from dalembert.scalar import Scalar, absolute, logical_and, maximum, minimum, select
from dalembert.spatial import Transform, Vec3

__all__ = ["away_from_zero", "crossing", "capsule_box", "half_lengths", "sphere_box"]

MIN_RATE = 1e-30
"""The least rate of change along an axis: smaller ones count as this, so that division is finite."""


def half_lengths(box: Box | BoxForm) -> Vec3:
    return Vec3(*[0.5 * length for length in box.size])


def sphere_box(a: Sphere, X_a: Transform, b: Box, X_b: Transform) -> list[ContactPoint]:
    """Return the contact point; a centre inside the box is pushed to the nearest face."""
    return [ball_against_box(X_a.p, X_b.inverse_transform_point(X_a.p), a.radius, b, X_b)]


def capsule_box(a: Capsule, X_a: Transform, b: Box, X_b: Transform) -> list[ContactPoint]:
    """Return the points of two balls on the capsule's axis, in their order along it: the ball nearest to the
    box and, so that the capsule can lie on a face, the ball at the far end of the axis's part over that face.

    The distance is exact as long as the axis stays out of the box.
    """
    half, h = 0.5 * a.length, half_lengths(b)
    u = X_b.R.transposed_times(X_a.R.column(2))
    p = X_b.inverse_transform_point(X_a.p)
    nearest = nearest_on_axis(p, u, half, h)
    normal = _outward(p + u * nearest, h).unit
    low, high = _part_over_face(p, u, half, h, normal)
    over = low < high
    far = select(nearest - low > high - nearest, low, high)
    far = select(over, far, nearest)

    def ball(t: Scalar) -> ContactPoint:
        return ball_against_box(X_a.p + X_a.R.column(2) * t, p + u * t, a.radius, b, X_b)

    first, second = ball(minimum(nearest, far)), ball(maximum(nearest, far))
    return [first, second._replace(gap=select(over, second.gap, ABSENT_POINT_GAP))]


def ball_against_box(centre: Vec3, c: Vec3, radius: float, box: Box | BoxForm, X: Transform) -> ContactPoint:
    """Return the contact point of a ball; `centre` is in world coordinates, c in those of the box."""
    outward, distance = _outward(c, half_lengths(box))
    normal = X.R @ -outward
    gap = distance - radius
    return ContactPoint(centre + normal * (radius + 0.5 * gap), normal, gap)


def _outward(c: Vec3, h: Vec3) -> Direction:
    """Return the unit vector from the box's surface to a point c, and the distance, negative inside."""
    x, y, z = (limit - absolute(at) for at, limit in zip(c, h, strict=True))
    first, second = logical_and(x < y, x < z), y < z
    sides = [Vec3.unit(i) * select(c[i] < 0.0, -1.0, 1.0) for i in range(3)]
    face = choose(first, sides[0], choose(second, sides[1], sides[2]))
    depth = minimum(x, minimum(y, z))
    outside = Vec3(*[at - clamp(at, limit) for at, limit in zip(c, h, strict=True)])
    unit, length = direction(outside, face)
    return Direction(unit, length - maximum(depth, 0.0))


def nearest_on_axis(p: Vec3, u: Vec3, half: float, h: Vec3) -> Scalar:
    """Return t in [-half, half] at which p + t u is nearest to the box of half lengths h.

    Half the rate of the squared distance, g(t) = sum of u_i (x_i - clamp(x_i)), x = p + t u, never falls,
    and is linear between the places where the line crosses the planes of faces: its root lies
    between the last of them with g < 0 and the first with g >= 0.
    """

    def g(t: Scalar) -> Scalar:
        x = p + u * t
        return u.dot(Vec3(*[at - clamp(at, limit) for at, limit in zip(x, h, strict=True)]))

    low, high = -half, half
    g_low, g_high = g(low), g(high)
    begins, ends = g_low >= 0.0, g_high < 0.0
    for i in range(3):
        inverse = 1.0 / away_from_zero(u[i])
        for side in (h[i], -h[i]):
            t = clamp((side - p[i]) * inverse, half)
            value = g(t)
            later = logical_and(value < 0.0, t > low)
            low, g_low = select(later, t, low), select(later, value, g_low)
            earlier = logical_and(value >= 0.0, t < high)
            high, g_high = select(earlier, t, high), select(earlier, value, g_high)
    span = select(g_high > g_low, g_high - g_low, 1.0)
    inner = low - (high - low) * (g_low / span)
    return select(begins, -half, select(ends, half, inner))


def _part_over_face(p: Vec3, u: Vec3, half: float, h: Vec3, normal: Vec3) -> tuple[Scalar, Scalar]:
    """Return the part [low, high] of the axis that is above the face whose normal is nearest to the given
    one."""
    x, y, z = (absolute(c) for c in normal)
    skips = [logical_and(x > y, x > z), logical_and(y >= x, y > z), logical_and(z >= x, z >= y)]
    low: Scalar = -half
    high: Scalar = half
    for i, skip in enumerate(skips):
        begin, end = crossing(p[i], u[i], h[i])
        low = select(skip, low, maximum(low, begin))
        high = select(skip, high, minimum(high, end))
    return low, high


def crossing(p: Scalar, u: Scalar, h: Scalar) -> tuple[Scalar, Scalar]:
    """Return t where p + t u enters and leaves [-h, h] (Liang, Barsky 1984); begin > end if it never does."""
    inverse = 1.0 / away_from_zero(u)
    one, other = (-h - p) * inverse, (h - p) * inverse
    return minimum(one, other), maximum(one, other)


def away_from_zero(u: Scalar) -> Scalar:
    return select(absolute(u) < MIN_RATE, MIN_RATE, u)
