"""Published routes that are not the ones that run, one module for each page of its source.

Each is readable beside its source and tested against the route that runs; `method=` of the public functions
reaches those that compute the same quantity. A name is imported from its module on first use.
"""

import importlib
from typing import Any, Final

MODULES: Final = {
    "planar_algebra": (
        "PlanarForce PlanarInertia PlanarMotion PlanarTransform Xpln XtoV XtoV_simple crf crm mcI"
    ),
    "vector_recursion": ("LuhWalkerPaul luh_walker_paul"),
    "local_recursion": ("LiuJain LocalMotion liu_jain local_motions local_newton_euler"),
    "closed_form_equations": (
        "ClosedForm closed_form inverse_dynamics_closed_form inverse_dynamics_common_frame"
    ),
    "lagrange": (
        "BodyEquations NewtonEulerBlocks ORIENTATIONS accelerations_from body_equations body_jacobian "
        "body_kinetic_energy body_pose coriolis_vector forces_from inverse_dynamics_by_jacobians "
        "lagrange_equations mass_matrix_by_jacobians mass_matrix_gradient mass_matrix_gradient_times "
        "mass_matrix_rate newton_euler newton_euler_blocks particle_forces particle_jacobians "
        "particle_kinetic_energy particle_mass_matrix require_scleronomic rigid_body_momenta "
        "tree_equations world_inertia world_inertia_rate"
    ),
    "cartesian_tensors": (
        "BalafoutisPatel Carried Moving NetForce acceleration_tensor acceleration_tensor_rate "
        "across_joint balafoutis_patel base_motion carried_over dual euler_tensor moment_of net_force"
    ),
    "guenter_rose_partials": (
        "Along GuenterRose JointPartial guenter_rose inverse_dynamics_partials joint_partials stacked_hinges"
    ),
    "handles": (
        "ArticulatedBody ConnectedJoints HandleJoint JointForces assemble_in_constraint_space "
        "assemble_inverse collect_parts connect disconnect forward_dynamics_in_constraint_space "
        "handle_bias_acceleration handle_inertia handle_inverse_inertia inverse_inertia joint_forces "
        "relative_acceleration require_invertible_inertias single_body"
    ),
    "recursive_assembly": (
        "AssemblyPlan AssemblyStep divide_and_conquer forward_dynamics_by_inverse_inertias "
        "forward_dynamics_by_plan handle_equations loop_handle_joint plan_in_pairs plan_one_by_one "
        "velocity_product_accelerations"
    ),
    "constrained_equations": (
        "Columns CompositeEquation Constrained Equations Expressed Reduced apparent_inverse_inertia "
        "body_in_joint_coordinates body_with_constraint_forces collect constrain constrain_explicitly "
        "constraint_matrix decompose dimension dual_complement dual_system forward_dynamics_by_projection "
        "free_acceleration project projected_equations solve_composite split_force standard_equations "
        "three_block_system variant_1_equations variant_2_equations"
    ),
    "contact_gaps": (
        "ContactState EdgeEdge Feature GapFunction VertexFace contact_states feature_gaps shape_gaps"
    ),
    "contact_forces": (
        "BodyContact ContactEquations Contacts PointContact body_contact body_contacts checked_start "
        "checked_state contact_equations contact_normal disc_contacts inertia_response reduce_contacts "
        "require_finite require_gaps require_number"
    ),
    "complementarity": (
        "ComplementaritySolution LeastConstraint checked_problem independent_columns least_constraint "
        "solve_force_qp solve_lcp"
    ),
    "contact_solvers": ("ContactSets ContactSolver RigidSolver SpringDamper StepSolver contact_dynamics"),
    "impacts": (
        "Collision Impact apply_impulse body_impulse body_mobility collide collide_bodies "
        "collide_bodies_sticking collide_sticking"
    ),
    "published_costs": (
        "BranchSums Cost Crossovers PublishedCost TABLE_10_1 branch_sums branched_crba branched_total "
        "chain_total crossovers factor_and_solve is_general_chain published tree_sums"
    ),
    "event_driven": ("ContactEvent DenseStep EventDrivenMotion dense_step fitted_step simulate_events"),
}
"""The public names of each module."""

_HOMES: Final = {name: module for module, names in MODULES.items() for name in names.split()}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
