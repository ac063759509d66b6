"""The entry point passes fitting arrays to the kernel, everything else to Python, and holds no reference
too many."""

import gc
import sys
import weakref

import numpy as np
import pytest
from tests.codegen.sample_programs import bits, random_straight, run, straight, wide_output

from dalembert.codegen import address_of, compile_program, make_entry
from dalembert.errors import ArgumentError
from dalembert.tracing.graph import Graph


class Fallback:
    """Remembers how it was called."""

    def __init__(self):
        self.calls = []

    def __call__(self, *args, **named):
        self.calls.append((args, named))
        return "fallback"


def _sum_entry(fallback, *, dtype="float64"):
    graph = Graph()
    x, y = ([graph.input(name, k) for k in range(6)] for name in "xy")
    values = [a * 2.0 + b for a, b in zip(x, y)]
    program = straight({"x": 6, "y": 6}, {"sum": values}, check=graph.operation("lt", 100.0, x[0]))
    kernel = compile_program(program, lanes=1, dtype=dtype)
    return make_entry(
        kernel, fallback, input_shapes=[(6,), (2, 3)], output_shapes=[(3, 2)], name="total", doc="2 x + y"
    )


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_fitting_arrays_go_straight_to_the_kernel(dtype):
    fallback = Fallback()
    entry = _sum_entry(fallback, dtype=dtype)
    rng = np.random.default_rng(0)
    for _ in range(3):
        x, y = rng.normal(size=6).astype(dtype), rng.normal(size=(2, 3)).astype(dtype)
        result = entry(x, y)
        assert type(result) is np.ndarray
        assert result.dtype == dtype
        assert result.flags.owndata
        np.testing.assert_allclose(result, (2.0 * x + y.ravel()).reshape(3, 2), rtol=1e-6)
    assert fallback.calls == []
    assert entry.__name__ == "total"
    assert entry.__doc__ == "2 x + y"


def test_read_only_arrays_are_read():
    fallback = Fallback()
    x, y = np.ones(6), np.ones((2, 3))
    x.flags.writeable = False
    assert np.all(_sum_entry(fallback)(x, y) == 3.0)
    assert fallback.calls == []


class _Number(float):
    pass


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_numbers_go_straight_to_the_kernel_where_a_number_is_wanted(dtype):
    fallback, graph = Fallback(), Graph()
    a, b = graph.input("x", 0) * graph.input("a", 0), graph.input("y", 0) * graph.input("b", 0)
    program = straight({"x": 1, "a": 1, "b": 1, "y": 1}, {"sum": [a + b]})
    entry = make_entry(
        compile_program(program, lanes=1, dtype=dtype),
        fallback,
        input_shapes=[(1,), (), (), (1,)],
        output_shapes=[(1,)],
    )
    x, y = np.array([0.3], dtype), np.array([0.7], dtype)
    expected = entry(x, np.array(0.1, dtype), np.array(-1.7e-3, dtype), y)
    for numbers in ((0.1, -1.7e-3), (np.float64(0.1), -1.7e-3), (0.1, np.array(-1.7e-3, dtype))):
        assert np.array_equal(bits(entry(x, *numbers, y)), bits(expected))
    assert fallback.calls == []
    others = [(x, 0.1, 1, y), (x, np.float32(0.1), 0.1, y), (x, _Number(0.1), 0.1, y), (0.3, 0.1, 0.1, y)]
    assert [entry(*values) for values in others] == ["fallback"] * 4


class _Subclass(np.ndarray):
    pass


def _misfits():
    x, y = np.ones(6), np.ones((2, 3))
    shifted = np.frombuffer(b"\0" * 49, dtype=np.uint8)[1:].view(np.float64)
    return {
        "list": ([1.0] * 6, y),
        "none": (None, y),
        "subclass": (x.view(_Subclass), y),
        "float32": (x.astype(np.float32), y),
        "int": (x.astype(np.int64), y),
        "swapped": (x.astype(">f8"), y),
        "long": (np.ones(7), y),
        "batch": (np.ones((4, 6)), y),
        "flat": (x, np.ones(6)),
        "prefix": (x, np.ones(2)),
        "extended": (x, np.ones((2, 3, 1))),
        "scalar": (np.array(1.0), y),
        "turned": (x, np.ones((3, 2))),
        "strided": (np.ones(12)[::2], y),
        "fortran": (x, np.asfortranarray(np.ones((2, 3)))),
        "unaligned": (shifted, y),
        "few": (x,),
        "many": (x, y, y),
        "empty": (),
    }


@pytest.mark.parametrize("name", _misfits())
def test_everything_else_goes_to_python_unchanged(name):
    fallback = Fallback()
    arguments = _misfits()[name]
    assert _sum_entry(fallback)(*arguments) == "fallback"
    ((args, named),) = fallback.calls
    assert all(a is b for a, b in zip(args, arguments, strict=True))
    assert named == {}


def test_names_and_refused_rows_go_to_python():
    fallback = Fallback()
    entry = _sum_entry(fallback)
    x, y = np.ones(6), np.ones((2, 3))
    assert entry(x, y=y) == "fallback"
    assert entry(x, y, out=None) == "fallback"
    x[0] = 200.0
    assert entry(x, y) == "fallback"
    assert [sorted(named) for _, named in fallback.calls] == [["y"], ["out"], []]


def test_errors_of_the_fallback_come_through():
    def fallback(*args):
        raise ArgumentError("wrong")

    with pytest.raises(ArgumentError, match="wrong"):
        _sum_entry(fallback)(1)


def test_several_outputs_are_a_tuple_and_large_scratch_is_found():
    program = random_straight(3, size=4000)
    kernel = compile_program(program, lanes=1)
    sizes = [size for _, size in kernel.info.outputs]
    entry = make_entry(
        kernel, Fallback(), input_shapes=[(11,), (3,)], output_shapes=[(sizes[0],), (sizes[1],)]
    )
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=11), rng.normal(size=3)
    first, second = entry(x, y)
    expected = run(kernel, {"x": x[None], "y": y[None]})
    assert np.array_equal(bits(first), bits(expected["first"][0]))
    assert np.array_equal(bits(second), bits(expected["second"][0]))


def test_a_matrix_has_its_shape_and_a_scalar_is_a_number():
    matrix = make_entry(
        compile_program(wide_output(9), lanes=1), Fallback(), input_shapes=[(9,)], output_shapes=[(9, 9)]
    )(np.arange(9.0))
    assert matrix.shape == (9, 9)
    assert np.array_equal(matrix, matrix.T)
    graph = Graph()
    kernel = compile_program(straight({"x": 2}, {"y": [graph.input("x", 0) * 3.0]}), lanes=1)
    result = make_entry(kernel, Fallback(), input_shapes=[(2,)], output_shapes=[()])(np.array([2.0, 0.0]))
    assert result == 6.0
    assert isinstance(result, np.float64)


def test_no_reference_is_leaked_or_lost():
    fallback = Fallback()
    entry = _sum_entry(fallback)
    x, y = np.ones(6), np.ones((2, 3))
    watched = (x, y, entry, fallback, entry.__self__, np.dtype("float64"))
    result = entry(x, y)
    assert sys.getrefcount(result) == 2
    before = [sys.getrefcount(item) for item in watched]
    for _ in range(100_000):
        entry(x, y)
    for _ in range(2_000):
        entry(x)
        entry(x * 200.0, y)
    fallback.calls.clear()
    after = [sys.getrefcount(item) for item in watched]
    # The type object is shared with everything else in the process.
    assert np.all(np.abs(np.subtract(after, before)) < 50)
    assert after[:5] == before[:5]


def test_everything_is_freed_with_the_entry():
    fallback = Fallback()
    entry = _sum_entry(fallback)
    reference = weakref.ref(fallback)
    entry(np.ones(6), np.ones((2, 3)))
    del fallback
    gc.collect()
    assert reference() is not None, "the entry point keeps its fallback"
    assert entry([1.0]) == "fallback"
    del entry
    gc.collect()
    assert reference() is None


def test_shapes_must_fit_the_kernel():
    graph = Graph()
    program = straight({"x": 2}, {"y": [graph.input("x", 0)]})
    with pytest.raises(ArgumentError, match="do not fit"):
        make_entry(compile_program(program, lanes=1), Fallback(), input_shapes=[(3,)], output_shapes=[(1,)])
    with pytest.raises(ArgumentError, match="one lane"):
        make_entry(compile_program(program, lanes=2), Fallback(), input_shapes=[(2,)], output_shapes=[(1,)])


def test_the_address_of_an_array_is_where_its_elements_begin():
    base = np.arange(24.0).reshape(4, 6)
    for array in (base, base[1:], base[:, 2:], base.T, np.empty((0, 3)), base[2]):
        assert address_of(array) == array.ctypes.data
