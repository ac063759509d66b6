"""Energies as linear functions of the inertial parameters.

Of a body with velocity (w, u), pose (R, p), mass m, first moment h and inertia I about its origin

    T_i = m u.u / 2 + h . (u x w) + w . I w / 2                                                        (1)
    V_i = -m g . p - h . R^T g                                                                         (2)
"""

from __future__ import annotations

from collections.abc import Sequence

from dalembert.algorithms.kinematics import body_velocities, forward_kinematics
from dalembert.model.tree import Tree
from dalembert.scalar import Scalar

__all__ = ["kinetic_energy_regressor", "potential_energy_regressor"]


def kinetic_energy_regressor(
    tree: Tree,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    *,
    armature: bool = False,
    time: Scalar | None = None,
) -> list[Scalar]:
    """Return y `(10 n_bodies,)`: T = y . pi, apart from the armatures' energy;
    with them, v^2 / 2 for each."""
    y: list[Scalar] = []
    for velocity in body_velocities(tree, q, v, time=time):
        w, u = velocity.angular, velocity.linear
        y += [0.5 * u.dot(u), *u.cross(w).to_list()]  # (1)
        y += [0.5 * (w.x * w.x), 0.5 * (w.y * w.y), 0.5 * (w.z * w.z), w.x * w.y, w.x * w.z, w.y * w.z]
    if armature:
        y += [0.5 * (x * x) for body in tree.bodies for x in body.own_v(v)]
    return y


def potential_energy_regressor(
    tree: Tree, q: Sequence[Scalar], *, armature: bool = False, time: Scalar | None = None
) -> list[Scalar]:
    """Return y `(10 n_bodies,)`: V = y . pi, zero with every centre of mass at the world's origin."""
    y: list[Scalar] = []
    for pose in forward_kinematics(tree, q, time=time):
        y += [-tree.gravity.dot(pose.p), *(-pose.R.transposed_times(tree.gravity)).to_list()]  # (2)
        y += [0.0] * 6
    return y + [0.0] * (sum(body.nv for body in tree.bodies) if armature else 0)
