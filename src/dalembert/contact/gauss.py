"""The cost that a step with contact minimises: free motion and the terms of contact, limits and loops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from dalembert.algorithms.dense import Matrix
from dalembert.contact.conjugate import add_impulse, velocity_of
from dalembert.contact.costs import Equality, JointDrive, JointLimit, Point, RangeEnd
from dalembert.contact.joint_axes import WORLD, JointAxes
from dalembert.scalar import Scalar, logical_or
from dalembert.spatial import Force, Vec3

__all__ = ["GaussProblem"]


@final
@dataclass(frozen=True, slots=True)
class GaussProblem:
    """The cost 1/2 v^T A v - p^T v and the terms that are added to it."""

    axes: JointAxes
    A: Matrix
    p: Sequence[Scalar]
    points: Sequence[Point] = ()
    joints: Sequence[JointLimit | JointDrive] = ()
    equalities: Sequence[Equality] = ()
    ranges: Sequence[RangeEnd] = ()

    def point_velocities(self, v: Sequence[Scalar]) -> list[Vec3]:
        """Return u of every point: the velocity of its second body relative to its first."""
        if not self.points:
            return []
        velocities = self.axes.velocities(v)

        def at(body: int, arm: Vec3) -> Vec3:
            motion = velocities[body]
            return motion.linear + motion.angular.cross(arm)

        def of(point: Point) -> Vec3:
            if point.rows is not None:
                return velocity_of(point.rows, v)
            own = at(point.second, point.arm)
            return own if point.first == WORLD else own - at(point.first, point.arm)

        return [of(point) for point in self.points]

    def generalized_impulses(self, impulses: Sequence[Vec3]) -> list[Scalar]:
        """Return J^T of impulses on the second bodies, and their opposites on the first."""
        forces: dict[int, Force] = {}
        active = []
        for point, impulse in zip(self.points, impulses, strict=True):
            if point.rows is not None:
                active.append((point.rows, impulse))
                continue
            wrench = point.wrench(impulse)
            for body, acting in ((point.second, wrench), (point.first, -wrench)):
                if body != WORLD:
                    forces[body] = forces[body] + acting if body in forces else acting
        total = self.axes.generalized_forces(forces)
        for rows, impulse in active:
            add_impulse(total, rows, impulse)
        return total

    def other_impulses(self, v: Sequence[Scalar]) -> list[Scalar]:
        """Return the impulses of limits, joint friction and equalities on the momenta `(nv,)`."""
        return self._impulses(v, v)

    def free_impulses(self, v: Sequence[Scalar]) -> list[Scalar]:
        """Return the same impulses, with those of equalities taken at rest."""
        return self._impulses(v, [0.0] * len(v))

    def _impulses(self, v: Sequence[Scalar], v_equalities: Sequence[Scalar]) -> list[Scalar]:
        total: list[Scalar] = [0.0] * len(v)
        for joint in self.joints:
            total[joint.place] = total[joint.place] + joint.impulse(v[joint.place])
        for equality in self.equalities:
            equality.add(equality.impulse(equality.velocity(v_equalities)), total)
        for end in self.ranges:
            end.add(end.impulse(end.velocity(v)), total)
        return total

    def active_equalities(self, v: Sequence[Scalar], *, correcting: bool = False) -> list[Equality]:
        """Return equalities and the ends of ranges that are reached at v or, if `correcting`, exceeded."""
        ends = []
        for end in self.ranges:
            reached = end.velocity(v) < end.bound
            reached = logical_or(end.overlap > 0.0, reached) if correcting else reached
            ends.append(end.as_equality(reached, end.bound))
        return [*self.equalities, *ends]
