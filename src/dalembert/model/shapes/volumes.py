"""Volumes and inertias of solids from the triangles of their surface.

Sums over tetrahedra with the apex r, the middle of the bounds, each signed by the side of r on which its
face lies: with a, b, c from r to the vertices, s = a + b + c and d = a . (b x c)

    volume = sum of d/6,   integral of x = sum of d/24 s,
    integral of x x^T = sum of d/120 (a a^T + b b^T + c c^T + s s^T).
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from dalembert.spatial import RigidInertia, SymMat3, Vec3

__all__ = ["Integrals", "homogeneous_inertia", "integrals"]

Array = npt.NDArray[np.float64]

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
    """Return the integrals over the solid inside the faces (m, 3), which are counter-clockwise from
    outside.
    """
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
