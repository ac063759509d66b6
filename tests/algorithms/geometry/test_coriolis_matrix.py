"""The Coriolis matrix of systems with joints of every kind, and the rate of the inertia matrix."""

import numpy as np
import pytest
from tests.algorithms.test_couplings import geared
from tests.algorithms.trees import JOINTS, close, random_tree, state

import dalembert as da
from dalembert.algorithms import aligned, coriolis_forces, mass_matrix
from dalembert.algorithms.coriolis import coriolis_matrix, coriolis_product, mass_matrix_rate
from dalembert.errors import ModelError
from dalembert.model.configuration import position_rate
from dalembert.model.joints.dual import directional_derivative

every_joint = pytest.mark.parametrize("kind", [kind for kind in JOINTS if kind != "fixed"])


def matrices(model, seed):
    q, v, w, _ = state(model, seed)
    C, M_rate = (np.array(f(model, q, v), dtype=float) for f in (coriolis_matrix, mass_matrix_rate))
    return q, v, w, C, M_rate


@every_joint
def test_product_is_the_velocity_terms_and_rate_less_twice_the_matrix_is_skew(kind):
    """TOD-CHRISTOFFEL: C v = RNEA without gravity and dM/dt - 2 C is skew, for every joint type as the root
    and in the branches of a tree.
    """
    model = random_tree(len(kind), 4, (kind, "revolute", "universal"), root=kind)
    q, v, w, C, M_rate = matrices(model, 1)
    close(C @ v, coriolis_forces(model, q, v), 1e-12, terms=(C,))
    X = M_rate - 2.0 * C
    close(X, -X.T, 1e-12, terms=(C,))
    direction = position_rate(model, q, v)
    exact = directional_derivative(lambda x: mass_matrix(model, x), q, direction)[1]
    close(M_rate, exact, 1e-12, terms=(C,))
    close(coriolis_product(model, q, v, w), C @ w, 1e-12, terms=(C,))


@pytest.mark.parametrize("seed", range(3))
def test_matrix_does_not_depend_on_body_frames(seed):
    """TOD-CHRISTOFFEL: C is a matter of the joint variables alone."""
    model = random_tree(seed, 8)
    q, v, _, C, M_rate = matrices(model, seed)
    close(coriolis_matrix(aligned(model), q, v), C, 1e-12)
    close(mass_matrix_rate(aligned(model), q, v), M_rate, 1e-12)


def test_coupled_joints_have_the_reduced_matrix():
    """TOD-CHRISTOFFEL: with v = G y the matrix of the independent variables is G^T C G, and its laws hold."""
    model = geared()
    q, v, _, C, M_rate = matrices(model, 3)
    full = model.uncoupled()
    G = np.array(model.expansion()[0])
    rng = np.random.default_rng(0)
    dependent = [body for body in model.bodies if body.dependence is not None]
    assert dependent
    q_full = [x for body in model.bodies for x in body.own_q(q)]
    v_full = G @ v
    close(C, G.T @ np.array(coriolis_matrix(full, q_full, v_full.tolist())) @ G, 1e-12)
    close(C @ v, coriolis_forces(model, q, v), 1e-12)
    close(M_rate, C + C.T, 1e-12)
    y = rng.normal(size=model.nv)
    close(coriolis_product(model, q, v, y.tolist()), C @ y, 1e-12)


def test_matrix_is_linear_in_velocity():
    """TOD-CHRISTOFFEL: C(q, x v + y w) = x C(q, v) + y C(q, w)."""
    model = random_tree(5, 6)
    q, v, w, C, _ = matrices(model, 5)
    D = np.array(coriolis_matrix(model, q, w))
    mixed = (2.0 * np.array(v) - 3.0 * np.array(w)).tolist()
    close(coriolis_matrix(model, q, mixed), 2.0 * C - 3.0 * D, 1e-12)


def test_joints_that_move_by_themselves_are_refused():
    builder = da.ModelBuilder()
    moving = da.joints.TimeDependent(
        da.Revolute((0, 0, 1)), driver=da.Prismatic((1, 0, 0)), motion=lambda t: [t]
    )
    builder.add_body("b", "world", moving, inertia=da.RigidInertia(1.0, (0, 0, 0), (1, 1, 1)))
    with pytest.raises(ModelError, match="depends on time"):
        coriolis_matrix(builder.build(), [0.0], [0.0])


def test_large_trees_take_the_columns():
    """TOD-CHRISTOFFEL: trees too large for straight-line code get the same matrix, column by column."""
    model = da.models.gu(151)
    q, v = model.random_state(0)
    C = da.geometry.coriolis_matrix(model, q, v)
    close(C @ v, da.coriolis_forces(model, q, v), 1e-12, terms=(C,))
    i, j = 20, 97
    few = da.geometry.coriolis_product(model, q, v, np.eye(model.nv)[[i, j]])
    close(few.T, C[:, [i, j]], 1e-12)
    close(da.geometry.mass_matrix_rate(model, q, v), C + C.T, 1e-12)
    p = da.geometry.momentum_coordinates(model, q, v)
    close(da.geometry.velocity_coordinates(model, q, p), v, 1e-6)


def test_pinocchio_has_the_same_matrix():
    """TOD-CHRISTOFFEL: the peer's computeCoriolisMatrix, on a free root with joints of several kinds."""
    pin = pytest.importorskip("pinocchio")
    from tests.engines import pinocchio_models

    for name in ("manipulator", "humanoid_random"):
        peer = pinocchio_models.peer_model(name)
        bridge = da.interop.from_pinocchio(peer)
        q, v, _ = pinocchio_models.states(peer, np.random.default_rng(1), 3)
        theirs = np.array([pin.computeCoriolisMatrix(peer, peer.createData(), *row) for row in zip(q, v)])
        ours = da.geometry.coriolis_matrix(bridge.model, bridge.q(q), bridge.v(v))
        close(bridge.mass_matrix_back(ours), theirs, 1e-12)
