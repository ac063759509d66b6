"""JAX arrays in, JAX arrays out; `jit`, `vmap`, `grad`, `jvp`, `jacfwd`, `jacrev` and `hessian` work.

Every function of the library that maps arrays to arrays, and everything that `da.compile` makes, takes JAX
arrays as it takes NumPy arrays: `jax.jit(jax.grad(lambda q: da.dynamics.potential_energy(model, q)))`. A
call is one primitive for a model of any size; inside `jit` it is a call back to our kernel on the host.
Arrays on a GPU are computed there, inside `jit` and outside, by a custom call that launches our kernel on
XLA's stream.
Two primitives suffice:

    call_p(*arrays)                 the function
    linear_p(*arrays, *changes)     its directional derivative, linear in the changes; its transpose is the
                                    gradient, call_p of the function's vjp kernel

Gradients by configurations are by the coordinates of q: see `coordinate_gradients`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from dalembert.call import arguments as result_memory
from dalembert.call.arguments import pick_dtype
from dalembert.compiler.execution import CompiledFunction
from dalembert.errors import ArgumentError, CompileError, DeviceError, DtypeError, MissingExtraError
from dalembert.host.foreign_arrays import require_library
from dalembert.interop.coordinate_gradients import (
    align_batch_axes,
    batch_of,
    batch_shape,
    evaluate,
    of_dtype,
    on_arrays,
    pull_back,
    push_forward,
    results_of,
    signature_of,
)
from dalembert.model.model import Model

try:
    import jax
    import jax.numpy as jnp
    from jax.extend.core import Primitive
    from jax.interpreters import ad, batching, mlir
except ImportError as error:
    raise MissingExtraError(
        "da.interop.jax computes with JAX, which is not installed; pip install 'dalembert[jax]'"
    ) from error


def function(f: Callable[..., Any], model: Model | None = None, **options: Any) -> Callable[..., Any]:
    """Return a function of JAX arrays alone: `f(model, …)` of the library with its options fixed, or a
    compiled one.

    Lists and NumPy arrays become JAX arrays, so that the result is always a JAX array.
    """
    return on_arrays(_array_of, f, model, options)


def call(function: CompiledFunction, values: Sequence[object], out: object, check: str | None) -> Any:
    """Call a compiled function of JAX arrays; the results have the form that the function gives them."""
    if out is not None:
        raise ArgumentError(f"{function.name}: out= takes NumPy arrays; JAX arrays are never written into")
    names = signature_of(function).names
    dtype = pick_dtype(list(zip(names, values, strict=True)))
    require_one_device(dict(zip(names, values, strict=True)))
    arrays = [require_float_array(name, value, dtype) for name, value in zip(names, values, strict=True)]
    batch_shape(function, [array.shape for array in arrays])
    return function._hand_back(_caller(check)(of_dtype(function, dtype), arrays))


def alike(array: npt.NDArray[Any], beside: Any) -> Any:
    """Return a constant as an array of the float type of another."""
    return jnp.asarray(array, beside.dtype)


def _array_of(value: Any) -> Any:
    return jnp.asarray(value, float) if isinstance(value, list | np.ndarray) else value


def require_one_device(values: Mapping[str, Any]) -> None:
    """Refuse arrays that were put on different devices."""
    known: list[tuple[str, Any]] = []
    for name, value in values.items():
        if isinstance(value, jax.Array) and not isinstance(value, jax.core.Tracer) and value.committed:
            known.append((name, value.sharding))
    for name, place in known[1:]:
        first, there = known[0]
        if place.device_set != there.device_set:
            places = [", ".join(sorted(map(str, x.device_set))) for x in (place, there)]
            raise DeviceError(
                f"{name} is on {places[0]} and {first} is on {places[1]}; bring them together: "
                f"jax.device_put({name}, {first}.sharding)"
            )


def require_float_array(name: str, value: Any, dtype: str) -> Any:
    """Return the value as a JAX array of a float type, or refuse it."""
    require_library(name, value, "jax")
    array = value if isinstance(value, jax.Array) else np.asarray(value)
    if array.dtype not in (np.float64, np.float32) and not np.issubdtype(array.dtype, np.integer):
        raise DtypeError(f"{name} is {array.dtype}; convert it to float64 or float32")
    if dtype == "float64" and not jax.config.jax_enable_x64:
        raise DtypeError(
            f"{name} would be float64, which JAX rounds to float32 unless it is told otherwise: give arrays "
            'of float32, or set jax.config.update("jax_enable_x64", True)'
        )
    if isinstance(array, jax.Array) and not isinstance(array, jax.core.Tracer):
        platforms = {device.platform for device in array.devices()}
        if not platforms <= {"cpu", "gpu"}:
            raise DtypeError(
                f"{name} is on {', '.join(platforms)}, but functions are compiled for the CPU and for CUDA; "
                'move it there: jax.device_put(…, jax.devices("cpu")[0])'
            )
    return jnp.asarray(array, dtype)


def _caller(check: str | None) -> Callable[[CompiledFunction, Sequence[Any]], list[Any]]:
    def bind(function: CompiledFunction, arrays: Sequence[Any]) -> list[Any]:
        results: list[Any] = call_p.bind(*arrays, function=function, check=check)
        return results

    return bind


call_p: Final = Primitive("dalembert")
call_p.multiple_results = True

linear_p: Final = Primitive("dalembert_linear")
linear_p.multiple_results = True


@call_p.def_impl  # type: ignore[untyped-decorator]
def _evaluate_call(*arrays: Any, function: CompiledFunction, check: str | None) -> list[Any]:
    """Evaluate a call outside `jit`: the kernel reads the arrays where they are."""
    if any(is_on_gpu(array) for array in arrays):
        return _on_gpu(function, check)(*arrays)  # type: ignore[no-any-return]
    results = evaluate(function, [np.asarray(array) for array in arrays], check)
    # XLA does not copy memory that begins at a cache line, as large results do. Small ones copy faster.
    large = result_memory.MIN_REUSED_BYTES
    return [jnp.from_dlpack(x) if x.nbytes >= large else jnp.asarray(x) for x in results]


@call_p.def_abstract_eval  # type: ignore[untyped-decorator]
@linear_p.def_abstract_eval  # type: ignore[untyped-decorator]
def _shapes(*arrays: Any, function: CompiledFunction, wanted: Sequence[int] = (), **_: Any) -> list[Any]:
    """Return shapes and types of the results, from the arguments and the changes of those `wanted`."""
    signature = signature_of(function)
    places = [*range(len(signature.names)), *wanted]
    names, inner = ([values[k] for k in places] for values in (signature.names, signature.shapes))
    batch = batch_of(names, inner, [array.shape for array in arrays])  # type: ignore[arg-type]
    shapes = results_of(function)
    return [jax.core.ShapedArray((*batch, *shape), np.dtype(function.dtype)) for shape in shapes]


def _called_back(*arrays: Any, function: CompiledFunction, check: str | None) -> Any:
    """Evaluate a call inside `jit`: XLA calls the kernel on the host."""

    def on_host(*given: Any) -> list[npt.NDArray[Any]]:
        return evaluate(function, [np.asarray(array) for array in given], check)

    return jax.pure_callback(on_host, _shapes(*arrays, function=function), *arrays)


def may_be_on_gpu(array: Any) -> bool:
    """Return whether an array is on a GPU, or is traced: a traced computation may run anywhere."""
    return isinstance(array, jax.core.Tracer) or is_on_gpu(array)


def is_on_gpu(array: Any) -> bool:
    return isinstance(array, jax.Array) and any(device.platform != "cpu" for device in array.devices())


@functools.lru_cache(maxsize=1024)
def _on_gpu(function: CompiledFunction, check: str | None) -> Any:
    """Return the jitted call of a function alone."""
    return jax.jit(lambda *arrays: call_p.bind(*arrays, function=function, check=check))


def _launch_by_xla(*arrays: Any, function: CompiledFunction, check: str | None) -> list[Any]:
    """Launch a call on a GPU: XLA calls a function of ours that launches the kernel."""
    from dalembert.compiler.gpu_calls import launch_on_buffers
    from dalembert.interop import xla_calls  # which knows the inside of XLA

    if check not in (None, "off"):
        raise ArgumentError(
            f'{function.name}: check="{check}" would have to wait for the GPU, which XLA does not allow '
            'inside a computation; leave check="off", or compute on the CPU'
        )
    batch = batch_shape(function, [array.shape for array in arrays])
    whole = broadcast_to_batch(arrays, signature_of(function).shapes, batch)
    launch = functools.partial(launch_on_buffers, function)
    return xla_calls.call(function, launch, whole, _shapes(*arrays, function=function))


def broadcast_to_batch(
    arrays: Sequence[Any], inner: Sequence[tuple[int, ...]], batch: tuple[int, ...]
) -> list[Any]:
    """Broadcast to the batch all arrays but those for one sample."""
    found = []
    for array, shape in zip(arrays, inner, strict=True):
        own = array.shape[: array.ndim - len(shape)]
        some = own != batch and any(length != 1 for length in own)
        found.append(jnp.broadcast_to(array, batch + shape) if some else array)
    return found


def _raise_unsupported_platform(*args: Any, function: CompiledFunction, **params: Any) -> Any:
    raise CompileError(
        f"{function.name} is compiled for the CPU and for CUDA; run it there: jax.jit(…, backend='cpu')"
    )


def _batch(primitive: Any, arrays: Any, axes: Any, *, function: CompiledFunction, **params: Any) -> Any:
    inner = [len(shape) for shape in signature_of(function).shapes]
    inner += [inner[k] for k in params.get("wanted", ())]
    moved = align_batch_axes(arrays, axes, inner, lambda array, axis: jnp.moveaxis(array, axis, 0))
    results = primitive.bind(*moved, function=function, **params)
    return results, [0] * len(results)


def _differentiate(primals: Any, tangents: Any, *, function: CompiledFunction, check: str | None) -> Any:
    results = _caller(check)(function, primals)
    wanted = tuple(k for k, tangent in enumerate(tangents) if type(tangent) is not ad.Zero)
    changes = [tangents[k] for k in wanted]
    return results, linear_p.bind(*primals, *changes, function=function, check=check, wanted=wanted)


@linear_p.def_impl  # type: ignore[untyped-decorator]
def _linear(
    *arrays: Any, function: CompiledFunction, check: str | None, wanted: tuple[int, ...]
) -> list[Any]:
    count = len(arrays) - len(wanted)
    return push_forward(_caller(check), function, arrays[:count], arrays[count:], wanted)


def _differentiate_linear(primals: Any, tangents: Any, **params: Any) -> Any:
    """Differentiate the composition that computes a directional derivative."""
    changes = tuple(
        jnp.zeros_like(x) if type(t) is ad.Zero else t for x, t in zip(primals, tangents, strict=True)
    )
    return jax.jvp(lambda *arrays: _linear(*arrays, **params), primals, changes)


def _transpose(
    cotangents: Any, *arrays: Any, function: CompiledFunction, check: str | None, wanted: tuple[int, ...]
) -> list[Any]:
    """Return gradients by the changes, each of its own shape."""
    count = len(arrays) - len(wanted)
    primals, changes = arrays[:count], arrays[count:]
    weights = [ad.instantiate_zeros(cotangent) for cotangent in cotangents]
    open_places = [k for k, change in zip(wanted, changes, strict=True) if ad.is_undefined_primal(change)]
    found = iter(pull_back(_caller(check), function, primals, weights, open_places))
    gradients: list[Any] = [None] * count
    for change in changes:
        known = not ad.is_undefined_primal(change)
        gradients.append(None if known else _unbroadcast(next(found), change.aval.shape))
    return gradients


def _unbroadcast(gradient: Any, shape: tuple[int, ...]) -> Any:
    """Sum a gradient over the batch axes along which its array was broadcast."""
    extra = gradient.ndim - len(shape)
    axes = [*range(extra), *(extra + k for k, n in enumerate(shape) if n == 1 != gradient.shape[extra + k])]
    return gradient.sum(axis=tuple(axes), keepdims=False).reshape(shape) if axes else gradient


mlir.register_lowering(call_p, mlir.lower_fun(_raise_unsupported_platform, multiple_results=True))
mlir.register_lowering(call_p, mlir.lower_fun(_called_back, multiple_results=True), platform="cpu")
mlir.register_lowering(call_p, mlir.lower_fun(_launch_by_xla, multiple_results=True), platform="cuda")
mlir.register_lowering(linear_p, mlir.lower_fun(_linear, multiple_results=True))
batching.primitive_batchers[call_p] = functools.partial(_batch, call_p)
batching.primitive_batchers[linear_p] = functools.partial(_batch, linear_p)
ad.primitive_jvps[call_p] = _differentiate
ad.primitive_jvps[linear_p] = _differentiate_linear
ad.primitive_transposes[linear_p] = _transpose
