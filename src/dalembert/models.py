"""The bundled models: `dalembert.models.humanoid()` and others."""

from dalembert.model.library import (
    arm6,
    arm7,
    cart_pole,
    double_pendulum,
    five_bar,
    four_bar,
    gu,
    humanoid,
    ladder,
    pendulum,
    quadruped,
    random_tree,
    slider_crank,
    stewart,
    two_link_arm,
)

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
