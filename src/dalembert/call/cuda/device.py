"""A GPU: its properties, its memory, its streams."""

from __future__ import annotations

import ctypes
import functools
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final, final

import numpy as np
import numpy.typing as npt

from dalembert.call.cuda.driver import Driver, driver
from dalembert.errors import DeviceError
from dalembert.host.forks import renew_after_fork

__all__ = ["Device", "Loaded", "device", "device_of_address"]

MAJOR, MINOR, PROCESSORS, SHARED_OPTIN = 75, 76, 16, 97
"""CU_DEVICE_ATTRIBUTE_…: compute capability, multiprocessors, shared memory a block may ask for."""

POINTER_DEVICE: Final = 9
"""CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL."""

UNCAPTURED: Final = (0, 1)
"""The default stream, by both of its numbers: no graph is captured there."""

KEPT_CONSTANTS: Final = 4096
"""Numbers and small arrays of the host that stay on a device for the next call."""


@functools.cache
def device(ordinal: int = 0) -> Device:
    """Return a GPU by its number among the visible ones."""
    known = driver()
    if not 0 <= ordinal < known.device_count:
        raise DeviceError(f"there is no GPU {ordinal}; the driver shows {known.device_count}, from 0 on")
    return Device(known, ordinal)


def device_of_address(address: int) -> int:
    """Return the number of the GPU on which memory is."""
    return driver().integer("cuPointerGetAttribute", POINTER_DEVICE, address)


@final
class Device:
    """A GPU with its primary context, which PyTorch, CuPy and JAX use too."""

    def __init__(self, known: Driver, ordinal: int) -> None:
        self.driver = known
        self.ordinal = ordinal
        handle = known.integer("cuDeviceGet", ordinal)
        name = ctypes.create_string_buffer(128)
        known("cuDeviceGetName", name, len(name), handle)
        self.name = name.value.decode(errors="replace")
        self.capability = (self._attribute(MAJOR, handle), self._attribute(MINOR, handle))
        self.processors = self._attribute(PROCESSORS, handle)
        self.largest_shared = self._attribute(SHARED_OPTIN, handle)
        self._context = known.handle("cuDevicePrimaryCtxRetain", handle, doing=f"{self.name}: starting CUDA")
        self._constants: dict[bytes, _Constant] = {}
        self._lock = threading.Lock()
        renew_after_fork(self)
        self._cells: list[int] = []
        self._unread = 0
        self._dropped: deque[Loaded] = deque()

    def _attribute(self, number: int, handle: int) -> int:
        return self.driver.integer("cuDeviceGetAttribute", number, handle)

    def __repr__(self) -> str:
        major, minor = self.capability
        return f"<GPU {self.ordinal}: {self.name}, compute capability {major}.{minor}>"

    def current(self) -> AbstractContextManager[None]:
        """Return a context manager that makes this GPU the current one."""
        return self.driver.context(self._context)

    def allocate(self, size: int, *, doing: str = "") -> int:
        """Allocate memory and return its address; `release` frees it."""
        with self.current():
            what = doing or f"{self.name}: taking {size} bytes"
            return self.driver.handle("cuMemAlloc_v2", max(size, 1), doing=what)

    def release(self, address: int) -> None:
        """Free memory, after all running work has ended."""
        with self.current():
            self.driver("cuMemFree_v2", address)

    def upload(self, address: int, array: npt.NDArray[Any], stream: int = 0) -> None:
        """Copy a contiguous array of the host to memory of the device, and wait for it."""
        with self.current():
            self.driver("cuMemcpyHtoDAsync_v2", address, array.ctypes.data, array.nbytes, stream)
            self.driver("cuStreamSynchronize", stream)

    def download(self, array: npt.NDArray[Any], address: int, stream: int = 0) -> None:
        """Copy memory of the device to a contiguous array of the host, and wait for it."""
        with self.current():
            self.driver("cuMemcpyDtoHAsync_v2", array.ctypes.data, address, array.nbytes, stream)
            self.driver("cuStreamSynchronize", stream)

    def copy_rows(
        self, target: tuple[int, int], source: tuple[int, int], width: int, rows: int, stream: int
    ) -> None:
        """Copy rows of `width` bytes between places (address, bytes between rows) on the device."""
        if width and rows:
            self._copy(_Copy.of((_ON_DEVICE, *target), (_ON_DEVICE, *source), width, rows), stream)

    def fetch_rows(self, matrix: npt.NDArray[Any], address: int, stride: int, stream: int) -> None:
        """Copy rows of the device to a matrix of the host, and wait for them."""
        count, width = len(matrix), matrix.strides[0]
        target = (_ON_HOST, matrix.ctypes.data, width)
        self._copy(_Copy.of(target, (_ON_DEVICE, address, stride or width), width, count), stream)
        self.synchronize(stream)

    def _copy(self, copy: _Copy, stream: int) -> None:
        with self.current():
            self.driver("cuMemcpy2DAsync_v2", ctypes.byref(copy), stream)

    @contextmanager
    def cell(self) -> Iterator[int]:
        """Lend eight bytes to one call that waits for what is written there."""
        with self._lock:
            address = self._cells.pop() if self._cells else self.allocate(8)
        try:
            yield address
        finally:
            with self._lock:
                self._cells.append(address)

    def drop(self, loaded: Loaded) -> None:
        """Record the resources of a deleted kernel. Calls nothing of CUDA, since this may run anywhere:
        during garbage collection, while a graph is captured, at the end of the process."""
        if not loaded.captured:
            self._dropped.append(loaded)

    def unload_dropped(self, stream: int) -> None:
        """Free the resources of deleted kernels, once the GPU is idle; not while a graph is captured, which
        that would abort."""
        if not self._dropped:
            return
        with self.current():
            if self.is_capturing(stream) or self.driver.status("cuCtxSynchronize"):
                return
            while self._dropped:
                try:
                    loaded = self._dropped.popleft()
                except IndexError:  # another thread has it
                    return
                self.driver("cuModuleUnload", loaded.module)
                for address in loaded.memory:
                    self.driver("cuMemFree_v2", address)

    def synchronize(self, stream: int = 0, *, doing: str = "") -> None:
        """Wait until everything on a stream is done."""
        with self.current():
            self.driver("cuStreamSynchronize", stream, doing=doing)

    def constant(self, array: npt.NDArray[Any], stream: int) -> int:
        """Return the address of numbers of the host on the device: uploaded on first use, then kept.

        A captured graph goes on reading what it read when it was captured, so that is never given back.
        """
        key = array.tobytes()
        with self._lock, self.current():
            captured = self.is_capturing(stream)
            found = self._constants.pop(key, None)
            if found is None:
                if len(self._constants) >= KEPT_CONSTANTS:
                    self._forget()
                found = _Constant(self.allocate(len(key)))
                self.upload(found.address, np.frombuffer(key, np.uint8), stream)
            found.captured |= captured
            self._constants[key] = found  # last again: the first is what was used longest ago
            return found.address

    def is_capturing(self, stream: int) -> bool:
        """Return whether launches on a stream are captured into a graph."""
        if stream in UNCAPTURED:
            return False
        found = ctypes.c_int()
        self.driver("cuStreamIsCapturing", stream, ctypes.byref(found))
        return found.value != 0

    def _forget(self) -> None:
        for key, item in self._constants.items():
            if not item.captured:
                del self._constants[key]
                self.release(item.address)
                return

    def unread(self) -> int:
        """Return the address of eight bytes that kernels may write and nobody reads."""
        if not self._unread:
            self._unread = self.allocate(8)
        return self._unread


@final
class Loaded:
    """The resources of a kernel on a GPU: its module and memory; `captured` once a graph may launch it
    again."""

    __slots__ = ("captured", "memory", "module")

    def __init__(self, module: int) -> None:
        self.module = module
        self.memory: set[int] = set()
        self.captured = False


_ON_HOST, _ON_DEVICE = 1, 2
"""CU_MEMORYTYPE_…"""


class _Copy(ctypes.Structure):
    """`CUDA_MEMCPY2D`."""

    _fields_ = tuple(
        (f"{side}_{name}", kind)
        for side in ("source", "target")
        for name, kind in (
            ("x", ctypes.c_size_t),
            ("y", ctypes.c_size_t),
            ("memory", ctypes.c_int),
            ("host", ctypes.c_void_p),
            ("device", ctypes.c_void_p),
            ("array", ctypes.c_void_p),
            ("pitch", ctypes.c_size_t),
        )
    ) + (("width", ctypes.c_size_t), ("height", ctypes.c_size_t))

    @classmethod
    def of(cls, target: tuple[int, int, int], source: tuple[int, int, int], width: int, rows: int) -> _Copy:
        """Return a copy between two places, each (memory type, address, bytes between rows)."""
        found = cls(width=width, height=rows)
        for side, (memory, address, pitch) in (("source", source), ("target", target)):
            setattr(found, f"{side}_memory", memory)
            setattr(found, f"{side}_{'host' if memory == _ON_HOST else 'device'}", address)
            setattr(found, f"{side}_pitch", pitch)
        return found


@final
class _Constant:
    __slots__ = ("address", "captured")

    def __init__(self, address: int) -> None:
        self.address = address
        self.captured = False
