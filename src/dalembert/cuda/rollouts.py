"""Many steps of a function on a GPU, in one launch: each thread takes its sample through all of them.

Arrays are read and written where the caller's library has them; nothing is waited for.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from dalembert.arguments import ArrayArgument
from dalembert.codegen.rollout import Rollout
from dalembert.cuda.arrays import ComputingKind, kind_of
from dalembert.cuda.device import device
from dalembert.cuda.rows import rows_on
from dalembert.errors import DeviceError, ShapeError
from dalembert.kernels import Kernels

__all__ = ["GpuRollout", "launch_rollout", "rollout_kind"]


@final
@dataclass(frozen=True, slots=True)
class GpuRollout:
    """What a rollout gave: arrays of the caller's kind.

    `outputs`: one array a result, `(…, frames, *shape)`, with one frame more, the start, where it was asked
    for, and None where frames were not wanted. `state`: what is carried, after the last step.
    `refused (…,)`: for each sample the first step whose arguments were refused, or -1.
    """

    batch: tuple[int, ...]
    outputs: tuple[Any, ...]
    state: dict[str, Any]
    refused: Any


def rollout_kind(values: Sequence[object]) -> ComputingKind:
    """The kind of the first array on a GPU, which must be one that computes with them."""
    kind = next(kind for value in values if (kind := kind_of(value)) is not None)
    if not isinstance(kind, ComputingKind):
        raise DeviceError(
            "rollouts on a GPU take tensors of PyTorch or arrays of CuPy; bring others there without a copy, "
            'for instance with torch.as_tensor(x, device="cuda")'
        )
    return kind


def launch_rollout(
    kernels: Kernels,
    rollout: Rollout,
    values: Mapping[str, Any],
    *,
    steps: int,
    every: int,
    starts: Mapping[int, Any],
    unwanted: Collection[str] = (),
) -> GpuRollout:
    """Take `steps` steps of arguments by name, streams `(…, steps, *shape)` or `(…, 1, *shape)`.

    `starts`: results, by number, whose frames begin with a value for the start. `unwanted`: carried arguments
    of which nobody wants frames.
    """
    recipe, dtype = kernels.recipe, kernels.dtype
    arguments = (*recipe.signature, *recipe.parameters)
    given = [values[item.name] for item in arguments]
    kind = rollout_kind(given)
    home = device(kind.ordinal(next(value for value in given if kind_of(value) is not None)))
    stream = kind.stream(home.ordinal, next(value for value in given if kind_of(value) is kind))
    signature = [
        _with_steps(item, values[item.name], steps) if item.name in rollout.streams else item
        for item in arguments
    ]
    rows = rows_on(home, kind, stream, signature, given, dtype)
    kernel = kernels.on_gpu(home)
    size = np.dtype(dtype).itemsize
    steps_apart = [
        item.size * size if item.name in rollout.streams and own.shape[0] > 1 else 0
        for item, own in zip(arguments, signature, strict=True)
    ]
    frames, results = steps // every, kernels.results()
    sizes = {item.name: item for item in arguments}
    state = {
        name: kind.empty((*rows.batch, *sizes[name].shape), dtype, home.ordinal, stream)
        for name, _ in rollout.carried
    }
    finals = [(kind.view(n, x, stream).address, sizes[n].size * size) for n, x in state.items()]
    # Frames that nobody wants are written where the final values will be.
    shared = {
        number: place
        for (name, number), place in zip(rollout.carried, finals, strict=True)
        if name in unwanted
    }
    outputs: list[Any] = []
    places, apart = [], []
    for number, item in enumerate(results):
        if number in shared:
            outputs.append(None)
            places.append(shared[number])
            apart.append(0)
            continue
        extra = int(number in starts)
        array = kind.empty((*rows.batch, frames + extra, *item.shape), dtype, home.ordinal, stream)
        width = item.size * size
        place = (kind.view(item.name, array, stream).address, (frames + extra) * width)
        if extra:
            kind.assign(array[(*[slice(None)] * len(rows.batch), 0)], starts[number])
        outputs.append(array)
        places.append((place[0] + extra * width, place[1]))
        apart.append(width)
    places += finals
    refused = kind.empty(rows.batch, "int64", home.ordinal, stream)
    places.append((kind.view("refused", refused, stream).address, 8))
    needed = kernel.scratch_bytes(rows.count) // 8
    scratch = kind.empty((needed,), "float64", home.ordinal, stream) if needed else None
    kernel.launch(
        stream,
        rows.inputs,
        places,
        rows.count,
        scratch=0 if scratch is None else kind.view("", scratch, stream).address,
        more=(steps, every, every, *steps_apart, *apart),
    )
    return GpuRollout(rows.batch, tuple(outputs), state, refused)


def _with_steps(item: ArrayArgument, value: Any, steps: int) -> ArrayArgument:
    """The shape of a stream: a value for each step, or one that is held."""
    shape = tuple(np.shape(value) if kind_of(value) is None else value.shape)
    axis = len(shape) - len(item.shape) - 1
    if axis < 0 or shape[axis] not in (1, steps):
        raise ShapeError(
            f"{item.name} has the shape {shape}; expected (…, {steps}, …), a value for each of the {steps} "
            "steps, or (…, 1, …), held throughout"
        )
    return ArrayArgument(item.name, (shape[axis], *item.shape))
