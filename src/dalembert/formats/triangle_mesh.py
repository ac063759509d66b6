"""Surfaces of triangles, and the inertia of the solids that they bound."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple, final

import numpy as np
import numpy.typing as npt

from dalembert.errors import ArgumentError, ModelError
from dalembert.model.shapes import ConvexMesh
from dalembert.model.shapes.convex_hull import homogeneous_inertia, integrals
from dalembert.spatial import RigidInertia

Vertices = npt.NDArray[np.float64]
Faces = npt.NDArray[np.int64]
Colour = tuple[float, float, float, float]

MAX_RELATIVE_VECTOR_AREA: Final = 1e-3
"""Greatest length of the vector area, relative to the area, of a surface that bounds a solid."""


class Surface(NamedTuple):
    """The content of a mesh file before it is checked: the arguments of `TriangleMesh`."""

    vertices: Vertices
    faces: Faces
    colours: Vertices = np.zeros((0, 4))
    colour_of_face: Faces = np.zeros(0, np.int64)


@final
@dataclass(frozen=True, eq=False)
class TriangleMesh:
    """A surface of triangles: `vertices` (n, 3) and `faces` (m, 3), the places of each face's vertices.

    Faces of a closed surface are counter-clockwise seen from outside. `colours` (k, 4) are those of the file:
    red, green, blue and opacity from 0 to 1. `colour_of_face` (m,) is the place of each face's colour, -1 for
    none. All arrays are read-only.
    """

    vertices: Vertices
    faces: Faces
    colours: Vertices = field(default_factory=lambda: np.zeros((0, 4)))
    colour_of_face: Faces = field(default_factory=lambda: np.zeros(0, np.int64))

    def __post_init__(self) -> None:
        for name, kind, width in (
            ("vertices", np.float64, 3),
            ("faces", np.int64, 3),
            ("colours", np.float64, 4),
        ):
            values = np.array(getattr(self, name), dtype=kind)
            if values.ndim != 2 or values.shape[1] != width:
                raise ArgumentError(f"mesh: {name} has the shape {values.shape}; expected (n, {width})")
            values.flags.writeable = False
            object.__setattr__(self, name, values)
        places = np.array(
            self.colour_of_face if len(self.colours) else -np.ones(len(self.faces)), dtype=np.int64
        )
        if places.shape != (len(self.faces),) or np.any((places < -1) | (places >= len(self.colours))):
            raise ArgumentError(
                f"mesh: colour_of_face has the shape {places.shape}; give each of {len(self.faces)} faces "
                f"the place of one of the {len(self.colours)} colours, or -1"
            )
        places.flags.writeable = False
        object.__setattr__(self, "colour_of_face", places)
        if self.faces.size and not (self.faces.min() >= 0 and self.faces.max() < len(self.vertices)):
            raise ArgumentError(
                f"mesh: a face names vertex {self.faces.min()} or {self.faces.max()}; there are "
                f"{len(self.vertices)} vertices, from 0"
            )
        if not np.isfinite(self.vertices).all():
            raise ArgumentError("mesh: a vertex is not finite")

    @property
    def corners(self) -> Vertices:
        """The vertices (n, 3) that faces use."""
        return self.vertices[np.unique(self.faces)]

    @property
    def bounds(self) -> tuple[Vertices, Vertices]:
        """The least and the greatest coordinates (3,) of the faces' vertices."""
        return self.corners.min(axis=0), self.corners.max(axis=0)

    @property
    def volume(self) -> float:
        """The volume that the surface encloses; not negative, also where it is inside out."""
        return abs(integrals(self.vertices, self.faces).volume)

    def scale_by(self, scale: float | Sequence[float]) -> TriangleMesh:
        """Return the mesh scaled by one factor or three along x, y, z; a mirrored one still faces outward."""
        factors = np.broadcast_to(np.asarray(scale, dtype=np.float64), (3,))
        if not np.isfinite(factors).all() or not factors.all():
            raise ArgumentError(f"mesh: scale is {scale!r}; give finite numbers, none zero")
        faces = self.faces[:, ::-1] if np.prod(np.sign(factors)) < 0.0 else self.faces
        return replace(self, vertices=self.vertices * factors, faces=faces)

    def pieces(self) -> Iterator[tuple[TriangleMesh, Colour | None]]:
        """Yield the faces of each colour as a mesh of their own, those without a colour with None."""
        for number in np.unique(self.colour_of_face).tolist():
            faces = self.faces[self.colour_of_face == number]
            used, places = np.unique(faces, return_inverse=True)
            piece = TriangleMesh(self.vertices[used], places.reshape(-1, 3))
            if number < 0:
                yield piece, None
            else:
                red, green, blue, opacity = self.colours[number].tolist()
                yield piece, (red, green, blue, opacity)

    def hull(self, **options: Any) -> ConvexMesh:
        """Return the convex hull of the mesh as a shape; `options` are those of shapes, such as `placement`.

        >>> from dalembert.formats.meshes import TriangleMesh
        >>> mesh = TriangleMesh([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)], [(0, 2, 1), (0, 1, 3)])
        >>> round(mesh.scale_by(0.1).hull(name="stone").volume, 9)
        0.000166667
        """
        return ConvexMesh(self.corners.tolist(), **options)

    def inertia(self, *, mass: float | None = None, density: float | None = None) -> RigidInertia:
        """Return the inertia of the homogeneous solid inside the surface, from its mass [kg] or its density
        [kg/m^3].

        The mesh is in metres (`scale_by` converts it). Surfaces that are not closed are rejected.
        """
        if (mass is None) == (density is None):
            raise ArgumentError("mesh: give either mass or density")
        over = integrals(self.vertices, self.faces)
        volume = over.volume
        if not math.isfinite(volume) or not np.isfinite(over.second).all():
            raise ModelError("mesh: the coordinates are too large to compute with; scale the mesh")
        if np.linalg.norm(over.vector_area) > MAX_RELATIVE_VECTOR_AREA * over.area:
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
