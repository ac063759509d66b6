"""Couplings in trees that are compiled as loops over tables."""

import numpy as np
import pytest
from tests.algorithms.gears.coupled_trees import coupled_tree
from tests.conformance.backends import draw_states, on_floats, on_interpreter, on_lanes, on_scalar_kernel

import dalembert as da
from dalembert.compiler import library
from dalembert.compiler.library import library_recipe


@pytest.mark.parametrize("name", ["inverse_dynamics", "inertial_forces", "gravity_forces"])
def test_loops_compute_what_straight_code_computes(name, monkeypatch):
    """A joint that follows others reads their places in q and v from a table and adds its force there."""
    monkeypatch.setattr(library, "UNROLLED_BODIES", 1)
    model = coupled_tree(4, 14)
    recipe = library_recipe(model, name)
    assert recipe.looped
    states = draw_states(model, 3)
    reference = on_floats(recipe, states)
    scale = np.abs(reference).max()
    np.testing.assert_allclose(on_interpreter(recipe, states), reference, atol=1e-11 * scale)
    lanes = on_lanes(recipe, states)
    np.testing.assert_allclose(lanes, reference, atol=1e-11 * scale)
    np.testing.assert_array_equal(on_scalar_kernel(recipe, states), lanes)


def test_a_long_chain_with_a_gear_is_compiled_at_once():
    """200 bodies: forces in loops, the matrix from them; M a + b = tau."""
    builder = da.ModelBuilder()
    for k in range(200):
        builder.add_body(
            f"link{k}",
            f"link{k - 1}" if k else "world",
            da.Revolute((0, 1, 0) if k % 2 else (1, 0, 0)),
            placement=da.Transform.from_rotation_translation(np.eye(3), (0.0, 0.0, 0.02)),
            inertia=da.RigidInertia(0.1, (0.0, 0.0, 0.01), (1e-4, 1e-4, 1e-4)),
        )
    builder.add_coupling("gear", {"link3": 2.0, "link150": -1.0}, offset=0.1)
    model = builder.build()
    assert library_recipe(model, "inverse_dynamics").looped
    assert not library_recipe(model, "forward_dynamics").looped
    rng = np.random.default_rng(0)
    q, v, a = 0.1 * rng.normal(size=(3, model.nv))
    tau = da.inverse_dynamics(model, q, v, a)
    want = da.mass_matrix(model, q) @ a + da.bias_forces(model, q, v)
    np.testing.assert_allclose(tau, want, atol=1e-10 * np.abs(tau).max())
    full = model.uncoupled()
    loose = da.inverse_dynamics(full, model.expand_q(q), model.expand_v(v), model.expand_v(a))
    np.testing.assert_allclose(tau, np.array(model.expansion()[0]).T @ loose, atol=1e-10 * np.abs(tau).max())
