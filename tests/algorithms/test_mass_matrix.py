"""The mass matrix by four roads, its inverse, and its physical meaning."""

import importlib

import numpy as np
import pytest
from tests.algorithms.trees import close, inertia, place, random_tree, six, state

from dalembert.algorithms.aligned import aligned
from dalembert.algorithms.inverse_dynamics import inverse_dynamics, rnea_spatial
from dalembert.algorithms.kinematics import forward_kinematics
from dalembert.algorithms.mass_matrix import (
    composite_inertias,
    crba_common_frame,
    inverse_mass_matrix,
    mass_matrix,
    mass_matrix_by_columns,
)
from dalembert.errors import UnknownNameError
from dalembert.model.builder import ModelBuilder
from dalembert.model.joints import Revolute
from dalembert.model.model import Model
from dalembert.spatial import Vec3

SEEDS = range(12)


@pytest.mark.parametrize("seed", SEEDS)
def test_composite_bodies_equal_columns_of_inverse_dynamics(seed):
    """RBDA-6.2-CRBA, RBDA-6.1-IDDELTA, ANIM-RNEFD: Table 6.2 against ID(e_i) - ID(0)."""
    model = random_tree(seed)
    q, _, _, _ = state(model, seed)
    M = np.array(mass_matrix(model, q))
    close(M, mass_matrix_by_columns(model, q), 1e-11)
    close(M, mass_matrix(model, q, method="rnea_columns"), 1e-11)
    close(M, M.T, 1e-14)
    assert np.all(np.linalg.eigvalsh(M) > 0.0)


def test_columns_take_one_call_more_than_there_are_variables(monkeypatch):
    """ANIM-RNEFD: exactly N + 1 calls of inverse dynamics."""
    model = random_tree(0, 5)
    q, _, _, _ = state(model, 0)
    calls = []

    def counted(*args, **options):
        calls.append(1)
        return inverse_dynamics(*args, **options)

    monkeypatch.setattr(
        importlib.import_module("dalembert.algorithms.mass_matrix"), "spanning_tree_forces", counted
    )
    mass_matrix_by_columns(model, q)
    assert len(calls) == model.nv + 1


@pytest.mark.parametrize("seed", SEEDS)
def test_body_coordinates_equal_common_frame(seed):
    """RBDA-6.2-CRBA (Eqs 6.13 to 6.16), TOD-CRB: M_ij = s_j^T I_i^c s_i with everything in world
    coordinates.
    """
    model = random_tree(seed)
    q, _, _, _ = state(model, seed)
    close(crba_common_frame(model, q), mass_matrix(model, q), 1e-12)


def test_common_frame_formula_on_a_chain_of_hinges():
    """TOD-CRB: the slide's own recursion for one-freedom joints, written out with 6x6 matrices."""
    model = random_tree(5, 6, ("revolute", "prismatic", "helical"), armature=False, branching=0.0)
    q, _, _, _ = state(model, 5)
    poses = forward_kinematics(model, q)
    s = [six(poses[b].inverse_apply(b.jcalc(q).S[0])) for b in model.bodies]
    D = [np.array(poses[b].inverse_apply(b.inertia).matrix(), dtype=float) for b in model.bodies]
    composite = [sum(D[k:]) for k in range(6)]
    M = [[s[min(i, j)] @ composite[max(i, j)] @ s[max(i, j)] for j in range(6)] for i in range(6)]
    close(mass_matrix(model, q), M, 1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_unit_acceleration_transmits_the_composite_inertia(seed):
    """RBDA-6.3-PHYS: with unit acceleration at one joint and all else at rest, the force through it is I^c
    s.
    """
    model = random_tree(seed, 6, armature=False)
    still = Model(bodies=model.bodies, gravity=Vec3.zero())
    q, _, _, _ = state(model, seed)
    I_c = composite_inertias(model, q)
    M = np.array(mass_matrix(model, q))
    for body in model.bodies:
        for k, s in enumerate(body.jcalc(q).S):
            unit = np.eye(model.nv)[body.v_slice.start + k].tolist()
            result = rnea_spatial(still, q, [0.0] * model.nv, unit)
            close(six(result.f[body]), six(I_c[body] * s), 1e-12)
            close(result.tau, M[:, body.v_slice.start + k], 1e-12)


def test_bodies_on_the_base_give_a_block_diagonal_matrix():
    """RBDA-6.4-SPARSITY: no ancestors, no coupling; renumbering is a symmetric permutation."""
    rng = np.random.default_rng(1)
    parts = [(Revolute(rng.normal(size=3).tolist()), place(rng), inertia(rng)) for _ in range(4)]

    def build(order):
        builder = ModelBuilder()
        for i in order:
            joint, placement, mass = parts[i]
            builder.add_body(f"b{i}", parent="world", joint=joint, placement=placement, inertia=mass)
        return builder.build()

    M = np.array(mass_matrix(build([0, 1, 2, 3]), [0.3] * 4))
    assert np.count_nonzero(M) == 4
    order = [2, 0, 3, 1]
    close(mass_matrix(build(order), [0.3] * 4), M[np.ix_(order, order)], 1e-14)


@pytest.mark.parametrize("seed", SEEDS)
def test_inverse_times_matrix_is_identity(seed):
    """RBDA-6.5-SOLVE: M^-1 M = 1 and M^-1 symmetric."""
    model = random_tree(seed)
    q, _, _, _ = state(model, seed)
    M, inverse = np.array(mass_matrix(model, q)), np.array(inverse_mass_matrix(model, q))
    close(inverse @ M, np.eye(model.nv), 1e-15 * np.linalg.cond(M) * 10)
    assert np.array_equal(inverse, inverse.T)


@pytest.mark.parametrize("seed", SEEDS)
def test_aligned_frames_change_no_mass(seed):
    """RBDA-10.3-OPTIM: H does not depend on body frames."""
    model = random_tree(seed, 12)
    q, _, _, _ = state(model, seed)
    close(mass_matrix(aligned(model), q), mass_matrix(model, q), 1e-12)


def test_unknown_method_is_refused():
    """The valid names are listed."""
    with pytest.raises(UnknownNameError, match="rnea_columns"):
        mass_matrix(random_tree(0, 2), [0.0] * 20, method="lagrange")
