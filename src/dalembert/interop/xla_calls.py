"""Kernels as custom calls of XLA: JAX gives the buffers and the stream, we launch.

XLA calls a C function with a *call frame* (`xla/ffi/api/c_api.h`): arguments and results as buffers,
attributes, and functions to ask for the stream. One such function serves all kernels; the attribute `number`
says which task it is. So results are XLA's own memory, everything is ordered on its stream, and `jit` works.
"""

from __future__ import annotations

import ctypes
import re
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

import jax
import numpy as np

from dalembert.host.process import renew_after_fork

TARGET: Final = "dalembert_launch"

# xla/ffi/api/c_api.h: XLA_FFI_Extension_Metadata, XLA_FFI_ExecutionStage_EXECUTE, XLA_FFI_Error_Code_INTERNAL
METADATA_EXTENSION: Final = 1
EXECUTE_STAGE: Final = 3
INTERNAL_ERROR: Final = 13

_SIZE, _POINTER, _INT, _LONG = ctypes.c_size_t, ctypes.c_void_p, ctypes.c_int, ctypes.c_int64


def _structure(*, head: bool = True, **fields: Any) -> Any:
    """Return the C structure of these fields, which the size and the extension precede."""
    start = [("struct_size", _SIZE), ("extension", _POINTER)] if head else []
    return type("_Structure", (ctypes.Structure,), {"_fields_": [*start, *fields.items()]})


_POINTERS: Final = ctypes.POINTER(_POINTER)
_LONGS: Final = ctypes.POINTER(_LONG)

_Version = _structure(major=_INT, minor=_INT)
_Metadata = _structure(head=False, struct_size=_SIZE, version=_Version, traits=ctypes.c_uint32)
_Extension = _structure(head=False, struct_size=_SIZE, type=_INT, next=_POINTER, metadata=_POINTER)
_Buffer = _structure(dtype=_INT, data=_POINTER, rank=_LONG, dims=_LONGS)
_Items = _structure(size=_LONG, types=_POINTER, items=_POINTERS)
_Attributes = _structure(size=_LONG, types=_POINTER, names=_POINTER, items=_POINTERS)
_Scalar = _structure(head=False, dtype=_INT, value=_LONGS)
_Frame = _structure(
    api=_POINTER, context=_POINTER, stage=_INT, arguments=_Items, results=_Items, attributes=_Attributes
)
_FUNCTIONS: Final = ("error_create", "error_message", "error_destroy", "handler_register", "stream_get")
_functions: Final[dict[str, Any]] = dict.fromkeys(_FUNCTIONS, _POINTER)
_Api = _structure(version=_Version, internal=_POINTER, **_functions)
_Error = _structure(message=ctypes.c_char_p, code=_INT)
_Stream = _structure(context=_POINTER, stream=_POINTER)

_HANDLER: Final = ctypes.CFUNCTYPE(_POINTER, _POINTER)


@final
@dataclass(frozen=True, slots=True)
class Buffer:
    """Row-major memory of XLA."""

    address: int
    shape: tuple[int, ...]


Task = Callable[[int, list[Buffer], list[Buffer]], None]
"""What a custom call does, given the stream, the arguments and the results."""

_tasks: Final[list[Task]] = []
_numbers: Final[dict[object, int]] = {}
_lock = threading.Lock()
renew_after_fork(sys.modules[__name__])
_registered: Final[set[str]] = set()


def number_of(key: object, task: Task) -> int:
    """Return the number under which a task is called; the same for the same key."""
    with _lock:
        if key not in _numbers:
            _numbers[key] = len(_tasks)
            _tasks.append(task)
        return _numbers[key]


def register(platform: str) -> None:
    """Make the function known to XLA, for "CUDA", or for "cpu", where there is no stream."""
    with _lock:
        if platform not in _registered:
            jax.ffi.register_ffi_target(TARGET, jax.ffi.pycapsule(_HANDLERS[platform]), platform=platform)
            _registered.add(platform)


def call(key: object, task: Task, arrays: Sequence[Any], results: Sequence[Any]) -> list[Any]:
    """Return the results, of given shapes and types, of a task as a custom call inside a computation."""
    register("CUDA")
    target = jax.ffi.ffi_call(TARGET, [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in results])
    return list(target(*arrays, number=np.int64(number_of(key, task))))


def _api_minor() -> int:
    """Return the minor version of the interface that this JAX has, from its header."""
    header = Path(jax.ffi.include_dir(), "xla", "ffi", "api", "c_api.h")
    found = re.search(r"#define XLA_FFI_API_MINOR (\d+)", header.read_text()) if header.exists() else None
    return int(found[1]) if found else 1


def _answer(frame: Any, has_stream: bool) -> int | None:
    """Answer a request of XLA: metadata of this function, or a call."""
    extension = frame.extension
    while extension:
        given = _Extension.from_address(extension)
        if given.type == METADATA_EXTENSION:
            metadata = _Metadata.from_address(given.metadata)
            metadata.version = _Version(ctypes.sizeof(_Version), None, 0, _api_minor())
            metadata.traits = 0
            return None
        extension = given.next
    if frame.stage != EXECUTE_STAGE:
        return None
    api = _Api.from_address(frame.api)
    try:
        stream = 0
        if has_stream:
            asked = _Stream(ctypes.sizeof(_Stream), None, frame.context, None)
            if _HANDLER(api.stream_get)(ctypes.addressof(asked)):
                raise RuntimeError("XLA names no stream")
            stream = asked.stream or 0
        number = _Scalar.from_address(frame.attributes.items[0]).value[0]
        _tasks[number](stream, _buffers(frame.arguments), _buffers(frame.results))
    except BaseException as error:
        message = f"{type(error).__name__}: {error}".encode()
        given = _Error(ctypes.sizeof(_Error), None, message, INTERNAL_ERROR)
        made: int | None = _HANDLER(api.error_create)(ctypes.addressof(given))
        return made
    return None


_HANDLERS: Final = {
    "CUDA": _HANDLER(lambda frame: _answer(_Frame.from_address(frame), True)),
    "cpu": _HANDLER(lambda frame: _answer(_Frame.from_address(frame), False)),
}


def _buffers(items: Any) -> list[Buffer]:
    buffers = [_Buffer.from_address(items.items[k]) for k in range(items.size)]
    return [Buffer(buffer.data or 0, tuple(buffer.dims[: buffer.rank])) for buffer in buffers]
