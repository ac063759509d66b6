"""A stand-in for libcuda: memory of the host as a GPU's, kernels run as a grid of threads on the CPU.

Every call is recorded. Kernels are the very text that becomes PTX, compiled for this machine
(`tests.codegen.gpu.host_kernel`), found again by a number that is written into what stands for their machine
code.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
from tests.codegen.gpu.host_kernel import HostKernel

from dalembert.call.cuda.device import FUNCTIONS

CAPTURE_UNSUPPORTED = 900

ATTRIBUTES = {75: 9, 76: 0, 16: 132, 97: 227 << 10}
MEMORY = 16 << 30


class FakeCuda:
    """`calls`: the functions called, in order; `failures`: statuses that functions give, by name."""

    def __init__(self, *, devices: int = 1, version: int = 13000) -> None:
        self.devices = devices
        self.version = version
        self.calls: list[str] = []
        self.failures: dict[str, int] = {}
        self.sources: list[Any] = []
        self._shared: dict[int, int] = {}
        self.launches: list[dict[str, int]] = []
        self.memory: dict[int, Any] = {}
        self.freed: set[int] = set()
        self.contexts: list[int] = []
        self.current = 0
        self.capturing = False
        self._kernels: dict[int, HostKernel] = {}
        self.modules: dict[int, int] = {}
        self.finished = True
        self._handle = 500
        self._code: Any = None

    def __getattr__(self, name: str) -> Callable[..., int]:
        if name not in FUNCTIONS:
            raise AttributeError(name)
        body = getattr(type(self), f"_{name.removesuffix('_v2')}", None)

        def call(*arguments: Any) -> int:
            assert len(arguments) == len(FUNCTIONS[name]), f"{name}{arguments}"
            self.calls.append(name)
            if name in self.failures:
                return self.failures[name]
            if body is None:
                return 0
            return body(self, *arguments) or 0

        return call

    def ptx(self, source: Any, architecture: Any) -> str:
        """What stands for a kernel's PTX: its number."""
        self.sources.append(source)
        return f"// dalembert kernel {len(self.sources) - 1}"

    def _cuInit(self, flags: int) -> int:
        return 0 if self.devices else 100

    def _cuDriverGetVersion(self, found: Any) -> None:
        found._obj.value = self.version

    def _cuDeviceGetCount(self, found: Any) -> None:
        found._obj.value = self.devices

    def _cuDeviceGet(self, found: Any, ordinal: int) -> None:
        found._obj.value = ordinal

    def _cuDeviceGetName(self, text: Any, size: int, handle: int) -> None:
        text.value = b"Fake GPU"

    def _cuDeviceGetAttribute(self, found: Any, number: int, handle: int) -> None:
        found._obj.value = ATTRIBUTES[number]

    def _cuDeviceTotalMem(self, found: Any, handle: int) -> None:
        found._obj.value = MEMORY

    def _cuDevicePrimaryCtxRetain(self, found: Any, handle: int) -> None:
        found._obj.value = 1000 + handle

    def _cuCtxGetCurrent(self, found: Any) -> None:
        found._obj.value = self.contexts[-1] if self.contexts else 0

    def _cuCtxPushCurrent(self, context: int) -> None:
        self.contexts.append(context)

    def _cuCtxPopCurrent(self, found: Any) -> None:
        found._obj.value = self.contexts.pop()

    def _cuGetErrorName(self, status: int, found: Any) -> None:
        found._obj.value = b"CUDA_ERROR_FAKE"

    def _cuGetErrorString(self, status: int, found: Any) -> None:
        found._obj.value = b"as the test wants it"

    def _cuLinkCreate(self, count: int, options: Any, values: Any, found: Any) -> None:
        self._require_context()
        found._obj.value = 77

    def _cuLinkAddData(self, linker: int, kind: int, text: bytes, size: int, *_: Any) -> None:
        assert kind == 1
        assert len(text) == size
        assert text.endswith(b"\0")
        self._code = ctypes.create_string_buffer(b"cubin of " + text)

    def _cuLinkComplete(self, linker: int, code: Any, size: Any) -> None:
        code._obj.value = ctypes.addressof(self._code)
        size._obj.value = len(self._code)

    def _cuModuleLoadData(self, found: Any, code: bytes) -> None:
        self._require_context()
        self._handle += 1
        self.modules[self._handle] = int(code.split(b"kernel ")[1].split(b"\0")[0])
        found._obj.value = self._handle

    def _cuModuleUnload(self, module: int) -> None:
        self._require_context()
        assert self.finished, "what was launched may run still"
        assert not self.capturing
        del self.modules[module]

    def _cuCtxSynchronize(self) -> int:
        self._require_context()
        self.finished = not self.capturing
        return CAPTURE_UNSUPPORTED if self.capturing else 0

    def _cuModuleGetFunction(self, found: Any, module: int, name: bytes) -> None:
        assert name == b"dalembert_kernel"
        found._obj.value = module

    def _cuFuncSetAttribute(self, function: int, number: int, value: int) -> None:
        assert number == 8, "the dynamic shared memory that launches may ask for"
        assert value <= ATTRIBUTES[97]
        self._shared[function] = value

    def _cuMemAlloc(self, found: Any, size: int) -> int:
        self._require_context()
        if self.capturing:
            return CAPTURE_UNSUPPORTED
        array = np.full(size + 64, 0xCD, np.uint8)
        address = (array.ctypes.data + 63) // 64 * 64
        self.memory[address] = array
        self.freed.discard(address)  # the host may give out an address again
        found._obj.value = address
        return 0

    def _cuMemFree(self, address: int) -> None:
        del self.memory[address]
        self.freed.add(address)

    def _cuMemcpyHtoDAsync(self, target: int, source: int, size: int, stream: int) -> int:
        return self._move(target, source, size)

    def _cuMemcpyDtoHAsync(self, target: int, source: int, size: int, stream: int) -> int:
        return self._move(target, source, size)

    def _move(self, target: int, source: int, size: int) -> int:
        if self.capturing:
            return CAPTURE_UNSUPPORTED
        ctypes.memmove(target, source, size)
        return 0

    def _cuMemcpy2DAsync(self, given: Any, stream: int) -> None:
        copy = given._obj
        source = copy.source_host if copy.source_memory == 1 else copy.source_device
        target = copy.target_host if copy.target_memory == 1 else copy.target_device
        for row in range(copy.height):
            ctypes.memmove(target + row * copy.target_pitch, source + row * copy.source_pitch, copy.width)

    def _cuMemsetD8Async(self, address: int, value: int, count: int, stream: int) -> None:
        ctypes.memset(address, value, count)

    def _cuPointerGetAttribute(self, found: Any, number: int, address: int) -> None:
        found._obj.value = 0

    def _cuStreamSynchronize(self, stream: int) -> int:
        return CAPTURE_UNSUPPORTED if self.capturing else 0

    def _cuStreamIsCapturing(self, stream: int, found: Any) -> None:
        found._obj.value = self.capturing

    def _cuLaunchKernel(self, function: int, *given: Any) -> None:
        self._require_context()
        gx, gy, gz, bx, by, bz, shared, stream, places, extra = given
        assert (gy, gz, by, bz, extra) == (1, 1, 1, 1, None)
        assert shared <= self._shared.get(function, 48 << 10), "more than 48 kB must be asked for before"
        number = self.modules[function]
        self.finished = False
        source = self.sources[number]
        kernel = self._kernels.get(number)
        if kernel is None:
            kernel = self._kernels[number] = HostKernel(source)
        count = len(source.parameters)
        assert len(places) == count, "as many arguments as the kernel has parameters"
        values = [ctypes.c_int64.from_address(places[k]).value for k in range(count)]
        self.launches.append({"grid": gx, "block": bx, "shared": shared, "stream": stream, "kernel": number})
        assert (bx, shared) == (source.info.block, source.info.shared_bytes)
        kernel.launch(values, gx)

    def _require_context(self) -> None:
        assert self.contexts, "a context is current"


class HostMemoryArray:
    """A NumPy array that says it is on a GPU."""

    def __init__(self, array: Any, stream: int | None = None) -> None:
        self.array = array
        self.stream = stream

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    @property
    def dtype(self) -> Any:
        return self.array.dtype

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": self.array.shape,
            "typestr": self.array.dtype.str,
            "data": (self.array.ctypes.data, False),
            "strides": self.array.strides,
            "version": 3,
            "stream": self.stream,
        }
