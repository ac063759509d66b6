"""Motion over time: recorded clips and their models, filters, inverse dynamics, least-torque transitions."""

from __future__ import annotations

from dalembert.motion.clip import Clip, ClipFrame, MotionAnalysis, inverse_dynamics
from dalembert.motion.differentiation import low_pass
from dalembert.motion.loading import load_motion
from dalembert.motion.transition import Transition, transition

__all__ = [
    "Clip",
    "ClipFrame",
    "MotionAnalysis",
    "Transition",
    "inverse_dynamics",
    "load_motion",
    "low_pass",
    "transition",
]
