"""Scratch memory of a thread: kept from one call to the next."""

from __future__ import annotations

import threading
from typing import Final, final

import numpy as np
import numpy.typing as npt

__all__ = ["SCRATCH", "aligned_buffer"]

MAX_KEPT_BYTES: Final = 1 << 26
"""Larger scratch memory is given back after the call: 64 MB a thread is more than any bundled model needs."""


def aligned_buffer(size: int) -> npt.NDArray[np.uint8]:
    """Return uninitialised bytes at an address that is a multiple of 64."""
    raw = np.empty(size + 64, dtype=np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + size]


@final
class _Scratch(threading.local):
    """Memory of one thread."""

    # One attribute, so that no interrupt can leave the size of one buffer beside the address of another.
    kept: tuple[int, int, object] = (-1, 0, None)

    def take(self, size: int) -> tuple[int, object]:
        """Return the address of `size` bytes, and the object that keeps them alive."""
        kept_size, address, buffer = self.kept
        if size <= kept_size:
            return address, buffer
        fresh = aligned_buffer(size)
        address = int(fresh.ctypes.data)
        if size <= MAX_KEPT_BYTES:
            self.kept = (size, address, fresh)
        return address, fresh


SCRATCH: Final = _Scratch()
