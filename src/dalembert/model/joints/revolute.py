"""Revolute (hinge) joint."""

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
from dalembert.model.joints.closure import axis_error, axis_offset
from dalembert.model.joints.joint import Joint
from dalembert.model.joints.subspaces import forces, moments, rotations
from dalembert.scalar import Scalar
from dalembert.spatial import Force, Motion, Placement, Transform, Vec3
from dalembert.spatial.rotations import principal_direction

__all__ = ["Revolute"]


@final
@dataclass(frozen=True, slots=True, init=False)
class Revolute(Joint):
    """Rotation by q [rad] about an axis through the origin: S = (a, 0) (Featherstone 2008 Table 4.1).

    Without limits it is a continuous joint; the angle is never wrapped. Along a coordinate axis, of either
    sign, the transform is an axial screw.

    >>> joint = da.Revolute((0, 0, 1))
    >>> print(np.round(joint.transform([np.pi / 2]).R.to_list(), 6).tolist()[0])
    [0.0, -1.0, 0.0]
    >>> joint.subspace([0.0])[0].to_list()
    [0.0, 0.0, 1.0, 0.0, 0.0, 0.0]
    """

    axis: Vec3

    kind = "revolute"
    constant_constraint_forces = True
    parameter_names = ("axis",)
    nq = 1
    nv = 1
    coordinates = ("angle",)

    def __init__(self, axis: Sequence[Scalar] | Vec3 = (0.0, 0.0, 1.0)) -> None:
        object.__setattr__(self, "axis", unit_axis(axis, "Revolute"))

    def structure(self) -> tuple[Any, ...]:
        return (self.kind, principal_direction(self.axis))

    def transform(self, q: Sequence[Scalar], time: Scalar | None = None) -> Placement:
        return screw(self.axis, q[0], None)

    def subspace(self, q: Sequence[Scalar], time: Scalar | None = None) -> tuple[Motion, ...]:
        return rotations(self.axis)

    def constraint_subspace(self, q: Sequence[Scalar], time: Scalar | None = None) -> tuple[Force, ...]:
        t1, t2, a = basis_around(self.axis)
        return moments(t1, t2) + forces(t1, t2, a)

    def active_subspace(self, q: Sequence[Scalar], time: Scalar | None = None) -> tuple[Force, ...]:
        return moments(self.axis)

    def position_of(self, X: Transform, time: Scalar | None = None) -> list[Scalar]:
        return [angle_about(self.axis, X.R)]

    def closure_error(self, X: Transform, time: Scalar | None = None) -> list[Scalar]:
        return [*axis_error(self.axis, X), axis_offset(self.axis, X)]
