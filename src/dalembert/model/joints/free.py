"""Free (6-DoF) joint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from dalembert.model.joints.joint import Joint
from dalembert.model.joints.subspaces import forces, moments
from dalembert.scalar import Scalar
from dalembert.spatial import Force, Motion, Placement, Transform, Vec3
from dalembert.spatial.exponential import (
    quaternion_difference,
    quaternion_integrate,
    so3_left_jacobian_inverse_times,
    so3_left_jacobian_times,
)
from dalembert.spatial.rotations import (
    quaternion_normalized,
    quaternion_of_rotation,
    quaternion_rate,
    rotation_of_quaternion,
)

__all__ = ["Free"]

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
