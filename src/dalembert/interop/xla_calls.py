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
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

import jax

from dalembert.host.process import renew_after_fork

__all__ = ["TARGET", "Buffer", "number_of", "register"]

TARGET: Final = "dalembert_launch"

# xla/ffi/api/c_api.h: XLA_FFI_Extension_Metadata, XLA_FFI_ExecutionStage_EXECUTE, XLA_FFI_Error_Code_INTERNAL
METADATA_EXTENSION: Final = 1
EXECUTE_STAGE: Final = 3
INTERNAL_ERROR: Final = 13

_SIZE, _POINTER, _INT, _LONG = ctypes.c_size_t, ctypes.c_void_p, ctypes.c_int, ctypes.c_int64


def _structure(name: str, *fields: tuple[str, Any]) -> Any:
    return type(name, (ctypes.Structure,), {"_fields_": fields})


_HEAD: Final = (("struct_size", _SIZE), ("extension", _POINTER))
_Version = _structure("_Version", *_HEAD, ("major", _INT), ("minor", _INT))
_Metadata = _structure(
    "_Metadata", ("struct_size", _SIZE), ("version", _Version), ("traits", ctypes.c_uint32)
)
_Extension = _structure(
    "_Extension", ("struct_size", _SIZE), ("type", _INT), ("next", _POINTER), ("metadata", _POINTER)
)
_Buffer = _structure(
    "_Buffer", *_HEAD, ("dtype", _INT), ("data", _POINTER), ("rank", _LONG), ("dims", ctypes.POINTER(_LONG))
)
_Items = _structure(
    "_Items", *_HEAD, ("size", _LONG), ("types", _POINTER), ("items", ctypes.POINTER(_POINTER))
)
_Attributes = _structure(
    "_Attributes",
    *_HEAD,
    ("size", _LONG),
    ("types", _POINTER),
    ("names", _POINTER),
    ("items", ctypes.POINTER(_POINTER)),
)
_Scalar = _structure("_Scalar", ("dtype", _INT), ("value", ctypes.POINTER(_LONG)))
_Frame = _structure(
    "_Frame",
    *_HEAD,
    ("api", _POINTER),
    ("context", _POINTER),
    ("stage", _INT),
    ("arguments", _Items),
    ("results", _Items),
    ("attributes", _Attributes),
)
_Api = _structure(
    "_Api",
    *_HEAD,
    ("version", _Version),
    ("internal", _POINTER),
    ("error_create", _POINTER),
    ("error_message", _POINTER),
    ("error_destroy", _POINTER),
    ("handler_register", _POINTER),
    ("stream_get", _POINTER),
)
_Error = _structure("_Error", *_HEAD, ("message", ctypes.c_char_p), ("code", _INT))
_Stream = _structure("_Stream", *_HEAD, ("context", _POINTER), ("stream", _POINTER))

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
        stream = _stream(api, frame.context) if has_stream else 0
        number = _Scalar.from_address(frame.attributes.items[0]).value[0]
        _tasks[number](stream, _buffers(frame.arguments), _buffers(frame.results))
    except BaseException as error:
        return _error(api, f"{type(error).__name__}: {error}")
    return None


def _handler(has_stream: bool) -> Any:
    return _HANDLER(lambda frame: _answer(_Frame.from_address(frame), has_stream))


_HANDLERS: Final = {"CUDA": _handler(True), "cpu": _handler(False)}


def _buffers(items: Any) -> list[Buffer]:
    found = []
    for k in range(items.size):
        buffer = _Buffer.from_address(items.items[k])
        found.append(Buffer(buffer.data or 0, tuple(buffer.dims[axis] for axis in range(buffer.rank))))
    return found


def _stream(api: Any, context: int) -> int:
    asked = _Stream(ctypes.sizeof(_Stream), None, context, None)
    error = _HANDLER(api.stream_get)(ctypes.addressof(asked))
    if error:
        raise RuntimeError("XLA names no stream")
    return asked.stream or 0


def _error(api: Any, message: str) -> int | None:
    given = _Error(ctypes.sizeof(_Error), None, message.encode(), INTERNAL_ERROR)
    made: int | None = _HANDLER(api.error_create)(ctypes.addressof(given))
    return made
