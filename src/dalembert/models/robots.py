"""Robots: arms of six and seven joints, of human size and industrial mass, and a quadruped."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from dalembert.model import DHRow, Limits, Model, ModelBuilder, dh_placement
from dalembert.model.joints import Free, Revolute
from dalembert.model.shapes import Box, Capsule, Sphere
from dalembert.model.topology import WORLD_NAME
from dalembert.models.parts import at, check_arguments

QUARTER = math.pi / 2.0


class Link(NamedTuple):
    """One link: DH row, capsule (ends, radius [m]), mass [kg], limit [rad], speed [rad/s], effort [N m]."""

    name: str
    joint: str
    row: DHRow
    start: tuple[float, float, float]
    end: tuple[float, float, float]
    radius: float
    mass: float
    limit: float
    speed: float
    effort: float


ARM6 = (
    Link("turret", "waist", DHRow(0.0, 0.0, 0.40),
         (0.0, 0.0, -0.25), (0.08, 0.0, 0.0), 0.090, 12.0, 2.9, 3.0, 330.0),
    Link("upper_arm", "shoulder", DHRow(0.08, -QUARTER, 0.0),
         (0.0, 0.0, 0.0), (0.45, 0.0, 0.0), 0.075, 13.0, 2.0, 3.0, 330.0),
    Link("forearm", "elbow", DHRow(0.45, 0.0, 0.0),
         (0.0, 0.0, 0.0), (0.05, 0.18, 0.0), 0.060, 7.5, 2.5, 3.5, 150.0),
    Link("roll", "forearm_roll", DHRow(0.05, -QUARTER, 0.42),
         (0.0, 0.0, -0.21), (0.0, 0.0, -0.05), 0.050, 4.0, 3.1, 5.0, 60.0),
    Link("wrist", "wrist_bend", DHRow(0.0, QUARTER, 0.0),
         (0.0, -0.01, -0.03), (0.0, 0.01, 0.03), 0.045, 2.2, 2.1, 5.0, 60.0),
    Link("flange", "wrist_roll", DHRow(0.0, -QUARTER, 0.0),
         (0.0, 0.0, 0.05), (0.0, 0.0, 0.09), 0.035, 0.7, 6.2, 6.0, 30.0),
)  # fmt: skip

ARM7 = (
    Link("base_link", "shoulder_yaw", DHRow(0.0, 0.0, 0.34),
         (0.0, 0.0, -0.15), (0.0, 0.02, 0.0), 0.075, 5.0, 2.9, 1.7, 300.0),
    Link("shoulder_link", "shoulder_pitch", DHRow(0.0, -QUARTER, 0.0),
         (0.0, 0.0, 0.0), (0.0, -0.16, 0.02), 0.070, 5.5, 2.0, 1.7, 300.0),
    Link("upper_link", "shoulder_roll", DHRow(0.0, QUARTER, 0.40),
         (0.0, 0.02, -0.20), (0.0, 0.0, 0.0), 0.065, 4.0, 2.9, 1.7, 180.0),
    Link("elbow_link", "elbow", DHRow(0.0, QUARTER, 0.0),
         (0.0, 0.0, 0.0), (0.0, 0.16, 0.02), 0.060, 3.0, 2.0, 2.2, 180.0),
    Link("lower_link", "forearm_roll", DHRow(0.0, -QUARTER, 0.39),
         (0.0, 0.02, -0.20), (0.0, 0.0, 0.0), 0.055, 2.0, 2.9, 2.4, 110.0),
    Link("wrist_link", "wrist_pitch", DHRow(0.0, -QUARTER, 0.0),
         (0.0, 0.0, -0.02), (0.0, 0.03, 0.02), 0.050, 1.6, 2.0, 3.1, 40.0),
    Link("hand", "wrist_roll", DHRow(0.0, QUARTER, 0.0),
         (0.0, 0.0, 0.05), (0.0, 0.0, 0.10), 0.040, 0.6, 3.0, 3.1, 40.0),
)  # fmt: skip


@check_arguments
def arm6() -> Model:
    """Return a six-joint arm with a spherical wrist; reach about 1 m, 39 kg; frame "tool" at the flange."""
    return _arm("arm6", ARM6, tool=0.10)


@check_arguments
def arm7() -> Model:
    """Return a seven-joint arm with a spherical shoulder and wrist; frame "tool" at the hand."""
    return _arm("arm7", ARM7, tool=0.13, nested=[("lower_link", "hand")])


def _arm(name: str, links: Sequence[Link], tool: float, nested: Sequence[tuple[str, str]] = ()) -> Model:
    """Build an arm from its links; the `nested` pairs overlap within a wrist of several joints."""
    builder = ModelBuilder(name=name)
    for pair in nested:
        builder.exclude_contact(*pair)
    parent = WORLD_NAME
    for link in links:
        capsule = Capsule.between(link.start, link.end, link.radius)
        builder.add_body(
            link.name,
            parent,
            Revolute((0.0, 0.0, 1.0)),
            link.joint,
            placement=dh_placement(link.row).as_transform(),
            inertia=capsule.inertia(mass=link.mass),
            limits=Limits(-link.limit, link.limit, link.speed, link.effort),
            damping=0.01 * link.effort,
            shapes=(capsule,),
        )
        parent = link.name
    builder.add_frame("tool", parent, dh_placement(DHRow(0.0, 0.0, tool)).as_transform())
    return builder.build()


HIP = (0.19, 0.05)
"""Position of the hips on the trunk: forward and to the side [m]."""
OFFSET, THIGH, SHANK = 0.08, 0.21, 0.21
"""From the hip's axis out to the thigh, and the lengths of thigh and shank [m]."""


@check_arguments
def quadruped() -> Model:
    """Return a quadruped of 12 kg, 0.42 m high at full stretch, x forward, y left.

    Each leg: hip abduction about x, hip flexion about y, knee about y (negative: the shank folds back).
    Joints with motors: all but the free trunk.
    """
    builder = ModelBuilder(name="quadruped")
    trunk = Box((0.40, 0.20, 0.12))
    builder.add_body("trunk", WORLD_NAME, Free(), "root", inertia=trunk.inertia(mass=6.0), shapes=(trunk,))
    X, Y = Revolute((1.0, 0.0, 0.0)), Revolute((0.0, 1.0, 0.0))
    shank = Capsule.between((0.0, 0.0, 0.0), (0.0, 0.0, -SHANK), 0.015)
    foot = Sphere(0.02, placement=at(z=-SHANK), friction=(1.0, 0.02, 0.0001))
    thigh = Capsule.between((0.0, 0.0, 0.0), (0.0, 0.0, -THIGH), 0.025)
    corners = (("front_left", 1, 1), ("front_right", 1, -1), ("hind_left", -1, 1), ("hind_right", -1, -1))
    motors = []
    for leg, front, left in corners:
        hip = Capsule.between((0.0, 0.0, 0.0), (0.0, left * OFFSET, 0.0), 0.04)
        parent, at_hip = "trunk", at(front * HIP[0], left * HIP[1])
        for part, joint, axis, placement, masses, limits in (
            ("hip", "abduction", X, at_hip, {hip: 0.55}, Limits(-0.8, 0.8, 30.0, 24.0)),
            ("thigh", "flexion", Y, at(y=left * OFFSET), {thigh: 0.75}, Limits(-1.5, 3.4, 30.0, 24.0)),
            ("shank", "knee", Y, at(z=-THIGH), {shank: 0.16, foot: 0.04}, Limits(-2.7, 0.0, 30.0, 36.0)),
        ):
            first, *others = [shape.inertia(mass=mass) for shape, mass in masses.items()]
            builder.add_body(
                f"{leg}_{part}",
                parent,
                axis,
                f"{leg}_{joint}",
                placement=placement,
                inertia=sum(others, first),
                limits=limits,
                damping=0.05,
                armature=0.005,
                shapes=tuple(masses),
            )
            parent = f"{leg}_{part}"
            motors.append(f"{leg}_{joint}")
        builder.add_frame(f"{leg}_foot", parent, at(z=-SHANK))
    builder.set_actuated(motors)
    return builder.build()
