"""Velocities in maximal coordinates: V_k = (omega_k, v_k) = J_k v of every body (Liu & Jain Eqs 58, 60).

omega_k and the velocity v_k of the body's centre of mass, in world axes.
"""

from __future__ import annotations

from collections.abc import Sequence

from dalembert.algorithms.dense import Matrix
from dalembert.algorithms.jacobians import jacobian
from dalembert.algorithms.kinematics import body_velocities, forward_kinematics
from dalembert.algorithms.mass_centers import require_centers_of_mass
from dalembert.model.elements import Frame
from dalembert.model.model import Model
from dalembert.model.tree import PerBody, Tree
from dalembert.scalar import Scalar
from dalembert.spatial import Mat3, Motion, Transform, Vec3

__all__ = ["at_center_of_mass", "from_maximal", "maximal_jacobians", "maximal_velocities"]


def maximal_velocities(
    tree: Tree, q: Sequence[Scalar], v: Sequence[Scalar], *, time: Scalar | None = None
) -> PerBody[Motion]:
    """Return V_k of every body, by recursion instead of J (Eq. 60)."""
    require_centers_of_mass(tree, "maximal_velocities")
    poses = forward_kinematics(tree, q, time=time)
    velocities = body_velocities(tree, q, v, time=time)
    return PerBody(
        [at_center_of_mass(body.inertia.com, poses[body], velocities[body]) for body in tree.bodies]
    )


def maximal_jacobians(model: Model, q: Sequence[Scalar], *, time: Scalar | None = None) -> PerBody[Matrix]:
    """Return J_k `(6, nv)` of every body: J_omega over J_v of the centre of mass, in world axes (Eq. 58)."""
    require_centers_of_mass(model, "maximal_jacobians")

    def center(index: int) -> Frame:
        com = model.bodies[index].inertia.com
        return Frame("center of mass", index, Transform(Mat3.identity(), com))

    return PerBody(
        [jacobian(model, q, center(k), frame="world_aligned", time=time) for k in range(len(model.bodies))]
    )


def at_center_of_mass(com: Vec3, pose: Transform, velocity: Motion) -> Motion:
    """Return (omega, v of the centre of mass) in world axes, from a spatial velocity in body coordinates."""
    return Motion(pose.R @ velocity.angular, pose.R @ velocity.at(com))


def from_maximal(com: Vec3, pose: Transform, V: Motion) -> Motion:
    """Return the spatial velocity in body coordinates of a body whose (omega, v) in world axes is V."""
    omega, v = pose.R.transposed_times(V.angular), pose.R.transposed_times(V.linear)
    return Motion(omega, v - omega.cross(com))
