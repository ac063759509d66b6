"""Prismatic (sliding) joint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

from dalembert.model.joints.axes import basis_around, screw, unit_axis
from dalembert.model.joints.closure import axis_error, rotation_error
from dalembert.model.joints.joint import Joint
from dalembert.model.joints.subspaces import forces, moments
from dalembert.scalar import Scalar
from dalembert.spatial import Force, Motion, Placement, Transform, Vec3
from dalembert.spatial.rotations import principal_direction

__all__ = ["Prismatic"]


@final
@dataclass(frozen=True, slots=True, init=False)
class Prismatic(Joint):
    """Translation by q [m] along an axis: S = (0, a) (Featherstone 2008 Table 4.1).

    >>> da.Prismatic((1, 0, 0)).transform([0.5]).p
    Vec3(x=0.5, y=0.0, z=0.0)
    """

    axis: Vec3

    kind = "prismatic"
    constant_constraint_forces = True
    parameter_names = ("axis",)
    nq = 1
    nv = 1
    coordinates = ("length",)

    def __init__(self, axis: Sequence[Scalar] | Vec3 = (0.0, 0.0, 1.0)) -> None:
        object.__setattr__(self, "axis", unit_axis(axis, "Prismatic"))

    def structure(self) -> tuple[Any, ...]:
        return (self.kind, principal_direction(self.axis))

    def transform(self, q: Sequence[Scalar], time: Scalar | None = None) -> Placement:
        return screw(self.axis, None, q[0])

    def subspace(self, q: Sequence[Scalar], time: Scalar | None = None) -> tuple[Motion, ...]:
        return (Motion(Vec3.zero(), self.axis),)

    def constraint_subspace(self, q: Sequence[Scalar], time: Scalar | None = None) -> tuple[Force, ...]:
        t1, t2, a = basis_around(self.axis)
        return moments(t1, t2, a) + forces(t1, t2)

    def active_subspace(self, q: Sequence[Scalar], time: Scalar | None = None) -> tuple[Force, ...]:
        return forces(self.axis)

    def position_of(self, X: Transform, time: Scalar | None = None) -> list[Scalar]:
        return [self.axis.dot(X.p)]

    def closure_error(self, X: Transform, time: Scalar | None = None) -> list[Scalar]:
        turn = rotation_error(X)
        return [turn.dot(direction) for direction in basis_around(self.axis)] + axis_error(self.axis, X)[2:]
