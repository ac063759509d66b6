"""Motions to look at: quick to make, and known in every picture."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import dalembert as da

SPEED = 2.0
"""Of the turning arm [rad/s]."""


def turning_arm(frames: int = 121) -> tuple[da.Model, np.ndarray, np.ndarray]:
    """An arm of one metre along x that turns about y at a constant rate for two seconds; a red ball at its
    end, above a plane at z = -1.5.
    """
    builder = da.ModelBuilder()
    builder.add_body(
        "arm",
        parent="world",
        joint=da.Revolute(axis=(0, 1, 0)),
        inertia=da.RigidInertia(2.0, (0.5, 0.0, 0.0), np.diag([0.01, 0.2, 0.2])),
        limits=da.Limits(-math.pi, math.pi),
    )
    builder.add_shape("arm", da.shapes.Capsule.between((0, 0, 0), (1, 0, 0), 0.05))
    end = da.Transform.from_rotation_translation(np.eye(3), (1.0, 0.0, 0.0))
    builder.add_shape("arm", da.shapes.Sphere(0.15, rgba=(1.0, 0.0, 0.0, 1.0), placement=end))
    model = builder.build().with_ground(-1.5)
    time = np.linspace(0.0, 2.0, frames)
    return model, time, SPEED * time[:, np.newaxis]


def bouncing_ball(steps: int = 400, **options: Any) -> da.Trajectory:
    """A ball of 2 kg that falls half a metre onto the ground, bounces and comes to rest, by `da.rollout`."""
    ball = da.shapes.Sphere(0.1, restitution=0.5, name="rubber")
    builder = da.ModelBuilder(gravity=(0.0, 0.0, -9.81))
    builder.add_body("ball", parent="world", joint=da.Free(), inertia=ball.inertia(mass=2.0))
    builder.add_shape("ball", ball)
    model = builder.build().with_ground()
    q = model.neutral()
    q[2] = 0.6
    return da.rollout(model, q, np.zeros(6), steps=steps, dt=0.005, contact="rigid", **options)
