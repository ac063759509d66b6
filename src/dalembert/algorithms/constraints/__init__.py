"""The equations K(q) a = k of loop joints and of constraints that users define."""

from dalembert.algorithms.constraints.active_forces import (
    BiasWithLoopForces,
    LoopState,
    bias_with_loop_forces,
    loop_active_forces,
    loop_active_torques,
    loop_state,
)
from dalembert.algorithms.constraints.closing import ClosingEquations, closing_equations
from dalembert.algorithms.constraints.equations import ConstraintEquations, constraint_equations, stabilized
from dalembert.algorithms.constraints.explicit import ClosureEquations, closure_equations
from dalembert.algorithms.constraints.loop_rows import LoopRows, loop_paths, loop_rows

__all__ = [
    "BiasWithLoopForces",
    "ClosingEquations",
    "ClosureEquations",
    "ConstraintEquations",
    "LoopRows",
    "LoopState",
    "bias_with_loop_forces",
    "closing_equations",
    "closure_equations",
    "constraint_equations",
    "loop_active_forces",
    "loop_active_torques",
    "loop_paths",
    "loop_rows",
    "loop_state",
    "stabilized",
]
