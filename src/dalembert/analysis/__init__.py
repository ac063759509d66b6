"""Analysis of models: accuracy, conditioning, mobility, actuation and operation counts."""

from dalembert.analysis.accuracy_report import AccuracyReport, accuracy, near_singular_loops
from dalembert.analysis.conditioning import (
    Sensitivity,
    chain_condition_estimate,
    condition_number,
    sensitivity,
)
from dalembert.analysis.far_frames import FarFrameError, far_frame_error
from dalembert.analysis.operation_counts import (
    Counted,
    binary_tree,
    count_function,
    count_methods,
    factoring_count,
    general_tree,
    is_general_chain,
    tree_sums,
)
from dalembert.analysis.published_costs import (
    TABLE_10_1,
    BranchSums,
    Cost,
    Crossovers,
    PublishedCost,
    branch_sums,
    branched_crba,
    branched_total,
    chain_total,
    crossovers,
    factor_and_solve,
    published,
)
from dalembert.analysis.round_off import RoundOff, round_off

__all__ = [
    "AccuracyReport",
    "BranchSums",
    "Cost",
    "Counted",
    "Crossovers",
    "FarFrameError",
    "PublishedCost",
    "RoundOff",
    "Sensitivity",
    "TABLE_10_1",
    "accuracy",
    "binary_tree",
    "branch_sums",
    "branched_crba",
    "branched_total",
    "chain_condition_estimate",
    "chain_total",
    "condition_number",
    "count_function",
    "count_methods",
    "crossovers",
    "factor_and_solve",
    "factoring_count",
    "far_frame_error",
    "general_tree",
    "is_general_chain",
    "near_singular_loops",
    "published",
    "round_off",
    "sensitivity",
    "tree_sums",
]
