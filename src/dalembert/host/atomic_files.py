"""Files written as a whole or not at all.

The content goes to a temporary file in the target's folder, is forced to the disk, and takes the target's
place by one rename. A full disk, an exception or a killed process therefore leaves the earlier file as it
was; after a kill the temporary file `.dalembert-….tmp` stays behind.

A symbolic link stays, and its target is written. An existing file keeps its permissions; a new one gets those
of the umask. Pipes, devices and open descriptors (`/dev/stdout`) are written directly.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

from dalembert.errors import FileError

TEMPORARY_NAME: Final = re.compile(r"\.dalembert-[0-9a-f]{16}\.tmp")
"""The names of temporary files; no other file is ever taken for one."""

MAX_LINKS: Final = 40
"""Symbolic links followed to the target, as many as Linux follows."""

_DESCRIPTOR: Final = re.compile(r"(?:/proc/self|/dev)/fd/(\d+)")


def write_file(path: str | os.PathLike[str], content: bytes | str, *, sync: bool = True) -> None:
    """Write a file, text as UTF-8; a file of that name is replaced only once the new one is complete.

    `sync=False` does not wait for the disk: a power cut may then leave an empty file.
    """
    if isinstance(content, str):
        try:
            content = content.encode("utf-8")
        except UnicodeEncodeError as error:
            shown = error.object[max(0, error.start - 20) : error.end]
            raise FileError(
                f"{path} cannot be written: a name holds characters that are not text, {shown!r}; rename it"
            ) from error
    with replacing(path, sync=sync) as file:
        file.write(content)


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str], *, sync: bool = True) -> Iterator[BinaryIO]:
    """Open a file to write bytes to; when the block ends without an exception, it replaces the file `path`.

    What the system refuses (no space, no permission) is a `FileError`, and the earlier file stays.
    """
    temporary: Path | None = None
    _refuse_impossible_name(path)
    try:
        target = _behind_links(Path(path))
        if descriptor_name := _DESCRIPTOR.fullmatch(os.path.abspath(target)):
            # A duplicate shares the position in the file, so that what is printed later comes after it.
            with open(os.dup(int(descriptor_name[1])), "wb") as file:
                yield file
            return
        mode = _mode(target)
        if mode is not None and not stat.S_ISREG(mode):
            if stat.S_ISDIR(mode):
                raise FileError(f"{path} is a folder; name a file in it")
            with open(target, "wb") as file:
                yield file
            return
        temporary = target.with_name(f".dalembert-{secrets.token_hex(8)}.tmp")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        # The umask narrows 0o666 to the mode of a new file; the mode of an existing one is set below.
        descriptor = os.open(temporary, flags, 0o666 if mode is None else 0o600)
        with open(descriptor, "wb") as file:
            if mode is not None and hasattr(os, "fchmod"):
                os.fchmod(descriptor, stat.S_IMODE(mode))
            yield file
            file.flush()
            if sync:
                os.fsync(descriptor)
        os.replace(temporary, target)
        temporary = None
    except OSError as error:
        raise FileError(
            f"{path} cannot be written: {error.strerror or error}; check the folder, its permissions and the "
            "space left"
        ) from error
    finally:
        if temporary is not None:
            with contextlib.suppress(OSError):
                temporary.unlink()


def _refuse_impossible_name(path: str | os.PathLike[str]) -> None:
    """Refuse names that no system has, about which Python raises other exceptions than `OSError`."""
    try:
        impossible = b"\0" in os.fsencode(path)
    except UnicodeEncodeError:
        impossible = True
    if impossible:
        raise FileError(f"{str(path)!r} cannot be written: no file can have this name; choose another")


def _behind_links(path: Path) -> Path:
    """Return what a chain of symbolic links leads to; a ring of links is left for the system to refuse."""
    target = path
    for _ in range(MAX_LINKS):
        if _DESCRIPTOR.fullmatch(os.path.abspath(target)) or not target.is_symlink():
            break
        target = target.parent / os.readlink(target)
    return target


def _mode(target: Path) -> int | None:
    """Return the kind and the permissions of an existing file that may be written; None for a new one."""
    try:
        mode = os.stat(target).st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISREG(mode) and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, "the file is read-only", str(target))
    return mode
