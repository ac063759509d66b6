"""Steps with compliant contact give no energy that no spring holds, where limbs are hit hard or caught."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import dalembert as da
from dalembert.algorithms.kinematics import forward_kinematics
from dalembert.contact import compliant_step
from dalembert.contact.compliant_step import CompliantPoint, Patch, solve_compliant
from dalembert.contact.costs import Point
from dalembert.contact.friction import PointVector
from dalembert.contact.narrow_phase.candidates import Candidate, ContactPoint
from dalembert.contact.options import Compliant
from dalembert.contact.pairs import contact_points, pairs_of
from dalembert.contact.step import contact_step
from dalembert.spatial import Mat3, Transform, Vec3

G = 9.81
step_compliant = partial(contact_step, settings=Compliant())


def at(x: float, y: float, z: float) -> Transform:
    return Transform(Mat3.identity(), Vec3(x, y, z))


def trunk_with_arms() -> da.Model:
    """60 kg with two arms of 2, 1.2 and 0.5 kg, whose joints end at 1.6 rad."""
    builder = da.ModelBuilder()
    trunk, limb = da.shapes.Box((0.3, 0.2, 0.4)), da.shapes.Capsule(0.04, 0.15, placement=at(0.0, 0.0, -0.1))
    builder.add_body("trunk", "world", da.Free(), inertia=trunk.inertia(mass=60.0))
    builder.add_shape("trunk", trunk)
    for side, y in (("left", 0.15), ("right", -0.15)):
        parent, place = "trunk", at(0.0, y, 0.15)
        for k, mass in enumerate((2.0, 1.2, 0.5)):
            joint = da.Revolute((1, 0, 0) if k % 2 else (0, 1, 0))
            inertia, name = limb.inertia(mass=mass), f"{side}{k}"
            builder.add_body(
                name, parent, joint, placement=place, inertia=inertia, damping=0.05, limits=(-1.0, 1.6)
            )
            builder.add_shape(name, limb)
            parent, place = name, at(0.0, 0.0, -0.2)
    return builder.build().with_ground()


def test_limbs_that_a_falling_trunk_hits_gain_no_energy():
    """256 throws at 4 m/s with steps of 5 ms; the energies of springs, which stay below, are left out. Limbs
    that swing in flight gain up to 6e-4 of the energy."""
    model, n = trunk_with_arms(), 256
    rng = np.random.default_rng(0)
    q, v = np.tile(model.neutral(), (n, 1)), 2.0 * rng.normal(size=(n, model.nv))
    q[:, 2], v[:, 5] = 0.6, -4.0
    q[:, 3:7] = rng.normal(size=(n, 4))
    q[:, 3:7] /= np.linalg.norm(q[:, 3:7], axis=1)[:, None]
    for part in np.split(np.arange(n), 4):  # the contacts of all would take 300 MB
        found = da.rollout(model, q[part], v[part], steps=200, dt=0.005, contact="compliant")
        kinetic = da.dynamics.kinetic_energy(model, found.q, found.v)
        energy = kinetic + da.dynamics.potential_energy(model, found.q)
        rises = energy.max(axis=1) - energy[:, 0]
        assert not found.failed.any()
        assert (rises / energy[:, 0]).max() < 1e-3
        assert -found.contacts.gap.min() < 0.08


def test_contact_gives_no_more_than_springs_lose_whatever_is_cut(monkeypatch):
    """Work of contact and what springs gain, of limbs in the ground at random speeds, one step of 20 ms."""
    model, rng, sums = trunk_with_arms(), np.random.default_rng(1), []

    def watched(problem, v, surfaces):
        found, impulses = solve_compliant(problem, v, surfaces)
        places = range(len(problem.points.contacts.near.each(lambda row: 0.0).leaves()))
        gained = [sum(surfaces.at(k).spring_energy_gain(found.impulses.at(k))) for k in places]
        sums.append((found.work, sum(gained)))
        return found, impulses

    monkeypatch.setattr(compliant_step, "solve_compliant", watched)
    pairs = pairs_of(model)
    for _ in range(40):
        q, v = np.array(model.neutral()), 10.0 * rng.normal(size=model.nv)
        q[2], q[3:7], q[7:] = 0.25, rng.normal(size=4), rng.uniform(-0.9, 1.5, model.nq - 7)
        q[3:7] /= np.linalg.norm(q[3:7])
        points = contact_points(forward_kinematics(model, q.tolist()), pairs)
        memory = [[*rng.normal(size=3) * 0.01, 50.0, rng.uniform(0.0, 0.05)] for _ in points]
        step_compliant(model, q.tolist(), v.tolist(), [0.0] * model.nv, 0.02, points, memory=memory)
    work, gained = np.array(sums).T
    assert np.sum(np.abs(work) > 1.0) > 20
    assert (work + gained).max() < 1e-9


def ball_in_the_ground(depth: float, memory: list[float], *, speed: float = 0.0, steps: int = 1):
    """Velocities and memory of a ball of 2 kg with its centre 0.1 m - depth above the ground."""
    builder = da.ModelBuilder(gravity=(0.0, 0.0, -G))
    builder.add_body(
        "ball", "world", da.Prismatic((0, 0, 1)), inertia=da.shapes.Sphere(0.1).inertia(mass=2.0)
    )
    model, dt = builder.build(), 0.005
    q, v, row, seen = [0.1 - depth], [speed], memory, []
    for _ in range(steps):
        place = ContactPoint(Vec3(0.0, 0.0, 0.0), Vec3(0.0, 0.0, 1.0), q[0] - 0.1)
        points = [Candidate(-1, 0, 0.0, 0.0, place)]
        settings = Compliant(stiffness=2e4, damping=400.0)
        after = step_compliant(model, q, v, [0.0], dt, points, memory=[row], settings=settings)
        q, v, (row,) = after.q, after.v, after.memory
        seen.append((q[0], v[0], row[4]))
    return np.array(seen)


def test_a_body_found_deep_at_once_is_let_go_slowly():
    """Nothing has pressed its spring in: a spring at that depth would throw it up by a metre."""
    found = ball_in_the_ground(0.05, [0.0] * 5, steps=400)
    assert found[:, 1].max() < 0.3
    assert found[-1, 0] == pytest.approx(0.1 - 2.0 * G / 2e4, abs=1e-5)
    pressed = ball_in_the_ground(0.05, [0.0, 0.0, 0.0, 0.0, 0.05])
    assert pressed[0, 1] > 1.0


@pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
def test_what_springs_gain_is_a_square_of_the_share_of_the_impulse(share):
    """1/2 K (z+^2 - z^2) + 1/2 K_t (x+^2 - x^2) with Eqs (4) and (5) written out."""
    K, D, K_t, D_t, z, dt = 2e4, 400.0, 1e4, 150.0, 0.003, 0.005
    n, x = Vec3(0.0, 0.0, 1.0), Vec3(0.002, -0.001, 0.0)
    point = Point(Vec3.zero(), n, 0.0, 0.5, 1.0, 1.0, Vec3.zero())
    impulse = Vec3(0.2, 0.3, 0.9)
    surface = CompliantPoint(point, z, K, D, Patch(x, K_t, D_t, dt), 0.0)
    c = surface.spring_energy_gain(PointVector(impulse))
    z_after = (D * z + share * 0.9) / (D + dt * K)
    x_after = [(D_t * a - share * b) / (D_t + dt * K_t) for a, b in ((0.002, 0.2), (-0.001, 0.3))]
    gained = 0.5 * K * (z_after**2 - z**2) + 0.5 * K_t * (np.dot(x_after, x_after) - 5e-6)
    assert c[0] + c[1] * share + c[2] * share**2 == pytest.approx(gained, rel=1e-12)


def test_the_spring_is_pressed_in_as_deep_as_the_body_goes():
    """z+ = (D z + gamma) / (D + h K) is the depth after the step, for a body that lands and comes to rest."""
    found = ball_in_the_ground(-0.002, [0.0] * 5, speed=-1.0, steps=60)
    depth = np.maximum(0.1 - found[:, 0], 0.0)
    assert depth.max() > 3e-3
    np.testing.assert_allclose(found[:, 2], depth, atol=1e-12)
