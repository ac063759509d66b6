"""Written by `make api`; do not edit."""

from dalembert.api.declared import base_wrench as base_wrench
from dalembert.api.declared import body_torques as body_torques
from dalembert.api.declared import cartesian_forces as cartesian_forces
from dalembert.api.declared import cartesian_forces_at_points as cartesian_forces_at_points
from dalembert.api.declared import generalized_force as generalized_force
from dalembert.api.declared import generalized_velocity as generalized_velocity
from dalembert.api.declared import joint_torques as joint_torques
from dalembert.api.declared import maximal_jacobians as maximal_jacobians
from dalembert.api.declared import maximal_velocities as maximal_velocities
