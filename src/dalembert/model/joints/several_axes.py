"""Free (6-DoF) joint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

from dalembert.model.joints.joint import Joint, axis_error, displacement, rotation_error
from dalembert.model.joints.subspaces import angle_about, basis_around, forces, moments, screw, unit_axis
from dalembert.scalar import Scalar, cos, sin
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
    principal_direction,
    quaternion_normalized,
    quaternion_of_rotation,
    quaternion_rate,
    rotation_about_axis,
    rotation_of_quaternion,
)

AXES = (Vec3.unit(0), Vec3.unit(1), Vec3.unit(2))


@final
@dataclass(frozen=True, slots=True)
class Free(Joint):
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
    constant_constraint_forces = True
    nq = 7
    nv = 6
    coordinates = ("length",) * 3 + ("quaternion",) * 4
    unit_quaternions = (slice(3, 7),)

    def transform(self, q: Sequence[Scalar], time: Scalar | None = None) -> Placement:
        return Transform(rotation_of_quaternion(q[3:]), Vec3(*q[:3]))

    def subspace(self, q: Sequence[Scalar], time: Scalar | None = None) -> tuple[Motion, ...]:
        return tuple(Motion(a, Vec3.zero()) for a in AXES) + tuple(Motion(Vec3.zero(), a) for a in AXES)

    def velocity(self, q: Sequence[Scalar], v: Sequence[Scalar], time: Scalar | None = None) -> Motion:
        return Motion(Vec3(*v[:3]), Vec3(*v[3:]))

    def position_rate(self, q: Sequence[Scalar], v: Sequence[Scalar]) -> list[Scalar]:
        rate = rotation_of_quaternion(q[3:]) @ Vec3(*v[3:])
        return [*rate, *quaternion_rate(q[3:], Vec3(*v[:3]))]

    def integrate(self, q: Sequence[Scalar], dv: Sequence[Scalar]) -> list[Scalar]:
        turn = Vec3(*dv[:3])
        path = so3_left_jacobian_times(turn, Vec3(*dv[3:]))
        position = Vec3(*q[:3]) + rotation_of_quaternion(q[3:]) @ path
        return [*position, *quaternion_integrate(q[3:], turn)]

    def difference(self, q0: Sequence[Scalar], q1: Sequence[Scalar]) -> list[Scalar]:
        turn = quaternion_difference(q0[3:], q1[3:])
        path = rotation_of_quaternion(q0[3:]).transposed_times(Vec3(*q1[:3]) - Vec3(*q0[:3]))
        return [*turn, *so3_left_jacobian_inverse_times(turn, path)]

    def neutral(self) -> list[float]:
        return [0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]

    def normalize(self, q: Sequence[Scalar]) -> list[Scalar]:
        return [*q[:3], *quaternion_normalized(q[3:])]

    def constraint_subspace(self, q: Sequence[Scalar], time: Scalar | None = None) -> tuple[Force, ...]:
        return ()

    def active_subspace(self, q: Sequence[Scalar], time: Scalar | None = None) -> tuple[Force, ...]:
        return moments(*AXES) + forces(*AXES)

    def position_of(self, X: Transform, time: Scalar | None = None) -> list[Scalar]:
        return [*X.p, *quaternion_of_rotation(X.R)]

    def closure_error(self, X: Transform, time: Scalar | None = None) -> list[Scalar]:
        return []


# Planar joint.


@final
@dataclass(frozen=True, slots=True)
class Planar(Joint):
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
    constant_constraint_forces = True
    nq = 3
    nv = 3
    coordinates = ("length", "length", "angle")

    def transform(self, q: Sequence[Scalar], time: Scalar | None = None) -> Placement:
        x, y, angle = q
        return Transform(rotation_about_axis(2, angle), Vec3(x, y, 0.0))

    def subspace(self, q: Sequence[Scalar], time: Scalar | None = None) -> tuple[Motion, ...]:
        return (
            Motion(Vec3.unit(2), Vec3.zero()),
            Motion(Vec3.zero(), Vec3.unit(0)),
            Motion(Vec3.zero(), Vec3.unit(1)),
        )

    def position_rate(self, q: Sequence[Scalar], v: Sequence[Scalar]) -> list[Scalar]:
        return [*_turn(q[2], v[1], v[2]), v[0]]

    def integrate(self, q: Sequence[Scalar], dv: Sequence[Scalar]) -> list[Scalar]:
        x, y, angle = q
        turn, dx, dy = dv
        path_x, path_y, _ = se2_exp(turn, dx, dy)
        step_x, step_y = _turn(angle, path_x, path_y)
        return [x + step_x, y + step_y, angle + turn]

    def difference(self, q0: Sequence[Scalar], q1: Sequence[Scalar]) -> list[Scalar]:
        dx, dy = _turn(-q0[2], q1[0] - q0[0], q1[1] - q0[1])
        return list(se2_log(dx, dy, q1[2] - q0[2]))

    def constraint_subspace(self, q: Sequence[Scalar], time: Scalar | None = None) -> tuple[Force, ...]:
        return moments(Vec3.unit(0), Vec3.unit(1)) + forces(Vec3.unit(2))

    def active_subspace(self, q: Sequence[Scalar], time: Scalar | None = None) -> tuple[Force, ...]:
        return moments(Vec3.unit(2)) + forces(Vec3.unit(0), Vec3.unit(1))

    def position_of(self, X: Transform, time: Scalar | None = None) -> list[Scalar]:
        return [X.p.x, X.p.y, angle_about(Vec3.unit(2), X.R)]


def _turn(angle: Scalar, x: Scalar, y: Scalar) -> tuple[Scalar, Scalar]:
    """Rotate (x, y) by the angle."""
    c, s = cos(angle), sin(angle)
    return c * x - s * y, s * x + c * y


# Cylindrical joint.


@final
@dataclass(frozen=True, slots=True, init=False)
class Cylindrical(Joint):
    """Rotation by q1 [rad] about and translation by q2 [m] along an axis (Featherstone 2008 Table 4.1).

    >>> joint = da.Cylindrical((0, 0, 1))
    >>> print(joint.transform([np.pi / 2, 0.3]).p, joint.nv)
    Vec3(x=0.0, y=0.0, z=0.3) 2
    """

    axis: Vec3

    kind = "cylindrical"
    constant_constraint_forces = True
    parameter_names = ("axis",)
    nq = 2
    nv = 2
    coordinates = ("angle", "length")

    def __init__(self, axis: Sequence[Scalar] | Vec3 = (0.0, 0.0, 1.0)) -> None:
        object.__setattr__(self, "axis", unit_axis(axis, "Cylindrical"))

    def structure(self) -> tuple[Any, ...]:
        return (self.kind, principal_direction(self.axis))

    def transform(self, q: Sequence[Scalar], time: Scalar | None = None) -> Placement:
        return screw(self.axis, q[0], q[1])

    def subspace(self, q: Sequence[Scalar], time: Scalar | None = None) -> tuple[Motion, ...]:
        return Motion(self.axis, Vec3.zero()), Motion(Vec3.zero(), self.axis)

    def constraint_subspace(self, q: Sequence[Scalar], time: Scalar | None = None) -> tuple[Force, ...]:
        t1, t2, _ = basis_around(self.axis)
        return moments(t1, t2) + forces(t1, t2)

    def active_subspace(self, q: Sequence[Scalar], time: Scalar | None = None) -> tuple[Force, ...]:
        return moments(self.axis) + forces(self.axis)

    def position_of(self, X: Transform, time: Scalar | None = None) -> list[Scalar]:
        return [angle_about(self.axis, X.R), self.axis.dot(X.p)]

    def closure_error(self, X: Transform, time: Scalar | None = None) -> list[Scalar]:
        return axis_error(self.axis, X)


# Translation (3-DoF) joint.


@final
@dataclass(frozen=True, slots=True)
class Translation(Joint):
    """Translation by q = (x, y, z) [m] without rotation: S = (e4, e5, e6).

    >>> da.Translation().transform([1.0, 2.0, 3.0]).p
    Vec3(x=1.0, y=2.0, z=3.0)
    """

    kind = "translation"
    constant_constraint_forces = True
    nq = 3
    nv = 3
    coordinates = ("length",) * 3

    def transform(self, q: Sequence[Scalar], time: Scalar | None = None) -> Placement:
        return Transform(Mat3.identity(), Vec3(*q))

    def subspace(self, q: Sequence[Scalar], time: Scalar | None = None) -> tuple[Motion, ...]:
        return tuple(Motion(Vec3.zero(), axis) for axis in AXES)

    def velocity(self, q: Sequence[Scalar], v: Sequence[Scalar], time: Scalar | None = None) -> Motion:
        return Motion(Vec3.zero(), Vec3(*v))

    def constraint_subspace(self, q: Sequence[Scalar], time: Scalar | None = None) -> tuple[Force, ...]:
        return moments(*AXES)

    def active_subspace(self, q: Sequence[Scalar], time: Scalar | None = None) -> tuple[Force, ...]:
        return forces(*AXES)

    def position_of(self, X: Transform, time: Scalar | None = None) -> list[Scalar]:
        return list(X.p)

    def closure_error(self, X: Transform, time: Scalar | None = None) -> list[Scalar]:
        return list(rotation_error(X))


# Fixed (zero-DoF) joint.


@final
@dataclass(frozen=True, slots=True)
class Fixed(Joint):
    """No motion: S is 6 x 0 and T = 1. It can close any loop (Featherstone 2008 section 8.3).

    >>> joint = da.Fixed()
    >>> joint.nv, len(joint.constraint_subspace([]))
    (0, 6)
    """

    kind = "fixed"
    constant_constraint_forces = True
    nq = 0
    nv = 0
    coordinates = ()

    def transform(self, q: Sequence[Scalar], time: Scalar | None = None) -> Placement:
        return Transform.identity()

    def subspace(self, q: Sequence[Scalar], time: Scalar | None = None) -> tuple[Motion, ...]:
        return ()

    def constraint_subspace(self, q: Sequence[Scalar], time: Scalar | None = None) -> tuple[Force, ...]:
        return moments(*AXES) + forces(*AXES)

    def active_subspace(self, q: Sequence[Scalar], time: Scalar | None = None) -> tuple[Force, ...]:
        return ()

    def position_of(self, X: Transform, time: Scalar | None = None) -> list[Scalar]:
        return []

    def closure_error(self, X: Transform, time: Scalar | None = None) -> list[Scalar]:
        d = displacement(X)
        return [*d.angular, *d.linear]
