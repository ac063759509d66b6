"""Laws of mechanics on random trees that mix all joint types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conformance.models import KINDS

import dalembert as da
from dalembert import algorithms as al
from dalembert.model import configuration

COMPILED_SEEDS = tuple(range(30))
"""Trees whose round trip is compiled; a fixed list, so that the time it takes is known."""


@st.composite
def trees(draw: st.DrawFn) -> tuple[da.Model, int]:
    """A tree of one to eight bodies, with or without branches and rotors, and a seed for its states."""
    seed = draw(st.integers(0, 2**31))
    model = da.models.random_tree(
        seed,
        bodies=draw(st.integers(1, 8)),
        joints=KINDS,
        branching=draw(st.sampled_from((0.0, 0.5, 1.0))),
        armature=draw(st.sampled_from((0.0, 0.0, 0.3))),
    )
    return model, seed


def random_states(model: da.Model, seed: int, samples: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """q, v and a, `(samples, n)` each."""
    rng = np.random.default_rng(seed)
    pairs = [model.random_state(rng) for _ in range(samples)]
    return (
        np.array([q for q, _ in pairs]),
        np.array([v for _, v in pairs]),
        rng.normal(size=(samples, model.nv)),
    )


def batched(values: Any, samples: int) -> np.ndarray:
    """`(samples, …)` from nested lists whose scalars are arrays of samples, or literals."""
    if isinstance(values, list):
        return np.stack([batched(item, samples) for item in values], axis=1)
    return np.broadcast_to(np.asarray(values, dtype=float), (samples,))


def check_round_trip(M: np.ndarray, bias_terms: np.ndarray, a: np.ndarray, tau: np.ndarray, a2: np.ndarray,
                     tau2: np.ndarray) -> None:  # fmt: skip
    """The error bounds of a round trip, sample by sample; `bias_terms` is what adds up besides M a."""
    for k in range(len(a)):
        condition = np.linalg.cond(M[k])
        bound = 1e-10 if condition <= 1e5 else 1e-15 * condition
        assert np.linalg.norm(a2[k] - a[k]) <= bound * np.linalg.norm(a[k]), condition
        terms = np.linalg.norm(np.abs(M[k]) @ np.abs(a2[k]) + bias_terms[k] + np.abs(tau[k]))
        assert np.linalg.norm(tau2[k] - tau[k]) <= 1e-11 * terms


@settings(max_examples=1000)
@given(trees())
def test_forward_dynamics_inverts_inverse_dynamics(tree: tuple[da.Model, int]):
    """ABA(RNEA(a)) = a and RNEA(ABA(tau)) = tau, on NumPy scalars."""
    model, seed = tree
    if model.nv == 0:
        return
    samples = 2
    states = random_states(model, seed, samples)
    q, v, a = (list(x.T) for x in states)
    tau = al.inverse_dynamics(model, q, v, a)
    a2 = al.forward_dynamics(model, q, v, tau)
    tau2 = al.inverse_dynamics(model, q, v, a2)
    bias = [al.coriolis_forces(model, q, v), al.gravity_forces(model, q)]
    M = batched(al.mass_matrix(model, q), samples)
    check_round_trip(
        M,
        sum(np.abs(batched(x, samples)) for x in bias),
        states[2],
        batched(tau, samples),
        batched(a2, samples),
        batched(tau2, samples),
    )


@pytest.mark.parametrize("seed", COMPILED_SEEDS)
def test_compiled_forward_dynamics_inverts_inverse_dynamics(seed: int):
    """The same through machine code, by the public functions."""
    model = da.models.random_tree(
        seed, bodies=2 + seed % 5, joints=KINDS, branching=(seed % 3) / 2, armature=0.3 * (seed % 2)
    )
    q, v, a = random_states(model, seed, 5)
    tau = da.inverse_dynamics(model, q, v, a)
    a2 = da.forward_dynamics(model, q, v, tau)
    M = np.array([al.mass_matrix(model, x.tolist()) for x in q], dtype=float)
    bias = [
        np.abs(al.coriolis_forces(model, x.tolist(), y.tolist()))
        + np.abs(al.gravity_forces(model, x.tolist()))
        for x, y in zip(q, v)
    ]
    check_round_trip(M, np.array(bias), a, tau, a2, da.inverse_dynamics(model, q, v, a2))


@settings(max_examples=60)
@given(trees())
def test_mass_matrix_is_the_sum_of_projected_inertias(tree: tuple[da.Model, int]):
    """M = sum over bodies of J_i^T I_i J_i, plus the rotors."""
    model, seed = tree
    q = model.random_state(seed)[0].tolist()
    jacobians = al.all_jacobians(model, q, frame="body")
    M = np.diag([float(x) for body in model.bodies for x in body.armature]).reshape(model.nv, model.nv)
    for body in model.bodies:
        J = np.array(jacobians[body], dtype=float).reshape(6, model.nv)
        M = M + J.T @ np.array(body.inertia.matrix(), dtype=float) @ J
    found = np.array(al.mass_matrix(model, q), dtype=float).reshape(model.nv, model.nv)
    np.testing.assert_allclose(found, M, rtol=0.0, atol=1e-12 * max(1.0, np.abs(M).max(initial=0.0)))


@settings(max_examples=60)
@given(trees())
def test_power_equals_energy_rate(tree: tuple[da.Model, int]):
    """d/dt (T + V) = tau . v + external power: the derivative by central differences along the motion."""
    model, seed = tree
    if model.nv == 0:
        return
    (q,), (v,), (tau,) = random_states(model, seed, 1)
    a = np.array(al.forward_dynamics(model, q.tolist(), v.tolist(), tau.tolist()), dtype=float)
    h = 1e-4 / (1.0 + np.linalg.norm(v) + np.linalg.norm(a))

    def energy(t: float) -> float:
        # Along q' = Q(q) v and v' = a, exact to second order, which central differences need.
        x = configuration.integrate(model, q.tolist(), (v * t + 0.5 * a * t * t).tolist())
        w = (v + a * t).tolist()
        return float(al.kinetic_energy(model, x, w) + al.potential_energy(model, x))

    rate = (energy(h) - energy(-h)) / (2.0 * h)
    scale = max(1.0, abs(energy(0.0)), float(np.abs(tau) @ np.abs(v)), float(np.abs(a) @ np.abs(v)))
    assert abs(rate - tau @ v) <= 2e-6 * scale * (1.0 + np.linalg.norm(v) + np.linalg.norm(a))


def thrown_body() -> tuple[da.Model, np.ndarray, np.ndarray]:
    """A free body whose centre of mass is off its origin, spinning fast and thrown."""
    builder = da.ModelBuilder(gravity=(0.0, 0.0, 0.0))
    inertia = da.RigidInertia(
        1.7, (0.3, -0.2, 0.1), ((0.09, 0.01, 0.0), (0.01, 0.07, 0.02), (0.0, 0.02, 0.05))
    )
    builder.add_body("brick", "world", da.Free(), inertia=inertia)
    model = builder.build()
    q, v = model.random_state(5)
    return model, q, v * np.array([9.0, -7.0, 8.0, 2.0, 3.0, -4.0])  # fmt: skip


@pytest.mark.parametrize("integrator", ["semi_implicit", "rk4"])
def test_thrown_spinning_body_keeps_a_straight_line(integrator: Any):
    """The centre of mass moves on a line at constant speed, to rounding, over many steps."""
    model, q, v = thrown_body()
    dt, steps = 0.002, 2000
    start = da.dynamics.center_of_mass(model, q)
    momentum = da.dynamics.centroidal_momentum(model, q, v)[3:]
    speed = momentum / 1.7
    for k in range(1, steps + 1):
        q, v = da.step(model, q, v, np.zeros(6), dt, integrator=integrator)
        if k % 100 == 0:
            rounding = 1e-15 * k  # a few last places at every step
            path = start + speed * k * dt
            np.testing.assert_allclose(
                da.dynamics.center_of_mass(model, q), path, rtol=rounding, atol=rounding
            )
            np.testing.assert_allclose(
                da.dynamics.centroidal_momentum(model, q, v)[3:], momentum, rtol=rounding
            )
            assert abs(np.linalg.norm(q[3:]) - 1.0) < 1e-14
    assert np.linalg.norm(v[:3]) > 5.0


def test_thrown_tree_keeps_its_momentum():
    """Without gravity and contact a jointed system keeps both momenta: to the order of the integrator."""
    tree = da.models.random_tree(
        8, bodies=4, joints=("free", "revolute", "spherical", "universal"), branching=0.0
    )
    names = [body.joint.kind for body in tree.bodies]
    root = da.ModelBuilder(gravity=(0.0, 0.0, 0.0))
    root.add_body("root", "world", da.Free(), inertia=tree.bodies[0].inertia)
    model = root.build().attach(tree.with_values({"gravity": (0.0, 0.0, 0.0)}), "root", prefix="limb_")
    assert "free" in names
    q, v = model.random_state(3)
    tau = np.zeros(model.nv)
    before = da.dynamics.centroidal_momentum(model, q, v)
    for _ in range(200):
        q, v = da.step(model, q, v, tau, 0.001, integrator="rk4")
    np.testing.assert_allclose(
        da.dynamics.centroidal_momentum(model, q, v), before, rtol=0, atol=1e-8 * np.abs(before).max()
    )
