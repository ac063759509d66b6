"""Calls of compiled functions on a GPU: arrays in, one launch, arrays of the same kind out.

Nothing is copied or waited for, except where it says so: numbers of the host go to the device when they are
first met; a batch that needs repeating is repeated; `check="raise"` and `check="flag"` wait for the result.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from dalembert.call.arguments import Result, Rows, pick_dtype
from dalembert.call.cuda.array_kind import ComputingKind
from dalembert.call.cuda.arrays import kind_of
from dalembert.call.cuda.device import Device, device, device_of_address
from dalembert.call.cuda.device_array import DeviceArray
from dalembert.call.cuda.kernel import GpuKernel
from dalembert.call.cuda.rows import Buffer, DeviceRows, buffer_rows, result_rows, rows_on, sharing
from dalembert.compiler.gpu.prepared import kernel_of, remember, run_known
from dalembert.compiler.refused_rows import refusal_of, refused_rows

__all__ = ["alike", "call", "evaluate", "launch_on_buffers", "run_on_host_arrays"]

NONE_REFUSED: Final = 2**64 - 1


def call(function: Any, values: Sequence[object], out: object, check: str | None) -> Any:
    """Return the results of a `CompiledFunction` of arrays on a GPU, in the form that the function
    returns."""
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
    first, kind = next((value, kind) for value in values if (kind := kind_of(value)) is not None)
    home = device(kind.ordinal(first))
    stream = kind.stream(home.ordinal, first)
    rows = rows_on(home, kind, stream, function._signature, values, function.dtype)
    kernel = kernel_of(function, home, stream)
    results = function._kernels.results()
    arrays, places = result_rows(home, kind, stream, results, rows, function.dtype, out)
    needed = kernel.scratch_bytes(rows.count) // 8
    own = kind.empty((needed,), "float64", home.ordinal, stream) if needed else None
    scratch = 0 if own is None else kind.view("", own, stream).address
    if out is None:
        launch(function, kernel, stream, rows, places, check, scratch)
        return arrays
    item = np.dtype(function.dtype).itemsize
    targets, later, keep = list(places), [], []
    for number in sharing(function._signature, rows, results, places, item):
        width = results[number].size * item
        spare = kind.empty((rows.count, results[number].size), function.dtype, home.ordinal, stream)
        keep.append(spare)
        targets[number] = (kind.view("", spare, stream).address, width)
        later.append((places[number], targets[number], width))
    launch(function, kernel, stream, rows, targets, check, scratch)
    for target, source, width in later:
        home.copy_rows(target, source, width, rows.count, stream)
    return arrays


def launch(
    function: Any,
    kernel: GpuKernel,
    stream: int,
    rows: DeviceRows,
    targets: Sequence[tuple[int, int]],
    check: str | None,
    scratch: int,
) -> None:
    """Launch a kernel; with a check, wait and test whether a row was rejected."""
    home = kernel.device
    if check in (None, "off") or not kernel.info.checks or not rows.count:
        kernel.launch(stream, rows.inputs, targets, rows.count, scratch=scratch)
        return
    with home.cell() as cell, home.current():
        home.driver("cuMemsetD8Async", cell, 255, 8, stream)
        kernel.launch(stream, rows.inputs, targets, rows.count, refused=cell, scratch=scratch)
        found = np.empty(1, np.uint64)
        home.download(found, cell, stream)
    refused = int(found[0])
    if refused == NONE_REFUSED:
        return
    recipe, dtype = function._recipe, function.dtype
    if check == "raise":
        one = Rows(
            rows.batch,
            rows.count,
            _download_arguments(home, stream, function, rows, slice(refused, refused + 1)),
        )
        raise refusal_of(recipe, one, refused, dtype)
    every = Rows(
        rows.batch, rows.count, _download_arguments(home, stream, function, rows, slice(0, rows.count))
    )
    item = np.dtype(dtype).itemsize
    with home.current():
        for row in np.flatnonzero(refused_rows(recipe, every, refused, dtype)):
            for (address, stride), result in zip(targets, function._kernels.results(), strict=True):
                # A number of all ones is NaN in both float types.
                if result.size:
                    home.driver(
                        "cuMemsetD8Async", address + int(row) * stride, 255, result.size * item, stream
                    )


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
    with home.cell() as cell, home.current():
        home.driver("cuMemsetD8Async", cell, 255, 8, 0)
        with kernel.kept_scratch(0, rows.count) as scratch:
            kernel.launch(
                0,
                [(x.address, x.row_bytes if len(m) > 1 else 0) for x, m in zip(inputs, rows.matrices)],
                [(x.address, x.row_bytes) for x in outputs],
                rows.count,
                refused=cell,
                scratch=scratch,
            )
        found = np.empty(1, np.uint64)
        home.download(found, cell)
        home.synchronize(doing=kernel.name)
    for array, result in zip(outputs, results, strict=True):
        result.matrix[...] = array.numpy()
    return -1 if int(found[0]) == NONE_REFUSED else int(found[0])


def _download_arguments(
    home: Device, stream: int, function: Any, rows: DeviceRows, which: slice
) -> tuple[npt.NDArray[Any], ...]:
    """Copy the arguments of some rows to the host, each as `(rows, size)`."""
    found = []
    for (address, stride), item in zip(rows.inputs, function._signature, strict=True):
        count = which.stop - which.start if stride else 1
        matrix = np.empty((count, item.size), function.dtype)
        if matrix.nbytes:
            home.fetch_rows(matrix, address + which.start * stride, stride, stream)
        found.append(matrix)
    return tuple(found)
