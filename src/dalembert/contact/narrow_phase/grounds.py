"""Planes and height fields under solids: the lowest points of a solid against the surface.

A ball of radius r and centre x has the gap n . (x - p) - r from the plane through p with normal n. A height
field is the plane of the triangle under the ball, or of the one at the foot of the perpendicular on that;
the ground is solid below the surface, and empty beyond the grid.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce
from typing import Any, Final, NamedTuple

import numpy as np

from dalembert.contact.narrow_phase.candidates import ABSENT_POINT_GAP, ContactPoint, choose, direction
from dalembert.contact.narrow_phase.forms import (
    BoxForm,
    CornersForm,
    CylinderForm,
    EllipsoidForm,
    Form,
    MeshForm,
    RoundedForm,
    SphereForm,
)
from dalembert.contact.narrow_phase.support import ConvexSolid, convex_solid, is_same_place
from dalembert.model.shapes import (
    Box,
    Capsule,
    ConvexMesh,
    Cylinder,
    Ellipsoid,
    HeightField,
    Plane,
    Shape,
    Sphere,
)
from dalembert.scalar import (
    Scalar,
    absolute,
    floor,
    is_zero,
    logical_and,
    logical_not,
    logical_or,
    lookup,
    loop,
    maximum,
    minimum,
    select,
    sqrt,
)
from dalembert.spatial import Transform, Vec3

# The lowest points of a solid, for contact with planes and height fields.
#
# Each is the centre of a ball in world coordinates with its radius, zero for a corner; `up` is a unit vector.
# Their number depends on the solid alone.

MIN_LEAN_SINE: Final = 1e-6
"""The sine of the tilt below which a fixed point of a cylinder's rim outweighs the lowest one."""
MAX_GROUND_VERTICES: Final = 8
"""The number of vertices up to which a mesh touches the ground with all of them."""


class Ball(NamedTuple):
    """A centre in world coordinates and a radius [m]; `repeated` where another one of the shape's low points
    is the same."""

    centre: Vec3
    radius: Scalar
    repeated: Scalar = False


def low_points(shape: Shape | Form, X: Transform, up: Vec3, highest: Scalar = None) -> list[Ball]:
    """Return the lowest points of a shape in the frame X; of a mesh all of whose points are higher along `up`
    than `highest` only the lowest one exists."""
    if isinstance(shape, MeshForm):
        return _large_mesh(shape, X, up, highest)
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
    """Return all vertices of a small mesh, else those of `_large_mesh`."""
    if len(shape.vertices) > MAX_GROUND_VERTICES:
        return _large_mesh(shape, X, up)
    return _corners(CornersForm(tuple(Vec3(*vertex) for vertex in shape.vertices)), X, up)


def _corners(shape: CornersForm, X: Transform, up: Vec3) -> list[Ball]:
    return [Ball(X.transform_point(x), 0.0) for x in shape.vertices]


def _large_mesh(shape: ConvexMesh | MeshForm, X: Transform, up: Vec3, highest: Scalar = None) -> list[Ball]:
    """Return the lowest vertex and four that are low and apart, of which fewer exist where no face is nearly
    level."""
    solid, down = convex_solid(shape), X.R.transposed_times(-up)
    lowest = solid.support(down)
    patch = solid.patch(down) if highest is None else _patch_below(solid, down, lowest, highest - up.dot(X.p))
    found: list[Vec3] = []
    balls = []
    for x in (lowest, *patch):
        repeated = reduce(logical_or, [is_same_place(x, y) for y in found], False)
        balls.append(Ball(X.transform_point(x), 0.0, repeated))
        found.append(x)
    return balls


def _patch_below(solid: ConvexSolid, down: Vec3, lowest: Vec3, highest: Scalar) -> list[Vec3]:
    """Return the patch around the lowest point, or four times this point where it is higher than `highest`
    above the origin of the solid."""
    return loop(1, lambda _: solid.patch(down), [lowest] * 4, until=lambda _: -down.dot(lowest) > highest)


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


_LOW: Final[dict[type[Shape | Form], Callable[[Any, Transform, Vec3], list[Ball]]]] = {
    Sphere: _sphere,
    Capsule: _capsule,
    Box: _box,
    Cylinder: _cylinder,
    Ellipsoid: _ellipsoid,
    ConvexMesh: _mesh,
    SphereForm: _sphere,
    RoundedForm: _capsule,
    BoxForm: _box,
    CylinderForm: _cylinder,
    EllipsoidForm: _ellipsoid,
    CornersForm: _corners,
}

GROUND_CONTACT_SHAPES: Final = (Sphere, Capsule, Box, Cylinder, Ellipsoid, ConvexMesh)
"""The kinds of shapes that can touch planes and height fields."""


def plane_solid(a: Plane, X_a: Transform, b: Shape, X_b: Transform) -> list[ContactPoint]:
    return points_above_plane(X_a.R.column(2), X_a.p, b, X_b)


def points_above_plane(
    n: Vec3, p: Vec3, b: Shape | Form, X_b: Transform, reach: Scalar = None
) -> list[ContactPoint]:
    """Return a point for each lowest point of a solid above the plane through p with unit normal n; points
    that are higher than `reach` [m] need not exist."""
    highest = None if reach is None else n.dot(p) + reach
    return [_against(ball, n, n.dot(ball.centre - p)) for ball in low_points(b, X_b, n, highest)]


def height_field_solid(a: HeightField, X_a: Transform, b: Shape, X_b: Transform) -> list[ContactPoint]:
    return points_above_terrain(Terrain.of(a), X_a, b, X_b)


def points_above_terrain(
    terrain: Terrain, X_a: Transform, b: Shape | Form, X_b: Transform
) -> list[ContactPoint]:
    """Return a point for each lowest point; peaks and ridges between these are not detected."""
    middle = X_a.inverse_transform_point(X_b.p)
    up = X_a.R @ terrain.plane_under(middle, middle)[0]
    found = []
    for ball in low_points(b, X_b, up):
        c = X_a.inverse_transform_point(ball.centre)
        n, distance = terrain.plane_under(c, c) if is_zero(ball.radius) else terrain.plane_near(c)
        point = _against(ball, X_a.R @ n, distance)
        found.append(point._replace(gap=select(terrain.has(c), point.gap, ABSENT_POINT_GAP)))
    return found


def _against(ball: Ball, n: Vec3, height: Scalar) -> ContactPoint:
    gap = height - ball.radius
    position = ball.centre - n * (ball.radius + 0.5 * gap)
    return ContactPoint(position, n, select(ball.repeated, ABSENT_POINT_GAP, gap))


class Terrain(NamedTuple):
    """A height field as a table, in the units of its own frame; its heights begin at `start` in the
    table."""

    heights: np.ndarray[tuple[int], np.dtype[np.float64]]
    rows: Scalar
    columns: Scalar
    size: tuple[Scalar, Scalar]
    start: Scalar = 0.0

    @staticmethod
    def of(field: HeightField) -> Terrain:
        heights = np.array(field.heights)
        rows, columns = heights.shape
        return Terrain(heights.ravel(), float(rows), float(columns), field.size)

    def has(self, x: Vec3) -> Scalar:
        """Return whether x is above or below the grid."""
        return logical_and(absolute(x.x) <= 0.5 * self.size[0], absolute(x.y) <= 0.5 * self.size[1])

    def plane_near(self, x: Vec3) -> tuple[Vec3, Scalar]:
        """Return the plane under x or, if the foot of the perpendicular is on another triangle, the plane
        that is in contact: in a hollow the nearer one, on a ridge the farther one.
        """
        n, distance = self.plane_under(x, x)
        foot = x - n * distance
        other_n, other = self.plane_under(x, foot)
        hollow = self.plane_under(foot, foot)[1] < 0.0
        takes = logical_or(
            logical_and(hollow, other < distance), logical_and(logical_not(hollow), other > distance)
        )
        return choose(takes, other_n, n), select(takes, other, distance)

    def plane_under(self, x: Vec3, at: Vec3) -> tuple[Vec3, Scalar]:
        """Return the unit normal of the triangle above or below `at`, and the distance of x from its plane.

        A cell is split by the diagonal from its corner (i, k) to (i + 1, k + 1), as `HeightField.height_at`
        says.
        """
        u, k = self._cell(at.x, self.size[0], self.columns)
        v, i = self._cell(at.y, self.size[1], self.rows)
        corner = self.start + i * self.columns + k
        under = u - k >= v - i
        low, high = lookup(self.heights, corner), lookup(self.heights, corner + (self.columns + 1.0))
        side = lookup(self.heights, corner + select(under, 1.0, self.columns))
        along_u, along_v = select(under, side - low, high - side), select(under, high - side, side - low)
        slope_x = along_u * ((self.columns - 1) / self.size[0])
        slope_y = along_v * ((self.rows - 1) / self.size[1])
        scale = 1.0 / sqrt(1.0 + slope_x * slope_x + slope_y * slope_y)
        here_u, _ = self._cell(x.x, self.size[0], self.columns)
        here_v, _ = self._cell(x.y, self.size[1], self.rows)
        height = low + (here_u - k) * along_u + (here_v - i) * along_v
        return Vec3(-(slope_x * scale), -(slope_y * scale), scale), (x.z - height) * scale

    def _cell(self, x: Scalar, size: Scalar, count: Scalar) -> tuple[Scalar, Scalar]:
        """Return the coordinate in units of cells, and the index of its cell."""
        u = x * ((count - 1) / size) + 0.5 * (count - 1)
        return u, floor(maximum(minimum(u, count - 2.0), 0.0))
