"""Sphere-in-cylinder joint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

from dalembert.model.joints.axes import basis_around, unit_axis
from dalembert.model.joints.joint import Joint
from dalembert.model.joints.subspaces import forces, moments, rotations
from dalembert.scalar import Scalar
from dalembert.spatial import Force, Mat3, Motion, Placement, Transform, Vec3
from dalembert.spatial.exponential import quaternion_difference, quaternion_integrate
from dalembert.spatial.rotations import (
    principal_direction,
    quaternion_normalized,
    quaternion_of_rotation,
    quaternion_rate,
    rotation_of_quaternion,
)

__all__ = ["SphereInCylinder"]


@final
@dataclass(frozen=True, slots=True, init=False)
class SphereInCylinder(Joint):
    """A ball, fixed to the successor, turns freely and slides along the axis of a tube fixed to the
    predecessor.

    q = (distance along the axis [m], quaternion), v = (omega in successor coordinates [rad/s], sliding speed
    [m/s]). Its two constraints replace a revolute joint's five where that would overconstrain a planar loop
    (Featherstone 2008 section 8.10). With E the rotation into successor coordinates: S = (e1, e2, e3, (0, E
    a)), T = (0, E t1), (0, E t2).

    >>> joint = da.SphereInCylinder((0, 0, 1))
    >>> joint.nv, len(joint.constraint_subspace(joint.neutral()))
    (4, 2)
    """

    axis: Vec3

    kind = "sphere_in_cylinder"
    parameter_names = ("axis",)
    nq = 5
    nv = 4
    coordinates = ("length",) + ("quaternion",) * 4
    unit_quaternions = (slice(1, 5),)

    def __init__(self, axis: Sequence[Scalar] | Vec3 = (0.0, 0.0, 1.0)) -> None:
        object.__setattr__(self, "axis", unit_axis(axis, "SphereInCylinder"))

    def structure(self) -> tuple[Any, ...]:
        return (self.kind, principal_direction(self.axis))

    def transform(self, q: Sequence[Scalar], time: Scalar | None = None) -> Placement:
        return Transform(_rotation(q), self.axis * q[0])

    def subspace(self, q: Sequence[Scalar], time: Scalar | None = None) -> tuple[Motion, ...]:
        slide = Motion(Vec3.zero(), _rotation(q).transposed_times(self.axis))
        return (*rotations(Vec3.unit(0), Vec3.unit(1), Vec3.unit(2)), slide)

    def bias(self, q: Sequence[Scalar], v: Sequence[Scalar], time: Scalar | None = None) -> Motion:
        # The axis is fixed in the predecessor: (E a)° = E a x omega.
        a = _rotation(q).transposed_times(self.axis)
        return Motion(Vec3.zero(), a.cross(Vec3(*v[:3])) * v[3])

    def position_rate(self, q: Sequence[Scalar], v: Sequence[Scalar]) -> list[Scalar]:
        return [v[3], *quaternion_rate(q[1:], Vec3(*v[:3]))]

    def integrate(self, q: Sequence[Scalar], dv: Sequence[Scalar]) -> list[Scalar]:
        return [q[0] + dv[3], *quaternion_integrate(q[1:], Vec3(*dv[:3]))]

    def difference(self, q0: Sequence[Scalar], q1: Sequence[Scalar]) -> list[Scalar]:
        return [*quaternion_difference(q0[1:], q1[1:]), q1[0] - q0[0]]

    def neutral(self) -> list[float]:
        return [0.0, 1.0, 0.0, 0.0, 0.0]

    def normalize(self, q: Sequence[Scalar]) -> list[Scalar]:
        return [q[0], *quaternion_normalized(q[1:])]

    def constraint_subspace(self, q: Sequence[Scalar], time: Scalar | None = None) -> tuple[Force, ...]:
        R = _rotation(q)
        t1, t2, _ = basis_around(self.axis)
        return forces(R.transposed_times(t1), R.transposed_times(t2))

    def constraint_subspace_at(self, X: Transform, time: Scalar | None = None) -> tuple[Force, ...]:
        t1, t2, _ = basis_around(self.axis)
        return forces(X.R.transposed_times(t1), X.R.transposed_times(t2))

    def active_subspace(self, q: Sequence[Scalar], time: Scalar | None = None) -> tuple[Force, ...]:
        push = forces(_rotation(q).transposed_times(self.axis))
        return moments(Vec3.unit(0), Vec3.unit(1), Vec3.unit(2)) + push

    def position_of(self, X: Transform, time: Scalar | None = None) -> list[Scalar]:
        return [self.axis.dot(X.p), *quaternion_of_rotation(X.R)]

    def closure_error(self, X: Transform, time: Scalar | None = None) -> list[Scalar]:
        # X_err is a translation across the axis, so that T^T d is exact.
        t1, t2, _ = basis_around(self.axis)
        return [t1.dot(X.p), t2.dot(X.p)]


def _rotation(q: Sequence[Scalar]) -> Mat3:
    return rotation_of_quaternion(q[1:])
