"""Arrays on a GPU as rows, one sample each: the rules of `arguments`, for memory that NumPy cannot see."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, final

import numpy as np

from dalembert.call.arguments import (
    ArrayArgument,
    as_array,
    broadcast_batches,
    given_results,
    require_result,
    require_shape,
)
from dalembert.call.cuda.device import Device, device
from dalembert.call.cuda.device_arrays import ArrayKind, View, kind_of
from dalembert.call.cuda.kernel import GpuKernel, Place
from dalembert.errors import ArgumentError, DeviceError, DtypeError, ShapeError
from dalembert.host.foreign_arrays import library_of, require_library


class Buffer(Protocol):
    """Row-major memory on a GPU."""

    @property
    def address(self) -> int: ...

    @property
    def shape(self) -> tuple[int, ...]: ...


@final
@dataclass(frozen=True, slots=True)
class DeviceRows:
    """The arguments of a call as (address, bytes between rows), and the batch shape.

    `keep`: what must live until the launch. `copied`: whether an argument had to be repeated over the batch.
    """

    batch: tuple[int, ...]
    count: int
    inputs: tuple[Place, ...]
    keep: tuple[object, ...]
    copied: bool


@final
@dataclass(frozen=True, slots=True)
class Queue:
    """The stream of a GPU on which a call computes, and the kind of the call's arrays."""

    device: Device
    kind: ArrayKind
    stream: int

    @classmethod
    def of(cls, values: Sequence[Any]) -> Queue:
        """Return the queue of the first array on a GPU."""
        first, kind = next((value, kind) for value in values if (kind := kind_of(value)) is not None)
        home = device(kind.ordinal(first))
        return cls(home, kind, kind.stream(home.ordinal, first))

    def empty(self, shape: tuple[int, ...], dtype: str) -> Any:
        """Return a new row-major array."""
        return self.kind.empty(shape, dtype, self.device.ordinal, self.stream)

    def address(self, array: Any) -> int:
        """Return the address of an array of the call's kind."""
        return self.kind.view("", array, self.stream).address

    def scratch(self, kernel: GpuKernel, rows: int) -> tuple[Any, int]:
        """Return scratch memory for a launch, as an array to keep alive and its address."""
        needed = kernel.scratch_bytes(rows) // 8
        own = self.empty((needed,), "float64") if needed else None
        return own, self.address(own) if needed else 0

    def rows(self, signature: Sequence[ArrayArgument], values: Sequence[Any], dtype: str) -> DeviceRows:
        """Bring the values of a call to rows; numbers and host arrays go to the device and stay there."""
        views = [self._view(item, value, dtype) for item, value in zip(signature, values, strict=True)]
        own, batch = broadcast_batches(signature, [view.shape for view in views])
        inputs, keep, copied = [], [], False
        for item, view, value, shape in zip(signature, views, values, own, strict=True):
            if shape != batch and any(length != 1 for length in shape):
                if kind_of(value) is None:
                    raise ShapeError(
                        f"{item.name} {view.shape} is on the host and would be repeated over the batch "
                        f"{batch}; make it an array on the GPU"
                    )
                copied = True
                value = self.kind.spread(value, batch + item.shape)
                view = self.kind.view(item.name, value, self.stream)
            place = view.rows(len(item.shape))
            if place is None:
                raise ArgumentError(
                    f"{item.name}: {_spacing(view)}; pass {self.kind.remedy.format(name=item.name)}"
                )
            inputs.append(place)
            keep.append((value, view))
        return DeviceRows(batch, math.prod(batch), tuple(inputs), tuple(keep), copied)

    def _view(self, item: ArrayArgument, value: Any, dtype: str) -> View:
        require_library(item.name, value, self.kind.library)
        own, ordinal = kind_of(value), self.device.ordinal
        if own is None and library_of(value):
            raise DeviceError(
                f"{item.name} is on the CPU, but the first array is on GPU {ordinal}; bring all to one: "
                f'{item.name}.to("cuda:{ordinal}")'
            )
        if own is None:
            # Not ascontiguousarray, which gives a number an axis: of one sample there would come a batch of
            # one.
            array = np.asarray(as_array(item.name, value, item.shape, follow=True), dtype, order="C")
            address = self.device.constant(array, self.stream) if array.nbytes else 0
            return View(address, array.shape, array.strides, dtype)
        if own.ordinal(value) != ordinal:
            raise DeviceError(
                f"{item.name} is on GPU {own.ordinal(value)}, but the first array is on GPU {ordinal}; "
                "bring all to one"
            )
        view = own.view(item.name, value, self.stream)
        if view.dtype != dtype:
            raise DtypeError(f"{item.name} is {view.dtype}, but {dtype} is expected; convert it")
        require_shape(item, view.shape)
        return view

    def results(
        self, results: Sequence[ArrayArgument], rows: DeviceRows, dtype: str, out: object
    ) -> tuple[list[Any], list[Place]]:
        """Return arrays for the results, new ones or those of `out`, and their places."""
        arrays: list[Any] = []
        places: list[Place] = []
        for item, target in zip(results, given_results(results, out), strict=True):
            shape = rows.batch + item.shape
            if target is None:
                target = self.empty(shape, dtype)
                places.append((self.address(target), item.size * np.dtype(dtype).itemsize))
            else:
                places.append(self._checked_target(item, target, shape, dtype))
            arrays.append(target)
        return arrays, places

    def _checked_target(self, item: ArrayArgument, target: Any, shape: tuple[int, ...], dtype: str) -> Place:
        own = kind_of(target)
        if own is None or own.ordinal(target) != self.device.ordinal:
            raise DeviceError(
                f"out for {item.name} must be an array on GPU {self.device.ordinal}, as the arguments are, "
                f"got {type(target).__name__}"
            )
        view = own.view(f"out for {item.name}", target, self.stream)
        require_result(item, view, shape, dtype)
        place = view.rows(len(item.shape))
        many = any(length > 1 for length in shape[: len(shape) - len(item.shape)])
        if place is None or (many and not place[1]):
            raise ArgumentError(f"out for {item.name}: {_spacing(view)}")
        return place


def _spacing(view: View) -> str:
    return (
        "the numbers of a sample must be adjacent and samples evenly spaced in memory, this array of shape "
        f"{view.shape} has strides of {view.strides} bytes"
    )


def buffer_rows(buffers: Sequence[Buffer], signature: Sequence[ArrayArgument], dtype: str) -> list[Place]:
    """Return (address, bytes between rows) of arguments in buffers, each for one sample or for all."""
    size, inputs = np.dtype(dtype).itemsize, []
    for buffer, item in zip(buffers, signature, strict=True):
        many = any(n != 1 for n in buffer.shape[: len(buffer.shape) - len(item.shape)])
        inputs.append((buffer.address, item.size * size if many else 0))
    return inputs


def spans(items: Sequence[ArrayArgument], strides: Sequence[int], rows: int, dtype: str) -> list[int]:
    """Return the bytes from the first to the last of each argument and result."""
    size = np.dtype(dtype).itemsize
    return [(rows - 1) * stride + item.size * size for item, stride in zip(items, strides, strict=True)]


def overlaps(addresses: Sequence[int], lengths: Sequence[int], inputs: int) -> Iterator[tuple[int, int]]:
    """Yield (result, array) for each result that overlaps an argument, of which there are `inputs`, or an
    earlier result, by their places among all."""
    for k in range(inputs, len(addresses)):
        start, stop = addresses[k], addresses[k] + lengths[k]
        for j in range(k):
            if max(start, addresses[j]) < min(stop, addresses[j] + lengths[j]):
                yield k, j


def sharing(
    arguments: Sequence[ArrayArgument],
    rows: DeviceRows,
    results: Sequence[ArrayArgument],
    places: Sequence[Place],
    dtype: str,
) -> list[int]:
    """Return the results, by number, that overlap an argument; raise an error if two results overlap."""
    addresses, strides = zip(*rows.inputs, *places, strict=True)
    count = len(arguments)
    lengths = spans([*arguments, *results], strides, rows.count, dtype)
    found = sorted(overlaps(addresses, lengths, count))
    for k, j in found:
        if j >= count:
            raise ArgumentError(
                f"out for {results[j - count].name} and out for {results[k - count].name} share memory; "
                "give each its own array"
            )
    return sorted({k - count for k, _ in found})
