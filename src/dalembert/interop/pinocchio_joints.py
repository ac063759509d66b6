"""Pinocchio's joint classes, each with our joint and the places of its coordinates.

Pinocchio 4.1, verified numerically: a spherical joint's quaternion is (x, y, z, w) and its velocity the
angular one in the successor; a free flyer has q = (position, quaternion), v = (linear, angular) in the
successor; a planar joint has q = (x, y, cos, sin), v = (v_x, v_y, omega) in the successor; an unbounded
revolute joint has q = (cos, sin); every other joint has v = dq/dt. All differences from ours are a change of
order, but for the (cos, sin) pairs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np

from dalembert.errors import ModelError, UnknownNameError
from dalembert.interop.coordinate_map import Source, shift_sources
from dalembert.model.joints import (
    Composite,
    Ellipsoid,
    Fixed,
    Free,
    Helical,
    Joint,
    Planar,
    Prismatic,
    Revolute,
    Spherical,
    SphericalEuler,
    Translation,
    Universal,
)
from dalembert.spatial import Mat3, Transform, Vec3

__all__ = ["JointImage", "image_of_joint", "image_of_mimic", "transform_of"]

UNIT_TOLERANCE: Final = 1e-9
"""How far from 1 the length of an axis may be; beyond, Pinocchio's own transforms are not rotations."""


@final
@dataclass(frozen=True, slots=True)
class JointImage:
    """Our joint for one of Pinocchio's; where our q and v come from, counted from the joint's first place."""

    joint: Joint
    q: tuple[Source, ...]
    v: tuple[int, ...]


def transform_of(placement: Any) -> Transform:
    """Return a `pinocchio.SE3` as our transform: both place the child in the parent."""
    rotation, translation = np.asarray(placement.rotation), np.asarray(placement.translation)
    return Transform(Mat3(*map(float, rotation.ravel())), Vec3(*map(float, translation)))


def image_of_joint(joint: Any, name: str) -> JointImage:
    """Return our joint for any `pinocchio.JointModel` but a mimic joint, for which see `image_of_mimic`."""
    kind = joint.shortname()
    if kind not in IMAGES:
        raise UnknownNameError.of(f'class of the Pinocchio joint "{name}",', kind, IMAGES)
    return IMAGES[kind](joint, name)


def image_of_mimic(model: Any, index: int) -> tuple[JointImage, Transform]:
    """Return the joint that mimics another one, without its coupling, and a displacement to add to its
    placement.

    Pinocchio does not say which joint it is that mimics, but its velocity does: ratio * S v of a joint with
    one coordinate. (Its own S lacks the pitch of a screw.) A joint that follows with ratio zero does not
    move; it stands where the coupling's offset puts it.
    """
    joint, name = model.joints[index], model.names[index]
    ratio = float(joint.extract().scaling)
    data = _at_unit_rate(joint)
    if ratio == 0.0:
        return JointImage(Fixed(), (), ()), transform_of(data.M)
    linear, angular = np.asarray(data.v.linear) / ratio, np.asarray(data.v.angular) / ratio
    if not angular.any():
        return _prismatic(linear, name), Transform.identity()
    if not linear.any():
        return _revolute(angular, name), Transform.identity()
    return _helical(angular, float(linear @ angular), name), Transform.identity()


def _at_unit_rate(joint: Any) -> Any:
    """Return Pinocchio's data of a joint with one freedom, at unit rate and with (cos, sin) at angle zero."""
    data = joint.createData()
    q, v = np.zeros(joint.idx_q + 2), np.zeros(joint.idx_v + 1)
    q[joint.idx_q] = v[joint.idx_v] = 1.0
    joint.calc(data, q, v)
    return data


def _unit(axis: Any, name: str) -> tuple[float, float, float]:
    x, y, z = (float(component) for component in np.asarray(axis).ravel())
    length = math.hypot(x, y, z)
    if not abs(length - 1.0) <= UNIT_TOLERANCE:
        raise ModelError(
            f'Pinocchio joint "{name}": its axis ({x:g}, {y:g}, {z:g}) has length {length:g}; '
            "Pinocchio's joints need unit axes, so normalise it where the joint is made"
        )
    return x, y, z


def _revolute(axis: Any, name: str) -> JointImage:
    return JointImage(Revolute(_unit(axis, name)), (0,), (0,))


def _continuous(axis: Any, name: str) -> JointImage:
    return JointImage(Revolute(_unit(axis, name)), ((0, 1),), (0,))


def _prismatic(axis: Any, name: str) -> JointImage:
    return JointImage(Prismatic(_unit(axis, name)), (0,), (0,))


def _helical(axis: Any, pitch: float, name: str) -> JointImage:
    return JointImage(Helical(_unit(axis, name), pitch), (0,), (0,))


def _continuous_unaligned(joint: Any, name: str) -> JointImage:
    # Pinocchio's Python class hides its axis.
    return _continuous(_at_unit_rate(joint).v.angular, name)


def _universal(joint: Any, name: str) -> JointImage:
    own = joint.extract()
    return JointImage(Universal(_unit(own.axis1, name), _unit(own.axis2, name)), (0, 1), (0, 1))


def _ellipsoid(joint: Any, name: str) -> JointImage:
    own = joint.extract()
    radii = (float(own.radius_x), float(own.radius_y), float(own.radius_z))
    return JointImage(Ellipsoid(*radii), (0, 1, 2), (0, 1, 2))


def _composite(joint: Any, name: str) -> JointImage:
    joints: list[Joint] = []
    placements: list[Transform] = []
    q: list[Source] = []
    v: list[int] = []
    nq = nv = 0
    own = joint.extract()
    for number, (inner, placement) in enumerate(zip(own.joints, own.jointPlacements)):
        image = image_of_joint(inner, f"{name}, part {number}")
        joints.append(image.joint)
        placements.append(transform_of(placement))
        q.extend(shift_sources(image.q, nq))
        v.extend(place + nv for place in image.v)
        nq, nv = nq + inner.nq, nv + inner.nv
    return JointImage(Composite(joints, placements), tuple(q), tuple(v))


def _constant(image: JointImage) -> Callable[[Any, str], JointImage]:
    return lambda joint, name: image


UNIT_AXES: Final[Sequence[tuple[str, tuple[float, float, float]]]] = (
    ("X", (1.0, 0.0, 0.0)),
    ("Y", (0.0, 1.0, 0.0)),
    ("Z", (0.0, 0.0, 1.0)),
)

IMAGES: Final[dict[str, Callable[[Any, str], JointImage]]] = {
    **{f"JointModelR{x}": _constant(_revolute(axis, x)) for x, axis in UNIT_AXES},
    **{f"JointModelRUB{x}": _constant(_continuous(axis, x)) for x, axis in UNIT_AXES},
    **{f"JointModelP{x}": _constant(_prismatic(axis, x)) for x, axis in UNIT_AXES},
    "JointModelRevoluteUnaligned": lambda joint, name: _revolute(joint.extract().axis, name),
    "JointModelRevoluteUnboundedUnaligned": _continuous_unaligned,
    "JointModelPrismaticUnaligned": lambda joint, name: _prismatic(joint.extract().axis, name),
    "JointModelHX": lambda joint, name: _helical((1.0, 0.0, 0.0), float(joint.extract().pitch), name),
    "JointModelHY": lambda joint, name: _helical((0.0, 1.0, 0.0), float(joint.extract().pitch), name),
    "JointModelHZ": lambda joint, name: _helical((0.0, 0.0, 1.0), float(joint.extract().pitch), name),
    "JointModelHelicalUnaligned": lambda joint, name: _helical(
        joint.extract().axis, float(joint.extract().pitch), name
    ),
    "JointModelUniversal": _universal,
    "JointModelEllipsoid": _ellipsoid,
    "JointModelSpherical": _constant(JointImage(Spherical(), (3, 0, 1, 2), (0, 1, 2))),
    "JointModelSphericalZYX": _constant(JointImage(SphericalEuler("zyx"), (0, 1, 2), (0, 1, 2))),
    "JointModelTranslation": _constant(JointImage(Translation(), (0, 1, 2), (0, 1, 2))),
    "JointModelPlanar": _constant(JointImage(Planar(), (0, 1, (2, 3)), (2, 0, 1))),
    "JointModelFreeFlyer": _constant(JointImage(Free(), (0, 1, 2, 6, 3, 4, 5), (3, 4, 5, 0, 1, 2))),
    "JointModelComposite": _composite,
}
"""Pinocchio's class names, each with what makes its image from the joint and its name."""
