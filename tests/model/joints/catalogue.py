"""Every kind of joint, once or in each of its forms, with random states: the fixture of the joint tests."""

from __future__ import annotations

import math
from itertools import permutations, product

import numpy as np

from dalembert.model.joints import (
    Composite,
    Cylindrical,
    EllipsoidJoint,
    Fixed,
    Free,
    Helical,
    Joint,
    Planar,
    Prismatic,
    RackPinion,
    Reversed,
    Revolute,
    SphereInCylinder,
    Spherical,
    SphericalEuler,
    SphericalExponential,
    TimeDependent,
    Translation,
    Universal,
    UserDefined,
)
from dalembert.scalar import cos, sin
from dalembert.spatial import Mat3, Motion, Transform, Vec3

SKEW = (0.48, -0.6, 0.64)
PRINCIPAL = [(1, 0, 0), (0, 1, 0), (0, 0, 1), (-1, 0, 0), (0, -1, 0), (0, 0, -1)]
EULER_ORDERS = ["".join(order) for order in product("xyz", repeat=3) if order[0] != order[1] != order[2]]
TIME = 0.37


def placement(seed: int) -> Transform:
    """A random placement."""
    rng = np.random.default_rng(seed)
    q = rng.standard_normal(4)
    q /= np.linalg.norm(q)
    R = Spherical().transform(q.tolist()).R
    return Transform(R, Vec3(*rng.uniform(-1, 1, 3).tolist()))


def book_planar() -> UserDefined:
    """The planar joint with the position variables of Table 4.1, which turn with the successor."""

    def place(q):
        c, s = cos(q[0]), sin(q[0])
        R = Mat3(c, -s, 0.0, s, c, 0.0, 0.0, 0.0, 1.0)
        return Transform(R, Vec3(c * q[1] - s * q[2], s * q[1] + c * q[2], 0.0))

    def subspace(q):
        z, zero = Vec3(0.0, 0.0, 1.0), Vec3.zero()
        return Motion(z, zero), Motion(zero, Vec3(1.0, 0.0, 0.0)), Motion(zero, Vec3(0.0, 1.0, 0.0))

    # v holds Plücker coordinates in the successor, not the rates of these position variables.
    def rate(q, v):
        return [v[0], v[1] + q[2] * v[0], v[2] - q[1] * v[0]]

    def to_ours(q):
        c, s = cos(q[0]), sin(q[0])
        return [c * q[1] - s * q[2], s * q[1] + c * q[2], q[0]]

    def to_book(q):
        c, s = cos(q[2]), sin(q[2])
        return [q[2], c * q[0] + s * q[1], c * q[1] - s * q[0]]

    return UserDefined(
        "book planar", 3, 3, place,
        subspace=subspace, position_rate=rate,
        integrate=lambda q, dv: to_book(Planar().integrate(to_ours(q), dv)),
        difference=lambda a, b: Planar().difference(to_ours(a), to_ours(b)),
        coordinates=("angle", "length", "length"),
    )  # fmt: skip


def helix(pitch: float = 0.3) -> UserDefined:
    """A helical joint along z, from its placement alone."""

    def place(q):
        c, s = cos(q[0]), sin(q[0])
        return Transform(Mat3(c, -s, 0.0, s, c, 0.0, 0.0, 0.0, 1.0), Vec3(0.0, 0.0, pitch * q[0]))

    return UserDefined("helix", 1, 1, place)


def ball() -> UserDefined:
    """A spherical joint from its placement and the maps of its quaternion."""
    library = Spherical()
    return UserDefined(
        "ball", 4, 3, library.transform,
        position_rate=library.position_rate, integrate=library.integrate, difference=library.difference,
        normalize=library.normalize, neutral=library.neutral(), coordinates=("quaternion",) * 4,
        unit_quaternions=[slice(0, 4)],
    )  # fmt: skip


def rheonomic_wheel() -> UserDefined:
    """A wheel on an arm that pumps with time, defined by its placement alone."""

    def place(q, time):
        c, s = cos(q[0]), sin(q[0])
        R = Mat3(c, 0.0, s, 0.0, 1.0, 0.0, -s, 0.0, c)
        return Transform(R, Vec3(0.2 * sin(3.0 * time) + 0.1 * q[0] * time, 0.4 * q[1], time * time))

    return UserDefined("wheel", 2, 2, place, time_dependent=True, coordinates=("angle", "length"))


def driven_revolute() -> TimeDependent:
    return TimeDependent(
        Revolute(SKEW),
        driver=Universal((1, 0, 0), (0, 0.6, 0.8)),
        motion=lambda t: [sin(2.0 * t), 0.3 * t * t],
    )


def joints() -> dict[str, Joint]:
    """Every joint by the name that its tests bear."""
    catalogue: dict[str, Joint] = {"fixed": Fixed()}
    for axis in PRINCIPAL:
        catalogue[f"revolute{axis}"] = Revolute(axis)
        catalogue[f"prismatic{axis}"] = Prismatic(axis)
        catalogue[f"helical{axis}"] = Helical(axis, 0.3)
        catalogue[f"cylindrical{axis}"] = Cylindrical(axis)
    for index, axis in enumerate((SKEW, (-0.36, 0.48, -0.8))):
        catalogue[f"revolute skew {index}"] = Revolute(axis)
        catalogue[f"prismatic skew {index}"] = Prismatic(axis)
        catalogue[f"helical skew {index}"] = Helical(axis, -0.2)
        catalogue[f"cylindrical skew {index}"] = Cylindrical(axis)
    for order in EULER_ORDERS:
        catalogue[f"euler {order}"] = SphericalEuler(order)
    for first, second in permutations([(1, 0, 0), (0, 1, 0), (0, 0, 1)], 2):
        catalogue[f"universal {first} {second}"] = Universal(first, second)
    catalogue |= {
        "universal skew": Universal(SKEW, (0.6, 0.8, 0.0)),
        "planar": Planar(),
        "spherical": Spherical(),
        "exponential": SphericalExponential(),
        "translation": Translation(),
        "free": Free(),
        "rack and pinion": RackPinion(0.7),
        "sphere in cylinder": SphereInCylinder(),
        "sphere in cylinder skew": SphereInCylinder(SKEW),
        "ellipsoid": EllipsoidJoint(0.7, 1.1, 1.6),
        "composite": Composite([Revolute((0, 0, 1)), Prismatic(SKEW)], [placement(1), placement(2)]),
        "composite ball": Composite([Helical(SKEW, 0.4), Spherical()], [placement(3), placement(4)]),
        "composite nested": Composite(
            [Composite([RackPinion(0.2), Revolute((0, 1, 0))]), Planar()], [placement(5), placement(6)]
        ),
        "composite of one": Composite(
            [Fixed(), Universal(), Fixed()], [placement(7), placement(8), placement(9)]
        ),
        "reversed rack": Reversed(RackPinion(0.7)),
        "reversed helical": Reversed(Helical((0, 0, 1), 0.3)),
        "reversed free": Reversed(Free()),
        "reversed ellipsoid": Reversed(EllipsoidJoint(0.7, 1.1, 1.6)),
        "reversed twice": Reversed(Reversed(SphereInCylinder(SKEW))),
        "user helix": helix(),
        "user book planar": book_planar(),
        "user ball": ball(),
        "user rheonomic": rheonomic_wheel(),
        "driven revolute": driven_revolute(),
        "driven nothing": TimeDependent(Fixed(), driver=Free(), motion=_orbit),
        "driven in composite": Composite(
            [driven_revolute(), Prismatic((1, 0, 0))], [placement(10), placement(11)]
        ),
        "reversed driven": Reversed(driven_revolute()),
    }
    return catalogue


def _orbit(time):
    """A pose that turns about x while its origin goes round."""
    return [cos(time), sin(time), 0.1 * time, cos(0.5 * time), sin(0.5 * time), 0.0, 0.0]


CATALOGUE = joints()


def state(joint: Joint, seed: int = 0) -> tuple[list[float], list[float]]:
    """A random position away from singularities, and a random velocity."""
    rng = np.random.default_rng(seed)
    for _ in range(100):
        q = joint.random(rng)
        if joint.nv == 0 or joint.singularity_measure(q, TIME) > 0.2:
            return q, rng.uniform(-1.5, 1.5, joint.nv).tolist()
    raise AssertionError("no regular position found")


def close(actual, expected, tolerance: float = 1e-12) -> None:
    """Every number of both, to an absolute and relative tolerance."""
    a, b = np.asarray(actual, dtype=float), np.asarray(expected, dtype=float)
    assert a.shape == b.shape
    np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def wrapped(angle: float) -> float:
    """The angle in (-pi, pi]."""
    return math.remainder(angle, math.tau)
