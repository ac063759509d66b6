"""The equation of motion M(q) a + b(q, v) = tau: its parts, solutions, derivatives and integration."""

from dalembert.api.declared import publish
from dalembert.api.derivative import derivative
from dalembert.api.records import HybridDynamicsDerivatives
from dalembert.api.time_step import force_at_point as force_at_point
from dalembert.api.time_step import step as step

__all__ = [
    "HybridDynamicsDerivatives",
    "derivative",
    *publish(
        "dynamics",
        "inverse_dynamics",
        "forward_dynamics",
        "mass_matrix",
        "applied_forces",
        "energy_momentum",
        "hybrid",
        "constrained_derivatives",
        "stepping",
    ),
]
