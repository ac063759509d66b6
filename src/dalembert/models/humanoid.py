"""A human figure of average build: a free pelvis and 37 joint freedoms.

Segment masses are rounded from the published anthropometry of young men (about de Leva 1996); lengths, shapes
and limits are our own round numbers. x points forward, y to the left, z up; at q = 0 the figure stands with
hanging arms.
"""

from __future__ import annotations

from collections.abc import Sequence

from dalembert.errors import ArgumentError, own_errors
from dalembert.model.body import Limits
from dalembert.model.builder import ModelBuilder
from dalembert.model.joints import Free, Joint, Revolute, Spherical, SphericalEuler, Universal
from dalembert.model.model import Model
from dalembert.model.shapes import Box, Capsule, Ellipsoid, Solid
from dalembert.models.arguments import require_numbers
from dalembert.spatial import Mat3, Transform, Vec3

__all__ = ["humanoid"]

REFERENCE_HEIGHT = 1.75
"""Stature [m] of the lengths below; other statures scale them."""

MASS_PERCENT = {
    "pelvis": 11.0,
    "abdomen": 16.6,
    "chest": 16.0,
    "head": 7.0,
    "upper_arm": 2.7,
    "elbow": 0.9,
    "forearm": 0.7,
    "hand": 0.6,
    "thigh": 14.1,
    "shank": 4.3,
    "foot": 1.1,
    "toes": 0.3,
}
"""Percentages of the body mass, for one side of the limbs. Both sides together add up to 100."""

Point = tuple[float, float, float]
X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
FORWARD = (0.0, -1.0, 0.0)
"""Axis -y: a rotation about it swings a hanging limb forward and lifts a limb that points forward."""


@own_errors
def humanoid(*, height: float = REFERENCE_HEIGHT, mass: float = 75.0) -> Model:
    """Return a human figure of the given stature [m] and mass [kg]: 20 bodies, nq = 46, nv = 43.

    Hips, spine and neck turn by Euler angles "yxz" (flexion, side bend, twist), shoulders are ball joints
    with quaternions, wrists and ankles universal joints. Frames: "head_top", "left_palm", "left_sole",
    "left_toe_tip", and the same on the right.
    """
    require_numbers("humanoid", height=height, mass=mass)
    if not (height > 0.0 and mass > 0.0):
        raise ArgumentError(f"humanoid needs a positive height [m] and mass [kg], got {height} and {mass}")
    person = _Person(height / REFERENCE_HEIGHT, mass)
    _trunk(person)
    for side, sign in (("left", 1.0), ("right", -1.0)):
        _arm(person, side, sign)
        _leg(person, side, sign)
    builder = person.builder
    for side in ("left", "right"):
        # Arms that hang down lie against the trunk: these are within one another in the neutral pose.
        for part, other in (
            ("upper_arm", "abdomen"),
            ("elbow", "abdomen"),
            ("elbow", "pelvis"),
            ("forearm", "pelvis"),
            ("forearm", f"{side}_thigh"),
        ):
            builder.exclude_contact(f"{side}_{part}", other)
    builder.set_actuated(name for name in person.joints if name != "root")
    return builder.build()


def _trunk(person: _Person) -> None:
    pelvis = person.capsule((0.0, -0.07, 0.03), (0.0, 0.07, 0.03), 0.10)
    person.add("pelvis", "world", Free(), "root", (0.0, 0.0, 0.0), [pelvis], None, 0.0)
    abdomen = person.capsule((0.0, -0.06, 0.07), (0.0, 0.06, 0.07), 0.10)
    bend = Limits((-0.5, -0.5, -0.5), (1.2, 0.5, 0.5), 10.0, (300.0, 200.0, 120.0))
    person.add("abdomen", "pelvis", SphericalEuler("yxz"), "lumbar", (0.0, 0.0, 0.10), [abdomen], bend, 5.0)
    chest = person.capsule((0.0, -0.08, 0.13), (0.0, 0.08, 0.13), 0.12)
    bend = Limits((-0.3, -0.3, -0.5), (0.5, 0.3, 0.5), 10.0, (250.0, 150.0, 100.0))
    person.add("chest", "abdomen", SphericalEuler("yxz"), "thoracic", (0.0, 0.0, 0.16), [chest], bend, 5.0)
    skull = person.ellipsoid((0.02, 0.0, 0.19), (0.095, 0.075, 0.12))
    neck = person.capsule((0.0, 0.0, 0.01), (0.0, 0.0, 0.08), 0.055)
    bend = Limits((-0.9, -0.6, -1.2), (0.9, 0.6, 1.2), 12.0, (40.0, 30.0, 20.0))
    person.add("head", "chest", SphericalEuler("yxz"), "neck", (0.0, 0.0, 0.26), [skull, neck], bend, 1.0)
    person.frame("head_top", "head", (0.02, 0.0, 0.31))


def _arm(person: _Person, side: str, sign: float) -> None:
    def name(part: str) -> str:
        return f"{side}_{part}"

    upper = person.capsule((0.0, 0.0, -0.01), (0.0, 0.0, -0.26), 0.045)
    person.add(
        name("upper_arm"),
        "chest",
        Spherical(),
        name("shoulder"),
        (0.0, sign * 0.19, 0.20),
        [upper],
        Limits(velocity=15.0, effort=90.0),
        1.0,
    )
    elbow = person.capsule((0.0, 0.0, 0.0), (0.0, 0.0, -0.12), 0.038)
    bend = Limits(0.0, 2.5, 15.0, 70.0)
    person.add(
        name("elbow"),
        name("upper_arm"),
        Revolute(FORWARD),
        name("elbow"),
        (0.0, 0.0, -0.29),
        [elbow],
        bend,
        0.5,
    )
    lower = person.capsule((0.0, 0.0, 0.0), (0.0, 0.0, -0.11), 0.032)
    bend = Limits(-1.4, 1.4, 15.0, 20.0)
    person.add(
        name("forearm"),
        name("elbow"),
        Revolute(Z),
        name("forearm_twist"),
        (0.0, 0.0, -0.14),
        [lower],
        bend,
        0.2,
    )
    hand = person.box((0.0, 0.0, -0.08), (0.08, 0.03, 0.15))
    bend = Limits((-1.2, -0.5), (1.2, 0.5), 15.0, (15.0, 12.0))
    person.add(
        name("hand"), name("forearm"), Universal(X, Y), name("wrist"), (0.0, 0.0, -0.13), [hand], bend, 0.1
    )
    person.frame(name("palm"), name("hand"), (0.0, -sign * 0.015, -0.07))


def _leg(person: _Person, side: str, sign: float) -> None:
    def name(part: str) -> str:
        return f"{side}_{part}"

    thigh = person.capsule((0.0, 0.0, -0.02), (0.0, 0.0, -0.38), 0.075)
    spread = (-0.4, 0.8) if sign > 0.0 else (-0.8, 0.4)
    bend = Limits((-2.1, spread[0], -0.7), (0.5, spread[1], 0.7), 12.0, (250.0, 180.0, 100.0))
    person.add(
        name("thigh"),
        "pelvis",
        SphericalEuler("yxz"),
        name("hip"),
        (0.0, sign * 0.09, 0.0),
        [thigh],
        bend,
        3.0,
    )
    shank = person.capsule((0.0, 0.0, -0.02), (0.0, 0.0, -0.37), 0.05)
    bend = Limits(0.0, 2.5, 15.0, 250.0)
    person.add(name("shank"), name("thigh"), Revolute(Y), name("knee"), (0.0, 0.0, -0.43), [shank], bend, 1.0)
    foot = person.box((0.045, 0.0, -0.045), (0.19, 0.08, 0.07))
    bend = Limits((-0.5, -0.4), (0.9, 0.4), 12.0, (180.0, 60.0))
    person.add(
        name("foot"), name("shank"), Universal(Y, X), name("ankle"), (0.0, 0.0, -0.41), [foot], bend, 0.5
    )
    person.frame(name("sole"), name("foot"), (0.045, 0.0, -0.08))
    toes = person.box((0.03, 0.0, 0.0), (0.06, 0.085, 0.03))
    bend = Limits(-0.3, 1.0, 12.0, 30.0)
    person.add(
        name("toes"), name("foot"), Revolute(FORWARD), name("toe"), (0.14, 0.0, -0.065), [toes], bend, 0.2
    )
    person.frame(name("toe_tip"), name("toes"), (0.06, 0.0, -0.015))


class _Person:
    """Adds scaled segments with the inertia of their shapes to a builder."""

    def __init__(self, scale: float, mass: float) -> None:
        self.builder = ModelBuilder(name="humanoid")
        self.joints: list[str] = []
        self._scale = scale
        self._mass = mass

    def add(
        self,
        name: str,
        parent: str,
        joint: Joint,
        joint_name: str,
        at: Point,
        shapes: Sequence[Solid],
        limits: Limits | None,
        damping: float,
    ) -> None:
        part = name.removeprefix("left_").removeprefix("right_")
        mass = self._mass * MASS_PERCENT[part] / 100.0
        volume = sum(shape.volume for shape in shapes)
        inertia = shapes[0].inertia(mass=mass * shapes[0].volume / volume)
        for shape in shapes[1:]:
            inertia = inertia + shape.inertia(mass=mass * shape.volume / volume)
        self.joints.append(joint_name)
        self.builder.add_body(
            name,
            parent,
            joint,
            joint_name,
            placement=self._place(at),
            inertia=inertia,
            limits=limits,
            damping=damping,
            shapes=shapes,
        )

    def frame(self, name: str, body: str, at: Point) -> None:
        self.builder.add_frame(name, body, self._place(at))

    def capsule(self, a: Point, b: Point, radius: float) -> Capsule:
        return Capsule.between(self._scale_lengths(a), self._scale_lengths(b), radius * self._scale)

    def box(self, centre: Point, size: Point) -> Box:
        return Box(self._scale_lengths(size), placement=self._place(centre))

    def ellipsoid(self, centre: Point, radii: Point) -> Ellipsoid:
        return Ellipsoid(self._scale_lengths(radii), placement=self._place(centre))

    def _place(self, at: Point) -> Transform:
        return Transform(Mat3.identity(), Vec3(*self._scale_lengths(at)))

    def _scale_lengths(self, lengths: Point) -> Point:
        x, y, z = (self._scale * length for length in lengths)
        return x, y, z
