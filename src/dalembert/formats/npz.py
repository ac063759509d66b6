"""Arrays in `.npz` files, read in bounded memory: every size is known, and compared, before it is allocated.

An `.npz` file is a zip archive of `.npy` members: a header with the element type and the shape, then the
elements. A few bytes of it can promise gigabytes, so that nothing is unpacked until the member's size in the
archive agrees with its header, and the sizes of all members with the size of the file. Pickled objects are
never read.
"""

from __future__ import annotations

import contextlib
import math
import os
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Final, final

import numpy as np
import numpy.typing as npt

from dalembert.errors import FileError
from dalembert.formats.resources import open_regular_file

MAX_RATIO: Final = 200
"""Bytes that one byte of a file may unpack to. Trajectories reach 1.1 to 30, those of bodies at rest more;
a stream of zeros reaches 1032, which is the bound of the deflate format.
"""
SMALL_BYTES: Final = 64 * 1024 * 1024
"""Archives that unpack to less are read at any ratio."""
MAX_DIRECTORY_BYTES: Final = 1024 * 1024
"""Size of the archive's list of members, some 80 bytes each."""
MAX_DIMENSIONS: Final = 16
MAX_TEXT_LENGTH: Final = 16 * 1024 * 1024
"""Characters of one text; NumPy stores four bytes each."""
MAX_CODE_POINT: Final = 0x10FFFF

DAMAGED: Final = (
    ValueError, TypeError, KeyError, EOFError, RuntimeError, SyntaxError, NotImplementedError, IndexError,
    MemoryError, OverflowError, struct.error, tokenize.TokenError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip
"""What readers of archives and arrays raise about bytes that are none."""

_END_RECORD: Final = b"PK\x05\x06"
_END_RECORD_BYTES: Final = 22
_ENCRYPTED: Final = 0x1
_KINDS: Final = {"f": "numbers", "i": "whole numbers", "b": "booleans", "U": "text"}


@contextlib.contextmanager
def open_archive(path: str | os.PathLike[str]) -> Iterator[Archive]:
    """Open an `.npz` file to read arrays from; anything but an archive of arrays is a `FileError`."""
    file = Path(path)
    with open_regular_file(file) as stream, contextlib.ExitStack() as opened:
        with _convert_read_errors(file):
            size = stream.seek(0, os.SEEK_END)
            stream.seek(max(0, size - _END_RECORD_BYTES - 0xFFFF))
            tail = stream.read()
            at = tail.rfind(_END_RECORD)
            if at < 0 or len(tail) < at + _END_RECORD_BYTES:
                raise FileError(f"{file} cannot be read: it is no .npz file, or it is truncated")
            directory = struct.unpack_from("<I", tail, at + 12)[0]
            if directory > MAX_DIRECTORY_BYTES:
                raise FileError(
                    f"{file}: the list of members has {directory} bytes; up to {MAX_DIRECTORY_BYTES} are read"
                )
            archive = Archive(file, opened.enter_context(zipfile.ZipFile(stream)), size)
        yield archive


@final
class Archive:
    """The arrays of an open `.npz` file, by name; `names` are those of the members without their ending."""

    def __init__(self, path: Path, content: zipfile.ZipFile, size: int) -> None:
        self.path = path
        self._content = content
        self._size = size
        self._members: dict[str, zipfile.ZipInfo] = {}
        for member in content.infolist():
            name = member.filename.removesuffix(".npy")
            if name in self._members:
                raise FileError(f'{path} holds "{name[:60]}" twice')
            self._members[name] = member
        self.names = tuple(self._members)

    def check_names(self, expected: set[str]) -> None:
        """Refuse an archive with other members than these."""
        if missing := sorted(expected - set(self.names)):
            raise FileError(f'{self.path} holds no array "{missing[0][:60]}"; it may be truncated')
        if unknown := sorted(set(self.names) - expected):
            raise FileError(
                f"{self.path} holds {unknown[0][:60]!r}, which its head does not name; it was not saved by us"
            )

    def check_sizes(self) -> None:
        """Refuse an archive whose members together unpack to more than the file's size can mean."""
        total = sum(member.file_size for member in self._members.values())
        if total > max(SMALL_BYTES, MAX_RATIO * self._size):
            raise FileError(
                f"{self.path} would unpack to {total} bytes, {total // max(1, self._size)} times its size; "
                f"up to {MAX_RATIO} times is read: save it without compression (np.savez) if it is yours"
            )

    def text(self, name: str) -> str:
        """Return a text."""
        array = self.array(name, "U")
        if array.ndim:
            raise FileError(f'{self.path}: "{name}" has the shape {array.shape}; one text is expected')
        return str(array)

    def array(self, name: str, kinds: str) -> npt.NDArray[Any]:
        """Return an array whose elements are of one of the kinds "f" (float32, float64), "i" (integers), "b"
        (booleans) and "U" (text).
        """
        self.check_sizes()
        if name not in self._members:
            raise FileError(f'{self.path} holds no array "{name[:60]}"')
        member = self._members[name]
        if member.flag_bits & _ENCRYPTED or member.compress_type not in (
            zipfile.ZIP_STORED,
            zipfile.ZIP_DEFLATED,
        ):
            raise FileError(f'{self.path}: "{name[:60]}" is encrypted or compressed in an unknown way')
        with _convert_read_errors(self.path), self._content.open(member) as stream:
            shape, dtype = _header(stream)
            fits = dtype.kind in kinds and (dtype.kind != "f" or dtype.itemsize in (4, 8))
            if not fits and not ("i" in kinds and dtype.kind == "u" and dtype.itemsize < 8):
                expected = " or ".join(_KINDS[kind] for kind in kinds)
                raise FileError(f'{self.path}: "{name[:60]}" holds {str(dtype)[:40]}, not {expected}')
            if dtype.kind == "U" and dtype.itemsize > 4 * MAX_TEXT_LENGTH:
                raise FileError(
                    f'{self.path}: "{name[:60]}" has {dtype.itemsize // 4} characters; up to '
                    f"{MAX_TEXT_LENGTH} are read"
                )
            size, held = math.prod(shape) * dtype.itemsize, member.file_size - stream.tell()
            if len(shape) > MAX_DIMENSIONS or size != held:
                raise FileError(
                    f'{self.path}: "{name[:60]}" has the shape {shape[:MAX_DIMENSIONS]} of {dtype}, '
                    f"{size} bytes, but holds {held} bytes; it is damaged"
                )
            stream.seek(0)
            array: npt.NDArray[Any] = np.lib.format.read_array(stream, allow_pickle=False)  # by pieces
            stream.read(1)  # at the end of a member zipfile compares its checksum
            if dtype.kind == "U" and size:
                flat = np.frombuffer(array.tobytes(), np.dtype(np.uint32).newbyteorder(dtype.byteorder))
                if (flat > MAX_CODE_POINT).any() or ((flat >= 0xD800) & (flat < 0xE000)).any():
                    raise ValueError("a number that is no character")
        return array if dtype.isnative else array.astype(dtype.newbyteorder("="))


@contextlib.contextmanager
def _convert_read_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except FileError:
        raise
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror or error}") from error
    except DAMAGED as error:
        raise FileError(f"{path} cannot be read: it is not an .npz file, or it is damaged") from error


def _header(stream: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Return shape and element type of an array; the text of the header is data, never a program."""
    version = np.lib.format.read_magic(stream)
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if version not in readers:
        raise ValueError(f"unknown version {version} of the array format")
    shape, _, dtype = readers[version](stream)
    if any(n < 0 for n in shape):
        raise ValueError("a negative number of elements")
    return tuple(int(n) for n in shape), dtype
