"""Kinematics of bodies and frames: poses, Jacobians, the motion of points, inverse kinematics."""

from dalembert.api.declared import publish
from dalembert.api.inverse_kinematics import InverseKinematics, inverse_kinematics
from dalembert.api.records import Pose, Poses

__all__ = [
    "InverseKinematics",
    "Pose",
    "Poses",
    "inverse_kinematics",
    *publish("kinematics", "kinematics", "jacobians"),
]
