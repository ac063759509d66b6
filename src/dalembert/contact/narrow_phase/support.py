"""Convex solids by their support functions, in their own coordinates.

A solid is a core and a margin around it: all points within `margin` of the core. The core's `support` in
a direction d is one of its points that lie farthest along d.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, TypeVar, final

import numpy as np
import numpy.typing as npt

from dalembert.contact.narrow_phase.candidates import choose
from dalembert.contact.narrow_phase.forms import (
    BoxForm,
    CylinderForm,
    EllipsoidForm,
    Form,
    MeshForm,
    RoundedForm,
)
from dalembert.contact.narrow_phase.rounded_shapes import away_from_zero, crossing, half_lengths
from dalembert.model.shapes import Box, Capsule, ConvexMesh, Cylinder, Ellipsoid, Shape, Sphere
from dalembert.scalar import (
    Scalar,
    absolute,
    logical_and,
    lookup,
    loop,
    maximum,
    minimum,
    select,
    sqrt,
)
from dalembert.spatial import Vec3

Array = npt.NDArray[np.float64]
Carry = TypeVar("Carry")
Part: TypeAlias = tuple[Scalar, Scalar]
Clip: TypeAlias = Callable[[list[Vec3], Vec3], list[Part]]

MAX_UNROLLED_ROWS: Final = 16
"""The number of vertices or faces of a mesh up to which they are searched without a loop."""
MIN_RADIAL_SINE: Final = 1e-6
"""The sine to a cylinder's axis below which a direction's support lies inside the end face."""
ON_FACE_MARGIN: Final = 1e-5
"""The distance [m] by which a point may be outside a solid and still lie on its face."""
PATCH_TILT: Final = 0.02
"""The tangent of the tilt of the directions that search for the corners of a face: 2 mm at 0.1 m. With 0.1
the foot of Talos, an uneven mesh, stood on one corner at a time of the three that bear it."""
PATCH_ROTATION: Final = (math.cos(0.5), math.sin(0.5))
"""Cosine and sine of the angle by which tilted directions are turned away from coordinate axes."""
MIN_PATCH_SIZE: Final = 1e-4
"""[m] Points of a surface that are nearer to each other are one point for contact: far less than the size of
any part that bears a load, and far more than rounding errors."""
WHOLE_SIDE: Final = (0.0, 1.0)
"""The part of a side of a polygon that no plane cuts."""
MIN_SQUARE: Final = 1e-30
"""The least square of a length: smaller ones count as this, so that division is finite."""


@final
@dataclass(frozen=True, slots=True)
class ConvexSolid:
    """A core and a margin; `centre` and `half` edges [m] of a box around the core; `axes` are normals of
    pairs of opposite flat faces.

    `clip(corners, unit)`, of solids with flat faces, for a polygon that lies on the farthest point along a
    unit vector, in a plane at right angles to it: for each side p + t d, from one corner to the next, the
    part (begin, end) of its line that is inside or on the faces, begin > end if no part is.
    `corners`: the solid's own function for `patch`.
    """

    support: Callable[[Vec3], Vec3]
    margin: Scalar
    centre: Vec3
    half: Vec3
    axes: tuple[Vec3, ...] = ()
    clip: Clip | None = None
    corners: Callable[[Vec3], list[Vec3]] | None = None

    def patch(self, unit: Vec3) -> list[Vec3]:
        """Return four points of the surface around its farthest point along a unit vector: corners, well
        apart, of a flat face with that normal, counter-clockwise about it.
        """
        return _tilted_supports(self.support, unit) if self.corners is None else self.corners(unit)


def is_same_place(x: Vec3, y: Vec3) -> Scalar:
    """Return whether two points of a surface are so near each other that they count as one."""
    apart = x - y
    same: Scalar = apart.dot(apart) < MIN_PATCH_SIZE * MIN_PATCH_SIZE
    return same


def is_edge(patch: list[Vec3]) -> Scalar:
    """Return whether four points of a surface are on a line, in that their area is that of a narrow strip."""
    one, two = patch[2] - patch[0], patch[3] - patch[1]
    area = one.cross(two)
    longer = maximum(one.dot(one), two.dot(two))
    narrow: Scalar = area.dot(area) < MIN_PATCH_SIZE * MIN_PATCH_SIZE * longer
    return narrow


def _tilted_supports(support: Callable[[Vec3], Vec3], unit: Vec3) -> list[Vec3]:
    one, two = _across(unit)
    return [support(unit + t * PATCH_TILT) for t in (one, two, -one, -two)]


def _across(unit: Vec3) -> tuple[Vec3, Vec3]:
    """Return two unit vectors at right angles to a unit vector and to each other."""
    x, y, z = (absolute(c) for c in unit)
    first, second = logical_and(x <= y, x <= z), y <= z
    far = choose(first, Vec3.unit(0), choose(second, Vec3.unit(1), Vec3.unit(2)))
    one = unit.cross(far)
    one = one * (1.0 / sqrt(one.dot(one)))
    two = unit.cross(one)
    # Neither is along an axis, where the corners of an upright box would be a tie.
    return one * PATCH_ROTATION[0] + two * PATCH_ROTATION[1], two * PATCH_ROTATION[0] - one * PATCH_ROTATION[
        1
    ]


def _side_by_side(within: Callable[[Vec3, Vec3], Part]) -> Clip:
    """Return the `clip` of a solid by the part of a line p + t d within it."""

    def clip(corners: list[Vec3], unit: Vec3) -> list[Part]:
        return [within(p, q - p) for p, q in zip(corners, corners[1:] + corners[:1], strict=True)]

    return clip


def convex_solid(shape: Shape | Form) -> ConvexSolid:
    """Return the solid of a shape."""
    return _SOLIDS[type(shape)](shape)


def _sphere(shape: Sphere) -> ConvexSolid:
    return ConvexSolid(lambda d: Vec3.zero(), shape.radius, Vec3.zero(), Vec3.zero())


def _capsule(shape: Capsule) -> ConvexSolid:
    half = 0.5 * shape.length

    def support(d: Vec3) -> Vec3:
        return Vec3(0.0, 0.0, select(d.z < 0.0, -half, half))

    return ConvexSolid(support, shape.radius, Vec3.zero(), Vec3(0.0, 0.0, half))


def _box(shape: Box) -> ConvexSolid:
    h = half_lengths(shape)

    def support(d: Vec3) -> Vec3:
        return Vec3(*[select(c < 0.0, -limit, limit) for c, limit in zip(d, h, strict=True)])

    def within(p: Vec3, d: Vec3) -> Part:
        parts = [
            crossing(at, along, limit + ON_FACE_MARGIN) for at, along, limit in zip(p, d, h, strict=True)
        ]
        return _common(_common(parts[0], parts[1]), parts[2])

    axes = Vec3.unit(0), Vec3.unit(1), Vec3.unit(2)
    return ConvexSolid(support, 0.0, Vec3.zero(), h, axes, _side_by_side(within))


def _cylinder(shape: Cylinder) -> ConvexSolid:
    half = 0.5 * shape.length

    def support(d: Vec3) -> Vec3:
        across = sqrt(d.x * d.x + d.y * d.y)
        least = MIN_RADIAL_SINE * sqrt(d.dot(d)) + MIN_SQUARE
        scale = shape.radius / maximum(across, least)
        return Vec3(d.x * scale, d.y * scale, select(d.z < 0.0, -half, half))

    def corners(unit: Vec3) -> list[Vec3]:
        """Return corners of the end face, or the ends of the mantle line with that normal."""
        end = support(Vec3(unit.x, unit.y, 0.0))
        upper, lower = Vec3(end.x, end.y, half), Vec3(end.x, end.y, -half)
        standing = absolute(unit.z) > 0.5
        lines = (upper, upper, lower, lower)
        return [choose(standing, x, y) for x, y in zip(_tilted_supports(support, unit), lines, strict=True)]

    def within(p: Vec3, d: Vec3) -> Part:
        """Solve a quadratic equation for where the line crosses the mantle."""
        a = maximum(d.x * d.x + d.y * d.y, MIN_SQUARE)
        b = p.x * d.x + p.y * d.y
        c = p.x * p.x + p.y * p.y - (shape.radius + ON_FACE_MARGIN) ** 2
        square = b * b - a * c
        meets = square > 0.0
        root = sqrt(select(meets, square, 0.0))
        mantle = select(meets, (-b - root) / a, 1.0), select(meets, (root - b) / a, 0.0)
        return _common(mantle, crossing(p.z, d.z, half + ON_FACE_MARGIN))

    box = Vec3(shape.radius, shape.radius, half)
    return ConvexSolid(support, 0.0, Vec3.zero(), box, (Vec3.unit(2),), _side_by_side(within), corners)


def _ellipsoid(shape: Ellipsoid) -> ConvexSolid:
    a, b, c = shape.radii

    def support(d: Vec3) -> Vec3:
        x, y, z = a * d.x, b * d.y, c * d.z
        scale = 1.0 / sqrt(maximum(x * x + y * y + z * z, MIN_SQUARE))
        return Vec3(a * x * scale, b * y * scale, c * z * scale)

    return ConvexSolid(support, 0.0, Vec3.zero(), Vec3(a, b, c))


def _mesh(shape: ConvexMesh) -> ConvexSolid:
    """Return the solid of a mesh; many vertices or faces are searched by a loop over their indices."""
    vertices = np.array(shape.vertices)
    normals, offsets = _planes(vertices, np.array(shape.faces))

    def support(d: Vec3) -> Vec3:
        return _farthest(vertices, d)

    low, high = vertices.min(axis=0), vertices.max(axis=0)
    return ConvexSolid(
        support,
        0.0,
        Vec3(*(0.5 * (low + high)).tolist()),
        Vec3(*(0.5 * (high - low)).tolist()),
        clip=lambda corners, unit: _between_planes(normals, offsets, corners),
    )


def _mesh_form(shape: MeshForm) -> ConvexSolid:
    """Return the solid of a mesh whose vertices are listed by directions and whose faces are rows."""

    def clip(corners: list[Vec3], unit: Vec3) -> list[Part]:
        def cut(parts: list[Part], normal: Vec3, offset: Scalar) -> list[Part]:
            return _cut(parts, normal, offset, corners)

        return shape.faces.fold(shape.number, unit, cut, [WHOLE_SIDE] * len(corners))

    support = lambda d: shape.cells.support(shape.number, d)
    return ConvexSolid(support, 0.0, shape.centre, shape.half, clip=clip)


def planes_of(shape: ConvexMesh) -> tuple[Array, Array]:
    """Return outward unit normals (n, 3) and distances from the origin (n,) of the faces of a mesh."""
    return _planes(np.array(shape.vertices), np.array(shape.faces))


def _planes(vertices: Array, faces: Any) -> tuple[Array, Array]:
    """Return outward unit normals (n, 3) and distances from the origin (n,) of the faces, each plane once."""
    a, b, c = (vertices[faces[:, i]] for i in range(3))
    normals = np.cross(b - a, c - a)
    normals = normals / np.linalg.norm(normals, axis=1, keepdims=True)
    planes = np.column_stack([normals, np.einsum("fi,fi->f", normals, a)])
    _, first = np.unique(np.round(planes, 9), axis=0, return_index=True)
    return planes[np.sort(first), :3], planes[np.sort(first), 3]


def _farthest(vertices: Array, d: Vec3) -> Vec3:
    def step(carry: tuple[Vec3, Scalar], x: Scalar, y: Scalar, z: Scalar) -> tuple[Vec3, Scalar]:
        return _farther(carry, Vec3(x, y, z), d)

    first = Vec3(*vertices[0].tolist())
    return _over(vertices[1:], step, (first, first.dot(d)))[0]


def _farther(best: tuple[Vec3, Scalar], vertex: Vec3, d: Vec3) -> tuple[Vec3, Scalar]:
    """Return the vertex and how far it lies along d, or the best one so far."""
    along = vertex.dot(d)
    more = along > best[1]
    return choose(more, vertex, best[0]), select(more, along, best[1])


def _between_planes(normals: Array, offsets: Array, corners: list[Vec3]) -> list[Part]:
    def step(parts: list[Part], x: Scalar, y: Scalar, z: Scalar, offset: Scalar) -> list[Part]:
        return _cut(parts, Vec3(x, y, z), offset, corners)

    return _over(np.column_stack([normals, offsets]), step, [WHOLE_SIDE] * len(corners))


def _cut(parts: list[Part], normal: Vec3, offset: Scalar, corners: list[Vec3]) -> list[Part]:
    """Return the parts of the sides of a polygon that are also below a plane, or on it."""
    heights = [normal.dot(p) - offset for p in corners]
    found = []
    for (begin, end), here, there in zip(parts, heights, heights[1:] + heights[:1], strict=True):
        rate = away_from_zero(there - here)
        t = (ON_FACE_MARGIN - here) / rate
        leaves = rate > 0.0
        found.append((select(leaves, begin, maximum(begin, t)), select(leaves, minimum(end, t), end)))
    return found


def _over(rows: Array, step: Callable[..., Carry], carry: Carry) -> Carry:
    """Return the carry after carry = step(carry, *row) for all rows."""
    if len(rows) <= MAX_UNROLLED_ROWS:
        for row in rows.tolist():
            carry = step(carry, *row)
        return carry
    columns = [np.ascontiguousarray(column) for column in rows.T]

    def indexed_step(carried: tuple[Scalar, Carry]) -> tuple[Scalar, Carry]:
        number, inner = carried
        return number + 1.0, step(inner, *[lookup(column, number) for column in columns])

    return loop(len(rows), indexed_step, (0.0, carry))[1]


def _common(a: Part, b: Part) -> Part:
    return maximum(a[0], b[0]), minimum(a[1], b[1])


_SOLIDS: Final[dict[type[Shape | Form], Callable[[Any], ConvexSolid]]] = {
    Sphere: _sphere,
    Capsule: _capsule,
    Box: _box,
    Cylinder: _cylinder,
    Ellipsoid: _ellipsoid,
    ConvexMesh: _mesh,
    RoundedForm: _capsule,
    BoxForm: _box,
    EllipsoidForm: _ellipsoid,
    CylinderForm: _cylinder,
    MeshForm: _mesh_form,
}
