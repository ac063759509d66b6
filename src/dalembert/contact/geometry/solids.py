"""Convex solids by their support functions, in their own coordinates.

A solid is a core and a margin around it: all points within `margin` of the core. The core's `support` in
a direction d is one of its points that lie farthest along d.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
import numpy.typing as npt

from dalembert.contact.geometry.box_rounded import half_lengths
from dalembert.contact.geometry.directions import choose
from dalembert.model.shapes import Box, Capsule, ConvexMesh, Cylinder, Ellipsoid, Shape, Sphere
from dalembert.scalar import Scalar, absolute, logical_and, lookup, loop, maximum, select, sqrt
from dalembert.spatial import Vec3

__all__ = ["ConvexSolid", "convex_solid"]

Array = npt.NDArray[np.float64]

UNROLLED: Final = 16
"""So many vertices or faces of a mesh are searched without a loop."""
LEVEL: Final = 1e-6
"""A direction that leaves a cylinder's axis by less than this sine gets a point inside its end face."""
TILT: Final = 0.1
"""By how much directions lean that look for the corners of a face."""
TURN: Final = (math.cos(0.5), math.sin(0.5))
TINY: Final = 1e-30


@final
@dataclass(frozen=True, slots=True)
class ConvexSolid:
    """A core and a margin; `centre` is inside; `axes` are normals of pairs of opposite flat faces.

    `outside`, of solids with flat faces: how far a point is beyond the face from which it is farthest.
    """

    support: Callable[[Vec3], Vec3]
    margin: float
    centre: Vec3
    axes: tuple[Vec3, ...] = ()
    outside: Callable[[Vec3], Scalar] | None = None

    def core(self, d: Vec3, share: float) -> Vec3:
        """The support of the core drawn together about its centre to a share of its size."""
        point = self.support(d)
        return point if share == 1.0 else self.centre * (1.0 - share) + point * share

    def patch(self, unit: Vec3) -> list[Vec3]:
        """Four points of the surface around where it lies farthest along a unit vector: corners, well apart,
        of a flat face that looks that way.
        """
        one, two = _across(unit)
        return [self.support(unit + t * side) for t in (one, two) for side in (TILT, -TILT)]

    def reach(self, unit: Vec3) -> Scalar:
        """How far the solid reaches along a unit vector."""
        return self.support(unit).dot(unit) + self.margin


def _across(unit: Vec3) -> tuple[Vec3, Vec3]:
    """Two unit vectors at right angles to a unit vector and to each other."""
    x, y, z = (absolute(c) for c in unit)
    first, second = logical_and(x <= y, x <= z), y <= z
    far = choose(first, Vec3.unit(0), choose(second, Vec3.unit(1), Vec3.unit(2)))
    one = unit.cross(far)
    one = one * (1.0 / sqrt(one.dot(one)))
    two = unit.cross(one)
    # Neither is along an axis, where the corners of an upright box would be a tie.
    return one * TURN[0] + two * TURN[1], two * TURN[0] - one * TURN[1]


def convex_solid(shape: Shape) -> ConvexSolid:
    """The solid of a shape."""
    return _SOLIDS[type(shape)](shape)


def _sphere(shape: Sphere) -> ConvexSolid:
    return ConvexSolid(lambda d: Vec3.zero(), shape.radius, Vec3.zero())


def _capsule(shape: Capsule) -> ConvexSolid:
    half = 0.5 * shape.length
    return ConvexSolid(lambda d: Vec3(0.0, 0.0, select(d.z < 0.0, -half, half)), shape.radius, Vec3.zero())


def _box(shape: Box) -> ConvexSolid:
    h = half_lengths(shape)

    def support(d: Vec3) -> Vec3:
        return Vec3(*[select(c < 0.0, -limit, limit) for c, limit in zip(d, h, strict=True)])

    def outside(x: Vec3) -> Scalar:
        beyond = [absolute(c) - limit for c, limit in zip(x, h, strict=True)]
        return maximum(beyond[0], maximum(beyond[1], beyond[2]))

    return ConvexSolid(support, 0.0, Vec3.zero(), (Vec3.unit(0), Vec3.unit(1), Vec3.unit(2)), outside)


def _cylinder(shape: Cylinder) -> ConvexSolid:
    half = 0.5 * shape.length

    def support(d: Vec3) -> Vec3:
        across = sqrt(d.x * d.x + d.y * d.y)
        least = LEVEL * sqrt(d.dot(d)) + TINY
        scale = shape.radius / maximum(across, least)
        return Vec3(d.x * scale, d.y * scale, select(d.z < 0.0, -half, half))

    def outside(x: Vec3) -> Scalar:
        return maximum(sqrt(x.x * x.x + x.y * x.y) - shape.radius, absolute(x.z) - half)

    return ConvexSolid(support, 0.0, Vec3.zero(), (Vec3.unit(2),), outside)


def _ellipsoid(shape: Ellipsoid) -> ConvexSolid:
    a, b, c = shape.radii

    def support(d: Vec3) -> Vec3:
        x, y, z = a * d.x, b * d.y, c * d.z
        scale = 1.0 / sqrt(maximum(x * x + y * y + z * z, TINY))
        return Vec3(a * x * scale, b * y * scale, c * z * scale)

    return ConvexSolid(support, 0.0, Vec3.zero())


def _mesh(shape: ConvexMesh) -> ConvexSolid:
    """Vertices and faces are searched one after the other, by a loop over their numbers if they are many."""
    vertices = np.array(shape.vertices)
    normals, offsets = _planes(vertices, np.array(shape.faces))

    def support(d: Vec3) -> Vec3:
        return _farthest(vertices, np.zeros(len(vertices)), d)[0]

    def outside(x: Vec3) -> Scalar:
        return _farthest(normals, -offsets, x)[1]

    return ConvexSolid(support, 0.0, Vec3(*vertices.mean(axis=0).tolist()), outside=outside)


def _planes(vertices: Array, faces: Any) -> tuple[Array, Array]:
    """Outward unit normals (n, 3) and distances from the origin (n,) of the faces, each plane once."""
    a, b, c = (vertices[faces[:, i]] for i in range(3))
    normals = np.cross(b - a, c - a)
    normals = normals / np.linalg.norm(normals, axis=1, keepdims=True)
    planes = np.column_stack([normals, np.einsum("fi,fi->f", normals, a)])
    _, first = np.unique(np.round(planes, 9), axis=0, return_index=True)
    return planes[np.sort(first), :3], planes[np.sort(first), 3]


def _farthest(rows: Array, added: Array, d: Vec3) -> tuple[Vec3, Scalar]:
    """The row with the greatest row . d + added, and that."""
    if len(rows) <= UNROLLED:
        best, most = Vec3(*rows[0].tolist()), Vec3(*rows[0].tolist()).dot(d) + float(added[0])
        for row, extra in zip(rows[1:].tolist(), added[1:].tolist(), strict=True):
            along = Vec3(*row).dot(d) + extra
            more = along > most
            best, most = choose(more, Vec3(*row), best), select(more, along, most)
        return best, most
    x, y, z = (np.ascontiguousarray(column) for column in rows.T)

    def step(carry: tuple[Scalar, Vec3, Scalar]) -> tuple[Scalar, Vec3, Scalar]:
        number, best, most = carry
        row = Vec3(lookup(x, number), lookup(y, number), lookup(z, number))
        along = row.dot(d) + lookup(added, number)
        more = along > most
        return number + 1.0, choose(more, row, best), select(more, along, most)

    first = Vec3(*rows[0].tolist())
    _, best, most = loop(len(rows) - 1, step, (1.0, first, first.dot(d) + float(added[0])))
    return best, most


_SOLIDS: Final[dict[type[Shape], Callable[[Any], ConvexSolid]]] = {
    Sphere: _sphere,
    Capsule: _capsule,
    Box: _box,
    Cylinder: _cylinder,
    Ellipsoid: _ellipsoid,
    ConvexMesh: _mesh,
}
