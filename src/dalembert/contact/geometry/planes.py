"""Half spaces against solids: the points of a solid that are deepest, against the plane.

With n the plane's normal and p a point of it, a point x of the solid has the gap n . (x - p).
"""

from __future__ import annotations

import math

from dalembert.contact.candidates import ContactPoint
from dalembert.contact.geometry.directions import choose, direction
from dalembert.contact.geometry.solids import convex_solid
from dalembert.model.shapes import Box, Capsule, ConvexMesh, Cylinder, Ellipsoid, Plane, Sphere
from dalembert.scalar import absolute, logical_and, logical_or, select
from dalembert.spatial import Transform, Vec3

__all__ = [
    "face_arms",
    "plane_box",
    "plane_capsule",
    "plane_cylinder",
    "plane_ellipsoid",
    "plane_mesh",
    "plane_sphere",
]

UPRIGHT = 1e-6
"""The sine of the lean below which a fixed point of a cylinder's rim counts more than the lowest one."""
FEW = 8
"""A mesh of so many vertices touches a plane with all of them."""


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


def plane_cylinder(a: Plane, X_a: Transform, b: Cylinder, X_b: Transform) -> list[ContactPoint]:
    """The lowest points of both rims, on which it lies, and two more of the lower rim, on which it stands."""
    n, axis = X_a.R.column(2), X_b.R.column(2)
    along = axis.dot(n)
    down = axis * along - n + X_b.R.column(0) * UPRIGHT
    down = down - axis * axis.dot(down)
    out = direction(down, X_b.R.column(0)).unit * b.radius
    arm = axis * select(along > 0.0, -0.5 * b.length, 0.5 * b.length)
    side = axis.cross(out) * (0.5 * math.sqrt(3.0))
    lower = X_b.p + arm
    points = [lower + out, X_b.p - arm + out, lower - out * 0.5 + side, lower - out * 0.5 - side]
    return [against_plane(X_a, x) for x in points]


def plane_ellipsoid(a: Plane, X_a: Transform, b: Ellipsoid, X_b: Transform) -> list[ContactPoint]:
    lowest = convex_solid(b).support(X_b.R.transposed_times(-X_a.R.column(2)))
    return [against_plane(X_a, X_b.transform_point(lowest))]


def plane_mesh(a: Plane, X_a: Transform, b: ConvexMesh, X_b: Transform) -> list[ContactPoint]:
    """All vertices if they are few; else the lowest one and four that are low and apart."""
    if len(b.vertices) <= FEW:
        points = [Vec3(*vertex) for vertex in b.vertices]
    else:
        solid, down = convex_solid(b), X_b.R.transposed_times(-X_a.R.column(2))
        points = [solid.support(down), *solid.patch(down)]
    return [against_plane(X_a, X_b.transform_point(x)) for x in points]


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
