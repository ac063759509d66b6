"""Arrays on a GPU by the library that made them.

PyTorch and CuPy are asked directly, when they are loaded; any other array is known by its
`__cuda_array_interface__` or by DLPack. Nothing here copies, except `spread`.
"""

from __future__ import annotations

import ctypes
import math
import sys
import weakref
from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, cast, final

import numpy as np
import numpy.typing as npt

from dalembert.call.cuda.device import device, device_of_address
from dalembert.errors import ArgumentError, DtypeError
from dalembert.host.foreign_arrays import is_cuda, library_of

# The interface to arrays on a GPU of any library: their memory, their stream, and new arrays of the same
# kind.


@final
@dataclass(frozen=True, slots=True)
class View:
    """Memory of an array: address, shape, bytes between elements along each axis; `keep` keeps it alive."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    keep: object = None

    def rows(self, inner: int) -> tuple[int, int] | None:
        """Return (address, bytes between rows) with the last `inner` axes as a row; None if strides differ.

        An array without batch axes, or with axes of length one alone, is one row for all: 0 bytes apart.
        """
        size = {"float64": 8, "float32": 4}[self.dtype]
        split, step = len(self.shape) - inner, size
        if 0 in self.shape:  # strides of nothing may be anything
            return self.address, size * math.prod(self.shape[split:])
        for length, stride in reversed(list(zip(self.shape[split:], self.strides[split:], strict=True))):
            if length != 1 and stride != step:
                return None
            step *= length
        batch = [(n, s) for n, s in zip(self.shape[:split], self.strides[:split], strict=True) if n != 1]
        for (_, outer), (length, stride) in pairwise(batch):
            if outer != length * stride:
                return None
        row = batch[-1][1] if batch else 0
        return None if row < 0 or row % size else (self.address, row)


def contiguous_strides(shape: Sequence[int], size: int) -> tuple[int, ...]:
    """Return the bytes between elements of a row-major array along each axis."""
    strides = [size] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * max(shape[axis + 1], 1)
    return tuple(strides)


class ArrayKind(ABC):
    """Arrays of one library."""

    library: str
    """Its name, where it computes with its arrays, else empty."""

    remedy: str
    """How to make an array row-major: a suffix or a call, with {name} for the array."""

    @abstractmethod
    def ordinal(self, array: Any) -> int:
        """Return the number of the GPU on which an array is."""

    @abstractmethod
    def stream(self, ordinal: int, array: Any) -> int:
        """Return the stream on which the caller works."""

    @abstractmethod
    def view(self, name: str, array: Any, stream: int) -> View:
        """Return the memory of an array."""

    @abstractmethod
    def empty(self, shape: tuple[int, ...], dtype: str, ordinal: int, stream: int) -> Any:
        """Return a new row-major array, to be written on a stream."""

    @abstractmethod
    def spread(self, array: Any, shape: tuple[int, ...]) -> Any:
        """Return a row-major copy of an array broadcast to a shape."""


class Arithmetic(ABC):
    """The array operations of a library that rollouts need beside their launch; `module` has them under the
    names of NumPy."""

    module: Any

    def is_watched(self, array: Any) -> bool:
        """Return whether the library records operations on an array for gradients."""
        return False

    @abstractmethod
    def beside(self, values: npt.NDArray[Any], array: Any) -> Any:
        """Copy numbers of the host to a new array on the device of `array`."""

    def expand(self, array: Any, shape: tuple[int, ...]) -> Any:
        """Return an array broadcast to a shape, as a view if the library can."""
        return self.module.broadcast_to(array, shape)

    def cast(self, array: Any, dtype: str) -> Any:
        """Return the array converted to a float type."""
        return array.astype(dtype)

    def where(self, condition: Any, first: Any, second: float) -> Any:
        """Return an array with the values of `first` where a condition holds, and `second` elsewhere."""
        return self.module.where(condition, first, second)

    @abstractmethod
    def to_host(self, array: Any) -> npt.NDArray[Any]:
        """Copy an array to the host and wait for it."""


class ComputingKind(ArrayKind, Arithmetic):
    """Arrays of a library that computes with them."""

    @abstractmethod
    def holds(self, value: object) -> bool:
        """Return whether a value is an array of this library on a GPU, and not of a subclass."""

    @abstractmethod
    def layout(self, array: Any) -> Hashable:
        """Return all properties of an array on a GPU but its numbers and its address."""

    @abstractmethod
    def address(self, array: Any) -> int:
        """Return the address of the numbers of an array."""

    @abstractmethod
    def assign(self, target: Any, values: Any) -> None:
        """Write values, of the host or of the device, into an array."""

    def beside(self, values: npt.NDArray[Any], array: Any) -> Any:
        """Copy numbers of the host to a new array on the device of `array`."""
        ordinal = self.ordinal(array)
        made = self.empty(values.shape, values.dtype.name, ordinal, self.stream(ordinal, array))
        self.assign(made, values)
        return made


# Arrays on a GPU through DLPack capsules.

NAME: Final = b"dltensor"

LEGACY_STREAM: Final = 1
"""How DLPack names CUDA's default stream; 0 is not allowed."""


class _Tensor(ctypes.Structure):
    """`DLTensor`, with which every `DLManagedTensor` begins."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


def export_array(array: Any, stream: int) -> View:
    """Ask a library for an array, ready on a stream."""
    capsule = array.__dlpack__(stream=stream or LEGACY_STREAM)
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    tensor = _Tensor.from_address(pointer(capsule, NAME))
    axes, size = range(tensor.ndim), tensor.bits // 8
    shape = tuple(tensor.shape[k] for k in axes)
    strides = (
        tuple(size * tensor.strides[k] for k in axes)  # DLPack counts elements
        if tensor.strides
        else contiguous_strides(shape, size)
    )
    dtype = f"float{tensor.bits}" if tensor.code == 2 else f"DLPack type {tensor.code}"
    return View((tensor.data or 0) + tensor.byte_offset, shape, strides, dtype, capsule)


# An array on a GPU that this library allocates, for results of arguments whose library cannot make
# arrays.


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
        weakref.finalize(found, home.release, address).atexit = False
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


FLOATS: Final = {"<f8": "float64", "<f4": "float32"}


@final
class TorchTensors(ComputingKind):
    """Tensors of PyTorch."""

    library = "torch"
    remedy = "{name}.contiguous()"

    def __init__(self) -> None:
        self.module = sys.modules["torch"]
        self._type = self.module.Tensor
        self._names = {self.module.float64: "float64", self.module.float32: "float32"}
        self._strided = self.module.strided
        # The same number as below, without making an object of it.
        raw = getattr(self.module._C, "_cuda_getCurrentRawStream", None)
        self._raw_stream = raw or (lambda ordinal: int(self.module.cuda.current_stream(ordinal).cuda_stream))

    def holds(self, value: object) -> bool:
        return type(value) is self._type and is_cuda(value) and self._as_it_lies(value)

    def _as_it_lies(self, array: Any) -> bool:
        """Return whether the numbers of a tensor are those in its memory: neither sparse, nor lazily negated
        (`x.conj().imag`), nor zeros without memory (tangents that PyTorch omits)."""
        return array.layout is self._strided and not (array.is_neg() or array._is_zerotensor())

    def is_watched(self, array: Any) -> bool:
        return bool(array.requires_grad) and bool(self.module.is_grad_enabled())

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
        return self.module.empty(shape, dtype=getattr(self.module, dtype), device=f"cuda:{ordinal}")

    def spread(self, array: Any, shape: tuple[int, ...]) -> Any:
        return array.expand(shape).contiguous()

    def to_host(self, array: Any) -> npt.NDArray[Any]:
        return np.asarray(array.detach().cpu().numpy())

    def assign(self, target: Any, values: Any) -> None:
        target.copy_(self.module.as_tensor(values))

    def cast(self, array: Any, dtype: str) -> Any:
        return array.to(getattr(self.module, dtype))


@final
class CupyArrays(ComputingKind):
    """Arrays of CuPy."""

    library = "cupy"
    remedy = "cupy.ascontiguousarray({name})"

    def __init__(self) -> None:
        self.module = sys.modules["cupy"]
        self._type = self.module.ndarray

    def holds(self, value: object) -> bool:
        return type(value) is self._type

    def layout(self, array: Any) -> Hashable:
        return array.shape, array.strides, array.dtype, array.data.device_id

    def address(self, array: Any) -> int:
        return array.data.ptr  # type: ignore[no-any-return]

    def ordinal(self, array: Any) -> int:
        return int(array.device.id)

    def stream(self, ordinal: int, array: Any) -> int:
        with self.module.cuda.Device(ordinal):
            return int(self.module.cuda.get_current_stream().ptr)

    def view(self, name: str, array: Any, stream: int) -> View:
        return View(int(array.data.ptr), array.shape, array.strides, array.dtype.name)

    def empty(self, shape: tuple[int, ...], dtype: str, ordinal: int, stream: int) -> Any:
        with self.module.cuda.Device(ordinal):
            return self.module.empty(shape, dtype)

    def spread(self, array: Any, shape: tuple[int, ...]) -> Any:
        return self.module.ascontiguousarray(self.expand(array, shape))

    def to_host(self, array: Any) -> npt.NDArray[Any]:
        return np.asarray(self.module.asnumpy(array))

    def assign(self, target: Any, values: Any) -> None:
        target[...] = self.module.asarray(values)


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
            return export_array(array, stream)
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
    """Return the kind of an array on a GPU; None for other values, and for JAX arrays."""
    library = library_of(value)
    if library is None or library == "jax" or (library == "torch" and not is_cuda(value)):
        return None
    return _kind({"torch": TorchTensors, "cupy": CupyArrays}.get(library, OtherArrays))


def torch_kind() -> ComputingKind:
    """Return the kind of PyTorch tensors; PyTorch must be loaded."""
    return cast("ComputingKind", _kind(TorchTensors))


_KINDS: Final[dict[type[ArrayKind], ArrayKind]] = {}


def _kind(kind: type[ArrayKind]) -> ArrayKind:
    return _KINDS.get(kind) or _KINDS.setdefault(kind, kind())
