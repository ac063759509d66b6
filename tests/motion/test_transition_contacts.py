"""Transitions in contact, and those of linkages: loops stay closed, and the world carries."""

from __future__ import annotations

import numpy as np
import pytest
from tests.motion.reaching_figure import FIGURE, figure, hand_stays, states

import dalembert as da


def assert_moves_as_it_says(clip: da.motion.Clip) -> None:
    """v and a are the rates of q, by central differences."""
    model, dt = clip.model, clip.time[1] - clip.time[0]
    ahead, back = (da.difference(model, clip.q[1:-1], q) for q in (clip.q[2:], clip.q[:-2]))
    np.testing.assert_allclose((ahead - back) / (2 * dt), clip.v[1:-1], atol=3e-4)
    rate = (clip.v[2:] - clip.v[:-2]) / (2 * dt)
    np.testing.assert_allclose(rate, clip.a[1:-1], atol=2e-3 * np.abs(clip.a).max())


def test_a_frame_in_contact_stays_and_the_world_carries_it() -> None:
    """The forces are those of a fixed loop joint: with them, forward dynamics of the welded figure gives the
    motion back, and no force acts at the root."""
    q, turned = hand_stays()
    move = da.motion.transition(
        FIGURE, q, turned, 0.8, knots=6, contacts=["hand"], frame_time=0.002, iterations=300
    )
    assert move.converged
    assert np.all(np.diff(move.energies) <= 0.0)
    assert move.energies[-1] < 0.97 * move.energies[0]
    for k, given in ((0, q), (-1, turned)):
        assert np.abs(da.difference(FIGURE, move.clip.q[k], given)).max() < 1e-9
        assert np.abs(move.clip.v[k]).max() < 1e-9
    hand = da.forward_kinematics(FIGURE, move.clip.q)["hand"]
    assert move.loop_error < 1e-11
    assert np.abs(hand.translation - hand.translation[0]).max() < 1e-10
    assert np.abs(hand.rotation - hand.rotation[0]).max() < 1e-10
    assert np.abs(move.clip.q[:, :3] - q[:3]).max() > 0.05
    assert_moves_as_it_says(move.clip)
    assert np.abs(move.residual).max() == 0.0
    welded = figure(da.Transform.from_rotation_translation(hand.rotation[0], hand.translation[0]))
    a = da.forward_dynamics(welded, move.clip.q, move.clip.v, move.tau)
    np.testing.assert_allclose(a, move.clip.a, atol=1e-8)
    external = np.zeros((len(a), 3, 6))
    external[:, 2] = move.contact_forces[:, 0]
    tau = da.inverse_dynamics(FIGURE, move.clip.q, move.clip.v, a, external, external_frame="world")
    np.testing.assert_allclose(tau, move.tau, atol=1e-8)
    with pytest.raises(da.errors.StateError, match="one place"):
        da.motion.transition(FIGURE, *states(), 0.6, contacts=["hand"])


def test_a_point_in_contact_turns_and_what_it_cannot_carry_stays_with_the_root() -> None:
    q, turned = hand_stays()
    options = {"knots": 5, "contacts": {"hand": da.Spherical()}, "iterations": 60}
    cheap, dear = (
        da.motion.transition(FIGURE, q, turned, 0.8, root_weight=weight, **options) for weight in (0.01, 10.0)
    )
    for move in (cheap, dear):
        hand = da.forward_kinematics(FIGURE, move.clip.q)["hand"]
        assert np.abs(hand.translation - hand.translation[0]).max() < 1e-10
        moments = move.contact_forces[:, 0, :3] - np.cross(hand.translation, move.contact_forces[:, 0, 3:])
        assert np.abs(moments).max() < 1e-9 * np.abs(move.contact_forces).max()
        external = np.zeros((len(move.clip), 3, 6))
        external[:, 2] = move.contact_forces[:, 0]
        tau = da.inverse_dynamics(
            FIGURE, move.clip.q, move.clip.v, move.clip.a, external, external_frame="world"
        )
        np.testing.assert_allclose(tau, move.tau, atol=1e-8)
    assert np.abs(hand.rotation - hand.rotation[0]).max() > 1e-2
    assert 0.0 < np.abs(dear.residual).mean() < np.abs(cheap.residual).mean()


def test_a_fixed_root_keeps_its_path_with_contacts_too() -> None:
    q, turned = hand_stays()
    options = {"knots": 5, "fixed_root": True}
    alone = da.motion.transition(FIGURE, q, turned, 0.8, iterations=0, **options)
    move = da.motion.transition(FIGURE, q, turned, 0.8, contacts={"hand": da.Spherical()}, **options)
    assert move.converged
    np.testing.assert_allclose(move.clip.q[:, :7], alone.clip.q[:, :7], atol=1e-14)
    hand = da.forward_kinematics(FIGURE, move.clip.q)["hand"].translation
    assert np.abs(hand - hand[0]).max() < 1e-10
    external = np.zeros((len(move.clip), 3, 6))
    external[:, 2] = move.contact_forces[:, 0]
    tau = da.inverse_dynamics(FIGURE, move.clip.q, move.clip.v, move.clip.a, external, external_frame="world")
    np.testing.assert_allclose(tau, move.tau, atol=1e-8)
    with pytest.raises(da.errors.StateError, match="cannot be closed all the way"):
        da.motion.transition(FIGURE, q, turned, 0.8, contacts=["hand"], **options)


def test_a_linkage_moves_with_its_loop_closed() -> None:
    """Forces are those of the motor alone: with them, forward dynamics gives the motion back."""
    model = da.models.four_bar()
    q, end = da.constraints.close_loops(model, [[0.2, 0.0, 0.0], [2.2, -0.9, 0.3]], hold=["crank_pivot"])
    q, v = da.constraints.close_loops(model, q, [0.5, 0.0, 0.0], hold=["crank_pivot"])
    move = da.motion.transition(model, (q, v), end, 1.0, knots=8, frame_time=0.002, iterations=300)
    assert move.converged
    assert np.all(np.diff(move.energies) <= 0.0)
    assert move.energies[-1] < 0.9 * move.energies[0]
    assert np.abs(da.constraints.constraint_error(model, move.clip.q)).max() < 1e-11
    np.testing.assert_allclose(move.clip.q[[0, -1]], [q, end], atol=1e-9)
    np.testing.assert_allclose(move.clip.v[[0, -1]], [v, np.zeros(3)], atol=1e-9)
    assert_moves_as_it_says(move.clip)
    assert np.abs(move.tau[:, 1:]).max() == 0.0
    a = da.forward_dynamics(model, move.clip.q, move.clip.v, move.tau)
    np.testing.assert_allclose(a, move.clip.a, atol=1e-9)
    rocker = da.forward_kinematics(model, move.clip.q)["rocker"]
    pushes = da.constraints.loop_forces(model, move.clip.q, move.clip.v, move.tau)[:, 0, 3:]
    np.testing.assert_allclose(
        move.loop_forces[:, 0, 3:], np.einsum("tij,tj->ti", rocker.rotation, pushes), atol=1e-8
    )
    for wrong, message in (([0.3, 0.0, 0.0], '"rocker_pin" is open by'), ((q, [0.5, 0.0, 0.0]), "opens at")):
        with pytest.raises(da.errors.StateError, match=f"{message}.*close_loops"):
            da.motion.transition(model, wrong, end, 1.0)
    with pytest.raises(da.errors.StateError, match="opens with"):
        da.motion.transition(model, (q, v, [1.0, 0.0, 0.0]), end, 1.0)
    joined = da.motion.transition(model, move.clip, move.clip[0], 0.5, knots=6, iterations=5)
    np.testing.assert_allclose(joined.clip.a[0], move.clip.a[-1], atol=1e-8)


def test_a_humanoid_gets_up_on_both_feet() -> None:
    """Contact forces are the rate of momentum less gravity, all six components, momentum from q and v by
    differences; nothing acts at the root, feet stay, limits hold."""
    model = da.models.humanoid()

    def pose(bend: float) -> np.ndarray:
        q = model.neutral()
        for side in ("left", "right"):
            q[model.joint(f"{side}_hip").q_slice] = [-bend, 0.0, 0.0]
            q[model.joint(f"{side}_knee").q_slice] = 2.0 * bend
            q[model.joint(f"{side}_ankle").q_slice] = [-bend, 0.0]
        q[:3] -= da.forward_kinematics(model, q)["left_sole"].translation - [0.0, 0.09, 0.0]
        return q

    feet = ["left_sole", "right_sole"]
    crouching, standing = pose(0.7), pose(0.1)
    move = da.motion.transition(
        model,
        crouching,
        standing,
        0.6,
        knots=6,
        contacts=feet,
        smoothness=0.2,
        frame_time=0.002,
        tolerance=1e-3,
    )
    assert move.converged
    assert np.all(np.diff(move.energies) <= 0.0)
    assert move.energies[-1] < 0.9 * move.energies[0]
    clip = move.clip
    poses = da.forward_kinematics(model, clip.q)
    for foot in feet:
        assert np.abs(poses[foot].translation - poses[foot].translation[0]).max() < 1e-10
        assert np.abs(poses[foot].rotation - poses[foot].rotation[0]).max() < 1e-10
    for k, given in ((0, crouching), (-1, standing)):
        assert np.abs(da.difference(model, clip.q[k], given)).max() < 1e-9
        assert np.abs(clip.v[k]).max() < 1e-9
    assert np.abs(move.residual).max() == 0.0
    h = da.dynamics.centroidal_momentum(model, clip.q, clip.v)
    rate = (h[2:] - h[:-2]) / (clip.time[2:] - clip.time[:-2])[:, None]
    com = da.dynamics.center_of_mass(model, clip.q)
    total = move.contact_forces.sum(axis=1)
    moments, forces = total[1:-1, :3] - np.cross(com, total[:, 3:])[1:-1], total[1:-1, 3:]
    weight = model.total_mass * 9.81
    np.testing.assert_allclose(forces - [0.0, 0.0, weight], rate[:, 3:], atol=2e-3 * weight)
    np.testing.assert_allclose(moments, rate[:, :3], atol=2e-3 * weight)
    second = (com[2:] - 2.0 * com[1:-1] + com[:-2]) / (clip.time[1] - clip.time[0]) ** 2
    np.testing.assert_allclose(forces[:, 2], model.total_mass * (9.81 + second[:, 2]), atol=2e-3 * weight)
    assert forces[:, 2].max() > 1.1 * weight
    for body in model.bodies:
        own = clip.q[:, body.q_slice]
        if own.shape[1] == body.nv > 0:
            ends = own[[0, -1]]
            assert np.all(own >= np.minimum(body.limits.lower, ends.min(axis=0)) - 1e-3)
            assert np.all(own <= np.maximum(body.limits.upper, ends.max(axis=0)) + 1e-3)
