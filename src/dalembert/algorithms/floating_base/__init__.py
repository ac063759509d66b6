"""Floating-base systems (Featherstone 2008 sections 9.3 to 9.5)."""

from dalembert.algorithms.floating_base.base import base_gravity, floating_base, rigid_acceleration
from dalembert.algorithms.floating_base.equations import (
    FloatingBaseBias,
    FloatingBaseInertia,
    floating_base_bias,
    floating_base_inertia,
    reduced_floating_base_equations,
)
from dalembert.algorithms.floating_base.forward_dynamics import (
    floating_base_forward_dynamics,
    floating_base_forward_dynamics_by_matrix,
)
from dalembert.algorithms.floating_base.inverse_dynamics import floating_base_inverse_dynamics
from dalembert.algorithms.floating_base.momentum import (
    floating_base_jacobian,
    floating_base_kinetic_energy,
    floating_base_momentum,
)

__all__ = [
    "FloatingBaseBias",
    "FloatingBaseInertia",
    "base_gravity",
    "floating_base",
    "floating_base_bias",
    "floating_base_forward_dynamics",
    "floating_base_forward_dynamics_by_matrix",
    "floating_base_inertia",
    "floating_base_inverse_dynamics",
    "floating_base_jacobian",
    "floating_base_kinetic_energy",
    "floating_base_momentum",
    "reduced_floating_base_equations",
    "rigid_acceleration",
]
