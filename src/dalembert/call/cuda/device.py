"""A GPU: its properties, its memory, its streams."""

from __future__ import annotations

import ctypes
import functools
import os
import sys
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Final, final

import numpy as np
import numpy.typing as npt

from dalembert.errors import DeviceError
from dalembert.host.process import renew_after_fork

# Direct calls of the CUDA driver, which comes with every NVIDIA GPU.
#
# `libcuda` has a C interface that stays compatible from version to version, and the dozen functions needed
# here have been in it for a decade. So there is no package to install and no version to match with those of
# PyTorch, CuPy or JAX: all use the *primary context* of a device, and so do we.

LIBRARY: Final = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"

MIN_DRIVER_VERSION: Final = 12000
"""The oldest driver that accepts the PTX version of the kernels: CUDA 12.0."""

SUCCESS, OUT_OF_MEMORY, NOT_INITIALIZED, NO_DEVICE, INVALID_CONTEXT = 0, 2, 3, 100, 201
CAPTURE_ERRORS: Final = range(900, 909)

_POINTER, _SIZE, _INT, _UNSIGNED = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_uint

FUNCTIONS: Final[dict[str, tuple[Any, ...]]] = {
    "cuInit": (_UNSIGNED,),
    "cuDriverGetVersion": (_POINTER,),
    "cuGetErrorName": (_INT, _POINTER),
    "cuGetErrorString": (_INT, _POINTER),
    "cuDeviceGetCount": (_POINTER,),
    "cuDeviceGet": (_POINTER, _INT),
    "cuDeviceGetName": (_POINTER, _INT, _INT),
    "cuDeviceGetAttribute": (_POINTER, _INT, _INT),
    "cuDeviceTotalMem_v2": (_POINTER, _INT),
    "cuDevicePrimaryCtxRetain": (_POINTER, _INT),
    "cuCtxGetCurrent": (_POINTER,),
    "cuCtxPushCurrent_v2": (_POINTER,),
    "cuCtxPopCurrent_v2": (_POINTER,),
    "cuCtxSynchronize": (),
    "cuLinkCreate_v2": (_UNSIGNED, _POINTER, _POINTER, _POINTER),
    "cuLinkAddData_v2": (_POINTER, _INT, _POINTER, _SIZE, _POINTER, _UNSIGNED, _POINTER, _POINTER),
    "cuLinkComplete": (_POINTER, _POINTER, _POINTER),
    "cuLinkDestroy": (_POINTER,),
    "cuModuleLoadData": (_POINTER, _POINTER),
    "cuModuleUnload": (_POINTER,),
    "cuModuleGetFunction": (_POINTER, _POINTER, _POINTER),
    "cuFuncGetAttribute": (_POINTER, _INT, _POINTER),
    "cuFuncSetAttribute": (_POINTER, _INT, _INT),
    "cuLaunchKernel": (_POINTER, *[_UNSIGNED] * 7, _POINTER, _POINTER, _POINTER),
    "cuMemAlloc_v2": (_POINTER, _SIZE),
    "cuMemFree_v2": (_POINTER,),
    "cuMemcpyHtoDAsync_v2": (_POINTER, _POINTER, _SIZE, _POINTER),
    "cuMemcpyDtoHAsync_v2": (_POINTER, _POINTER, _SIZE, _POINTER),
    "cuMemcpy2DAsync_v2": (_POINTER, _POINTER),
    "cuMemsetD8Async": (_POINTER, ctypes.c_ubyte, _SIZE, _POINTER),
    "cuPointerGetAttribute": (_POINTER, _INT, _POINTER),
    "cuStreamSynchronize": (_POINTER,),
    "cuStreamIsCapturing": (_POINTER, _POINTER),
    "cuStreamWaitEvent": (_POINTER, _POINTER, _UNSIGNED),
    "cuEventCreate": (_POINTER, _UNSIGNED),
    "cuEventRecord": (_POINTER, _POINTER),
    "cuEventSynchronize": (_POINTER,),
    "cuEventElapsedTime": (_POINTER, _POINTER, _POINTER),
    "cuEventDestroy_v2": (_POINTER,),
}
"""The functions used and the types of their arguments; addresses and handles are plain numbers."""


def load_library() -> Any:
    """Load the driver's library, or raise an error that says what is missing."""
    try:
        library = ctypes.CDLL(LIBRARY)
        for name, types in FUNCTIONS.items():
            getattr(library, name).argtypes = types
    except (OSError, AttributeError) as error:
        raise DeviceError(
            f'device="cuda" needs an NVIDIA GPU with its driver, and {LIBRARY} cannot be used ({error}); '
            "install the driver until `nvidia-smi` lists the GPU (in a container: start it with GPUs), or "
            'compute with device="cpu"'
        ) from None
    return library


@functools.cache
def driver() -> Driver:
    """Return the initialised driver of this process."""
    return Driver(load_library())


@final
class Driver:
    """The driver's functions, each call checked; `version` is 12040 for CUDA 12.4."""

    def __init__(self, library: Any) -> None:
        self._library = library
        self._process = os.getpid()
        status = library.cuInit(0)
        if status == NO_DEVICE:
            visible = os.environ.get("CUDA_VISIBLE_DEVICES")
            hidden = f"; CUDA_VISIBLE_DEVICES is {visible!r}" if visible is not None else ""
            raise DeviceError(
                f'device="cuda": the NVIDIA driver finds no GPU{hidden}; make one visible to this process, '
                'or compute with device="cpu"'
            )
        if status:
            raise DeviceError(
                f'device="cuda": the NVIDIA driver does not start ({self.describe(status)}); `nvidia-smi` '
                'tells whether it works at all; device="cpu" needs none'
            )
        self.version = self.integer("cuDriverGetVersion")
        if self.version < MIN_DRIVER_VERSION:
            raise DeviceError(
                f"the NVIDIA driver knows CUDA {_version_text(self.version)}, but kernels need "
                f"{_version_text(MIN_DRIVER_VERSION)} or later; update the driver, or compute with "
                'device="cpu"'
            )
        self.device_count = self.integer("cuDeviceGetCount")

    def __call__(self, name: str, *arguments: Any, doing: str = "") -> None:
        """Call a function; an error says what was being done."""
        status = getattr(self._library, name)(*arguments)
        if status:
            self.fail(name, status, doing)

    def status(self, name: str, *arguments: Any) -> int:
        """Call a function whose failure is an answer."""
        found: int = getattr(self._library, name)(*arguments)
        return found

    def integer(self, name: str, *arguments: Any) -> int:
        """Call a function and return the `int` that it writes to its first argument."""
        found = ctypes.c_int()
        self(name, ctypes.byref(found), *arguments)
        return found.value

    def handle(self, name: str, *arguments: Any, doing: str = "") -> int:
        """Call a function and return the pointer or handle that it writes to its first argument."""
        found = ctypes.c_void_p()
        self(name, ctypes.byref(found), *arguments, doing=doing)
        return found.value or 0

    def describe(self, status: int) -> str:
        """Return the driver's name and description of an error."""
        words = []
        for name in ("cuGetErrorName", "cuGetErrorString"):
            text = ctypes.c_char_p()
            getattr(self._library, name)(status, ctypes.byref(text))
            words.append((text.value or b"unknown").decode())
        return f"{words[0]}, {status}: {words[1]}"

    def fail(self, name: str, status: int, doing: str) -> None:
        """Raise the error for a status."""
        place = f"{doing}: " if doing else ""
        fact = f"{place}{name} failed ({self.describe(status)})"
        if os.getpid() != self._process:
            fact += (
                "; this process was forked from one that already used the GPU, which CUDA does not allow; "
                'start processes with multiprocessing.set_start_method("spawn")'
            )
        elif status == OUT_OF_MEMORY:
            fact += "; the GPU's memory is full: take smaller batches, or free what other arrays hold"
        elif status in CAPTURE_ERRORS:
            fact += (
                "; a CUDA graph is being captured, in which nothing may be compiled, uploaded or waited for: "
                'call the function once before, with arrays of the same kind, and leave check="off"'
            )
        raise DeviceError(fact)

    def context(self, wanted: int) -> AbstractContextManager[None]:
        """Make a context the current one of this thread, for a while."""
        current = ctypes.c_void_p()
        self("cuCtxGetCurrent", ctypes.byref(current))
        return _NOTHING if current.value == wanted else self._push_context(wanted)

    @contextmanager
    def _push_context(self, wanted: int) -> Iterator[None]:
        self("cuCtxPushCurrent_v2", wanted)
        try:
            yield
        finally:
            self.handle("cuCtxPopCurrent_v2")


_NOTHING: Final = nullcontext()


def _version_text(version: int) -> str:
    return f"{version // 1000}.{version % 1000 // 10}"


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
        size = ctypes.c_size_t()
        known("cuDeviceTotalMem_v2", ctypes.byref(size), handle)
        self.memory = size.value
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

    def allocate(self, size: int) -> int:
        """Allocate memory and return its address; `release` frees it."""
        with self.current():
            doing = f"{self.name}: taking {size} bytes"
            return self.driver.handle("cuMemAlloc_v2", max(size, 1), doing=doing)

    def release(self, address: int) -> None:
        """Free memory, after all running work has ended."""
        with self.current():
            self.driver("cuMemFree_v2", address)

    def upload(self, address: int, array: npt.NDArray[Any], stream: int = 0) -> None:
        """Copy a contiguous array of the host to memory of the device, and wait for it."""
        with self.current():
            self.driver("cuMemcpyHtoDAsync_v2", address, array.ctypes.data, array.nbytes, stream)
            self.driver("cuStreamSynchronize", stream)

    def download(self, array: npt.NDArray[Any], address: int, stream: int = 0, *, doing: str = "") -> None:
        """Copy memory of the device to a contiguous array of the host, and wait for it."""
        with self.current():
            self.driver("cuMemcpyDtoHAsync_v2", array.ctypes.data, address, array.nbytes, stream)
            self.driver("cuStreamSynchronize", stream, doing=doing)

    def copy_rows(
        self,
        target: tuple[int, int],
        source: tuple[int, int],
        width: int,
        rows: int,
        stream: int,
        *,
        to_host: bool = False,
    ) -> None:
        """Copy rows of `width` bytes between places (address, bytes between rows) on the device, or `to_host`
        and wait for them."""
        if not (width and rows):
            return
        copy = _Copy(width=width, height=rows)
        for side, (address, pitch) in (("source", source), ("target", target)):
            on_host = to_host and side == "target"
            setattr(copy, f"{side}_memory", _ON_HOST if on_host else _ON_DEVICE)
            setattr(copy, f"{side}_{'host' if on_host else 'device'}", address)
            setattr(copy, f"{side}_pitch", pitch)
        with self.current():
            self.driver("cuMemcpy2DAsync_v2", ctypes.byref(copy), stream)
            if to_host:
                self.synchronize(stream)

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
        """Free the resources of deleted kernels once the GPU is idle; never while a graph is captured."""
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

    def synchronize(self, stream: int = 0) -> None:
        """Wait until everything on a stream is done."""
        with self.current():
            self.driver("cuStreamSynchronize", stream)

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
                    free = (old for old, item in self._constants.items() if not item.captured)
                    if (oldest := next(free, None)) is not None:
                        self.release(self._constants.pop(oldest).address)
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

    def unread(self) -> int:
        """Return the address of eight bytes that kernels may write and nobody reads."""
        if not self._unread:
            self._unread = self.allocate(8)
        return self._unread


@final
@dataclass(slots=True, eq=False)
class Loaded:
    """The resources of a kernel on a GPU; `captured` once a graph may launch it again."""

    module: int
    memory: set[int] = field(default_factory=set)
    captured: bool = False


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


@final
@dataclass(slots=True, eq=False)
class _Constant:
    address: int
    captured: bool = False
