"""A stand-in for CuPy: arrays on memory of the host that answer what CuPy's answer."""

from __future__ import annotations

import contextlib
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np


class _Array:
    """What is asked of a `cupy.ndarray`."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array = np.asarray(array)
        self.shape, self.strides, self.dtype, self.ndim = array.shape, array.strides, array.dtype, array.ndim
        self.data = SimpleNamespace(ptr=array.ctypes.data, device_id=0)
        self.device = SimpleNamespace(id=0)
        self.__cuda_array_interface__ = {"typestr": array.dtype.str}

    def get(self) -> np.ndarray:
        return self.array

    def astype(self, dtype: str) -> _Array:
        return type(self)(self.array.astype(dtype))

    def __matmul__(self, other: _Array) -> _Array:
        return type(self)(self.array @ other.array)

    def __mul__(self, other: _Array) -> _Array:
        return type(self)(self.array * other.array)

    def __radd__(self, other: float) -> _Array:
        return type(self)(other + self.array)

    def __gt__(self, other: float) -> _Array:
        return type(self)(self.array > other)

    def __ge__(self, other: float) -> _Array:
        return type(self)(self.array >= other)

    def __len__(self) -> int:
        return len(self.array)

    def tolist(self) -> Any:
        return self.array.tolist()

    def __getitem__(self, key: Any) -> _Array:
        return type(self)(self.array[key])

    def __setitem__(self, key: Any, value: _Array) -> None:
        self.array[key] = value.array


def fake_cupy() -> Any:
    """The module."""
    module: Any = ModuleType("cupy")
    module.ndarray = type("ndarray", (_Array,), {"__module__": "cupy"})
    module.asarray = lambda x: x if isinstance(x, _Array) else module.ndarray(np.array(x))
    module.empty = lambda shape, dtype: module.ndarray(np.full(shape, 77, dtype))
    module.where = lambda condition, x, y: module.ndarray(np.where(condition.array, x.array, y))
    module.broadcast_to = lambda x, shape: module.ndarray(np.broadcast_to(x.array, shape))
    module.ascontiguousarray = lambda x: module.ndarray(np.ascontiguousarray(x.array))
    module.asnumpy = lambda x: x.array
    module.cuda = SimpleNamespace(
        Device=lambda ordinal: contextlib.nullcontext(),
        get_current_stream=lambda: SimpleNamespace(ptr=77),
    )
    return module
