"""Spherical (ball) joint with a quaternion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from dalembert.model.joints.closure import origin_offset
from dalembert.model.joints.joint import Joint
from dalembert.model.joints.subspaces import forces, moments, rotations
from dalembert.scalar import Scalar
from dalembert.spatial import Force, Motion, Placement, Transform, Vec3
from dalembert.spatial.exponential import quaternion_difference, quaternion_integrate
from dalembert.spatial.rotations import (
    quaternion_normalized,
    quaternion_of_rotation,
    quaternion_rate,
    rotation_of_quaternion,
)

__all__ = ["Spherical"]

AXES = (Vec3.unit(0), Vec3.unit(1), Vec3.unit(2))


@final
@dataclass(frozen=True, slots=True)
class Spherical(Joint):
    """Rotation about a point: q = Euler parameters (w, x, y, z), v = omega [rad/s] in successor coordinates.

    S = (e1, e2, e3), dq/dt = ½ Q(q) omega (Featherstone 2008 Table 4.1, Eqs 4.12 and 4.13). Free of
    singularities.

    >>> joint = da.Spherical()
    >>> joint.neutral()
    [1.0, 0.0, 0.0, 0.0]
    >>> joint.position_rate(joint.neutral(), [0.0, 0.0, 2.0])
    [0.0, 0.0, 0.0, 1.0]
    """

    kind = "spherical"
    constant_constraint_forces = True
    nq = 4
    nv = 3
    coordinates = ("quaternion",) * 4
    unit_quaternions = (slice(0, 4),)

    def transform(self, q: Sequence[Scalar], time: Scalar | None = None) -> Placement:
        return Transform(rotation_of_quaternion(q), Vec3.zero())

    def subspace(self, q: Sequence[Scalar], time: Scalar | None = None) -> tuple[Motion, ...]:
        return rotations(*AXES)

    def velocity(self, q: Sequence[Scalar], v: Sequence[Scalar], time: Scalar | None = None) -> Motion:
        return Motion(Vec3(*v), Vec3.zero())

    def position_rate(self, q: Sequence[Scalar], v: Sequence[Scalar]) -> list[Scalar]:
        return quaternion_rate(q, Vec3(*v))

    def integrate(self, q: Sequence[Scalar], dv: Sequence[Scalar]) -> list[Scalar]:
        return quaternion_integrate(q, Vec3(*dv))

    def difference(self, q0: Sequence[Scalar], q1: Sequence[Scalar]) -> list[Scalar]:
        return list(quaternion_difference(q0, q1))

    def neutral(self) -> list[float]:
        return [1.0, 0.0, 0.0, 0.0]

    def normalize(self, q: Sequence[Scalar]) -> list[Scalar]:
        return quaternion_normalized(q)

    def constraint_subspace(self, q: Sequence[Scalar], time: Scalar | None = None) -> tuple[Force, ...]:
        return forces(*AXES)

    def active_subspace(self, q: Sequence[Scalar], time: Scalar | None = None) -> tuple[Force, ...]:
        return moments(*AXES)

    def position_of(self, X: Transform, time: Scalar | None = None) -> list[Scalar]:
        return quaternion_of_rotation(X.R)

    def closure_error(self, X: Transform, time: Scalar | None = None) -> list[Scalar]:
        return list(origin_offset(X))
