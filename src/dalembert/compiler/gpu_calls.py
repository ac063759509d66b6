"""Functions on NVIDIA GPUs: their modules, calls and rollouts.

A call has arrays in, one launch, arrays of the same kind out. Nothing is copied or waited for, except where
it says so: numbers of the host go to the device when they are first met; a batch that needs repeating is
repeated; `check="raise"` and `check="flag"` wait for the result.
"""

from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast, final

import numpy as np
import numpy.typing as npt

from dalembert.call.arguments import ArrayArgument, Result, Rows, as_array, pick_dtype
from dalembert.call.cuda.device import Device, device, device_of_address
from dalembert.call.cuda.device_arrays import ComputingKind, DeviceArray, kind_of
from dalembert.call.cuda.device_rows import Buffer, DeviceRows, Queue, buffer_rows, overlaps, sharing, spans
from dalembert.call.cuda.kernel import GpuKernel, Place, PreparedLaunch
from dalembert.codegen import Rollout
from dalembert.codegen.gpu import GpuInfo, emit_gpu, from_capability, ptx_of
from dalembert.codegen.machine_code import KERNELS, cache_key
from dalembert.codegen.target import BITS
from dalembert.compiler.execution import refusal_of, refused_rows
from dalembert.compiler.kernels import Kernels
from dalembert.errors import CompileError, DeviceError, ShapeError

# GPU modules: a program becomes PTX, which the driver links to machine code, cached on disk.
#
# The driver's linker (`cuLink*`) is the assembler that comes with every driver, so no toolkit is needed. What
# it makes runs on one architecture, and the next driver may make it better: the disk cache knows it by both.

ERROR_LOG, ERROR_LOG_SIZE = 5, 6
"""CU_JIT_ERROR_LOG_BUFFER and its size."""

LOG_BYTES: Final = 1 << 14
JIT_INPUT_PTX: Final = 1
"""CU_JIT_INPUT_PTX."""


def compile_gpu(kernels: Kernels, device: Device) -> GpuKernel:
    """Compile a function for a GPU, or load what an earlier process compiled, which needs no trace where the
    function has a name in the disk cache."""
    dtype, rollout = kernels.dtype, kernels.rollout
    entry_name = cache_key(
        kernels.recipe.disk_key or kernels.lower().program.digest(),
        target="cuda",
        dtype=dtype,
        capability=device.capability,
        driver=device.driver.version,
        rollout=rollout,
    )
    entry = KERNELS.load(entry_name)
    if entry is not None:
        description, (code, tables) = entry
        info = GpuInfo.from_json(description["info"])
    else:
        architecture = from_capability(*device.capability)
        source = emit_gpu(
            kernels.lower().program, bits=BITS[dtype], architecture=architecture, rollout=rollout
        )
        info, tables = source.info, source.tables
        code = link(ptx_of(source, architecture), device, kernels.title)
        description = {"info": info.to_json(), "extra": kernels.extra()}
        KERNELS.store(entry_name, description, [code, tables])
    return GpuKernel(info, code, tables, device, kernels.title, description["extra"])


def link(ptx: str, device: Device, name: str) -> bytes:
    """Link PTX to machine code of a GPU, by the driver's own linker."""
    log = ctypes.create_string_buffer(LOG_BYTES)
    options = (ctypes.c_int * 2)(ERROR_LOG, ERROR_LOG_SIZE)
    values = (ctypes.c_void_p * 2)(ctypes.addressof(log), LOG_BYTES)
    text = ptx.encode() + b"\0"
    driver = device.driver
    with device.current():
        found = ctypes.c_void_p()
        driver("cuLinkCreate_v2", len(options), options, values, ctypes.byref(found), doing=name)
        linker = found.value
        try:
            status = driver.status(
                "cuLinkAddData_v2", linker, JIT_INPUT_PTX, text, len(text), b"dalembert", 0, None, None
            )
            code, size = ctypes.c_void_p(), ctypes.c_size_t()
            status = status or driver.status("cuLinkComplete", linker, ctypes.byref(code), ctypes.byref(size))
            if status:
                said = log.value.decode(errors="replace").strip()
                raise CompileError(
                    f"{name}: {device.name} refused the kernel ({driver.describe(status)})"
                    f"{': ' if said else ''}{said}"
                )
            return ctypes.string_at(code.value or 0, size.value)
        finally:
            driver("cuLinkDestroy", linker)


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


# Many steps of a function in one launch: each thread takes its sample through all of them. Arrays are read
# and written where the caller's library has them; nothing is waited for.

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
    number. `unwanted`: carried arguments without frames in the result.
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
        found = []
        for item, shape in zip(self.arguments, shapes, strict=True):
            if item.name in self.rollout.streams:  # a value for each step, or one that is held
                axis = len(shape) - len(item.shape) - 1
                if axis < 0 or shape[axis] not in (1, self.steps):
                    raise ShapeError(
                        f"{item.name} has the shape {shape}; expected (…, {self.steps}, …), a value for each "
                        f"of the {self.steps} steps, or (…, 1, …), held throughout"
                    )
                item = ArrayArgument(item.name, (shape[axis], *item.shape))
            found.append(item)
        return tuple(found)

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
            # Frames that are not in the result are written where the final values will be.
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
