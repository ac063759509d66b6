"""Triangles of the solids that shapes are made of, with normals, for pictures without a browser."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from dalembert.formats.meshes import TriangleMesh

__all__ = ["Surface", "mesh_surface", "unit_solid"]

Array: TypeAlias = npt.NDArray[np.float64]


class Surface(NamedTuple):
    """Triangles: corners and their normals (m, 3, 3), and which end of a capsule each corner belongs to,
    (m, 3), -1 or 1; 0 where lengths are not stretched.
    """

    corners: Array
    normals: Array
    sides: Array

    def place(self, scale: Array, stretch: float, R: Array, p: Array) -> tuple[Array, Array]:
        """Return corners and normals in the world of the solid scaled, stretched along z, rotated by R and
        moved to p [m].
        """
        local = self.corners * scale
        local[..., 2] += stretch * self.sides
        return local @ R.T + p, (self.normals / scale) @ R.T


def mesh_surface(mesh: TriangleMesh) -> Surface:
    """Return the triangles of a mesh with flat normals."""
    corners = mesh.vertices[mesh.faces]
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normal /= np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-300)
    return Surface(corners, np.repeat(normal[:, np.newaxis], 3, axis=1), np.zeros(corners.shape[:2]))


@cache
def unit_solid(kind: str) -> Surface:
    """Return the ball, the cylinder or the box that reaches from -1 to 1 along each axis."""
    if kind == "ball":
        profile = []
        for side, angles in ((-1.0, np.linspace(-math.pi / 2, 0, 7)), (1.0, np.linspace(0, math.pi / 2, 7))):
            profile += [(math.cos(a), math.sin(a), math.cos(a), math.sin(a), side) for a in angles]
        return _lathe(profile)
    if kind == "cylinder":
        return _lathe(
            [(0, -1, 0, -1, 0), (1, -1, 0, -1, 0), (1, -1, 1, 0, 0), (1, 1, 1, 0, 0), (1, 1, 0, 1, 0)]
            + [(0, 1, 0, 1, 0)]
        )
    return _box()


def _lathe(profile: Sequence[tuple[float, ...]], around: int = 24) -> Surface:
    """Return a surface of revolution about z; profile: radius, z, normal outward, normal along z, side."""
    r, z, nr, nz, side = np.array(profile, dtype=np.float64).T
    angle = 2.0 * math.pi * np.arange(around + 1) / around
    c, s = np.cos(angle), np.sin(angle)
    ones = np.ones_like(angle)
    points = np.stack([np.outer(r, c), np.outer(r, s), np.outer(z, ones)], axis=-1)
    normals = np.stack([np.outer(nr, c), np.outer(nr, s), np.outer(nz, ones)], axis=-1)
    row = around + 1
    first = (np.arange(len(r) - 1)[:, np.newaxis] * row + np.arange(around)).reshape(-1, 1)
    faces = np.concatenate([first + [0, 1, row + 1], first + [0, row + 1, row]])
    return Surface(
        points.reshape(-1, 3)[faces],
        normals.reshape(-1, 3)[faces],
        np.outer(side, ones).reshape(-1)[faces],
    )


def _box() -> Surface:
    corners, normals = [], []
    for axis in range(3):
        for sign in (-1.0, 1.0):
            square = np.empty((4, 3))
            square[:, axis] = sign
            square[:, (axis + 1) % 3] = [-1, 1, 1, -1]
            square[:, (axis + 2) % 3] = np.array([-1, -1, 1, 1]) * sign
            corners += [square[[0, 1, 2]], square[[0, 2, 3]]]
            normals += [np.tile(sign * np.eye(3)[axis], (3, 1))] * 2
    return Surface(np.array(corners), np.array(normals), np.zeros((12, 3)))
