"""Calls of compiled functions on a GPU: arrays in, one launch, arrays of the same kind out.

Nothing is copied or waited for, except where it says so: numbers of the host go to the device when they are
first met; a batch that needs repeating is repeated; `check="raise"` and `check="flag"` wait for the result.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Hashable, Sequence
from typing import Any, Final, final

import numpy as np
import numpy.typing as npt

from dalembert.call.arguments import ArrayArgument, Result, Rows, as_array, pick_dtype
from dalembert.call.cuda.device import Device, device, device_of_address
from dalembert.call.cuda.device_arrays import ComputingKind, DeviceArray, kind_of
from dalembert.call.cuda.device_rows import Buffer, DeviceRows, buffer_rows, result_rows, rows_on, sharing
from dalembert.call.cuda.kernel import GpuKernel, PreparedLaunch
from dalembert.compiler.gpu.modules import loaded_kernel
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
    return loaded_kernel(function._kernels, home, stream)


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
    if not function._gpu_calls:
        return None
    known = function._gpu_calls.get(layout_of(kind, values, out))
    if known is None:
        return None
    results: list[Any] | None = known(values, None if out is None else _as_sequence(out))
    return results


def remember(function: Any, chosen: Any, kind: ComputingKind, values: Sequence[Any], out: Any) -> None:
    """Prepare for more calls like this one; `chosen` is the function for the arrays' float type."""
    calls, layout = function._gpu_calls, layout_of(kind, values, out)
    if layout is None or layout in calls:
        return
    if len(calls) >= MAX_PREPARED_CALLS:
        calls.pop(next(iter(calls)), None)
    calls[layout] = prepare(chosen, kind, values, out)


def _as_sequence(out: Any) -> Sequence[Any]:
    return () if out is None else out if isinstance(out, tuple | list) else (out,)


def prepare(function: Any, kind: ComputingKind, values: Sequence[Any], out: object) -> PreparedCall | None:
    """Prepare a call with these layouts; None if some array has to be copied first."""
    first = next(value for value in values if kind_of(value) is kind)
    home = device(kind.ordinal(first))
    stream = kind.stream(home.ordinal, first)
    rows = rows_on(home, kind, stream, function._signature, values, function.dtype)
    if not rows.count or rows.copied:
        return None
    kernel = kernel_of(function, home, stream)
    results = function._kernels.results()
    if out is not None:
        _, places = result_rows(home, kind, stream, results, rows, function.dtype, out)
        item = np.dtype(function.dtype).itemsize
        if sharing(function._signature, rows, results, places, item):
            return None
        widths = [stride for _, stride in places]
    else:
        widths = [item.size * np.dtype(function.dtype).itemsize for item in results]
    launch = kernel.prepare_launch([*(stride for _, stride in rows.inputs), *widths], rows.count)
    hosted = [k for k, value in enumerate(values) if kind_of(value) is None]
    return PreparedCall(
        kind,
        home,
        launch,
        function.dtype,
        [(k, function._signature[k]) for k in hosted],
        [rows.batch + item.shape for item in results],
        _spans(function, rows, results, widths) if out is not None else [],
        kernel.scratch_bytes(rows.count) // 8,
    )


def _spans(
    function: Any, rows: DeviceRows, results: Sequence[ArrayArgument], widths: Sequence[int]
) -> list[int]:
    """Return the bytes from the first to the last of each argument and result."""
    item = np.dtype(function.dtype).itemsize
    pairs = zip(
        [*(stride for _, stride in rows.inputs), *widths],
        [*function._signature, *results],
        strict=True,
    )
    return [(rows.count - 1) * stride + argument.size * item for stride, argument in pairs]


@final
class PreparedCall:
    """A call prepared for known layouts of all arrays. `hosted`: arguments that are numbers of the host."""

    def __init__(
        self,
        kind: ComputingKind,
        home: Device,
        launch: PreparedLaunch,
        dtype: str,
        hosted: list[tuple[int, ArrayArgument]],
        shapes: list[tuple[int, ...]],
        spans: list[int],
        scratch: int,
    ) -> None:
        self._kind, self._home, self._launch, self._dtype = kind, home, launch, dtype
        self._hosted, self._shapes, self._spans, self._scratch = hosted, shapes, spans, scratch

    def __call__(self, values: Sequence[Any], out: Sequence[Any] | None) -> list[Any] | None:
        """Return the results, or None if `out` overlaps another array and the general path must run."""
        kind, ordinal = self._kind, self._home.ordinal
        stream = kind.stream(ordinal, None)
        addresses = list(map(kind.address, values)) if not self._hosted else self._addresses(values, stream)
        if out is None:
            results = [kind.empty(shape, self._dtype, ordinal, stream) for shape in self._shapes]
            addresses += map(kind.address, results)
        else:
            results = list(out)
            inputs = len(addresses)
            addresses += map(kind.address, results)
            if self._shares(addresses, inputs):
                return None
        scratch = kind.empty((self._scratch,), "float64", ordinal, stream) if self._scratch else None
        self._launch(stream, addresses, 0 if scratch is None else kind.address(scratch))
        return results

    def _addresses(self, values: Sequence[Any], stream: int) -> list[int]:
        hosted = dict(self._hosted)
        found = []
        for number, value in enumerate(values):
            item = hosted.get(number)
            if item is None:
                found.append(self._kind.address(value))
                continue
            array = np.ascontiguousarray(as_array(item.name, value, item.shape, follow=True), self._dtype)
            found.append(self._home.constant(array, stream) if array.nbytes else 0)
        return found

    def _shares(self, addresses: list[int], inputs: int) -> bool:
        """Return whether a result overlaps an argument or another result."""
        spans = self._spans
        for k in range(inputs, len(addresses)):
            start, stop = addresses[k], addresses[k] + spans[k]
            for j in range(k):
                if addresses[j] < stop and start < addresses[j] + spans[j]:
                    return True
        return False


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
