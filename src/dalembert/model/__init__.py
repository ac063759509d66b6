"""Models of articulated systems: joints, bodies, shapes, the builder and the bundled library."""

from dalembert.model.body import Body, Coupling, Frame, JointView, Limits, Loop, ShapePair
from dalembert.model.builder import DHRow, ModelBuilder, dh_chain, dh_placement, from_classic
from dalembert.model.model import Model
from dalembert.model.user_functions import Constraint, LoopClosure
from dalembert.model.values import replace_values

__all__ = [
    "Body",
    "Constraint",
    "Coupling",
    "DHRow",
    "Frame",
    "JointView",
    "Limits",
    "Loop",
    "LoopClosure",
    "Model",
    "ModelBuilder",
    "ShapePair",
    "dh_chain",
    "dh_placement",
    "from_classic",
    "replace_values",
]
