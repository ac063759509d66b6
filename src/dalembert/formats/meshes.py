"""Triangle meshes from STL and OBJ files, and the inertia of the solid they bound."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

import numpy as np
import numpy.typing as npt

from dalembert.errors import ArgumentError, FileError, ModelError, UnknownNameError
from dalembert.formats.failures import reported_as_file_errors
from dalembert.formats.obj import read_obj
from dalembert.formats.resources import read_regular_file
from dalembert.formats.stl import read_stl
from dalembert.model.shapes import ConvexMesh, Mesh
from dalembert.model.shapes.convex_hull import homogeneous_inertia, integrals
from dalembert.spatial import RigidInertia

__all__ = ["MAX_MESH_BYTES", "MAX_MESH_FACES", "TriangleMesh", "mesh_of", "read_mesh"]

MAX_MESH_BYTES: Final = 128 * 1024 * 1024
"""Larger mesh files are refused before they are read."""
MAX_MESH_FACES: Final = 2_500_000
"""Meshes with more faces are refused, before memory is taken for them."""
OPEN_SURFACE: Final = 1e-3
"""Greatest length of the vector area, relative to the area, of a surface that bounds a solid."""

READERS: Final[dict[str, Callable[..., tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]]]] = {
    ".stl": read_stl,
    ".obj": read_obj,
}


def mesh_of(shape: Mesh) -> TriangleMesh:
    """Return the mesh that a shape names, scaled as the shape says."""
    if not shape.readable or "://" in shape.path:
        raise FileError(
            f'mesh "{shape.path}" was not found when the model was loaded, or lies outside the folders that '
            "the model file may name; name its folder in roots=[…], or trust the file (trusted=True)"
        )
    return read_mesh(shape.path).scaled(shape.scale)


def read_mesh(path: str | os.PathLike[str]) -> TriangleMesh:
    """Read the mesh in an STL (text or binary) or OBJ file, in the file's own units."""
    file = Path(path)
    reader = READERS.get(file.suffix.lower())
    if reader is None:
        raise UnknownNameError.of("mesh format", file.suffix or file.name, READERS)
    content = read_regular_file(file, limit=MAX_MESH_BYTES)
    if not content or content.isspace():
        raise FileError(f"{file} is empty")
    with reported_as_file_errors(str(file)):
        vertices, faces = reader(content, name=str(file), max_faces=MAX_MESH_FACES)
    if not len(faces):
        raise FileError(f"{file}: the file has no faces")
    finite = np.isfinite(vertices).all(axis=1)
    if not finite.all():
        first = int(np.argmin(finite))
        raise FileError(
            f"{file}: vertex {first + 1} is {vertices[first].tolist()}; every number must be finite"
        )
    return TriangleMesh(vertices, faces)


@final
@dataclass(frozen=True, eq=False)
class TriangleMesh:
    """A surface of triangles: `vertices` (n, 3) and `faces` (m, 3), the places of each face's vertices.

    Faces of a closed surface are counter-clockwise seen from outside. Both arrays are read-only.
    """

    vertices: npt.NDArray[np.float64]
    faces: npt.NDArray[np.int64]

    def __post_init__(self) -> None:
        for name, kind in (("vertices", np.float64), ("faces", np.int64)):
            array = np.array(getattr(self, name), dtype=kind)
            if array.ndim != 2 or array.shape[1] != 3:
                raise ArgumentError(f"mesh: {name} has the shape {array.shape}; expected (n, 3)")
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        if not np.isfinite(self.vertices).all():
            raise ArgumentError("mesh: a vertex is not finite")
        if self.faces.size and not (self.faces.min() >= 0 and self.faces.max() < len(self.vertices)):
            raise ArgumentError(
                f"mesh: a face names vertex {self.faces.min()} or {self.faces.max()}; there are "
                f"{len(self.vertices)} vertices, from 0"
            )

    @property
    def bounds(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """The least and the greatest coordinates (3,) of the faces' vertices."""
        used = self.vertices[np.unique(self.faces)]
        return used.min(axis=0), used.max(axis=0)

    @property
    def volume(self) -> float:
        """The volume that the surface encloses; not negative, also where it is inside out."""
        return abs(integrals(self.vertices, self.faces).volume)

    def scaled(self, scale: float | Sequence[float]) -> TriangleMesh:
        """Return the mesh scaled by one factor, or by three along x, y, z; a mirrored mesh still faces
        outward.
        """
        factors = np.broadcast_to(np.asarray(scale, dtype=np.float64), (3,))
        if not np.isfinite(factors).all() or not factors.all():
            raise ArgumentError(f"mesh: scale is {scale!r}; give finite numbers, none zero")
        faces = self.faces[:, ::-1] if np.prod(np.sign(factors)) < 0.0 else self.faces
        return TriangleMesh(self.vertices * factors, faces)

    def hull(self, **options: Any) -> ConvexMesh:
        """Return the convex hull of the mesh as a shape; `options` are those of shapes, such as `placement`.

        >>> from dalembert.formats.meshes import TriangleMesh
        >>> mesh = TriangleMesh([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)], [(0, 2, 1), (0, 1, 3)])
        >>> round(mesh.scaled(0.1).hull(name="stone").volume, 9)
        0.000166667
        """
        return ConvexMesh(self.vertices[np.unique(self.faces)].tolist(), **options)

    def inertia(self, *, mass: float | None = None, density: float | None = None) -> RigidInertia:
        """Return the inertia of the homogeneous solid inside the surface, from its mass [kg] or its density
        [kg/m^3].

        The mesh is in metres (`scaled` gets it there). Surfaces that are not closed are refused.
        """
        if (mass is None) == (density is None):
            raise ArgumentError("mesh: give either mass or density")
        over = integrals(self.vertices, self.faces)
        volume = over.volume
        if not math.isfinite(volume) or not np.isfinite(over.second).all():
            raise ModelError("mesh: the coordinates are too large to compute with; scale the mesh")
        if np.linalg.norm(over.vector_area) > OPEN_SURFACE * over.area:
            raise ModelError(
                "mesh: the surface is not closed or its faces do not all look to the same side, so it bounds "
                "no volume; repair the mesh or give the inertia"
            )
        low, high = self.bounds
        size = float(np.max(high - low))
        if abs(volume) <= 1e-12 * size * size * size:
            raise ModelError("mesh: the surface encloses no volume; give the inertia")
        m = mass if mass is not None else density * abs(volume)  # type: ignore[operator]
        if not math.isfinite(m) or m < 0.0:
            raise ModelError(f"mesh: mass is {m!r} kg; give a finite number that is not negative")
        return homogeneous_inertia(over, float(m))
