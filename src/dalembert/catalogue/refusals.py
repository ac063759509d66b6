"""What inverse dynamics asks of a motion of a system with constraints."""

from __future__ import annotations

from typing import Final

from dalembert.algorithms import loops
from dalembert.catalogue.entry import Refusal

__all__ = ["KEEPS_CONSTRAINTS", "WITHIN_REACH"]

KEEPS_CONSTRAINTS: Final = Refusal(
    loops.constraint_violation,
    {"float64": 1e-6, "float32": 1e-3},
    "a breaks the constraints, K a - k is {measure:.3g} of its terms; da.forward_dynamics gives "
    "accelerations that keep them, da.constraint_jacobian and da.constraint_bias are K and k",
)

WITHIN_REACH: Final = Refusal(
    loops.unreachable_share,
    {"float64": 1e-6, "float32": 1e-3},
    "the actuated joints cannot produce this motion, {measure:.3g} of the forces that it needs is out of "
    "their reach; see da.actuation(model, q) and builder.set_actuated",
)
