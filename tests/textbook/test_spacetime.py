"""Motion transitions by spacetime constraints: Guenter and Rose 2000, Rose and others 1996."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_bvp

import dalembert as da
from dalembert.motion.configuration_spline import ORDER, ConfigurationSpline, Controls, Knots
from dalembert.motion.torque_energy import TorqueEnergy

ARM = da.models.two_link_arm()
START, END = (np.array([0.2, -0.4]), np.array([0.5, 0.3])), (np.array([1.4, 0.9]), np.array([-0.6, 0.2]))


def moved_controls(spline: ConfigurationSpline) -> Controls:
    controls = spline.between(START, END)
    free = controls.values[2:-2]
    free += 0.3 * np.random.default_rng(1).normal(size=free.shape)
    return controls


def test_the_gradient_of_the_torque_energy_is_the_corrected_formula() -> None:
    """GR-ENERGY: 2 integral of tau (dtau/dq dq/dtheta + dtau/dv dv/dtheta + dtau/da da/dtheta) dt, with the
    tau_i and the chain factors that the print leaves out; from the public derivatives, factor by factor."""
    spline = ConfigurationSpline(ARM, Knots(6, 0.8))
    controls = moved_controls(spline)
    energy = TorqueEnergy(spline, prices=np.ones(2))
    points = energy.points
    q, v, a = spline.sample(controls, points)
    tau = da.inverse_dynamics(ARM, q, v, a)
    shares = np.tile(0.5 * 0.16 * np.polynomial.legendre.leggauss(4)[1], 5)
    factors = da.inverse_dynamics_derivatives(ARM, q, v, a)
    gradient, printed = np.zeros_like(controls.values), np.zeros_like(controls.values)
    for t in range(len(tau)):
        for k in range(ORDER):
            for order, by in enumerate(factors):
                share = shares[t] * points.weights[t, order, k]
                gradient[points.first[t] + k] += 2.0 * share * tau[t] @ by[t]
                printed[points.first[t] + k] += 2.0 * shares[t] * by[t].sum(axis=0)
    value, found = energy.with_gradient(controls)
    assert value == pytest.approx(shares @ np.sum(tau**2, axis=1), rel=1e-12)
    np.testing.assert_allclose(found, gradient, rtol=1e-10, atol=1e-10 * np.abs(gradient).max())
    assert np.abs(printed - gradient).max() > 0.1 * np.abs(gradient).max()


def test_the_gradient_of_the_torque_energy_is_that_of_finite_differences() -> None:
    """GR-ENERGY."""
    spline = ConfigurationSpline(ARM, Knots(6, 0.8))
    controls = moved_controls(spline)
    energy = TorqueEnergy(spline, prices=np.array([1.0, 3.0]))
    _, gradient = energy.with_gradient(controls)
    differences = np.zeros_like(gradient)
    e = 1e-5
    for place in np.ndindex(gradient.shape):
        step = np.zeros_like(gradient)
        step[place] = e
        there, back = (energy(Controls(controls.values + s * step, controls.anchors)) for s in (1.0, -1.0))
        differences[place] = (there - back) / (2.0 * e)
    np.testing.assert_allclose(gradient, differences, rtol=1e-6, atol=1e-7 * np.abs(gradient).max())


def test_energy_falls_to_a_stationary_point_between_the_two_poses() -> None:
    """GR-SPACETIME: spline trajectories between two states, torque energy minimised by BFGS on the analytic
    gradient; energies fall, the ends are met, and no change of a free control value gains anything."""
    move = da.motion.transition(ARM, START, END, 0.8, knots=10, smoothness=0.0)
    assert move.converged
    assert np.all(np.diff(move.energies) <= 0.0)
    assert move.energies[-1] < move.energies[0]
    for k, (q, v) in ((0, START), (-1, END)):
        assert np.abs(move.clip.q[k] - q).max() < 1e-9
        assert np.abs(move.clip.v[k] - v).max() < 1e-9
    again = da.motion.transition(ARM, START, END, 0.8, knots=10, smoothness=0.0, tolerance=1e-8)
    assert again.energies[-1] == pytest.approx(move.energies[-1], rel=1e-9)


def test_the_transition_of_a_pendulum_solves_the_euler_lagrange_equation() -> None:
    """GR-SPACETIME: with tau = m l^2 q'' + m g l sin q, P is least where tau'' m l^2 + tau m g l cos q = 0;
    SciPy solves that boundary-value problem without any spline of ours."""
    mass, length, duration = 2.0, 0.7, 0.9
    model = da.models.pendulum(length=length, mass=mass)
    inertia, weight = mass * length**2, mass * 9.81 * length
    first, last = (0.3, -1.0), (1.6, 0.5)

    def rates(t: np.ndarray, y: np.ndarray) -> np.ndarray:
        q, rate, tau, tau_rate = y
        second = (tau - weight * np.sin(q)) / inertia
        return np.array([rate, second, tau_rate, -tau * weight * np.cos(q) / inertia])

    def at_ends(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.array([a[0] - first[0], a[1] - first[1], b[0] - last[0], b[1] - last[1]])

    tau = da.inverse_dynamics(model, [0.4], [0.0], [2.0])
    assert tau[0] == pytest.approx(inertia * 2.0 + weight * np.sin(0.4))
    mesh = np.linspace(0.0, duration, 60)
    guess = np.array([np.linspace(first[0], last[0], 60), np.ones(60), np.zeros(60), np.zeros(60)])
    expected = solve_bvp(rates, at_ends, mesh, guess, tol=1e-6, max_nodes=20000)
    assert expected.success
    move = da.motion.transition(
        model, *(([q], [v]) for q, v in (first, last)), duration, smoothness=0.0, limits=False, tolerance=1e-8
    )
    found = expected.sol(move.clip.time)
    np.testing.assert_allclose(move.clip.q[:, 0], found[0], atol=2e-6)
    np.testing.assert_allclose(move.clip.v[:, 0], found[1], atol=2e-5)
    np.testing.assert_allclose(move.tau[:, 0], found[2], atol=2e-2)
