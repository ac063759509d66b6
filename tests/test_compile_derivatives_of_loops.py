"""Derivatives of functions that are compiled as loops: large trees, and ranks decided in the kernel."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from tests.conformance.models import KINDS
from tests.finite_differences import differences, states
from tests.tracing.interpreter import interpret

import dalembert as da
from dalembert.api import declared
from dalembert.compiler import library
from dalembert.errors import ArgumentError
from dalembert.tracing import Loop, Program


def interpreted(program: Program, arrays: dict[str, np.ndarray]) -> np.ndarray:
    """All elements of the outputs, a column a sample."""
    outputs = interpret(program, {key: list(array.T) for key, array in arrays.items()})
    return np.array([np.broadcast_to(x, 2) for values in outputs.values() for x in values])


@pytest.mark.parametrize("name", ["inverse_dynamics", "forward_dynamics"])
@pytest.mark.parametrize("kinds", [KINDS[:6], KINDS[6:12], KINDS[12:]])
def test_loops_differentiate_as_straight_code_does(name: str, kinds: tuple[str, ...], monkeypatch: Any):
    """RBDA-10.4-SYMBOLIC: all joint types; the programs on the interpreter, on the tangent space of q."""
    model = da.models.random_tree(3, bodies=7, joints=kinds, branching=0.5, armature=0.2)
    straight = library.function(model, name)
    monkeypatch.setattr(library, "UNROLLED_BODIES", 1)
    looped = da.compile(getattr(declared, name), model)
    q, v, a = states(model, 2)
    rng = np.random.default_rng(8)
    given = {"q": q, "v": v, "a": a, "tau": a}
    for kind in ("jvp", "vjp") if name == "forward_dynamics" else ("jvp", "vjp", "hessian_vector"):
        f, g = (getattr(item, kind)("q", "v") for item in (straight, looped))
        arrays = {
            key: given[key] if key in given else rng.normal(size=(2, *shape))
            for key, shape in f.inputs.items()
        }
        programs = [item._kernels.lower().program for item in (f, g)]
        assert any(isinstance(item, Loop) for item in programs[1].statements)
        assert [spec.name for spec in programs[1].inputs] == list(g.inputs)
        results = [interpreted(program, arrays) for program in programs]
        assert_allclose(results[1], results[0], rtol=1e-9, atol=1e-9 * (1.0 + np.abs(results[0]).max()))


def test_gradient_of_a_large_tree_is_compiled_as_loops():
    """The power of a change is the same forward and in reverse; machine code, single and batched."""
    model = da.models.gu(200)
    f = library.function(model, "forward_dynamics")
    q, v, tau = (0.1 * x for x in states(model, 3))
    dq, w = np.random.default_rng(5).normal(size=(2, *v.shape))
    change, gradient = f.jvp("q")(q, v, tau, dq), f.vjp("q", "tau")(q, v, tau, w)
    assert_allclose(np.einsum("bi,bi->b", w, change), np.einsum("bi,bi->b", gradient[0], dq), rtol=1e-8)
    assert_allclose(f.vjp("q", "tau")(q[1], v[1], tau[1], w[1])[0], gradient[0][1], rtol=1e-10, atol=1e-10)
    assert_allclose(
        np.einsum("bi,bi->b", gradient[1], dq),
        np.einsum("bi,bi->b", w, f.jvp("tau")(q, v, tau, dq)),
        rtol=1e-8,
    )
    assert f.vjp("q", "v", "tau").operation_count.total <= 5 * f.operation_count.total


def test_jacobian_of_a_large_tree_is_computed_in_few_products(monkeypatch: pytest.MonkeyPatch):
    """The same as by straight-line code: batched, with room given, rows with bad quaternions refused."""
    model = da.models.random_tree(3, bodies=6, joints=("revolute", "spherical"), branching=0.9)
    q, v, a = states(model, 3)
    expected = library.function(model, "inverse_dynamics").jacobian("q", "a")(q, v, a)
    monkeypatch.setattr(library, "UNROLLED_BODIES", 1)
    f = da.compile(da.inverse_dynamics, model)
    J = f.jacobian("q", "a")
    out = np.empty((3, model.nv, model.nv)), np.empty((3, model.nv, model.nv))
    found = J(q, v, a, out=out)
    assert found[0] is out[0]
    for x, y in zip(found, expected, strict=True):
        assert_allclose(x, y, rtol=1e-9, atol=1e-9)
    assert_allclose(J(q[1], v[1], a[1])[1], expected[1][1], rtol=1e-9, atol=1e-9)
    assert_allclose(f.jacobian("a")(q[0], v, a), f.jacobian("a")(q[[0, 0, 0]], v, a), rtol=1e-12)
    products = J.operation_count.total / f.jvp("q", "a").operation_count.total
    assert products < 2 * model.nv
    for mask, array in zip(J.sparsity, expected, strict=True):
        assert mask.shape == (model.nv, model.nv)
        assert not np.any(array[:, ~mask])
    np.testing.assert_array_equal(J.sparsity[1], library.function(model, "mass_matrix").sparsity)
    bad = q.copy()
    bad[1] *= 1.5
    with pytest.raises(da.errors.StateError, match=r"sample \(1,\).*unit norm"):
        J(bad, v, a)
    flagged = J(bad, v, a, check="flag")[0]
    assert np.isnan(flagged[1]).all()
    assert_allclose(flagged[0], expected[0][0], rtol=1e-9, atol=1e-9)
    with pytest.raises(ArgumentError, match="hessian_vector of the function"):
        J.jvp("q")


@pytest.mark.parametrize("name", ["four_bar", "five_bar"])
def test_gradient_through_loops_whose_rank_is_decided_in_the_kernel(name: str):
    """Rows of a planar loop depend on each other: their pivots are zero in branches that are not taken."""
    model = getattr(da.models, name)()
    rng = np.random.default_rng(0)
    q, v = da.constraints.close_loops(
        model, model.neutral() + 0.05 * rng.normal(size=model.nq), rng.normal(size=model.nv)
    )[:2]
    tau, w = rng.normal(size=(2, model.nv))
    f = library.function(model, "forward_dynamics")
    expected = f.jacobian("q", "v", "tau")(q, v, tau)
    assert_allclose(expected[0], differences(lambda x: f(x, v, tau), model, q, 1e-6), rtol=1e-5, atol=1e-5)
    for found, J in zip(f.vjp("q", "v", "tau")(q, v, tau, w), expected, strict=True):
        assert_allclose(found, w @ J, rtol=1e-10, atol=1e-10)


def test_rows_near_the_root_of_a_large_tree_are_gradients(monkeypatch: pytest.MonkeyPatch):
    """A hub with eight arms: its row is a gradient, its column a product, and so are all arms together."""
    builder = da.ModelBuilder()
    rng = np.random.default_rng(6)
    for k in range(9):
        inertia = da.RigidInertia(1.0 + k, rng.normal(size=3).tolist(), [3.0, 2.0, 2.5])
        joint = da.Revolute(axis=rng.normal(size=3).tolist())
        builder.add_body(f"arm{k}", "arm0" if k else "world", joint, inertia=inertia)
    model = builder.build()
    q, v, a = states(model, 2)
    expected = library.function(model, "inverse_dynamics").jacobian("a", "v")(q, v, a)
    monkeypatch.setattr(library, "UNROLLED_BODIES", 1)
    f = da.compile(da.inverse_dynamics, model)
    by_a = f.jacobian("a")
    assert by_a.operation_count.total == 3 * f.jvp("a").operation_count.total
    assert_allclose(by_a(q, v, a), expected[0], rtol=1e-10, atol=1e-10)
    for x, y in zip(f.jacobian("a", "v")(q, v, a), expected, strict=True):
        assert_allclose(x, y, rtol=1e-10, atol=1e-10)
