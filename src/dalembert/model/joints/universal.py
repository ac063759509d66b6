"""Universal (Hooke, Cardan) joint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

from dalembert.errors import ModelError
from dalembert.model.joints.axes import (
    angle_about,
    unit_axis,
)
from dalembert.model.joints.joint import Joint
from dalembert.model.joints.subspaces import forces, moments, reciprocal_basis, rotations, velocity_product
from dalembert.scalar import Scalar, atan2
from dalembert.spatial import Force, Motion, Placement, Transform, Vec3
from dalembert.spatial.rotations import principal_direction, rotation_about

__all__ = ["Universal"]

PARALLEL_TOLERANCE = 1.0e-6
"""Axes whose cross product is shorter than this span one freedom, not two."""


@final
@dataclass(frozen=True, slots=True, init=False)
class Universal(Joint):
    """Rotation by q1 about axis1, fixed in the predecessor, then by q2 about axis2, fixed in the successor
    [rad].

    R = R(axis1, q1) R(axis2, q2); S = (R(axis2, q2)^T axis1, axis2), angular. The axes need not be
    perpendicular.

    >>> joint = da.Universal((1, 0, 0), (0, 1, 0))
    >>> [s.angular.to_list() for s in joint.subspace([0.4, 0.0])]
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    """

    axis1: Vec3
    axis2: Vec3

    kind = "universal"
    parameter_names = ("axis1", "axis2")
    nq = 2
    nv = 2
    coordinates = ("angle", "angle")

    def __init__(
        self,
        axis1: Sequence[Scalar] | Vec3 = (1.0, 0.0, 0.0),
        axis2: Sequence[Scalar] | Vec3 = (0.0, 1.0, 0.0),
    ) -> None:
        first, second = unit_axis(axis1, "Universal, axis1"), unit_axis(axis2, "Universal, axis2")
        sine = first.cross(second).norm()
        if isinstance(sine, float) and sine < PARALLEL_TOLERANCE:
            raise ModelError(
                f"Universal: axis1 {list(first)} and axis2 {list(second)} are parallel; "
                "give two directions, or use Revolute"
            )
        object.__setattr__(self, "axis1", first)
        object.__setattr__(self, "axis2", second)

    def structure(self) -> tuple[Any, ...]:
        return (self.kind, principal_direction(self.axis1), principal_direction(self.axis2))

    def transform(self, q: Sequence[Scalar], time: Scalar | None = None) -> Placement:
        return Transform(rotation_about(self.axis1, q[0]) @ rotation_about(self.axis2, q[1]), Vec3.zero())

    def subspace(self, q: Sequence[Scalar], time: Scalar | None = None) -> tuple[Motion, ...]:
        return rotations(*self._axes(q))

    def bias(self, q: Sequence[Scalar], v: Sequence[Scalar], time: Scalar | None = None) -> Motion:
        return Motion(velocity_product(self._axes(q), v), Vec3.zero())

    def constraint_subspace(self, q: Sequence[Scalar], time: Scalar | None = None) -> tuple[Force, ...]:
        w1, w2 = self._axes(q)
        return moments(w1.cross(w2)) + forces(Vec3.unit(0), Vec3.unit(1), Vec3.unit(2))

    def active_subspace(self, q: Sequence[Scalar], time: Scalar | None = None) -> tuple[Force, ...]:
        w1, w2 = self._axes(q)
        return moments(*reciprocal_basis(w1, w2, w1.cross(w2))[:2])

    def position_of(self, X: Transform, time: Scalar | None = None) -> list[Scalar]:
        # axis2 keeps its direction in the second rotation, so that the first takes axis2 to R axis2.
        a, b = self.axis1, self.axis2
        image = X.R @ b
        q1 = atan2(a.dot(b.cross(image)), b.dot(image) - a.dot(b) * a.dot(image))
        return [q1, angle_about(b, rotation_about(a, q1).transpose() @ X.R)]

    def _axes(self, q: Sequence[Scalar]) -> tuple[Vec3, Vec3]:
        """Return both axes in successor coordinates."""
        return rotation_about(self.axis2, q[1]).transposed_times(self.axis1), self.axis2
