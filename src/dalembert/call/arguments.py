"""Conversion of arguments to rows: one sample a row, row-major, over any leading batch shape.

Nothing is copied that the kernels can read in place: a row may have any stride, and an argument without batch
axes is one row that every sample reads.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, final

import numpy as np
import numpy.typing as npt

from dalembert.errors import ArgumentError, DtypeError, ShapeError
from dalembert.host.foreign_arrays import float_type, require_numpy
from dalembert.host.process import readable
from dalembert.tracing.program import ArrayArgument as ArrayArgument

# Memory for large results, used again.
#
# The operating system clears every page it hands out, which takes as long as computing a large batch of mass
# matrices. A result of a megabyte or more therefore lives in memory that returns here when the caller lets go
# of the array, and serves the next result of its size.
#
# Memory returns in finalizers, which run anywhere: in the midst of `empty`, in any thread, and interrupts may
# end them at any point. So there is no lock. Memory is kept in a dictionary under a number of its own, and
# whoever pops that number owns the memory: popping happens once, as dictionaries are atomic. Memory that an
# exception catches between two owners is referred to by nobody and is freed.

MIN_REUSED_BYTES: Final = 1 << 20
"""Smaller results come from NumPy, which keeps them in the process anyway."""

KEPT_BYTES: Final = 1 << 27
"""At most this much memory [bytes] is kept; the rest is freed. (Each thread that returns memory at the very
same moment may add its own, until the next return.)"""

CACHE_LINE: Final = 64
"""Bytes; large results begin at a multiple of it."""


def empty(shape: tuple[int, ...], dtype: str) -> npt.NDArray[Any]:
    """Return an uninitialised array, like `numpy.empty`."""
    kind = np.dtype(dtype)
    size = math.prod(shape) * kind.itemsize
    if size < MIN_REUSED_BYTES:
        return np.empty(shape, kind)
    for number, memory in _KEPT.copy().items():  # a finalizer may change the dictionary at any time
        if memory.size == size and _KEPT.pop(number, None) is not None:
            break
    else:
        # Kernels write full cache lines past the caches, which needs memory that begins with one.
        raw = np.empty(size + CACHE_LINE, np.uint8)
        start = -raw.ctypes.data % CACHE_LINE
        memory = raw[start : start + size]
    # NumPy keeps this object as the base of every view that a caller makes: it is freed after the last one.
    lent: Any = _lent_type(size).from_buffer(memory)
    lent.memory = memory
    return np.ndarray(shape, kind, buffer=lent)


_KEPT: Final[dict[int, npt.NDArray[np.uint8]]] = {}
"""Memory that nobody uses, the longest unused first."""

_NUMBERS: Final = itertools.count()


def _give(
    memory: npt.NDArray[np.uint8],
    kept: dict[int, npt.NDArray[np.uint8]] = _KEPT,
    numbers: Iterator[int] = _NUMBERS,
    most: int = KEPT_BYTES,
) -> None:
    """Keep memory that nobody uses, and give back the longest unused beyond `most` bytes."""
    before = kept.copy()
    excess = sum(item.size for item in before.values()) + memory.size - most
    for number, item in before.items():
        if excess <= 0:
            break
        if kept.pop(number, None) is not None:
            excess -= item.size
    if memory.size <= most:
        kept[next(numbers)] = memory


@functools.lru_cache(maxsize=64)
def _lent_type(size: int) -> Any:
    """Return the type of a buffer that gives its memory back when it is no longer used."""

    def release(self: Any, give: Any = _give) -> None:  # at the end of a process the module's names are gone
        memory, self.memory = self.memory, None
        if memory is not None:
            give(memory)

    return type("LentMemory", (ctypes.c_uint8 * size,), {"__del__": release, "memory": None})


Array: TypeAlias = npt.NDArray[Any]

DTYPES: Final[dict[str, np.dtype[Any]]] = {"float64": np.dtype(np.float64), "float32": np.dtype(np.float32)}
CHARACTERS: Final = {dtype.char: name for name, dtype in DTYPES.items()}


@final
@dataclass(frozen=True, slots=True)
class Rows:
    """The arguments of a call as matrices `(rows, size)` or `(1, size)`, and the batch shape."""

    batch: tuple[int, ...]
    count: int
    matrices: tuple[Array, ...]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """An array to return, and the matrix `(rows, size)` a kernel writes: one memory where possible."""

    array: Array
    matrix: Array

    def finish(self) -> None:
        """Bring what the kernel wrote into the array, if it wrote elsewhere."""
        if not np.may_share_memory(self.array, self.matrix):
            self.array[...] = self.matrix.reshape(self.array.shape)


def pick_dtype(arguments: Sequence[tuple[str, object]]) -> str:
    """Return the float type of a call: that of its arrays; numbers and lists follow, float64 alone."""
    found: dict[str, str] = {}
    for name, value in arguments:
        kind = CHARACTERS.get(value.dtype.char) if isinstance(value, np.ndarray) else float_type(value)
        if kind is not None:
            found.setdefault(kind, name)
    if len(found) > 1:
        given = ", ".join(f"{name} is {kind}" for kind, name in sorted(found.items()))
        raise DtypeError(f"the arguments mix float types: {given}; convert them to one with .astype")
    return next(iter(found), "float64")


def plain_rows(signature: Sequence[ArrayArgument], values: Sequence[object], dtype: str) -> Rows | None:
    """Return rows for the common case at little cost: contiguous arrays of the right type, all with the same
    batch shape or without one, and plain floats.
    """
    wanted = DTYPES[dtype]
    batch: tuple[int, ...] = ()
    matrices: list[Array] = []
    for argument, value in zip(signature, values, strict=True):
        if type(value) is float and not argument.shape:
            matrices.append(np.array(((value,),), wanted))
            continue
        if type(value) is not np.ndarray or value.dtype is not wanted or not value.flags.carray:
            return None
        split = value.ndim - len(argument.shape)
        if split < 0 or value.shape[split:] != argument.shape:
            return None
        own = value.shape[:split]
        if own and batch and own != batch:
            return None
        batch = own or batch
        whole = split == 1 and value.ndim == 2
        matrices.append(value if whole else value.reshape(math.prod(own), argument.size))
    if not batch or 0 in batch:
        return None
    return Rows(batch, math.prod(batch), tuple(matrices))


def as_rows(signature: Sequence[ArrayArgument], values: Sequence[object], dtype: str) -> Rows:
    """Bring any values to rows of the signature's sizes."""
    arrays = [_as_array(argument, value, dtype) for argument, value in zip(signature, values, strict=True)]
    batches, batch = broadcast_batches(signature, [array.shape for array in arrays])
    matrices = tuple(
        _matrix(array, argument, own, batch)
        for array, argument, own in zip(arrays, signature, batches, strict=True)
    )
    return Rows(batch, math.prod(batch), matrices)


def broadcast_batches(
    signature: Sequence[ArrayArgument], shapes: Sequence[tuple[int, ...]]
) -> tuple[list[tuple[int, ...]], tuple[int, ...]]:
    """Return the batch shape of each argument, and of the call."""
    pairs = list(zip(signature, shapes, strict=True))
    batches = [shape[: len(shape) - len(item.shape)] for item, shape in pairs]
    batch = common_batch(batches)
    if batch is None:
        given = ", ".join(f"{item.name} {shape}" for item, shape in pairs)
        raise ShapeError(
            f"the batch shapes do not broadcast: {given}; the axes before the last "
            f"({', '.join(f'{item.name}: {item.shape}' for item in signature)}) must agree or be 1"
        )
    return batches, batch


def common_batch(batches: Iterable[tuple[int, ...]]) -> tuple[int, ...] | None:
    """Return the shape to which batch shapes broadcast, or None if they do not."""
    distinct = {batch for batch in batches if batch}
    if len(distinct) <= 1:  # most calls
        return distinct.pop() if distinct else ()
    try:
        return np.broadcast_shapes(*distinct)
    except (ValueError, RuntimeError):  # the latter for too many axes
        return None


def as_array(name: str, value: object, shape: tuple[int, ...], *, follow: bool = False) -> Array:
    """Return an array of that shape, or of a batch of it: float64, or with `follow` float32 if given so."""
    if type(value) is float and not shape:  # a Servo has dozens of them
        return np.array(value)
    dtype = pick_dtype([(name, value)]) if follow else "float64"
    return _as_array(ArrayArgument(name, shape), value, dtype)


def real_array(name: str, value: object) -> Array:
    """Return real numbers of any shape as a float64 array; `name` names the argument in the error."""
    if value is None:
        raise ArgumentError(f"{name} is missing; give real numbers")
    return np.asarray(as_array(name, value, (), follow=True), np.float64)


def with_column_axis(*values: tuple[str, object, int]) -> list[Array]:
    """Return arguments `(…, 1, size)` of (name, value, size), for a matrix computed column by column."""
    dtype = pick_dtype([(name, value) for name, value, _ in values])
    return [
        _as_array(ArrayArgument(name, (n,)), value, dtype)[..., np.newaxis, :] for name, value, n in values
    ]


def result_rows(signature: Sequence[ArrayArgument], rows: Rows, dtype: str, out: object) -> list[Result]:
    """Return memory for the results: new arrays, or those of `out`."""
    results = []
    for item, target in zip(signature, given_results(signature, out), strict=True):
        shape = rows.batch + item.shape
        if target is None:
            try:
                array = empty(shape, dtype)
            except (MemoryError, ValueError, OverflowError):
                size = readable(math.prod(shape) * DTYPES[dtype].itemsize)
                raise ArgumentError(
                    f"the result {item.name} {shape} would take {size}, more than there is; compute the "
                    "batch in parts"
                ) from None
            results.append(Result(array, array.reshape(rows.count, item.size)))
            continue
        check_result(item, target, shape, dtype)
        matrix = _row_view(target, rows.count, item.size)
        if matrix is None or any(np.may_share_memory(target, source) for source in rows.matrices):
            matrix = np.empty((rows.count, item.size), dtype)
        for earlier, other in zip(signature, results, strict=False):
            if np.shares_memory(other.array, target):
                raise ArgumentError(
                    f"out for {earlier.name} and out for {item.name} share memory; give each its own array"
                )
        results.append(Result(target, matrix))
    return results


def given_results(signature: Sequence[ArrayArgument], out: object) -> list[Any]:
    """Return the arrays of `out`, one for each result, or None for each."""
    if out is None:
        return [None] * len(signature)
    arrays = list(out) if isinstance(out, (tuple, list)) else [out]
    if len(arrays) != len(signature):
        names = ", ".join(result.name for result in signature)
        raise ArgumentError(
            f"out holds {len(arrays)} arrays, but there are {len(signature)} results: {names}"
        )
    return arrays


def require_result(result: ArrayArgument, target: Any, shape: tuple[int, ...], dtype: str) -> None:
    """Refuse memory for a result, on the host or a GPU, of another shape or float type."""
    if target.shape != shape:
        raise ShapeError(f"out for {result.name}: expected shape {shape}, got {target.shape}")
    if target.dtype != dtype:
        raise DtypeError(f"out for {result.name}: expected {dtype}, got {target.dtype}")


def check_result(result: ArrayArgument, target: object, shape: tuple[int, ...], dtype: str) -> None:
    """Refuse what is not a NumPy array for a result that may be written."""
    if not isinstance(target, np.ndarray):
        raise DtypeError(f"out for {result.name} must be a NumPy array, got {type(target).__name__}")
    require_result(result, target, shape, dtype)
    if not target.flags.writeable:
        raise ArgumentError(f"out for {result.name} is read-only")


def _as_array(argument: ArrayArgument, value: object, dtype: str) -> Array:
    if type(value) is np.ndarray and value.dtype is DTYPES[dtype]:  # most values, in a hundredth of the time
        require_shape(argument, value.shape)
        return value
    if type(value) is float and not argument.shape:
        return np.array(value, DTYPES[dtype])
    if value is None:
        raise ArgumentError(
            f"{argument.name} is missing; expected an array of shape {argument.shape}{_batch_hint(argument)}"
        )
    require_numpy(argument.name, value)
    try:
        array = np.asarray(value)
    except ValueError as cause:
        raise ShapeError(f"{argument.name}: {cause}") from None
    except Exception as cause:  # any exception that a foreign array raises
        raise DtypeError(f"{argument.name}: {type(value).__name__} gives no array: {cause}") from cause
    kind = array.dtype.kind
    if kind not in "fiub":
        hint = "; in a function to compile, call those of dalembert.algorithms" if kind == "O" else ""
        raise DtypeError(f"{argument.name} has type {array.dtype}; expected real numbers{hint}")
    if kind == "f" and isinstance(value, np.ndarray) and array.dtype != DTYPES[dtype]:
        raise DtypeError(
            f"{argument.name} is {array.dtype}, but this function is compiled for {dtype}; "
            "convert it with .astype"
        )
    require_shape(argument, array.shape)
    try:
        return np.asarray(array, DTYPES[dtype])
    except MemoryError:
        raise _too_large(argument, array.shape) from None


def require_shape(argument: ArrayArgument, shape: tuple[int, ...]) -> None:
    """Refuse an argument that does not end with its own axes."""
    split = len(shape) - len(argument.shape)
    if split < 0 or shape[split:] != argument.shape:
        raise ShapeError(f"{argument.name}: expected {argument.shape}, got {shape}{_batch_hint(argument)}")


def _too_large(argument: ArrayArgument, shape: tuple[int, ...]) -> ArgumentError:
    size = 8 * math.prod(shape)
    return ArgumentError(f"{argument.name} {shape} would take {readable(size)}; compute the batch in parts")


def _batch_hint(argument: ArrayArgument) -> str:
    return f"; a batch is (…, {', '.join(map(str, argument.shape))})" if argument.shape else ""


def _matrix(array: Array, argument: ArrayArgument, own: tuple[int, ...], batch: tuple[int, ...]) -> Array:
    """Return the array as `(rows, size)`, or as one row `(1, size)` for all samples."""
    if not own or all(length == 1 for length in own):
        row = array.reshape(1, argument.size)
        return row if row.flags.c_contiguous and row.flags.aligned else np.require(row, None, ["C", "A"])
    if own != batch:
        array = np.broadcast_to(array, batch + argument.shape)
    count = math.prod(batch)
    view = _row_view(array, count, argument.size)
    if view is not None:
        return view
    try:
        return np.require(array.reshape(count, argument.size), requirements=["C", "A"])
    except MemoryError:
        raise _too_large(argument, array.shape) from None


def _row_view(array: Array, count: int, size: int) -> Array | None:
    """Return the same memory as `(count, size)`, elements adjacent and rows whole elements apart."""
    if not array.flags.aligned:
        return None
    if array.flags.c_contiguous:
        return array.reshape(count, size)
    if array.ndim == 2 and array.shape == (count, size) and array.strides[1] == array.itemsize:
        return array if array.strides[0] >= 0 and array.strides[0] % array.itemsize == 0 else None
    return None
