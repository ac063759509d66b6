"""Inverse dynamics with Cartesian tensors after Balafoutis and Patel, and its derivatives by recursion after
Guenter and Rose (2000).

The report is for trees of hinges; here the same recursions take every joint type, couplings, armature and
external forces. Models with loops or other constraints are refused.
"""

from __future__ import annotations

from dalembert.algorithms.guenter_rose.balafoutis_patel import (
    BalafoutisPatel,
    Moving,
    NetForce,
    balafoutis_patel,
)
from dalembert.algorithms.guenter_rose.partials import (
    Along,
    GuenterRose,
    guenter_rose,
    inverse_dynamics_partials,
)
from dalembert.algorithms.guenter_rose.stacked_hinges import stacked_hinges
from dalembert.algorithms.guenter_rose.tensors import (
    acceleration_tensor,
    acceleration_tensor_rate,
    dual,
    euler_tensor,
    moment_of,
)

__all__ = [
    "Along",
    "BalafoutisPatel",
    "GuenterRose",
    "Moving",
    "NetForce",
    "acceleration_tensor",
    "acceleration_tensor_rate",
    "balafoutis_patel",
    "dual",
    "euler_tensor",
    "guenter_rose",
    "inverse_dynamics_partials",
    "moment_of",
    "stacked_hinges",
]
