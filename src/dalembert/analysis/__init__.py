"""How accurate, how sensitive, how mobile, how costly: numbers about a model rather than of its motion."""

from dalembert.analysis.accuracy_report import AccuracyReport, accuracy, near_singular_loops
from dalembert.analysis.conditioning import (
    Sensitivity,
    chain_condition_estimate,
    condition_number,
    sensitivity,
)
from dalembert.analysis.far_frames import FarFrameError, far_frame_error
from dalembert.analysis.round_off import RoundOff, round_off

__all__ = [
    "AccuracyReport",
    "FarFrameError",
    "RoundOff",
    "Sensitivity",
    "accuracy",
    "chain_condition_estimate",
    "condition_number",
    "far_frame_error",
    "near_singular_loops",
    "round_off",
    "sensitivity",
]
