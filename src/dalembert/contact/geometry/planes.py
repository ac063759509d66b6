"""Half spaces against solids: the points of a solid that are deepest, against the plane.

With n the plane's normal and p a point of it, a point x of the solid has the gap n . (x - p).
"""

from __future__ import annotations

from dalembert.contact.candidates import ContactPoint
from dalembert.contact.geometry.directions import choose
from dalembert.model.shapes import Box, Capsule, Plane, Sphere
from dalembert.scalar import absolute, logical_and, logical_or, select
from dalembert.spatial import Transform, Vec3

__all__ = ["plane_box", "plane_capsule", "plane_sphere"]


def against_plane(X: Transform, x: Vec3, radius: float = 0.0) -> ContactPoint:
    """The sphere (or point) with centre x against the plane placed by X."""
    n = X.R.column(2)
    gap = n.dot(x - X.p) - radius
    return ContactPoint(x - n * (radius + 0.5 * gap), n, gap)


def plane_sphere(a: Plane, X_a: Transform, b: Sphere, X_b: Transform) -> list[ContactPoint]:
    return [against_plane(X_a, X_b.p, b.radius)]


def plane_capsule(a: Plane, X_a: Transform, b: Capsule, X_b: Transform) -> list[ContactPoint]:
    """The half spheres at both ends."""
    arm = X_b.R.column(2) * (0.5 * b.length)
    return [against_plane(X_a, X_b.p + arm, b.radius), against_plane(X_a, X_b.p - arm, b.radius)]


def plane_box(a: Plane, X_a: Transform, b: Box, X_b: Transform) -> list[ContactPoint]:
    """The four corners of the face that looks most against the normal.

    The other four are at least 2/sqrt(3) of the shortest half edge higher than one of these.
    """
    n = X_a.R.column(2)
    arms = [X_b.R.column(i) * (0.5 * b.size[i]) for i in range(3)]
    u, v, w = face_arms(arms, X_b.R.transposed_times(n))
    centre = X_b.p + w
    sides = (centre + u, centre - u)
    return [against_plane(X_a, x) for side in sides for x in (side + v, side - v)]


def face_arms(arms: list[Vec3], n: Vec3) -> tuple[Vec3, Vec3, Vec3]:
    """Half edges (u, v) of the face of a box that looks most against n (given in box axes), and w from the
    box's centre to the face's.
    """
    x, y, z = (absolute(c) for c in n)
    first, second = logical_and(x > y, x > z), y > z
    w = choose(first, arms[0], choose(second, arms[1], arms[2]))
    along = select(first, n.x, select(second, n.y, n.z))
    u = choose(first, arms[1], arms[0])
    v = choose(logical_or(first, second), arms[2], arms[1])
    return u, v, choose(along > 0.0, -w, w)
