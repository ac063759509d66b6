"""Control laws on generic scalars: functions of a state and a target that return joint forces."""

from dalembert.algorithms.control_laws.actuation import require_actuation
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
    prioritized_acceleration,
)

__all__ = [
    "Task",
    "consistent_inverse",
    "critical_damping",
    "feedback_linearization",
    "frame_task",
    "gravity_compensation",
    "operational_inertia",
    "operational_space",
    "posture_forces",
    "prioritized_acceleration",
    "require_actuation",
    "tracking_acceleration",
]
