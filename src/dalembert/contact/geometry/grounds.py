"""Planes and height fields under solids: the lowest points of a solid against the surface.

A ball of radius r and centre x has the gap n . (x - p) - r from the plane through p with normal n. A height
field is the plane of the triangle under the ball, or of the one at the foot of the perpendicular on that;
the ground is solid below the surface, and empty beyond the grid.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dalembert.contact.candidates import ABSENT_POINT_GAP, ContactPoint
from dalembert.contact.geometry.directions import choose
from dalembert.contact.geometry.low_points import Ball, low_points
from dalembert.model.shapes import HeightField, Plane, Shape
from dalembert.scalar import (
    Scalar,
    absolute,
    floor,
    logical_and,
    logical_not,
    logical_or,
    lookup,
    maximum,
    minimum,
    select,
    sqrt,
)
from dalembert.spatial import Transform, Vec3

__all__ = ["height_field_solid", "plane_solid"]


def plane_solid(a: Plane, X_a: Transform, b: Shape, X_b: Transform) -> list[ContactPoint]:
    n = X_a.R.column(2)
    return [_against(ball, n, n.dot(ball.centre - X_a.p)) for ball in low_points(b, X_b, n)]


def height_field_solid(a: HeightField, X_a: Transform, b: Shape, X_b: Transform) -> list[ContactPoint]:
    """Return a point for each lowest point; peaks and ridges between these are not detected."""
    terrain = Terrain.of(a)
    middle = X_a.inverse_transform_point(X_b.p)
    up = X_a.R @ terrain.plane_under(middle, middle)[0]
    found = []
    for ball in low_points(b, X_b, up):
        c = X_a.inverse_transform_point(ball.centre)
        n, distance = terrain.plane_near(c) if ball.radius else terrain.plane_under(c, c)
        point = _against(ball, X_a.R @ n, distance)
        found.append(point._replace(gap=select(terrain.has(c), point.gap, ABSENT_POINT_GAP)))
    return found


def _against(ball: Ball, n: Vec3, height: Scalar) -> ContactPoint:
    gap = height - ball.radius
    return ContactPoint(ball.centre - n * (ball.radius + 0.5 * gap), n, gap)


class Terrain(NamedTuple):
    """A height field as a table, in the units of its own frame."""

    heights: np.ndarray[tuple[int], np.dtype[np.float64]]
    rows: int
    columns: int
    size: tuple[float, float]

    @staticmethod
    def of(field: HeightField) -> Terrain:
        heights = np.array(field.heights)
        rows, columns = heights.shape
        return Terrain(heights.ravel(), rows, columns, field.size)

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
        corner = i * self.columns + k
        under = u - k >= v - i
        low, high = lookup(self.heights, corner), lookup(self.heights, corner + (self.columns + 1.0))
        side = lookup(self.heights, corner + select(under, 1.0, float(self.columns)))
        along_u, along_v = select(under, side - low, high - side), select(under, high - side, side - low)
        slope_x = along_u * ((self.columns - 1) / self.size[0])
        slope_y = along_v * ((self.rows - 1) / self.size[1])
        scale = 1.0 / sqrt(1.0 + slope_x * slope_x + slope_y * slope_y)
        here_u, _ = self._cell(x.x, self.size[0], self.columns)
        here_v, _ = self._cell(x.y, self.size[1], self.rows)
        height = low + (here_u - k) * along_u + (here_v - i) * along_v
        return Vec3(-(slope_x * scale), -(slope_y * scale), scale), (x.z - height) * scale

    def _cell(self, x: Scalar, size: float, count: int) -> tuple[Scalar, Scalar]:
        """Return the coordinate in units of cells, and the index of its cell."""
        u = x * ((count - 1) / size) + 0.5 * (count - 1)
        return u, floor(maximum(minimum(u, count - 2.0), 0.0))
