"""The dynamics of systems with constraints, mainly closed loops (Featherstone 2008 chapter 8)."""

from dalembert.algorithms.loops.closure import (
    accelerations_by_closure,
    closure_of,
    independent_variables,
)
from dalembert.algorithms.loops.constrained_dynamics import (
    ANY_CONNECTIVITY,
    METHODS,
    constrained_forward_dynamics,
)
from dalembert.algorithms.loops.direct import accelerations_by_elimination, constrained_motion_directly
from dalembert.algorithms.loops.explicit import (
    ExplicitSolution,
    explicit_solution,
    row_scales,
)
from dalembert.algorithms.loops.forces import constraint_forces, gram_factor, loop_forces
from dalembert.algorithms.loops.inverse_dynamics import (
    INVERSE_METHODS,
    actuated_variables,
    constrained_inverse_dynamics,
    constraint_violation,
    inverse_dynamics_by_null_space,
    on_trees,
    unreachable_share,
)
from dalembert.algorithms.loops.maximal import (
    MaximalSystem,
    accelerations_by_maximal_coordinates,
    connectivity,
    maximal_system,
)
from dalembert.algorithms.loops.maximal_rows import JointConstraint
from dalembert.algorithms.loops.null_space import (
    AllowedMotions,
    accelerations_by_null_space,
    allowed_motions,
    constrained_motion_from,
    velocity_indices,
)
from dalembert.algorithms.loops.range_space import (
    ConstrainedMotion,
    accelerations_by_range_space,
    constrained_motion,
    multiplier_equation,
)
from dalembert.algorithms.loops.sparse_elimination import (
    EliminationStep,
    accelerations_by_sparse_elimination,
    elimination_order,
)
from dalembert.algorithms.loops.system import ConstrainedSystem, constrained_system
from dalembert.algorithms.open_tree import is_constrained
from dalembert.algorithms.pseudo_inverse import minimum_norm_solution

__all__ = [
    "ANY_CONNECTIVITY",
    "INVERSE_METHODS",
    "METHODS",
    "AllowedMotions",
    "ConstrainedMotion",
    "ConstrainedSystem",
    "EliminationStep",
    "ExplicitSolution",
    "JointConstraint",
    "MaximalSystem",
    "accelerations_by_closure",
    "accelerations_by_elimination",
    "accelerations_by_maximal_coordinates",
    "accelerations_by_null_space",
    "accelerations_by_range_space",
    "accelerations_by_sparse_elimination",
    "actuated_variables",
    "allowed_motions",
    "closure_of",
    "connectivity",
    "constrained_forward_dynamics",
    "constrained_inverse_dynamics",
    "constrained_motion",
    "constrained_motion_directly",
    "constrained_motion_from",
    "constrained_system",
    "constraint_forces",
    "constraint_violation",
    "elimination_order",
    "explicit_solution",
    "gram_factor",
    "independent_variables",
    "inverse_dynamics_by_null_space",
    "is_constrained",
    "loop_forces",
    "maximal_system",
    "minimum_norm_solution",
    "multiplier_equation",
    "on_trees",
    "row_scales",
    "unreachable_share",
    "velocity_indices",
]
