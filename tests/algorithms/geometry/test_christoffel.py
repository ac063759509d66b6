"""Christoffel symbols in coordinates, and in the turning frames of quaternion joints."""

import numpy as np
import pytest
from tests.algorithms.trees import close, inertia, random_tree, state

import dalembert as da
from dalembert.algorithms import coriolis_forces, mass_matrix
from dalembert.algorithms.coriolis import (
    christoffel_symbols,
    christoffel_symbols_by_derivatives,
    coriolis_matrix,
    structure_constants,
)
from dalembert.errors import UnknownNameError

COORDINATES = (
    "revolute", "prismatic", "helical", "cylindrical", "spherical_euler", "spherical_exponential",
    "universal", "translation", "rack_pinion", "composite", "reversed", "fixed",
)  # fmt: skip
QUATERNIONS = (
    "spherical",
    "planar",
    "free",
    "sphere_in_cylinder",
    "ellipsoid",
    "reversed_spherical",
    "revolute",
)


def symbols(model, q):
    return np.array(christoffel_symbols(model, q), dtype=float)


@pytest.mark.parametrize("seed", range(4))
def test_symbols_of_coordinates_are_those_of_the_textbook(seed):
    """TOD-CHRISTOFFEL: where v = dq/dt, Gamma_ij,k = (dM_ik/dq_j + dM_jk/dq_i - dM_ij/dq_k)/2 by central
    differences of M, symmetric in i and j, and c_k = Gamma_ij,k v_i v_j is RNEA's.
    """
    model = random_tree(seed, 4, COORDINATES)
    q, v, _, _ = state(model, seed)
    Gamma = symbols(model, q)
    h = 1e-5

    def moved(i, step):
        return mass_matrix(model, [x + step * (k == i) for k, x in enumerate(q)])

    dM = np.array([(np.array(moved(i, h)) - np.array(moved(i, -h))) / (2 * h) for i in range(model.nv)])
    expected = (np.einsum("jik->ijk", dM) + np.einsum("ijk->ijk", dM) - np.einsum("kij->ijk", dM)) / 2
    close(Gamma, expected, 1e-8)
    close(Gamma, Gamma.transpose(1, 0, 2), 1e-13)
    close(np.einsum("ijk,i,j->k", Gamma, v, v), coriolis_forces(model, q, v), 1e-12)
    close(np.einsum("ijk,i->kj", Gamma, v), coriolis_matrix(model, q, v), 1e-12)
    close(structure_constants(model, q), np.zeros((model.nv,) * 3), 1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_symbols_of_turning_frames_differ_by_the_brackets(seed):
    """TOD-CHRISTOFFEL: for quaternion joints Gamma_ij,k - Gamma_ji,k = M_kl gamma_ij^l, and Koszul's formula
    from exact derivatives of M gives the same symbols.
    """
    model = random_tree(seed, 4, QUATERNIONS, armature=False, root="free" if seed % 2 else "spherical")
    q, v, _, _ = state(model, seed)
    Gamma = symbols(model, q)
    gamma, M = np.array(structure_constants(model, q)), np.array(mass_matrix(model, q))
    assert np.abs(gamma).max() > 0.5
    close(Gamma - Gamma.transpose(1, 0, 2), np.einsum("kl,ijl->ijk", M, gamma), 1e-12)
    close(christoffel_symbols_by_derivatives(model, q), Gamma, 1e-12)
    close(np.einsum("ijk,i,j->k", Gamma, v, v), coriolis_forces(model, q, v), 1e-12)


def test_armature_of_a_ball_joint_has_no_gyroscopic_terms():
    """Armature is in M and not in the symbols, as it is in inverse dynamics."""
    tree = random_tree(3, 3, ("spherical", "revolute"), root="spherical")
    builder = da.ModelBuilder()
    builder.add_body(
        "ball", "world", da.Spherical(), inertia=inertia(np.random.default_rng(0)), armature=(0.1, 0.2, 0.3)
    )
    for model in (tree, builder.build()):
        q, v, _, _ = state(model, 1)
        Gamma = symbols(model, q)
        close(christoffel_symbols_by_derivatives(model, q), Gamma, 1e-12)
        close(np.einsum("ijk,i,j->k", Gamma, v, v), coriolis_forces(model, q, v), 1e-12)


def test_brackets_of_a_free_joint_are_the_cross_product():
    """[e_i, e_j] of (omega, v) in body axes is the motion cross product of Featherstone 2008 §2.9."""
    builder = da.ModelBuilder()
    builder.add_body("b", "world", da.Free(), inertia=inertia(np.random.default_rng(0)))
    model = builder.build()
    q, _ = model.random_state(0)
    gamma = np.array(structure_constants(model, q.tolist()))
    x, y = np.random.default_rng(1).normal(size=(2, 6))
    expected = da.spatial.Motion.of(x.tolist()).cross(da.spatial.Motion.of(y.tolist())).to_list()
    close(np.einsum("ijl,i,j->l", gamma, x, y), expected, 1e-12)


def test_symbols_of_the_second_kind_are_raised_by_the_inverse():
    """TOD-CHRISTOFFEL: Gamma_ij^k = (M^-1)_ks Gamma_ij,s, compiled, on a batch."""
    model = da.models.two_link_arm()
    q = np.random.default_rng(0).normal(size=(5, 2))
    first, second = (da.geometry.christoffel_symbols(model, q, kind=kind) for kind in ("first", "second"))
    close(second, np.einsum("bks,bijs->bijk", da.inverse_mass_matrix(model, q), first), 1e-12)
    close(da.geometry.christoffel_symbols(model, q, method="derivatives"), first, 1e-12)
    with pytest.raises(UnknownNameError, match="first"):
        da.geometry.christoffel_symbols(model, q, kind="third")


def test_constant_inertia_has_no_symbols():
    """TOD-LAGRANGE: if M does not depend on q then c = 0."""
    builder = da.ModelBuilder()
    builder.add_body(
        "x", "world", da.Prismatic((1, 0, 0)), inertia=da.RigidInertia(2.0, (0, 0, 0), (1, 1, 1))
    )
    builder.add_body("y", "x", da.Prismatic((1, 2, 0)), inertia=da.RigidInertia(1.0, (0, 0, 0), (1, 1, 1)))
    model = builder.build()
    assert np.abs(symbols(model, [0.3, -0.4])).max() == 0.0
    assert np.abs(coriolis_forces(model, [0.3, -0.4], [1.0, 2.0])).max() < 1e-15
