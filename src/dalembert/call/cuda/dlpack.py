"""Arrays on a GPU through DLPack capsules."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any, Final, final

__all__ = ["Exported", "export_array"]

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


@final
@dataclass(frozen=True, slots=True)
class Exported:
    """An array as its library exports it; strides are in elements, None for row-major arrays."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    code: int
    bits: int
    capsule: object


def export_array(array: Any, stream: int) -> Exported:
    """Ask a library for an array, ready on a stream."""
    capsule = array.__dlpack__(stream=stream or LEGACY_STREAM)
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    tensor = _Tensor.from_address(pointer(capsule, NAME))
    axes = range(tensor.ndim)
    return Exported(
        (tensor.data or 0) + tensor.byte_offset,
        tuple(tensor.shape[k] for k in axes),
        tuple(tensor.strides[k] for k in axes) if tensor.strides else None,
        tensor.code,
        tensor.bits,
        capsule,
    )
