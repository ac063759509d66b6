"""Models of articulated systems: joints, bodies, shapes, the builder and the bundled library."""

from dalembert.model.body import (
    Body,
    Coupling,
    Dependence,
    Frame,
    JointMotion,
    JointView,
    Limits,
    Loop,
    ShapePair,
)
from dalembert.model.builder import ModelBuilder
from dalembert.model.dh import DHRow, dh_chain, dh_placement, from_classic
from dalembert.model.model import Model
from dalembert.model.topology import ConnectivityGraph
from dalembert.model.tree import PerBody, Tree
from dalembert.model.user_functions import Constraint, LoopClosure
from dalembert.model.values import replace_values

__all__ = [
    "Body",
    "ConnectivityGraph",
    "Constraint",
    "Coupling",
    "DHRow",
    "Dependence",
    "Frame",
    "JointMotion",
    "JointView",
    "Limits",
    "Loop",
    "LoopClosure",
    "Model",
    "ModelBuilder",
    "PerBody",
    "ShapePair",
    "Tree",
    "dh_chain",
    "dh_placement",
    "from_classic",
    "replace_values",
]
