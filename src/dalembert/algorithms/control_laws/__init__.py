"""Control laws on generic scalars: functions of a state and a target that return joint forces."""

from dalembert.algorithms.control_laws.actuation import commanded_forces, require_actuation
from dalembert.algorithms.control_laws.joint_space import (
    critical_damping,
    feedback_linearization,
    gravity_compensation,
    posture_forces,
    tracking_acceleration,
)
from dalembert.algorithms.control_laws.operational_space import (
    Task,
    consistent_inverse,
    frame_task,
    operational_inertia,
    operational_space,
)
from dalembert.algorithms.control_laws.pd import pd_forces, stable_pd_forces

__all__ = [
    "Task",
    "commanded_forces",
    "consistent_inverse",
    "critical_damping",
    "feedback_linearization",
    "frame_task",
    "gravity_compensation",
    "operational_inertia",
    "operational_space",
    "pd_forces",
    "posture_forces",
    "require_actuation",
    "stable_pd_forces",
    "tracking_acceleration",
]
