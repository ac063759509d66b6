"""Articulated-body algorithm: the inverse of inverse dynamics, by every method and in every frame."""

import numpy as np
import pytest
from tests.algorithms.counting import count
from tests.algorithms.trees import JOINTS, close, random_tree, state

from dalembert.algorithms.aligned import aligned
from dalembert.algorithms.forward_dynamics import (
    articulated_inertias,
    forward_dynamics,
    forward_dynamics_spatial,
)
from dalembert.algorithms.inverse_dynamics import bias_forces, inverse_dynamics
from dalembert.algorithms.mass_matrix import mass_matrix
from dalembert.errors import UnknownNameError

SEEDS = range(15)


def tolerance(M):
    return max(1e-10, 1e-14 * float(np.linalg.cond(M)))


@pytest.mark.parametrize("seed", SEEDS)
def test_forward_dynamics_inverts_inverse_dynamics(seed):
    """RBDA-7.3-ABA, RBDA-1.1-API, ANIM-ABA: FD(ID(a)) = a on moving trees of every joint type, with
    external forces.
    """
    model = random_tree(seed, 10)
    q, v, a, f = state(model, seed)
    tau = inverse_dynamics(model, q, v, a, external_forces=f)
    limit = tolerance(mass_matrix(model, q))
    for tree in (model, aligned(model)):
        for method in ("aba", "crba"):
            close(forward_dynamics(tree, q, v, tau, external_forces=f, method=method), a, limit)


@pytest.mark.parametrize("kind", sorted(JOINTS))
def test_every_joint_as_root_middle_and_leaf(kind):
    """RBDA-7.3-ABA: any joint DoF, with and without armature."""
    for armature in (False, True):
        model = random_tree(7, 3, (kind,), armature=armature, branching=0.0)
        q, v, a, f = state(model, 7)
        tau = inverse_dynamics(model, q, v, a, external_forces=f)
        limit = tolerance(mass_matrix(model, q)) if model.nv else 1.0
        close(forward_dynamics(model, q, v, tau, external_forces=f), a, limit)
        close(forward_dynamics(aligned(model), q, v, tau, external_forces=f), a, limit)


@pytest.mark.parametrize("seed", SEEDS)
def test_co_moving_equals_table_7_1(seed):
    """RBDA-7.3-ABA, ANIM-ABA: spatial velocities as printed, with I^a where the seed misprints I^A."""
    model = random_tree(seed, 8)
    q, v, tau, f = state(model, seed)
    M = np.array(mass_matrix(model, q))
    a = forward_dynamics(model, q, v, tau, external_forces=f)
    close(forward_dynamics_spatial(model, q, v, tau, external_forces=f), a, tolerance(M))
    dense = np.linalg.solve(M, np.subtract(tau, bias_forces(model, q, v, external_forces=f)))
    close(a, dense, tolerance(M))


@pytest.mark.parametrize("seed", range(4))
def test_world_frame_external_forces(seed):
    """RBDA-5.3-EXT: forces given at the world's origin."""
    model = random_tree(seed, 6)
    q, v, a, f = state(model, seed)
    tau = inverse_dynamics(model, q, v, a, external_forces=f, external_frame="world")
    limit = tolerance(mass_matrix(model, q))
    for tree in (model, aligned(model)):
        close(forward_dynamics(tree, q, v, tau, external_forces=f, external_frame="world"), a, limit)


def test_cost_grows_linearly_with_the_number_of_bodies():
    """RBDA-7.3-ABA, RBDA-5.1-COMPLEXITY, ANIM-COMPLEX: ABA and RNEA O(n), CRBA O(n^2), by counters."""

    def costs(n):
        tree = aligned(random_tree(3, n, ("revolute",), armature=False, branching=0.0))
        aba = count(lambda q, v, t: forward_dynamics(tree, q, v, t), q=n, v=n, t=n).total
        rnea = count(lambda q, v, a: inverse_dynamics(tree, q, v, a), q=n, v=n, a=n).total
        crba = count(lambda q: mass_matrix(tree, q), q=n).total
        return np.array([aba, rnea, crba])

    small, middle, large = costs(8), costs(16), costs(32)
    growth = (large - middle) / (middle - small)
    assert growth[0] == pytest.approx(2.0, rel=0.15)
    assert growth[1] == pytest.approx(2.0, rel=0.15)
    assert 3.0 < growth[2] < 4.5


@pytest.mark.parametrize("seed", range(6))
def test_articulated_inertia_is_symmetric_positive_and_independent_of_velocity(seed):
    """RBDA-7.1-ABI: I^A is positive definite, and a leaf's is its own inertia."""
    model = random_tree(seed, 8)
    q, _, _, _ = state(model, seed)
    found = articulated_inertias(model, q)
    leaves = set(range(8)) - set(model.parents)
    for body in model.bodies:
        I_A = np.array(found[body].matrix(), dtype=float)
        close(I_A, I_A.T, 1e-14)
        assert np.linalg.eigvalsh(I_A).min() > 0.0
        if body.index in leaves:
            close(I_A, np.array(body.inertia.matrix(), dtype=float), 1e-15)


def test_unknown_method_is_refused():
    """The valid names are listed."""
    model = random_tree(0, 2)
    q, v, tau, _ = state(model, 0)
    with pytest.raises(UnknownNameError, match="aba"):
        forward_dynamics(model, q, v, tau, method="euler")
