"""A solid with flat faces. Sizes are in metres."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from dalembert.errors import ModelError
from dalembert.model.shapes.hull import convex_hull
from dalembert.model.shapes.shape import Solid
from dalembert.model.shapes.volumes import Integrals, homogeneous_inertia, integrals
from dalembert.spatial import RigidInertia

__all__ = ["ConvexMesh"]

MAX_POINTS = 1_000_000
"""More points are rejected."""


@final
@dataclass(frozen=True)
class ConvexMesh(Solid):
    """The convex hull of points, four or more that do not lie in a plane.

    `vertices` are the corners of the hull, in the order in which they were given; points inside it are
    dropped. The hull of a mesh file is `da.formats.meshes.read_mesh("stone.stl").hull()`.

    >>> tetrahedron = da.ConvexMesh([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (0.1, 0.1, 0.1)])
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
