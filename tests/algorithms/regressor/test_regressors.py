"""Dynamics as linear functions of the inertial parameters: against the dynamics themselves."""

import dataclasses

import numpy as np
import pytest
from tests.conformance import models

import dalembert as da
from dalembert.algorithms import energy_momentum, inverse_dynamics, regressor
from dalembert.errors import ModelError
from dalembert.model.values import rebuilt

MODELS = (models.arm, models.branched, models.every_joint, models.geared)


def moving(model, seed):
    q, v = model.random_state(seed)
    return q.tolist(), v.tolist(), np.random.default_rng(seed).normal(size=model.nv).tolist()


def with_inertias(model, parameters):
    """Any parameters, physical or not."""
    bodies = [
        dataclasses.replace(body, inertia=regressor.inertia_of(ten))
        for body, ten in zip(model.bodies, np.reshape(parameters, (-1, 10)).tolist(), strict=True)
    ]
    return rebuilt(model, bodies=bodies)


def test_forces_are_linear_in_the_inertial_parameters():
    """RBDA-5.3-RNEA: tau(pi) = Y pi + armature, for any pi at all and every joint type."""
    for seed, make in enumerate(MODELS):
        model = make()
        q, v, a = moving(model, seed)
        Y = np.array(regressor.inverse_dynamics_regressor(model, q, v, a))
        assert Y.shape == (model.nv, 10 * len(model.bodies))
        bare = inverse_dynamics(with_inertias(model, np.zeros(Y.shape[1])), q, v, a)
        for scale in (1.0, 1000.0):
            pi = scale * np.random.default_rng(seed + 5).normal(size=Y.shape[1])
            tau = inverse_dynamics(with_inertias(model, pi), q, v, a)
            np.testing.assert_allclose(Y @ pi + bare, tau, atol=1e-11 * np.abs(tau).max(), rtol=1e-11)


def test_columns_are_the_derivatives_by_each_parameter():
    """RBDA-2.13-INERTIA: dtau / dpi_k by differences, which are exact for a linear function."""
    model = models.branched()
    q, v, a = moving(model, 3)
    Y = np.array(regressor.inverse_dynamics_regressor(model, q, v, a))
    pi = np.array(regressor.inertial_parameters(model))
    for k in range(pi.size):
        step = np.zeros(pi.size)
        step[k] = 0.5
        ends = [inverse_dynamics(with_inertias(model, pi + sign * step), q, v, a) for sign in (1, -1)]
        np.testing.assert_allclose(Y[:, k], np.subtract(*ends), atol=1e-10)


@pytest.mark.parametrize("make", MODELS)
def test_armatures_have_columns_of_their_own(make):
    """RBDA-5.3-RNEA: with them tau = Y pi, all of it."""
    model = make()
    q, v, a = moving(model, 4)
    Y = np.array(regressor.inverse_dynamics_regressor(model, q, v, a, armature=True))
    pi = np.array(regressor.inertial_parameters(model, armature=True))
    names = regressor.parameter_names(model, armature=True)
    assert Y.shape[1] == pi.size == len(names) == len(set(names))
    np.testing.assert_allclose(Y @ pi, inverse_dynamics(model, q, v, a), rtol=1e-11, atol=1e-10)


@pytest.mark.parametrize("make", MODELS)
def test_energies_are_linear_too(make):
    """RBDA-3.1-KE, RBDA-2.13-INERTIA"""
    model = make()
    q, v, _ = moving(model, 6)
    pi = np.array(regressor.inertial_parameters(model, armature=True))
    y_T = np.array(regressor.kinetic_energy_regressor(model, q, v, armature=True))
    y_V = np.array(regressor.potential_energy_regressor(model, q, armature=True))
    np.testing.assert_allclose(y_T @ pi, energy_momentum.kinetic_energy(model, q, v), rtol=1e-12)
    np.testing.assert_allclose(y_V @ pi, energy_momentum.potential_energy(model, q), rtol=1e-12)
    assert len(regressor.kinetic_energy_regressor(model, q, v)) == 10 * len(model.bodies)


def test_entries_of_other_branches_are_literal_zeros():
    model = models.branched()
    Y = regressor.inverse_dynamics_regressor(model, *moving(model, 0))
    ball = model.joint("ball").v_slice
    screw = model.body("screw").index
    assert all(x == 0.0 and type(x) is float for row in Y[ball] for x in row[10 * screw : 10 * screw + 10])


def test_models_with_loops_are_refused():
    model = da.models.four_bar()
    with pytest.raises(ModelError, match=r"model\.tree\(\)"):
        regressor.inverse_dynamics_regressor(model, *moving(model, 0))
