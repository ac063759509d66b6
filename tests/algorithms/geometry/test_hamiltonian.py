"""Hamilton's form says the same as the equation of motion."""

import numpy as np
import pytest
from tests.algorithms.test_couplings import geared
from tests.algorithms.trees import close, random_tree, state

import dalembert as da
from dalembert.algorithms import forward_dynamics, kinetic_energy, mass_matrix, potential_energy
from dalembert.algorithms.coriolis import mass_matrix_rate
from dalembert.algorithms.geometry import (
    forward_dynamics_hamiltonian,
    hamiltonian,
    hamiltonian_rates,
    momentum_coordinates,
    velocity_coordinates,
)
from dalembert.errors import ModelError
from dalembert.model.joints.dual import directional_derivative

COORDINATES = ("revolute", "prismatic", "helical", "cylindrical", "spherical_euler", "universal", "composite")


@pytest.mark.parametrize("seed", range(4))
def test_rates_are_derivatives_of_the_hamiltonian(seed):
    """TOD-HAMILTON: v = dH/dp and p' = -dH/dq + tau, by dual numbers, where v = dq/dt."""
    model = random_tree(seed, 4, COORDINATES)
    q, v, tau, _ = state(model, seed)
    p = momentum_coordinates(model, q, v)
    found_v, p_rate = hamiltonian_rates(model, q, p, tau)

    def gradient(f, x):
        units = np.eye(len(x)).tolist()
        return [directional_derivative(f, list(x), unit)[1] for unit in units]

    close(gradient(lambda x: hamiltonian(model, q, x), p), v, 1e-9)
    close(found_v, v, 1e-9)
    by_q = np.array(gradient(lambda x: hamiltonian(model, x, p), q))
    close(p_rate, np.array(tau) - by_q, 1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_momentum_changes_as_the_equation_of_motion_says(seed):
    """TOD-HAMILTON: p' = M a + M' v with a of ABA, for quaternion joints too, whose p' has Hamel's terms."""
    model = random_tree(seed, 6) if seed else geared()
    q, v, tau, _ = state(model, seed)
    p = momentum_coordinates(model, q, v)
    _, p_rate = hamiltonian_rates(model, q, p, tau)
    a = np.array(forward_dynamics(model, q, v, tau))
    M, M_rate = np.array(mass_matrix(model, q)), np.array(mass_matrix_rate(model, q, v))
    close(p_rate, M @ a + M_rate @ v, 1e-10)


@pytest.mark.parametrize("seed", range(4))
def test_legendre_transformation_there_and_back(seed):
    """TOD-HAMILTON: H = v^T p - L with L = K - V is the energy; M^-1 M v = v."""
    model = random_tree(seed, 6)
    q, v, _, _ = state(model, seed)
    p = momentum_coordinates(model, q, v)
    close(velocity_coordinates(model, q, p), v, 1e-9)
    K, V = kinetic_energy(model, q, v), potential_energy(model, q)
    assert hamiltonian(model, q, p) == pytest.approx(K + V, rel=1e-10)
    assert np.dot(v, p) - (K - V) == pytest.approx(K + V, rel=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_accelerations_by_way_of_the_momenta(seed):
    """TOD-HAMILTON: a = M^-1 (p' - M' v) equals ABA, external forces included."""
    model = random_tree(seed, 5, ("free", "revolute", "spherical", "universal", "helical"))
    q, v, tau, f = state(model, seed)
    expected = forward_dynamics(model, q, v, tau, external_forces=f)
    close(forward_dynamics_hamiltonian(model, q, v, tau, external_forces=f), expected, 1e-9)
    in_world = forward_dynamics(model, q, v, tau, external_forces=f, external_frame="world")
    found = forward_dynamics_hamiltonian(model, q, v, tau, external_forces=f, external_frame="world")
    close(found, in_world, 1e-9)


def test_simulated_in_hamiltonian_form():
    """TOD-HAMILTON: (q, p) integrated by Hamilton's equations follow the trajectory of (q, v); without
    forces H stays, and with forces dH/dt is their power.
    """
    model = da.models.double_pendulum()
    q = q_lagrange = np.array([1.0, -0.5])
    v = np.array([0.5, 1.0])
    p = da.geometry.momentum_coordinates(model, q, v)
    tau, dt = np.zeros(2), 0.005
    start = da.geometry.hamiltonian(model, q, p)

    def rates(q, p):
        return np.stack(da.geometry.hamiltonian_rates(model, q, p, tau))

    for _ in range(200):
        x = np.stack([q, p])
        k1 = rates(*x)
        k2 = rates(*(x + 0.5 * dt * k1))
        k3 = rates(*(x + 0.5 * dt * k2))
        k4 = rates(*(x + dt * k3))
        q, p = x + dt / 6.0 * (k1 + 2.0 * (k2 + k3) + k4)
        q_lagrange, v = da.step(model, q_lagrange, v, tau, dt, integrator="rk4")
    close(q, q_lagrange, 1e-6)
    close(da.geometry.velocity_coordinates(model, q, p), v, 1e-6)
    assert da.geometry.hamiltonian(model, q, p) == pytest.approx(start, abs=1e-7)
    tau = np.array([0.7, -1.1])
    v, p_rate = da.geometry.hamiltonian_rates(model, q, p, tau)
    h = 1e-6
    later, earlier = (da.geometry.hamiltonian(model, q + s * v, p + s * p_rate) for s in (h, -h))
    assert (later - earlier) / (2 * h) == pytest.approx(v @ tau, rel=1e-7)


def test_constraints_are_refused():
    model = da.models.four_bar()
    q, v = model.random_state(0)
    with pytest.raises(ModelError, match="trees"):
        da.geometry.hamiltonian_rates(model, q, v, v)
    with pytest.raises(ModelError, match="trees"):
        da.forward_dynamics(model, q, v, v, method="hamiltonian")
