"""Gears and couplings: joints that move together, eliminated together (Featherstone 2008 section 9.6)."""

from dalembert.algorithms.gears.articulated_clusters import (
    ClusterMotion,
    articulated_accelerations,
    cluster_inertias,
)
from dalembert.algorithms.gears.choice import default_method
from dalembert.algorithms.gears.clusters import Cluster, clusters_of
from dalembert.algorithms.gears.expansion import gear_equations, geared_matrix
from dalembert.algorithms.gears.multipliers import with_couplings

__all__ = [
    "Cluster",
    "ClusterMotion",
    "articulated_accelerations",
    "cluster_inertias",
    "clusters_of",
    "default_method",
    "gear_equations",
    "geared_matrix",
    "with_couplings",
]
