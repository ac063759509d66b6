"""Hybrid dynamics: forces at some joints, accelerations at the others (Featherstone 2008 chapter 9)."""

from dalembert.algorithms.hybrid.articulated import hybrid_dynamics_articulated
from dalembert.algorithms.hybrid.constrained import hybrid_dynamics_constrained, prescribed_violation
from dalembert.algorithms.hybrid.hybrid_dynamics import hybrid_dynamics
from dalembert.algorithms.hybrid.matrix import free_mass_matrix, hybrid_dynamics_by_matrix
from dalembert.algorithms.hybrid.prescribed import merged_parents, prescribed_places, supported_bodies

__all__ = [
    "free_mass_matrix",
    "hybrid_dynamics",
    "hybrid_dynamics_articulated",
    "hybrid_dynamics_by_matrix",
    "hybrid_dynamics_constrained",
    "merged_parents",
    "prescribed_places",
    "prescribed_violation",
    "supported_bodies",
]
