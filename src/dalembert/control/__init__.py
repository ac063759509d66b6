"""Control laws on the dynamics: functions of a state and a target that return joint forces.

Every law takes one sample or any leading batch shape and is compiled for the model on first use, like the
functions of `dalembert` itself. `dalembert.algorithms.control_laws` has them on generic scalars, for use
inside functions of your own that `da.compile` compiles.
"""

from dalembert.control.frame_laws import (
    consistent_inverse,
    operational_inertia,
    operational_space,
)
from dalembert.control.joint_laws import feedback_linearization, gravity_compensation, posture_forces
from dalembert.control.pd_laws import pd, stable_pd
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
