"""What inverse and hybrid dynamics ask of a motion of a system with constraints."""

from __future__ import annotations

from typing import Final

from dalembert.algorithms import hybrid, loops
from dalembert.catalogue.entry import Refusal

__all__ = ["CAN_BE_PRESCRIBED", "KEEPS_CONSTRAINTS", "WITHIN_REACH"]

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

CAN_BE_PRESCRIBED: Final = Refusal(
    hybrid.prescribed_violation,
    {"float64": 1e-4, "float32": 1e-2},
    "the prescribed accelerations break the constraints, K a - k is {measure:.3g} of its terms; prescribe as "
    "many joints as the system has freedoms (da.mobility), or accelerations that keep the constraints",
)
