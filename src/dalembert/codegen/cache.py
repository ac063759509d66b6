"""Machine code kept on disk between processes.

One file an entry: a header line, the SHA-256 of the rest, a JSON description, and the bytes. Files are
written beside and renamed into place, so that readers and writers in any number of processes see whole
entries; one that is damaged all the same is deleted and made anew. The folder is private to the user, since
what it holds is executed: a folder that others may write to is not used. It is bounded in size; what was
used longest ago goes first.

    DALEMBERT_CACHE_DIR    the folder; default: the user's cache folder
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import re
import struct
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import llvmlite.binding as llvm

from dalembert.errors import FileError
from dalembert.host.atomic_files import TEMPORARY_NAME, write_file

__all__ = ["cache_directory", "cache_key", "cache_writable", "load_entry", "store_entry"]

ENVIRONMENT: Final = "DALEMBERT_CACHE_DIR"
MAGIC: Final = b"dalembert machine code 1\n"
SUFFIX: Final = ".kernel"
ENTRY_NAME: Final = re.compile(r"[0-9a-f]{64}\.kernel")
"""The names of entries: a SHA-256 (`cache_key`) and the suffix."""

MAX_BYTES: Final = 512 * 2**20
"""The folder's bound; when it is passed, entries go until four fifths are left."""

STALE_SECONDS: Final = 3600.0
"""Age at which a temporary file was left behind by a process that died."""


def cache_key(identity: str, **options: object) -> str:
    """Return the name of an entry: a hash of the program, the options, the versions and the processor."""
    facts = {"identity": identity, "options": options, "compiler": _compiler_digest()}
    text = json.dumps(facts, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


@functools.cache
def _compiler_digest() -> str:
    """Return a digest of this package's source, the version of LLVM and the processor."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    features = sorted(llvm.get_host_cpu_features().items())
    digest.update(repr((llvm.llvm_version_info, llvm.get_host_cpu_name(), features, sys.platform)).encode())
    return digest.hexdigest()


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
    """Return whether entries can be stored: the folder exists or can be made, and only the user may write to
    it."""
    folder = _folder()
    return folder is not None and os.access(folder, os.W_OK)


def _folder() -> Path | None:
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


def load_entry(key: str) -> tuple[dict[str, Any], list[bytes]] | None:
    """Return the description and the pieces of an entry, or None if it does not exist or is damaged."""
    folder = _folder()
    if folder is None:
        return None
    path = folder / (key + SUFFIX)
    try:
        content = path.read_bytes()
    except OSError:
        return None
    entry = _decode(content)
    if entry is None:
        with contextlib.suppress(OSError):
            path.unlink()
        return None
    with contextlib.suppress(OSError):
        os.utime(path)
    return entry


def store_entry(key: str, description: Mapping[str, Any], pieces: Sequence[bytes]) -> bool:
    """Store an entry; False where that is impossible, which costs time and nothing else."""
    folder = _folder()
    if folder is None:
        return False
    try:
        # The checksum shows what a power cut left incomplete, so there is no need to wait for the disk.
        write_file(folder / (key + SUFFIX), _encode(description, pieces), sync=False)
    except FileError:
        return False
    _evict(folder)
    return True


def _encode(description: Mapping[str, Any], pieces: Sequence[bytes]) -> bytes:
    header = json.dumps(
        {"description": dict(description), "sizes": [len(piece) for piece in pieces]}
    ).encode()
    body = struct.pack("<Q", len(header)) + header + b"".join(pieces)
    return MAGIC + hashlib.sha256(body).digest() + body


def _decode(content: bytes) -> tuple[dict[str, Any], list[bytes]] | None:
    start = len(MAGIC) + 32
    body = content[start:]
    if not content.startswith(MAGIC) or hashlib.sha256(body).digest() != content[len(MAGIC) : start]:
        return None
    at = 8 + struct.unpack_from("<Q", body)[0]
    header = json.loads(body[8:at])
    pieces = []
    for size in header["sizes"]:
        pieces.append(body[at : at + size])
        at += size
    return header["description"], pieces


def _evict(folder: Path) -> None:
    """Delete the least recently used entries and stale temporary files; other processes may do the same.

    Only files with the names of this cache are deleted: the folder may be one that the user has other files
    in.
    """
    now, files = time.time(), []
    with contextlib.suppress(OSError):
        for item in os.scandir(folder):
            with contextlib.suppress(OSError):
                status = item.stat()
                if ENTRY_NAME.fullmatch(item.name):
                    files.append((status.st_mtime, status.st_size, item.path))
                elif TEMPORARY_NAME.fullmatch(item.name) and now - status.st_mtime > STALE_SECONDS:
                    os.unlink(item.path)
    total = sum(size for _, size, _ in files)
    if total <= MAX_BYTES:
        return
    for _, size, path in sorted(files):
        with contextlib.suppress(OSError):
            os.unlink(path)
        total -= size
        if total <= MAX_BYTES * 4 // 5:
            break
