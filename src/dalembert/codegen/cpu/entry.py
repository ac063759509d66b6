"""A Python function that is machine code from the call to the kernel.

One builtin function serves every kernel: what it needs to know stands in a descriptor, the memory of the
NumPy array that is its `self`. Arguments that the kernel takes as they are (exact `numpy.ndarray`, the right
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
from dalembert.codegen.ir import RecordWriter, Value, Writer, function_text
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
INPUT_SHAPES: Final = 8 * len(FIELDS)
SHAPE_BYTES: Final = 8 * (1 + MAX_AXES)
OUTPUT_SHAPES: Final = INPUT_SHAPES + MAX_ARRAYS * SHAPE_BYTES
DESCRIPTOR_WORDS: Final = (OUTPUT_SHAPES + MAX_ARRAYS * SHAPE_BYTES) // 8


def entry_text(triple: str) -> str:
    """Return the entry point `dalembert_entry` as LLVM text."""
    w = RecordWriter(FIELDS, "%d")  # of the function that releases the first `count` results
    release = w.word("decref", "ptr")
    with w.for_each("%count") as k:
        w.line(f"call void {release}(ptr {w.read('ptr', '%results', w.let(f'shl i64 {k}, 3'))})")
    w.line("ret void")
    drop = function_text("void", "drop", "ptr %d, ptr %results, i64 %count", w.lines, "nounwind")
    strides = f"@strides = private constant [{MAX_ARRAYS} x i64] zeroinitializer, align 64"
    return "\n".join([f'target triple = "{triple}"', strides, _entry_function(), drop])


def _entry_function() -> str:
    w = RecordWriter(FIELDS, "%d")
    given, made, results = (w.let(f"alloca [{MAX_ARRAYS} x ptr], align 64") for _ in range(3))
    numbers = w.let(f"alloca [{MAX_ARRAYS} x double], align 64")
    stack = w.let(f"alloca [{STACK_SCRATCH} x i8], align 64")
    w.line(f"%d = load ptr, ptr {w.address('%self', DATA)}, align 8")
    ndarray, inputs, outputs = w.word("ndarray", "ptr"), w.word("inputs"), w.word("outputs")
    type_number = w.let(f"trunc i64 {w.word('type_number')} to i32")
    drop_results = f"call void @drop(ptr %d, ptr {results}, i64 {{}})"
    w.require(w.let(f"icmp eq i64 %count, {inputs}"), "fallback")
    w.require(w.let("icmp eq ptr %names, null"), "fallback")
    with w.for_each(inputs) as i:
        at, shape = _of_number(w, i, INPUT_SHAPES)
        argument = w.read("ptr", "%args", at)
        _take_argument(w, argument, shape, ndarray, type_number, w.address(numbers, at), w.address(given, at))
    with w.for_each(outputs) as j:
        at, shape = _of_number(w, j, OUTPUT_SHAPES)
        axes = w.let(f"trunc i64 {w.read('i64', shape)} to i32")
        form = f"ptr {ndarray}, i32 {axes}, ptr {w.address(shape, 8)}, i32 {type_number}"
        result = w.let(
            f"call ptr {w.word('array_new', 'ptr')}({form}, ptr null, ptr null, i32 0, i32 0, ptr null)"
        )
        w.exit_if(w.let(f"icmp eq ptr {result}, null"), drop_results.format(j), "ret ptr null")
        w.write("ptr", result, results, at)
        w.write("ptr", w.read("ptr", result, DATA), made, at)
    refused = _run_kernel(w, given, made, stack)
    w.require(w.let(f"icmp slt i64 {refused}, 0"), "give.up")
    w.branch(w.let(f"icmp eq i64 {outputs}, 1"), "one", "many", then="one")
    only = w.read("ptr", results)
    axes = w.read("i64", "%d", OUTPUT_SHAPES)
    w.exit_if(w.let(f"icmp ne i64 {axes}, 0"), f"ret ptr {only}")
    number = w.let(f"call ptr {w.word('array_return', 'ptr')}(ptr {only})")
    w.line(f"ret ptr {number}")
    w.begin("many")
    results_tuple = w.let(f"call ptr {w.word('tuple_new', 'ptr')}(i64 {outputs})")
    no_tuple = w.let(f"icmp eq ptr {results_tuple}, null")
    w.exit_if(no_tuple, drop_results.format(outputs), "ret ptr null")
    with w.for_each(outputs) as k:
        item = w.read("ptr", results, w.let(f"shl i64 {k}, 3"))
        w.let(f"call i32 {w.word('tuple_set', 'ptr')}(ptr {results_tuple}, i64 {k}, ptr {item})")
    w.line(f"ret ptr {results_tuple}")
    w.begin("give.up")
    w.line(drop_results.format(outputs))
    w.enter("fallback")
    function, call = w.word("fallback", "ptr"), w.word("vectorcall", "ptr")
    answer = w.let(f"call ptr {call}(ptr {function}, ptr %args, i64 %count, ptr %names)")
    w.line(f"ret ptr {answer}")
    parameters = "ptr %self, ptr %args, i64 %count, ptr %names"
    return function_text("ptr", "dalembert_entry", parameters, w.lines, "nounwind", exported=True)


def _of_number(w: Writer, number: Value, shapes: int) -> tuple[Value, Value]:
    """Write where argument or result `number` has its pointer, in bytes, and the address of its shape."""
    at = w.let(f"shl i64 {number}, 3")
    return at, w.address(w.address("%d", shapes), w.let(f"mul i64 {number}, {SHAPE_BYTES}"))


def _take_argument(
    w: RecordWriter, argument: Value, shape: Value, ndarray: Value, type_number: Value, slot: Value, to: Value
) -> None:
    """Write the address of an argument's elements `to` its place; a number goes to `slot` first."""
    kind, wanted_axes = w.read("ptr", argument, TYPE_OFFSET), w.read("i64", shape)
    array, number, done = (w.label() for _ in range(3))
    w.branch(w.let(f"icmp eq ptr {kind}, {ndarray}"), array, number, then=number)
    known = [w.let(f"icmp eq ptr {kind}, {w.word(name, 'ptr')}") for name in ("float", "float64")]
    w.require(w.let(f"or i1 {known[0]}, {known[1]}"), "fallback")
    w.require(w.let(f"icmp eq i64 {wanted_axes}, 0"), "fallback")
    value, narrow, wide = w.read("double", argument, NUMBER), w.label(), w.label()
    w.write("ptr", slot, to)
    w.branch(w.let(f"icmp eq i32 {type_number}, {TYPE_NUMBERS['float64']}"), wide, narrow, then=wide)
    w.write("double", value, slot)
    w.jump(done, then=narrow)
    w.write("float", w.let(f"fptrunc double {value} to float"), slot)
    w.jump(done, then=array)
    same = w.let(f"icmp eq ptr {w.read('ptr', argument, DESCR)}, {w.word('descr', 'ptr')}")
    flags = w.let(f"and i32 {w.read('i32', argument, FLAGS, 4)}, {CONTIGUOUS_ALIGNED}")
    laid_out = w.let(f"icmp eq i32 {flags}, {CONTIGUOUS_ALIGNED}")
    axes = w.let(f"sext i32 {w.read('i32', argument, NDIM, 4)} to i64")
    w.require(w.let(f"and i1 {same}, {laid_out}"), "fallback")
    w.require(w.let(f"icmp eq i64 {axes}, {wanted_axes}"), "fallback")
    dimensions, elements = w.read("ptr", argument, SHAPE), w.read("ptr", argument, DATA)
    with w.for_each(axes) as axis:
        at = w.let(f"shl i64 {axis}, 3")
        wanted = w.read("i64", w.address(shape, 8), at)
        w.require(w.let(f"icmp eq i64 {w.read('i64', dimensions, at)}, {wanted}"), "fallback")
    w.write("ptr", elements, to)
    w.enter(done)


def _run_kernel(w: RecordWriter, given: Value, made: Value, stack: Value) -> Value:
    """Write the call of the kernel, with scratch memory from the stack or the heap; its result."""
    size = w.word("scratch")
    w.branch(w.let(f"icmp ule i64 {size}, {STACK_SCRATCH}"), "small", "heap", then="heap")
    block = w.let(f"call ptr {w.word('malloc', 'ptr')}(i64 {w.let(f'add i64 {size}, 64')})")
    w.leave(w.let(f"icmp eq ptr {block}, null"), "give.up")
    up = w.let(f"add i64 {w.let(f'ptrtoint ptr {block} to i64')}, 63")
    aligned = w.let(f"inttoptr i64 {w.let(f'and i64 {up}, -64')} to ptr")
    w.enter("heap.ready")
    w.jump("run", then="small")
    w.enter("run")
    scratch = w.let(f"phi ptr [ {stack}, %small ], [ {aligned}, %heap.ready ]")
    owned = w.let(f"phi ptr [ null, %small ], [ {block}, %heap.ready ]")
    arrays = f"ptr {given}, ptr @strides, ptr {made}, ptr @strides, i64 1"
    kernel, tables = w.word("kernel", "ptr"), w.word("tables", "ptr")
    refused = w.let(f"call i64 {kernel}({arrays}, ptr {tables}, ptr {scratch})")
    with w.when(w.let(f"icmp ne ptr {owned}, null")):
        w.line(f"call void {w.word('free', 'ptr')}(ptr {owned})")
    return refused


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
    for arrays, shapes in ((kernel.info.inputs, input_shapes), (kernel.info.outputs, output_shapes)):
        if [int(np.prod(shape, dtype=np.int64)) for shape in shapes] != [size for _, size in arrays]:
            raise ArgumentError(f"shapes {list(shapes)} do not fit the kernel's arrays {list(arrays)}")
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
        words[FIELDS.index(field)] = value
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
