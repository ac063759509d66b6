"""The text that becomes a GPU kernel, run on the CPU thread by thread, gives the bits of the CPU's kernel."""

import numpy as np
import pytest
from tests.codegen.gpu.launching import LAYOUTS, run_on_host
from tests.codegen.sample_programs import (
    bits,
    chain_loops,
    every_operation,
    random_inputs,
    random_straight,
    run,
    straight,
    wide_output,
)

import dalembert as da
from dalembert.api import declared
from dalembert.codegen import compile_program, host_level
from dalembert.codegen.gpu import Layout
from dalembert.codegen.target import LEVELS
from dalembert.tracing.graph import Graph

pytestmark = pytest.mark.skipif(
    not LEVELS[host_level()].fma, reason="a processor without fused multiply-adds rounds otherwise"
)


def several_large(rows: int):
    """A product of a symmetric matrix with another, and the matrix itself: results that share most of what
    they need, too many for shared memory, with zeros, another constant, an input and a small result."""
    graph = Graph()
    x = [graph.input("x", k) for k in range(rows)]
    y = [graph.input("y", k) for k in range(7)]
    sines = [graph.operation("sin", item) for item in x]
    matrix = [[sines[max(i, j)] * x[min(i, j)] + float(i + j) for j in range(rows)] for i in range(rows)]
    other = [[y[(i + j) % 7] * sines[j] for j in range(rows)] for i in range(rows)]
    product = []
    for i in range(rows):
        for j in range(rows):
            total = graph.constant(0.0)
            for k in range(0, rows, 2):
                total = total + matrix[i][k] * other[k][j]
            product.append(total if (i + j) % 5 else graph.constant(0.0))
    product[1], product[2] = graph.constant(2.5), x[3]
    flat = [item for row in matrix for item in row]
    return straight({"x": rows, "y": 7}, {"product": product, "matrix": flat, "small": [y[0] * y[1], y[2]]})


def large_and_small():
    """A result too large for the shared memory of "planned, loops together", and one that fits."""
    graph = Graph()
    x = [graph.input("x", k) for k in range(9)]
    large = [a * b + float(i) for i, a in enumerate(x) for b in x]
    return straight({"x": 9}, {"large": large, "small": [x[0] * x[1] * 3.0, x[1] - x[2]]})


PROGRAMS = {
    "straight": random_straight(3),
    "large and small": large_and_small(),
    "several large": several_large(20),
    "wide": wide_output(23),
    "loops": chain_loops(40),
    "large loops": chain_loops(1200),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_layout_computes_what_the_cpu_does(name, layout):
    program = PROGRAMS[name]
    arrays = random_inputs(program, 133, "float64")
    wanted = run(compile_program(program), arrays)
    found, refused = run_on_host(program, arrays, layout=LAYOUTS[layout])
    assert refused == -1
    for output, array in wanted.items():
        assert np.array_equal(bits(array), bits(found[output])), output


@pytest.mark.parametrize("layout", LAYOUTS)
def test_small_results_beside_a_large_one_in_single_precision(layout):
    """Results gathered from slots leave no pieces to divide the large one into."""
    program = PROGRAMS["large and small"]
    arrays = random_inputs(program, 133, "float32")
    found, _ = run_on_host(program, arrays, layout=LAYOUTS[layout])
    for output, array in run(compile_program(program, dtype="float32"), arrays).items():
        np.testing.assert_allclose(found[output], array, rtol=1e-6)


@pytest.mark.parametrize("rows", [192, 200])
def test_a_small_grid_goes_over_all_rows(rows):
    """Six whole blocks, three turns of two, and no turn without rows; or six and a part."""
    program = PROGRAMS["large loops"]
    arrays = random_inputs(program, rows, "float64")
    whole, _ = run_on_host(program, arrays, layout=Layout(block=32))
    striding, _ = run_on_host(program, arrays, layout=Layout(block=32), grid=2)
    for output, array in whole.items():
        assert np.array_equal(bits(array), bits(striding[output]))


@pytest.mark.parametrize("rows", [1, 31, 64, 65])
def test_rows_of_any_number_and_stride(rows):
    program = PROGRAMS["straight"]
    wide = random_inputs(program, 2 * rows, "float64")
    arrays = {name: array[::2] for name, array in wide.items()}
    arrays["y"] = np.broadcast_to(wide["y"][:1], (rows, 3))
    wanted = run(compile_program(program), arrays)
    found, _ = run_on_host(program, arrays, layout=LAYOUTS["plain"])
    for output, array in wanted.items():
        assert np.array_equal(bits(array), bits(found[output]))


def test_every_operation_in_single_precision_is_within_two_units():
    program, names = every_operation()
    rng = np.random.default_rng(3)
    x = rng.uniform(-1.0, 1.0, (4000, 2)).astype(np.float32)
    found, _ = run_on_host(program, {"x": x}, layout=LAYOUTS["plain"])
    wide = run(compile_program(program), {"x": x.astype(np.float64)})
    with np.errstate(invalid="ignore"):
        unit = np.spacing(np.abs(wide["result"].astype(np.float32)))
        error = np.abs(found["result"] - wide["result"]) / unit
    for k, name in enumerate(names):
        finite = np.isfinite(wide["result"][:, k])
        assert np.array_equal(np.isfinite(found["result"][:, k]), finite)
        assert np.all(error[finite, k] <= 2.0), name


def test_the_first_refused_row_is_named():
    graph = Graph()
    x = graph.input("x", 0)
    program = straight({"x": 1}, {"y": [x * 2.0]}, check=graph.operation("lt", 3.0, x))
    x = np.zeros((300, 1))
    x[[299, 77, 180]] = 4.0
    for layout in LAYOUTS.values():
        found, refused = run_on_host(program, {"x": x}, layout=layout)
        assert refused == 77
        assert np.array_equal(found["y"], 2.0 * x)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(
    "function", ["forward_dynamics", "inverse_dynamics", "mass_matrix", "center_of_mass"]
)
def test_dynamics_of_a_floating_tree(function, dtype):
    """A whole algorithm, planned and not; float64 bit for bit, float32 within its precision."""
    model = da.models.quadruped()
    compiled = da.compile(getattr(declared, function), model, dtype=dtype)
    program = compiled._kernels.lower().program
    rng = np.random.default_rng(2)
    q = np.stack([model.random_state(rng)[0] for _ in range(70)])
    arrays = {"q": q} | {name: rng.normal(size=(70, model.nv)) for name in ("v", "a", "tau")}
    arrays = {name: array.astype(dtype) for name, array in arrays.items()}
    inputs = {spec.name: arrays[spec.name] for spec in program.inputs}
    wanted = np.asarray(compiled(*inputs.values())).reshape(70, -1)
    for layout in (Layout(block=64), Layout(block=64, values=40, shared=227 * 1024)):
        found, refused = run_on_host(program, inputs, layout=layout)
        assert refused == -1
        (result,) = found.values()
        if dtype == "float64":
            assert np.array_equal(bits(result), bits(wanted))
        else:
            scale = np.abs(wanted).max(axis=1, keepdims=True)
            assert np.all(np.abs(result - wanted) <= 2e-5 * scale)


def test_dynamics_of_a_large_tree():
    """Loops over tables, with states in scratch memory that holds anything at the start."""
    model = da.models.gu(160)
    compiled = da.compile(da.forward_dynamics, model)
    program = compiled._kernels.lower().program
    rng = np.random.default_rng(4)
    arrays = {spec.name: 0.1 * rng.normal(size=(40, spec.size)) for spec in program.inputs}
    found, _ = run_on_host(program, arrays, layout=Layout(block=32))
    (result,) = found.values()
    assert np.array_equal(bits(result), bits(compiled(*arrays.values())))
