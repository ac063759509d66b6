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

import numpy as np

from dalembert.codegen.cpu.cpu_kernel import CpuKernel
from dalembert.codegen.machine_code import load_helper
from dalembert.codegen.target import target_for
from dalembert.errors import ArgumentError

# The entry point of Python calls, as LLVM text, and the layout of the descriptor that it reads.
#
# def entry(self, *args):                       # METH_FASTCALL | METH_KEYWORDS
#     if names or any argument is not an exact, contiguous, aligned array of the wanted type and shape,
#             or, where the shape is (), a float or numpy.float64:
#         return fallback(*args, **names)
#     results = [PyArray_New(shape) for each output]
#     if kernel(data of args, data of results) refuses:
#         return fallback(*args)
#     return results[0] or tuple(results)

MAX_ARRAYS: Final = 16
"""Inputs, and outputs, that an entry point can pass on."""

MAX_AXES: Final = 4
TYPE_NUMBERS: Final = {"float32": 11, "float64": 12}
STACK_SCRATCH: Final = 16384
"""Bytes of scratch memory that the entry point takes from the stack."""

HEADER: Final = object.__basicsize__
TYPE_OFFSET: Final = HEADER - 8
DATA, NDIM, SHAPE, DESCR, FLAGS = (HEADER + offset for offset in (0, 8, 16, 40, 48))
CONTIGUOUS_ALIGNED: Final = 0x0101
NUMBER: Final = HEADER
"""Where a float, and a numpy.float64, has its value."""

# Words of the descriptor.
FIELDS: Final = (
    "kernel", "tables", "scratch", "fallback", "inputs", "outputs", "ndarray", "descr", "type_number",
    "float", "float64",
    "array_new", "array_return", "vectorcall", "tuple_new", "tuple_set", "decref", "malloc", "free",
)  # fmt: skip
WORDS: Final = {name: 8 * k for k, name in enumerate(FIELDS)}
INPUT_SHAPES: Final = 8 * len(FIELDS)
SHAPE_BYTES: Final = 8 * (1 + MAX_AXES)
OUTPUT_SHAPES: Final = INPUT_SHAPES + MAX_ARRAYS * SHAPE_BYTES
DESCRIPTOR_WORDS: Final = (OUTPUT_SHAPES + MAX_ARRAYS * SHAPE_BYTES) // 8


def entry_text(triple: str) -> str:
    """Return the entry point `dalembert_entry` as LLVM text."""
    text = _ENTRY
    replacements = {
        **{f"W_{field}": str(offset) for field, offset in WORDS.items()},
        "INPUT_SHAPES": str(INPUT_SHAPES),
        "OUTPUT_SHAPES": str(OUTPUT_SHAPES),
        "SHAPE_BYTES": str(SHAPE_BYTES),
        "MAX_ARRAYS": str(MAX_ARRAYS),
        "STACK_SCRATCH": str(STACK_SCRATCH),
        "TYPE_OFFSET": str(TYPE_OFFSET),
        "O_NUMBER": str(NUMBER),
        "O_DATA": str(DATA),
        "O_NDIM": str(NDIM),
        "O_SHAPE": str(SHAPE),
        "O_DESCR": str(DESCR),
        "O_FLAGS": str(FLAGS),
        "CONTIGUOUS_ALIGNED": str(CONTIGUOUS_ALIGNED),
        "WIDE_TYPE": str(TYPE_NUMBERS["float64"]),
        "TRIPLE": triple,
    }
    for name in sorted(replacements, key=len, reverse=True):
        text = text.replace(name, replacements[name])
    return text


_ENTRY: Final = """
target triple = "TRIPLE"
@strides = private constant [MAX_ARRAYS x i64] zeroinitializer, align 64

define ptr @dalembert_entry(ptr %self, ptr %args, i64 %count, ptr %names) nounwind {
entry:
  %in = alloca [MAX_ARRAYS x ptr], align 64
  %out = alloca [MAX_ARRAYS x ptr], align 64
  %results = alloca [MAX_ARRAYS x ptr], align 64
  %numbers = alloca [MAX_ARRAYS x double], align 64
  %stack = alloca [STACK_SCRATCH x i8], align 64
  %d.at = getelementptr i8, ptr %self, i64 O_DATA
  %d = load ptr, ptr %d.at, align 8
  %ndarray.at = getelementptr i8, ptr %d, i64 W_ndarray
  %ndarray = load ptr, ptr %ndarray.at, align 8
  %descr.at = getelementptr i8, ptr %d, i64 W_descr
  %descr = load ptr, ptr %descr.at, align 8
  %inputs.at = getelementptr i8, ptr %d, i64 W_inputs
  %inputs = load i64, ptr %inputs.at, align 8
  %outputs.at = getelementptr i8, ptr %d, i64 W_outputs
  %outputs = load i64, ptr %outputs.at, align 8
  %right.count = icmp eq i64 %count, %inputs
  %no.names = icmp eq ptr %names, null
  %number.at = getelementptr i8, ptr %d, i64 W_type_number
  %number = load i64, ptr %number.at, align 8
  %number32 = trunc i64 %number to i32
  %plain = and i1 %right.count, %no.names
  br i1 %plain, label %input.test, label %fallback

input.test:
  %i = phi i64 [ 0, %entry ], [ %i.next, %input.done ]
  %more.inputs = icmp ult i64 %i, %inputs
  br i1 %more.inputs, label %input, label %output.test
input:
  %arg.at = getelementptr ptr, ptr %args, i64 %i
  %arg = load ptr, ptr %arg.at, align 8
  %type.at = getelementptr i8, ptr %arg, i64 TYPE_OFFSET
  %type = load ptr, ptr %type.at, align 8
  %shape.offset = mul i64 %i, SHAPE_BYTES
  %shapes = getelementptr i8, ptr %d, i64 INPUT_SHAPES
  %shape = getelementptr i8, ptr %shapes, i64 %shape.offset
  %want.nd = load i64, ptr %shape, align 8
  %exact = icmp eq ptr %type, %ndarray
  br i1 %exact, label %array, label %scalar
scalar:
  %float.at = getelementptr i8, ptr %d, i64 W_float
  %float = load ptr, ptr %float.at, align 8
  %float64.at = getelementptr i8, ptr %d, i64 W_float64
  %float64 = load ptr, ptr %float64.at, align 8
  %is.float = icmp eq ptr %type, %float
  %is.float64 = icmp eq ptr %type, %float64
  %is.number = or i1 %is.float, %is.float64
  %want.number = icmp eq i64 %want.nd, 0
  %good.number = and i1 %is.number, %want.number
  br i1 %good.number, label %scalar.take, label %fallback
scalar.take:
  %value.at = getelementptr i8, ptr %arg, i64 O_NUMBER
  %value = load double, ptr %value.at, align 8
  %slot = getelementptr double, ptr %numbers, i64 %i
  %wide = icmp eq i32 %number32, WIDE_TYPE
  br i1 %wide, label %scalar.wide, label %scalar.narrow
scalar.wide:
  store double %value, ptr %slot, align 8
  br label %input.done
scalar.narrow:
  %value.narrow = fptrunc double %value to float
  store float %value.narrow, ptr %slot, align 8
  br label %input.done
array:
  %arg.descr.at = getelementptr i8, ptr %arg, i64 O_DESCR
  %arg.descr = load ptr, ptr %arg.descr.at, align 8
  %same.descr = icmp eq ptr %arg.descr, %descr
  %flags.at = getelementptr i8, ptr %arg, i64 O_FLAGS
  %flags = load i32, ptr %flags.at, align 4
  %flags.bits = and i32 %flags, CONTIGUOUS_ALIGNED
  %good.flags = icmp eq i32 %flags.bits, CONTIGUOUS_ALIGNED
  %nd.at = getelementptr i8, ptr %arg, i64 O_NDIM
  %nd32 = load i32, ptr %nd.at, align 4
  %nd = sext i32 %nd32 to i64
  %same.nd = icmp eq i64 %nd, %want.nd
  %good.a = and i1 %same.descr, %good.flags
  %good = and i1 %good.a, %same.nd
  %dims.at = getelementptr i8, ptr %arg, i64 O_SHAPE
  %dims = load ptr, ptr %dims.at, align 8
  %elements.at = getelementptr i8, ptr %arg, i64 O_DATA
  %elements = load ptr, ptr %elements.at, align 8
  br i1 %good, label %axis.test, label %fallback
axis.test:
  %axis = phi i64 [ 0, %array ], [ %axis.next, %axis.body ]
  %more.axes = icmp ult i64 %axis, %nd
  br i1 %more.axes, label %axis.body, label %input.done
axis.body:
  %axis.next = add i64 %axis, 1
  %dim.at = getelementptr i64, ptr %dims, i64 %axis
  %dim = load i64, ptr %dim.at, align 8
  %want.at = getelementptr i64, ptr %shape, i64 %axis.next
  %want = load i64, ptr %want.at, align 8
  %same.dim = icmp eq i64 %dim, %want
  br i1 %same.dim, label %axis.test, label %fallback
input.done:
  %data = phi ptr [ %elements, %axis.test ], [ %slot, %scalar.wide ], [ %slot, %scalar.narrow ]
  %in.at = getelementptr ptr, ptr %in, i64 %i
  store ptr %data, ptr %in.at, align 8
  %i.next = add i64 %i, 1
  br label %input.test

output.test:
  %j = phi i64 [ 0, %input.test ], [ %j.next, %output.done ]
  %more.outputs = icmp ult i64 %j, %outputs
  br i1 %more.outputs, label %output, label %memory
output:
  %out.offset = mul i64 %j, SHAPE_BYTES
  %out.shapes = getelementptr i8, ptr %d, i64 OUTPUT_SHAPES
  %out.shape = getelementptr i8, ptr %out.shapes, i64 %out.offset
  %out.nd = load i64, ptr %out.shape, align 8
  %out.nd32 = trunc i64 %out.nd to i32
  %out.dims = getelementptr i8, ptr %out.shape, i64 8
  %new.at = getelementptr i8, ptr %d, i64 W_array_new
  %new = load ptr, ptr %new.at, align 8
  %result = call ptr %new(
      ptr %ndarray, i32 %out.nd32, ptr %out.dims, i32 %number32, ptr null, ptr null, i32 0, i32 0, ptr null)
  %failed = icmp eq ptr %result, null
  br i1 %failed, label %no.memory, label %output.done
output.done:
  %result.at = getelementptr ptr, ptr %results, i64 %j
  store ptr %result, ptr %result.at, align 8
  %result.data.at = getelementptr i8, ptr %result, i64 O_DATA
  %result.data = load ptr, ptr %result.data.at, align 8
  %out.at = getelementptr ptr, ptr %out, i64 %j
  store ptr %result.data, ptr %out.at, align 8
  %j.next = add i64 %j, 1
  br label %output.test

memory:
  %scratch.at = getelementptr i8, ptr %d, i64 W_scratch
  %bytes = load i64, ptr %scratch.at, align 8
  %small = icmp ule i64 %bytes, STACK_SCRATCH
  br i1 %small, label %run, label %heap
heap:
  %padded = add i64 %bytes, 64
  %malloc.at = getelementptr i8, ptr %d, i64 W_malloc
  %malloc = load ptr, ptr %malloc.at, align 8
  %block = call ptr %malloc(i64 %padded)
  %no.block = icmp eq ptr %block, null
  br i1 %no.block, label %give.up, label %align
align:
  %raw = ptrtoint ptr %block to i64
  %up = add i64 %raw, 63
  %down = and i64 %up, -64
  %aligned = inttoptr i64 %down to ptr
  br label %run
run:
  %scratch = phi ptr [ %stack, %memory ], [ %aligned, %align ]
  %owned = phi ptr [ null, %memory ], [ %block, %align ]
  %kernel.at = getelementptr i8, ptr %d, i64 W_kernel
  %kernel = load ptr, ptr %kernel.at, align 8
  %tables.at = getelementptr i8, ptr %d, i64 W_tables
  %tables = load ptr, ptr %tables.at, align 8
  %refused = call i64 %kernel(ptr %in, ptr @strides, ptr %out, ptr @strides, i64 1, ptr %tables, ptr %scratch)
  %borrowed = icmp eq ptr %owned, null
  br i1 %borrowed, label %finish, label %release
release:
  %free.at = getelementptr i8, ptr %d, i64 W_free
  %free = load ptr, ptr %free.at, align 8
  call void %free(ptr %owned)
  br label %finish
finish:
  %accepted = icmp slt i64 %refused, 0
  br i1 %accepted, label %deliver, label %give.up

deliver:
  %single = icmp eq i64 %outputs, 1
  br i1 %single, label %one, label %many
one:
  %only = load ptr, ptr %results, align 8
  %only.nd.at = getelementptr i8, ptr %d, i64 OUTPUT_SHAPES
  %only.nd = load i64, ptr %only.nd.at, align 8
  %is.array = icmp ne i64 %only.nd, 0
  br i1 %is.array, label %return.one, label %return.scalar
return.one:
  ret ptr %only
return.scalar:
  %return.at = getelementptr i8, ptr %d, i64 W_array_return
  %return = load ptr, ptr %return.at, align 8
  %number.result = call ptr %return(ptr %only)
  ret ptr %number.result
many:
  %tuple.new.at = getelementptr i8, ptr %d, i64 W_tuple_new
  %tuple.new = load ptr, ptr %tuple.new.at, align 8
  %tuple = call ptr %tuple.new(i64 %outputs)
  %no.tuple = icmp eq ptr %tuple, null
  br i1 %no.tuple, label %no.memory.late, label %fill.test
fill.test:
  %k = phi i64 [ 0, %many ], [ %k.next, %fill ]
  %more.items = icmp ult i64 %k, %outputs
  br i1 %more.items, label %fill, label %return.many
fill:
  %item.at = getelementptr ptr, ptr %results, i64 %k
  %item = load ptr, ptr %item.at, align 8
  %set.at = getelementptr i8, ptr %d, i64 W_tuple_set
  %set = load ptr, ptr %set.at, align 8
  %status = call i32 %set(ptr %tuple, i64 %k, ptr %item)
  %k.next = add i64 %k, 1
  br label %fill.test
return.many:
  ret ptr %tuple

give.up:
  call void @drop(ptr %d, ptr %results, i64 %outputs)
  br label %fallback
no.memory:
  call void @drop(ptr %d, ptr %results, i64 %j)
  ret ptr null
no.memory.late:
  call void @drop(ptr %d, ptr %results, i64 %outputs)
  ret ptr null
fallback:
  %fallback.at = getelementptr i8, ptr %d, i64 W_fallback
  %function = load ptr, ptr %fallback.at, align 8
  %call.at = getelementptr i8, ptr %d, i64 W_vectorcall
  %call = load ptr, ptr %call.at, align 8
  %answer = call ptr %call(ptr %function, ptr %args, i64 %count, ptr %names)
  ret ptr %answer
}

define internal void @drop(ptr %d, ptr %results, i64 %count) nounwind {
entry:
  %decref.at = getelementptr i8, ptr %d, i64 W_decref
  %decref = load ptr, ptr %decref.at, align 8
  br label %test
test:
  %k = phi i64 [ 0, %entry ], [ %k.next, %body ]
  %more = icmp ult i64 %k, %count
  br i1 %more, label %body, label %exit
body:
  %at = getelementptr ptr, ptr %results, i64 %k
  %object = load ptr, ptr %at, align 8
  call void %decref(ptr %object)
  %k.next = add i64 %k, 1
  br label %test
exit:
  ret void
}
"""


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
    engine, (address,) = load_helper("entry point", entry_text(target_for(None).triple), ("dalembert_entry",))
    return engine, address
