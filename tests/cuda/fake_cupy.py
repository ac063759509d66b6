"""A stand-in for CuPy: arrays on memory of the host that answer what CuPy's answer."""

from __future__ import annotations

import contextlib
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np


class _Array:
    """What is asked of a `cupy.ndarray`."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array
        self.shape, self.strides, self.dtype = array.shape, array.strides, array.dtype
        self.data = SimpleNamespace(ptr=array.ctypes.data, device_id=0)
        self.device = SimpleNamespace(id=0)
        self.__cuda_array_interface__ = {"typestr": array.dtype.str}

    def get(self) -> np.ndarray:
        return self.array

    def __matmul__(self, other: _Array) -> _Array:
        return _Array(self.array @ other.array)

    def __getitem__(self, key: Any) -> _Array:
        return _Array(self.array[key])


def fake_cupy() -> Any:
    """The module."""
    module: Any = ModuleType("cupy")
    module.ndarray = type("ndarray", (_Array,), {"__module__": "cupy"})
    module.asarray = lambda x: x if isinstance(x, _Array) else module.ndarray(np.array(x))
    module.empty = lambda shape, dtype: module.ndarray(np.full(shape, np.nan, dtype))
    module.broadcast_to = lambda x, shape: module.ndarray(np.broadcast_to(x.array, shape))
    module.ascontiguousarray = lambda x: module.ndarray(np.ascontiguousarray(x.array))
    module.asnumpy = lambda x: x.array
    module.cuda = SimpleNamespace(
        Device=lambda ordinal: contextlib.nullcontext(),
        get_current_stream=lambda: SimpleNamespace(ptr=77),
    )
    return module
