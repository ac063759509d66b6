"""Rollouts of JAX arrays on a GPU: all steps are one custom call of XLA, outside `jit` and inside.

`vmap` adds an axis of samples. Gradients do not pass: call `da.step` in `jax.lax.scan` for those.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, final

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from dalembert.call.cuda.device_arrays import Arithmetic
from dalembert.codegen import Rollout
from dalembert.compiler.gpu.rollout_launches import GpuRollout, RolloutLaunch, launch_rollout_on_buffers
from dalembert.compiler.kernels import Kernels
from dalembert.errors import ArgumentError, CompileError, DeviceError
from dalembert.interop import xla_calls
from dalembert.interop.coordinate_gradients import batch_of
from dalembert.interop.jax import (
    align_batch_axes,
    broadcast_to_batch,
    is_on_gpu,
    require_float_array,
    require_one_device,
)

ELSEWHERE: Final = (
    "rollout of JAX arrays is compiled for CUDA; elsewhere pass NumPy arrays, or call da.step in jax.lax.scan"
)


@final
class JaxArrays(Arithmetic):
    """Arrays of JAX, which are never written into."""

    def beside(self, values: npt.NDArray[Any], array: Any) -> Any:
        return jnp.asarray(values, array.dtype)

    def expand(self, array: Any, shape: tuple[int, ...]) -> Any:
        return jnp.broadcast_to(array, shape)

    def cast(self, array: Any, dtype: str) -> Any:
        return array.astype(dtype)

    def where(self, condition: Any, first: Any, second: float) -> Any:
        return jnp.where(condition, first, second)

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
    """Launch a rollout of JAX arrays, as `dalembert.compiler.gpu.rollout_launches.launch_rollout` does."""
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
    found = xla_calls.call(launch, task, broadcast_to_batch(arrays, inner, batch), results)
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
    results = rollout_p.bind(*align_batch_axes(arrays, axes, inner=inner), launch=launch)
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
