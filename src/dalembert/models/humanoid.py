"""A human figure of average build: a free pelvis and 37 joint freedoms.

Segment masses are rounded from the published anthropometry of young men (about de Leva 1996); lengths, shapes
and limits are our own round numbers. x points forward, y to the left, z up; at q = 0 the figure stands with
hanging arms.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from dalembert.errors import ArgumentError
from dalembert.model import Limits, Model, ModelBuilder
from dalembert.model.joints import Free, Joint, Revolute, Spherical, SphericalEuler, Universal
from dalembert.model.shapes import Box, Capsule, Ellipsoid, Solid
from dalembert.model.topology import WORLD_NAME
from dalembert.models.parts import at, check_arguments

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
