"""Analysis of models: accuracy, conditioning, mobility, actuation and operation counts."""

from typing import TYPE_CHECKING, Any

from dalembert.analysis.degrees_of_freedom import (
    ActuationReport,
    ClusterMobility,
    MobilityReport,
    actuation,
    mobility,
)
from dalembert.analysis.numerical_error import (
    FarFrameError,
    RoundOff,
    Sensitivity,
    chain_condition_estimate,
    condition_number,
    far_frame_error,
    round_off,
    sensitivity,
)
from dalembert.analysis.operation_counts import (
    Counted,
    binary_tree,
    count_function,
    count_methods,
    factoring_count,
    general_tree,
)
from dalembert.analysis.plausibility import AccuracyReport, accuracy, near_singular_loops
from dalembert.host import moved_names

__all__ = [
    "AccuracyReport", "ActuationReport", "ClusterMobility", "Counted", "FarFrameError", "MobilityReport",
    "RoundOff", "Sensitivity", "accuracy", "actuation", "binary_tree", "chain_condition_estimate",
    "condition_number", "count_function", "count_methods", "factoring_count", "far_frame_error",
    "general_tree", "mobility", "near_singular_loops", "round_off", "sensitivity",
]  # fmt: skip

if not TYPE_CHECKING:  # a type checker would take any name for one of these
    _PUBLISHED_COSTS = (
        "BranchSums Cost Crossovers PublishedCost TABLE_10_1 branch_sums branched_crba branched_total "
        "chain_total crossovers factor_and_solve is_general_chain published tree_sums"
    )
    _find_moved = moved_names(__name__, {"dalembert.textbook": _PUBLISHED_COSTS.split()})

    def __getattr__(name: str) -> Any:
        return _find_moved(name)
