"""An array on a GPU that this library allocates, for results of arguments whose library cannot make
arrays."""

from __future__ import annotations

import math
import weakref
from typing import Any, final

import numpy as np
import numpy.typing as npt

from dalembert.call.cuda.device import Device, device

__all__ = ["DeviceArray"]


@final
class DeviceArray:
    """A row-major array on a GPU; `numpy()` copies them to the host.

    PyTorch, CuPy, Numba and Warp take it without a copy: `torch.as_tensor(x, device="cuda")`,
    `cupy.asarray(x)`.
    """

    __slots__ = ("__weakref__", "address", "dtype", "ordinal", "shape", "stream")

    def __init__(
        self, address: int, shape: tuple[int, ...], dtype: str, ordinal: int, stream: int = 0
    ) -> None:
        """Wrap memory at an address that another object owns; `empty` allocates memory.

        `stream`: the stream on which the array is computed.
        """
        self.stream = stream
        self.address = address
        self.shape = shape
        self.dtype = np.dtype(dtype)
        self.ordinal = ordinal

    @classmethod
    def empty(cls, shape: tuple[int, ...], dtype: str, ordinal: int = 0, stream: int = 0) -> DeviceArray:
        """Allocate an array without clearing it."""
        home = device(ordinal)
        address = home.allocate(math.prod(shape) * np.dtype(dtype).itemsize)
        found = cls(address, shape, dtype, ordinal, stream)
        weakref.finalize(found, _release, home, address).atexit = False
        return found

    @classmethod
    def of(cls, array: npt.NDArray[Any], ordinal: int = 0) -> DeviceArray:
        """Copy an array of the host to the device."""
        found = cls.empty(array.shape, array.dtype.name, ordinal)
        device(ordinal).upload(found.address, np.ascontiguousarray(array))
        return found

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def row_bytes(self) -> int:
        """Bytes from one row of a matrix to the next."""
        return self.nbytes // max(self.shape[0], 1)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.address, False),
            "strides": None,
            "version": 3,
            "stream": self.stream or 1,  # 1 is the default stream, 0 is not allowed
        }

    def numpy(self) -> npt.NDArray[Any]:
        """Copy the array to the host, after all earlier work on the stream."""
        found = np.empty(self.shape, self.dtype)
        if found.nbytes:
            device(self.ordinal).download(found, self.address, self.stream)
        return found

    def __repr__(self) -> str:
        return f"<DeviceArray {self.shape} of {self.dtype} on GPU {self.ordinal}>"


def _release(home: Device, address: int) -> None:
    home.release(address)
