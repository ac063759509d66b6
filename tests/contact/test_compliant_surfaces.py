"""Compliant surfaces: the book's element against SciPy's solution, and what none ever does."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from dalembert.contact.compliant import (
    Hertz,
    LinearSurface,
    SeriesSpring,
    Surface,
    TwoSurfaces,
    lumped,
    patch_rate,
    relaxed,
)
from dalembert.errors import ArgumentError

K, D = 2.0e4, 150.0
GRAVITY, MASS = 9.81, 3.0
LINEAR = LinearSurface(K, D)
HERTZ = Hertz(4.0e5, 0.8)
SERIES = SeriesSpring(K, D, 8e4)
TWO = TwoSurfaces(LinearSurface(3e4, 100.0), LinearSurface(6e4, 500.0))
SURFACES = [LINEAR, HERTZ, SERIES, TWO]
NAMES = ["linear", "hertz", "series", "two"]


def resting_depth(surface: Surface, weight: float) -> float:
    """Where springs alone carry a weight."""
    match surface:
        case LinearSurface():
            return weight / surface.stiffness
        case Hertz():
            return (weight / surface.stiffness) ** (2 / 3)
        case SeriesSpring():
            return weight / surface.stiffness + weight / surface.outer
        case TwoSurfaces():
            return weight / surface.first.stiffness + weight / surface.second.stiffness
    raise AssertionError


def stored(surface: Surface, z: list[float], p: float) -> float:
    """The energy [J] of the springs."""
    match surface:
        case LinearSurface():
            return 0.5 * surface.stiffness * min(z[0], p) ** 2
        case Hertz():
            return 0.4 * surface.stiffness * max(0.0, -min(z[0], p)) ** 2.5
        case SeriesSpring():
            return 0.5 * surface.stiffness * z[0] ** 2 + 0.5 * surface.outer * max(z[0] - p, 0.0) ** 2
        case TwoSurfaces():
            return 0.5 * surface.first.stiffness * z[0] ** 2 + 0.5 * surface.second.stiffness * z[1] ** 2
    raise AssertionError


def fall(
    surface: Surface, p: float, v: float, dt: float, steps: int
) -> list[tuple[float, float, list[float]]]:
    """A body on a surface under gravity, velocity first."""
    z, found = [0.0] * surface.order, []
    for _ in range(steps):
        f = surface.force(z, p, v)
        assert f >= 0.0
        z_next = surface.after(z, p, v, dt)
        v, z = v + dt * (f / MASS - GRAVITY), z_next
        p = p + dt * v
        found.append((p, v, z))
    return found


@pytest.mark.parametrize("surface", SURFACES, ids=NAMES)
def test_static_compression_is_what_the_springs_alone_carry(surface):
    """RBDA-11.8-NORMAL"""
    p, v, z = fall(surface, 0.02, -0.3, 1e-5, 300_000)[-1]
    assert abs(v) < 1e-4
    assert -p == pytest.approx(resting_depth(surface, MASS * GRAVITY), rel=1e-3)
    assert surface.force(z, p, v) == pytest.approx(MASS * GRAVITY, rel=1e-3)


def test_a_dropped_body_moves_as_scipy_solves_the_same_equations():
    """RBDA-11.8-NORMAL"""
    v0 = -0.7

    def on_the_patch(_, y):
        p, v = y
        return [v, (-K * p - D * v) / MASS - GRAVITY]

    def contact_force(_, y):
        return -K * y[0] - D * y[1]

    contact_force.terminal, contact_force.direction = True, -1.0
    pressed = solve_ivp(on_the_patch, (0.0, 1.0), [0.0, v0], events=contact_force, rtol=1e-10, atol=1e-12)
    t_loss, (z_loss, v_loss) = pressed.t_events[0][0], pressed.y_events[0][0]
    assert z_loss < 0.0 < v_loss
    free = 0.04

    def exact(t):
        if t < t_loss:
            p, v = solve_ivp(on_the_patch, (0.0, t), [0.0, v0], rtol=1e-10, atol=1e-12).y[:, -1]
            return p, p, v
        t = t - t_loss
        p, v = z_loss + v_loss * t - 0.5 * GRAVITY * t * t, v_loss - GRAVITY * t
        return p, z_loss * math.exp(-K * t / D), v

    def worst(dt):
        """Over instants before and after the loss of contact, in m and in 0.01 m/s."""
        states = fall(LINEAR, 0.0, v0, dt, round((t_loss + free) / dt))
        errors = []
        for share in np.linspace(0.1, 1.0, 10):
            number = int(share * len(states))
            p, v, z = states[number - 1]
            p_exact, z_exact, v_exact = exact(number * dt)
            errors += [abs(p - p_exact), abs(min(z[0], p) - z_exact), 1e-2 * abs(v - v_exact)]
        return max(errors)

    assert 1e-3 < t_loss < 2.0 * free
    coarse, fine = worst(2e-5), worst(5e-6)
    assert fine < 4e-6
    assert 3.0 < coarse / fine < 5.0


@pytest.mark.parametrize("surface", SURFACES, ids=NAMES)
def test_states_after_small_steps_solve_the_rates(surface):
    """RBDA-11.8-EXTEND"""
    rng = np.random.default_rng(4)
    for _ in range(10):
        p, p_rate, dt = rng.uniform(-3e-3, 1e-3), rng.uniform(-0.4, 0.6), rng.uniform(1e-3, 8e-3)
        z = surface.pushed(list(rng.uniform(-3e-3, 0.0, size=surface.order)), p)
        fine, small, steps = list(z), list(z), 3000
        for k in range(steps):
            now = p + p_rate * dt * k / steps
            rates = surface.rate(fine, now, p_rate)
            fine = [x + dt / steps * r for x, r in zip(fine, rates, strict=True)]
            fine = surface.pushed(fine, now + p_rate * dt / steps)
            small = surface.after(small, now, p_rate, dt / steps)
        end = p + p_rate * dt
        assert surface.force(small, end, p_rate) == pytest.approx(
            surface.force(fine, end - 1e-9, p_rate), abs=0.5
        )
        assert sum(surface.pushed(small, end)) == pytest.approx(sum(fine), abs=5e-6)


@pytest.mark.parametrize("surface", SURFACES, ids=NAMES)
def test_free_patches_relax_exactly_in_steps_of_any_length(surface):
    """RBDA-11.8-EXTEND"""
    z, away = [-2e-3 - 1e-3 * k for k in range(surface.order)], 1.0
    exact = solve_ivp(lambda _, z: surface.rate(list(z), away, 0.0), (0.0, 2e-3), z, rtol=1e-10, atol=1e-14)
    for steps in (1, 7):
        found = list(z)
        for _ in range(steps):
            found = surface.after(found, away, 0.0, 2e-3 / steps)
        assert found == pytest.approx(list(exact.y[:, -1]), rel=1e-7)
    assert surface.after(z, away, 0.0, 10.0) == pytest.approx([0.0] * surface.order, abs=1e-12)


@pytest.mark.parametrize("surface", SURFACES, ids=NAMES)
@given(
    start=st.floats(0.0, 2e-3),
    motion=st.lists(st.floats(-1.5, 1.5), min_size=2, max_size=30),
)
@settings(max_examples=60, deadline=None)
def test_no_surface_pulls_and_none_creates_energy(surface, start, motion):
    """RBDA-11.8-NORMAL, RBDA-11.8-EXTEND: whatever the body does, its work covers what the springs hold."""
    p, z, dt, pieces = start, [0.0] * surface.order, 1e-3, 400
    h, work = dt / pieces, 0.0
    for p_rate in motion:
        if (p + p_rate * dt) < -5e-3:
            p_rate = -p_rate
        for _ in range(pieces):
            f = surface.force(z, p, p_rate)
            assert f >= 0.0
            z = surface.after(z, p, p_rate, h)
            p += p_rate * h
            work -= f * p_rate * h
    assert stored(surface, z, p) <= work + 2e-3


def test_without_a_state_the_patch_is_where_the_state_says():
    """RBDA-11.8-EXTEND: z = p in contact, z0 exp(- K (t - t0) / D) from its loss at z0, t0 on."""
    dt, z, z0, t0, losses, forces = 1e-5, [0.0], 0.0, 0.0, 0, 0
    before = False
    for number in range(30_000):
        t = number * dt
        p = -1e-3 + 2e-3 * math.cos(60.0 * t) + 5e-4 * math.sin(400.0 * t)
        p_rate = -0.12 * math.sin(60.0 * t) + 0.2 * math.cos(400.0 * t)
        free = relaxed(K, D, z0, t - t0)
        f = LINEAR.force([free], p, p_rate)
        assert f == pytest.approx(LINEAR.force(z, p, p_rate), abs=1e-9)
        assert min(free, p) == pytest.approx(min(z[0], p), abs=1e-12)
        if p <= free:
            z0, t0 = p, t
        losses += before and f == 0.0
        before, forces = f > 0.0, forces + (f > 0.0)
        z = LINEAR.after(z, p, p_rate, dt)
    assert losses > 5
    assert 3_000 < forces < 27_000


def test_two_surfaces_of_the_same_ratio_are_one():
    """RBDA-11.8-EXTEND"""
    first, second = LinearSurface(3e4, 300.0), LinearSurface(5e4, 500.0)
    both, one = TwoSurfaces(first, second), lumped(first, second)
    rng, z_two, z_one, p = np.random.default_rng(2), [0.0, 0.0], [0.0], 1e-3
    pressed = 0
    for _ in range(3000):
        p_rate = rng.normal(scale=0.4) - 80.0 * p - 0.05
        f = both.force(z_two, p, p_rate)
        assert f == pytest.approx(one.force(z_one, p, p_rate), rel=1e-6, abs=1e-6)
        assert sum(both.rate(z_two, p, p_rate)) == pytest.approx(
            one.rate(z_one, p, p_rate)[0], rel=1e-6, abs=1e-9
        )
        pressed += f > 0.0
        z_two, z_one = both.after(z_two, p, p_rate, 2e-4), one.after(z_one, p, p_rate, 2e-4)
        p += p_rate * 2e-4
    assert 300 < pressed < 2900
    with pytest.raises(ArgumentError, match="TwoSurfaces"):
        lumped(first, LinearSurface(5e4, 400.0))


def test_a_stiff_outer_spring_leaves_the_linear_surface():
    """RBDA-11.8-EXTEND"""
    differences = []
    for outer in (1e6, 4e6, 1.6e7):
        surface, z, worst = SeriesSpring(K, D, outer), [0.0], 0.0
        for k in range(2000):
            t = k * 1e-5
            p, p_rate = -1e-3 * math.sin(100.0 * t) - 1e-3 * t, -0.1 * math.cos(100.0 * t) - 1e-3
            f = surface.force(z, p, p_rate)
            if t > 2e-3:
                worst = max(worst, abs(f - max(0.0, -K * p - D * p_rate)))
            z = surface.after(z, p, p_rate, 1e-5)
        differences.append(worst)
    assert all(b < 0.4 * a for a, b in pairwise(differences))


def test_the_rate_of_a_patch_is_eq_11_73():
    """RBDA-11.8-NORMAL"""
    assert patch_rate(K, D, -2e-3, 10.0) == pytest.approx((40.0 - 10.0) / D)
    assert LINEAR.rate([-2e-3], -2e-3, -0.1) == pytest.approx([-0.1])
    assert LINEAR.rate([-2e-3], -1e-3, -0.1) == pytest.approx([40.0 / D])


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_surfaces_without_spring_or_damper_are_refused(bad):
    with pytest.raises(ArgumentError, match="stiffness"):
        LinearSurface(bad, 1.0)
    with pytest.raises(ArgumentError, match="damping"):
        LinearSurface(1.0, bad)
    with pytest.raises(ArgumentError, match="dissipation"):
        Hertz(1.0, bad)
    with pytest.raises(ArgumentError, match="outer"):
        SeriesSpring(1.0, 1.0, bad)
