"""Memory for large results, used again.

The operating system clears every page it hands out, which takes as long as computing a large batch of mass
matrices. A result of a megabyte or more therefore lives in memory that returns here when the caller lets go
of the array, and serves the next result of its size.
"""

from __future__ import annotations

import ctypes
import functools
import math
import threading
from typing import Any, Final

import numpy as np
import numpy.typing as npt

__all__ = ["KEPT_BYTES", "SMALLEST", "empty"]

SMALLEST: Final = 1 << 20
"""Smaller results come from NumPy, which keeps them in the process anyway."""

KEPT_BYTES: Final = 1 << 27
"""As much memory is kept at most; more is given back."""

CACHE_LINE: Final = 64
"""Bytes; large results begin at a multiple of it."""


def empty(shape: tuple[int, ...], dtype: str) -> npt.NDArray[Any]:
    """An uninitialised array, like `numpy.empty`."""
    kind = np.dtype(dtype)
    size = math.prod(shape) * kind.itemsize
    if size < SMALLEST:
        return np.empty(shape, kind)
    memory = _take(size)
    # Whatever views a caller makes, NumPy keeps this object as their base: when it goes, so have they all.
    lent: Any = _lent_type(size).from_buffer(memory)
    lent.memory = memory
    return np.ndarray(shape, kind, buffer=lent)


_LOCK: Final = threading.Lock()
_KEPT: Final[list[npt.NDArray[np.uint8]]] = []


def _take(size: int) -> npt.NDArray[np.uint8]:
    with _LOCK:
        for place, memory in enumerate(_KEPT):
            if memory.size == size:
                return _KEPT.pop(place)
    # Kernels write full cache lines past the caches, which needs memory that begins with one.
    raw = np.empty(size + CACHE_LINE, np.uint8)
    start = -raw.ctypes.data % CACHE_LINE
    return raw[start : start + size]


def _give(
    memory: npt.NDArray[np.uint8],
    lock: Any = _LOCK,
    kept: list[npt.NDArray[np.uint8]] = _KEPT,
    most: int = KEPT_BYTES,
) -> None:
    # A finalizer may run while this thread holds the lock: then the memory is simply given up.
    if lock.acquire(blocking=False):
        try:
            kept.append(memory)
            while sum(item.size for item in kept) > most:
                kept.pop(0)
        finally:
            lock.release()


@functools.lru_cache(maxsize=64)
def _lent_type(size: int) -> Any:
    """A buffer that gives its memory back when it is no longer used."""

    def release(self: Any, give: Any = _give) -> None:  # at the end of a process the module's names are gone
        give(self.memory)

    return type("LentMemory", (ctypes.c_uint8 * size,), {"__del__": release})
