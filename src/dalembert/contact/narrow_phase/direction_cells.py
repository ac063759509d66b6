"""The surface of a mesh by the direction: the few vertices that may lie farthest, and the few planes around
them, listed for cells of directions.

Directions are divided into the cells of a grid on each face of the cube |x|, |y|, |z| <= 1. A vertex that
another one exceeds along all four corners of a cell is the farthest along no direction within, since heights
along d are linear in d. Of a hull of 128 vertices three are left in a cell (Unitree's G1).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar, final

import numpy as np
import numpy.typing as npt

from dalembert.contact.narrow_phase.candidates import choose
from dalembert.scalar import Scalar, absolute, floor, logical_and, lookup, loop, maximum, minimum, select
from dalembert.spatial import Vec3

Array = npt.NDArray[np.float64]
Carry = TypeVar("Carry")

CELLS_PER_EDGE: Final = 8
"""Cells along an edge of the cube: with 4 twice as many vertices are left in a cell, with 12 a quarter fewer,
in tables of twice the size."""

CELLS: Final = 6 * CELLS_PER_EDGE**2
"""The cells of all directions."""

VERTICES_AT_ONCE: Final = 4
"""Vertices of a cell that one iteration compares: most cells have no more. With 2 a step of G1 takes 3 %
longer, and 6 % in a batch."""

MIN_LARGEST_COMPONENT: Final = 1e-300
"""The least largest component of a direction: smaller ones count as this, so that division is finite."""

ON_PLANE_TOLERANCE: Final = 1e-8
"""The distance, in units of a mesh's extent, up to which a vertex is on a plane: planes that agree to nine
digits are one."""

ROUNDING_MARGIN: Final = 1e-12
"""The height [m] by which another vertex has to exceed one at all corners of a cell: rounding errors of the
heights, and of the cell of a direction on its border, are smaller."""

PLANES_AT_ONCE: Final = 4
"""Planes of a cell that one iteration visits."""

CLIP_DEPTH: Final = 1e-4
"""The depth [m] below the farthest point of a mesh down to which its faces clip what lies on it: ten times
the distance by which a point may be outside and still count as on the surface."""


@final
@dataclass(frozen=True, eq=False)
class DirectionCells:
    """The vertices of several meshes by cells, those of a mesh one after the other: `first` (CELLS a mesh,
    and one more) counts the vertices of the cells before; `columns` has the coordinates; `most` vertices of a
    cell."""

    first: Array
    columns: tuple[Array, Array, Array]
    most: int

    @staticmethod
    def of(meshes: Sequence[Array]) -> DirectionCells:
        """Return the cells of meshes with these vertices (n, 3)."""
        corners = _cell_corners()
        lists = [vertices[chosen] for vertices in meshes for chosen in _farthest_by_cell(vertices, corners)]
        counts = [len(chosen) for chosen in lists]
        x, y, z = np.ascontiguousarray(np.concatenate(lists).T)
        return DirectionCells(np.cumsum([0, *counts]).astype(float), (x, y, z), max(counts))

    def support(self, mesh: Scalar, d: Vec3) -> Vec3:
        """Return the vertex of a mesh, by its number, that lies farthest along d; of equals the first."""
        cell = mesh * float(CELLS) + cell_of(d)
        first, end = lookup(self.first, cell), lookup(self.first, cell + 1.0)

        def farther(at: tuple[Scalar, Vec3, Scalar]) -> tuple[Scalar, Vec3, Scalar]:
            number, best, height = at
            for k in range(VERTICES_AT_ONCE):
                place = minimum(number + float(k), end - 1.0)
                vertex = Vec3(*[lookup(column, place) for column in self.columns])
                along = vertex.dot(d)
                best, height = choose(along > height, (vertex, along), (best, height))
            return number + float(VERTICES_AT_ONCE), best, height

        least = -np.finfo(np.float64).max
        turns = -(-self.most // VERTICES_AT_ONCE)
        begin = first, Vec3(*[lookup(column, first) for column in self.columns]), least
        return loop(turns, farther, begin, until=lambda at: at[0] >= end)[1]


@final
@dataclass(frozen=True, eq=False)
class FaceCells:
    """The planes of several meshes, in `columns` of normals and offsets, and by cells those that bound a mesh
    around its farthest points: `planes` has their numbers, `first` counts those of the cells before; `most`
    planes of a cell."""

    first: Array
    planes: Array
    columns: tuple[Array, Array, Array, Array]
    most: int

    @staticmethod
    def of(meshes: Sequence[tuple[Array, Array, Array]]) -> FaceCells:
        """Return the cells of meshes with these vertices (n, 3), normals (k, 3) and offsets (k,)."""
        corners, lists, count = _cell_corners(), list[npt.NDArray[np.int64]](), 0
        # Directions in the corners of cells are up to sqrt(3) long.
        margin = np.sqrt(3.0) * CLIP_DEPTH
        for vertices, normals, offsets in meshes:
            extent = np.abs(vertices).max()
            ends_at = np.abs(vertices @ normals.T - offsets) < ON_PLANE_TOLERANCE * extent
            chosen = _farthest_by_cell(vertices, corners, margin)
            lists += [count + np.flatnonzero(ends_at[found].any(axis=0)) for found in chosen]
            count += len(normals)
        planes = np.concatenate([np.column_stack([normals, offsets]) for _, normals, offsets in meshes])
        x, y, z, offset = np.ascontiguousarray(planes.T)
        counts = [len(chosen) for chosen in lists]
        first = np.cumsum([0, *counts]).astype(float)
        return FaceCells(first, np.concatenate(lists).astype(float), (x, y, z, offset), max(counts))

    def fold(
        self, mesh: Scalar, d: Vec3, step: Callable[[Carry, Vec3, Scalar], Carry], carry: Carry
    ) -> Carry:
        """Return the carry after `carry = step(carry, normal, offset)` for the planes around the farthest
        points of a mesh, by its number, along d; some are visited more than once."""
        cell = mesh * float(CELLS) + cell_of(d)
        first, end = lookup(self.first, cell), lookup(self.first, cell + 1.0)

        def visit(at: tuple[Scalar, Carry]) -> tuple[Scalar, Carry]:
            number, carry = at
            for k in range(PLANES_AT_ONCE):
                plane = lookup(self.planes, minimum(number + float(k), end - 1.0))
                x, y, z, offset = (lookup(column, plane) for column in self.columns)
                carry = step(carry, Vec3(x, y, z), offset)
            return number + float(PLANES_AT_ONCE), carry

        turns = -(-self.most // PLANES_AT_ONCE)
        return loop(turns, visit, (first, carry), until=lambda at: at[0] >= end)[1]


def cell_of(d: Vec3) -> Scalar:
    """Return the number of the cell of a direction of any length."""
    x, y, z = absolute(d.x), absolute(d.y), absolute(d.z)
    along_x, along_y = logical_and(x >= y, x >= z), y >= z
    largest, u, v, axis = choose(
        along_x, (d.x, d.y, d.z, 0.0), choose(along_y, (d.y, d.z, d.x, 1.0), (d.z, d.x, d.y, 2.0))
    )
    half = 0.5 * CELLS_PER_EDGE
    scale = half / maximum(absolute(largest), MIN_LARGEST_COMPONENT)
    i, j = (minimum(maximum(floor(c * scale + half), 0.0), CELLS_PER_EDGE - 1.0) for c in (u, v))
    face = 2.0 * axis + select(largest < 0.0, 1.0, 0.0)
    number: Scalar = (face * CELLS_PER_EDGE + i) * CELLS_PER_EDGE + j
    return number


def _cell_corners() -> Array:
    """Return the corners of all cells (CELLS, 4, 3), in the order of `cell_of`."""
    edges = np.linspace(-1.0, 1.0, CELLS_PER_EDGE + 1)
    found = np.empty((3, 2, CELLS_PER_EDGE, CELLS_PER_EDGE, 2, 2, 3))
    for axis in range(3):
        found[axis, 0, ..., axis], found[axis, 1, ..., axis] = 1.0, -1.0
        for i in range(2):
            steps = slice(i, i + CELLS_PER_EDGE)
            found[axis, :, :, :, i, :, (axis + 1) % 3] = edges[steps, None, None]
            found[axis, :, :, :, :, i, (axis + 2) % 3] = edges[steps, None]
    return found.reshape(CELLS, 4, 3)


def _farthest_by_cell(
    vertices: Array, corners: Array, margin: float = ROUNDING_MARGIN
) -> list[npt.NDArray[np.int64]]:
    """Return the numbers of the vertices that may lie farthest in each cell, or lower than that by no more
    than the margin, in increasing order."""
    found = []
    for heights in np.einsum("cki,vi->ckv", corners, vertices):
        # Most vertices are below the highest one of the middle of the cell; the rest are compared in pairs.
        highest = heights[:, heights.sum(axis=0).argmax(), None]
        left = np.flatnonzero((heights >= highest - margin).any(axis=0))
        rest = heights[:, left]
        below = (rest[:, :, None] < rest[:, None, :] - margin).all(axis=0).any(axis=1)
        found.append(left[~below])
    return found
