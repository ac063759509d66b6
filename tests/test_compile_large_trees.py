"""Trees too large to unroll: the same algorithms as loops over tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.conformance.backends import draw_states, on_floats, on_interpreter, on_lanes, on_scalar_kernel
from tests.conformance.enrolment import ENROLLED
from tests.conformance.models import KINDS, branched

import dalembert as da
from dalembert import algorithms as al
from dalembert.compiler import library
from dalembert.compiler.library import FUNCTIONS, library_recipe
from dalembert.compiler.lowering import lower
from dalembert.tracing.program import Loop

ON_ANY_TREE = {entry.name for entry in ENROLLED if not entry.models}
LOOPED = sorted(name for name, entry in FUNCTIONS.items() if entry.loops)


def agree(found: np.ndarray, reference: np.ndarray, tolerance: float) -> None:
    scale = np.maximum(1.0, np.abs(reference).max(axis=1, keepdims=True))
    np.testing.assert_allclose(found / scale, reference / scale, rtol=0.0, atol=tolerance)


@pytest.fixture
def always_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "UNROLLED_BODIES", 1)


@pytest.mark.usefixtures("always_loops")
@pytest.mark.parametrize("name", LOOPED)
@pytest.mark.parametrize("seed", [1, 2])
def test_loops_compute_what_straight_code_computes(name: str, seed: int):
    """Every joint type, branches and rotors: interpreter, scalar kernel and lanes, against plain floats."""
    model = da.models.random_tree(seed, bodies=20, joints=KINDS, branching=0.6, armature=0.3 * (seed - 1))
    recipe = library_recipe(model, name)
    assert recipe.looped
    assert any(isinstance(item, Loop) for item in lower(recipe, "float64").program.statements)
    states = draw_states(model, 3, recipe=recipe)
    reference = on_floats(recipe, states)
    agree(on_interpreter(recipe, states), reference, 1e-10)
    lanes = on_lanes(recipe, states)
    agree(lanes, reference, 1e-10)
    np.testing.assert_array_equal(on_scalar_kernel(recipe, states), lanes)


@pytest.mark.usefixtures("always_loops")
@pytest.mark.parametrize(
    ("name", "method"),
    [
        (name, method)
        for name in LOOPED
        for method in list(FUNCTIONS[name].methods)[1:]
        if f"da.{name}-{method}" in ON_ANY_TREE
    ],
)
def test_other_methods_of_looped_functions(name: str, method: str):
    """A method that is not written with passes alone is unrolled; the result is the same."""
    model = da.models.random_tree(3, bodies=9, joints=KINDS)
    recipe = library_recipe(model, name, method)
    states = draw_states(model, 3, recipe=recipe)
    agree(on_lanes(recipe, states), on_floats(recipe, states), 1e-10)


@pytest.mark.usefixtures("always_loops")
@pytest.mark.parametrize("name", ["inverse_dynamics", "forward_dynamics"])
@pytest.mark.parametrize("frame", ["body", "world", "center"])
def test_loops_with_external_forces(name: str, frame: str):
    model = branched()
    recipe = library_recipe(model, name, arrays=("external_forces",), options=(("external_frame", frame),))
    states = draw_states(model, 3)
    agree(on_lanes(recipe, states), on_floats(recipe, states), 1e-10)


@pytest.mark.usefixtures("always_loops")
def test_loops_check_quaternions_and_keep_rows_apart():
    """check= works as in straight code, in float64 and float32, and a NaN stays in its row."""
    model = da.models.random_tree(3, bodies=9, joints=("spherical", "free", "revolute"))
    states = draw_states(model, 11)
    q, v, tau = states["q"], states["v"], states["tau"]
    expected = da.forward_dynamics(model, q, v, tau)
    place = next(i for i, body in enumerate(model.bodies) if body.joint.unit_quaternions)
    start = model.bodies[place].q_slice.start + model.bodies[place].joint.unit_quaternions[0].start
    bad = q.copy()
    bad[4, start : start + 4] *= 1.01
    with pytest.raises(da.errors.StateError, match=rf"q\[{start}:{start + 4}\], sample \(.*4.*unit norm"):
        da.forward_dynamics(model, bad, v, tau)
    flagged = da.forward_dynamics(model, bad, v, tau, check="flag")
    assert np.all(np.isnan(flagged[4]))
    np.testing.assert_array_equal(np.delete(flagged, 4, 0), np.delete(expected, 4, 0))
    single = [x.astype(np.float32) for x in (q, v, tau)]
    single[0][4, start : start + 4] *= 1.00005
    assert da.forward_dynamics(model, *single).dtype == np.float32  # within the tolerance of float32
    bad[4] = np.nan
    with pytest.raises(da.errors.StateError, match="is not a number"):
        da.forward_dynamics(model, bad, v, tau)
    spoilt = da.forward_dynamics(model, bad, v, tau, check="off")
    np.testing.assert_array_equal(np.delete(spoilt, 4, 0), np.delete(expected, 4, 0))
    assert np.all(np.isnan(spoilt[4]))


def chain(count: int) -> da.Model:
    """Light links on hinges about axes in turn, each at the end of the one before."""
    builder = da.ModelBuilder()
    inertia = da.RigidInertia(0.02, (0.05, 0.0, 0.0), ((2e-6, 0, 0), (0, 2e-5, 0), (0, 0, 2e-5)))
    axes = ((0, 0, 1), (0, 1, 0), (1, 0, 1))
    for k in range(count):
        builder.add_body(
            f"link{k}",
            "world" if k == 0 else f"link{k - 1}",
            da.Revolute(axes[k % 3]),
            placement=da.Transform.from_rotation_translation(np.eye(3).tolist(), (0.1 * (k > 0), 0.0, 0.0)),
            inertia=inertia,
        )
    return builder.build()


def test_chain_of_a_thousand_bodies():
    """Both dynamics of a long chain, against the algorithms on plain floats, alone and in a batch."""
    model = chain(1000)
    rng = np.random.default_rng(0)
    q, v, a = 0.1 * rng.normal(size=(3, 5, model.nv))
    tau = da.inverse_dynamics(model, q, v, a)
    expected = np.array(al.inverse_dynamics(model, q[2].tolist(), v[2].tolist(), a[2].tolist()))
    np.testing.assert_allclose(tau[2], expected, atol=1e-11 * np.abs(expected).max())
    np.testing.assert_array_equal(da.inverse_dynamics(model, q[2], v[2], a[2]), tau[2])
    found = da.forward_dynamics(model, q, v, tau)
    again = np.array(al.forward_dynamics(model, q[2].tolist(), v[2].tolist(), tau[2].tolist()))
    np.testing.assert_allclose(found[2], again, atol=1e-4 * np.abs(again).max())  # M is badly conditioned
    residual = da.inverse_dynamics(model, q, v, found) - tau
    assert np.abs(residual).max() < 1e-9 * np.abs(tau).max()
    np.testing.assert_array_equal(da.forward_dynamics(model, q[2], v[2], tau[2]), found[2])
    bias = da.coriolis_forces(model, q, v) + da.gravity_forces(model, q)
    np.testing.assert_allclose(da.bias_forces(model, q, v), bias, atol=1e-11 * np.abs(bias).max())


@pytest.mark.usefixtures("always_loops")
def test_source_of_loops_is_python_that_computes_the_same():
    model = da.models.random_tree(5, bodies=6, joints=("revolute", "spherical", "helical"))
    states = draw_states(model, 1)
    q, v, tau = (states[name][0] for name in ("q", "v", "tau"))
    f = da.compile(da.forward_dynamics, model)
    space: dict[str, Any] = {}
    exec(f.source, space)
    assert "for i in range(6)" in f.source
    found = space["forward_dynamics"](q.tolist(), v.tolist(), tau.tolist())
    np.testing.assert_allclose(found, f(q, v, tau), rtol=1e-9)
