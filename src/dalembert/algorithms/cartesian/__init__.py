"""Conversion between generalized and maximal velocities and forces (Liu & Jain section 6).

Maximal coordinates are those of engines that keep every body free: for each body (omega, v of its centre of
mass) and (torque about it, force), in world axes, angular first (the text has linear first).
"""

from __future__ import annotations

from dalembert.algorithms.cartesian.body_forces import joint_forces
from dalembert.algorithms.cartesian.forces import (
    body_torques,
    cartesian_forces,
    cartesian_forces_at_points,
    generalized_force,
    joint_torques,
)
from dalembert.algorithms.cartesian.joint_by_joint import (
    connectivity_matrix,
    generalized_velocity_joint_by_joint,
    generalized_velocity_rotations_first,
    joint_jacobian,
    relative_angular_velocities,
)
from dalembert.algorithms.cartesian.maximal import maximal_jacobians, maximal_velocities
from dalembert.algorithms.cartesian.velocities import (
    GeneralizedVelocity,
    generalized_velocity,
    generalized_velocity_by_pseudo_inverse,
    generalized_velocity_from_rows,
)
from dalembert.algorithms.pseudo_inverse import PseudoInverse, symmetric_pseudo_inverse

__all__ = [
    "GeneralizedVelocity",
    "PseudoInverse",
    "body_torques",
    "cartesian_forces",
    "cartesian_forces_at_points",
    "connectivity_matrix",
    "generalized_force",
    "generalized_velocity",
    "generalized_velocity_by_pseudo_inverse",
    "generalized_velocity_from_rows",
    "generalized_velocity_joint_by_joint",
    "generalized_velocity_rotations_first",
    "joint_forces",
    "joint_jacobian",
    "joint_torques",
    "maximal_jacobians",
    "maximal_velocities",
    "relative_angular_velocities",
    "symmetric_pseudo_inverse",
]
