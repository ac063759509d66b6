"""The Stewart-Gough platform, a parallel robot."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, final

from dalembert.errors import ModelError
from dalembert.model.builder import ModelBuilder
from dalembert.model.joints import Free, Prismatic, Spherical, Universal
from dalembert.model.model import Model
from dalembert.model.shapes import Capsule, Cylinder
from dalembert.model.user_functions import KnownFunction
from dalembert.models.parts import NO_COLLISION_MASK, at, bundled
from dalembert.scalar import Scalar, atan2, sqrt
from dalembert.spatial import Mat3, RigidInertia, Transform, Vec3
from dalembert.spatial.rotations import rotation_of_quaternion

LEG_COUNT = 6


@bundled
def stewart(
    *,
    base_radius: float = 0.6,
    platform_radius: float = 0.4,
    height: float = 0.8,
    spread: float = 0.35,
    platform_mass: float = 10.0,
    leg_mass: float = 1.0,
    closure: bool = False,
) -> Model:
    """Return a Stewart-Gough platform, 6-UPS: a free platform on six legs of universal and prismatic joints.

    The legs' upper ends are closed to the platform by spherical joints; their prismatic joints have the
    motors. Six degrees of freedom, 24 tree variables, 18 constraints. It is assembled at q = neutral, the
    platform level at `height` above the base. The anchors stand in three pairs on each circle, `spread` [rad]
    to either side of the pair's middle, those of the platform turned by 60 degrees. Lengths in m, masses in
    kg; a leg's mass is shared by its cylinder and its rod.

    `closure=True` adds the explicit constraint q = gamma(platform pose), which gives `method="loop_closure"`
    a system of six equations; a model with a function cannot be saved.

    >>> model = da.models.stewart()
    >>> print(model.nv, len(model.loops), da.analysis.mobility(model).mobility)
    24 6 6
    """
    if min(base_radius, platform_radius, height) <= 0.0:
        raise ModelError("stewart: base_radius, platform_radius and height must be positive")
    anchors = _anchors(base_radius, platform_radius, spread)
    builder = ModelBuilder(name="stewart")
    plate = Cylinder(platform_radius, 0.04, collides_with=NO_COLLISION_MASK)
    inertia = plate.inertia(mass=platform_mass)
    builder.add_body("platform", "world", Free(), placement=at(z=height), inertia=inertia, shapes=(plate,))
    feet = []
    for leg, (foot, top) in enumerate(anchors):
        along = top + Vec3(0.0, 0.0, height) - foot
        length = float(along.norm())
        place = Transform(_with_z(along * (1.0 / length)), foot)
        feet.append((place, length))
        _add_leg(builder, leg, place, length, 0.5 * leg_mass)
        builder.add_loop(f"ball{leg}", f"rod{leg}", "platform", Spherical(), None, at(*top))
    builder.set_actuated([f"slide{leg}" for leg in range(LEG_COUNT)])
    if closure:
        builder.set_loop_closure(
            StewartPose(tuple(feet), tuple(top for _, top in anchors), height), ["platform"]
        )
    return builder.build()


@final
@dataclass(frozen=True, slots=True, eq=False)
class StewartPose(KnownFunction):
    """gamma: the legs' angles and lengths from the platform's pose, by the inverse kinematics of each leg."""

    feet: tuple[tuple[Transform, float], ...]
    tops: tuple[Vec3, ...]
    height: float

    def identity(self) -> tuple[Any, ...]:
        numbers = [[*place.leaves(), length] for place, length in self.feet]
        return (numbers, [top.to_list() for top in self.tops], self.height)

    def __call__(self, model: Model, *arguments: Any) -> list[Scalar]:
        (y,) = arguments
        R, p = rotation_of_quaternion(y[3:7]), Vec3(y[0], y[1], y[2] + self.height)
        q = list(y)
        for (place, neutral), top in zip(self.feet, self.tops):
            u = place.inverse_transform_point(R @ top + p)
            # The leg along z: R_x(q1) R_y(q2) z = (sin q2, -sin q1 cos q2, cos q1 cos q2).
            across = sqrt(u.y * u.y + u.z * u.z)
            q += [atan2(-u.y, u.z), atan2(u.x, across), sqrt(u.dot(u)) - neutral]
        return q


def _anchors(base: float, platform: float, spread: float) -> list[tuple[Vec3, Vec3]]:
    """Return the anchors on base and platform, in their own frames; pairs on one face gaps on the other."""
    anchors = []
    for pair in range(3):
        for side in (-1.0, 1.0):
            below = math.tau * pair / 3.0 + side * spread
            above = math.tau * pair / 3.0 + side * (math.pi / 3.0 - spread)
            foot = Vec3(base * math.cos(below), base * math.sin(below), 0.0)
            anchors.append((foot, Vec3(platform * math.cos(above), platform * math.sin(above), 0.0)))
    return anchors


def _add_leg(builder: ModelBuilder, leg: int, place: Transform, length: float, mass: float) -> None:
    """Add a leg: a cylinder on a universal joint, and a rod in it whose frame is at its upper end."""
    half = 0.6 * length
    moment = mass * half * half / 12.0
    thin = mass * 0.02**2
    cylinder, slide = f"cylinder{leg}", Prismatic((0.0, 0.0, 1.0))
    for name, parent, joint, joint_name, frame, low, high, radius in (
        (cylinder, "world", Universal(), f"foot{leg}", place, 0.0, half, 0.03),
        (f"rod{leg}", cylinder, slide, f"slide{leg}", at(z=length), -half, 0.0, 0.02),
    ):
        inertia = RigidInertia(mass, (0.0, 0.0, 0.5 * (low + high)), (moment, moment, thin))
        capsule = Capsule.between((0.0, 0.0, low), (0.0, 0.0, high), radius, collides_with=NO_COLLISION_MASK)
        builder.add_body(name, parent, joint, joint_name, placement=frame, inertia=inertia, shapes=(capsule,))


def _with_z(z: Vec3) -> Mat3:
    """Return a rotation whose third column is z: x level, perpendicular to z."""
    level = math.hypot(z.x, z.y)
    x = Vec3(-z.y / level, z.x / level, 0.0) if level > 1e-9 else Vec3(1.0, 0.0, 0.0)
    y = z.cross(x)
    return Mat3(x.x, y.x, z.x, x.y, y.y, z.y, x.z, y.z, z.z)
