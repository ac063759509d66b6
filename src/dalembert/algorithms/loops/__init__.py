"""The dynamics of systems with constraints, mainly closed loops (Featherstone 2008 chapter 8)."""

from typing import Final

from dalembert.host import names_of_modules

MODULES: Final = {
    "dense": "minimum_norm_solution",
    "loops.constrained_dynamics": (
        "ANY_CONNECTIVITY METHODS AllowedMotions ConstrainedMotion ConstrainedSystem ExplicitSolution "
        "accelerations_by_closure accelerations_by_elimination accelerations_by_null_space "
        "accelerations_by_range_space allowed_motions closure_of constrained_forward_dynamics "
        "constrained_motion constrained_motion_directly constrained_motion_from constrained_system "
        "explicit_solution independent_variables multiplier_equation row_scales velocity_indices"
    ),
    "loops.loop_forces": (
        "INVERSE_METHODS actuated_variables constrained_inverse_dynamics constraint_forces "
        "constraint_violation gram_factor inverse_dynamics_by_null_space loop_forces on_trees "
        "unreachable_share"
    ),
    "loops.maximal_coordinates": (
        "EliminationStep JointConstraint MaximalSystem accelerations_by_maximal_coordinates "
        "accelerations_by_sparse_elimination connectivity elimination_order maximal_system"
    ),
    "open_tree": "is_constrained",
}
"""The public names by the modules of `dalembert.algorithms` that define them."""

globals().update(_names := names_of_modules("dalembert.algorithms", MODULES))
__all__ = sorted(_names)
