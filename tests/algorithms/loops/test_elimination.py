"""K x = k solved as x = G y + g, by elimination without data-dependent indices."""

from __future__ import annotations

import numpy as np
import pytest
from tests.algorithms.loops.looped import equations, random_looped
from tests.looped_models import moving

import dalembert as da
from dalembert.algorithms import loops


@pytest.mark.parametrize("seed", range(12))
def test_all_solutions_of_a_consistent_system(seed: int) -> None:
    """RBDA-8.8-GG: K G = 0, K g = k, G of full rank n - r, y a subset of x; for any rank."""
    rng = np.random.default_rng(seed)
    m, n = int(rng.integers(1, 7)), int(rng.integers(3, 8))
    rank = int(rng.integers(1, min(m, n) + 1))
    K = rng.normal(size=(m, rank)) @ rng.normal(size=(rank, n))
    x = rng.normal(size=n)
    solution = loops.explicit_solution(K.tolist(), (K @ x).tolist())
    chosen = np.array(solution.independent) > 0.5
    G, g = np.array(solution.G), np.array(solution.g)
    assert chosen.sum() == n - rank == np.linalg.matrix_rank(G)
    np.testing.assert_allclose(G[:, ~chosen], 0.0, atol=1e-12)
    np.testing.assert_allclose(K @ G, 0.0, atol=1e-8)
    np.testing.assert_allclose(K @ g, K @ x, atol=1e-8)
    np.testing.assert_allclose(G[chosen][:, chosen], np.eye(n - rank), atol=1e-12)
    np.testing.assert_allclose(G @ np.where(chosen, x, 0.0) + g, x, atol=1e-8)


@pytest.mark.parametrize("seed", range(12))
def test_motions_that_constraints_allow(seed: int) -> None:
    """RBDA-8.5-M3: K G = 0, K g = k, G = G^T = G^2 of rank n - r, g at right angles to it; for any rank."""
    rng = np.random.default_rng(seed)
    m, n = int(rng.integers(1, 7)), int(rng.integers(3, 8))
    rank = int(rng.integers(1, min(m, n) + 1))
    K = rng.normal(size=(m, rank)) @ rng.normal(size=(rank, n))
    K *= 10.0 ** rng.uniform(-3, 3, size=(m, 1))
    k = K @ rng.normal(size=n)
    G, g = map(np.array, loops.allowed_motions(K.tolist(), k.tolist(), n))
    even = K / np.abs(K).max(axis=1, keepdims=True)
    np.testing.assert_allclose(G, np.eye(n) - np.linalg.pinv(even) @ even, atol=1e-9)
    np.testing.assert_allclose(G @ G, G, atol=1e-9)
    np.testing.assert_allclose(K @ g, k, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(G @ g, 0.0, atol=1e-8 * np.abs(g).max())
    assert np.linalg.matrix_rank(G, tol=1e-6) == n - rank


def test_batches_may_mix_ranks() -> None:
    """RBDA-8.8-GG: one program for samples of rank 1, 2 and 3, each an element of a NumPy array."""
    rng = np.random.default_rng(1)
    K = np.array([rng.normal(size=(3, r)) @ rng.normal(size=(r, 5)) for r in (1, 2, 3)])
    x = rng.normal(size=(3, 5))
    k = np.einsum("sij,sj->si", K, x)
    solution = loops.explicit_solution(
        [[K[:, i, j] for j in range(5)] for i in range(3)], [k[:, i] for i in range(3)]
    )
    for sample in range(3):
        G = np.array([[np.broadcast_to(x, 3)[sample] for x in row] for row in solution.G])
        assert np.linalg.matrix_rank(G) == 4 - sample
        np.testing.assert_allclose(K[sample] @ G, 0.0, atol=1e-9)


def test_columns_that_no_loop_touches_are_independent() -> None:
    """RBDA-8.8-GG: the mask; and variables that a user chooses, with pivoting among the rows alone."""
    model, q, v = random_looped(5, (da.Spherical(),), bodies=6)
    found = equations(model, q, v)
    K, k = np.array(found.K, float), np.array(found.k, float)
    untouched = [j for j in range(model.nv) if not K[:, j].any()]
    solution = loops.explicit_solution(found.K, found.k)
    assert untouched
    for j in untouched:
        assert solution.independent[j] == 1.0
        np.testing.assert_array_equal(np.array(solution.G, float)[:, j], np.eye(model.nv)[j])
    chosen = [j for j in range(model.nv) if np.array(solution.independent, float)[j] > 0.5]
    swapped = [j for j in chosen if j in untouched] + [j for j in range(model.nv) if j not in untouched]
    K_free = K[:, [j for j in range(model.nv) if j not in swapped[: model.nv - 3]]]
    assert np.linalg.matrix_rank(K_free) == 3
    own = loops.explicit_solution(found.K, found.k, independent=swapped[: model.nv - 3])
    assert [j for j in range(model.nv) if own.independent[j] > 0.5] == sorted(swapped[: model.nv - 3])
    np.testing.assert_allclose(K @ np.array(own.G, float), 0.0, atol=1e-8)
    np.testing.assert_allclose(K @ np.array(own.g, float), k, atol=1e-8)


def test_chosen_variables_give_the_same_motion() -> None:
    """RBDA-8.5-M3, RBDA-8.8-GG: y is the crank, the coupler or the rocker: a is one."""
    model = da.models.four_bar()
    q, v = moving(model, 3)
    tau = [0.3, -0.2, 0.1]
    expected = da.forward_dynamics(model, q, v, tau)
    for name in model.joints.names:
        a = loops.accelerations_by_null_space(model, q.tolist(), v.tolist(), tau, independent=[name])
        np.testing.assert_allclose(a, expected, rtol=1e-9)
