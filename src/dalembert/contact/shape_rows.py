"""The shapes of a scene as tables, those of one form together: code runs over their rows.

A table has what is constant of its shapes: the body that carries each, its placement there, its sizes, and
volumes that bound it. `ShapeRows` has what a configuration adds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, final

import numpy as np
import numpy.typing as npt

from dalembert import scalar
from dalembert.contact.narrow_phase.direction_cells import DirectionCells, FaceCells
from dalembert.contact.narrow_phase.forms import (
    BoxForm,
    CornersForm,
    CylinderForm,
    EllipsoidForm,
    Form,
    MeshForm,
    SphereForm,
)
from dalembert.contact.narrow_phase.grounds import MAX_GROUND_VERTICES, Terrain
from dalembert.contact.narrow_phase.support import planes_of
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
from dalembert.model.topology import WORLD
from dalembert.scalar import Family, Row, Rows, Scalar, absolute, maximum
from dalembert.spatial import Mat3, Transform, Vec3

if TYPE_CHECKING:
    from dalembert.contact.pairs import Placed

Array: TypeAlias = npt.NDArray[np.float64]
Key: TypeAlias = type[Form] | type[Plane] | type[HeightField]
"""The form of the shapes of a table; grounds are their own."""


class Bounds(NamedTuple):
    """A box and a ball about one centre, in a shape's own frame, that hold the shape [m]."""

    centre: Sequence[float]
    half: Sequence[float]
    radius: float


def bounds_of(shape: Shape) -> Bounds:
    """Return the bounds of a shape; those of a height field reach from its top down to the deepest."""
    origin = (0.0, 0.0, 0.0)
    match shape:
        case Sphere(radius=r):
            return Bounds(origin, (r, r, r), r)
        case Capsule(radius=r, length=length):
            return Bounds(origin, (r, r, r + 0.5 * length), r + 0.5 * length)
        case Cylinder(radius=r, length=length):
            return Bounds(origin, (r, r, 0.5 * length), math.hypot(r, 0.5 * length))
        case Box(size=size):
            return Bounds(origin, [0.5 * x for x in size], 0.5 * math.hypot(*size))
        case Ellipsoid(radii=radii):
            return Bounds(origin, radii, max(radii))
        case ConvexMesh():
            vertices = np.array(shape.vertices)
            low, high = vertices.min(axis=0), vertices.max(axis=0)
            centre = 0.5 * (low + high)
            radius = float(np.linalg.norm(vertices - centre, axis=1).max())
            return Bounds(centre.tolist(), (0.5 * (high - low)).tolist(), radius)
        case HeightField(size=(x, y)):
            return Bounds(origin, (0.5 * x, 0.5 * y, float(np.max(shape.heights))), 0.0)
    return Bounds(origin, origin, 0.0)


def sizes_of(shape: Shape, form: Key) -> list[float]:
    """Return the numbers of a shape in its form; a mesh has rows of its own instead."""
    match shape:
        case Sphere(radius=r):
            return [r] if form is SphereForm else [r, 0.0]
        case Capsule(radius=r, length=length) | Cylinder(radius=r, length=length):
            return [r, length]
        case Box(size=numbers) | Ellipsoid(radii=numbers):
            return [*numbers]
        case ConvexMesh() if form is CornersForm:
            missing = MAX_GROUND_VERTICES - len(shape.vertices)
            return [x for vertex in [*shape.vertices, *[shape.vertices[-1]] * missing] for x in vertex]
        case HeightField():
            return [float(len(shape.heights)), float(len(shape.heights[0])), *shape.size]
    return []


@final
@dataclass(frozen=True, eq=False)
class Pieces:
    """Lists of rows, of several shapes, in one table: `values` (n, k), where each begins, its length."""

    values: Array
    first: Sequence[int]
    counts: Sequence[int]

    @staticmethod
    def of(pieces: Sequence[Array]) -> Pieces:
        counts = [len(piece) for piece in pieces]
        return Pieces(np.concatenate(pieces), np.cumsum([0, *counts[:-1]]).tolist(), counts)


@final
@dataclass(frozen=True, eq=False)
class ShapeTable:
    """Constants of the shapes of one form, a row each; `bodies`: the world is the number of bodies."""

    form: Key
    bodies: Sequence[int]
    placements: Array
    sizes: Array
    centres: Array
    halves: Array
    radii: Array
    heights: Pieces | None = None
    meshes: tuple[ConvexMesh, ...] = ()

    @staticmethod
    def of(form: Key, placed: Sequence[Placed], body_count: int) -> ShapeTable:
        shapes = [item.shape for item in placed]
        centres, halves, radii = (np.array(x, float) for x in zip(*map(bounds_of, shapes), strict=True))
        frames = [shape.placement.as_transform() for shape in shapes]
        heights = [np.ravel(shape.heights)[:, None] for shape in shapes if isinstance(shape, HeightField)]
        return ShapeTable(
            form,
            [body_count if item.body == WORLD else item.body for item in placed],
            np.array([[float(x) for x in frame.leaves()] for frame in frames]),
            np.array([sizes_of(shape, form) for shape in shapes]),
            centres,
            halves,
            radii,
            Pieces.of(heights) if heights else None,
            tuple(x for x in shapes if isinstance(x, ConvexMesh) and form is MeshForm),
        )

    @cached_property
    def cells(self) -> DirectionCells:
        """The vertices of meshes by cells of directions."""
        return DirectionCells.of([np.array(mesh.vertices) for mesh in self.meshes])

    @cached_property
    def faces(self) -> FaceCells:
        """The planes of meshes by cells of directions."""
        return FaceCells.of([(np.array(mesh.vertices), *planes_of(mesh)) for mesh in self.meshes])


# Shapes at a configuration.


class Ball(NamedTuple):
    """A ball around a shape [m], wherever this moves within the step."""

    centre: Vec3
    radius: Scalar


class Bodies(NamedTuple):
    """Bodies and last the world: their poses, and how far any point of each may travel in the step [m]."""

    rows: Rows
    pose: Family[Transform]
    travel: Family[Scalar]


BOX_FORMS: Final = (BoxForm, CylinderForm, EllipsoidForm, MeshForm)
"""The forms of shapes whose boxes bound them better than balls."""


@final
class ShapeRows:
    """The rows of a table at a configuration: `balls` around all shapes and, of planes, the normal and a
    point of each."""

    def __init__(self, table: ShapeTable, bodies: Bodies, like: Any) -> None:
        self._table, self._bodies, self._like = table, bodies, like
        self.form_type = table.form
        self.rows = scalar.rows(len(table.bodies), like=like)
        self.body = self.rows.links(bodies.rows, table.bodies)
        self._placement = self._columns(table.placements)
        self._sizes = self._columns(table.sizes)
        self._centre, self._half = self._columns(table.centres), self._columns(table.halves)
        self._radius = self.rows.numbers(table.radii.tolist())
        self.balls = self.rows.each(self._ball)
        self.planes = self.rows.each(self._plane)

    def frame(self, row: Row) -> Transform:
        """Return the frame of a shape in the world."""
        return self._bodies.pose[self.body[row]] @ self._placement_at(row)

    def travel(self, row: Row) -> Scalar:
        """Return how far a point of the shape may travel in the step [m]."""
        return self._bodies.travel[self.body[row]]

    def _ball(self, row: Row) -> Ball:
        centre = self._placement_at(row).transform_point(_vec(self._centre, row))
        pose = self._bodies.pose[self.body[row]]
        return Ball(pose.transform_point(centre), self._radius[row] + self.travel(row))

    def _plane(self, row: Row) -> tuple[Vec3, Vec3]:
        X = self.frame(row)
        return X.R.column(2), X.p

    def may_reach(self, row: Row, ball: Ball) -> Scalar:
        """Return whether a ball may touch the box around a shape; that of a height field has no bottom."""
        x, half = self.from_centre(row, ball.centre), self.half(row)
        height = x.z if self.form_type is HeightField else absolute(x.z)
        outside = Vec3(
            maximum(absolute(x.x) - half.x, 0.0),
            maximum(absolute(x.y) - half.y, 0.0),
            maximum(height - half.z, 0.0),
        )
        reach = ball.radius + self.travel(row)
        return outside.dot(outside) < reach * reach

    def from_centre(self, row: Row, point: Vec3) -> Vec3:
        """Return a point of the world seen from the centre of the box around a shape, in the shape's axes."""
        pose = self._bodies.pose[self.body[row]]
        x = self._placement_at(row).inverse_transform_point(pose.inverse_transform_point(point))
        return x - _vec(self._centre, row)

    def half(self, row: Row) -> Vec3:
        """Return the half edges of the box around a shape."""
        return _vec(self._half, row)

    def half_width(self, row: Row, n: Vec3) -> Scalar:
        """Return how far the box around a shape reaches from its centre along a unit vector."""
        along = self.frame(row).R.transposed_times(n)
        return Vec3(*[absolute(x) for x in along]).dot(self.half(row))

    def form(self, row: Row) -> Form:
        """Return the form of a solid."""
        numbers = [column[row] for column in self._sizes]
        if self.form_type is CornersForm:
            return CornersForm(tuple(Vec3(*numbers[k : k + 3]) for k in range(0, len(numbers), 3)))
        if self.form_type is MeshForm:
            return MeshForm(
                self._table.cells,
                self._table.faces,
                self.rows.numbers([float(k) for k in range(len(self._table.bodies))])[row],
                _vec(self._centre, row),
                self.half(row),
            )
        found: Form = self.form_type(*numbers)  # type: ignore[assignment]
        return found

    def terrain(self, row: Row) -> Terrain:
        """Return the terrain of a height field."""
        rows, columns, x, y = (column[row] for column in self._sizes)
        heights = self._table.heights
        assert heights is not None
        start = self.rows.numbers([float(k) for k in heights.first])[row]
        return Terrain(heights.values.ravel(), rows, columns, (x, y), start)

    def _placement_at(self, row: Row) -> Transform:
        numbers = [column[row] for column in self._placement]
        return Transform(Mat3(*numbers[:9]), Vec3(*numbers[9:]))

    def _columns(self, numbers: Array) -> list[Family[Scalar]]:
        return self.rows.columns(numbers.tolist())


def _vec(columns: Sequence[Family[Scalar]], row: Row) -> Vec3:
    return Vec3(*[column[row] for column in columns])
