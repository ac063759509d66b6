"""A solid with flat faces. Sizes are in metres."""

from __future__ import annotations

import math
import pkgutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final, NamedTuple, final

import numpy as np
import numpy.typing as npt

from dalembert.errors import ModelError
from dalembert.model.shapes.shape import Mesh, Solid
from dalembert.spatial import RigidInertia, SymMat3, Vec3

# The convex hull of points in space, by quickhull (Barber, Dobkin, Huhdanpaa 1996).

Array = npt.NDArray[np.float64]
Faces = npt.NDArray[np.int64]

MIN_RELATIVE_THICKNESS: Final = 1e-9
"""Thickness of the points, relative to their extent, below which they lie in a plane and have no hull."""
TOLERANCES: Final = (1e-13, 1e-11, 1e-9, 1e-7)
"""Distances of a point outside a face, relative to the extent, tried in turn until the hull is closed."""


def convex_hull(points: Array) -> tuple[Array, Faces]:
    """Return the corners (n, 3) of the hull, in the order of the points, and its faces (m, 3): triangles,
    counter-clockwise seen from outside. The hull of the corners is the same, bit for bit.
    """
    kept = np.asarray(points, dtype=np.float64)
    kept = kept[np.sort(np.unique(kept, axis=0, return_index=True)[1])]
    while True:
        extent = float(np.max(np.ptp(kept, axis=0)))
        hulls = (_quickhull(kept, tolerance * extent) for tolerance in TOLERANCES)
        faces = next((hull for hull in hulls if hull is not None), None)
        if faces is None:
            raise ModelError(
                "convex mesh: the hull of the points is not found; are some almost the same point?"
            )
        used = np.unique(faces)
        if len(used) == len(kept):
            return kept, faces
        kept = kept[used]


def _simplex(points: Array) -> list[int]:
    """Return four points that span a volume: far apart, far from the line, far from the plane."""
    extent = float(np.max(np.ptp(points, axis=0)))
    axis = int(np.argmax(np.ptp(points, axis=0)))
    a, b = int(np.argmin(points[:, axis])), int(np.argmax(points[:, axis]))
    line = points[b] - points[a]
    area = np.linalg.norm(np.cross(points - points[a], line), axis=1)
    c = int(np.argmax(area))
    normal = np.cross(line, points[c] - points[a])
    length = float(np.linalg.norm(normal))
    height = np.abs((points - points[a]) @ normal) / length if length > 0.0 else np.zeros(len(points))
    d = int(np.argmax(height))
    if (
        extent == 0.0
        or length <= MIN_RELATIVE_THICKNESS * extent * extent
        or height[d] <= MIN_RELATIVE_THICKNESS * extent
    ):
        raise ModelError("convex mesh: the points lie in a plane; give four or more that span a volume")
    return [a, b, c, d]


def _quickhull(points: Array, tolerance: float) -> Faces | None:
    """Return the faces of the hull; None if rounding leaves the surface open.

    Every face keeps the points outside it. The farthest of them becomes a corner: the faces that it sees go,
    and new ones join it to their rim.
    """
    corners = _simplex(points)
    inside = points[corners].mean(axis=0)
    free = list(range(64))
    faces: dict[int, tuple[int, int, int]] = {}
    outside: dict[int, Faces] = {}
    planes = np.full((64, 4), np.nan)  # normal and offset of every face; NaN where a row is free

    def add(a: int, b: int, c: int, candidates: Faces) -> bool:
        nonlocal planes
        # np.cross of two vectors takes longer than all the rest of this function.
        (u, v, w), (x, y, z) = (points[[b, c]] - points[a]).tolist()
        normal = np.array((v * z - w * y, w * x - u * z, u * y - v * x))
        length = math.sqrt(normal @ normal)
        if length == 0.0:
            return False
        normal /= length
        if normal @ (inside - points[a]) > 0.0:
            normal, b, c = -normal, c, b
        if not free:
            free.extend(range(len(planes), 2 * len(planes)))
            planes = np.concatenate([planes, np.full(planes.shape, np.nan)])
        face = free.pop()
        offset = float(normal @ points[a])
        faces[face], planes[face] = (a, b, c), (*normal, offset)
        above = candidates[points[candidates] @ normal - offset > tolerance]
        if len(above):
            outside[face] = above
        return True

    everything = np.arange(len(points))
    for a, b, c in combinations(corners, 3):
        add(a, b, c, everything)
    while outside:
        face = next(iter(outside))
        apex = int(outside[face][np.argmax(points[outside[face]] @ planes[face, :3])])
        seen = np.flatnonzero(planes[:, :3] @ points[apex] - planes[:, 3] > tolerance).tolist()
        candidates = np.unique(np.concatenate([outside.pop(name) for name in seen if name in outside]))
        candidates = candidates[candidates != apex]
        edges = _edges(faces.pop(name) for name in seen)
        planes[seen] = np.nan
        free.extend(seen)
        rim = [edge for edge in edges if edge[::-1] not in edges]
        if not all(add(*edge, apex, candidates) for edge in rim):
            return None
    edges = _edges(faces.values())
    closed = len(edges) == 3 * len(faces) and all(edge[::-1] in edges for edge in edges)
    return np.array(list(faces.values()), dtype=np.int64) if closed else None


def _edges(faces: Iterable[tuple[int, int, int]]) -> set[tuple[int, int]]:
    """Return the edges of the faces, each oriented as in its face."""
    return {edge for a, b, c in faces for edge in ((a, b), (b, c), (c, a))}


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

    >>> tetrahedron = da.shapes.ConvexMesh([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (0.1, 0.1, 0.1)])
    >>> len(tetrahedron.vertices), round(tetrahedron.volume, 6)
    (4, 0.166667)
    """

    kind = "convex_mesh"
    vertices: Sequence[Sequence[float]]

    def _check_size(self) -> None:
        try:
            points = np.array(self.vertices, dtype=np.float64)
        except Exception as error:  # of somebody's array, whatever it is
            raise ModelError(f"convex mesh: vertices must be points (x, y, z): {error}") from error
        if points.ndim != 2 or points.shape[1] != 3 or not 4 <= len(points) <= MAX_POINTS:
            raise ModelError(
                f"convex mesh: vertices has the shape {points.shape}; give four points (x, y, z) or more"
            )
        if not np.isfinite(points).all():
            raise ModelError("convex mesh: a vertex is not finite")
        corners, faces = convex_hull(points)
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


def hull_of(shape: Mesh) -> ConvexMesh:
    """Return the convex hull of the mesh in a shape's file, scaled, with all else that the shape has."""
    same = {name: value for name, value in shape.data() if name not in ("path", "scale")}
    # By name, when a mesh is first read: formats are built on models, which must work without them.
    vertices: Array = pkgutil.resolve_name("dalembert.formats.meshes:mesh_of")(shape).corners
    try:
        return ConvexMesh(vertices.tolist(), **same)
    except ModelError as error:
        raise ModelError(f"{shape.path}: {error}") from error
