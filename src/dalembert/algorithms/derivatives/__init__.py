"""Analytic derivatives of the dynamics, by configurations on the tangent space."""

from dalembert.algorithms.derivatives.forward_dynamics import forward_dynamics_derivatives
from dalembert.algorithms.derivatives.inverse_dynamics import Derivatives, inverse_dynamics_derivatives

__all__ = ["Derivatives", "forward_dynamics_derivatives", "inverse_dynamics_derivatives"]
