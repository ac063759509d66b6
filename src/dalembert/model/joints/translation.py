"""Translation (3-DoF) joint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from dalembert.model.joints.closure import rotation_error
from dalembert.model.joints.joint import Joint
from dalembert.model.joints.subspaces import forces, moments
from dalembert.scalar import Scalar
from dalembert.spatial import Force, Mat3, Motion, Placement, Transform, Vec3

__all__ = ["Translation"]

AXES = (Vec3.unit(0), Vec3.unit(1), Vec3.unit(2))


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
