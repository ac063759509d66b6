"""Control laws that return joint forces, and `Servo`, which is PD control inside a rollout."""

from __future__ import annotations

from dalembert.control.laws import (
    consistent_inverse,
    feedback_linearization,
    gravity_compensation,
    operational_inertia,
    operational_space,
    pd,
    posture_forces,
    stable_pd,
)
from dalembert.control.servo import Servo

__all__ = [
    "Servo",
    "consistent_inverse",
    "feedback_linearization",
    "gravity_compensation",
    "operational_inertia",
    "operational_space",
    "pd",
    "posture_forces",
    "stable_pd",
]
