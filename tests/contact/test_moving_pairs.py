"""Contact between moving bodies in steps: what is near by loops over pairs, remembered from step to step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dalembert as da
from dalembert.algorithms.kinematics import body_velocities, forward_kinematics
from dalembert.contact.collision import Scene
from dalembert.contact.contacts import listed_contacts, recall, remember
from dalembert.contact.costs import Point
from dalembert.contact.friction import PointHessian
from dalembert.contact.narrow_phase.candidates import Candidate, ContactPoint
from dalembert.contact.newton import solve_newton_system
from dalembert.contact.pairs import contact_points, pairs_of
from dalembert.contact.point_set import PointSet
from dalembert.contact.step import contact_step
from dalembert.contact.tree_system import TreeSystem, joint_axes
from dalembert.errors import ArgumentError
from dalembert.simulation import SimulationWarning
from dalembert.spatial import Transform, Vec3


def at(x: float, y: float, z: float) -> Transform:
    return da.Transform.from_rotation_translation(np.eye(3), [x, y, z])


def figure() -> da.Model:
    """A trunk with three limbs of different forms, which can touch each other."""
    builder = da.ModelBuilder()
    trunk = da.shapes.Capsule(0.1, 0.4)
    builder.add_body("trunk", "world", da.Free(), inertia=trunk.inertia(mass=10.0))
    builder.add_shape("trunk", trunk)
    hang = {"placement": at(0.0, 0.0, -0.25)}
    for name, x, y, form in (
        ("north", 0.0, 0.15, da.shapes.Capsule(0.05, 0.3, **hang)),
        ("south", 0.0, -0.15, da.shapes.Box((0.08, 0.1, 0.3), **hang)),
        ("east", 0.15, 0.0, da.shapes.Capsule(0.06, 0.25, **hang)),
    ):
        axis, inertia = (1, 0, 0) if x == 0.0 else (0, 1, 0), form.inertia(mass=1.0)
        builder.add_body(name, "trunk", da.Revolute(axis), placement=at(x, y, 0.0), inertia=inertia)
        builder.add_shape(name, form)
    return builder.build()


def swinging(model: da.Model, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """States in which nothing touches yet, and limbs swing inwards."""
    rng = np.random.default_rng(seed)
    q, v = np.tile(model.neutral(), (count, 1)), rng.normal(size=(count, model.nv))
    q[:, 2] = 0.9
    for name, outward in (("north", 1.0), ("south", -1.0), ("east", -1.0)):
        hand = model.body(name)
        q[:, hand.q_slice] = outward * rng.uniform(0.3, 0.6, (count, 1))
        v[:, hand.v_slice] = -outward * rng.uniform(3.0, 8.0, (count, 1))
    return q, v


@pytest.mark.parametrize(
    "between",
    [
        [(1, 2), (2, 3), (3, 0), (1, 3)],
        [(-1, 2), (1, 2), (3, 0), (-1, 0)],
        [(1, 2)] * 4,
        [(1, 2), (2, 3)] * 3 + [(2, 1), (3, 0), (2, 1)],
        [(-1, 2), (1, 2), (3, 0), (1, 2), (-1, 0)] * 3,
    ],
)
def test_conjugate_gradients_solve_what_the_whole_matrix_says(between: list[tuple[int, int]]) -> None:
    """Also where pairs of bodies have several points, and are named in both orders."""
    model, rng = figure(), np.random.default_rng(2)
    q = model.random_state(rng)[0]
    axes, A = joint_axes(model, q.tolist()), np.asarray(da.mass_matrix(model, q))
    system = TreeSystem.of(axes, [[0.0] * body.nv for body in model.bodies], (1.0 / np.diag(A)).tolist())
    H, points, hessians, candidates = A.copy(), [], [], []
    for first, second in between:
        arm, n = Vec3(*rng.normal(size=3)), np.linalg.qr(rng.normal(size=(3, 3)))[0]
        J = np.zeros((3, model.nv))
        for body, sign in ((first, -1.0), (second, 1.0)):
            for places, s in axes.columns(-1, body) if body >= 0 else ():
                for place, ratio in places:
                    J[:, place] += sign * ratio * np.array((s.linear + s.angular.cross(arm)).to_list())
        normal, slip = Vec3(*n[0]), Vec3(*n[1])
        hessians.append(PointHessian(normal, 900.0 * rng.uniform(), slip, 400.0 * rng.uniform()))
        a, t, k_n, k_t = n[0], n[1], hessians[-1].k_n, hessians[-1].k_t
        H += J.T @ (k_n * np.outer(a, a) + k_t * (np.eye(3) - np.outer(a, a) - np.outer(t, t))) @ J
        points.append(Point(arm, normal, 0.0, 0.5, 1.0, 1.0, Vec3.zero()))
        candidates.append(Candidate(first, second, 0.5, 0.0, ContactPoint(arm, normal, 0.0)))
    contacts = listed_contacts(len(model.bodies), candidates, ())
    laws, given = contacts.every.stack(points), contacts.every.stack(hessians)
    chosen = PointSet.of(contacts, system, lambda row: laws[row])
    assert chosen.pairs is not None
    number = chosen.pairs.near.fold(lambda total, _: total + 1.0, 0.0)
    assert number == len({pair for pair in between if -1 not in pair})
    b = rng.normal(size=model.nv)
    found = solve_newton_system(system, chosen, lambda row: given[row], (), (), b.tolist(), 1e-12)
    np.testing.assert_allclose(H @ np.array(found.v), b, atol=1e-9)


@pytest.mark.parametrize("law", [da.contact.Rigid(tolerance=1e-8), da.contact.Compliant()])
def test_steps_with_near_points_are_steps_with_all(law: Any) -> None:
    """TOD-CONTACT"""
    model = figure().with_ground(friction=0.6)
    Q, V = swinging(model, 3, 1)
    Q[:, 2] = 0.5
    pairs = pairs_of(model)
    scene, dt, touched = Scene.of(model, pairs), 0.004, 0
    still, fresh = [0.0] * model.nv, [0.0] * 5
    for q, v in zip(Q.tolist(), V.tolist(), strict=True):
        other, memory = (q, v), [fresh] * scene.point_count
        kept = [[-1.0, *fresh]] * 40
        for _ in range(40):
            every = contact_points(forward_kinematics(model, other[0]), pairs)
            after = contact_step(model, *other, still, dt, every, memory=memory, settings=law)
            other, memory = (after.q, after.v), after.memory
            near = scene.contacts(forward_kinematics(model, q), body_velocities(model, q, v), dt, q)
            own = recall(near, kept, fresh, unless=False)
            mine = contact_step(model, q, v, still, dt, near, memory=own, settings=law)
            lasting = lambda row, values=mine.memory: sum(abs(x) for x in values[row]) > 0.0
            kept, count = remember(near, mine.memory, lasting, (40, len(fresh)), q)
            q, v = mine.q, mine.v
            touched += count
        np.testing.assert_allclose(q, other[0], atol=1e-6)
        np.testing.assert_allclose(v, other[1], atol=1e-4)
    assert touched > 50


def test_parts_that_collide_push_each_other_alike_and_gain_no_energy() -> None:
    """TOD-CONTACT"""
    model = figure()
    q, v = swinging(model, 8, 3)
    observe = ("contact_forces", "contact_work")
    free = da.rollout(model, q, v, steps=100, dt=0.002, contact="rigid", observe=observe)
    assert (np.abs(free.contacts.force).max(axis=(1, 2, 3)) > 1.0).all()
    np.testing.assert_allclose(free.observed["contact_forces"].sum(axis=2), 0.0, atol=1e-9)
    work = np.diff(free.observed["contact_work"], axis=1)
    assert work.max() < 1e-12
    assert (work.min(axis=1) < -1e-3).all()


@pytest.mark.parametrize("law", ["rigid", "compliant"])
def test_bits_of_a_sample_do_not_depend_on_what_touches_in_others(law: str) -> None:
    model = figure().with_ground(friction=0.6)
    q, v = swinging(model, 21, 4)
    q[:, 2] = np.linspace(0.3, 1.2, 21)
    whole = da.rollout(model, q, v, steps=80, dt=0.004, contact=law)
    order = np.random.default_rng(0).permutation(21)
    shuffled = da.rollout(model, q[order], v[order], steps=80, dt=0.004, contact=law)
    assert np.array_equal(whole.q[order], shuffled.q)
    alone = da.rollout(model, q[5], v[5], steps=80, dt=0.004, contact=law)
    assert np.array_equal(whole.q[5], alone.q)
    assert np.array_equal(whole.v[5], alone.v)


def test_a_sample_in_which_more_touches_than_is_remembered_is_reported() -> None:
    model = figure()
    q, v = swinging(model, 2, 5)
    for name, inward in (("north", -0.6), ("south", 0.6), ("east", 0.6)):
        q[1, model.body(name).q_slice] = inward  # all of them meet below the trunk
    with pytest.warns(SimulationWarning):
        found = da.rollout(model, q, v, steps=5, dt=0.002, contact=da.contact.Rigid(nearest=1))
    assert found.failed_at.tolist() == [-1, 0]
    assert "`nearest`" in str(found.cause[1])
    with pytest.warns(SimulationWarning, match="overlap at the start"):
        found = da.rollout(model, q, v, steps=5, dt=0.002, contact=da.contact.Rigid(nearest=16))
    assert not found.failed.any()


@pytest.mark.parametrize("number", [0, -3, 2.5, True])
def test_nearest_must_be_a_whole_number(number: Any) -> None:
    with pytest.raises(ArgumentError, match="nearest"):
        da.contact.Rigid(nearest=number)
