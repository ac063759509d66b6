"""Joints of constant S: the lower pairs but the spherical, and the joints of three, six and no freedoms.

Each says about which axes of its basis it turns and along which it shifts; S, T and T_a follow.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from dalembert.model.joints.joint import (
    ConstantSubspaceJoint,
    SingleAxisJoint,
    axis_error,
    axis_offset,
    displacement,
    rotation_error,
)
from dalembert.model.joints.subspaces import angle_about, basis_around, finite_number, forces, moments, screw
from dalembert.scalar import Scalar, Scalars, Time, absolute, cos, floor, select, sin
from dalembert.spatial import Force, Mat3, Motion, Placement, Transform, Vec3
from dalembert.spatial.exponential import (
    quaternion_difference,
    quaternion_integrate,
    se2_exp,
    se2_log,
    so3_left_jacobian_inverse_times,
    so3_left_jacobian_times,
)
from dalembert.spatial.rotations import (
    quaternion_of_rotation,
    quaternion_rate,
    rotation_about_axis,
    rotation_of_quaternion,
)


@final
@dataclass(frozen=True, slots=True, init=False)
class Revolute(SingleAxisJoint):
    """Rotation by q [rad] about an axis through the origin: S = (a, 0) (Featherstone 2008 Table 4.1).

    Without limits it is a continuous joint; the angle is never wrapped. Along a coordinate axis, of either
    sign, the transform is an axial screw.

    >>> joint = da.Revolute((0, 0, 1))
    >>> print(np.round(joint.transform([np.pi / 2]).R.to_list(), 6).tolist()[0])
    [0.0, -1.0, 0.0]
    >>> joint.subspace([0.0])[0].to_list()
    [0.0, 0.0, 1.0, 0.0, 0.0, 0.0]
    """

    kind = "revolute"
    coordinates = ("angle",)
    _turns = (2,)

    def transform(self, q: Scalars, time: Time = None) -> Placement:
        return screw(self.axis, q[0], None)

    def position_of(self, X: Transform, time: Time = None) -> list[Scalar]:
        return [angle_about(self.axis, X.R)]

    def closure_error(self, X: Transform, time: Time = None) -> list[Scalar]:
        return [*axis_error(self.axis, X), axis_offset(self.axis, X)]


@final
@dataclass(frozen=True, slots=True, init=False)
class Prismatic(SingleAxisJoint):
    """Translation by q [m] along an axis: S = (0, a) (Featherstone 2008 Table 4.1).

    >>> da.Prismatic((1, 0, 0)).transform([0.5]).p
    Vec3(x=0.5, y=0.0, z=0.0)
    """

    kind = "prismatic"
    coordinates = ("length",)
    _shifts = (2,)

    def transform(self, q: Scalars, time: Time = None) -> Placement:
        return screw(self.axis, None, q[0])

    def position_of(self, X: Transform, time: Time = None) -> list[Scalar]:
        return [self.axis.dot(X.p)]

    def closure_error(self, X: Transform, time: Time = None) -> list[Scalar]:
        turn = rotation_error(X)
        return [turn.dot(direction) for direction in basis_around(self.axis)] + axis_error(self.axis, X)[2:]


PITCH_TOLERANCE = 1.0e-12
"""Below this advance per radian [m] the angle of a screw cannot be told from how far it has advanced."""


def turned_angle(angle: Scalar, advance: Scalar, pitch: Scalar) -> Scalar:
    """Return the angle plus the whole turns that bring pitch times angle nearest to the advance [m]."""
    usable = absolute(pitch) > PITCH_TOLERANCE
    turns = floor((advance / select(usable, pitch, 1.0) - angle) / math.tau + 0.5)
    return angle + select(usable, turns, 0.0) * math.tau


@final
@dataclass(frozen=True, slots=True, init=False)
class Helical(SingleAxisJoint):
    """Rotation by q [rad] about an axis with an advance of h q along it: S = (a, h a) (Featherstone 2008
    Table 4.1).

    `pitch` is h [m/rad]: the advance per radian, not per turn.

    >>> joint = da.Helical((0, 0, 1), pitch=0.1)
    >>> print(joint.subspace([0.0])[0].to_list())
    [0.0, 0.0, 1.0, 0.0, 0.0, 0.1]
    """

    pitch: Scalar

    kind = "helical"
    parameter_names = ("axis", "pitch")
    coordinates = ("angle",)

    def __init__(self, axis: Sequence[Scalar] | Vec3 = (0.0, 0.0, 1.0), pitch: Scalar = 0.0) -> None:
        SingleAxisJoint.__init__(self, axis)
        object.__setattr__(self, "pitch", finite_number(pitch, "pitch", "Helical"))

    def transform(self, q: Scalars, time: Time = None) -> Placement:
        return screw(self.axis, q[0], self.pitch * q[0])

    def subspace(self, q: Scalars, time: Time = None) -> tuple[Motion, ...]:
        return (Motion(self.axis, self.axis * self.pitch),)

    def constraint_subspace(self, q: Scalars, time: Time = None) -> tuple[Force, ...]:
        t1, t2, a = basis_around(self.axis)
        return moments(t1, t2) + forces(t1, t2) + (Force(a * -self.pitch, a),)

    def active_subspace(self, q: Scalars, time: Time = None) -> tuple[Force, ...]:
        return moments(self.axis)

    def position_of(self, X: Transform, time: Time = None) -> list[Scalar]:
        return [turned_angle(angle_about(self.axis, X.R), self.axis.dot(X.p), self.pitch)]


@final
@dataclass(frozen=True, slots=True, init=False)
class Cylindrical(SingleAxisJoint):
    """Rotation by q1 [rad] about and translation by q2 [m] along an axis (Featherstone 2008 Table 4.1).

    >>> joint = da.Cylindrical((0, 0, 1))
    >>> print(joint.transform([np.pi / 2, 0.3]).p, joint.nv)
    Vec3(x=0.0, y=0.0, z=0.3) 2
    """

    kind = "cylindrical"
    coordinates = ("angle", "length")
    _turns = (2,)
    _shifts = (2,)

    def transform(self, q: Scalars, time: Time = None) -> Placement:
        return screw(self.axis, q[0], q[1])

    def position_of(self, X: Transform, time: Time = None) -> list[Scalar]:
        return [angle_about(self.axis, X.R), self.axis.dot(X.p)]

    def closure_error(self, X: Transform, time: Time = None) -> list[Scalar]:
        return axis_error(self.axis, X)


@final
@dataclass(frozen=True, slots=True)
class Planar(ConstantSubspaceJoint):
    """Motion in the x-y plane: q = (x, y, angle), v = (omega, v_x, v_y) in successor coordinates.

    x and y [m] are in predecessor coordinates, unlike those of Featherstone 2008 Table 4.1, so that a body
    far away can spin without moving its coordinates; S = (e3, e4, e5) is the table's. With R(angle): d(x,
    y)/dt = R (v_x, v_y). Positions integrate by the exponential of SE(2). The angle is not wrapped:
    `difference` counts whole turns, and a displacement between poses exactly n turns apart (n not 0) does
    not exist unless the points coincide.

    >>> joint = da.Planar()
    >>> print(np.round(joint.position_rate([0.0, 0.0, np.pi / 2], [0.0, 1.0, 0.0]), 6).tolist())
    [0.0, 1.0, 0.0]
    """

    kind = "planar"
    coordinates = ("length", "length", "angle")
    _turns = (2,)
    _shifts = (0, 1)

    def transform(self, q: Scalars, time: Time = None) -> Placement:
        x, y, angle = q
        return Transform(rotation_about_axis(2, angle), Vec3(x, y, 0.0))

    def position_rate(self, q: Scalars, v: Scalars) -> list[Scalar]:
        return [*_turn(q[2], v[1], v[2]), v[0]]

    def integrate(self, q: Scalars, dv: Scalars) -> list[Scalar]:
        x, y, angle = q
        turn, dx, dy = dv
        path_x, path_y, _ = se2_exp(turn, dx, dy)
        step_x, step_y = _turn(angle, path_x, path_y)
        return [x + step_x, y + step_y, angle + turn]

    def difference(self, q0: Scalars, q1: Scalars) -> list[Scalar]:
        dx, dy = _turn(-q0[2], q1[0] - q0[0], q1[1] - q0[1])
        return list(se2_log(dx, dy, q1[2] - q0[2]))

    def position_of(self, X: Transform, time: Time = None) -> list[Scalar]:
        return [X.p.x, X.p.y, angle_about(Vec3.unit(2), X.R)]


def _turn(angle: Scalar, x: Scalar, y: Scalar) -> tuple[Scalar, Scalar]:
    """Rotate (x, y) by the angle."""
    c, s = cos(angle), sin(angle)
    return c * x - s * y, s * x + c * y


@final
@dataclass(frozen=True, slots=True)
class Translation(ConstantSubspaceJoint):
    """Translation by q = (x, y, z) [m] without rotation: S = (e4, e5, e6).

    >>> da.Translation().transform([1.0, 2.0, 3.0]).p
    Vec3(x=1.0, y=2.0, z=3.0)
    """

    kind = "translation"
    coordinates = ("length",) * 3
    _shifts = (0, 1, 2)

    def transform(self, q: Scalars, time: Time = None) -> Placement:
        return Transform(Mat3.identity(), Vec3(*q))

    def position_of(self, X: Transform, time: Time = None) -> list[Scalar]:
        return list(X.p)

    def closure_error(self, X: Transform, time: Time = None) -> list[Scalar]:
        return list(rotation_error(X))


@final
@dataclass(frozen=True, slots=True)
class Free(ConstantSubspaceJoint):
    """No constraint: q = (position in predecessor coordinates [m], quaternion), v = (omega, v_O) in body
    coordinates.

    S = 1 as in Featherstone 2008 Table 4.1, with the position variables of Example 4.5: d(position)/dt = R
    v_O, so that a distant body can spin without moving them. Positions integrate by the exponential of
    SE(3).

    >>> joint = da.Free()
    >>> joint.nq, joint.nv, joint.neutral()
    (7, 6, [0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0])
    """

    kind = "free"
    coordinates = ("length",) * 3 + ("quaternion",) * 4
    _turns = (0, 1, 2)
    _shifts = (0, 1, 2)

    def transform(self, q: Scalars, time: Time = None) -> Placement:
        return Transform(rotation_of_quaternion(q[3:]), Vec3(*q[:3]))

    def position_rate(self, q: Scalars, v: Scalars) -> list[Scalar]:
        rate = rotation_of_quaternion(q[3:]) @ Vec3(*v[3:])
        return [*rate, *quaternion_rate(q[3:], Vec3(*v[:3]))]

    def integrate(self, q: Scalars, dv: Scalars) -> list[Scalar]:
        turn = Vec3(*dv[:3])
        path = so3_left_jacobian_times(turn, Vec3(*dv[3:]))
        position = Vec3(*q[:3]) + rotation_of_quaternion(q[3:]) @ path
        return [*position, *quaternion_integrate(q[3:], turn)]

    def difference(self, q0: Scalars, q1: Scalars) -> list[Scalar]:
        turn = quaternion_difference(q0[3:], q1[3:])
        path = rotation_of_quaternion(q0[3:]).transposed_times(Vec3(*q1[:3]) - Vec3(*q0[:3]))
        return [*turn, *so3_left_jacobian_inverse_times(turn, path)]

    def position_of(self, X: Transform, time: Time = None) -> list[Scalar]:
        return [*X.p, *quaternion_of_rotation(X.R)]

    def closure_error(self, X: Transform, time: Time = None) -> list[Scalar]:
        return []


@final
@dataclass(frozen=True, slots=True)
class Fixed(ConstantSubspaceJoint):
    """No motion: S is 6 x 0 and T = 1. It can close any loop (Featherstone 2008 section 8.3).

    >>> joint = da.Fixed()
    >>> joint.nv, len(joint.constraint_subspace([]))
    (0, 6)
    """

    kind = "fixed"
    coordinates = ()

    def transform(self, q: Scalars, time: Time = None) -> Placement:
        return Transform.identity()

    def position_of(self, X: Transform, time: Time = None) -> list[Scalar]:
        return []

    def closure_error(self, X: Transform, time: Time = None) -> list[Scalar]:
        d = displacement(X)
        return [*d.angular, *d.linear]
