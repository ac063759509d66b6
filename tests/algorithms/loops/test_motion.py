"""Simulated linkages: loops stay closed, errors fade, energy is kept, and derivatives are derivatives."""

from __future__ import annotations

import numpy as np
import pytest
from tests.algorithms.loops.looped import Array, random_looped
from tests.conformance.models import crank
from tests.looped_models import copied, moving

import dalembert as da
from dalembert.algorithms import state_rate
from dalembert.compiler.library import function
from dalembert.errors import ArgumentError


def run(
    model: da.Model, q: Array, v: Array, dt: float, steps: int, stabilization: float | None
) -> tuple[Array, Array]:
    """Many steps of "rk4", by the compiled function that `da.step` calls."""
    arrays = () if stabilization is None else ("stabilization",)
    step = function(model, "step", arrays=arrays, options=(("integrator", "rk4"),))
    more = [] if stabilization is None else [np.array(stabilization)]
    tau, span = np.zeros(model.nv), np.array(dt)
    for _ in range(steps):
        q, v = step(q, v, tau, span, *more)
    return q, v


def energy(model: da.Model, q: Array, v: Array) -> float:
    return float(da.dynamics.kinetic_energy(model, q, v) + da.dynamics.potential_energy(model, q))


def test_a_minute_of_the_four_bar_leaves_its_loop_closed() -> None:
    """RBDA-8.3-BAUMGARTE, RBDA-8.5-M2: 60 s, rk4; the pin's two halves stay within 1e-6 m, energy is kept."""
    model = da.models.four_bar()
    q, v = da.constraints.close_loops(model, model.neutral(), np.array([4.0, 0.0, 0.0]))
    start = energy(model, q, v)
    worst = 0.0
    for _ in range(60):
        q, v = run(model, q, v, 1e-3, 1000, 0.1)
        worst = max(worst, float(np.abs(da.constraints.constraint_error(model, q)).max()))
    assert 0.0 < worst < 1e-6
    assert energy(model, q, v) == pytest.approx(start, abs=1e-4)


def test_an_injected_error_decays_as_the_law_says() -> None:
    """RBDA-8.3-BAUMGARTE: delta(t) = (1 + t/T) e^{-t/T} delta(0) from rest; without it errors drift."""
    model = da.models.four_bar()
    q, v = da.constraints.close_loops(model, model.neutral(), np.zeros(3))
    q = q + np.array([0.0, 0.0, 1e-5])
    first = da.constraints.constraint_error(model, q)
    T = 0.1
    for t in (0.05, 0.1, 0.3):
        later, _ = run(model, q, v, 1e-3, round(t / 1e-3), T)
        share = np.linalg.norm(da.constraints.constraint_error(model, later)) / np.linalg.norm(first)
        assert share == pytest.approx((1.0 + t / T) * np.exp(-t / T), rel=2e-2)
    drifting = q
    speed = np.array([0.0, 0.0, 1e-5])
    errors = []
    for _ in range(3):
        drifting, speed = run(model, drifting, speed, 1e-3, 200, None)
        errors.append(np.linalg.norm(da.constraints.constraint_error(model, drifting)))
    assert np.linalg.norm(first) < errors[0] < errors[1] < errors[2]


@pytest.mark.parametrize("name", ["slider_crank", "five_bar"])
def test_energy_of_an_unforced_linkage_is_conserved(name: str) -> None:
    """RBDA-8.1-EOM: constraint forces do no work, in a moving linkage under gravity."""
    model = getattr(da.models, name)()
    q, v = moving(model, 3)
    start = energy(model, q, v)
    later_q, later_v = run(model, q, v, 5e-4, 2000, 0.1)
    assert np.abs(later_q - q).max() > 0.1
    assert energy(model, later_q, later_v) == pytest.approx(start, abs=1e-6 * abs(start) + 1e-6)


def test_power_equals_the_energy_rate() -> None:
    model = da.models.five_bar()
    q, v = moving(model, 4)
    tau = np.random.default_rng(5).normal(size=model.nv)
    h = 1e-4

    def after(span: float) -> float:
        return energy(model, *da.step(model, q, v, tau, span, integrator="rk4", stabilization=None))

    rate = (4.0 * (after(h) - energy(model, q, v)) - (after(2 * h) - energy(model, q, v))) / (2.0 * h)
    assert rate == pytest.approx(tau @ v, rel=1e-5, abs=1e-5)


def test_a_loop_closure_moves_without_any_loop_error() -> None:
    """RBDA-8.11-GAMMA: y alone is integrated; the same trajectory as the implicit method, and zero error."""
    explicit = crank()
    implicit = da.models.slider_crank()
    assert explicit.nv == implicit.nv == 3
    y, rate = 0.4, 3.0
    q, v = da.constraints.close_loops(implicit, np.array([y, -0.1, 0.0]), np.array([rate, 0.0, 0.0]))
    tau = np.array([0.5, 0.0, -0.3])
    a = da.forward_dynamics(explicit, q, v, tau)
    np.testing.assert_allclose(a, da.forward_dynamics(implicit, q, v, tau), rtol=1e-7)
    np.testing.assert_allclose(a, da.forward_dynamics(explicit, q, v, tau, method="range_space"), rtol=1e-7)
    closed_q, closed_v = run(explicit, q, v, 1e-3, 1500, None)
    open_q, open_v = run(implicit, q, v, 1e-3, 1500, 0.1)
    assert abs(closed_q[0] - q[0]) > 1.0
    np.testing.assert_allclose(closed_q, open_q, atol=1e-6)
    np.testing.assert_allclose(closed_v, open_v, atol=1e-5)
    assert np.abs(da.constraints.constraint_error(explicit, closed_q)).max() < 1e-15
    K = da.constraints.constraint_jacobian(explicit, closed_q)
    assert np.abs(K @ closed_v).max() < 1e-14
    spoiled = q + np.array([0.0, 0.2, 0.3])  # what dependent joints hold is not read
    np.testing.assert_array_equal(da.forward_dynamics(explicit, spoiled, v, tau), a)


def test_both_integrators_and_state_rate_know_loops() -> None:
    model = da.models.four_bar()
    q, v = moving(model, 6)
    tau = np.array([0.3, 0.0, 0.0])
    rate = state_rate(model, q.tolist(), v.tolist(), tau.tolist(), stabilization=0.1)
    np.testing.assert_allclose(rate.q, v)
    np.testing.assert_allclose(rate.v, da.forward_dynamics(model, q, v, tau, stabilization=0.1), rtol=1e-12)
    fine_q, fine_v = da.step(model, q, v, tau, 1e-4, integrator="rk4")
    for integrator in ("semi_implicit", "rk4"):
        next_q, next_v = da.step(model, q, v, tau, 1e-4, integrator=integrator)
        np.testing.assert_allclose(next_q, fine_q, atol=1e-6)
        np.testing.assert_allclose(next_v, fine_v, atol=1e-6)
    off_q, _ = da.step(model, q + 1e-3, v, tau, 1e-2, stabilization=None)
    held_q, _ = da.step(model, q + 1e-3, v, tau, 1e-2)
    assert (
        np.abs(da.constraints.constraint_error(model, held_q)).max()
        < np.abs(da.constraints.constraint_error(model, off_q)).max()
    )
    batch, _ = da.step(model, np.tile(q, (4, 1)), v, tau, 1e-2, stabilization=np.array([0.1, 0.2, 0.1, 0.05]))
    np.testing.assert_array_equal(batch[0], batch[2])
    for wrong in (0.0, -1.0, np.nan):
        with pytest.raises(ArgumentError, match="stabilization must be a positive time"):
            da.step(model, q, v, tau, 1e-2, stabilization=wrong)
        with pytest.raises(ArgumentError, match="stabilization must be a positive time"):
            da.forward_dynamics(model, q, v, tau, stabilization=wrong)


def test_passive_forces_act_on_linkages() -> None:
    builder = copied(da.models.four_bar(), damping=0.5, stiffness=2.0)
    loop = da.models.four_bar().loops[0]
    builder.add_loop(
        "pin", "coupler", "rocker", loop.joint, loop.placement_predecessor, loop.placement_successor
    )
    damped, plain = builder.build(), da.models.four_bar()
    q, v = moving(plain, 7)
    passive = da.passive_forces(damped, q, v)
    np.testing.assert_allclose(passive, -2.0 * q - 0.5 * v)
    found = da.step(damped, q, v, np.zeros(3), 1e-3)
    expected = da.step(plain, q, v, passive, 1e-3)
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_derivatives_of_constrained_dynamics() -> None:
    """RBDA-8.5-M2: da/dq, da/dv, da/dtau agree with central differences; da/dtau is M^-1 projected."""
    for model, q, v in ((da.models.four_bar(), *moving(da.models.four_bar(), 8)),):
        tau = np.random.default_rng(9).normal(size=model.nv)
        found = da.forward_dynamics_derivatives(model, q, v, tau)
        h = 1e-5
        for k, values in enumerate((q, v, tau)):
            for j in range(model.nv):
                step = h * np.eye(model.nv)[j]
                ends = []
                for sign in (1.0, -1.0):
                    args = [q, v, tau]
                    args[k] = da.integrate(model, values, sign * step) if k == 0 else values + sign * step
                    ends.append(da.forward_dynamics(model, *args))
                difference = (ends[0] - ends[1]) / (2 * h)
                np.testing.assert_allclose(
                    found[k][:, j], difference, atol=1e-6 * np.abs(difference).max() + 1e-6
                )
        K, M = da.constraints.constraint_jacobian(model, q), da.mass_matrix(model, q)
        inverse = np.linalg.inv(M)
        A = K @ inverse @ K.T
        np.testing.assert_allclose(
            found[2], inverse - inverse @ K.T @ np.linalg.pinv(A, rcond=1e-9) @ K @ inverse, atol=1e-9
        )
        a = da.forward_dynamics(model, q, v, [0.4, 0.0, 0.0])
        by_q, by_v, by_a = da.inverse_dynamics_derivatives(model, q, v, a)
        e = 1e-6 * np.eye(3)[0]
        ends = [da.inverse_dynamics(model, q, v, a + s * e, check="off") for s in (1.0, -1.0)]
        np.testing.assert_allclose(by_a[:, 0], (ends[0] - ends[1]) / 2e-6, atol=1e-7)
        assert by_q.shape == by_v.shape == (3, 3)


def test_compiled_functions_of_linkages() -> None:
    model, q, v = random_looped(61, (da.Spherical(),), bodies=3)
    tau = np.random.default_rng(1).normal(size=model.nv)
    compiled = da.compile(da.forward_dynamics, model, parameters=("b1.mass", "gravity"))
    np.testing.assert_allclose(compiled(q, v, tau), da.forward_dynamics(model, q, v, tau), rtol=1e-9)
    heavy = compiled(q, v, tau, parameters={"b1.mass": 9.0})
    expected = da.forward_dynamics(model.with_values({"b1.mass": 9.0}, inertia="as_given"), q, v, tau)
    np.testing.assert_allclose(heavy, expected, rtol=1e-8)
    assert compiled.operation_count.multiplications > 0
