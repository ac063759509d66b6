"""Loops that are hard but have one answer: redundant, contrary, stretched, far open, watched for a minute."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.bad_inputs.constrained_chains import LOOP, Z3, bound, fd, links

import dalembert as da
from dalembert.errors import (
    StateError,
)


def test_constraints_take_functions_of_every_make():
    """Lambdas, closures, partials, methods, objects, with further defaults: all the same constraint."""
    ratio = 0.5

    class Gear:
        def __call__(self, model: da.Model, q: Any) -> Any:
            return [q[0] - 0.5 * q[1]]

        def meshed(self, model: da.Model, q: Any) -> Any:
            return [q[0] - 0.5 * q[1]]

    def own(model: da.Model, q: Any, k: float = 0.5) -> Any:
        return (q[0] - k * q[1],)

    functions: list[Callable[..., Any]] = [
        lambda model, q: [q[0] - ratio * q[1]],
        functools.partial(own, k=ratio),
        own,
        Gear(),
        Gear().meshed,
        lambda model, q: np.array([q[0] - ratio * q[1]]),
    ]
    found = [fd(bound(function)) for function in functions]
    for a in found:
        np.testing.assert_array_equal(a, found[0])
    assert found[0][0] == pytest.approx(0.5 * found[0][1])


def test_redundant_and_contrary_constraints_have_one_motion():
    """A relation twice binds once; relations that cannot both hold still have a finite acceleration."""
    once = fd(bound(lambda m, q: [q[0] - q[1]]))
    twice = fd(bound(lambda m, q: [q[0] - q[1], 2.0 * q[0] - 2.0 * q[1], 0.0]))
    np.testing.assert_allclose(twice, once, rtol=1e-12)
    assert np.isfinite(fd(bound(lambda m, q: [q[0], q[0] - 1.0]))).all()


def test_hybrid_dynamics_refuses_what_loops_forbid():
    """One of the three joints may be prescribed at will, two only by accelerations that keep the loop."""
    q, v = da.constraints.close_loops(LOOP, np.full(3, 0.1), np.ones(3))
    one, two = LOOP.joints.names[:1], LOOP.joints.names[:2]
    a, _ = da.dynamics.hybrid_dynamics(LOOP, q, v, Z3, [5.0, 0.0, 0.0], prescribed=one)
    kept, tau = da.dynamics.hybrid_dynamics(LOOP, q, v, Z3, a, prescribed=two, stabilization=0.1)
    np.testing.assert_allclose(kept, a, rtol=1e-9)
    np.testing.assert_allclose(da.forward_dynamics(LOOP, q, v, tau), a, rtol=1e-9)
    rows = np.stack([a, a + [0.0, 1.0, 0.0], a])
    with pytest.raises(
        StateError, match=r"sample \(1,\): the prescribed accelerations break the constraints"
    ):
        da.dynamics.hybrid_dynamics(LOOP, q, v, Z3, rows, prescribed=two)
    flagged, _ = da.dynamics.hybrid_dynamics(LOOP, q, v, Z3, rows, prescribed=two, check="flag")
    np.testing.assert_array_equal(np.isnan(flagged).all(axis=1), [False, True, False])
    assert np.isfinite(da.dynamics.hybrid_dynamics(LOOP, q, v, Z3, rows, prescribed=two, check="off")).all()


def test_operational_inertia_feels_the_loops():
    """A five-bar's tool has two freedoms: Lambda is the inverse of J A J^T there, A the constrained M^-1."""
    model = da.models.five_bar()
    q = da.constraints.close_loops(model, model.neutral() + 0.1)
    J = da.jacobian(model, q, "tool")[3:]
    N = np.linalg.svd(da.constraints.constraint_jacobian(model, q))[2][2:].T
    A = N @ np.linalg.solve(N.T @ da.mass_matrix(model, q) @ N, N.T)
    plane = np.ix_([0, 2], [0, 2])
    Lambda = da.control.operational_inertia(model, q, "tool", rotation=False)
    np.testing.assert_allclose(Lambda[plane], np.linalg.inv((J @ A @ J.T)[plane]), rtol=1e-8)
    inverse = da.control.consistent_inverse(model, q, "tool", rotation=False)
    np.testing.assert_allclose((J @ inverse)[plane], np.eye(2), atol=1e-8)
    np.testing.assert_allclose(da.constraints.constraint_jacobian(model, q) @ inverse, 0.0, atol=1e-8)


def test_recorded_motion_of_a_linkage():
    """A spline through closed positions keeps the loops only nearly: refused, unless checks are off; then
    the forces produce the allowed acceleration nearest to the recorded one."""
    time = np.linspace(0.0, 1.0, 21)
    start = np.stack([0.3 * np.sin(time), 0.0 * time, 0.0 * time], axis=1)
    clip = da.motion.Clip.from_positions(
        LOOP, time, da.constraints.close_loops(LOOP, start, hold=["crank_pivot"])
    )
    with pytest.raises(StateError, match="a breaks the constraints"):
        da.motion.inverse_dynamics(clip)
    tau = da.motion.inverse_dynamics(clip, check="off").tau
    found = da.forward_dynamics(LOOP, clip.q, clip.v, tau)
    M = da.mass_matrix(LOOP, clip.q)
    K = da.constraints.constraint_jacobian(LOOP, clip.q)
    missing = da.constraints.constraint_bias(LOOP, clip.q, clip.v) - np.einsum("tij,tj->ti", K, clip.a)
    A = K @ np.linalg.solve(M, K.transpose(0, 2, 1))
    impulse = np.linalg.pinv(A, rcond=1e-9) @ missing[..., None]
    nearest = clip.a + np.linalg.solve(M, K.transpose(0, 2, 1) @ impulse)[..., 0]
    np.testing.assert_allclose(found, nearest, atol=1e-8)


METHODS = (None, "direct", "null_space", "sparse", "maximal", "divide_and_conquer")


@pytest.mark.parametrize("lengths", [(1, 2, 1, 2), (1, 3, 2, 2)])
def test_stretched_loops_have_the_motion_that_all_methods_agree_on(lengths: tuple[float, ...]):
    """Where all links lie on a line K loses rank: finite, the dense solution, by every method."""
    model = links(*lengths)
    tau = np.array([1.0, 0.2, -0.4])
    _, v = da.constraints.close_loops(model, Z3, np.array([1.0, 0.0, 0.0]))
    K, k = da.constraints.constraint_jacobian(model, Z3), da.constraints.constraint_bias(model, Z3, v)
    _, s, V = np.linalg.svd(K)
    N = V[(s > 1e-9).sum() :].T
    assert N.shape == (3, 2)
    M, b = da.mass_matrix(model, Z3), da.bias_forces(model, Z3, v)
    own = np.linalg.lstsq(K, k, rcond=1e-9)[0]
    expected = own + N @ np.linalg.solve(N.T @ M @ N, N.T @ (tau - b - M @ own))
    for method in METHODS:
        np.testing.assert_allclose(da.forward_dynamics(model, Z3, v, tau, method=method), expected, atol=1e-9)


@pytest.mark.parametrize("name", ["four_bar", "slider_crank", "five_bar", "stewart", "ladder"])
def test_loops_close_from_far_away_in_any_precision(name: str):
    """Random configurations of bundled linkages all close; float32 is taken, the result is float64."""
    model = getattr(da.models, name)()
    rng = np.random.default_rng(3)
    q = np.array([model.random_state(rng)[0] for _ in range(40)]).reshape(4, 10, -1).astype(np.float32)
    if name == "stewart":  # its platform has a quaternion, float32 does not hold unit norm to 1e-6
        q = da.dynamics.normalize(model, q.astype(np.float64))
        spoilt = q.copy()
        spoilt[1, 2] = np.nan
        with pytest.raises(StateError, match=r"sample \(12,\): the quaternion of joint"):
            da.constraints.close_loops(model, spoilt)
        assert (
            np.abs(da.constraints.constraint_error(model, da.constraints.close_loops(model, q))).max() < 1e-10
        )
        return
    q[1, 2] = np.nan
    found = da.constraints.close_loops(model, q)
    assert found.dtype == np.float64
    gaps = np.abs(da.constraints.constraint_error(model, found)).max(axis=-1)
    assert np.isnan(gaps[1, 2])
    assert np.isnan(gaps).sum() == 1
    assert np.nanmax(gaps) < 1e-10


@pytest.mark.parametrize("name", ["four_bar", "slider_crank", "five_bar"])
def test_a_minute_of_a_linkage_stays_closed(name: str):
    """Runge and Kutta's method with the default stabilisation; a five-bar is chaotic, its energy too."""
    model = getattr(da.models, name)()
    q, v = da.constraints.close_loops(model, model.neutral(), 0.5 * np.ones(model.nv))
    energy = da.dynamics.kinetic_energy(model, q, v) + da.dynamics.potential_energy(model, q)
    for _ in range(12_000):
        q, v = da.step(model, q, v, np.zeros(model.nv), 0.005, integrator="rk4")
    assert np.abs(da.constraints.constraint_error(model, q)).max() < 1e-4
    if name != "five_bar":
        kept = da.dynamics.kinetic_energy(model, q, v) + da.dynamics.potential_energy(model, q)
        assert kept == pytest.approx(energy, rel=1e-4)
