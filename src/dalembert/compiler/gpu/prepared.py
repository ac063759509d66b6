"""Prepared calls: the same function on arrays of the same shapes and strides at other addresses.

The overhead of a call beside its launch is most of a small batch's time, and checking shapes is most of that.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Final, final

import numpy as np

from dalembert.call.arguments import ArrayArgument, as_array
from dalembert.call.cuda.array_kind import ComputingKind
from dalembert.call.cuda.arrays import kind_of
from dalembert.call.cuda.device import Device, device
from dalembert.call.cuda.kernel import GpuKernel, PreparedLaunch
from dalembert.call.cuda.rows import DeviceRows, result_rows, rows_on, sharing
from dalembert.compiler.gpu.modules import loaded_kernel
from dalembert.errors import DeviceError

__all__ = ["PreparedCall", "kernel_of", "prepare", "remember", "run_known"]

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
