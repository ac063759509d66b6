"""The process as the operating system treats it: forks copy its locks, and its memory has a limit.

`fork` copies the memory of a process but only the thread that called it. A lock that another thread held at
that moment stays locked in the child, where nobody is left to release it: the child hangs when it first asks
for the lock. The library's locks are therefore replaced by new ones in the child. What such a lock protects
is whole at any moment, since it changes by single assignments and single insertions into a dictionary or
list. A thread that forks while it holds a lock itself goes on in the child, and releases the old lock there.

LLVM has locks and half-changed data of its own: `codegen.machine_code` keeps `fork` waiting for LLVM.

Linux promises memory that it does not have and ends the process when it is used, so that a MemoryError cannot
be waited for: results that no memory holds are refused before.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import sys
import threading
from pathlib import Path
from typing import Final
from weakref import WeakSet

from dalembert.errors import ArgumentError


def renew_after_fork(owner: object, name: str = "_lock") -> None:
    """Replace the lock `owner.<name>` by a new one of its type in every forked child.

    The code that uses the lock must look it up at its owner each time (`with self._lock:`).
    """
    _OWNERS.setdefault(name, WeakSet()).add(owner)


_PLAIN: Final = type(threading.Lock())
_OWNERS: Final[dict[str, WeakSet[object]]] = {}


def _renew_locks() -> None:
    for name, owners in _OWNERS.items():
        for owner in owners:
            is_plain = isinstance(getattr(owner, name), _PLAIN)
            setattr(owner, name, threading.Lock() if is_plain else threading.RLock())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_locks)


CGROUP_LIMITS: Final = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)
"""Where Linux says how much memory a container may use (version 2, version 1)."""

UNKNOWN_BYTES: Final = 1 << 47
"""The address space of a process on 64-bit machines [bytes]: the limit if no other is known."""

UNITS: Final = ("bytes", "kB", "MB", "GB", "TB", "PB", "EB")


def require_memory(what: str, size: int, remedy: str) -> None:
    """Refuse an array of `size` bytes that exceeds the memory of this machine."""
    if size > usable_bytes():
        raise ArgumentError(
            f"{what} would take {readable(size)}, and this process can have {readable(usable_bytes())}; "
            f"{remedy}"
        )


def readable(size: int) -> str:
    """Return a number of bytes in words, such as "3.2 GB"."""
    power = 0
    while power < len(UNITS) - 1 and size >= 1000 ** (power + 1):
        power += 1
    return f"{size / 1000**power:.3g} {UNITS[power]}" if size < 10**21 else "more than 1000 EB"


@functools.cache
def usable_bytes() -> int:
    """Return the physical memory of this machine, or what a container leaves of it [bytes]."""
    limits = [UNKNOWN_BYTES]
    if sys.platform == "win32":
        limits.append(_windows_bytes())
    else:
        with contextlib.suppress(OSError, ValueError):  # names that this system does not know
            limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for path in CGROUP_LIMITS:
        with contextlib.suppress(OSError, ValueError):  # no such file, or "max"
            limits.append(int(path.read_text()))
    return min(limit for limit in limits if limit > 0)


def _windows_bytes() -> int:
    """Return the physical memory as Windows tells it (GlobalMemoryStatusEx)."""

    class Status(ctypes.Structure):
        _fields_ = [
            ("length", ctypes.c_uint32),
            ("load", ctypes.c_uint32),
            *((name, ctypes.c_uint64) for name in ("total", "free", "c", "d", "e", "f", "g")),
        ]

    status = Status(length=ctypes.sizeof(Status))
    found = ctypes.WinDLL("kernel32").GlobalMemoryStatusEx(ctypes.byref(status))  # type: ignore[attr-defined]
    return int(status.total) if found else UNKNOWN_BYTES
