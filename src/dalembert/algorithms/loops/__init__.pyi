"""Written by `make api`; do not edit."""

from dalembert.algorithms.dense import minimum_norm_solution as minimum_norm_solution
from dalembert.algorithms.loops import constrained_dynamics as constrained_dynamics
from dalembert.algorithms.loops import maximal_coordinates as maximal_coordinates
from dalembert.algorithms.loops.constrained_dynamics import ANY_CONNECTIVITY as ANY_CONNECTIVITY
from dalembert.algorithms.loops.constrained_dynamics import METHODS as METHODS
from dalembert.algorithms.loops.constrained_dynamics import AllowedMotions as AllowedMotions
from dalembert.algorithms.loops.constrained_dynamics import ConstrainedMotion as ConstrainedMotion
from dalembert.algorithms.loops.constrained_dynamics import ConstrainedSystem as ConstrainedSystem
from dalembert.algorithms.loops.constrained_dynamics import ExplicitSolution as ExplicitSolution
from dalembert.algorithms.loops.constrained_dynamics import (
    accelerations_by_closure as accelerations_by_closure,
)
from dalembert.algorithms.loops.constrained_dynamics import (
    accelerations_by_elimination as accelerations_by_elimination,
)
from dalembert.algorithms.loops.constrained_dynamics import (
    accelerations_by_null_space as accelerations_by_null_space,
)
from dalembert.algorithms.loops.constrained_dynamics import (
    accelerations_by_range_space as accelerations_by_range_space,
)
from dalembert.algorithms.loops.constrained_dynamics import allowed_motions as allowed_motions
from dalembert.algorithms.loops.constrained_dynamics import closure_of as closure_of
from dalembert.algorithms.loops.constrained_dynamics import (
    constrained_forward_dynamics as constrained_forward_dynamics,
)
from dalembert.algorithms.loops.constrained_dynamics import constrained_motion as constrained_motion
from dalembert.algorithms.loops.constrained_dynamics import (
    constrained_motion_directly as constrained_motion_directly,
)
from dalembert.algorithms.loops.constrained_dynamics import constrained_motion_from as constrained_motion_from
from dalembert.algorithms.loops.constrained_dynamics import constrained_system as constrained_system
from dalembert.algorithms.loops.constrained_dynamics import explicit_solution as explicit_solution
from dalembert.algorithms.loops.constrained_dynamics import independent_variables as independent_variables
from dalembert.algorithms.loops.constrained_dynamics import multiplier_equation as multiplier_equation
from dalembert.algorithms.loops.constrained_dynamics import row_scales as row_scales
from dalembert.algorithms.loops.constrained_dynamics import velocity_indices as velocity_indices
from dalembert.algorithms.loops.loop_forces import INVERSE_METHODS as INVERSE_METHODS
from dalembert.algorithms.loops.loop_forces import actuated_variables as actuated_variables
from dalembert.algorithms.loops.loop_forces import (
    constrained_inverse_dynamics as constrained_inverse_dynamics,
)
from dalembert.algorithms.loops.loop_forces import constraint_forces as constraint_forces
from dalembert.algorithms.loops.loop_forces import constraint_violation as constraint_violation
from dalembert.algorithms.loops.loop_forces import gram_factor as gram_factor
from dalembert.algorithms.loops.loop_forces import (
    inverse_dynamics_by_null_space as inverse_dynamics_by_null_space,
)
from dalembert.algorithms.loops.loop_forces import loop_forces as loop_forces
from dalembert.algorithms.loops.loop_forces import on_trees as on_trees
from dalembert.algorithms.loops.loop_forces import unreachable_share as unreachable_share
from dalembert.algorithms.loops.maximal_coordinates import EliminationStep as EliminationStep
from dalembert.algorithms.loops.maximal_coordinates import JointConstraint as JointConstraint
from dalembert.algorithms.loops.maximal_coordinates import MaximalSystem as MaximalSystem
from dalembert.algorithms.loops.maximal_coordinates import (
    accelerations_by_maximal_coordinates as accelerations_by_maximal_coordinates,
)
from dalembert.algorithms.loops.maximal_coordinates import (
    accelerations_by_sparse_elimination as accelerations_by_sparse_elimination,
)
from dalembert.algorithms.loops.maximal_coordinates import connectivity as connectivity
from dalembert.algorithms.loops.maximal_coordinates import elimination_order as elimination_order
from dalembert.algorithms.loops.maximal_coordinates import maximal_system as maximal_system
from dalembert.algorithms.open_tree import is_constrained as is_constrained

__all__: list[str]
