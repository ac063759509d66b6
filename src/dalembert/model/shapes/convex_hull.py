"""A solid with flat faces. Sizes are in metres."""

from __future__ import annotations

import pkgutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, final

import numpy as np
import numpy.typing as npt

from dalembert.errors import ModelError
from dalembert.model.checks import is_finite
from dalembert.model.shapes.quickhull import MAX_HULL_VERTICES, Array, Hull, convex_hull
from dalembert.model.shapes.shape import Mesh, Solid
from dalembert.spatial import RigidInertia, SymMat3, Vec3

# Volumes and inertias of solids from the triangles of their surface.
#
# Sums over tetrahedra with the apex r, the middle of the bounds, each signed by the side of r on which its
# face lies: with a, b, c from r to the vertices, s = a + b + c and d = a . (b x c)
#
#     volume = sum of d/6,   integral of x = sum of d/24 s,
#     integral of x x^T = sum of d/120 (a a^T + b b^T + c c^T + s s^T).

FACES_PER_BLOCK: Final = 65_536
"""Faces summed at a time, which bounds the memory."""


class Integrals(NamedTuple):
    """Signed volume, first (3,) and second (3, 3) moments about `middle`, vector area (3,), area."""

    volume: float
    first: Array
    second: Array
    middle: Array
    vector_area: Array
    area: float


def integrals(vertices: Array, faces: npt.NDArray[np.int64]) -> Integrals:
    """Return the integrals over the solid inside faces (m, 3), counter-clockwise from outside."""
    if not len(faces):
        return Integrals(0.0, np.zeros(3), np.zeros((3, 3)), np.zeros(3), np.zeros(3), 0.0)
    used = vertices[np.unique(faces)]
    volume, area = 0.0, 0.0
    first, second, vector_area = np.zeros(3), np.zeros((3, 3)), np.zeros(3)
    with np.errstate(over="ignore", invalid="ignore"):
        middle: Array = used.min(axis=0) / 2.0 + used.max(axis=0) / 2.0
        for start in range(0, len(faces), FACES_PER_BLOCK):
            corners = vertices[faces[start : start + FACES_PER_BLOCK]] - middle
            a, b, c = corners[:, 0], corners[:, 1], corners[:, 2]
            normals = np.cross(b - a, c - a) / 2.0
            d = np.einsum("fi,fi->f", a, np.cross(b, c))
            s = a + b + c
            volume += float(d.sum()) / 6.0
            first += (d[:, None] * s).sum(axis=0) / 24.0
            for x in (a, b, c, s):
                second += (d[:, None] * x).T @ x / 120.0
            vector_area += normals.sum(axis=0)
            area += float(np.linalg.norm(normals, axis=1).sum())
    return Integrals(volume, first, second, middle, vector_area, area)


def homogeneous_inertia(over: Integrals, mass: float) -> RigidInertia:
    """Return the inertia of a homogeneous solid of the mass [kg], in the coordinates of its vertices."""
    c = over.first / over.volume
    J = mass * (over.second / over.volume - np.outer(c, c))  # the second moments about the centre of mass
    I = np.trace(J) * np.eye(3) - J
    moments = SymMat3(*(float(I[i, k]) for i, k in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))))
    return RigidInertia(mass, Vec3(*(over.middle + c).tolist()), moments)


MAX_POINTS = 1_000_000
"""More points are rejected."""


@final
@dataclass(frozen=True)
class ConvexMesh(Solid):
    """The convex hull of points, four or more that do not lie in a plane.

    `vertices` are the corners of the hull, in the order in which they were given; points inside it are
    dropped. The hull of a mesh file is `da.formats.meshes.read_mesh("stone.stl").hull()`.

    `approximation_error` [m] is the largest distance between this hull and the hull that it stands for, whose
    corners were too many to compute contacts with; 0 where no corner was left out.

    >>> tetrahedron = da.shapes.ConvexMesh([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (0.1, 0.1, 0.1)])
    >>> len(tetrahedron.vertices), round(tetrahedron.volume, 6)
    (4, 0.166667)
    """

    kind = "convex_mesh"
    vertices: Sequence[Sequence[float]]
    approximation_error: float = field(default=0.0, kw_only=True)

    def _check_size(self) -> None:
        try:
            points = np.array(self.vertices, dtype=np.float64)
        except Exception as error:  # any exception that a foreign array raises
            raise ModelError(f"convex mesh: vertices must be points (x, y, z): {error}") from error
        if points.ndim != 2 or points.shape[1] != 3 or not 4 <= len(points) <= MAX_POINTS:
            raise ModelError(
                f"convex mesh: vertices has the shape {points.shape}; give four points (x, y, z) or more"
            )
        if not np.isfinite(points).all():
            raise ModelError("convex mesh: a vertex is not finite")
        corners, faces = convex_hull(points)
        if not is_finite(self.approximation_error) or self.approximation_error < 0.0:
            given = self.approximation_error
            raise ModelError(
                f"convex mesh: approximation_error is {given!r}; give a length [m], not negative"
            )
        self._put("approximation_error", float(self.approximation_error))
        self._put("vertices", tuple((x, y, z) for x, y, z in corners.tolist()))
        self._put("_faces", tuple((a, b, c) for a, b, c in faces.tolist()))

    @property
    def faces(self) -> tuple[tuple[int, int, int], ...]:
        """The triangles of the surface: places of their corners, counter-clockwise seen from outside."""
        found: tuple[tuple[int, int, int], ...] = self._faces  # type: ignore[attr-defined]
        return found

    @property
    def volume(self) -> float:
        return self._integrals().volume

    def _inertia_of(self, mass: float) -> RigidInertia:
        found: RigidInertia = self.placement.inverse_apply(homogeneous_inertia(self._integrals(), mass))
        return found

    def _integrals(self) -> Integrals:
        return integrals(np.array(self.vertices), np.array(self.faces))


# The convex hull of a mesh file. Shapes open no file: the room of file formats reads it.


def hull_of(
    shape: Mesh, *, max_vertices: int = MAX_HULL_VERTICES, tolerance: float | None = None
) -> ConvexMesh:
    """Return the convex hull of the mesh in a shape's file, scaled, with all else that the shape has.

    Hulls of many corners are reduced as `quickhull.reduced_hull` does; the result states its distance from
    the hull of all.
    """
    same = {name: value for name, value in shape.data() if name not in ("path", "scale")}
    # By name, when a mesh is first read: formats are built on models, which must work without them.
    hull_of_file = pkgutil.resolve_name("dalembert.formats.meshes:hull_of_file")
    try:
        hull: Hull = hull_of_file(shape, max_vertices=max_vertices, tolerance=tolerance)
        return ConvexMesh(hull.corners.tolist(), approximation_error=hull.gap, **same)
    except ModelError as error:
        raise ModelError(f"{shape.path}: {error}") from error
