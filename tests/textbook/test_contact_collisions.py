"""Impulses and collisions of two bodies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dalembert as da
from dalembert.errors import ArgumentError, ShapeError, StateError


def random_body(rng: Any) -> tuple[Any, Any]:
    inertia = da.RigidInertia(rng.uniform(0.5, 3.0), rng.normal(size=3), rng.uniform(0.5, 0.9, 3))
    return inertia, np.array(inertia.matrix(), dtype=float)


def energy(I: Any, v: Any) -> float:
    return 0.5 * float(v @ I @ v)


def approaching(rng: Any) -> tuple[Any, ...]:
    (b1, I1), (b2, I2) = random_body(rng), random_body(rng)
    point, frame = rng.normal(size=3), np.linalg.qr(rng.normal(size=(3, 3)))[0]
    N = da.textbook.contact_normal(point, frame.T).T
    v1, v2 = rng.normal(size=(2, 6))
    if N[:, 2] @ (v2 - v1) > 0.0:
        N[:, 2] *= -1.0
    return b1, I1, v1, b2, I2, v2, N


def test_an_impulse_is_the_change_of_momentum_and_the_limit_of_great_forces() -> None:
    """RBDA-11.7-IMPULSE: iota = I dv; a force iota/dt over a short time dt gives the same velocity as dt
    vanishes."""
    rng = np.random.default_rng(0)
    body, I = random_body(rng)
    builder = da.ModelBuilder(gravity=(0.0, 0.0, -9.81))
    builder.add_body("body", "world", da.Free(), inertia=body)
    model = builder.build()
    v, dv = rng.normal(size=(2, 6))
    iota = da.textbook.body_impulse(body, dv)
    np.testing.assert_allclose(iota, I @ (v + dv) - I @ v, atol=1e-12)
    errors = []
    for duration in (1e-4, 1e-5):
        q, w = model.neutral(), v.copy()
        for _ in range(40):
            q, w = da.step(model, q, w, iota / duration, duration / 40, integrator="rk4")
        errors.append(np.abs(w - v - dv).max())
    assert errors[1] < 1e-3
    assert errors[1] == pytest.approx(errors[0] / 10, rel=0.2)


def test_frictionless_collisions_turn_the_normal_velocity_and_keep_momentum() -> None:
    """RBDA-11.7-COLLIDE: zeta+ = -e zeta-; momentum kept; the energy lost is (1 - e^2)/2 zeta^2 / (n .
    (I1^-1 + I2^-1) n), none if e = 1."""
    rng = np.random.default_rng(1)
    for e in (0.0, 0.35, 1.0):
        b1, I1, v1, b2, I2, v2, N = approaching(rng)
        n = N[:, 2]
        after = da.textbook.collide_bodies(b1, v1, b2, v2, n, restitution=e)
        w1, w2 = after.velocities
        zeta = n @ (v2 - v1)
        assert n @ (w2 - w1) == pytest.approx(-e * zeta, abs=1e-12)
        assert after.multiplier[0] > 0.0
        np.testing.assert_allclose(I1 @ w1 + I2 @ w2, I1 @ v1 + I2 @ v2, atol=1e-12)
        np.testing.assert_allclose(I2 @ (w2 - v2), after.impulse, atol=1e-12)
        np.testing.assert_allclose(after.impulse, n * after.multiplier[0], atol=1e-12)
        lost = energy(I1, v1) + energy(I2, v2) - energy(I1, w1) - energy(I2, w2)
        inverses = np.linalg.inv(I1) + np.linalg.inv(I2)
        assert lost == pytest.approx(0.5 * (1 - e * e) * zeta**2 / (n @ inverses @ n), abs=1e-11)


def test_sticking_collisions_end_without_sliding() -> None:
    """RBDA-11.7-FRICTION: no tangential velocity is left at the point, the normal one is -e zeta, momentum
    is kept; with e = 0 energy never grows."""
    rng = np.random.default_rng(2)
    for number in range(60):
        e = 0.0 if number % 2 else rng.uniform()
        b1, I1, v1, b2, I2, v2, N = approaching(rng)
        after = da.textbook.collide_bodies_sticking(b1, v1, b2, v2, N, restitution=e)
        w1, w2 = after.velocities
        expected = [0.0, 0.0, -e * (N[:, 2] @ (v2 - v1))]
        np.testing.assert_allclose(N.T @ (w2 - w1), expected, atol=1e-10)
        np.testing.assert_allclose(I1 @ w1 + I2 @ w2, I1 @ v1 + I2 @ v2, atol=1e-10)
        if e == 0.0:
            assert energy(I1, w1) + energy(I2, w2) <= energy(I1, v1) + energy(I2, v2) + 1e-12


@pytest.mark.parametrize("e", [0.0, 0.6])
def test_a_sphere_that_strikes_the_floor_keeps_five_sevenths_of_its_speed(e: float) -> None:
    """RBDA-11.7-FRICTION: sliding at v it leaves at 5/7 v and spins at 5/7 v / r; spinning at w without
    sliding speed it leaves at 2/7 w r."""
    r, m = 0.3, 2.0
    ball = da.RigidInertia(m, (0.0, 0.0, 0.0), (0.4 * m * r * r,) * 3)
    N = da.textbook.contact_normal([0.0, 0.0, -r], np.eye(3)).T
    slide = np.array([0.0, 0.0, 0.0, 1.4, -0.7, -2.0])
    w = da.textbook.collide_bodies_sticking(None, np.zeros(6), ball, slide, N, restitution=e).velocities[1]
    np.testing.assert_allclose(w[3:], [1.0, -0.5, 2.0 * e], atol=1e-12)
    np.testing.assert_allclose(w[:3], [0.5 / r, 1.0 / r, 0.0], atol=1e-12)
    spin = np.array([0.0, 7.0, 0.0, 0.0, 0.0, -2.0])
    w = da.textbook.collide_bodies_sticking(None, np.zeros(6), ball, spin, N, restitution=e).velocities[1]
    np.testing.assert_allclose(w[3:], [2.0 * r, 0.0, 2.0 * e], atol=1e-12)
    assert w[1] == pytest.approx(2.0)


def test_sticking_with_restitution_can_create_energy() -> None:
    """RBDA-11.7-CAUTION: a slender rod that strikes the ground at 45 degrees gains energy from e = 1 and
    stuck sliding; the model holds within its assumptions alone."""
    rod = da.RigidInertia(1.0, (0.0, 0.0, 0.0), (1e-4, 1.0 / 12.0, 1.0 / 12.0))
    I = np.array(rod.matrix(), dtype=float)
    end = 0.5 * np.array([np.sqrt(0.5), 0.0, -np.sqrt(0.5)])
    gains = []
    for e in (0.0, 0.5, 1.0):
        before = np.array([0.0, 0.0, 0.0, -0.3, 0.0, -1.0])
        N = da.textbook.contact_normal(end, np.eye(3)).T
        after = da.textbook.collide_bodies_sticking(
            None, np.zeros(6), rod, before, N, restitution=e
        ).velocities[1]
        gains.append(energy(I, after) - energy(I, before))
    assert gains[0] < 0.0
    assert gains[2] > 0.05
    # Without friction the same impact keeps it exactly.
    smooth = da.textbook.collide_bodies(None, np.zeros(6), rod, before, N[:, 2], restitution=1.0).velocities[
        1
    ]
    assert energy(I, smooth) == pytest.approx(energy(I, before))


def test_wrong_collisions_are_named() -> None:
    """RBDA-11.7-COLLIDE"""
    rng = np.random.default_rng(3)
    b1, _, v1, b2, _, v2, N = approaching(rng)
    with pytest.raises(StateError, match="move apart"):
        da.textbook.collide_bodies(b1, v2, b2, v1, N[:, 2])
    with pytest.raises(ArgumentError, match="from 0 to 1"):
        da.textbook.collide_bodies(b1, v1, b2, v2, N[:, 2], restitution=1.5)
    with pytest.raises(ArgumentError, match="both inertias are None"):
        da.textbook.collide_bodies(None, v1, None, v2, N[:, 2])
    with pytest.raises(ShapeError, match=r"\(6, 3\)"):
        da.textbook.collide_bodies_sticking(b1, v1, b2, v2, N[:, :2])
