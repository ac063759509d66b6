"""Wavefront OBJ: its vertices and faces.

Normals, texture coordinates, materials, groups, lines, points and smoothing are passed over: they do not
change the solid. Polygons are cut into triangles that share their first vertex.
"""

from __future__ import annotations

import io
from array import array
from collections.abc import Iterator
from typing import Final, NoReturn

import numpy as np
import numpy.typing as npt

from dalembert.errors import FileError

__all__ = ["read_obj"]

Vertices = npt.NDArray[np.float64]
Faces = npt.NDArray[np.int64]

_LARGEST: Final = 2**62
"""Larger indices are nonsense and would not fit into an array."""
_REFUSED: Final = frozenset((b"curv", b"curv2", b"surf", b"cstype", b"call", b"csh"))
"""Free-form geometry and commands: skipping them would lose a part of the solid."""


def read_obj(content: bytes, *, name: str, max_faces: int) -> tuple[Vertices, Faces]:
    """Read vertices (n, 3) and faces (m, 3) of an OBJ file."""
    numbers = array("d")
    corners = array("q")
    greatest, greatest_line = -1, 0  # a face may precede its vertices, so the range is known at the end
    for line_number, words in _statements(content):
        if words[0] == b"v":
            try:
                numbers.extend((float(words[1]), float(words[2]), float(words[3])))
            except (ValueError, IndexError):
                _refuse(name, line_number, words, "is not a vertex of three numbers")
        elif words[0] == b"f":
            polygon = _polygon(words, len(numbers) // 3, name, line_number)
            for k in range(1, len(polygon) - 1):
                corners.extend((polygon[0], polygon[k], polygon[k + 1]))
            if max(polygon) > greatest:
                greatest, greatest_line = max(polygon), line_number
            if len(corners) > 3 * max_faces:
                raise FileError(
                    f"{name} line {line_number}: more than {max_faces} faces; up to these are read"
                )
        elif words[0] in _REFUSED:
            _refuse(name, line_number, words, "is not supported; export the mesh as polygons")
    count = len(numbers) // 3
    if greatest >= count:
        raise FileError(
            f"{name} line {greatest_line}: a face names vertex {greatest + 1}, but the file has {count} "
            "vertices"
        )
    vertices = np.array(numbers, dtype=np.float64).reshape(-1, 3)
    return vertices, np.array(corners, dtype=np.int64).reshape(-1, 3)


def _statements(content: bytes) -> Iterator[tuple[int, list[bytes]]]:
    """Yield the words of each statement with the number of its first line; a backslash continues a line."""
    held: list[bytes] = []
    first = 0
    for line_number, line in enumerate(io.BytesIO(content), 1):
        text = line.partition(b"#")[0].rstrip()
        first = first or line_number
        continued = text.endswith(b"\\")
        held += text[:-1].split() if continued else text.split()
        if continued:
            continue
        if held:
            yield first, held
        held, first = [], 0
    if held:
        yield first, held


def _polygon(words: list[bytes], count: int, name: str, line_number: int) -> list[int]:
    """Return the indices of the polygon's vertices, from 0; the file counts from 1, or with negative numbers
    back from the last vertex so far.
    """
    if len(words) < 4:
        _refuse(name, line_number, words, f"has {len(words) - 1} vertices; a face has at least three")
    places = []
    for word in words[1:]:
        try:
            index = int(word.partition(b"/")[0])
        except ValueError:
            index = 0
        place = index - 1 if index > 0 else count + index
        if index == 0 or abs(index) > _LARGEST:
            _refuse(
                name,
                line_number,
                words,
                f'holds "{word.decode(errors="replace")[:40]}", which is not a vertex index',
            )
        if place < 0:
            raise FileError(
                f"{name} line {line_number}: a face names vertex {index}, but {count} vertices precede it"
            )
        places.append(place)
    return places


def _refuse(name: str, line_number: int, words: list[bytes], reason: str) -> NoReturn:
    shown = b" ".join(words[:6]).decode(errors="replace")[:60]
    raise FileError(f'{name} line {line_number}: "{shown}" {reason}')
