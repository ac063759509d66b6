"""Recorded motion: motion-capture files as models and clips, splines on the manifold, filters, forces."""

from __future__ import annotations

from dalembert.motion.analysis import MotionAnalysis, inverse_dynamics
from dalembert.motion.clip import Clip, ClipFrame
from dalembert.motion.loading import load_motion
from dalembert.motion.low_pass import low_pass

__all__ = ["Clip", "ClipFrame", "MotionAnalysis", "inverse_dynamics", "load_motion", "low_pass"]
