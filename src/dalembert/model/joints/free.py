"""Free (6-DoF) joint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from dalembert.model.joints import rotation_maps as maps
from dalembert.model.joints.axes import Placement
from dalembert.model.joints.joint import Joint
from dalembert.model.joints.subspaces import forces, moments
from dalembert.scalar import Scalar
from dalembert.spatial import Force, Motion, Transform, Vec3

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
    """

    kind = "free"
    nq = 7
    nv = 6
    coordinates = ("length",) * 3 + ("quaternion",) * 4
    unit_quaternions = (slice(3, 7),)

    def transform(self, q: Sequence[Scalar], time: Scalar | None = None) -> Placement:
        return Transform(maps.rotation_from_quaternion(*q[3:]), Vec3(*q[:3]))

    def subspace(self, q: Sequence[Scalar], time: Scalar | None = None) -> tuple[Motion, ...]:
        return tuple(Motion(a, Vec3.zero()) for a in AXES) + tuple(Motion(Vec3.zero(), a) for a in AXES)

    def velocity(self, q: Sequence[Scalar], v: Sequence[Scalar], time: Scalar | None = None) -> Motion:
        return Motion(Vec3(*v[:3]), Vec3(*v[3:]))

    def position_rate(self, q: Sequence[Scalar], v: Sequence[Scalar]) -> list[Scalar]:
        rate = maps.rotation_from_quaternion(*q[3:]) @ Vec3(*v[3:])
        return [*rate, *maps.quaternion_rate(q[3:], v[:3])]

    def integrate(self, q: Sequence[Scalar], dv: Sequence[Scalar]) -> list[Scalar]:
        position, p = maps.integrate_rigid(Vec3(*q[:3]), q[3:], Vec3(*dv[:3]), Vec3(*dv[3:]))
        return [*position, *p]

    def difference(self, q0: Sequence[Scalar], q1: Sequence[Scalar]) -> list[Scalar]:
        rotation, translation = maps.difference_rigid(Vec3(*q0[:3]), q0[3:], Vec3(*q1[:3]), q1[3:])
        return [*rotation, *translation]

    def neutral(self) -> list[float]:
        return [0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]

    def normalize(self, q: Sequence[Scalar]) -> list[Scalar]:
        return [*q[:3], *maps.quaternion_unit(q[3:])]

    def constraint_subspace(self, q: Sequence[Scalar], time: Scalar | None = None) -> tuple[Force, ...]:
        return ()

    def active_subspace(self, q: Sequence[Scalar], time: Scalar | None = None) -> tuple[Force, ...]:
        return moments(*AXES) + forces(*AXES)

    def position_of(self, X: Transform, time: Scalar | None = None) -> list[Scalar]:
        return [*X.p, *maps.quaternion_from_rotation(X.R)]

    def closure_error(self, X: Transform, time: Scalar | None = None) -> list[Scalar]:
        return []
