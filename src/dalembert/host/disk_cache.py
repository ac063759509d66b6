"""Results kept on disk between processes.

A cache has one file an entry: a header line, the SHA-256 of the rest, a JSON description, and the bytes.
Files are written beside and renamed into place, so that readers and writers in any number of processes see
whole entries; one that is damaged all the same is deleted and made anew. The folder is private to the user,
since machine code in it is executed: one that others may write to is not used. It is bounded in size; what
was used longest ago goes first.

    DALEMBERT_CACHE_DIR    the folder; default: the user's cache folder
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import struct
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, final

from dalembert.errors import FileError
from dalembert.host.atomic_files import TEMPORARY_NAME, write_file

ENVIRONMENT: Final = "DALEMBERT_CACHE_DIR"

CONCURRENT_WRITERS: Final = 8
"""Processes that may fill the folder at once. A process looks through the folder when it has stored an eighth
of the room that it last found, since looking through thousands of entries costs 10 ms."""

STALE_SECONDS: Final = 3600.0
"""Age at which a temporary file was left behind by a process that died."""


def cache_directory() -> Path:
    """Return the folder of the cache, whether or not it exists."""
    given = os.environ.get(ENVIRONMENT)
    if given:
        return Path(given).expanduser()
    if sys.platform == "darwin":
        return Path("~/Library/Caches/dalembert").expanduser()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", "~/AppData/Local")).expanduser() / "dalembert" / "cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "dalembert"


def cache_writable() -> bool:
    """Return whether there is, or can be made, a folder for entries that only the user may write to."""
    folder = cache_folder()
    return folder is not None and os.access(folder, os.W_OK)


def cache_folder() -> Path | None:
    """Return the folder, created if necessary, or None if it cannot be used."""
    try:
        folder = cache_directory()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.stat()
    except (OSError, RuntimeError):
        return None
    if hasattr(os, "geteuid") and (status.st_uid != os.geteuid() or status.st_mode & 0o022):
        return None
    return folder


@final
class DiskCache:
    """The entries of one kind in the cache folder, which together have at most `max_bytes`.

    The name of an entry is a SHA-256 in hexadecimal and the suffix.
    """

    def __init__(self, kind: str, *, max_bytes: int) -> None:
        self.suffix = f".{kind}"
        self.max_bytes = max_bytes
        self._magic = f"dalembert {kind} 1\n".encode()
        self._entry_name = re.compile(r"[0-9a-f]{64}" + re.escape(self.suffix))
        self._rooms: dict[Path, float] = {}  # bytes that this process may store before it looks again

    def load(self, key: str) -> tuple[dict[str, Any], list[bytes]] | None:
        """Return the description and the pieces of an entry, or None if it does not exist or is damaged."""
        folder = cache_folder()
        if folder is None:
            return None
        path = folder / (key + self.suffix)
        try:
            content = path.read_bytes()
        except OSError:
            return None
        entry = self._decode(content)
        with contextlib.suppress(OSError):
            if entry is None:
                path.unlink()
            else:
                os.utime(path)
        return entry

    def store(self, key: str, description: Mapping[str, Any], pieces: Sequence[bytes]) -> bool:
        """Store an entry; False where that is impossible, which costs time and nothing else."""
        folder = cache_folder()
        if folder is None:
            return False
        try:
            # The checksum shows what a power cut left incomplete, so there is no need to wait for the disk.
            facts = {"description": dict(description), "sizes": [len(piece) for piece in pieces]}
            header = json.dumps(facts).encode()
            body = struct.pack("<Q", len(header)) + header + b"".join(pieces)
            content = self._magic + hashlib.sha256(body).digest() + body
            write_file(folder / (key + self.suffix), content, sync=False)
        except FileError:
            return False
        room = self._rooms.get(folder, 0.0) - len(content)
        full = room <= 0
        self._rooms[folder] = (self.max_bytes - self._evict(folder)) / CONCURRENT_WRITERS if full else room
        return True

    def _decode(self, content: bytes) -> tuple[dict[str, Any], list[bytes]] | None:
        start = len(self._magic) + 32
        body = content[start:]
        checksum = content[len(self._magic) : start]
        if not content.startswith(self._magic) or hashlib.sha256(body).digest() != checksum:
            return None
        at = 8 + struct.unpack_from("<Q", body)[0]
        header = json.loads(body[8:at])
        pieces = []
        for size in header["sizes"]:
            pieces.append(body[at : at + size])
            at += size
        return header["description"], pieces

    def _evict(self, folder: Path) -> int:
        """Delete the least recently used entries and stale temporary files, as other processes may too;
        return the bytes of what is left, four fifths of the bound where it was passed.

        Only files with the names of this cache are deleted: the folder may be one that the user has other
        files in.
        """
        now, files = time.time(), []
        with contextlib.suppress(OSError):
            for item in os.scandir(folder):
                with contextlib.suppress(OSError):
                    status = item.stat()
                    if self._entry_name.fullmatch(item.name):
                        files.append((status.st_mtime, status.st_size, item.path))
                    elif TEMPORARY_NAME.fullmatch(item.name) and now - status.st_mtime > STALE_SECONDS:
                        os.unlink(item.path)
        total = sum(size for _, size, _ in files)
        bound = total if total <= self.max_bytes else self.max_bytes * 4 // 5
        for _, size, path in sorted(files):
            if total <= bound:
                break
            with contextlib.suppress(OSError):
                os.unlink(path)
            total -= size
        return total
