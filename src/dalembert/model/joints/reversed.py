"""A joint of opposite polarity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

from dalembert.model.joints.derived import DerivedJoint
from dalembert.model.joints.joint import Joint
from dalembert.scalar import Scalar
from dalembert.spatial import Force, Motion, Placement, Transform

__all__ = ["Reversed"]


@final
@dataclass(frozen=True, slots=True)
class Reversed(DerivedJoint):
    """A joint with predecessor and successor exchanged; q and v keep their meaning (Featherstone 2008 Table
    4.2).

    With X = ^pX_s of the joint as it was: X_J = X, S = -X S, v_J = -X v_J, c_J = -X c_J, T = -X* T. (The
    table prints the row of T without the star; only the force transform keeps T^T S = 0.)

    >>> da.Reversed(da.Prismatic((1, 0, 0))).transform([0.5]).p
    Vec3(x=-0.5, y=0.0, z=0.0)
    """

    joint: Joint

    kind = "reversed"
    parameter_names = ("joint",)

    def structure(self) -> tuple[Any, ...]:
        return (self.kind, self.joint.structure())

    def reversed(self) -> Joint:
        return self.joint

    def transform(self, q: Sequence[Scalar], time: Scalar | None = None) -> Placement:
        return self.joint.transform(q, time).inverse()

    def subspace(self, q: Sequence[Scalar], time: Scalar | None = None) -> tuple[Motion, ...]:
        X = self.joint.transform(q, time)
        return tuple(-X.inverse_apply(column) for column in self.joint.subspace(q, time))

    def velocity(self, q: Sequence[Scalar], v: Sequence[Scalar], time: Scalar | None = None) -> Motion:
        return -self.joint.transform(q, time).inverse_apply(self.joint.velocity(q, v, time))

    def bias(self, q: Sequence[Scalar], v: Sequence[Scalar], time: Scalar | None = None) -> Motion:
        return -self.joint.transform(q, time).inverse_apply(self.joint.bias(q, v, time))

    def constraint_subspace(self, q: Sequence[Scalar], time: Scalar | None = None) -> tuple[Force, ...]:
        X = self.joint.transform(q, time)
        return tuple(-X.inverse_apply(column) for column in self.joint.constraint_subspace(q, time))

    def active_subspace(self, q: Sequence[Scalar], time: Scalar | None = None) -> tuple[Force, ...]:
        X = self.joint.transform(q, time)
        return tuple(-X.inverse_apply(column) for column in self.joint.active_subspace(q, time))

    def position_of(self, X: Transform, time: Scalar | None = None) -> list[Scalar]:
        return self.joint.position_of(X.inverse(), time)

    def closure_error(self, X: Transform, time: Scalar | None = None) -> list[Scalar]:
        # d and T both change sign and frame, so that delta = T^T d is the same number.
        return self.joint.closure_error(X.inverse(), time)
