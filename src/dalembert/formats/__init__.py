"""Models in files: `load` and `save` choose the format by the file's ending.

`.json` holds a whole model without loss. Files are read once, up to a limit; nothing in them is executed.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, TypeVar

from dalembert.errors import FileError, UnknownNameError
from dalembert.model.model import Model

__all__ = ["MAX_FILE_BYTES", "load", "save"]

T = TypeVar("T")

MAX_FILE_BYTES: Final = 64 * 1024 * 1024
"""Larger files are refused before they are read."""


def load(path: str | os.PathLike[str]) -> Model:
    """The model in a file."""
    file = Path(path)
    reader = _by_ending(file, READERS, "load")
    try:
        return reader(_content(file))
    except FileError:
        raise
    except ValueError as error:
        raise FileError(f"{file}: {error}") from error


def save(model: Model, path: str | os.PathLike[str]) -> None:
    """Write a model to a file; a file of that name is replaced only once the new one is complete."""
    file = Path(path)
    content = _by_ending(file, WRITERS, "save")(model)
    try:
        with tempfile.TemporaryDirectory(dir=file.parent, prefix=f".{file.name}.") as folder:
            draft = Path(folder) / file.name
            draft.write_text(content, encoding="utf-8")
            draft.replace(file)
    except OSError as error:
        raise FileError(
            f"{file} cannot be written: {error.strerror}; check the folder and its permissions"
        ) from error


READERS: Final[dict[str, Callable[[bytes], Model]]] = {".json": Model.from_json}
WRITERS: Final[dict[str, Callable[[Model], str]]] = {".json": Model.to_json}


def _by_ending(file: Path, known: Mapping[str, T], action: str) -> T:
    ending = file.suffix.lower()
    if ending not in known:
        raise UnknownNameError.of(f"file format to {action}", ending or file.name, known)
    return known[ending]


def _content(file: Path) -> bytes:
    """The bytes of a regular file of bounded size."""
    try:
        status = file.stat()
        if stat.S_ISDIR(status.st_mode):
            raise FileError(f"{file} is a folder; name a file in it")
        if not stat.S_ISREG(status.st_mode):
            raise FileError(f"{file} is not a regular file")
        if status.st_size > MAX_FILE_BYTES:
            raise FileError(f"{file} has {status.st_size} bytes; files up to {MAX_FILE_BYTES} bytes are read")
        content = file.read_bytes()
    except OSError as error:
        raise FileError(f"{file} cannot be read: {error.strerror}") from error
    if not content.strip():
        raise FileError(f"{file} is empty")
    return content
