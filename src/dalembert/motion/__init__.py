"""Recorded motion: motion-capture files as models and clips, splines on the manifold, filters."""

from __future__ import annotations

from dalembert.motion.clip import Clip, ClipFrame
from dalembert.motion.loading import load_motion
from dalembert.motion.low_pass import low_pass

__all__ = ["Clip", "ClipFrame", "load_motion", "low_pass"]
