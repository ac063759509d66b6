"""Lagrange's side of the equations of motion (Liu & Jain sections 2 to 5): particles, one body, a tree.

Everything is differentiated exactly, by dual numbers, from functions on generic scalars: positions r(q),
poses (x(q), R(q)), kinetic energies T(q, qd) or mass matrices M(q).
"""

from __future__ import annotations

from dalembert.algorithms.lagrange.coriolis import (
    coriolis_vector,
    mass_matrix_gradient,
    mass_matrix_gradient_times,
    mass_matrix_rate,
)
from dalembert.algorithms.lagrange.equations import (
    accelerations_from,
    forces_from,
    lagrange_equations,
)
from dalembert.algorithms.lagrange.newton_euler import (
    NewtonEulerBlocks,
    newton_euler,
    newton_euler_blocks,
    rigid_body_momenta,
    world_inertia,
    world_inertia_rate,
)
from dalembert.algorithms.lagrange.one_body import (
    ORIENTATIONS,
    BodyEquations,
    body_equations,
    body_jacobian,
    body_kinetic_energy,
    body_pose,
)
from dalembert.algorithms.lagrange.particles import (
    particle_forces,
    particle_jacobians,
    particle_kinetic_energy,
    particle_mass_matrix,
)
from dalembert.algorithms.lagrange.scleronomic import require_scleronomic
from dalembert.algorithms.lagrange.tree_equations import (
    inverse_dynamics_by_jacobians,
    mass_matrix_by_jacobians,
    tree_equations,
)

__all__ = [
    "ORIENTATIONS",
    "BodyEquations",
    "NewtonEulerBlocks",
    "accelerations_from",
    "body_equations",
    "body_jacobian",
    "body_kinetic_energy",
    "body_pose",
    "coriolis_vector",
    "forces_from",
    "inverse_dynamics_by_jacobians",
    "lagrange_equations",
    "mass_matrix_by_jacobians",
    "mass_matrix_gradient",
    "mass_matrix_gradient_times",
    "mass_matrix_rate",
    "newton_euler",
    "newton_euler_blocks",
    "particle_forces",
    "particle_jacobians",
    "particle_kinetic_energy",
    "particle_mass_matrix",
    "require_scleronomic",
    "rigid_body_momenta",
    "tree_equations",
    "world_inertia",
    "world_inertia_rate",
]
