"""Many steps of a function on a GPU, in one launch: each thread takes its sample through all of them.

Arrays are read and written where the caller's library has them; nothing is waited for.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from dalembert.call.arguments import ArrayArgument
from dalembert.call.cuda.device import device, device_of_address
from dalembert.call.cuda.device_arrays import ComputingKind, kind_of
from dalembert.call.cuda.device_rows import Buffer, Queue, buffer_rows
from dalembert.call.cuda.kernel import GpuKernel
from dalembert.codegen import Rollout
from dalembert.compiler.kernels import Kernels
from dalembert.errors import DeviceError, ShapeError

Shape = tuple[int, ...]


@final
@dataclass(frozen=True, slots=True)
class GpuRollout:
    """The results of a rollout, as arrays of the caller's kind.

    `outputs`: one array a result, `(…, frames, *shape)`, with one frame more, the start, where it was asked
    for, and None where frames were not wanted. `state`: what is carried, after the last step.
    `refused (…,)`: for each sample the first step whose arguments were refused, or -1.
    """

    batch: Shape
    outputs: tuple[Any, ...]
    state: dict[str, Any]
    refused: Any


@final
@dataclass(frozen=True, slots=True)
class RolloutLaunch:
    """The description of a rollout, independent of its arrays.

    `starts`: results, by number, whose frames begin with the start: with the value of an argument, or with a
    number. `unwanted`: carried arguments of which nobody wants frames.
    """

    kernels: Kernels
    rollout: Rollout
    steps: int
    every: int
    starts: tuple[tuple[int, str | float], ...]
    unwanted: frozenset[str]

    @property
    def arguments(self) -> tuple[ArrayArgument, ...]:
        """The arguments of a step."""
        recipe = self.kernels.recipe
        return (*recipe.signature, *recipe.parameters)

    def signature(self, shapes: Sequence[Shape]) -> tuple[ArrayArgument, ...]:
        """Return the arguments of all steps, given the shapes of all: streams have an axis of steps."""
        return tuple(
            self._stream(item, shape) if item.name in self.rollout.streams else item
            for item, shape in zip(self.arguments, shapes, strict=True)
        )

    def _stream(self, item: ArrayArgument, shape: Shape) -> ArrayArgument:
        """Return a stream argument: a value for each step, or one that is held."""
        axis = len(shape) - len(item.shape) - 1
        if axis < 0 or shape[axis] not in (1, self.steps):
            raise ShapeError(
                f"{item.name} has the shape {shape}; expected (…, {self.steps}, …), a value for each of the "
                f"{self.steps} steps, or (…, 1, …), held throughout"
            )
        return ArrayArgument(item.name, (shape[axis], *item.shape))

    def frames(self, batch: Shape) -> list[Shape | None]:
        """Return the shapes of the results; None for those whose frames are not wanted."""
        unwanted = {number for name, number in self.rollout.carried if name in self.unwanted}
        begun, count = dict(self.starts), self.steps // self.every
        return [
            None if number in unwanted else (*batch, count + (number in begun), *item.shape)
            for number, item in enumerate(self.kernels.results())
        ]

    def state(self, batch: Shape) -> dict[str, Shape]:
        """Return the shapes of the carried values."""
        shapes = {item.name: item.shape for item in self.arguments}
        return {name: (*batch, *shapes[name]) for name, _ in self.rollout.carried}

    def start(
        self,
        kernel: GpuKernel,
        stream: int,
        inputs: Sequence[tuple[int, int]],
        signature: Sequence[ArrayArgument],
        frames: Sequence[int | None],
        others: Sequence[int],
        rows: int,
        scratch: int,
    ) -> None:
        """Launch on arrays at these addresses: `frames` of results, None where they are not wanted, `others`
        for what is carried and for the refused steps."""
        size = np.dtype(self.kernels.dtype).itemsize
        carried, results = self.rollout.carried, self.kernels.results()
        finals = {
            number: (address, results[number].size * size)
            for (_, number), address in zip(carried, others[:-1], strict=True)
        }
        begun, count = dict(self.starts), self.steps // self.every
        places, apart = [], []
        for number, (item, address) in enumerate(zip(results, frames, strict=True)):
            width, extra = item.size * size, int(number in begun)
            # Frames that nobody wants are written where the final values will be.
            places.append(
                finals[number] if address is None else (address + extra * width, (count + extra) * width)
            )
            apart.append(0 if address is None else width)
        places += [*(finals[number] for _, number in carried), (others[-1], 8)]
        steps_apart = [
            item.size * size if item.name in self.rollout.streams and own.shape[0] > 1 else 0
            for item, own in zip(self.arguments, signature, strict=True)
        ]
        more = (self.steps, self.every, self.every, *steps_apart, *apart)
        kernel.launch(stream, inputs, places, rows, scratch=scratch, more=more)


def arithmetic(values: Sequence[object]) -> ComputingKind:
    """Return the kind of the first array on a GPU, whose library must have array arithmetic."""
    kind = next(kind for value in values if (kind := kind_of(value)) is not None)
    if not isinstance(kind, ComputingKind):
        raise DeviceError(
            "rollouts on a GPU take PyTorch tensors, CuPy arrays or JAX arrays; bring others there without a "
            'copy, for instance with torch.as_tensor(x, device="cuda")'
        )
    return kind


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
    """Take `steps` steps of arguments by name, streams `(…, steps, *shape)` or `(…, 1, *shape)`; `starts` and
    `unwanted` as in `RolloutLaunch`."""
    launch = RolloutLaunch(kernels, rollout, steps, every, tuple(starts.items()), frozenset(unwanted))
    given, dtype = [values[item.name] for item in launch.arguments], kernels.dtype
    kind, queue = arithmetic(given), Queue.of(given)
    signature = launch.signature([tuple(np.shape(value)) for value in given])
    rows = queue.rows(signature, given, dtype)
    kernel = kernels.on_gpu(queue.device, queue.stream)
    state = {name: queue.empty(shape, dtype) for name, shape in launch.state(rows.batch).items()}
    outputs: list[Any] = [
        None if shape is None else queue.empty(shape, dtype) for shape in launch.frames(rows.batch)
    ]
    for number, start in launch.starts:
        place = outputs[number][(*[slice(None)] * len(rows.batch), 0)]
        kind.assign(place, values[start] if isinstance(start, str) else start)
    refused = queue.empty(rows.batch, "int64")
    _keep, scratch = queue.scratch(kernel, rows.count)
    launch.start(
        kernel,
        queue.stream,
        rows.inputs,
        signature,
        [None if array is None else queue.address(array) for array in outputs],
        [queue.address(array) for array in (*state.values(), refused)],
        rows.count,
        scratch,
    )
    return GpuRollout(rows.batch, tuple(outputs), state, refused)


def launch_rollout_on_buffers(
    launch: RolloutLaunch, stream: int, arguments: Sequence[Buffer], results: Sequence[Buffer]
) -> None:
    """Launch on row-major memory that somebody else allocated: frames that are wanted, what is carried, and
    `(…, 2)` words for the refused steps."""
    batch = results[-1].shape[:-1]
    count = math.prod(batch)
    if not count:
        return
    kernel = launch.kernels.on_gpu(device(device_of_address(results[-1].address)), stream)
    signature = launch.signature([buffer.shape for buffer in arguments])
    inputs = buffer_rows(arguments, signature, launch.kernels.dtype)
    given = iter(buffer.address for buffer in results)
    frames = [None if shape is None else next(given) for shape in launch.frames(batch)]
    with kernel.kept_scratch(stream, count) as scratch:
        launch.start(kernel, stream, inputs, signature, frames, list(given), count, scratch)
