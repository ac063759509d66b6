"""Joint axes in one common frame: world axes about a point near the figure.

In this frame an axis is the same for every body that it carries, forces of bodies add up the tree, and so do
the Hessians of contact: sums without transformations (Featherstone 2008 section 6.6 calls it the basic form).
The point is the origin of the first body, so that numbers stay small wherever in the world the figure is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from dalembert.algorithms.kinematics import forward_kinematics
from dalembert.algorithms.sparsity import velocity_places
from dalembert.model.body import Body
from dalembert.model.joints.subspaces import combination
from dalembert.model.topology import WORLD
from dalembert.model.tree import PerBody, Tree
from dalembert.scalar import Scalar
from dalembert.spatial import Force, Motion, Transform, Vec3

__all__ = ["WORLD", "JointAxes", "joint_axes"]


@final
@dataclass(frozen=True, slots=True)
class JointAxes:
    """The poses of the bodies and, along world axes about `origin`, the axes S of every joint."""

    tree: Tree
    origin: Vec3
    poses: PerBody[Transform]
    S: PerBody[list[Motion]]

    def velocities(self, v: Sequence[Scalar]) -> PerBody[Motion]:
        """Return the spatial velocity of every body, v_i = v_lambda + S v_J, without rheonomic parts."""

        def step(body: Body, v_parent: Motion) -> tuple[Motion, Motion]:
            own = v_parent + combination(self.S[body], body.own_v(v))
            return own, own

        return self.tree.outward(step, Motion.zero())

    def generalized_forces(self, forces: dict[int, Force]) -> list[Scalar]:
        """Return J^T f `(nv,)` of forces on bodies: each joint takes S^T of the sum over all bodies it
        carries."""

        def step(body: Body, gathered: Force) -> tuple[Force, Sequence[Scalar]]:
            total = gathered + forces[body.index] if body.index in forces else gathered
            return total, [s.dot(total) for s in self.S[body]]

        per_body, _ = self.tree.inward(step, Force.zero())
        return self.tree.collect(per_body)

    def columns(self, first: int, second: int) -> list[tuple[list[tuple[int, float]], Motion]]:
        """Return the motion of body `second` relative to `first` as sum of columns: (places in v with ratios,
        axis).

        Joints that carry both move neither relative to the other and are left out.
        """
        carrying_first, carrying_second = self._path(first), self._path(second)
        columns = []
        for body in carrying_second:
            if body not in carrying_first:
                columns += list(zip(velocity_places(body), self.S[body], strict=True))
        for body in carrying_first:
            if body not in carrying_second:
                columns += [(places, -s) for places, s in zip(velocity_places(body), self.S[body])]
        return columns

    def _path(self, index: int) -> list[Body]:
        path = []
        while index != WORLD:
            body = self.tree.bodies[index]
            path.append(body)
            index = body.parent
        return path


def joint_axes(tree: Tree, q: Sequence[Scalar], *, time: Scalar | None = None) -> JointAxes:
    """Return the axes of all joints at q."""
    poses = forward_kinematics(tree, q, time=time)
    origin = poses[0].p if tree.bodies else Vec3.zero()

    def axes(body: Body) -> list[Motion]:
        R, arm = poses[body].R, poses[body].p - origin
        turned = [Motion(R @ s.angular, R @ s.linear) for s in body.jcalc(q, None, time).S]
        return [Motion(s.angular, s.linear + arm.cross(s.angular)) for s in turned]

    return JointAxes(tree, origin, poses, tree.outward(lambda body, _: ((), axes(body)), ()))
