"""Arrays on a GPU as rows, one sample each: the rules of `arguments`, for memory that NumPy cannot see."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, final

import numpy as np

from dalembert.call.arguments import ArrayArgument, as_array
from dalembert.call.cuda.device import Device
from dalembert.call.cuda.device_arrays import ArrayKind, View, kind_of
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
    inputs: tuple[tuple[int, int], ...]
    keep: tuple[object, ...]
    copied: bool


def rows_on(
    device: Device,
    kind: ArrayKind,
    stream: int,
    signature: Sequence[ArrayArgument],
    values: Sequence[Any],
    dtype: str,
) -> DeviceRows:
    """Bring the values of a call to rows. Numbers and arrays of the host go to the device and stay there."""
    views = [
        _view(device, kind, stream, item, value, dtype) for item, value in zip(signature, values, strict=True)
    ]
    own = [
        view.shape[: len(view.shape) - len(item.shape)] for view, item in zip(views, signature, strict=True)
    ]
    try:
        batch = np.broadcast_shapes(*own)
    except ValueError:
        given = ", ".join(f"{item.name} {view.shape}" for item, view in zip(signature, views, strict=True))
        raise ShapeError(f"the batch shapes do not broadcast: {given}") from None
    inputs, keep, copied = [], [], False
    for item, view, value, shape in zip(signature, views, values, own, strict=True):
        if shape != batch and any(length != 1 for length in shape):
            if kind_of(value) is None:
                raise ShapeError(
                    f"{item.name} {view.shape} is on the host and would be repeated over the batch {batch}; "
                    "make it an array on the GPU"
                )
            copied = True
            value = kind.spread(value, batch + item.shape)
            view = kind.view(item.name, value, stream)
        place = view.rows(len(item.shape))
        if place is None:
            raise ArgumentError(
                f"{item.name}: the numbers of a sample must be adjacent and samples evenly spaced in memory, "
                f"this array of shape {view.shape} has strides of {view.strides} bytes; pass "
                f"{kind.remedy.format(name=item.name)}"
            )
        inputs.append(place)
        keep.append((value, view))
    return DeviceRows(batch, math.prod(batch), tuple(inputs), tuple(keep), copied)


def _view(device: Device, kind: ArrayKind, stream: int, item: ArrayArgument, value: Any, dtype: str) -> View:
    require_library(item.name, value, kind.library)
    own = kind_of(value)
    if own is None and library_of(value):
        raise DeviceError(
            f"{item.name} is on the CPU, but the first array is on GPU {device.ordinal}; bring all to one: "
            f'{item.name}.to("cuda:{device.ordinal}")'
        )
    if own is None:
        # Not ascontiguousarray, which gives a number an axis: of one sample there would come a batch of one.
        array = np.asarray(as_array(item.name, value, item.shape, follow=True), dtype, order="C")
        address = device.constant(array, stream) if array.nbytes else 0
        return View(address, array.shape, array.strides, dtype)
    if own.ordinal(value) != device.ordinal:
        raise DeviceError(
            f"{item.name} is on GPU {own.ordinal(value)}, but the first array is on GPU {device.ordinal}; "
            "bring all to one"
        )
    view = own.view(item.name, value, stream)
    if view.dtype != dtype:
        raise DtypeError(f"{item.name} is {view.dtype}, but {dtype} is expected; convert it")
    split = len(view.shape) - len(item.shape)
    if split < 0 or view.shape[split:] != item.shape:
        hint = f"; a batch is (…, {', '.join(map(str, item.shape))})" if item.shape else ""
        raise ShapeError(f"{item.name}: expected {item.shape}, got {view.shape}{hint}")
    return view


def buffer_rows(
    buffers: Sequence[Buffer], signature: Sequence[ArrayArgument], dtype: str
) -> list[tuple[int, int]]:
    """Return (address, bytes between rows) of arguments in buffers, each for one sample or for all."""
    size, inputs = np.dtype(dtype).itemsize, []
    for buffer, item in zip(buffers, signature, strict=True):
        many = any(n != 1 for n in buffer.shape[: len(buffer.shape) - len(item.shape)])
        inputs.append((buffer.address, item.size * size if many else 0))
    return inputs


def result_rows(
    device: Device,
    kind: ArrayKind,
    stream: int,
    results: Sequence[ArrayArgument],
    rows: DeviceRows,
    dtype: str,
    out: object,
) -> tuple[list[Any], list[tuple[int, int]]]:
    """Return arrays for the results, new ones or those of `out`, and their (address, bytes between rows)."""
    given = [None] * len(results) if out is None else list(out) if isinstance(out, tuple | list) else [out]
    if len(given) != len(results):
        names = ", ".join(item.name for item in results)
        raise ArgumentError(f"out holds {len(given)} arrays, but there are {len(results)} results: {names}")
    arrays: list[Any] = []
    places: list[tuple[int, int]] = []
    for item, target in zip(results, given, strict=True):
        shape = rows.batch + item.shape
        if target is None:
            target = kind.empty(shape, dtype, device.ordinal, stream)
            step = item.size * np.dtype(dtype).itemsize
            places.append((kind.view(item.name, target, stream).address, step))
        else:
            places.append(_checked_target(device, stream, item, target, shape, dtype))
        arrays.append(target)
    return arrays, places


def _checked_target(
    device: Device, stream: int, item: ArrayArgument, target: Any, shape: tuple[int, ...], dtype: str
) -> tuple[int, int]:
    own = kind_of(target)
    if own is None or own.ordinal(target) != device.ordinal:
        raise DeviceError(
            f"out for {item.name} must be an array on GPU {device.ordinal}, as the arguments are, "
            f"got {type(target).__name__}"
        )
    view = own.view(f"out for {item.name}", target, stream)
    if view.shape != shape:
        raise ShapeError(f"out for {item.name}: expected shape {shape}, got {view.shape}")
    if view.dtype != dtype:
        raise DtypeError(f"out for {item.name}: expected {dtype}, got {view.dtype}")
    place = view.rows(len(item.shape))
    many = any(length > 1 for length in shape[: len(shape) - len(item.shape)])
    if place is None or (many and not place[1]):
        raise ArgumentError(
            f"out for {item.name}: the numbers of a sample must be adjacent and samples evenly spaced in "
            f"memory, this array of shape {view.shape} has strides of {view.strides} bytes"
        )
    return place


def sharing(
    arguments: Sequence[ArrayArgument],
    rows: DeviceRows,
    results: Sequence[ArrayArgument],
    places: Sequence[tuple[int, int]],
    item: int,
) -> list[int]:
    """Return the results, by number, that overlap an argument; raise an error if two results overlap."""

    def span(place: tuple[int, int], size: int) -> range:
        return range(place[0], place[0] + (rows.count - 1) * place[1] + size * item)

    used = [span(place, argument.size) for place, argument in zip(rows.inputs, arguments, strict=True)]
    written = [span(place, result.size) for place, result in zip(places, results, strict=True)]
    for number, own in enumerate(written):
        for other in range(number):
            if _meet(own, written[other]):
                raise ArgumentError(
                    f"out for {results[other].name} and out for {results[number].name} share memory; "
                    "give each its own array"
                )
    return [number for number, own in enumerate(written) if any(_meet(own, source) for source in used)]


def _meet(first: range, second: range) -> bool:
    return max(first.start, second.start) < min(first.stop, second.stop)
