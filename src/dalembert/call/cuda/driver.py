"""Direct calls of the CUDA driver, which comes with every NVIDIA GPU.

`libcuda` has a C interface that stays compatible from version to version, and the dozen functions needed here
have been in it for a decade. So there is no package to install and no version to match with those of PyTorch,
CuPy or JAX: all use the *primary context* of a device, and so do we.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Final, final

from dalembert.errors import DeviceError

__all__ = ["Driver", "driver", "load_library"]

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
