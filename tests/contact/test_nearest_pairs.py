"""Many pairs of moving bodies: the nearest points are found, and a step with them is that with all points."""

from __future__ import annotations

import numpy as np
import pytest

import dalembert as da
from dalembert.algorithms.kinematics import forward_kinematics
from dalembert.contact import broad_phase as selection
from dalembert.contact import broad_phase as standing_pairs
from dalembert.contact.active_contacts import RuntimeBodies, joint_axes
from dalembert.contact.broad_phase import bounding_volume, capsule_gap, selection_of
from dalembert.contact.costs import Point
from dalembert.contact.narrow_phase import nearest_point, point_count
from dalembert.contact.narrow_phase.forms import BoxForm
from dalembert.contact.newton import solve_newton_system
from dalembert.contact.tree_system import TreeSystem
from dalembert.contact.pairs import contact_points, pairs_of
from dalembert.errors import ArgumentError
from dalembert.model.shapes import Ellipsoid
from dalembert.simulation import SimulationWarning
from dalembert.spatial import SymMat3, Transform, Vec3

SHAPES = (
    da.shapes.Sphere(0.1),
    da.shapes.Capsule(0.05, 0.4),
    da.shapes.Box((0.1, 0.3, 0.2)),
    Ellipsoid((0.12, 0.05, 0.2)),
)


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


def swinging(model: da.Model, count: int, seed: int):
    """States in which nothing touches yet, and limbs swing inwards."""
    rng = np.random.default_rng(seed)
    q, v = np.tile(model.neutral(), (count, 1)), rng.normal(size=(count, model.nv))
    q[:, 2] = 0.9
    for name, outward in (("north", 1.0), ("south", -1.0), ("east", -1.0)):
        hand = model.body(name)
        q[:, hand.q_slice] = outward * rng.uniform(0.3, 0.6, (count, 1))
        v[:, hand.v_slice] = -outward * rng.uniform(3.0, 8.0, (count, 1))
    return q, v


def gaps(candidates, count):
    return np.array([np.broadcast_to(item.point.gap, count) for item in candidates])


def test_nearest_points_are_the_nearest_of_all_points():
    """RBDA-11.6-SHAPES"""
    model, count = da.models.humanoid(), 30
    rng = np.random.default_rng(4)
    q = np.array([model.random_state(rng)[0] for _ in range(count)])
    for body in model.bodies:
        if body.nq == body.nv:
            q[:, body.q_slice] = rng.uniform(-0.7, 0.7, (count, body.nq))
    poses = forward_kinematics(model, list(q.T))
    pairs = pairs_of(model)
    chosen = selection_of(model, pairs)
    assert not chosen.always
    found, everything = chosen.points(poses, 0.005), contact_points(poses, pairs)
    ours, all_gaps = gaps(found.candidates, count), gaps(everything, count)
    least = np.sort(all_gaps, axis=0)[:12]
    near = least < 0.04
    assert near.sum() > 60
    assert (least < 0.0).sum() > 20
    np.testing.assert_array_equal(ours[near], least[near])
    assert (np.asarray(found.least_dropped_gap) >= 0.0).all()
    firsts = np.cumsum([0, *(point_count(pair.first.shape, pair.second.shape) for pair in pairs)])
    places = {id(pair): first for pair, first in zip(pairs, firsts)}
    for item, which, is_near in zip(found.candidates, found.point_ids, near):
        for k in np.flatnonzero(is_near):
            pair = chosen.groups[0].pairs[int(which[k]) // 8]
            same = everything[places[id(pair)] + int(which[k]) % 8].point
            for a, b in ((item.point.position, same.position), (item.point.normal, same.normal)):
                np.testing.assert_array_equal(
                    [np.broadcast_to(x, count)[k] for x in a], [np.broadcast_to(x, count)[k] for x in b]
                )


def test_capsules_around_shapes_are_never_farther_apart_than_these():
    """RBDA-11.6-SHAPES"""
    rng = np.random.default_rng(7)
    for a in SHAPES:
        for b in SHAPES:
            for _ in range(20):
                X_a, X_b = (
                    da.Transform.from_rotation_translation(
                        np.linalg.qr(rng.normal(size=(3, 3)))[0], 0.3 * rng.normal(size=3)
                    )
                    for _ in range(2)
                )
                true = float(nearest_point(a, X_a, b, X_b).gap)
                bound = float(capsule_gap(bounding_volume(a, X_a), bounding_volume(b, X_b)))
                assert bound <= true + 1e-9
                if isinstance(a, da.shapes.Sphere | da.shapes.Capsule) and isinstance(
                    b, da.shapes.Sphere | da.shapes.Capsule
                ):
                    assert bound == pytest.approx(true, abs=1e-12)


def test_conjugate_gradients_solve_what_the_whole_matrix_says():
    model, rng = figure(), np.random.default_rng(2)
    q = model.random_state(rng)[0]
    axes, A = joint_axes(model, q.tolist()), np.asarray(da.mass_matrix(model, q))
    still = [[0.0] * body.nv for body in model.bodies]
    system = TreeSystem.of(axes, still, (1.0 / np.diag(A)).tolist())
    bodies = ((1, 2), (2, 3), (3, 0), (1, 3))
    points, H = [], A.copy()
    for number in range(4):
        arm = Vec3(*rng.normal(size=3))
        rows = RuntimeBodies(float(number), bodies).rows(axes, arm)
        J = np.zeros((3, model.nv))
        for first, sign in zip(bodies[number], (-1.0, 1.0)):
            for places, s in axes.columns(-1, first):
                for place, ratio in places:
                    J[:, place] += sign * ratio * np.array((s.linear + s.angular.cross(arm)).to_list())
        root = rng.normal(size=(3, 3)) * 30.0
        G = root @ root.T
        H += J.T @ G @ J
        points.append((_point(rows), SymMat3(G[0, 0], G[1, 1], G[2, 2], G[0, 1], G[0, 2], G[1, 2])))
    b = rng.normal(size=model.nv)
    x = np.array(solve_newton_system(system, points, (), (), b.tolist(), 1e-12))
    np.testing.assert_allclose(H @ x, b, atol=1e-8)
    np.testing.assert_allclose(x, np.linalg.solve(H, b), atol=1e-8)


def _point(rows) -> Point:
    zero = Vec3.zero()
    return Point(-2, -2, zero, Vec3.unit(2), 0.0, 0.5, 1.0, 1.0, zero, rows)


@pytest.mark.parametrize("law", [da.contact.Rigid(tolerance=1e-7), da.contact.Compliant()])
def test_steps_with_the_nearest_points_are_steps_with_all(law, monkeypatch):
    """TOD-CONTACT"""
    model = figure().with_ground(friction=0.6)
    q, v = swinging(model, 16, 1)
    options = {"contact": law, "steps": 60, "dt": 0.004, "observe": ("contact_forces",)}
    every = da.rollout(model, q, v, **options)
    monkeypatch.setattr(selection, "MAX_ENUMERATED_POINTS", 0)
    nearest = da.rollout(model, q, v, **options)
    assert not nearest.failed.any()
    assert set(nearest.contacts.names) == set(every.contacts.names)
    inner = [names[0] != "ground" for names in every.contacts.names]
    assert (np.abs(every.contacts.force[:, :, inner]).max(axis=(1, 2, 3)) > 1.0).sum() > 8
    np.testing.assert_allclose(nearest.q, every.q, atol=1e-4)
    loads, forces = nearest.observed["contact_forces"], nearest.contacts.force
    onto = [names[0] == "ground" for names in nearest.contacts.names]
    np.testing.assert_allclose(loads[:, 1:].sum(axis=2), forces[:, :, onto].sum(axis=2), atol=1e-9)
    body = model.body("north").index
    np.testing.assert_allclose(loads[:, :, body], every.observed["contact_forces"][:, :, body], atol=0.5)


def test_parts_that_collide_push_each_other_alike_and_gain_no_energy(monkeypatch):
    """TOD-CONTACT"""
    monkeypatch.setattr(selection, "MAX_ENUMERATED_POINTS", 0)
    model = figure()
    q, v = swinging(model, 8, 3)
    observe = ("contact_forces", "contact_work")
    free = da.rollout(model, q, v, steps=100, dt=0.002, contact="rigid", observe=observe)
    assert (np.abs(free.contacts.force).max(axis=(1, 2, 3)) > 1.0).all()
    np.testing.assert_allclose(free.observed["contact_forces"].sum(axis=2), 0.0, atol=1e-9)
    work = np.diff(free.observed["contact_work"], axis=1)
    assert work.max() < 1e-12
    assert (work.min(axis=1) < -1e-3).all()


def stairs(figure: da.Model, count: int) -> da.Model:
    builder = da.ModelBuilder()
    builder.add_body("stairs", "world", da.Fixed())
    for k in range(count):
        builder.add_shape(
            "stairs", da.shapes.Box((0.9, 2.0, 0.17), placement=at(-0.3 * k, 0.0, 0.17 * (k + 0.5)))
        )
    return figure.attach(builder.build()).lumped().with_ground(friction=0.5)


def test_nearest_points_on_stairs_are_the_nearest_of_all_boxes():
    """RBDA-11.6-SHAPES"""
    count, rng = 25, np.random.default_rng(6)
    model = stairs(da.models.humanoid(), 7)
    q = np.array([model.random_state(rng)[0] for _ in range(count)])
    q[:, 0], q[:, 2] = rng.uniform(-1.5, 0.5, count), rng.uniform(0.3, 1.4, count)
    poses, pairs = forward_kinematics(model, list(q.T)), pairs_of(model, self_collision=False)
    chosen = selection_of(model, pairs)
    assert not chosen.always
    assert len(chosen.groups) == 21
    near = 0
    for group in chosen.groups:
        found = group.points(poses, 0.05)
        ours = gaps(found.candidates, count)
        least = np.sort(gaps(contact_points(poses, group.pairs), count), axis=0)[: group.count]
        # Beyond its four boxes a sample is reported, and what is far is not looked at.
        seen = (least < 0.04) & (np.asarray(found.least_dropped_gap) >= 0.0)
        np.testing.assert_array_equal(ours[seen], least[seen])
        assert {(item.first, item.second) for item in found.candidates} == {(-1, group.pairs[0].second.body)}
        near += seen.sum()
    assert near > 150


def test_steps_on_stairs_with_the_nearest_points_are_steps_with_all(monkeypatch):
    """TOD-CONTACT"""
    builder = da.ModelBuilder()
    builder.add_body("box", "world", da.Free(), inertia=da.shapes.Box((0.3, 0.2, 0.1)).inertia(mass=2.0))
    builder.add_shape("box", da.shapes.Box((0.3, 0.2, 0.1)))
    model = stairs(builder.build(), 3)
    q, v = np.tile(model.neutral(), (8, 1)), np.random.default_rng(8).normal(size=(8, 6))
    q[:, :3] = [-0.15, 0.0, 0.6]
    options = {"contact": da.contact.Rigid(tolerance=1e-7), "steps": 120, "dt": 0.004}
    every = da.rollout(model, q, v, **options)
    monkeypatch.setattr(selection, "MAX_ENUMERATED_WORLD_POINTS", 0)
    # All points that exist, for the sake of comparison.
    monkeypatch.setitem(standing_pairs.POINTS_PER_FORM, BoxForm, 20)
    nearest = da.rollout(model, q, v, **options)
    assert not nearest.failed.any()
    assert (np.abs(every.contacts.force).max(axis=(1, 2, 3)) > 1.0).all()
    np.testing.assert_allclose(nearest.q, every.q, atol=1e-4)


def test_a_sample_in_which_more_touches_than_is_looked_at_is_reported(monkeypatch):
    monkeypatch.setattr(selection, "MAX_ENUMERATED_POINTS", 0)
    model = figure()
    q, v = swinging(model, 2, 5)
    for name, inward in (("north", -0.6), ("south", 0.6), ("east", 0.6)):
        q[1, model.body(name).q_slice] = inward  # all of them meet below the trunk
    law = da.contact.Rigid(nearest=1)
    with pytest.warns(SimulationWarning):
        found = da.rollout(model, q, v, steps=5, dt=0.002, contact=law)
    assert found.failed_at.tolist() == [-1, 0]
    assert "`nearest`" in str(found.cause[1])
    with pytest.warns(SimulationWarning, match="overlap at the start"):
        found = da.rollout(model, q, v, steps=5, dt=0.002, contact=da.contact.Rigid(nearest=6))
    assert not found.failed.any()


@pytest.mark.parametrize("number", [0, -3, 2.5, True])
def test_nearest_must_be_a_whole_number(number):
    with pytest.raises(ArgumentError, match="nearest"):
        da.contact.Rigid(nearest=number)
