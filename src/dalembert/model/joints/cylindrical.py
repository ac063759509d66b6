"""Cylindrical joint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

from dalembert.model.joints.axes import (
    angle_about,
    basis_around,
    screw,
    unit_axis,
)
from dalembert.model.joints.closure import axis_error
from dalembert.model.joints.joint import Joint
from dalembert.model.joints.subspaces import forces, moments
from dalembert.scalar import Scalar
from dalembert.spatial import Force, Motion, Placement, Transform, Vec3
from dalembert.spatial.rotations import principal_direction

__all__ = ["Cylindrical"]


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
