"""Analytic derivatives of the dynamics, with respect to q on its tangent space."""

from dalembert.algorithms.derivatives.constrained import constrained_forward_dynamics_derivatives
from dalembert.algorithms.derivatives.directional import (
    directional_forward_dynamics_derivatives,
    directional_inverse_dynamics_derivatives,
)
from dalembert.algorithms.derivatives.forward_dynamics import forward_dynamics_derivatives
from dalembert.algorithms.derivatives.hybrid import HybridDerivatives, hybrid_dynamics_derivatives
from dalembert.algorithms.derivatives.inverse_dynamics import Derivatives, inverse_dynamics_derivatives

__all__ = [
    "Derivatives",
    "HybridDerivatives",
    "constrained_forward_dynamics_derivatives",
    "directional_forward_dynamics_derivatives",
    "directional_inverse_dynamics_derivatives",
    "forward_dynamics_derivatives",
    "hybrid_dynamics_derivatives",
    "inverse_dynamics_derivatives",
]
