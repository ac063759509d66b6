"""Arrays on a GPU by the library that made them.

PyTorch and CuPy are asked directly, when they are loaded; any other array is known by its
`__cuda_array_interface__` or by DLPack. Nothing here copies, except `spread`.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable
from typing import Any, Final, cast, final

import numpy as np
import numpy.typing as npt

from dalembert.call.cuda.array_kind import ArrayKind, ComputingKind, View, contiguous_strides
from dalembert.call.cuda.device import device_of_address
from dalembert.call.cuda.device_array import DeviceArray
from dalembert.call.cuda.dlpack import export_array
from dalembert.errors import ArgumentError, DtypeError
from dalembert.host.foreign_arrays import DLPACK_CUDA, is_cuda

__all__ = ["kind_of", "torch_kind"]

FLOATS: Final = {"<f8": "float64", "<f4": "float32"}


@final
class TorchTensors(ComputingKind):
    """Tensors of PyTorch."""

    library = "torch"
    remedy = "{name}.contiguous()"

    def __init__(self) -> None:
        self._torch = sys.modules["torch"]
        self._type = self._torch.Tensor
        self._names = {self._torch.float64: "float64", self._torch.float32: "float32"}
        self._strided = self._torch.strided
        # The same number as below, without making an object of it.
        raw = getattr(self._torch._C, "_cuda_getCurrentRawStream", None)
        self._raw_stream = raw or (lambda ordinal: int(self._torch.cuda.current_stream(ordinal).cuda_stream))

    def holds(self, value: object) -> bool:
        return type(value) is self._type and is_cuda(value) and self._as_it_lies(value)

    def _as_it_lies(self, array: Any) -> bool:
        """Return whether the numbers of a tensor are those in its memory: neither sparse, nor lazily negated
        (`x.conj().imag`), nor zeros without memory (tangents that PyTorch omits)."""
        return array.layout is self._strided and not (array.is_neg() or array._is_zerotensor())

    def is_watched(self, array: Any) -> bool:
        return bool(array.requires_grad) and bool(self._torch.is_grad_enabled())

    def layout(self, array: Any) -> Hashable:
        return array.shape, array.stride(), array.dtype, array.device

    def address(self, array: Any) -> int:
        return array.data_ptr()  # type: ignore[no-any-return]

    def ordinal(self, array: Any) -> int:
        return int(array.device.index)

    def stream(self, ordinal: int, array: Any) -> int:
        return self._raw_stream(ordinal)

    def view(self, name: str, array: Any, stream: int) -> View:
        if not self._as_it_lies(array):
            remedy = (
                f"{name}.to_dense()" if array.layout is not self._strided else f"{name}.resolve_neg().clone()"
            )
            raise ArgumentError(
                f"{name} is a tensor whose numbers are not those in its memory (sparse, negated as read, or "
                f"zeros without memory); pass {remedy}"
            )
        size = array.element_size()
        strides = tuple(size * step for step in array.stride())
        dtype = self._names.get(array.dtype, str(array.dtype))
        return View(array.data_ptr(), tuple(array.shape), strides, dtype)

    def empty(self, shape: tuple[int, ...], dtype: str, ordinal: int, stream: int) -> Any:
        return self._torch.empty(shape, dtype=getattr(self._torch, dtype), device=f"cuda:{ordinal}")

    def spread(self, array: Any, shape: tuple[int, ...]) -> Any:
        return array.expand(shape).contiguous()

    def to_host(self, array: Any) -> npt.NDArray[Any]:
        return np.asarray(array.detach().cpu().numpy())

    def expand(self, array: Any, shape: tuple[int, ...]) -> Any:
        return array.expand(shape)

    def assign(self, target: Any, values: Any) -> None:
        target.copy_(self._torch.as_tensor(values))

    def cast(self, array: Any, dtype: str) -> Any:
        return array.to(getattr(self._torch, dtype))

    def where(self, condition: Any, first: Any, second: float) -> Any:
        return self._torch.where(condition, first, second)


@final
class CupyArrays(ComputingKind):
    """Arrays of CuPy."""

    library = "cupy"
    remedy = "cupy.ascontiguousarray({name})"

    def __init__(self) -> None:
        self._cupy = sys.modules["cupy"]
        self._type = self._cupy.ndarray

    def holds(self, value: object) -> bool:
        return type(value) is self._type

    def layout(self, array: Any) -> Hashable:
        return array.shape, array.strides, array.dtype, array.data.device_id

    def address(self, array: Any) -> int:
        return array.data.ptr  # type: ignore[no-any-return]

    def ordinal(self, array: Any) -> int:
        return int(array.device.id)

    def stream(self, ordinal: int, array: Any) -> int:
        with self._cupy.cuda.Device(ordinal):
            return int(self._cupy.cuda.get_current_stream().ptr)

    def view(self, name: str, array: Any, stream: int) -> View:
        return View(int(array.data.ptr), array.shape, array.strides, array.dtype.name)

    def empty(self, shape: tuple[int, ...], dtype: str, ordinal: int, stream: int) -> Any:
        with self._cupy.cuda.Device(ordinal):
            return self._cupy.empty(shape, dtype)

    def spread(self, array: Any, shape: tuple[int, ...]) -> Any:
        return self._cupy.ascontiguousarray(self._cupy.broadcast_to(array, shape))

    def to_host(self, array: Any) -> npt.NDArray[Any]:
        return np.asarray(self._cupy.asnumpy(array))

    def expand(self, array: Any, shape: tuple[int, ...]) -> Any:
        return self._cupy.broadcast_to(array, shape)

    def assign(self, target: Any, values: Any) -> None:
        target[...] = self._cupy.asarray(values)

    def cast(self, array: Any, dtype: str) -> Any:
        return array.astype(dtype)

    def where(self, condition: Any, first: Any, second: float) -> Any:
        return self._cupy.where(condition, first, second)


@final
class OtherArrays(ArrayKind):
    """Arrays with `__cuda_array_interface__` or DLPack; results are `DeviceArray`s, which have both."""

    library = ""
    remedy = "a row-major copy of {name}"

    def ordinal(self, array: Any) -> int:
        if not hasattr(array, "__cuda_array_interface__"):
            return int(array.__dlpack_device__()[1])
        address = int(array.__cuda_array_interface__["data"][0])
        return device_of_address(address) if address else 0

    def stream(self, ordinal: int, array: Any) -> int:
        # Arrays that name no stream are ready on every one; the default stream waits for all others.
        found = getattr(array, "__cuda_array_interface__", {}).get("stream")
        return int(found or 0)

    def view(self, name: str, array: Any, stream: int) -> View:
        if not hasattr(array, "__cuda_array_interface__"):
            tensor = export_array(array, stream)
            size = tensor.bits // 8
            strides = tensor.strides or contiguous_strides(tensor.shape, 1)
            dtype = f"float{tensor.bits}" if tensor.code == 2 else f"DLPack type {tensor.code}"
            return View(tensor.address, tensor.shape, tuple(size * s for s in strides), dtype, tensor)
        facts = array.__cuda_array_interface__
        if facts.get("mask") is not None:
            raise DtypeError(f"{name} is a masked array; fill it first")
        shape = tuple(facts["shape"])
        kind = np.dtype(facts["typestr"])
        strides = tuple(facts.get("strides") or contiguous_strides(shape, kind.itemsize))
        return View(int(facts["data"][0] or 0), shape, strides, FLOATS.get(kind.str, kind.name), array)

    def empty(self, shape: tuple[int, ...], dtype: str, ordinal: int, stream: int) -> Any:
        return DeviceArray.empty(shape, dtype, ordinal, stream)

    def spread(self, array: Any, shape: tuple[int, ...]) -> Any:
        raise DtypeError(
            f"an array of shape {tuple(array.shape)} would have to be repeated over {shape}, which needs a "
            f"copy that {type(array).__name__} cannot make; give an array of the whole shape"
        )


def kind_of(value: object) -> ArrayKind | None:
    """Return the kind of an array on a GPU; None for other values, and for JAX arrays, on which XLA
    launches."""
    if isinstance(value, np.ndarray | float | int | list | tuple) or value is None:
        return None
    for kind in type(value).__mro__:
        home = kind.__module__.partition(".")[0]
        if home == "torch":
            return _kind(TorchTensors) if is_cuda(value) else None
        if home == "cupy":
            return _kind(CupyArrays)
        if home in ("jax", "jaxlib"):
            return None
    if hasattr(value, "__cuda_array_interface__"):
        return _kind(OtherArrays)
    place = getattr(value, "__dlpack_device__", None)
    return _kind(OtherArrays) if place is not None and place()[0] == DLPACK_CUDA else None


def torch_kind() -> ComputingKind:
    """Return the kind of PyTorch tensors; PyTorch must be loaded."""
    return cast("ComputingKind", _kind(TorchTensors))


_KINDS: Final[dict[type[ArrayKind], ArrayKind]] = {}


def _kind(kind: type[ArrayKind]) -> ArrayKind:
    found = _KINDS.get(kind)
    if found is None:
        found = _KINDS[kind] = kind()
    return found
