"""Spheres and capsules against each other: points and segments with a radius.

The gap is the distance between the nearest points of the axes less both radii; where the axes meet,
the normal is that of a fixed direction across them.
"""

from __future__ import annotations

from dalembert.contact.candidates import ContactPoint
from dalembert.contact.geometry.directions import clamp, direction
from dalembert.model.shapes import Capsule, Sphere
from dalembert.scalar import Scalar, absolute, maximum, minimum
from dalembert.spatial import Transform, Vec3

__all__ = ["between_spheres", "capsule_capsule", "sphere_capsule", "sphere_sphere"]

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
