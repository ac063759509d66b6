"""Further methods of inverse dynamics: the original recursion of Luh, Walker and Paul, the local frames of
Liu and Jain, the closed form with its tensors.

All return what `algorithms.inverse_dynamics` returns, for every joint type; the closed form is for joints
that do not depend on time.
"""

from __future__ import annotations

from dalembert.algorithms.recursion.base_wrench import base_wrench
from dalembert.algorithms.recursion.closed_form import (
    ClosedForm,
    closed_form,
    inverse_dynamics_closed_form,
)
from dalembert.algorithms.recursion.common_frame import inverse_dynamics_common_frame
from dalembert.algorithms.recursion.liu_jain import (
    LiuJain,
    LocalMotion,
    liu_jain,
    local_motions,
    local_newton_euler,
)
from dalembert.algorithms.recursion.luh_walker_paul import LuhWalkerPaul, luh_walker_paul

__all__ = [
    "ClosedForm",
    "LiuJain",
    "LocalMotion",
    "LuhWalkerPaul",
    "base_wrench",
    "closed_form",
    "inverse_dynamics_closed_form",
    "inverse_dynamics_common_frame",
    "liu_jain",
    "local_motions",
    "local_newton_euler",
    "luh_walker_paul",
]
