"""Mechanisms, z up: textbook systems whose equations fit on a line, and linkages, in the x-z plane; and the
Stewart-Gough platform."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, final

from dalembert.errors import ModelError
from dalembert.model import Limits, Model, ModelBuilder
from dalembert.model.joints import Free, Prismatic, Revolute, SphereInCylinder, Spherical, Universal
from dalembert.model.shapes import Box, Capsule, Cylinder, Sphere
from dalembert.model.user_functions import KnownFunction
from dalembert.models.parts import NO_COLLISION_MASK, Count, at, check_arguments
from dalembert.scalar import Scalar, atan2, sqrt
from dalembert.spatial import Mat3, RigidInertia, Transform, Vec3
from dalembert.spatial.rotations import rotation_of_quaternion

SLIDE = Prismatic((1.0, 0.0, 0.0))
SWING = Revolute((0.0, 1.0, 0.0))
LIFT = Revolute((0.0, -1.0, 0.0))
"""A rotation about -y: it lifts a bar that lies along x."""
ALONG_X = Mat3(0.0, 0.0, 1.0, 0.0, 1.0, 0.0, -1.0, 0.0, 0.0)
"""A frame whose z axis points along x: how a capsule lies along a link."""


def _bob(
    builder: ModelBuilder, name: str, parent: str, joint: str, z: float, length: float, mass: float, c: float
) -> None:
    """Add a point mass on a massless rod that hangs at height z of its parent, with the damping c."""
    rod = Capsule(radius=0.01, length=abs(length), placement=at(z=-length / 2.0), collision=False)
    builder.add_body(
        name,
        parent,
        SWING,
        joint,
        placement=at(z=z),
        inertia=RigidInertia(mass, (0.0, 0.0, -length), (0.0, 0.0, 0.0)),
        damping=c,
        shapes=(Sphere(radius=0.05, placement=at(z=-length)), rod),
    )


@check_arguments
def pendulum(length: float = 1.0, mass: float = 1.0, *, damping: float = 0.0) -> Model:
    """Return a pendulum, a point mass on a massless rod that hangs at q = 0: m l^2 a = tau - m g l sin q."""
    builder = ModelBuilder(name="pendulum")
    _bob(builder, "bob", "world", "pivot", 0.0, length, mass, damping)
    builder.add_frame("tip", "bob", at(z=-length))
    return builder.build()


@check_arguments
def double_pendulum(
    lengths: tuple[float, float] = (1.0, 1.0),
    masses: tuple[float, float] = (1.0, 1.0),
    *,
    damping: float = 0.0,
) -> Model:
    """Return a double pendulum of point masses on massless rods; the second angle is relative."""
    builder = ModelBuilder(name="double_pendulum")
    (l1, l2), (m1, m2) = lengths, masses
    _bob(builder, "upper", "world", "shoulder", 0.0, l1, m1, damping)
    _bob(builder, "lower", "upper", "elbow", -l1, l2, m2, damping)
    builder.add_frame("tip", "lower", at(z=-l2))
    return builder.build()


@check_arguments
def two_link_arm(
    lengths: tuple[float, float] = (1.0, 1.0),
    masses: tuple[float, float] = (1.0, 1.0),
    *,
    damping: float = 0.0,
) -> Model:
    """Return an arm of two uniform links, stretched out along x at q = 0; positive angles lift them."""
    builder = ModelBuilder(name="two_link_arm")
    parent, placement = "world", at()
    for name, joint, length, mass in zip(("upper", "lower"), ("shoulder", "elbow"), lengths, masses):
        rod = Capsule(radius=0.04, length=length, placement=Transform(ALONG_X, Vec3(length / 2.0, 0.0, 0.0)))
        moment = mass * length**2 / 12.0
        inertia = RigidInertia(mass, (length / 2.0, 0.0, 0.0), (0.0, moment, moment))
        builder.add_body(
            name, parent, LIFT, joint, placement=placement, inertia=inertia, damping=damping, shapes=(rod,)
        )
        parent, placement = name, at(length)
    builder.add_frame("tip", "lower", placement)
    return builder.build()


@check_arguments
def cart_pole(
    cart_mass: float = 1.0, pole_mass: float = 0.1, pole_length: float = 1.0, *, damping: float = 0.0
) -> Model:
    """Return a cart on a motor-driven slider along x with a uniform pole, upright at q = 0."""
    builder = ModelBuilder(name="cart_pole")
    cart = Box((0.4, 0.2, 0.2))
    inertia, limits = cart.inertia(mass=cart_mass), Limits(-2.4, 2.4)
    builder.add_body(
        "cart", "world", SLIDE, "slider", inertia=inertia, limits=limits, damping=damping, shapes=(cart,)
    )
    moment = pole_mass * pole_length**2 / 12.0
    inertia = RigidInertia(pole_mass, (0.0, 0.0, pole_length / 2.0), (moment, moment, 0.0))
    pole = Capsule(radius=0.03, length=pole_length, placement=at(z=pole_length / 2.0), collision=False)
    builder.add_body("pole", "cart", SWING, "hinge", inertia=inertia, damping=damping, shapes=(pole,))
    builder.add_frame("tip", "pole", at(z=pole_length))
    builder.set_actuated(["slider"])
    return builder.build()


# Linkages with closed loops, of bars that are hinged at their ends and lie along their own x axes.


def _rotated_frame(angle: float, x: float) -> Transform:
    """Return a frame at (x, 0, 0), rotated upwards by an angle [rad]."""
    c, s = math.cos(angle), math.sin(angle)
    return Transform(Mat3(c, 0.0, -s, 0.0, 1.0, 0.0, s, 0.0, c), Vec3(x, 0.0, 0.0))


def _quarter(sine: float, x: float) -> Transform:
    """Return a frame at (x, 0, 0) lifted (sine 1) or lowered (-1) by a quarter turn, without rounding."""
    return Transform(Mat3(0.0, 0.0, -sine, 0.0, 1.0, 0.0, sine, 0.0, 0.0), Vec3(x, 0.0, 0.0))


def _bar(
    builder: ModelBuilder,
    name: str,
    parent: str,
    joint: str,
    placement: Transform,
    length: float,
    density: float,
) -> None:
    """Add a uniform bar of the density [kg/m]."""
    mass = density * length
    moment = mass * length**2 / 12.0
    inertia = RigidInertia(mass, (length / 2.0, 0.0, 0.0), (0.0, moment, moment))
    capsule = Capsule.between((0.0, 0.0, 0.0), (length, 0.0, 0.0), 0.02, collides_with=NO_COLLISION_MASK)
    builder.add_body(name, parent, LIFT, joint, placement=placement, inertia=inertia, shapes=(capsule,))


@check_arguments
def four_bar(
    *,
    ground: float = 1.0,
    crank: float = 0.3,
    coupler: float = 0.9,
    rocker: float = 0.7,
    density: float = 2.0,
) -> Model:
    """Return a four-bar linkage: crank and coupler in the tree, closed to the rocker on the ground.

    It is assembled at q = 0 with the crank along x; lengths in m, density in kg/m. One degree of freedom;
    the crank has the motor.
    """
    gap = ground - crank
    if not abs(coupler - rocker) < gap < coupler + rocker:
        raise ModelError(
            f"four_bar: coupler {coupler} and rocker {rocker} cannot meet across {gap} m, crank along x"
        )
    # The triangle of coupler, rocker and what the crank leaves of the ground, by the law of cosines.
    at_crank = math.acos((gap**2 + coupler**2 - rocker**2) / (2.0 * gap * coupler))
    at_ground = math.pi - math.acos((gap**2 + rocker**2 - coupler**2) / (2.0 * gap * rocker))
    builder = ModelBuilder(name="four_bar")
    _bar(builder, "crank", "world", "crank_pivot", at(), crank, density)
    _bar(builder, "coupler", "crank", "crank_pin", _rotated_frame(at_crank, crank), coupler, density)
    _bar(builder, "rocker", "world", "rocker_pivot", _rotated_frame(at_ground, ground), rocker, density)
    builder.add_loop("rocker_pin", "coupler", "rocker", LIFT, at(coupler), at(rocker))
    builder.set_actuated(["crank_pivot"])
    return builder.build()


@check_arguments
def slider_crank(
    *, crank: float = 0.25, rod: float = 0.8, slider_mass: float = 1.0, density: float = 2.0
) -> Model:
    """Return the crank-slider linkage of Featherstone 2008 Figure 4.1, closed at the slider's pin.

    It is assembled at q = 0 with crank and rod stretched along x, a dead centre where the slider's speed is
    zero; lengths in m, density in kg/m.
    """
    builder = ModelBuilder(name="slider_crank")
    _bar(builder, "crank", "world", "crank_pivot", at(), crank, density)
    _bar(builder, "rod", "crank", "crank_pin", at(crank), rod, density)
    block = Box((0.12, 0.08, 0.08), collides_with=NO_COLLISION_MASK)
    inertia = block.inertia(mass=slider_mass)
    builder.add_body(
        "slider", "world", SLIDE, "guide", placement=at(crank + rod), inertia=inertia, shapes=(block,)
    )
    builder.add_loop("slider_pin", "rod", "slider", LIFT, at(rod))
    builder.set_actuated(["crank_pivot"])
    return builder.build()


@check_arguments
def five_bar(
    *, ground: float = 0.4, proximal: float = 0.5, distal: float = 0.7, density: float = 2.0
) -> Model:
    """Return a symmetric five-bar linkage, a planar parallel robot of two arms closed at their tips.

    Two degrees of freedom; the two pivots on the ground have the motors. It is assembled at q = 0 with the
    proximal bars upright on the ground, `ground` apart; the frame "tool" is at the pin that joins the arms.
    Lengths in m, density in kg/m.

    >>> model = da.models.five_bar()
    >>> error = da.constraints.constraint_error(model, model.neutral())
    >>> print(model.nv, model.actuated, np.abs(error).max() < 1e-15)
    4 ('left_pivot', 'right_pivot') True
    """
    if not ground < 2.0 * distal:
        raise ModelError(
            f"five_bar: distal bars of {distal} m cannot meet across {ground} m; make them longer"
        )
    inward = math.acos(0.5 * ground / distal)
    builder = ModelBuilder(name="five_bar")
    for side, x, angle in (("left", -0.5 * ground, inward), ("right", 0.5 * ground, math.pi - inward)):
        inner, outer = f"{side}_proximal", f"{side}_distal"
        elbow = _rotated_frame(angle - 0.5 * math.pi, proximal)
        _bar(builder, inner, "world", f"{side}_pivot", _quarter(1.0, x), proximal, density)
        _bar(builder, outer, inner, f"{side}_elbow", elbow, distal, density)
    builder.add_loop("tool_pin", "left_distal", "right_distal", LIFT, at(distal), at(distal))
    builder.add_frame("tool", "left_distal", at(distal))
    builder.set_actuated(["left_pivot", "right_pivot"])
    return builder.build()


@check_arguments
def ladder(rungs: Count = 3, *, width: float = 0.4, spacing: float = 0.3, density: float = 2.0) -> Model:
    """Return a hanging rope ladder: two rails of hinged segments with rungs between them.

    Every rung closes a loop with the next segment of the right rail by a joint of two constraints
    (`SphereInCylinder`), so that the system is properly constrained and has one degree of freedom a rung. Its
    connectivity is that of Featherstone 2008 Figure 8.4, with a body for each rung: the sparse method takes
    time in proportion to the rungs. Lengths in m, density in kg/m.

    >>> model = da.models.ladder(5)
    >>> print(len(model.bodies), len(model.loops), da.analysis.mobility(model).mobility)
    15 5 5
    """
    if rungs < 1:
        raise ModelError(f"ladder: {rungs} rungs asked for; a ladder has one or more")
    builder = ModelBuilder(name="ladder")
    for i in range(rungs):
        left, right, rung = f"left{i}", f"right{i}", f"rung{i}"
        for name, above, x in ((left, f"left{i - 1}", 0.0), (right, f"right{i - 1}", width)):
            parent, place = ("world", _quarter(-1.0, x)) if i == 0 else (above, at(spacing))
            _bar(builder, name, parent, name, place, spacing, density)
        _bar(builder, rung, left, rung, _quarter(1.0, spacing), width, density)
        builder.add_loop(f"knot{i}", right, rung, SphereInCylinder(LIFT.axis), at(spacing), at(width))
    return builder.build()


# The Stewart-Gough platform, a parallel robot.

LEG_COUNT = 6


@check_arguments
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
