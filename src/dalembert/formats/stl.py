"""STL: triangles, as text or in binary.

Binary: 80 bytes of header, the number of faces (uint32), then 50 bytes a face: a normal and three vertices
(float32, little endian) and two bytes without meaning. The header of a binary file may begin with "solid", as
text files do; but it holds a NUL byte, at the latest in the number of faces, which no text does.
"""

from __future__ import annotations

import io
from array import array
from typing import Final

import numpy as np
import numpy.typing as npt

from dalembert.errors import FileError

__all__ = ["read_stl"]

Vertices = npt.NDArray[np.float64]
Faces = npt.NDArray[np.int64]

HEADER_BYTES: Final = 84
"""Bytes before the faces of a binary file: 80 of header text, 4 of the number of faces."""
FACE_BYTES: Final = 50
"""Bytes of a face in a binary file: twelve float32 and two bytes without meaning."""

_RECORD: Final = np.dtype([("normal", "<f4", 3), ("vertices", "<f4", (3, 3)), ("attribute", "<u2")])
_SILENT: Final = frozenset((b"solid", b"endsolid", b"facet", b"outer", b"endloop", b"endfacet"))


def read_stl(content: bytes, *, name: str, max_faces: int) -> tuple[Vertices, Faces]:
    """Read vertices (3m, 3) and faces (m, 3) of an STL file; each face has vertices of its own."""
    if _is_text(content):
        points = _text(content, name=name, max_faces=max_faces)
    else:
        points = _binary(content, name=name, max_faces=max_faces)
    return points, np.arange(len(points), dtype=np.int64).reshape(-1, 3)


def _is_text(content: bytes) -> bool:
    start = content[:1024]
    return start.lstrip()[:5].lower() == b"solid" and b"\0" not in start


def _binary(content: bytes, *, name: str, max_faces: int) -> Vertices:
    if len(content) < HEADER_BYTES:
        raise FileError(
            f'{name}: not an STL file: it neither starts with "solid" nor has the {HEADER_BYTES} bytes of '
            "a binary header"
        )
    count = int.from_bytes(content[80:HEADER_BYTES], "little")
    if count > max_faces:
        raise FileError(f"{name}: the header promises {count} faces; up to {max_faces} are read")
    if len(content) != HEADER_BYTES + FACE_BYTES * count:
        held = (len(content) - HEADER_BYTES) / FACE_BYTES
        raise FileError(
            f"{name}: the header promises {count} faces ({HEADER_BYTES + FACE_BYTES * count} bytes), but the "
            f"file has {len(content)} bytes (room for {held:g} faces); it is truncated or not an STL file"
        )
    records = np.frombuffer(content, dtype=_RECORD, count=count, offset=HEADER_BYTES)
    return records["vertices"].reshape(-1, 3).astype(np.float64)


def _text(content: bytes, *, name: str, max_faces: int) -> Vertices:
    numbers = array("d")
    in_facet = 0  # vertices seen since "facet"
    for line_number, line in enumerate(io.BytesIO(content), 1):
        words = line.split()
        if not words:
            continue
        word = words[0].lower()
        if word == b"vertex":
            if len(words) != 4:
                raise FileError(
                    f"{name} line {line_number}: a vertex has three numbers, found {len(words) - 1}"
                )
            try:
                numbers.extend((float(words[1]), float(words[2]), float(words[3])))
            except ValueError:
                shown = line.strip()[:80].decode(errors="replace")
                raise FileError(
                    f'{name} line {line_number}: "{shown}" is not a vertex of three numbers'
                ) from None
            in_facet += 1
        elif word == b"endfacet":
            if in_facet != 3:
                raise FileError(f"{name} line {line_number}: a facet has three vertices, found {in_facet}")
            in_facet = 0
            if len(numbers) > 9 * max_faces:
                raise FileError(
                    f"{name} line {line_number}: more than {max_faces} faces; up to these are read"
                )
        elif word not in _SILENT:
            shown = line.strip()[:40].decode(errors="replace")
            raise FileError(
                f'{name} line {line_number}: found "{shown}" where a line of an STL file '
                "(facet, outer loop, vertex, endloop, endfacet, endsolid) should be"
            )
    if in_facet:
        raise FileError(f"{name}: the last facet is not closed; the file is truncated")
    return np.frombuffer(numbers, dtype=np.float64).reshape(-1, 3) if numbers else np.zeros((0, 3))
