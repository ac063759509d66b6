"""Inertial parameters of models, and the combinations of them that forces show."""

import numpy as np
import pytest
from tests.conformance import models

import dalembert as da
from dalembert.api.inertial_parameters import independent_columns
from dalembert.compiler import library
from dalembert.errors import ArgumentError, InertiaError, ModelError, ShapeError, StateError


def test_an_arm_like_the_puma_has_its_36_base_parameters():
    """RBDA-9.7-SIMPLIFY: Gautier & Khalil's count for six hinges, the first one vertical."""
    assert len(da.identification.base_parameters(da.models.arm6())) == 36
    assert len(da.identification.base_parameters(da.models.pendulum())) == 3
    vertical = da.identification.base_parameters(da.models.two_link_arm())
    assert vertical.formulas == (
        "upper.h_x + lower.mass", "upper.h_z", "upper.I_yy + lower.mass",
        "lower.h_x", "lower.h_z", "lower.I_yy",
    )  # fmt: skip


@pytest.mark.parametrize("make", [models.arm, models.branched, models.geared])
def test_forces_depend_on_base_parameters_alone(make):
    """RBDA-9.7-SIMPLIFY: tau = Y_1 beta, and no column of Y_1 can be spared."""
    model = make()
    base = da.identification.base_parameters(model, armature=True)
    rng = np.random.default_rng(8)
    q = np.array([model.random_state(rng)[0] for _ in range(60)])
    v, a = rng.standard_normal((2, 60, model.nv))
    Y = da.identification.inverse_dynamics_regressor(model, q, v, a, armature=True)
    beta = base.of(da.identification.inertial_parameters(model, armature=True))
    np.testing.assert_allclose(base.reduced(Y) @ beta, da.inverse_dynamics(model, q, v, a), atol=1e-8)
    stacked = base.reduced(Y).reshape(-1, len(base))
    assert np.linalg.matrix_rank(stacked / np.linalg.norm(stacked, axis=0), tol=1e-6) == len(base)
    assert np.linalg.matrix_rank(Y.reshape(len(stacked), -1)) == len(base)
    np.testing.assert_array_equal(
        base.columns, da.identification.base_parameters(model, armature=True).columns
    )
    np.testing.assert_array_equal(base.matrix[:, base.columns], np.eye(len(base)))


def test_dependent_columns_are_combinations_of_those_before():
    rng = np.random.default_rng(0)
    Y = rng.standard_normal((30, 3)) @ np.array([[1.0, 0, 2, 0, 1], [0, 0, 0, 1, -3], [0, 0, 0, 0, 0]])
    columns, K = independent_columns(Y, 1e-8)
    assert columns.tolist() == [0, 3]
    np.testing.assert_allclose(K, [[1, 0, 2, 0, 1], [0, 0, 0, 1, -3]], atol=1e-12)
    assert independent_columns(np.zeros((4, 3)), 1e-8)[0].size == 0


def test_parameters_make_the_model_they_come_from():
    """RBDA-2.13-INERTIA"""
    model = models.branched()
    pi = da.identification.inertial_parameters(model, armature=True)
    other = da.identification.with_inertial_parameters(
        da.identification.with_inertial_parameters(model, 3.0 * pi), pi
    )
    np.testing.assert_allclose(da.identification.inertial_parameters(other, armature=True), pi, rtol=1e-14)
    pi[-1] = 0.7
    assert da.identification.with_inertial_parameters(model, pi).bodies[-1].armature == (0.7,)
    assert (
        da.identification.with_inertial_parameters(model, pi[:30]).bodies[-1].armature
        == model.bodies[-1].armature
    )


def test_batches_and_results_given():
    model = models.arm()
    q = np.array([[model.random_state(k)[0] for k in range(3)]] * 2)
    v = a = np.ones((2, 3, model.nv))
    out = np.empty((2, 3, model.nv, 30))
    assert da.identification.inverse_dynamics_regressor(model, q, v, a, out=out) is out
    np.testing.assert_array_equal(
        out[1, 2], da.identification.inverse_dynamics_regressor(model, q[1, 2], v[1, 2], a[1, 2])
    )
    pi = da.identification.inertial_parameters(model)
    np.testing.assert_allclose(
        da.identification.kinetic_energy_regressor(model, q, v, armature=True)
        @ da.identification.inertial_parameters(model, armature=True),
        da.dynamics.kinetic_energy(model, q, v),
    )
    np.testing.assert_allclose(
        da.identification.potential_energy_regressor(model, q) @ pi, da.dynamics.potential_energy(model, q)
    )


def test_large_models_are_computed_without_a_kernel_of_their_own(monkeypatch):
    model = models.branched()
    rng = np.random.default_rng(5)
    q = np.array([model.random_state(rng)[0] for _ in range(4)])
    v, a = rng.standard_normal((2, 4, model.nv))
    compiled = da.identification.inverse_dynamics_regressor(model, q, v, a, armature=True)
    monkeypatch.setattr(library, "UNROLLED_BODIES", 0)
    out = np.empty_like(compiled)
    assert da.identification.inverse_dynamics_regressor(model, q, v, a[0], armature=True, out=out) is out
    np.testing.assert_allclose(out[0], compiled[0], atol=1e-12)
    q[2, 3:7] *= 2.0
    flagged = da.identification.inverse_dynamics_regressor(model, q, v, a, armature=True, check="flag")
    assert np.isnan(flagged[2]).all()
    np.testing.assert_allclose(flagged[[0, 1, 3]], compiled[[0, 1, 3]], atol=1e-12)
    with pytest.raises(StateError):
        da.identification.inverse_dynamics_regressor(model, q, v, a)


def test_models_without_freedom_have_no_base_parameters():
    builder = da.ModelBuilder()
    builder.add_body("block", "world", da.Fixed(), inertia=da.RigidInertia(1.0, (0, 0, 0), (1, 1, 1)))
    model = builder.build()
    empty = np.zeros(0)
    assert da.identification.inverse_dynamics_regressor(model, empty, empty, empty).shape == (0, 10)
    assert len(da.identification.base_parameters(model)) == 0
    assert da.identification.base_parameters(model).of(np.ones(10)).shape == (0,)


def test_wrong_arguments_are_named():
    model = models.arm()
    with pytest.raises(ShapeError, match=r"\(30,\)"):
        da.identification.with_inertial_parameters(model, np.ones(29))
    with pytest.raises(InertiaError):
        da.identification.with_inertial_parameters(model, -np.ones(30))
    assert (
        da.identification.with_inertial_parameters(model, -np.ones(30), inertia="as_given")
        .bodies[0]
        .inertia.mass
        == -1.0
    )
    with pytest.raises(ArgumentError, match="NaN"):
        da.identification.with_inertial_parameters(model, np.full(30, np.nan))
    with pytest.raises(ArgumentError, match="tolerance"):
        da.identification.base_parameters(model, tolerance=2.0)
    with pytest.raises(ShapeError, match="armature="):
        da.identification.base_parameters(model, armature=True).reduced(np.zeros((2, 30)))
    with pytest.raises(ModelError, match=r"model\.tree\(\)"):
        da.identification.base_parameters(da.models.four_bar())
