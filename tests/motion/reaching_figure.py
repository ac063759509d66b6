"""A small figure that reaches, and states between which it is to move."""

from __future__ import annotations

import numpy as np

import dalembert as da


def figure(grip: da.Transform | None = None) -> da.Model:
    """A floating trunk with an arm at a ball joint and a hinge; a grip welds the hand to the world there."""
    builder = da.ModelBuilder()
    rod = da.RigidInertia(1.5, (0.0, 0.0, -0.2), (0.03, 0.03, 0.004))
    at = da.Transform.from_rotation_translation(np.eye(3), (0.1, 0.2, 0.3))
    below = da.Transform.from_rotation_translation(np.eye(3), (0.0, 0.0, -0.4))
    trunk = da.RigidInertia(6.0, (0.0, 0.0, 0.1), (0.3, 0.2, 0.25))
    builder.add_body("trunk", "world", da.Free(), joint_name="root", inertia=trunk)
    builder.add_body("upper", "trunk", da.Spherical(), joint_name="shoulder", placement=at, inertia=rod)
    elbow = da.Limits(0.0, 2.0)
    builder.add_body(
        "lower",
        "upper",
        da.Revolute((0, -1, 0)),
        joint_name="elbow",
        placement=below,
        inertia=rod,
        limits=elbow,
    )
    builder.add_frame("hand", "lower", below)
    builder.set_actuated(["shoulder", "elbow"])
    if grip is not None:
        builder.add_loop("grip", "world", "lower", da.Fixed(), grip, below)
    return builder.build()


FIGURE = figure()


def states() -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(3)
    q = FIGURE.neutral()
    q[-1] = 0.3
    dq = 0.5 * rng.normal(size=FIGURE.nv)
    dq[-1] = 0.9
    return (q, 0.4 * rng.normal(size=FIGURE.nv)), (
        da.integrate(FIGURE, q, dq),
        0.4 * rng.normal(size=FIGURE.nv),
    )


def hand_stays() -> tuple[np.ndarray, np.ndarray]:
    """Two poses with the hand in one place: the trunk turns around it and is elsewhere."""
    q = FIGURE.neutral()
    q[-1] = 0.4
    turned = q.copy()
    turned[7:11] = [np.cos(0.3), 0.0, np.sin(0.3), 0.0]
    turned[3:7] = [np.cos(0.3), 0.0, -np.sin(0.3), 0.0]
    places = [da.forward_kinematics(FIGURE, x)["hand"] for x in (q, turned)]
    np.testing.assert_allclose(places[0].rotation, places[1].rotation, atol=1e-12)
    assert np.abs(places[0].translation - places[1].translation).max() > 0.05
    turned[:3] += places[0].translation - places[1].translation
    return q, turned
