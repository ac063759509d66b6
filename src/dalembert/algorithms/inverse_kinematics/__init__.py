"""Configurations that bring frames to their targets."""

from dalembert.algorithms.inverse_kinematics.bounds import Bound, position_bounds
from dalembert.algorithms.inverse_kinematics.damped_step import DampedStep, damped_step
from dalembert.algorithms.inverse_kinematics.errors_of_frames import FrameErrors, FrameTarget, frame_errors

__all__ = [
    "Bound",
    "DampedStep",
    "FrameErrors",
    "FrameTarget",
    "damped_step",
    "frame_errors",
    "position_bounds",
]
