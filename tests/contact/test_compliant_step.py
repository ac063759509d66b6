"""A time step with compliant contact: closed forms, what it never does, and steps however stiff."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import dalembert as da
from dalembert.algorithms.kinematics import forward_kinematics
from dalembert.call.arguments import ArrayArgument
from dalembert.compiler.lowering import Recipe
from dalembert.compiler.rollout_execution import compile_rollout
from dalembert.contact.compliant_step import _passive_fraction as passive_fraction
from dalembert.contact.options import Compliant
from dalembert.contact.pairs import contact_points, pairs_of
from dalembert.contact.step import contact_step
from dalembert.contact.step_terms import Motor
from dalembert.errors import ArgumentError, ShapeError

G = 9.81
R = 0.1
step_compliant = partial(contact_step, settings=Compliant())
UPRIGHT = [1.0, 0.0, 0.0, 0.0]


class Motion:
    """q, v, impulses (…, points, 3) and gaps of each step, and the points' coefficients of friction."""

    def __init__(self, outputs: Any, dt: float) -> None:
        self.q, self.v, self.memory, impulses, self.gap = outputs[:5]
        self.force = impulses / dt


def moved(model, q, v, *, steps, dt, settings=None, gains=None, only=None) -> Motion:
    """Steps in one kernel; with gains (kp, kd) joints are held where they are at first."""
    pairs = pairs_of(model, only=only)
    q, v = np.atleast_2d(np.asarray(q, float)), np.atleast_2d(np.asarray(v, float))
    start = q[0].tolist()

    def step(model: Any, q: Any, v: Any, memory: Any, dt: Any) -> Any:
        points = contact_points(forward_kinematics(model, q), pairs)
        motors = []
        for body in model.bodies if gains else ():
            if body.nv < 6:
                error = body.joint.difference(body.own_q(q), body.own_q(start))
                first = body.v_slice.start
                motors += [Motor(first + k, error[k], 0.0, *gains) for k in range(body.nv)]
        after = step_compliant(
            model,
            q,
            v,
            [0.0] * model.nv,
            dt,
            points,
            memory=memory,
            motors=motors,
            settings=settings or Compliant(),
        )
        return (
            after.q, after.v, after.memory, [list(x) for x in after.impulses], [x.point.gap for x in points]
        )  # fmt: skip

    count = len(contact_points(forward_kinematics(model, start), pairs))
    arguments = {"q": (model.nq,), "v": (model.nv,), "memory": (count, 5), "dt": ()}
    recipe = Recipe("compliant", step, model, tuple(ArrayArgument(*item) for item in arguments.items()))
    rollout = compile_rollout(recipe, carried={"q": 0, "v": 1, "memory": 2})
    return Motion(rollout(q, v, np.zeros((len(q), count, 5)), dt, steps=steps).outputs, dt)


def free_body(shape, mass, *, slope=0.0, friction=0.5):
    """A body over a horizontal ground; a slope is a gravity that leans towards x."""
    builder = da.ModelBuilder(gravity=(G * np.sin(slope), 0.0, -G * np.cos(slope)))
    builder.add_body("body", "world", da.Free(), inertia=shape.inertia(mass=mass))
    builder.add_shape("body", replace(shape, friction=(0.0, 0.0, 0.0)))
    return builder.build().with_ground(friction=friction)


CUBE = da.shapes.Box((2 * R, 2 * R, 2 * R))


def test_what_rests_is_pressed_in_by_its_weight_over_the_stiffness():
    """RBDA-11.8-NORMAL"""
    found = moved(
        free_body(CUBE, 2.0),
        [0.0, 0.0, R, *UPRIGHT],
        np.zeros(6),
        steps=400,
        dt=0.005,
        settings=Compliant(stiffness=1e4, damping=100.0),
    )
    assert R - found.q[0, -1, 2] == pytest.approx(2.0 * G / (4 * 1e4), rel=1e-6)
    assert found.force[0, -1, :, 2] == pytest.approx([2.0 * G / 4] * 4, rel=1e-6)


def test_by_default_the_whole_weight_of_a_figure_presses_one_point_in_by_a_millimetre():
    """RBDA-11.8-NORMAL: a ball that carries two weights."""
    builder = da.ModelBuilder()
    ball = da.shapes.Sphere(R)
    builder.add_body("ball", "world", da.Free(), inertia=ball.inertia(mass=1.0))
    builder.add_shape("ball", ball)
    weight = da.RigidInertia(1.0, (0.0, 0.0, 0.0), (0.01, 0.01, 0.01))
    builder.add_body("inner", "ball", da.Revolute((0, 0, 1)), inertia=weight)
    builder.add_body("outer", "inner", da.Revolute((0, 0, 1)), inertia=weight)
    model = builder.build().with_ground(friction=0.5)
    found = moved(model, [0.0, 0.0, R, *UPRIGHT, 0.0, 0.0], np.zeros(8), steps=400, dt=0.005)
    assert R - found.q[0, -1, 2] == pytest.approx(1e-3, rel=1e-6)
    assert found.force[0, -1, :, 2].sum() == pytest.approx(3.0 * G, rel=1e-6)


def test_a_bouncing_ball_moves_as_scipy_solves_the_equations_of_the_surface():
    """RBDA-11.8-NORMAL, RBDA-11.8-EXTEND: with surfaces that are back at once, to first order in the step."""
    K, D, m, h0 = 2e4, 20.0, 1.0, 0.05

    def rates(_, y):
        p, v = y
        return [v, (max(0.0, -K * p - D * v) / m if p < 0.0 else 0.0) - G]

    exact = solve_ivp(rates, (0.0, 0.25), [h0, 0.0], rtol=1e-9, atol=1e-12, max_step=1e-4).y[:, -1]
    errors = []
    for dt in (1e-4, 2.5e-5):
        found = moved(
            free_body(da.shapes.Sphere(R), m),
            [0.0, 0.0, R + h0, *UPRIGHT],
            np.zeros(6),
            steps=round(0.25 / dt),
            dt=dt,
            settings=Compliant(stiffness=K, damping=D),
        )
        errors.append(abs(found.q[0, -1, 2] - R - exact[0]))
    assert exact[0] > 0.01
    assert errors[1] < 1e-3
    assert errors[1] < 0.4 * errors[0]


@pytest.mark.parametrize("mu", [0.3, 0.8])
def test_a_box_on_an_incline_sticks_or_slides(mu):
    """RBDA-11.8-COULOMB: with steps of 5 ms."""
    for share in (0.95, 1.1, 1.5):
        slope = np.arctan(mu * share)
        model = free_body(CUBE, 2.0, slope=slope, friction=mu)
        found = moved(model, [0.0, 0.0, R, *UPRIGHT], np.zeros(6), steps=200, dt=0.005)
        if share < 1.0:
            assert abs(found.q[0, -1, 0]) < 2e-3
            assert np.abs(found.v[0, -1]).max() < 1e-6
        else:
            pull = G * (np.sin(slope) - mu * np.cos(slope))
            assert found.v[0, -1, 3] - found.v[0, 99, 3] == pytest.approx(
                pull * 0.5, abs=0.003 * mu * G * 0.5
            )
        weight = 2.0 * G * np.cos(slope)
        assert found.force[0, -1, :, 2].sum() == pytest.approx(weight, rel=1e-3)


def test_a_sliding_box_slows_by_mu_g():
    """RBDA-11.8-COULOMB"""
    model = free_body(CUBE, 2.0, friction=0.4)
    found = moved(model, [0.0, 0.0, R, *UPRIGHT], [0.0, 0.0, 0.0, 2.0, 0.0, 0.0], steps=200, dt=0.005)
    speed = found.v[0, :, 3]
    assert speed[19] - speed[59] == pytest.approx(0.4 * G * 0.2, rel=0.01)
    assert abs(speed[-1]) < 1e-4


@pytest.mark.parametrize(("mu", "settings"), [
    (0.0, None), (0.6, None), (1.0, None),
    (0.6, Compliant(stiffness=2e3, damping=2.0)),
    (0.6, Compliant(stiffness=1e6, damping=1e4)),
])  # fmt: skip
def test_thrown_boxes_are_never_pulled_nor_given_energy(mu, settings):
    """RBDA-11.8-NORMAL, RBDA-11.8-COULOMB: 400 throws with steps of 5 ms."""
    rng, n, dt = np.random.default_rng(0), 400, 0.005
    shape = da.shapes.Box((0.4, 0.3, 0.2))
    model = free_body(shape, 2.0, friction=mu)
    q = np.zeros((n, 7))
    q[:, 2] = rng.uniform(0.27, 0.6, n)
    q[:, 3:] = rng.normal(size=(n, 4))
    q[:, 3:] /= np.linalg.norm(q[:, 3:], axis=1)[:, None]
    v = np.concatenate([5.0 * rng.normal(size=(n, 3)), 2.0 * rng.normal(size=(n, 3))], axis=1)
    found = moved(model, q, v, steps=300, dt=dt, settings=settings)
    assert np.isfinite(found.q).all()
    normal, across = found.force[..., 2], np.linalg.norm(found.force[..., :2], axis=-1)
    assert normal.min() >= 0.0
    assert (across - mu * normal).max() < 1e-9 * normal.max()
    assert (normal.max(axis=(1, 2)) > 0.0).all()
    energy = da.dynamics.kinetic_energy(model, found.q, found.v) + da.dynamics.potential_energy(
        model, found.q
    )
    start = da.dynamics.kinetic_energy(model, q, v) + da.dynamics.potential_energy(model, q)
    rounding = 2.0 * G * dt * np.abs(v[:, 3:]).max()
    assert (energy.max(axis=1) - start).max() < rounding


def test_no_stiffness_limits_the_step():
    """RBDA-11.8-EXTEND: surfaces a million times stiffer than those which explicit steps of 5 ms bear."""
    for stiffness in (1e5, 1e8, 1e11):
        model = free_body(CUBE, 2.0, friction=0.8)
        found = moved(
            model,
            [0.0, 0.0, R + 0.2, *UPRIGHT],
            [0.0, 0.0, 0.0, 0.3, 0.0, 0.0],
            steps=300,
            dt=0.005,
            settings=Compliant(stiffness=stiffness),
        )
        assert np.abs(found.v[0, -1]).max() < 1e-3
        assert found.force[0, -1, :, 2].sum() == pytest.approx(2.0 * G, rel=1e-3)
        assert found.gap[0, -1].min() > -1e-3


def test_colliding_balls_keep_their_momentum():
    """RBDA-11.8-EXTEND: two moving bodies."""
    builder = da.ModelBuilder(gravity=(0.0, 0.0, 0.0))
    for name, mass in (("a", 1.0), ("b", 3.0)):
        builder.add_body(name, "world", da.Free(), inertia=da.shapes.Sphere(R).inertia(mass=mass))
        builder.add_shape(name, da.shapes.Sphere(R, friction=(0.4, 0.0, 0.0)))
    model = builder.build()
    rng, n = np.random.default_rng(1), 50
    q = np.tile([0.0, 0.0, 0.0, *UPRIGHT, 0.3, 0.05, 0.02, *UPRIGHT], (n, 1))
    v = 2.0 * rng.normal(size=(n, 12))
    v[:, 3], v[:, 9] = 2.0, -1.0
    v[:, [4, 5, 10, 11]] *= 0.1
    found = moved(model, q, v, steps=100, dt=0.005)
    assert (np.abs(found.force).max(axis=(1, 2, 3)) > 0.0).sum() > 40

    def momentum(q, v):
        return np.concatenate(
            [da.dynamics.centroidal_momentum(model, q, v), da.dynamics.center_of_mass(model, q)], axis=-1
        )

    before, after = momentum(q, v), momentum(found.q[:, -1], found.v[:, -1])
    np.testing.assert_allclose(after[:, 3:6], before[:, 3:6], atol=1e-10)
    np.testing.assert_allclose(after[:, :3], before[:, :3], atol=0.03)


def test_a_humanoid_of_75_kg_stands_with_steps_of_5_ms():
    """RBDA-11.8-NORMAL: on its feet for three seconds, never 5 mm in the ground, its weight on it."""
    model = da.models.humanoid().with_ground(friction=1.0)
    rest = np.array([x for body in model.bodies for x in body.joint.neutral()])
    points = contact_points(forward_kinematics(model, rest.tolist()), pairs_of(model, only=["world"]))
    rest[2] -= min(point.point.gap for point in points)
    found = moved(
        model,
        np.tile(rest, (8, 1)),
        0.02 * np.random.default_rng(0).normal(size=(8, model.nv)),
        steps=600,
        dt=0.005,
        gains=(2000.0, 200.0),
        only=[
            ("world", "left_foot"),
            ("world", "right_foot"),
            ("world", "left_toes"),
            ("world", "right_toes"),
        ],
    )
    assert np.abs(found.q[:, :, 2] - rest[2]).max() < 0.02
    assert found.gap.min() > -0.005
    assert found.force[:, -1, :, 2].sum(axis=1) == pytest.approx(75.0 * G, rel=0.05)


def test_impulses_are_shortened_just_as_far_as_energy_asks():
    """The work b s + a s^2 / 2 of the share s is the bound where all of them would do more, with s below one;
    else s is one."""
    rng = np.random.default_rng(4)
    shortened = 0
    for a, b, bound in zip(
        rng.uniform(0.1, 3.0, 200), rng.normal(size=200), rng.uniform(0.0, 1.0, 200), strict=True
    ):
        s = passive_fraction(a, b, bound)
        if b + 0.5 * a > bound:
            assert 0.0 <= s < 1.0
            assert b * s + 0.5 * a * s * s == pytest.approx(bound, rel=1e-9, abs=1e-12)
            shortened += 1
        else:
            assert s == 1.0
    assert 50 < shortened < 150


def test_bad_values_are_refused():
    for name in ("stiffness", "damping", "friction_stiffness", "friction_damping"):
        for bad in (0.0, -1.0, np.nan, np.inf):
            with pytest.raises(ArgumentError, match=f"Compliant: {name}"):
                da.contact.Compliant(**{name: bad})
    model = free_body(CUBE, 1.0)
    points = contact_points(forward_kinematics(model, [0.0, 0.0, R, *UPRIGHT]), pairs_of(model))
    with pytest.raises(ShapeError, match="memory of 1"):
        step_compliant(model, [0.0, 0.0, R, *UPRIGHT], [0.0] * 6, [0.0] * 6, 0.01, points, memory=[[0.0] * 4])


def test_rollouts_take_compliant_contact():
    """RBDA-11.8-COULOMB: the same steps, with forces and work of contact on record."""
    model = free_body(CUBE, 2.0, friction=0.4)
    q, v = np.array([0.0, 0.0, R, *UPRIGHT]), np.array([0.0, 0.0, 0.0, 2.0, 0.0, 0.0])
    law = da.contact.Compliant(stiffness=1e4, damping=100.0)
    found = da.rollout(model, q, v, steps=200, dt=0.005, contact=law, observe="contact_work")
    same = moved(model, q, v, steps=200, dt=0.005, settings=law.settings)
    np.testing.assert_allclose(found.q[1:], same.q[0], atol=1e-12)
    np.testing.assert_allclose(found.contacts.force, same.force[0], atol=1e-9)
    energy = da.dynamics.kinetic_energy(model, found.q, found.v) + da.dynamics.potential_energy(
        model, found.q
    )
    falling = 200 * 0.5 * 2.0 * (G * 0.005) ** 2  # what gravity gives in each step, and contact takes again
    lost = energy[0] - energy[-1] + falling
    assert found.observed["contact_work"][-1] == pytest.approx(-lost, abs=0.005 * lost)
    soft = da.rollout(model, q, v, steps=5, dt=0.005, contact="compliant")
    assert soft.contacts.force[-1, :, 2].sum() > 0.0


@pytest.mark.parametrize("depth", [0.06, 0.15, 1.0])
@pytest.mark.parametrize("shape", [CUBE, da.shapes.Sphere(R)], ids=["box", "ball"])
def test_an_overlap_at_the_start_is_let_go_slowly(shape, depth):
    """Springs pressed in by metres would throw a body up by many times that."""
    model = free_body(shape, 2.0)
    q = np.array([0.0, 0.0, R - depth, *UPRIGHT])
    with pytest.warns(RuntimeWarning, match="overlap at the start"):
        found = da.rollout(model, q, np.zeros(6), steps=3000, dt=0.002, contact="compliant")
    assert np.abs(found.v[:, 5]).max() < 1.5
    assert found.q[:, 2].max() < R + 0.1
    assert found.q[-1, 2] == pytest.approx(R, abs=2e-3)
    assert found.contacts.force[-1, :, 2].sum() == pytest.approx(2.0 * G, rel=1e-3)


def test_soft_surfaces_carry_from_the_start_what_rests_in_them():
    model = free_body(CUBE, 2.0)
    law = da.contact.Compliant(stiffness=100.0, damping=20.0)
    q = np.array([0.0, 0.0, R - 2.0 * G / 400.0, *UPRIGHT])  # 49 mm deep
    with pytest.warns(RuntimeWarning, match="overlap at the start"):
        found = da.rollout(model, q, np.zeros(6), steps=500, dt=0.002, contact=law)
    np.testing.assert_allclose(found.q[:, 2], q[2], atol=1e-6)


@pytest.mark.parametrize("start", [2.0, -2.0])
def test_joints_beyond_their_limits_come_back_without_a_push(start):
    builder = da.ModelBuilder(gravity=(0.0, 0.0, 0.0))
    bar = da.RigidInertia(1.0, (0.5, 0.0, 0.0), (0.01, 0.1, 0.1))
    builder.add_body("bar", "world", da.Revolute((0, 1, 0)), inertia=bar, limits=(-1.0, 0.5))
    found = da.rollout(builder.build(), [start], [0.0], steps=200, dt=0.002, contact="compliant")
    assert found.q[-1, 0] == pytest.approx(0.5 if start > 0.0 else -1.0, abs=1e-3)
    assert np.abs(found.v).max() < 1e-6


@pytest.mark.parametrize("dt", [0.002, 0.005])
def test_friction_of_a_sliding_box_is_mu_times_the_normal_force_until_it_stops(dt: float) -> None:
    """TOD-CONTACT: friction was 2.4 % too small as the slip fell to the change of speed of a few steps."""
    mu, speed = 0.3, 0.6
    builder, cube = da.ModelBuilder(), da.shapes.Box((0.2, 0.2, 0.1))
    builder.add_body("box", joint=da.Free(), inertia=cube.inertia(mass=2.0), shapes=[cube])
    model = builder.build().with_ground(friction=mu)
    q, v = [0.0, 0.0, 0.05 - 0.25e-3, *UPRIGHT], [0.0, 0.0, 0.0, speed, 0.0, 0.0]
    stop = speed / (mu * 9.81)
    found = da.rollout(model, q, v, steps=round(0.9 * stop / dt), dt=dt, contact="compliant")
    force = found.contacts.force.sum(axis=1)
    part = found.time[1:] > 0.3 * stop
    np.testing.assert_allclose(-force[part, 0] / force[part, 2], mu, rtol=2e-3)
