"""Contact by laws of surfaces in rollouts: section 11.8 of Featherstone 2008, and laws of the caller's."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import dalembert as da
from dalembert.contact import Hertz, Law, LinearSurface, SeriesSpring, Surface, TwoSurfaces
from dalembert.contact.pairs import contact_points, pairs_of
from dalembert.errors import ArgumentError, DtypeError, ShapeError
from dalembert.scalar import maximum, select

G = 9.81
PATCH = {"friction_stiffness": 2e4, "friction_damping": 200.0}


def ball(mass=0.5, gravity=G, mu=0.5, joint=None):
    shape = da.shapes.Sphere(0.1)
    builder = da.ModelBuilder(gravity=(0.0, 0.0, -gravity))
    joint = da.Prismatic((0, 0, 1)) if joint is None else joint
    builder.add_body("ball", joint=joint, inertia=shape.inertia(mass=mass), shapes=[shape])
    return builder.build().with_ground(friction=mu)


@pytest.mark.parametrize("implicit", [False, True])
def test_a_ball_rebounds_by_hertz_and_hunt_crossley(implicit):
    """T = 2.9432 d / v, d = (5 m v^2 / 4 K)^(2/5); ln (1 + c v)/(1 - c v') = c (v + v')."""
    m, K, v = 0.5, 2e7, 1.0
    model, dt = ball(m, gravity=0.0), 1e-6
    found = {}
    for c in (1e-9, 0.3):
        law = Law(normal=Hertz(stiffness=K, dissipation=c), implicit=implicit, **PATCH)
        moved = da.rollout(model, [0.1 + 1e-7], [-v], steps=4000, dt=dt, contact=law)
        force = moved.contacts.force[:, 0, 2]
        found[c] = moved.v[-1, 0], np.count_nonzero(force > 0.0) * dt, (0.1 - moved.q[:, 0]).max()
    depth = (1.25 * m * v * v / K) ** 0.4
    assert found[1e-9][0] == pytest.approx(v, rel=2e-3)
    assert found[1e-9][1] == pytest.approx(2.94327 * depth / v, rel=5e-3)
    assert found[1e-9][2] == pytest.approx(depth, rel=2e-3)
    c, out = 0.3, found[0.3][0]
    assert 0.5 < out < 0.95
    assert np.log((1.0 + c * v) / (1.0 - c * out)) == pytest.approx(c * (v + out), rel=2e-3)


def linear(p, rate):
    return select(p < 0.0, maximum(-3e4 * p - 40.0 * rate, 0.0), 0.0)


@pytest.mark.parametrize("implicit", [False, True])
def test_an_own_law_of_a_linear_spring_equals_the_surface_of_the_book(implicit):
    """The same numbers, from a function and from `LinearSurface`, for a ball that bounces and rolls."""
    model = ball(joint=da.Free())
    q, v = model.neutral(), np.array([0.0, 3.0, 0.0, 0.5, 0.0, 0.0])
    q[2] = 0.15
    own = Law(normal=linear, implicit=implicit, **PATCH)
    book = Law(normal=LinearSurface(3e4, 40.0), implicit=implicit, **PATCH)
    a, b = (da.rollout(model, q, v, steps=1500, dt=2e-4, contact=law) for law in (own, book))
    assert a.contacts.force[..., 2].max() > 100.0
    assert np.abs(a.contacts.force[..., 0]).max() > 1.0
    np.testing.assert_allclose(a.q, b.q, rtol=0, atol=1e-12)
    np.testing.assert_allclose(a.v, b.v, rtol=0, atol=1e-10)


def test_explicit_steps_equal_forces_and_patches_computed_one_by_one():
    """`compliant_forces` and `patches_after` in a loop of `da.step` move the ball alike."""
    model, dt = ball(joint=da.Free()), 2e-4
    q, v = model.neutral(), np.array([0.0, 3.0, 0.0, 0.5, 0.1, 0.0])
    q[2] = 0.101
    surface = LinearSurface(3e4, 40.0)
    law = da.contact.CompliantLaw(surface, **PATCH)
    moved = da.rollout(model, q, v, steps=300, dt=dt, contact=Law(normal=surface, implicit=False, **PATCH))
    pairs, states = pairs_of(model), None
    for k in range(300):
        np.testing.assert_allclose(moved.q[k], q, rtol=0, atol=1e-11)
        poses = da.algorithms.forward_kinematics(model, list(q))
        points = contact_points(poses, pairs)
        own = da.algorithms.body_velocities(model, list(q), list(v))
        world = type(own)([X.inverse_apply(u) for X, u in zip(poses, own, strict=True)])
        states = da.contact.patches_at_rest(points, law) if states is None else states
        forces = da.contact.compliant_forces(points, world, states, law)
        states = da.contact.patches_after(points, world, states, law, dt)
        push = np.array([f.to_list() for f in forces.bodies], float)
        q, v = da.step(model, q, v, np.zeros(6), dt, external_forces=push, external_frame="world")
        if not push.any():  # in flight the centre moves by the mean of its velocities
            q[2] += 0.5 * G * dt * dt
    assert np.abs(moved.contacts.force[..., 0]).max() > 1.0


@pytest.mark.parametrize(
    ("surface", "stiffness"),
    [
        (LinearSurface(2e4, 400.0), 2e4),
        (SeriesSpring(3e4, 300.0, 6e4), 2e4),
        (TwoSurfaces(LinearSurface(3e4, 300.0), LinearSurface(6e4, 600.0)), 2e4),
    ],
)
@pytest.mark.parametrize("implicit", [False, True])
def test_a_ball_comes_to_rest_as_deep_as_its_springs_say(surface, stiffness, implicit):
    model = ball()
    law = Law(normal=surface, implicit=implicit, **PATCH)
    moved = da.rollout(model, [0.12], [0.0], steps=8000, dt=2.5e-4, contact=law, record_contacts=False)
    assert moved.q[-1, 0] == pytest.approx(0.1 - 0.5 * G / stiffness, abs=2e-8)
    assert abs(moved.v[-1, 0]) < 1e-6


@pytest.mark.parametrize("implicit", [False, True])
def test_a_box_on_an_own_law_slides_at_mu_g(implicit):
    mu, size = 0.3, (0.4, 0.3, 0.1)
    cube = da.shapes.Box(size)
    builder = da.ModelBuilder(gravity=(0.0, 0.0, -G))
    builder.add_body("box", joint=da.Free(), inertia=cube.inertia(mass=4.0), shapes=[cube])
    model = builder.build().with_ground(friction=mu)
    q, v = model.neutral(), np.zeros(6)
    q[2], v[3] = 0.05 - 4.0 * G / (4.0 * 3e4), 2.0
    law = Law(normal=linear, implicit=implicit, **PATCH)
    moved = da.rollout(model, q, v, steps=1500, dt=2e-4, contact=law)
    np.testing.assert_allclose(moved.v[:, 3], 2.0 - mu * G * moved.time, rtol=0, atol=0.02)
    assert moved.q[-1, 0] == pytest.approx(2.0 * 0.3 - 0.5 * mu * G * 0.09, rel=2e-3)


def test_an_implicit_law_stands_where_an_explicit_one_blows_up():
    """K h^2 / m = 500: far beyond the limit of 4 of an explicit spring."""
    model = ball()
    stiff = lambda p, rate: select(p < 0.0, maximum(-1e7 * p - 100.0 * rate, 0.0), 0.0)
    options = {"steps": 400, "dt": 0.005}
    implicit = da.rollout(model, [0.12], [0.0], contact=Law(normal=stiff, **PATCH), **options)
    assert implicit.q[-1, 0] == pytest.approx(0.1 - 0.5 * G / 1e7, abs=1e-7)
    assert implicit.q[:, 0].max() < 0.121
    explicit = da.rollout(model, [0.12], [0.0], contact=Law(normal=stiff, implicit=False, **PATCH), **options)
    assert explicit.q[:, 0].max() > 0.2


@dataclass(frozen=True)
class Putty(Surface):
    """A surface that stays where it was pressed to: f = K (z - p), z the deepest position so far."""

    stiffness: float = 2e4

    def force(self, z, p, p_rate):
        return maximum(self.stiffness * (z[0] - p), 0.0)

    def rate(self, z, p, p_rate):
        return [0.0]

    def after(self, z, p, p_rate, dt):
        yields = maximum(-0.5 * p_rate * dt, 0.0)
        return [select(p < z[0], z[0] - yields, z[0])]


def test_an_own_surface_has_states_that_points_keep():
    """Putty takes the energy of a fall: the ball does not rebound as from its spring alone."""
    model = ball()
    law, spring = Law(normal=Putty(), **PATCH), Law(normal=lambda p, rate: maximum(-2e4 * p, 0.0), **PATCH)
    putty, bounced = (da.rollout(model, [0.2], [0.0], steps=3000, dt=1e-4, contact=x) for x in (law, spring))
    assert bounced.v[:, 0].max() > 1.3
    assert putty.v[:, 0].max() < 0.8 * bounced.v[:, 0].max()


def test_a_batch_equals_its_samples_and_laws_compile_anew_when_they_change():
    model = ball()
    number = {"K": 2e4}
    law = Law(normal=lambda p, rate: maximum(-number["K"] * p, 0.0), **PATCH)
    starts = np.linspace(0.1, 0.2, 5)[:, None]
    batch = da.rollout(model, starts, np.zeros((5, 1)), steps=200, dt=1e-3, contact=law)
    for k in range(5):
        alone = da.rollout(model, starts[k], [0.0], steps=200, dt=1e-3, contact=law)
        np.testing.assert_array_equal(batch.q[k], alone.q)
    number["K"] = 4e4
    stiffer = da.rollout(model, starts, np.zeros((5, 1)), steps=200, dt=1e-3, contact=law)
    assert not np.array_equal(batch.q, stiffer.q)


def test_bad_laws_are_refused_in_words():
    with pytest.raises(DtypeError, match="give a surface"):
        Law(normal=3.0, **PATCH)
    with pytest.raises(ArgumentError, match="friction_damping"):
        Law(normal=linear, friction_stiffness=1.0, friction_damping=0.0)
    with pytest.raises(DtypeError, match="implicit"):
        Law(normal=linear, implicit=2, **PATCH)
    model = ball()
    with pytest.raises(DtypeError, match="return one number"):
        da.rollout(model, [0.1], [0.0], steps=1, contact=Law(normal=lambda p, rate: [p, rate], **PATCH))

    class Wrong(Putty):
        def after(self, z, p, p_rate, dt):
            return [z[0], z[0]]

    with pytest.raises(ShapeError, match="2 states after a step, and order 1"):
        da.rollout(model, [0.1], [0.0], steps=1, contact=Law(normal=Wrong(), **PATCH))
