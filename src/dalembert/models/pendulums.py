"""Textbook systems whose equations of motion fit on a line. All move in the x-z plane, z up."""

from __future__ import annotations

from dalembert.errors import own_errors
from dalembert.model.body import Limits
from dalembert.model.builder import ModelBuilder
from dalembert.model.joints import Prismatic, Revolute
from dalembert.model.model import Model
from dalembert.model.shapes import Box, Capsule, Sphere
from dalembert.models.arguments import require_numbers, require_pairs
from dalembert.spatial import Mat3, RigidInertia, Transform, Vec3

__all__ = ["cart_pole", "double_pendulum", "pendulum", "two_link_arm"]

Y = (0.0, 1.0, 0.0)
ALONG_X = Mat3(0.0, 0.0, 1.0, 0.0, 1.0, 0.0, -1.0, 0.0, 0.0)
"""A frame whose z axis points along x: how a capsule lies along a link."""


def _at(x: float = 0.0, y: float = 0.0, z: float = 0.0) -> Transform:
    return Transform(Mat3.identity(), Vec3(x, y, z))


def _hang(
    builder: ModelBuilder,
    name: str,
    parent: str,
    joint: str,
    placement: Transform,
    length: float,
    mass: float,
    damping: float,
) -> None:
    """Add a point mass on a massless rod."""
    rod = Capsule(radius=0.01, length=abs(length), placement=_at(z=-length / 2.0), collision=False)
    builder.add_body(
        name,
        parent,
        Revolute(Y),
        joint,
        placement=placement,
        inertia=RigidInertia(mass, (0.0, 0.0, -length), (0.0, 0.0, 0.0)),
        damping=damping,
        shapes=(Sphere(radius=0.05, placement=_at(z=-length)), rod),
    )


@own_errors
def pendulum(length: float = 1.0, mass: float = 1.0, *, damping: float = 0.0) -> Model:
    """Return a pendulum, a point mass on a massless rod that hangs at q = 0: m l^2 a = tau - m g l sin q."""
    require_numbers("pendulum", length=length, mass=mass)
    builder = ModelBuilder(name="pendulum")
    _hang(builder, "bob", "world", "pivot", _at(), length, mass, damping)
    builder.add_frame("tip", "bob", _at(z=-length))
    return builder.build()


@own_errors
def double_pendulum(
    lengths: tuple[float, float] = (1.0, 1.0),
    masses: tuple[float, float] = (1.0, 1.0),
    *,
    damping: float = 0.0,
) -> Model:
    """Return a double pendulum of point masses on massless rods; the second angle is relative to the first
    rod.
    """
    require_pairs("double_pendulum", lengths=lengths, masses=masses)
    builder = ModelBuilder(name="double_pendulum")
    (l1, l2), (m1, m2) = lengths, masses
    _hang(builder, "upper", "world", "shoulder", _at(), l1, m1, damping)
    _hang(builder, "lower", "upper", "elbow", _at(z=-l1), l2, m2, damping)
    builder.add_frame("tip", "lower", _at(z=-l2))
    return builder.build()


@own_errors
def two_link_arm(
    lengths: tuple[float, float] = (1.0, 1.0),
    masses: tuple[float, float] = (1.0, 1.0),
    *,
    damping: float = 0.0,
) -> Model:
    """Return an arm of two uniform links, stretched out along x at q = 0; positive angles lift them."""
    require_pairs("two_link_arm", lengths=lengths, masses=masses)
    builder = ModelBuilder(name="two_link_arm")
    parent, placement = "world", _at()
    for name, joint, length, mass in zip(("upper", "lower"), ("shoulder", "elbow"), lengths, masses):
        rod = Capsule(radius=0.04, length=length, placement=Transform(ALONG_X, Vec3(length / 2.0, 0.0, 0.0)))
        moment = mass * length**2 / 12.0
        builder.add_body(
            name,
            parent,
            Revolute((0.0, -1.0, 0.0)),
            joint,
            placement=placement,
            inertia=RigidInertia(mass, (length / 2.0, 0.0, 0.0), (0.0, moment, moment)),
            damping=damping,
            shapes=(rod,),
        )
        parent, placement = name, _at(x=length)
    builder.add_frame("tip", "lower", placement)
    return builder.build()


@own_errors
def cart_pole(
    cart_mass: float = 1.0, pole_mass: float = 0.1, pole_length: float = 1.0, *, damping: float = 0.0
) -> Model:
    """Return a cart that slides along x with a uniform pole, upright at q = 0; only the slider has a
    motor.
    """
    require_numbers("cart_pole", cart_mass=cart_mass, pole_mass=pole_mass, pole_length=pole_length)
    builder = ModelBuilder(name="cart_pole")
    cart = Box((0.4, 0.2, 0.2))
    builder.add_body(
        "cart",
        "world",
        Prismatic((1.0, 0.0, 0.0)),
        "slider",
        inertia=cart.inertia(mass=cart_mass),
        limits=Limits(-2.4, 2.4),
        damping=damping,
        shapes=(cart,),
    )
    moment = pole_mass * pole_length**2 / 12.0
    builder.add_body(
        "pole",
        "cart",
        Revolute(Y),
        "hinge",
        inertia=RigidInertia(pole_mass, (0.0, 0.0, pole_length / 2.0), (moment, moment, 0.0)),
        damping=damping,
        shapes=(
            Capsule(radius=0.03, length=pole_length, placement=_at(z=pole_length / 2.0), collision=False),
        ),
    )
    builder.add_frame("tip", "pole", _at(z=pole_length))
    builder.set_actuated(["slider"])
    return builder.build()
