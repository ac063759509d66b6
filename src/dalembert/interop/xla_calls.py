"""Kernels and rollouts as custom calls of XLA: JAX gives the buffers and the stream, we launch.

XLA calls a C function with a *call frame* (`xla/ffi/api/c_api.h`): arguments and results as buffers,
attributes, and functions to ask for the stream. One such function serves all kernels; the attribute `number`
says which task it is. So results are XLA's own memory, everything is ordered on its stream, and `jit` works.

All steps of a rollout are one such call, outside `jit` and inside. `vmap` adds an axis of samples. Gradients
do not pass: call `da.step` in `jax.lax.scan` for those.
"""

from __future__ import annotations

import ctypes
import functools
import re
import sys
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from dalembert.call.cuda.device_arrays import Arithmetic
from dalembert.codegen import Rollout
from dalembert.compiler.gpu_calls import GpuRollout, RolloutLaunch, launch_rollout_on_buffers
from dalembert.compiler.kernels import Kernels
from dalembert.errors import ArgumentError, CompileError, DeviceError
from dalembert.host.process import renew_after_fork
from dalembert.interop.coordinate_gradients import align_batch_axes, batch_of
from dalembert.interop.jax import broadcast_to_batch, is_on_gpu, require_float_array, require_one_device

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


# Rollouts.

ELSEWHERE: Final = (
    "rollout of JAX arrays is compiled for CUDA; elsewhere pass NumPy arrays, or call da.step in jax.lax.scan"
)


@final
class JaxArrays(Arithmetic):
    """Arrays of JAX, which are never written into."""

    module = jnp

    def beside(self, values: npt.NDArray[Any], array: Any) -> Any:
        return jnp.asarray(values, array.dtype)

    def to_host(self, array: Any) -> npt.NDArray[Any]:
        return np.asarray(array)


def arithmetic(values: Sequence[object]) -> JaxArrays:
    """Return the object that computes with arrays of JAX."""
    return JaxArrays()


def launch_rollout(
    kernels: Kernels,
    rollout: Rollout,
    values: Mapping[str, Any],
    *,
    steps: int,
    every: int,
    starts: Mapping[int, str | float],
    unwanted: Collection[str] = (),
) -> GpuRollout:
    """Launch a rollout of JAX arrays, as `dalembert.compiler.gpu_calls.launch_rollout` does."""
    launch = RolloutLaunch(kernels, rollout, steps, every, tuple(starts.items()), frozenset(unwanted))
    named = {item.name: values[item.name] for item in launch.arguments}
    require_one_device(named)
    arrays = [require_float_array(name, value, kernels.dtype) for name, value in named.items()]
    batch = _batch(launch, arrays)
    found = iter(rollout_p.bind(*arrays, launch=launch))
    outputs = tuple(None if shape is None else next(found) for shape in launch.frames(batch))
    state = {name: next(found) for name, _ in rollout.carried}
    return GpuRollout(batch, outputs, state, next(found))


def _inner(launch: RolloutLaunch, arrays: Sequence[Any]) -> list[tuple[int, ...]]:
    """Return the shapes of arguments without batch axes."""
    return [item.shape for item in launch.signature([array.shape for array in arrays])]


def _batch(launch: RolloutLaunch, arrays: Sequence[Any]) -> tuple[int, ...]:
    names = [item.name for item in launch.arguments]
    return batch_of(names, _inner(launch, arrays), [array.shape for array in arrays])


rollout_p: Final = Primitive("dalembert_rollout")
rollout_p.multiple_results = True


@rollout_p.def_impl  # type: ignore[untyped-decorator]
def _evaluate_call(*arrays: Any, launch: RolloutLaunch) -> list[Any]:
    if not any(is_on_gpu(array) for array in arrays):
        raise DeviceError(ELSEWHERE)
    return _jit_rollout(launch)(*arrays)  # type: ignore[no-any-return]


@functools.lru_cache(maxsize=1024)
def _jit_rollout(launch: RolloutLaunch) -> Any:
    return jax.jit(lambda *arrays: rollout_p.bind(*arrays, launch=launch))


@rollout_p.def_abstract_eval  # type: ignore[untyped-decorator]
def _shapes(*arrays: Any, launch: RolloutLaunch) -> list[Any]:
    """Return the shapes of frames, carried arguments, and the refused steps."""
    batch, dtype = _batch(launch, arrays), np.dtype(launch.kernels.dtype)
    wanted = [shape for shape in launch.frames(batch) if shape is not None]
    found = [jax.core.ShapedArray(shape, dtype) for shape in (*wanted, *launch.state(batch).values())]
    return [*found, jax.core.ShapedArray(batch, np.dtype(np.int32))]


def _launch_by_xla(*arrays: Any, launch: RolloutLaunch) -> list[Any]:
    """Launch a rollout by a function that XLA calls; the first frame is written before it is read."""
    batch, inner = _batch(launch, arrays), _inner(launch, arrays)
    task = functools.partial(launch_rollout_on_buffers, launch)
    *wanted, refused = _shapes(*arrays, launch=launch)
    # The kernel writes 64 bits, of which the lower half is the number.
    results = [*wanted, jax.core.ShapedArray((*refused.shape, 2), refused.dtype)]
    found = call(launch, task, broadcast_to_batch(arrays, inner, batch), results)
    names = [item.name for item in launch.arguments]
    starts = dict(launch.starts)
    kept = [result for result, shape in enumerate(launch.frames(batch)) if shape is not None]
    for place, result in enumerate(kept):
        if result in starts:
            start = starts[result]
            value = arrays[names.index(start)] if isinstance(start, str) else start
            first = (*[slice(None)] * len(batch), 0)
            found[place] = found[place].at[first].set(value)
    found[-1] = found[-1][..., 0]
    return found


def _raise_unsupported_platform(*arrays: Any, launch: RolloutLaunch) -> Any:
    raise CompileError(ELSEWHERE)


def _batch_rollout(arrays: Any, axes: Any, *, launch: RolloutLaunch) -> Any:
    shapes = [list(array.shape) for array in arrays]
    for shape, axis in zip(shapes, axes, strict=True):
        if axis is not None:
            del shape[axis]
    inner = [len(item.shape) for item in launch.signature([tuple(shape) for shape in shapes])]
    moved = align_batch_axes(arrays, axes, inner, lambda array, axis: jnp.moveaxis(array, axis, 0))
    results = rollout_p.bind(*moved, launch=launch)
    return results, [0] * len(results)


def _rollout_jvp(primals: Any, tangents: Any, *, launch: RolloutLaunch) -> Any:
    if all(type(tangent) is ad.Zero for tangent in tangents):
        results = rollout_p.bind(*primals, launch=launch)
        return results, [ad.Zero.from_primal_value(result) for result in results]
    raise ArgumentError(
        "rollout: gradients do not pass through a rollout; call da.step in jax.lax.scan, or stop them: "
        "jax.lax.stop_gradient(q0)"
    )


mlir.register_lowering(rollout_p, mlir.lower_fun(_raise_unsupported_platform, multiple_results=True))
mlir.register_lowering(rollout_p, mlir.lower_fun(_launch_by_xla, multiple_results=True), platform="cuda")
batching.primitive_batchers[rollout_p] = _batch_rollout
ad.primitive_jvps[rollout_p] = _rollout_jvp
