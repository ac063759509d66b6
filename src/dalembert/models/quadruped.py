"""A four-legged robot: a free trunk and twelve revolute joints."""

from __future__ import annotations

from dalembert.errors import own_errors
from dalembert.model.body import Limits
from dalembert.model.builder import ModelBuilder
from dalembert.model.joints import Free, Revolute
from dalembert.model.model import Model
from dalembert.model.shapes import Box, Capsule, Sphere
from dalembert.spatial import Mat3, Transform, Vec3

__all__ = ["quadruped"]

HIP = (0.19, 0.05)
"""Position of the hips on the trunk: forward and to the side [m]."""
OFFSET, THIGH, SHANK = 0.08, 0.21, 0.21
"""From the hip's axis out to the thigh, and the lengths of thigh and shank [m]."""


def _at(x: float, y: float, z: float) -> Transform:
    return Transform(Mat3.identity(), Vec3(x, y, z))


@own_errors
def quadruped() -> Model:
    """Return a quadruped of 12 kg, 0.42 m high at full stretch, x forward, y left; its feet are frames and
    spheres.

    Each leg: hip abduction about x, hip flexion about y, knee about y (negative: the shank folds back).
    Joints with motors: all but the free trunk.
    """
    builder = ModelBuilder(name="quadruped")
    trunk = Box((0.40, 0.20, 0.12))
    builder.add_body("trunk", "world", Free(), "root", inertia=trunk.inertia(mass=6.0), shapes=(trunk,))
    motors = []
    for name, front, left in (
        ("front_left", 1, 1),
        ("front_right", 1, -1),
        ("hind_left", -1, 1),
        ("hind_right", -1, -1),
    ):
        hip = Capsule.between((0.0, 0.0, 0.0), (0.0, left * OFFSET, 0.0), 0.04)
        thigh = Capsule.between((0.0, 0.0, 0.0), (0.0, 0.0, -THIGH), 0.025)
        shank = Capsule.between((0.0, 0.0, 0.0), (0.0, 0.0, -SHANK), 0.015)
        foot = Sphere(0.02, placement=_at(0.0, 0.0, -SHANK), friction=(1.0, 0.02, 0.0001))
        inward, outward = -0.8, 0.8
        builder.add_body(
            f"{name}_hip",
            "trunk",
            Revolute((1.0, 0.0, 0.0)),
            f"{name}_abduction",
            placement=_at(front * HIP[0], left * HIP[1], 0.0),
            inertia=hip.inertia(mass=0.55),
            limits=Limits(inward, outward, 30.0, 24.0),
            damping=0.05,
            armature=0.005,
            shapes=(hip,),
        )
        builder.add_body(
            f"{name}_thigh",
            f"{name}_hip",
            Revolute((0.0, 1.0, 0.0)),
            f"{name}_flexion",
            placement=_at(0.0, left * OFFSET, 0.0),
            inertia=thigh.inertia(mass=0.75),
            limits=Limits(-1.5, 3.4, 30.0, 24.0),
            damping=0.05,
            armature=0.005,
            shapes=(thigh,),
        )
        builder.add_body(
            f"{name}_shank",
            f"{name}_thigh",
            Revolute((0.0, 1.0, 0.0)),
            f"{name}_knee",
            placement=_at(0.0, 0.0, -THIGH),
            inertia=shank.inertia(mass=0.16) + foot.inertia(mass=0.04),
            limits=Limits(-2.7, 0.0, 30.0, 36.0),
            damping=0.05,
            armature=0.005,
            shapes=(shank, foot),
        )
        builder.add_frame(f"{name}_foot", f"{name}_shank", _at(0.0, 0.0, -SHANK))
        motors += [f"{name}_abduction", f"{name}_flexion", f"{name}_knee"]
    builder.set_actuated(motors)
    return builder.build()
