"""STL and OBJ files, and the material files (`.mtl`) of OBJ.

Binary STL: 80 bytes of header, the number of faces (uint32), then 50 bytes a face: a normal and three
vertices (float32, little endian) and two bytes without meaning. Its header may begin with "solid", as text
does; but it holds a NUL byte, at the latest in the number of faces, which no text does.

OBJ: normals, texture coordinates, groups, lines, points and smoothing are passed over: they do not change the
solid. Polygons are cut into triangles that share their first vertex. A face has the diffuse colour (`Kd`) of
its material. Material files are read below the OBJ file's own folder; one that is missing costs only colours.
"""

from __future__ import annotations

import contextlib
import io
import math
from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import numpy as np

from dalembert.errors import FileError
from dalembert.formats.resources import read_regular_file
from dalembert.formats.triangle_mesh import Colour, Surface, Vertices

MAX_MESH_FACES: Final = 2_500_000
"""Meshes with more faces are rejected, before memory is taken for them."""

# STL

STL_HEADER_BYTES: Final = 84
"""Bytes before the faces of a binary file: 80 of header text, 4 of the number of faces."""
_STL_FACE: Final = np.dtype([("normal", "<f4", 3), ("vertices", "<f4", (3, 3)), ("attribute", "<u2")])
_STL_WORDS_WITHOUT_NUMBERS: Final = (b"solid", b"endsolid", b"facet", b"outer", b"endloop", b"endfacet")


def read_stl(content: bytes, file: Path) -> Surface:
    """Read an STL file; each face has vertices of its own."""
    name = str(file)
    start = content[:1024]
    is_text = start.lstrip()[:5].lower() == b"solid" and b"\0" not in start
    points = _text_stl(content, name) if is_text else _binary_stl(content, name)
    return Surface(points, np.arange(len(points), dtype=np.int64).reshape(-1, 3))


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


def read_obj(content: bytes, file: Path) -> Surface:
    """Read an OBJ file, and the colours of its faces where it names files of materials."""
    name, numbers, corners = str(file), array("d"), array("q")
    greatest, greatest_line = -1, 0  # a face may precede its vertices, so the range is known at the end
    libraries: list[bytes] = []
    materials: dict[bytes, int] = {b"": 0}
    material_of_face, material = array("q"), 0
    for line, words in _statements(content):
        if words[0] == b"v":
            _append_vertex(numbers, words, name, line)
        elif words[0] == b"f":
            polygon = _polygon(words, len(numbers) // 3, name, line)
            for k in range(1, len(polygon) - 1):
                corners.extend((polygon[0], polygon[k], polygon[k + 1]))
                material_of_face.append(material)
            if max(polygon) > greatest:
                greatest, greatest_line = max(polygon), line
            _check_face_count(len(corners) // 3, name, line)
        elif words[0] == b"usemtl":
            material = materials.setdefault(b" ".join(words[1:]), len(materials))
        elif words[0] == b"mtllib":
            libraries += [b" ".join(words[1:]), *words[1:]]
        elif words[0] in _FREE_FORM:
            raise _error(name, line, f"{_quote(words)} is not supported; export the mesh as polygons")
    count = len(numbers) // 3
    if greatest >= count:
        raise _error(
            name, greatest_line, f"a face names vertex {greatest + 1}, but the file has {count} vertices"
        )
    vertices = np.array(numbers, dtype=np.float64).reshape(-1, 3)
    faces = np.array(corners, dtype=np.int64).reshape(-1, 3)
    known = _material_colours(libraries[:MAX_LIBRARIES], file.parent) if len(materials) > 1 else {}
    colours = {material: known[material] for material in materials if material in known}
    place = np.array([list(colours).index(m) if m in colours else -1 for m in materials])
    palette = np.array(list(colours.values()), dtype=np.float64).reshape(-1, 4)
    return Surface(vertices, faces, palette, place[np.array(material_of_face, dtype=np.int64)])


MAX_LIBRARIES: Final = 64
"""Files of materials that are looked for; what an OBJ file names beyond them has no colour."""
MAX_LIBRARY_BYTES: Final = 4 * 1024 * 1024
"""Larger files of materials are not read."""


def _material_colours(libraries: Iterable[bytes], folder: Path) -> dict[bytes, Colour]:
    """Return the diffuse colours in the files of materials that lie in a folder or below it."""
    found: dict[bytes, Colour] = {}
    for name in dict.fromkeys(libraries):
        with contextlib.suppress(FileError, OSError, RuntimeError, ValueError):
            path = (folder / name.decode()).resolve()
            if path.is_relative_to(folder.resolve()):
                content = read_regular_file(path, limit=MAX_LIBRARY_BYTES)
                for material, colour in _diffuse_colours(content):
                    found.setdefault(material, colour)
    return found


def _diffuse_colours(content: bytes) -> Iterator[tuple[bytes, Colour]]:
    """Yield the materials with a colour and no texture; a line that is not understood has no effect."""
    material, colour = b"", None
    for _, words in _statements(content + b"\nnewmtl\n"):
        if words[0] == b"newmtl":
            if colour is not None:
                yield material, colour
            material, colour = b" ".join(words[1:]), None
        elif words[0] == b"Kd" and len(words) == 4:
            with contextlib.suppress(ValueError):
                red, green, blue = (min(max(float(word), 0.0), 1.0) for word in words[1:])
                colour = (red, green, blue, 1.0) if red + green + blue < math.inf else None
        elif words[0] == b"map_Kd":
            colour = None


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
