"""Meshes: the triangles in STL and OBJ files, the inertia of the solid they bound, the meshes of a model.

Binary STL: 80 bytes of header, the number of faces (uint32), then 50 bytes a face: a normal and three
vertices (float32, little endian) and two bytes without meaning. Its header may begin with "solid", as text
does; but it holds a NUL byte, at the latest in the number of faces, which no text does.

OBJ: normals, texture coordinates, materials, groups, lines, points and smoothing are passed over: they do not
change the solid. Polygons are cut into triangles that share their first vertex.
"""

from __future__ import annotations

import io
import math
import os
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, final

import numpy as np
import numpy.typing as npt

from dalembert.errors import ArgumentError, FileError, ModelError, UnknownNameError
from dalembert.formats.resources import (
    MissingResourceError,
    Resources,
    read_regular_file,
    reported_as_file_errors,
)
from dalembert.model.model import Model
from dalembert.model.shapes import ConvexMesh, Mesh, Shape
from dalembert.model.shapes.convex_hull import homogeneous_inertia, hull_of, integrals
from dalembert.model.values import rebuilt
from dalembert.spatial import RigidInertia

Vertices = npt.NDArray[np.float64]
Faces = npt.NDArray[np.int64]

MAX_MESH_BYTES: Final = 128 * 1024 * 1024
"""Larger mesh files are rejected before they are read."""
MAX_MESH_FACES: Final = 2_500_000
"""Meshes with more faces are rejected, before memory is taken for them."""
MAX_RELATIVE_VECTOR_AREA: Final = 1e-3
"""Greatest length of the vector area, relative to the area, of a surface that bounds a solid."""


@final
@dataclass(frozen=True, eq=False)
class TriangleMesh:
    """A surface of triangles: `vertices` (n, 3) and `faces` (m, 3), the places of each face's vertices.

    Faces of a closed surface are counter-clockwise seen from outside. Both arrays are read-only.
    """

    vertices: Vertices
    faces: Faces

    def __post_init__(self) -> None:
        for name, kind in (("vertices", np.float64), ("faces", np.int64)):
            values = np.array(getattr(self, name), dtype=kind)
            if values.ndim != 2 or values.shape[1] != 3:
                raise ArgumentError(f"mesh: {name} has the shape {values.shape}; expected (n, 3)")
            values.flags.writeable = False
            object.__setattr__(self, name, values)
        if not np.isfinite(self.vertices).all():
            raise ArgumentError("mesh: a vertex is not finite")
        if self.faces.size and not (self.faces.min() >= 0 and self.faces.max() < len(self.vertices)):
            raise ArgumentError(
                f"mesh: a face names vertex {self.faces.min()} or {self.faces.max()}; there are "
                f"{len(self.vertices)} vertices, from 0"
            )

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

    def scaled(self, scale: float | Sequence[float]) -> TriangleMesh:
        """Return the mesh scaled by one factor or three along x, y, z; a mirrored one still faces outward."""
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
        return ConvexMesh(self.corners.tolist(), **options)

    def inertia(self, *, mass: float | None = None, density: float | None = None) -> RigidInertia:
        """Return the inertia of the homogeneous solid inside the surface, from its mass [kg] or its density
        [kg/m^3].

        The mesh is in metres (`scaled` gets it there). Surfaces that are not closed are rejected.
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
        vertices, faces = reader(content, str(file))
    if not len(faces):
        raise FileError(f"{file}: the file has no faces")
    finite = np.isfinite(vertices).all(axis=1)
    if not finite.all():
        first = int(np.argmin(finite))
        raise FileError(
            f"{file}: vertex {first + 1} is {vertices[first].tolist()}; every number must be finite"
        )
    return TriangleMesh(vertices, faces)


def mesh_of(shape: Mesh) -> TriangleMesh:
    """Return the mesh that a shape names, scaled as the shape says."""
    if not shape.readable or "://" in shape.path:
        raise FileError(
            f'mesh "{shape.path}" was not found when the model was loaded, or lies outside the folders that '
            "the model file may name; name its folder in roots=[…], or trust the file (trusted=True)"
        )
    return read_mesh(shape.path).scaled(shape.scale)


# The meshes of a model


def with_hulls(model: Model) -> Model:
    """Return the model with the hull of every mesh that collides; a mesh that is drawn stays to be drawn.

    MuJoCo and most engines collide meshes so. A file that is missing, or that holds no volume, is an error.
    """

    def hulls(shape: Mesh, _: str) -> Iterator[Shape]:
        if shape.visual or not shape.collision:  # the name is the hull's
            yield replace(shape, collision=False, name="") if shape.collision else shape
        if shape.collision:
            yield hull_of(replace(shape, visual=False))

    return _with_meshes(model, hulls)


def resolve_meshes(model: Model, resources: Resources) -> Model:
    """Return the model with meshes that may be read; a mesh outside the allowed folders is a `FileError`.

    A relative name starts at the model file's folder. A mesh that is missing stays with its name and is not
    readable.
    """
    return _with_meshes(model, lambda shape, body: [_resolve(shape, resources, body)])


def resolve_allowed_meshes(model: Model, resources: Resources) -> Model:
    """Return the model with the same meshes, of which those outside the allowed folders are not readable.

    A trajectory is worth loading without the pictures of its bodies: its meshes often lie elsewhere, or on
    another machine.
    """
    outside: list[str] = []

    def resolve(shape: Mesh, body: str) -> Iterator[Mesh]:
        try:
            yield _resolve(shape, resources, body)
        except FileError as error:
            outside.append(str(error))
            yield replace(shape, readable=False)

    found = _with_meshes(model, resolve)
    if not outside:
        return found
    more = f" ({len(outside)} meshes like this)" if len(outside) > 1 else ""
    return rebuilt(found, report=(*found.report, f"warning: not read: {outside[0]}{more}"))


def with_relative_mesh_names(model: Model, folder: Path) -> Model:
    """Return the model with meshes below a folder named relative to it, so that both can move together."""
    below = folder.resolve()

    def rename(shape: Mesh, _: str) -> Iterator[Mesh]:
        path = Path(shape.path)
        inside = path.is_absolute() and path.is_relative_to(below)
        yield replace(shape, path=path.relative_to(below).as_posix()) if inside else shape

    return _with_meshes(model, rename)


def _resolve(shape: Mesh, resources: Resources, body: str) -> Mesh:
    path = Path(shape.path)
    # Saved models name meshes by absolute paths, which are as good as relative ones below an allowed folder.
    if path.is_absolute() and resources.admits(path):
        return replace(shape, path=str(path.resolve()), readable=True)
    try:
        found = resources.resolve(shape.path, what=f'mesh of "{body}"')
    except MissingResourceError:
        return replace(shape, readable=False)
    return replace(shape, path=str(found), readable=True)


def _with_meshes(model: Model, replacement: Callable[[Mesh, str], Iterable[Shape]]) -> Model:
    """Return the model with every mesh replaced by shapes; the same model if it has none."""

    def replace_in(shapes: Iterable[Shape], body: str) -> tuple[Shape, ...]:
        return tuple(
            new
            for shape in shapes
            for new in (replacement(shape, body) if isinstance(shape, Mesh) else (shape,))
        )

    every = [*model.world_shapes, *(shape for body in model.bodies for shape in body.shapes)]
    if not any(isinstance(shape, Mesh) for shape in every):
        return model
    return rebuilt(
        model,
        bodies=[replace(body, shapes=replace_in(body.shapes, body.name)) for body in model.bodies],
        world_shapes=replace_in(model.world_shapes, "world"),
    )


# STL

STL_HEADER_BYTES: Final = 84
"""Bytes before the faces of a binary file: 80 of header text, 4 of the number of faces."""
_STL_FACE: Final = np.dtype([("normal", "<f4", 3), ("vertices", "<f4", (3, 3)), ("attribute", "<u2")])
_STL_WORDS_WITHOUT_NUMBERS: Final = (b"solid", b"endsolid", b"facet", b"outer", b"endloop", b"endfacet")


def _read_stl(content: bytes, name: str) -> tuple[Vertices, Faces]:
    """Read vertices (3m, 3) and faces (m, 3) of an STL file; each face has vertices of its own."""
    start = content[:1024]
    is_text = start.lstrip()[:5].lower() == b"solid" and b"\0" not in start
    points = _text_stl(content, name) if is_text else _binary_stl(content, name)
    return points, np.arange(len(points), dtype=np.int64).reshape(-1, 3)


def _binary_stl(content: bytes, name: str) -> Vertices:
    if len(content) < STL_HEADER_BYTES:
        raise FileError(
            f'{name}: not an STL file: it neither starts with "solid" nor has the {STL_HEADER_BYTES} bytes '
            "of a binary header"
        )
    count = int.from_bytes(content[80:STL_HEADER_BYTES], "little")
    if count > MAX_MESH_FACES:
        raise FileError(f"{name}: the header promises {count} faces; up to {MAX_MESH_FACES} are read")
    size = STL_HEADER_BYTES + _STL_FACE.itemsize * count
    if len(content) != size:
        room = (len(content) - STL_HEADER_BYTES) / _STL_FACE.itemsize
        raise FileError(
            f"{name}: the header promises {count} faces ({size} bytes), but the file has {len(content)} "
            f"bytes (room for {room:g} faces); it is truncated or not an STL file"
        )
    records = np.frombuffer(content, dtype=_STL_FACE, count=count, offset=STL_HEADER_BYTES)
    return records["vertices"].reshape(-1, 3).astype(np.float64)


def _text_stl(content: bytes, name: str) -> Vertices:
    numbers = array("d")
    in_facet = 0  # vertices seen since "facet"
    for line, text in enumerate(io.BytesIO(content), 1):
        words = text.split()
        if not words:
            continue
        word = words[0].lower()
        if word == b"vertex":
            if len(words) != 4:
                raise _error(name, line, f"a vertex has three numbers, found {len(words) - 1}")
            _append_vertex(numbers, words, name, line)
            in_facet += 1
        elif word not in _STL_WORDS_WITHOUT_NUMBERS:
            raise _error(
                name, line, f'found "{_decode(text.strip(), 40)}" where a line of an STL file '
                "(facet, outer loop, vertex, endloop, endfacet, endsolid) should be"
            )  # fmt: skip
        elif word == b"endfacet":
            if in_facet != 3:
                raise _error(name, line, f"a facet has three vertices, found {in_facet}")
            in_facet = 0
            _check_face_count(len(numbers) // 9, name, line)
    if in_facet:
        raise FileError(f"{name}: the last facet is not closed; the file is truncated")
    return np.array(numbers, dtype=np.float64).reshape(-1, 3)


# OBJ

MAX_VERTEX_INDEX: Final = 2**62
"""Larger indices are nonsense and would not fit into an array."""
_FREE_FORM: Final = (b"curv", b"curv2", b"surf", b"cstype", b"call", b"csh")
"""Free-form geometry and commands: skipping them would lose a part of the solid."""


def _read_obj(content: bytes, name: str) -> tuple[Vertices, Faces]:
    """Read vertices (n, 3) and faces (m, 3) of an OBJ file."""
    numbers, corners = array("d"), array("q")
    greatest, greatest_line = -1, 0  # a face may precede its vertices, so the range is known at the end
    for line, words in _statements(content):
        if words[0] == b"v":
            _append_vertex(numbers, words, name, line)
        elif words[0] == b"f":
            polygon = _polygon(words, len(numbers) // 3, name, line)
            for k in range(1, len(polygon) - 1):
                corners.extend((polygon[0], polygon[k], polygon[k + 1]))
            if max(polygon) > greatest:
                greatest, greatest_line = max(polygon), line
            _check_face_count(len(corners) // 3, name, line)
        elif words[0] in _FREE_FORM:
            raise _error(name, line, f"{_quote(words)} is not supported; export the mesh as polygons")
    count = len(numbers) // 3
    if greatest >= count:
        raise _error(
            name, greatest_line, f"a face names vertex {greatest + 1}, but the file has {count} vertices"
        )
    vertices = np.array(numbers, dtype=np.float64).reshape(-1, 3)
    return vertices, np.array(corners, dtype=np.int64).reshape(-1, 3)


def _statements(content: bytes) -> Iterator[tuple[int, list[bytes]]]:
    """Yield the words of each statement with the number of its first line; a backslash continues a line."""
    words: list[bytes] = []
    first = 0
    for line, raw in enumerate(io.BytesIO(content), 1):
        text = raw.partition(b"#")[0].rstrip()
        first = first or line
        continued = text.endswith(b"\\")
        words += text[:-1].split() if continued else text.split()
        if not continued:
            if words:
                yield first, words
            words, first = [], 0
    if words:
        yield first, words


def _polygon(words: list[bytes], count: int, name: str, line: int) -> list[int]:
    """Return the indices of the polygon's vertices, from 0; the file counts from 1, or with negative numbers
    back from the last of the `count` vertices so far.
    """
    if len(words) < 4:
        shown = f"{_quote(words)} has {len(words) - 1} vertices"
        raise _error(name, line, f"{shown}; a face has at least three")
    places = []
    for word in words[1:]:
        try:
            index = int(word.partition(b"/")[0])
        except ValueError:
            index = 0
        if index == 0 or abs(index) > MAX_VERTEX_INDEX:
            shown = f'{_quote(words)} holds "{_decode(word, 40)}"'
            raise _error(name, line, f"{shown}, which is not a vertex index")
        places.append(index - 1 if index > 0 else count + index)
        if places[-1] < 0:
            raise _error(name, line, f"a face names vertex {index}, but {count} vertices precede it")
    return places


def _append_vertex(numbers: array[float], words: list[bytes], name: str, line: int) -> None:
    try:
        numbers.extend((float(words[1]), float(words[2]), float(words[3])))
    except (ValueError, IndexError):
        raise _error(name, line, f"{_quote(words)} is not a vertex of three numbers") from None


def _check_face_count(count: int, name: str, line: int) -> None:
    if count > MAX_MESH_FACES:
        raise _error(name, line, f"more than {MAX_MESH_FACES} faces; up to these are read")


def _error(name: str, line: int, message: str) -> FileError:
    return FileError(f"{name} line {line}: {message}")


def _quote(words: list[bytes]) -> str:
    return f'"{_decode(b" ".join(words[:6]), 60)}"'


def _decode(text: bytes, length: int) -> str:
    return text.decode(errors="replace")[:length]


READERS: Final[dict[str, Callable[[bytes, str], tuple[Vertices, Faces]]]] = {
    ".stl": _read_stl,
    ".obj": _read_obj,
}
