"""Fixed (zero-DoF) joint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from dalembert.model.joints.closure import displacement
from dalembert.model.joints.joint import Joint
from dalembert.model.joints.subspaces import forces, moments
from dalembert.scalar import Scalar
from dalembert.spatial import Force, Motion, Placement, Transform, Vec3

__all__ = ["Fixed"]

AXES = (Vec3.unit(0), Vec3.unit(1), Vec3.unit(2))


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
