"""The dynamics of systems with constraints, closed loops above all (Featherstone 2008 chapter 8)."""

from dalembert.algorithms.loops.closure import (
    accelerations_by_closure,
    closure_of,
    independent_variables,
)
from dalembert.algorithms.loops.constrained_dynamics import (
    METHODS,
    constrained_forward_dynamics,
    is_constrained,
)
from dalembert.algorithms.loops.direct import accelerations_by_elimination, constrained_motion_directly
from dalembert.algorithms.loops.elimination import (
    ExplicitSolution,
    explicit_solution,
    row_scales,
    solve_general,
)
from dalembert.algorithms.loops.null_space import (
    accelerations_by_null_space,
    constrained_motion_from,
    velocity_indices,
)
from dalembert.algorithms.loops.range_space import (
    ConstrainedMotion,
    accelerations_by_range_space,
    constrained_motion,
    minimum_norm_solution,
    multiplier_equation,
)
from dalembert.algorithms.loops.system import ConstrainedSystem, constrained_system

__all__ = [
    "METHODS",
    "ConstrainedMotion",
    "ConstrainedSystem",
    "ExplicitSolution",
    "accelerations_by_closure",
    "accelerations_by_elimination",
    "accelerations_by_null_space",
    "accelerations_by_range_space",
    "closure_of",
    "constrained_forward_dynamics",
    "constrained_motion",
    "constrained_motion_directly",
    "constrained_motion_from",
    "constrained_system",
    "explicit_solution",
    "independent_variables",
    "is_constrained",
    "minimum_norm_solution",
    "multiplier_equation",
    "row_scales",
    "solve_general",
    "velocity_indices",
]
