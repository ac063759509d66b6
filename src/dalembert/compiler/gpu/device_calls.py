"""Calls of compiled functions on a GPU: arrays in, one launch, arrays of the same kind out.

Nothing is copied or waited for, except where it says so: numbers of the host go to the device when they are
first met; a batch that needs repeating is repeated; `check="raise"` and `check="flag"` wait for the result.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast, final

import numpy as np
import numpy.typing as npt

from dalembert.call.arguments import ArrayArgument, Result, Rows, as_array, pick_dtype
from dalembert.call.cuda.device import Device, device, device_of_address
from dalembert.call.cuda.device_arrays import ComputingKind, DeviceArray, kind_of
from dalembert.call.cuda.device_rows import (
    Buffer,
    DeviceRows,
    Queue,
    buffer_rows,
    overlaps,
    sharing,
    spans,
)
from dalembert.call.cuda.kernel import GpuKernel, Place, PreparedLaunch
from dalembert.compiler.refused_rows import refusal_of, refused_rows
from dalembert.errors import DeviceError

# Prepared calls: the same function on arrays of the same shapes and strides at other addresses.
#
# The overhead of a call beside its launch is most of a small batch's time, and checking shapes is most of
# that.

MAX_PREPARED_CALLS: Final = 256
"""Prepared calls that a function keeps, one for each layout of its arrays."""


def kernel_of(function: Any, home: Device, stream: int) -> GpuKernel:
    """Return the kernel of a function for a GPU."""
    if function._columns is not None:
        raise DeviceError(
            f"{function.name}: the Jacobian of {len(function._recipe.model.bodies)} bodies is made of many "
            "products and runs on the CPU alone; jvp and vjp of the function run on a GPU"
        )
    kernel: GpuKernel = function._kernels.on_gpu(home, stream)
    return kernel


def layout_of(kind: ComputingKind, values: Sequence[Any], out: Any) -> Hashable | None:
    """Return all properties of the arrays of a call but their numbers and addresses; None if a value is
    neither an array of the kind on a GPU nor a number."""
    found: list[Hashable] = []
    for value in (*values, *_as_sequence(out)):
        if kind.holds(value):
            found.append(kind.layout(value))
        elif type(value) is float:
            found.append(float)
        else:
            return None
    return tuple(found)


def run_known(function: Any, kind: ComputingKind, values: Sequence[Any], out: Any) -> list[Any] | None:
    """Return the results of a call by a prepared one, or None if no such call is prepared."""
    calls: dict[Any, PreparedCall | None] = function._gpu_calls
    known = calls.get(layout_of(kind, values, out)) if calls else None
    return None if known is None else known(values, None if out is None else _as_sequence(out))


def remember(function: Any, chosen: Any, kind: ComputingKind, values: Sequence[Any], out: Any) -> None:
    """Prepare for more calls like this one; `chosen` is the function for the arrays' float type."""
    calls, layout = function._gpu_calls, layout_of(kind, values, out)
    if layout is None or layout in calls:
        return
    if len(calls) >= MAX_PREPARED_CALLS:
        calls.pop(next(iter(calls)), None)
    calls[layout] = prepare(chosen, values, out)


def _as_sequence(out: Any) -> Sequence[Any]:
    return () if out is None else out if isinstance(out, tuple | list) else (out,)


def prepare(function: Any, values: Sequence[Any], out: object) -> PreparedCall | None:
    """Prepare a call with these layouts; None if some array has to be copied first."""
    queue, signature, dtype = Queue.of(values), function._signature, function.dtype
    rows = queue.rows(signature, values, dtype)
    if not rows.count or rows.copied:
        return None
    kernel = kernel_of(function, queue.device, queue.stream)
    results = function._kernels.results()
    widths = [item.size * np.dtype(dtype).itemsize for item in results]
    if out is not None:
        _, places = queue.results(results, rows, dtype, out)
        if sharing(signature, rows, results, places, dtype):
            return None
        widths = [stride for _, stride in places]
    strides = [*(stride for _, stride in rows.inputs), *widths]
    return PreparedCall(
        cast("ComputingKind", queue.kind),
        queue.device,
        PreparedLaunch(kernel, strides, rows.count),
        dtype,
        {k: signature[k] for k, value in enumerate(values) if kind_of(value) is None},
        [rows.batch + item.shape for item in results],
        spans([*signature, *results], strides, rows.count, dtype),
        kernel.scratch_bytes(rows.count) // 8,
    )


@final
@dataclass(frozen=True, slots=True, eq=False)
class PreparedCall:
    """A call prepared for known layouts of all arrays. `hosted`: arguments that are numbers of the host."""

    kind: ComputingKind
    home: Device
    launch: PreparedLaunch
    dtype: str
    hosted: dict[int, ArrayArgument]
    shapes: list[tuple[int, ...]]
    spans: list[int]
    scratch: int

    def __call__(self, values: Sequence[Any], out: Sequence[Any] | None) -> list[Any] | None:
        """Return the results, or None if `out` overlaps another array and the general path must run."""
        kind, ordinal = self.kind, self.home.ordinal
        stream = kind.stream(ordinal, None)
        addresses = list(map(kind.address, values)) if not self.hosted else self._addresses(values, stream)
        inputs = len(addresses)
        if out is None:
            results = [kind.empty(shape, self.dtype, ordinal, stream) for shape in self.shapes]
            addresses += map(kind.address, results)
        else:
            results = list(out)
            addresses += map(kind.address, results)
            if any(overlaps(addresses, self.spans, inputs)):
                return None
        scratch = kind.empty((self.scratch,), "float64", ordinal, stream) if self.scratch else None
        self.launch(stream, addresses, 0 if scratch is None else kind.address(scratch))
        return results

    def _addresses(self, values: Sequence[Any], stream: int) -> list[int]:
        found = []
        for number, value in enumerate(values):
            item = self.hosted.get(number)
            if item is None:
                found.append(self.kind.address(value))
                continue
            array = np.ascontiguousarray(as_array(item.name, value, item.shape, follow=True), self.dtype)
            found.append(self.home.constant(array, stream) if array.nbytes else 0)
        return found


def call(function: Any, values: Sequence[object], out: object, check: str | None) -> Any:
    """Return the results of a `CompiledFunction` of arrays on a GPU, in the form of the function."""
    kind = next(kind for value in values if (kind := kind_of(value)) is not None)
    again = kind if isinstance(kind, ComputingKind) and check in (None, "off") else None
    if again is not None and (known := run_known(function, again, values, out)) is not None:
        return function._hand_back(known)
    names = [item.name for item in function._signature]
    dtype = pick_dtype(list(zip(names, values, strict=True)))
    chosen = function if function.dtype == dtype or function._sibling is None else function._sibling(dtype)
    if again is not None:
        remember(function, chosen, again, values, out)
    return chosen._hand_back(evaluate(chosen, values, check, out))


def alike(array: npt.NDArray[Any], beside: Any) -> Any:
    """Return a constant as a CuPy array beside a CuPy array; other arrays on a GPU have no arithmetic."""
    constant = np.asarray(array, str(beside.dtype))
    home = type(beside).__module__.partition(".")[0]
    return sys.modules[home].asarray(constant) if home == "cupy" else constant


def evaluate(function: Any, values: Sequence[Any], check: str | None = None, out: object = None) -> list[Any]:
    """Return the results of a `CompiledFunction`, one array each, of the kind of the first array on a GPU."""
    queue, signature, dtype = Queue.of(values), function._signature, function.dtype
    home, stream = queue.device, queue.stream
    rows = queue.rows(signature, values, dtype)
    kernel = kernel_of(function, home, stream)
    results = function._kernels.results()
    arrays, places = queue.results(results, rows, dtype, out)
    _keep, scratch = queue.scratch(kernel, rows.count)
    targets, spare = list(places), {}
    for number in sharing(signature, rows, results, places, dtype) if out is not None else ():
        item = results[number]
        spare[number] = queue.empty((rows.count, item.size), dtype)
        targets[number] = (queue.address(spare[number]), item.size * np.dtype(dtype).itemsize)
    if check in (None, "off") or not kernel.info.checks or not rows.count:
        kernel.launch(stream, rows.inputs, targets, rows.count, scratch=scratch)
    else:  # wait and test whether a row was rejected
        refused = kernel.first_refused(stream, rows.inputs, targets, rows.count, scratch)
        if refused >= 0 and check == "raise":
            raise refusal_of(
                function._recipe, _download_arguments(queue, function, rows, refused), refused, dtype
            )
        if refused >= 0:
            _flag(queue, function, rows, targets, refused)
    for number in spare:
        home.copy_rows(places[number], targets[number], targets[number][1], rows.count, stream)
    return arrays


def _flag(queue: Queue, function: Any, rows: DeviceRows, targets: Sequence[Place], first: int) -> None:
    """Make the results of refused rows NaN, of which `first` is the first."""
    every = _download_arguments(queue, function, rows)
    item = np.dtype(function.dtype).itemsize
    with queue.device.current():
        for row in np.flatnonzero(refused_rows(function._recipe, every, first, function.dtype)):
            for (address, stride), result in zip(targets, function._kernels.results(), strict=True):
                # A number of all ones is NaN in both float types.
                if result.size:
                    queue.device.driver(
                        "cuMemsetD8Async", address + int(row) * stride, 255, result.size * item, queue.stream
                    )


def _download_arguments(queue: Queue, function: Any, rows: DeviceRows, only: int | None = None) -> Rows:
    """Copy the arguments of all rows, or of one only, to the host."""
    found = []
    for (address, stride), item in zip(rows.inputs, function._signature, strict=True):
        matrix = np.empty((rows.count if only is None and stride else 1, item.size), function.dtype)
        target, width = (matrix.ctypes.data, matrix.strides[0]), matrix.strides[0]
        source = (address + (only or 0) * stride, stride or width)
        queue.device.copy_rows(target, source, width, len(matrix), queue.stream, to_host=True)
        found.append(matrix)
    return Rows(rows.batch, rows.count, tuple(found))


def launch_on_buffers(
    function: Any, stream: int, arguments: Sequence[Buffer], results: Sequence[Buffer]
) -> None:
    """Launch a kernel on row-major memory that somebody else allocated."""
    places = [buffer.address for buffer in (*results, *arguments) if buffer.address]
    kernel = kernel_of(function, device(device_of_address(places[0]) if places else 0), stream)
    own = function._kernels.results()
    count = math.prod(results[0].shape[: len(results[0].shape) - len(own[0].shape)]) if own else 0
    inputs = buffer_rows(arguments, function._signature, function.dtype)
    item = np.dtype(function.dtype).itemsize
    outputs = [(buffer.address, result.size * item) for buffer, result in zip(results, own, strict=True)]
    with kernel.kept_scratch(stream, count) as scratch:
        kernel.launch(stream, inputs, outputs, count, scratch=scratch)


def run_on_host_arrays(function: Any, rows: Rows, results: Sequence[Result]) -> int:
    """Compute rows of NumPy arrays on GPU 0: copied there and back. The first refused row, or -1."""
    home = device(0)
    kernel = kernel_of(function, home, 0)
    inputs = [DeviceArray.of(np.ascontiguousarray(matrix)) for matrix in rows.matrices]
    outputs = [DeviceArray.empty(result.matrix.shape, function.dtype) for result in results]
    with kernel.kept_scratch(0, rows.count) as scratch:
        refused = kernel.first_refused(
            0,
            [(x.address, x.row_bytes if len(m) > 1 else 0) for x, m in zip(inputs, rows.matrices)],
            [(x.address, x.row_bytes) for x in outputs],
            rows.count,
            scratch,
        )
    for array, result in zip(outputs, results, strict=True):
        result.matrix[...] = array.numpy()
    return refused
