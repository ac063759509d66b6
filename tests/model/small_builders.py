"""Two bodies, and the inertia of one, for tests of the builder."""

from __future__ import annotations

from typing import Any

from dalembert.model import ModelBuilder
from dalembert.model.joints import Revolute
from dalembert.models.random_trees import random_inertia
from dalembert.spatial import RigidInertia


def two_bodies(**second: Any) -> ModelBuilder:
    builder = ModelBuilder()
    builder.add_body("upper", "world", Revolute(), "shoulder", inertia=random_inertia(1))
    builder.add_body("lower", "upper", **({"joint": Revolute(), "joint_name": "elbow"} | second))
    return builder


def rod(a: float, b: float, c: float, mass: float = 1.0, com: Any = (0.0, 0.0, 0.0)) -> RigidInertia:
    return RigidInertia(mass, com, (a, b, c))
