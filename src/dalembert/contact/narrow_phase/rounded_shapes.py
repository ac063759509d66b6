"""Spheres and capsules against each other: points and segments with a radius.

The gap is the distance between the nearest points of the axes less both radii; where the axes meet,
the normal is that of a fixed direction across them.
"""

from __future__ import annotations

from dalembert.contact.narrow_phase.candidates import (
    ABSENT_POINT_GAP,
    ContactPoint,
    Direction,
    choose,
    clamp,
    direction,
)
from dalembert.contact.narrow_phase.forms import BoxForm
from dalembert.model.shapes import Box, Capsule, Sphere
from dalembert.scalar import Scalar, absolute, logical_and, maximum, minimum, select
from dalembert.spatial import Transform, Vec3

PARALLEL_WEIGHT = 1e-9
"""The weight of the middle of the overlap of two segments, against the squared sine between them."""


def between_spheres(a: Vec3, radius_a: float, b: Vec3, radius_b: float, otherwise: Vec3) -> ContactPoint:
    """Return the point between spheres with centres a and b; `otherwise`: the normal if these coincide."""
    normal, distance = direction(b - a, otherwise)
    gap = distance - (radius_a + radius_b)
    return ContactPoint(a + normal * (radius_a + 0.5 * gap), normal, gap)


def sphere_sphere(a: Sphere, X_a: Transform, b: Sphere, X_b: Transform) -> list[ContactPoint]:
    return [between_spheres(X_a.p, a.radius, X_b.p, b.radius, Vec3.unit(2))]


def sphere_capsule(a: Sphere, X_a: Transform, b: Capsule, X_b: Transform) -> list[ContactPoint]:
    """Return the contact with the ball at the point of the capsule's axis nearest to the sphere's centre."""
    axis = X_b.R.column(2)
    along = clamp(axis.dot(X_a.p - X_b.p), 0.5 * b.length)
    return [between_spheres(X_a.p, a.radius, X_b.p + axis * along, b.radius, X_b.R.column(0))]


def capsule_capsule(a: Capsule, X_a: Transform, b: Capsule, X_b: Transform) -> list[ContactPoint]:
    """Return the contact of the balls at the nearest points of the axes (`nearest_on_segments`)."""
    u, v = X_a.R.column(2), X_b.R.column(2)
    s, t = nearest_on_segments(X_b.p - X_a.p, u, 0.5 * a.length, v, 0.5 * b.length)
    return [between_spheres(X_a.p + u * s, a.radius, X_b.p + v * t, b.radius, X_a.R.column(0))]


def nearest_on_segments(
    offset: Vec3, u: Vec3, half_a: Scalar, v: Vec3, half_b: Scalar
) -> tuple[Scalar, Scalar]:
    """Return s and t of the nearest points s u and offset + t v; |s| <= half_a, |t| <= half_b; u, v unit
    vectors.

    On endless lines s = (offset . u - c offset . v) / (1 - c^2), c = u . v (Ericson 2005 section 5.1.9).
    Parallel segments pass each other in an interval, of which the middle is taken; its weight next to
    1 - c^2 makes s continuous and moves the distance by less than a rounding of its square.
    """
    c = u.dot(v)
    along_u, along_v = offset.dot(u), offset.dot(v)
    reach = absolute(c) * half_b
    middle = 0.5 * (maximum(along_u - reach, -half_a) + minimum(along_u + reach, half_a))
    square_sine = maximum(1.0 - c * c, 0.0)
    s = clamp((along_u - c * along_v + PARALLEL_WEIGHT * middle) / (square_sine + PARALLEL_WEIGHT), half_a)
    t = clamp(c * s - along_v, half_b)
    return clamp(c * t + along_u, half_a), t


# Spheres and capsules against boxes, in the box's coordinates.
#
# A point c has the distance |c - clamp(c)| from a box; inside, minus the least depth under a face.

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
