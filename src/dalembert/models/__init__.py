"""The bundled models: `dalembert.models.humanoid()` and others.

They are made for this library: small textbook systems, robot arms, legged systems, and generated ones.
"""

from dalembert.models.mechanisms import (
    cart_pole,
    double_pendulum,
    five_bar,
    four_bar,
    ladder,
    pendulum,
    slider_crank,
    stewart,
    two_link_arm,
)
from dalembert.models.random_trees import gu, random_tree
from dalembert.models.robots import arm6, arm7, humanoid, quadruped

__all__ = [
    "arm6",
    "arm7",
    "cart_pole",
    "double_pendulum",
    "five_bar",
    "four_bar",
    "gu",
    "humanoid",
    "ladder",
    "pendulum",
    "quadruped",
    "random_tree",
    "slider_crank",
    "stewart",
    "two_link_arm",
]
