"""Arms of six and seven joints, of human size and industrial mass, a quadruped, and a human figure."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from dalembert.errors import ArgumentError
from dalembert.model import DHRow, Limits, Model, ModelBuilder, dh_placement
from dalembert.model.joints import Free, Joint, Revolute, Spherical, SphericalEuler, Universal
from dalembert.model.shapes import Box, Capsule, Ellipsoid, Solid, Sphere
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


# A human figure of average build: a free pelvis and 37 joint freedoms.
#
# Segment masses are rounded from the published anthropometry of young men (about de Leva 1996); lengths,
# shapes and limits are our own round numbers. x points forward, y to the left, z up; at q = 0 the figure
# stands with hanging arms.

REFERENCE_HEIGHT = 1.75
"""Stature [m] of the lengths below; other statures scale them."""

Point = tuple[float, float, float]
ScaledSolid = Callable[[float], Solid]
"""A function that returns a solid with its lengths multiplied by a scale."""

X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
FORWARD = (0.0, -1.0, 0.0)
"""Axis -y: a rotation about it swings a hanging limb forward and lifts a limb that points forward."""


class Segment(NamedTuple):
    """One segment: mass in percent of the whole, place of its joint on the parent [m], shapes, limits,
    damping, and the name and place of a frame on it.
    """

    name: str
    parent: str
    percent: float
    joint: Joint
    joint_name: str
    at: Point
    shapes: Sequence[ScaledSolid]
    limits: Limits | None
    damping: float
    frame: tuple[str, Point] | None = None


def _scale(lengths: Point, scale: float) -> Point:
    x, y, z = (scale * length for length in lengths)
    return x, y, z


def _capsule(a: Point, b: Point, radius: float) -> ScaledSolid:
    return lambda scale: Capsule.between(_scale(a, scale), _scale(b, scale), radius * scale)


def _box(centre: Point, size: Point) -> ScaledSolid:
    return lambda scale: Box(_scale(size, scale), placement=at(*_scale(centre, scale)))


def _ellipsoid(centre: Point, radii: Point) -> ScaledSolid:
    return lambda scale: Ellipsoid(_scale(radii, scale), placement=at(*_scale(centre, scale)))


TRUNK = (
    Segment("pelvis", WORLD_NAME, 11.0, Free(), "root", (0.0, 0.0, 0.0),
            [_capsule((0.0, -0.07, 0.03), (0.0, 0.07, 0.03), 0.10)], None, 0.0),
    Segment("abdomen", "pelvis", 16.6, SphericalEuler("yxz"), "lumbar", (0.0, 0.0, 0.10),
            [_capsule((0.0, -0.06, 0.07), (0.0, 0.06, 0.07), 0.10)],
            Limits((-0.5, -0.5, -0.5), (1.2, 0.5, 0.5), 10.0, (300.0, 200.0, 120.0)), 5.0),
    Segment("chest", "abdomen", 16.0, SphericalEuler("yxz"), "thoracic", (0.0, 0.0, 0.16),
            [_capsule((0.0, -0.08, 0.13), (0.0, 0.08, 0.13), 0.12)],
            Limits((-0.3, -0.3, -0.5), (0.5, 0.3, 0.5), 10.0, (250.0, 150.0, 100.0)), 5.0),
    Segment("head", "chest", 7.0, SphericalEuler("yxz"), "neck", (0.0, 0.0, 0.26),
            [_ellipsoid((0.02, 0.0, 0.19), (0.095, 0.075, 0.12)),
             _capsule((0.0, 0.0, 0.01), (0.0, 0.0, 0.08), 0.055)],
            Limits((-0.9, -0.6, -1.2), (0.9, 0.6, 1.2), 12.0, (40.0, 30.0, 20.0)), 1.0,
            ("head_top", (0.02, 0.0, 0.31))),
)  # fmt: skip


def _limbs(side: str, sign: float) -> list[Segment]:
    """Return the arm and the leg of the left (sign 1) or right (-1) side."""
    inward, outward = (-0.4, 0.8) if sign > 0.0 else (-0.8, 0.4)
    limbs = (
        Segment("upper_arm", "chest", 2.7, Spherical(), "shoulder", (0.0, sign * 0.19, 0.20),
                [_capsule((0.0, 0.0, -0.01), (0.0, 0.0, -0.26), 0.045)],
                Limits(velocity=15.0, effort=90.0), 1.0),
        Segment("elbow", "upper_arm", 0.9, Revolute(FORWARD), "elbow", (0.0, 0.0, -0.29),
                [_capsule((0.0, 0.0, 0.0), (0.0, 0.0, -0.12), 0.038)], Limits(0.0, 2.5, 15.0, 70.0), 0.5),
        Segment("forearm", "elbow", 0.7, Revolute(Z), "forearm_twist", (0.0, 0.0, -0.14),
                [_capsule((0.0, 0.0, 0.0), (0.0, 0.0, -0.11), 0.032)], Limits(-1.4, 1.4, 15.0, 20.0), 0.2),
        Segment("hand", "forearm", 0.6, Universal(X, Y), "wrist", (0.0, 0.0, -0.13),
                [_box((0.0, 0.0, -0.08), (0.08, 0.03, 0.15))],
                Limits((-1.2, -0.5), (1.2, 0.5), 15.0, (15.0, 12.0)), 0.1,
                ("palm", (0.0, -sign * 0.015, -0.07))),
        Segment("thigh", "pelvis", 14.1, SphericalEuler("yxz"), "hip", (0.0, sign * 0.09, 0.0),
                [_capsule((0.0, 0.0, -0.02), (0.0, 0.0, -0.38), 0.075)],
                Limits((-2.1, inward, -0.7), (0.5, outward, 0.7), 12.0, (250.0, 180.0, 100.0)), 3.0),
        Segment("shank", "thigh", 4.3, Revolute(Y), "knee", (0.0, 0.0, -0.43),
                [_capsule((0.0, 0.0, -0.02), (0.0, 0.0, -0.37), 0.05)], Limits(0.0, 2.5, 15.0, 250.0), 1.0),
        Segment("foot", "shank", 1.1, Universal(Y, X), "ankle", (0.0, 0.0, -0.41),
                [_box((0.045, 0.0, -0.045), (0.19, 0.08, 0.07))],
                Limits((-0.5, -0.4), (0.9, 0.4), 12.0, (180.0, 60.0)), 0.5, ("sole", (0.045, 0.0, -0.08))),
        Segment("toes", "foot", 0.3, Revolute(FORWARD), "toe", (0.14, 0.0, -0.065),
                [_box((0.03, 0.0, 0.0), (0.06, 0.085, 0.03))], Limits(-0.3, 1.0, 12.0, 30.0), 0.2,
                ("toe_tip", (0.06, 0.0, -0.015))),
    )  # fmt: skip
    own = {segment.name: f"{side}_{segment.name}" for segment in limbs}
    return [
        segment._replace(
            name=own[segment.name],
            parent=own.get(segment.parent, segment.parent),
            joint_name=f"{side}_{segment.joint_name}",
            frame=None if segment.frame is None else (f"{side}_{segment.frame[0]}", segment.frame[1]),
        )
        for segment in limbs
    ]


NESTED = (
    ("{side}_upper_arm", "abdomen"),
    ("{side}_elbow", "abdomen"),
    ("{side}_elbow", "pelvis"),
    ("{side}_forearm", "pelvis"),
    ("{side}_forearm", "{side}_thigh"),
)
"""Segments within one another in the neutral pose: arms that hang down lie against the trunk."""


@check_arguments
def humanoid(*, height: float = REFERENCE_HEIGHT, mass: float = 75.0) -> Model:
    """Return a human figure of the given stature [m] and mass [kg]: 20 bodies, nq = 46, nv = 43.

    Hips, spine and neck turn by Euler angles "yxz" (flexion, side bend, twist), shoulders are ball joints
    with quaternions, wrists and ankles universal joints. Frames: "head_top", "left_palm", "left_sole",
    "left_toe_tip", and the same on the right.
    """
    if not (height > 0.0 and mass > 0.0):
        raise ArgumentError(f"humanoid needs a positive height [m] and mass [kg], got {height} and {mass}")
    scale = height / REFERENCE_HEIGHT
    segments = [*TRUNK, *_limbs("left", 1.0), *_limbs("right", -1.0)]
    builder = ModelBuilder(name="humanoid")
    for segment in segments:
        shapes = [shape(scale) for shape in segment.shapes]
        own_mass, volume = mass * segment.percent / 100.0, sum(shape.volume for shape in shapes)
        first, *others = [shape.inertia(mass=own_mass * shape.volume / volume) for shape in shapes]
        builder.add_body(
            segment.name,
            segment.parent,
            segment.joint,
            segment.joint_name,
            placement=at(*_scale(segment.at, scale)),
            inertia=sum(others, first),
            limits=segment.limits,
            damping=segment.damping,
            shapes=shapes,
        )
        if segment.frame is not None:
            name, place = segment.frame
            builder.add_frame(name, segment.name, at(*_scale(place, scale)))
    for side in ("left", "right"):
        for part, other in NESTED:
            builder.exclude_contact(part.format(side=side), other.format(side=side))
    builder.set_actuated(segment.joint_name for segment in segments[1:])
    return builder.build()
