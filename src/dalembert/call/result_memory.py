"""Memory for large results, used again.

The operating system clears every page it hands out, which takes as long as computing a large batch of mass
matrices. A result of a megabyte or more therefore lives in memory that returns here when the caller lets go
of the array, and serves the next result of its size.

Memory returns in finalizers, which run anywhere: in the midst of `empty`, in any thread, and interrupts may
end them at any point. So there is no lock. Memory is kept in a dictionary under a number of its own, and
whoever pops that number owns the memory: popping happens once, as dictionaries are atomic. Memory that an
exception catches between two owners is referred to by nobody and is freed.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import math
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt

__all__ = ["KEPT_BYTES", "MIN_REUSED_BYTES", "empty"]

MIN_REUSED_BYTES: Final = 1 << 20
"""Smaller results come from NumPy, which keeps them in the process anyway."""

KEPT_BYTES: Final = 1 << 27
"""At most this much memory [bytes] is kept; the rest is freed. (Each thread that returns memory at the very
same moment may add its own, until the next return.)"""

CACHE_LINE: Final = 64
"""Bytes; large results begin at a multiple of it."""


def empty(shape: tuple[int, ...], dtype: str) -> npt.NDArray[Any]:
    """Return an uninitialised array, like `numpy.empty`."""
    kind = np.dtype(dtype)
    size = math.prod(shape) * kind.itemsize
    if size < MIN_REUSED_BYTES:
        return np.empty(shape, kind)
    memory = _take(size)
    # Whatever views a caller makes, NumPy keeps this object as their base: when it goes, so have they all.
    lent: Any = _lent_type(size).from_buffer(memory)
    lent.memory = memory
    return np.ndarray(shape, kind, buffer=lent)


_KEPT: Final[dict[int, npt.NDArray[np.uint8]]] = {}
"""Memory that nobody uses, the longest unused first."""

_NUMBERS: Final = itertools.count()


def _take(size: int) -> npt.NDArray[np.uint8]:
    # A copy, as a finalizer may change the dictionary at any time.
    for number, memory in _KEPT.copy().items():
        if memory.size == size and _KEPT.pop(number, None) is not None:
            return memory
    # Kernels write full cache lines past the caches, which needs memory that begins with one.
    raw = np.empty(size + CACHE_LINE, np.uint8)
    start = -raw.ctypes.data % CACHE_LINE
    return raw[start : start + size]


def _give(
    memory: npt.NDArray[np.uint8],
    kept: dict[int, npt.NDArray[np.uint8]] = _KEPT,
    numbers: Iterator[int] = _NUMBERS,
    most: int = KEPT_BYTES,
) -> None:
    """Keep memory that nobody uses, and give back the longest unused beyond `most` bytes."""
    before = kept.copy()
    excess = sum(item.size for item in before.values()) + memory.size - most
    for number, item in before.items():
        if excess <= 0:
            break
        if kept.pop(number, None) is not None:
            excess -= item.size
    if memory.size <= most:
        kept[next(numbers)] = memory


@functools.lru_cache(maxsize=64)
def _lent_type(size: int) -> Any:
    """Return the type of a buffer that gives its memory back when it is no longer used."""

    def release(self: Any, give: Any = _give) -> None:  # at the end of a process the module's names are gone
        memory, self.memory = self.memory, None
        if memory is not None:
            give(memory)

    return type("LentMemory", (ctypes.c_uint8 * size,), {"__del__": release, "memory": None})
