"""Functions whose result grows with the square of the tree, on a tree too large to unroll."""

from __future__ import annotations

import numpy as np
import pytest

import dalembert as da
from dalembert.api import declared
from dalembert.compiler.library import UNROLLED_BODIES


@pytest.fixture(scope="module")
def chain() -> da.Model:
    builder = da.ModelBuilder()
    inertia = da.RigidInertia(1.0, (0.01, 0.02, 0.05), (0.02, 0.02, 0.02))
    step = da.Transform.from_rotation_translation(np.eye(3), (0.05, 0.02, 0.1))
    parent = "world"
    for k in range(UNROLLED_BODIES + 10):
        joint = da.Revolute(axis=np.eye(3)[k % 3])
        builder.add_body(f"link{k}", parent=parent, joint=joint, placement=step, inertia=inertia)
        parent = f"link{k}"
    return builder.build()


def test_the_mass_matrix_of_a_large_tree_is_that_of_the_plain_algorithm(chain: da.Model) -> None:
    q = np.stack([chain.random_state(seed)[0] for seed in range(2)])
    M = da.mass_matrix(chain, q)
    assert M.shape == (2, chain.nv, chain.nv)
    expected = np.array([da.algorithms.mass_matrix(chain, row.tolist()) for row in q])
    np.testing.assert_allclose(M, expected, rtol=1e-10, atol=1e-10 * np.abs(expected).max())
    out = np.empty_like(M)
    assert da.mass_matrix(chain, q, out=out) is out
    assert np.array_equal(out, M)
    assert np.array_equal(da.mass_matrix(chain, q[1].tolist()), M[1])
    assert da.mass_matrix(chain, q[0].astype(np.float32)).dtype == np.float32
    with pytest.raises(da.errors.ShapeError, match="q: expected"):
        da.mass_matrix(chain, q[0, :-1])


def test_the_inverse_mass_matrix_of_a_large_tree_inverts_it(chain: da.Model) -> None:
    q, _ = chain.random_state(3)
    product = da.mass_matrix(chain, q) @ da.inverse_mass_matrix(chain, q)
    np.testing.assert_allclose(product, np.eye(chain.nv), atol=1e-6)


def test_inertial_forces_are_the_mass_matrix_times_the_acceleration() -> None:
    model = da.models.humanoid()
    q, a = model.random_state(0)
    np.testing.assert_allclose(
        da.dynamics.inertial_forces(model, q, a), da.mass_matrix(model, q) @ a, rtol=1e-10, atol=1e-10
    )


@pytest.mark.parametrize("name", ["inverse_dynamics", "forward_dynamics"])
def test_derivatives_of_a_large_tree_are_slopes(chain: da.Model, name: str) -> None:
    """Along a random direction of each argument, and compiled as loops: unrolled it would take minutes."""
    rng = np.random.default_rng(3)
    at = [*chain.random_state(rng), rng.normal(size=chain.nv)]
    forces = rng.normal(size=(len(chain.bodies), 6))
    found = getattr(declared, f"{name}_derivatives")(chain, *at, forces, external_frame="world")
    direction, h = rng.normal(size=chain.nv), 1e-6
    for k, matrix in enumerate(found):
        ends = []
        for sign in (1.0, -1.0):
            moved = [x + sign * h * direction * (i == k) for i, x in enumerate(at)]
            ends.append(getattr(declared, name)(chain, *moved, forces, external_frame="world"))
        slope = (ends[0] - ends[1]) / (2.0 * h)
        np.testing.assert_allclose(matrix @ direction, slope, atol=1e-7 * np.abs(slope).max())
