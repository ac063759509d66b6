"""The bundled models: `dalembert.models.humanoid()` and others.

They are made for this library: small textbook systems, robot arms, legged systems, and generated ones.
"""

from dalembert.models.arms import arm6, arm7
from dalembert.models.chains import gu
from dalembert.models.humanoid import humanoid
from dalembert.models.linkages import five_bar, four_bar, ladder, slider_crank
from dalembert.models.parallel import stewart
from dalembert.models.pendulums import cart_pole, double_pendulum, pendulum, two_link_arm
from dalembert.models.quadruped import quadruped
from dalembert.models.random_trees import random_tree

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
