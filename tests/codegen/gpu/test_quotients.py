"""Quotients and roots of float32 without branches: correctly rounded from approximations a few places off.

On the CPU the processor's approximations are replaced by exact ones that are wrong in the last places.
"""

import ctypes
import re

import llvmlite.binding as llvm
import numpy as np
import pytest
from tests.codegen.gpu.launching import SM90, source_of

from dalembert.codegen.gpu import Layout, ptx_of
from dalembert.codegen.gpu.gpu_module import without_branches
from dalembert.codegen.target import target_for, target_machine
from dalembert.tracing.graph import Graph
from dalembert.tracing.program import ArraySpec, Program, Store, Straight

FUNCTIONS = {"quotient": 2, "reciprocal": 1, "root": 1, "inverse_root": 1}

APPROXIMATIONS = """
declare float @llvm.sqrt.f32(float)
define internal float @wrong(float %exact) alwaysinline {
%bits = bitcast float %exact to i32
%size = and i32 %bits, 2147483647
%large = icmp uge i32 %size, 2139095039
%small = icmp ult i32 %size, 8388608
%extreme = or i1 %large, %small
%change = select i1 %extreme, i32 0, i32 CHANGE
%other = add i32 %bits, %change
%result = bitcast i32 %other to float
ret float %result
}
define internal float @rcp(float %x) alwaysinline {
%exact = fdiv float 1.0, %x
%result = call float @wrong(float %exact)
ret float %result
}
define internal float @rsqrt(float %x) alwaysinline {
%root = call float @llvm.sqrt.f32(float %x)
%exact = fdiv float 1.0, %root
%result = call float @wrong(float %exact)
ret float %result
}
"""


@pytest.fixture(scope="module", params=[-1, 0, 1])
def functions(request):
    text = re.sub(r'asm "(rcp|rsqrt)\.approx[^"]*", "=f,f"', r"@\1", without_branches(""))
    text += APPROXIMATIONS.replace("CHANGE", str(request.param))
    for name, count in FUNCTIONS.items():
        items = ", ".join(f"float %x{k}" for k in range(count))
        loads = "".join(
            f"%p{k} = getelementptr float, ptr %in{k}, i64 %i\n%x{k} = load float, ptr %p{k}\n"
            for k in range(count)
        )
        given = ", ".join(f"ptr %in{k}" for k in range(count))
        text += (
            f"define void @each_{name}({given}, ptr %out, i64 %n) {{\nentry:\nbr label %next\nnext:\n"
            f"%i = phi i64 [ 0, %entry ], [ %j, %next ]\n{loads}%y = call float @{name}({items})\n"
            "%p = getelementptr float, ptr %out, i64 %i\nstore float %y, ptr %p\n%j = add i64 %i, 1\n"
            "%more = icmp ult i64 %j, %n\nbr i1 %more, label %next, label %end\nend:\nret void\n}\n"
        )
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(text), target_machine(target_for(None)))
    engine.finalize_object()

    def call(name, *arrays):
        out = np.empty_like(arrays[0])
        kinds = [ctypes.c_void_p] * (len(arrays) + 1) + [ctypes.c_int64]
        function = ctypes.CFUNCTYPE(None, *kinds)(engine.get_function_address(f"each_{name}"))
        function(*(x.ctypes.data for x in (*arrays, out)), len(out))
        return out

    call.engine = engine
    call.exact = request.param == 0
    return call


def assert_rounded(functions, found, wanted):
    """Equal; from approximations that are wrong, all but a few in a million, and those to a last place."""
    if functions.exact:
        np.testing.assert_array_equal(found, wanted)
    else:
        assert np.count_nonzero(found != wanted) <= 2e-5 * len(wanted)
        np.testing.assert_allclose(found, wanted, rtol=1.2e-7)


def numbers(count, least, most, seed):
    """Both signs, binary exponents from `least` to `most`."""
    rng = np.random.default_rng(seed)
    size = np.ldexp(rng.uniform(1.0, 2.0, count), rng.integers(least, most, count))
    return (size * rng.choice([-1.0, 1.0], count)).astype(np.float32)


def test_ordinary_results_are_correctly_rounded(functions):
    a, b = numbers(1_000_000, -60, 60, 1), numbers(1_000_000, -60, 60, 2)
    assert_rounded(functions, functions("quotient", a, b), a / b)
    assert_rounded(functions, functions("reciprocal", b), np.float32(1.0) / b)
    assert_rounded(functions, functions("root", np.abs(a)), np.sqrt(np.abs(a)))


def test_all_normal_operands_and_results(functions):
    a, b = numbers(1_000_000, -126, 128, 3), numbers(1_000_000, -126, 128, 4)
    with np.errstate(over="ignore"):
        wanted = (a.astype(np.float64) / b).astype(np.float32)
        found = functions("quotient", a, b)
        normal = (np.abs(wanted) > 1e-36) & (np.abs(a) > 1e-30) & np.isfinite(wanted)
        assert_rounded(functions, found[normal], wanted[normal])
        np.testing.assert_allclose(found, wanted, rtol=2e-7, atol=2e-38)
    np.testing.assert_allclose(functions("reciprocal", b), np.float32(1.0) / b, rtol=1.2e-7, atol=2e-45)
    assert_rounded(functions, functions("root", np.abs(a)), np.sqrt(np.abs(a)))
    exact = 1.0 / np.sqrt(np.abs(a).astype(np.float64))
    np.testing.assert_allclose(functions("inverse_root", np.abs(a)), exact, rtol=1.3e-7)


def test_extremes(functions):
    tiny, inf, nan = np.float32(1e-45), np.float32(np.inf), np.float32(np.nan)
    some = np.array([0.0, -0.0, tiny, -tiny, 1e-38, 1.0, -2.5, 3e38, -3e38, inf, -inf, nan], np.float32)
    a, b = (x.ravel().copy() for x in np.meshgrid(some, some))
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(functions("quotient", a, b), a / b, rtol=1e-6, atol=3e-45)
        np.testing.assert_allclose(functions("reciprocal", some), 1.0 / some, rtol=1e-6)
        np.testing.assert_allclose(functions("root", some), np.sqrt(some), rtol=1e-6)
        wanted = 1.0 / np.sqrt(some.astype(np.float64))
        found = functions("inverse_root", some)
        np.testing.assert_allclose(np.abs(found), np.abs(wanted).astype(np.float32), rtol=1e-6)


def test_kernels_of_float32_have_no_slow_paths():
    graph = Graph()
    x = [graph.input("x", k) for k in range(3)]
    root = graph.operation("sqrt", x[0])
    values = [x[0] / x[1], 1.0 / x[2], root, 1.0 / root]
    stores = tuple(Store.fixed("y", k, value) for k, value in enumerate(values))
    program = Program((ArraySpec("x", 3),), (ArraySpec("y", 4),), statements=(Straight(stores),))
    single = ptx_of(source_of(program, 32, Layout(block=64)), SM90)
    assert not re.search(r"(div|rcp|sqrt)\.rn", single)
    assert single.count("rcp.approx.ftz.f32") == 2
    assert single.count("rsqrt.approx.ftz.f32") == 2
    double = ptx_of(source_of(program, 64, Layout(block=64)), SM90)
    assert re.search(r"div\.rn\.f64", double)
    assert re.search(r"sqrt\.rn\.f64", double)
