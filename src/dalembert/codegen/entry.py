"""A Python function that is machine code from the call to the kernel.

One builtin function serves every kernel: what it needs to know stands in a descriptor, the memory of the
NumPy array that is its `self`. Arguments that are what the kernel wants (exact `numpy.ndarray`, the right
shape and type, contiguous and aligned; for a number also `float` and `numpy.float64`) go straight to the
scalar kernel and the results are new arrays.
Anything else, and a row that the kernel refuses, goes to a Python function with the same arguments.

Relied upon are Python's stable C functions and NumPy's stable C interface: its table of functions, and the
fields data, nd, dimensions, strides, base, descr, flags that follow the object header.
`_numpy_layout_matches` compares these with what Python says about a sample array, once; where they differ
there is no entry point and Python functions serve.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence
from typing import Any, Final, cast, final

import llvmlite.binding as llvm
import numpy as np

from dalembert.codegen.cache import cache_key, load_entry, store_entry
from dalembert.codegen.cpu import CpuKernel
from dalembert.codegen.entry_code import (
    CONTIGUOUS_ALIGNED,
    DATA,
    DESCR,
    DESCRIPTOR_WORDS,
    FLAGS,
    INPUT_SHAPES,
    MAX_ARRAYS,
    MAX_AXES,
    NDIM,
    NUMBER,
    OUTPUT_SHAPES,
    SHAPE,
    TYPE_NUMBERS,
    TYPE_OFFSET,
    WORDS,
    entry_text,
)
from dalembert.codegen.linking import load_symbols
from dalembert.codegen.target import target_for, target_machine
from dalembert.errors import ArgumentError

__all__ = ["address_of", "make_entry"]

NUMPY_NEW: Final = 93
NUMPY_RETURN: Final = 76

METH_FASTCALL_KEYWORDS: Final = 0x0080 | 0x0002


class _MethodDef(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("method", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


@final
class _Descriptor(np.ndarray[Any, Any]):
    """Memory that the entry point reads, and references to what must live as long as it."""

    references: tuple[object, ...]


def make_entry(
    kernel: CpuKernel,
    fallback: Callable[..., Any],
    *,
    input_shapes: Sequence[tuple[int, ...]],
    output_shapes: Sequence[tuple[int, ...]],
    name: str = "entry",
    doc: str = "",
) -> Callable[..., Any]:
    """Return a builtin function of arrays of one sample, or `fallback` itself if there cannot be one.

    `kernel` computes one sample at a time (lanes=1); the shapes are those of its inputs and outputs. One
    output is returned bare, several as a tuple.
    """
    if kernel.info.lanes != 1:
        raise ArgumentError(f"an entry point calls a kernel of one lane, this one has {kernel.info.lanes}")
    if kernel.info.rollout is not None:
        raise ArgumentError("an entry point calls a kernel of one step, this one takes many")
    _check_shapes(kernel, input_shapes, output_shapes)
    longest = max((len(shape) for shape in (*input_shapes, *output_shapes)), default=0)
    if (
        not _numpy_layout_matches()
        or longest > MAX_AXES
        or max(len(input_shapes), len(output_shapes)) > MAX_ARRAYS
    ):
        return fallback
    words = np.zeros(DESCRIPTOR_WORDS, dtype=np.uint64)
    values = {
        "kernel": kernel.address,
        "tables": kernel.tables_address,
        "scratch": kernel.info.scratch_bytes,
        "fallback": id(fallback),
        "inputs": len(input_shapes),
        "outputs": len(output_shapes),
        "ndarray": id(np.ndarray),
        "descr": id(np.dtype(kernel.info.dtype)),
        "type_number": TYPE_NUMBERS[kernel.info.dtype],
        "float": id(float),
        "float64": id(np.float64),
        **_functions(),
    }
    for field, value in values.items():
        words[WORDS[field] // 8] = value
    for start, shapes in ((INPUT_SHAPES, input_shapes), (OUTPUT_SHAPES, output_shapes)):
        for k, shape in enumerate(shapes):
            at = start // 8 + k * (1 + MAX_AXES)
            words[at : at + 1 + len(shape)] = (len(shape), *shape)
    engine, address = _entry_code()
    method = _MethodDef(name.encode(), address, METH_FASTCALL_KEYWORDS, doc.encode())
    descriptor = words.view(_Descriptor)
    descriptor.references = (words, kernel, fallback, engine, method)
    new = ctypes.pythonapi.PyCFunction_NewEx
    new.restype = ctypes.py_object
    new.argtypes = (ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
    return cast("Callable[..., Any]", new(ctypes.addressof(method), descriptor, None))


def address_of(array: Any) -> int:
    """Return the address of an array's elements; `array.ctypes.data` is the same at ten times the cost."""
    if not _numpy_layout_matches():
        return int(array.ctypes.data)
    return ctypes.c_void_p.from_address(id(array) + DATA).value or 0


def _check_shapes(
    kernel: CpuKernel, input_shapes: Sequence[tuple[int, ...]], output_shapes: Sequence[tuple[int, ...]]
) -> None:
    for arrays, shapes in ((kernel.info.inputs, input_shapes), (kernel.info.outputs, output_shapes)):
        given = [int(np.prod(shape, dtype=np.int64)) for shape in shapes]
        if given != [size for _, size in arrays]:
            raise ArgumentError(f"shapes {list(shapes)} do not fit the kernel's arrays {list(arrays)}")


@functools.cache
def _numpy_layout_matches() -> bool:
    """Return whether arrays have the memory layout that NumPy's C interface defines."""
    sample = np.arange(6.0).reshape(2, 3)
    numbers = (float(sample[1, 2]), np.float64(7.0))
    read = ctypes.c_void_p.from_address
    try:
        return (
            hasattr(_array_api(), "value")
            and read(id(sample) + TYPE_OFFSET).value == id(np.ndarray)
            and read(id(sample) + DATA).value == sample.ctypes.data
            and ctypes.c_int.from_address(id(sample) + NDIM).value == 2
            and ctypes.c_int64.from_address(read(id(sample) + SHAPE).value or 0).value == 2
            and read(id(sample) + DESCR).value == id(np.dtype("float64"))
            and ctypes.c_int.from_address(id(sample) + FLAGS).value & CONTIGUOUS_ALIGNED == CONTIGUOUS_ALIGNED
            and sample.dtype.num == TYPE_NUMBERS["float64"]
            and all(ctypes.c_double.from_address(id(x) + NUMBER).value == x for x in numbers)
        )
    except (AttributeError, ImportError):
        return False


@functools.cache
def _array_api() -> ctypes.c_void_p:
    """Return the address of NumPy's table of functions."""
    try:
        from numpy._core import multiarray
    except ImportError:  # NumPy 1
        from numpy.core import multiarray  # type: ignore[no-redef]
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype = ctypes.c_void_p
    get.argtypes = (ctypes.py_object, ctypes.c_char_p)
    return ctypes.c_void_p(get(multiarray._ARRAY_API, None))


@functools.cache
def _functions() -> dict[str, int]:
    """Return the addresses of the C functions that the entry point calls."""
    table = ctypes.cast(_array_api(), ctypes.POINTER(ctypes.c_void_p))
    addresses = {"array_new": table[NUMPY_NEW] or 0, "array_return": table[NUMPY_RETURN] or 0}
    for field, symbol in (
        ("vectorcall", "PyObject_Vectorcall"),
        ("tuple_new", "PyTuple_New"),
        ("tuple_set", "PyTuple_SetItem"),
        ("decref", "Py_DecRef"),
        ("malloc", "PyMem_RawMalloc"),
        ("free", "PyMem_RawFree"),
    ):
        addresses[field] = ctypes.cast(getattr(ctypes.pythonapi, symbol), ctypes.c_void_p).value or 0
    return addresses


@functools.cache
def _entry_code() -> tuple[Any, int]:
    """Return the owner and the address of the entry point, from the disk cache or compiled."""
    text = entry_text(target_for(None).triple)
    key = cache_key("entry point", text=text)
    entry = load_entry(key)
    if entry is None:
        code = target_machine(target_for(None)).emit_object(llvm.parse_assembly(text))
        store_entry(key, {}, [code])
    else:
        code = entry[1][0]
    engine, (address,) = load_symbols(code, ("dalembert_entry",))
    return engine, address
