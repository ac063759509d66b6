"""Joints made from another joint, with its coordinates."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dalembert.model.joints.joint import Joint
from dalembert.scalar import Scalar

__all__ = ["DerivedJoint"]


class DerivedJoint(Joint):
    """Abstract: a joint that places its frames otherwise than `joint` does, while q and v mean the same."""

    __slots__ = ()

    joint: Joint

    @property
    def nq(self) -> int:
        return self.joint.nq

    @property
    def nv(self) -> int:
        return self.joint.nv

    @property
    def coordinates(self) -> tuple[str, ...]:
        return self.joint.coordinates

    @property
    def unit_quaternions(self) -> tuple[slice, ...]:
        return self.joint.unit_quaternions

    @property
    def time_dependent(self) -> bool:
        return self.joint.time_dependent

    def position_rate(self, q: Sequence[Scalar], v: Sequence[Scalar]) -> list[Scalar]:
        return self.joint.position_rate(q, v)

    def integrate(self, q: Sequence[Scalar], dv: Sequence[Scalar]) -> list[Scalar]:
        return self.joint.integrate(q, dv)

    def difference(self, q0: Sequence[Scalar], q1: Sequence[Scalar]) -> list[Scalar]:
        return self.joint.difference(q0, q1)

    def neutral(self) -> list[float]:
        return self.joint.neutral()

    def normalize(self, q: Sequence[Scalar]) -> list[Scalar]:
        return self.joint.normalize(q)

    def random(
        self,
        rng: np.random.Generator,
        lower: Sequence[float] | None = None,
        upper: Sequence[float] | None = None,
    ) -> list[float]:
        return self.joint.random(rng, lower, upper)

    def singularity_measure(self, q: Sequence[Scalar], time: Scalar | None = None) -> Scalar:
        return self.joint.singularity_measure(q, time)
