"""Bundled models, made for this library: small textbook systems, robot arms, legged systems, and generated
ones.
"""

from dalembert.model.library.arms import arm6, arm7
from dalembert.model.library.chains import gu
from dalembert.model.library.humanoid import humanoid
from dalembert.model.library.linkages import five_bar, four_bar, ladder, slider_crank
from dalembert.model.library.parallel import stewart
from dalembert.model.library.pendulums import cart_pole, double_pendulum, pendulum, two_link_arm
from dalembert.model.library.quadruped import quadruped
from dalembert.model.library.random_trees import random_inertia, random_joint, random_placement, random_tree

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
    "random_inertia",
    "random_joint",
    "random_placement",
    "random_tree",
    "slider_crank",
    "stewart",
    "two_link_arm",
]
