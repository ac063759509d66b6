"""The lowest points of a solid, for contact with planes and height fields.

Each is the centre of a ball in world coordinates with its radius, zero for a corner; `up` is a unit vector.
Their number depends on the solid alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from dalembert.contact.geometry.directions import choose, direction
from dalembert.contact.geometry.solids import convex_solid
from dalembert.model.shapes import Box, Capsule, ConvexMesh, Cylinder, Ellipsoid, Shape, Sphere
from dalembert.scalar import absolute, logical_and, logical_or, select
from dalembert.spatial import Transform, Vec3

__all__ = ["GROUND_CONTACT_SHAPES", "Ball", "face_arms", "low_points"]

MIN_LEAN_SINE: Final = 1e-6
"""The sine of the tilt below which a fixed point of a cylinder's rim outweighs the lowest one."""
MAX_GROUND_VERTICES: Final = 8
"""The number of vertices up to which a mesh touches the ground with all of them."""


class Ball(NamedTuple):
    """A centre in world coordinates and a radius [m]."""

    centre: Vec3
    radius: float


def low_points(shape: Shape, X: Transform, up: Vec3) -> list[Ball]:
    """Return the lowest points of a shape in the frame X."""
    return _LOW[type(shape)](shape, X, up)


def _sphere(shape: Sphere, X: Transform, up: Vec3) -> list[Ball]:
    return [Ball(X.p, shape.radius)]


def _capsule(shape: Capsule, X: Transform, up: Vec3) -> list[Ball]:
    """Return the half spheres at both ends."""
    arm = X.R.column(2) * (0.5 * shape.length)
    return [Ball(X.p + arm, shape.radius), Ball(X.p - arm, shape.radius)]


def _box(shape: Box, X: Transform, up: Vec3) -> list[Ball]:
    """Return the four corners of the face that faces downward most.

    The other four are at least 2/sqrt(3) of the shortest half edge higher than one of these.
    """
    arms = [X.R.column(i) * (0.5 * shape.size[i]) for i in range(3)]
    u, v, w = face_arms(arms, X.R.transposed_times(up))
    centre = X.p + w
    return [Ball(x, 0.0) for side in (centre + u, centre - u) for x in (side + v, side - v)]


def _cylinder(shape: Cylinder, X: Transform, up: Vec3) -> list[Ball]:
    """Return the lowest points of both rims, for lying, and two more of the lower rim, for standing."""
    axis = X.R.column(2)
    along = axis.dot(up)
    down = axis * along - up + X.R.column(0) * MIN_LEAN_SINE
    out = direction(down - axis * axis.dot(down), X.R.column(0)).unit * shape.radius
    arm = axis * select(along > 0.0, -0.5 * shape.length, 0.5 * shape.length)
    side = axis.cross(out) * (0.5 * math.sqrt(3.0))
    lower = X.p + arm
    points = [lower + out, X.p - arm + out, lower - out * 0.5 + side, lower - out * 0.5 - side]
    return [Ball(x, 0.0) for x in points]


def _ellipsoid(shape: Ellipsoid, X: Transform, up: Vec3) -> list[Ball]:
    lowest = convex_solid(shape).support(X.R.transposed_times(-up))
    return [Ball(X.transform_point(lowest), 0.0)]


def _mesh(shape: ConvexMesh, X: Transform, up: Vec3) -> list[Ball]:
    """Return all vertices of a small mesh, else the lowest one and four that are low and apart."""
    if len(shape.vertices) <= MAX_GROUND_VERTICES:
        points = [Vec3(*vertex) for vertex in shape.vertices]
    else:
        solid, down = convex_solid(shape), X.R.transposed_times(-up)
        points = [solid.support(down), *solid.patch(down)]
    return [Ball(X.transform_point(x), 0.0) for x in points]


def face_arms(arms: list[Vec3], n: Vec3) -> tuple[Vec3, Vec3, Vec3]:
    """Return half edges (u, v) of the face of a box that is most opposed to n (given in box axes), and w from
    the box's centre to the face's.
    """
    x, y, z = (absolute(c) for c in n)
    first, second = logical_and(x > y, x > z), y > z
    w = choose(first, arms[0], choose(second, arms[1], arms[2]))
    along = select(first, n.x, select(second, n.y, n.z))
    u = choose(first, arms[1], arms[0])
    v = choose(logical_or(first, second), arms[2], arms[1])
    return u, v, choose(along > 0.0, -w, w)


_LOW: Final[dict[type[Shape], Callable[[Any, Transform, Vec3], list[Ball]]]] = {
    Sphere: _sphere,
    Capsule: _capsule,
    Box: _box,
    Cylinder: _cylinder,
    Ellipsoid: _ellipsoid,
    ConvexMesh: _mesh,
}

GROUND_CONTACT_SHAPES: Final = tuple(_LOW)
"""The kinds of shapes that can touch planes and height fields."""
