"""The convex hull of points in space, by quickhull (Barber, Dobkin, Huhdanpaa 1996)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import combinations
from typing import Final

import numpy as np
import numpy.typing as npt

from dalembert.errors import ModelError

__all__ = ["convex_hull"]

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
        faces = _faces(kept)
        used = np.unique(faces)
        if len(used) == len(kept):
            return kept, faces
        kept = kept[used]


def _faces(points: Array) -> Faces:
    extent = float(np.max(np.ptp(points, axis=0)))
    for tolerance in TOLERANCES:
        faces = _quickhull(points, tolerance * extent)
        if faces is not None:
            return faces
    raise ModelError("convex mesh: the hull of the points is not found; are some almost the same point?")


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
