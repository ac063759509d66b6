"""Locks that a forked child finds free.

`fork` copies the memory of a process but only the thread that called it. A lock that another thread held at
that moment stays locked in the child, where nobody is left to release it: the child hangs when it first asks
for the lock. The library's locks are therefore replaced by new ones in the child. What such a lock protects
is whole at any moment, since it changes by single assignments and single insertions into a dictionary or
list. A thread that forks while it holds a lock itself goes on in the child, and releases the old lock there.

LLVM has locks and half-changed data of its own: `codegen.linking` keeps `fork` waiting for LLVM.
"""

from __future__ import annotations

import os
import threading
from typing import Final
from weakref import WeakSet

__all__ = ["renew_after_fork"]


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
