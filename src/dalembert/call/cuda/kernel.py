"""A kernel on a GPU: loaded once, launched on any stream.

A launch is one call of the driver: nothing is allocated, copied or waited for, so that it can be captured in
a CUDA graph.
"""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

import numpy as np

from dalembert.call.cuda.device import Loaded
from dalembert.codegen.target import KERNEL_NAME
from dalembert.errors import ArgumentError, DeviceError
from dalembert.host.process import renew_after_fork

if TYPE_CHECKING:
    from dalembert.call.cuda.device import Device
    from dalembert.codegen.gpu import GpuInfo

SHARED_LIMIT: Final = 8
"""CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES."""

PLAIN_SHARED: Final = 48 << 10
"""Bytes of shared memory that every kernel may use; more must be asked for."""

MOST_BLOCKS: Final = 2**31 - 1

NONE_REFUSED: Final = 2**64 - 1

Place: TypeAlias = tuple[int, int]
"""Where an array is: its address, and the bytes between its rows."""

BLOCKS_A_PROCESSOR: Final = 4
"""Blocks under way on a multiprocessor, where each needs memory of its own."""

SCRATCH_PART_OF_MEMORY: Final = 8
"""The part of a GPU's memory, one over this, that the scratch memory of a launch may take: the rest is the
caller's. Loops over thousands of rows need hundreds of kilobytes a sample."""


@final
class GpuKernel:
    """Machine code of one GPU; `extra` is what was stored with it."""

    def __init__(
        self, info: GpuInfo, code: bytes, tables: bytes, device: Device, name: str, extra: dict[str, Any]
    ) -> None:
        self.info = info
        self.code = code
        self.device = device
        self.name = name
        self.extra = extra
        driver = device.driver
        with device.current():
            module = driver.handle("cuModuleLoadData", code, doing=f"{name}: loading")
            self._loaded = Loaded(module)
            weakref.finalize(self, device.drop, self._loaded).atexit = False
            self._function = driver.handle("cuModuleGetFunction", module, KERNEL_NAME.encode(), doing=name)
            if info.shared_bytes > PLAIN_SHARED:
                if info.shared_bytes > device.largest_shared:
                    raise DeviceError(
                        f"{name} needs {info.shared_bytes} bytes of shared memory, {device.name} has "
                        f"{device.largest_shared} a block"
                    )
                driver("cuFuncSetAttribute", self._function, SHARED_LIMIT, info.shared_bytes, doing=name)
        self._tables = 0
        if tables:
            self._tables = device.allocate(len(tables))
            self._loaded.memory.add(self._tables)
            device.upload(self._tables, np.frombuffer(tables, np.uint8))
        self._unread = device.unread()
        self._scratch: dict[int, tuple[int, int]] = {}
        self._lock = threading.Lock()
        renew_after_fork(self)

    def attribute(self, number: int) -> int:
        """Return a CU_FUNC_ATTRIBUTE_…: 4 registers a thread, 3 bytes of local memory a thread."""
        with self.device.current():
            return self.device.driver.integer("cuFuncGetAttribute", number, self._function)

    def scratch_bytes(self, rows: int) -> int:
        """Return the bytes of scratch memory that a launch over `rows` rows needs."""
        return (
            self._blocks(rows) * self.info.block * self.info.scratch_bytes if self.info.scratch_bytes else 0
        )

    @contextmanager
    def kept_scratch(self, stream: int, rows: int) -> Iterator[int]:
        """Lend scratch memory that is kept for the next launch on the stream, to callers that have none.

        Launch inside the `with`: until then no other thread exchanges it for more.
        """
        size = self.scratch_bytes(rows)
        with self._lock:
            address, had = self._scratch.get(stream, (0, 0))
            if size > had:
                if address:
                    del self._scratch[stream]
                    self._loaded.memory.discard(address)
                    self.device.release(address)
                address = self.device.allocate(size)
                self._loaded.memory.add(address)
                self._scratch[stream] = (address, size)
            yield address

    def _blocks(self, rows: int) -> int:
        """Return the blocks of a launch: for all rows; with scratch memory, as many as fill the GPU, or fewer
        if the memory of these were too large a part of the GPU's."""
        blocks = -(-rows // self.info.samples)
        if self.info.scratch_bytes:
            room = self.device.memory // SCRATCH_PART_OF_MEMORY
            most = max(room // (self.info.block * self.info.scratch_bytes), 1)
            return min(blocks, BLOCKS_A_PROCESSOR * self.device.processors, most)
        if blocks > MOST_BLOCKS:
            raise ArgumentError(f"{self.name}: {rows} samples are too many for one launch")
        return blocks

    def launch(
        self,
        stream: int,
        inputs: Sequence[Place],
        outputs: Sequence[Place],
        rows: int,
        *,
        refused: int = 0,
        scratch: int = 0,
        more: Sequence[int] = (),
    ) -> None:
        """Compute rows from and to (address, bytes between rows) on a stream; returns at once.

        `refused`: the address of 64 bits, all ones, that become the number of the first refused row; 0 where
        nobody asks. `scratch`: the address of `scratch_bytes(rows)` bytes. `more`: further arguments, of a
        rollout.
        """
        info = self.info
        if len(inputs) != len(info.inputs) or len(outputs) != len(info.outputs):
            raise ArgumentError(
                f"{self.name}: the kernel has {len(info.inputs)} inputs and {len(info.outputs)} outputs, got "
                f"{len(inputs)} and {len(outputs)}"
            )
        if rows:
            addresses, strides = zip(*inputs, *outputs, strict=True)
            PreparedLaunch(self, strides, rows, more)(stream, addresses, scratch, refused)

    def first_refused(
        self, stream: int, inputs: Sequence[Place], outputs: Sequence[Place], rows: int, scratch: int
    ) -> int:
        """Launch, wait, and return the number of the first refused row, or -1."""
        home, found = self.device, np.empty(1, np.uint64)
        with home.cell() as cell, home.current():
            home.driver("cuMemsetD8Async", cell, 255, 8, stream)
            self.launch(stream, inputs, outputs, rows, refused=cell, scratch=scratch)
            home.download(found, cell, stream, doing=self.name)
        return -1 if int(found[0]) == NONE_REFUSED else int(found[0])


@final
class PreparedLaunch:
    """A launch over a number of rows, of which all but the addresses and the stream is prepared."""

    def __init__(
        self, kernel: GpuKernel, strides: Sequence[int], rows: int, more: Sequence[int] = ()
    ) -> None:
        info = kernel.info
        self._kernel = kernel
        self._count = len(strides)
        self._scratch = 2 * self._count + 3 if info.scratch_bytes else None  # its place among the numbers
        numbers = [number for stride in strides for number in (0, stride)]
        numbers += [rows, kernel._tables, kernel._unread, *([0] if info.scratch_bytes else []), *more]
        self._values = (ctypes.c_int64 * len(numbers))(*numbers)
        start = ctypes.addressof(self._values)
        self._places = (ctypes.c_void_p * len(numbers))(*range(start, start + 8 * len(numbers), 8))
        self._head = (kernel._function, kernel._blocks(rows), 1, 1, info.block, 1, 1, info.shared_bytes)
        self._lock = threading.Lock()
        renew_after_fork(self)

    def __call__(self, stream: int, addresses: Sequence[int], scratch: int = 0, refused: int = 0) -> None:
        """Launch on arrays at these addresses, those of inputs and then of outputs."""
        kernel, values, end = self._kernel, self._values, 2 * self._count
        with self._lock, kernel.device.current():  # the driver reads the values while other threads may run
            values[0:end:2] = list(addresses)
            values[end + 2] = refused or kernel._unread
            if self._scratch is not None:
                values[self._scratch] = scratch
            # A graph may launch a captured kernel at any time, so that it stays loaded.
            kernel._loaded.captured = kernel._loaded.captured or kernel.device.is_capturing(stream)
            kernel.device.driver("cuLaunchKernel", *self._head, stream, self._places, None, doing=kernel.name)
