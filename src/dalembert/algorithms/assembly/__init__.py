"""Systems assembled from subsystems (Featherstone 2008 chapters 3 and 7).

Equations of motion are collected and constraints applied to them, all at once, one body at a time or in
pairs; articulated bodies are connected at their handles.
"""

from dalembert.algorithms.assembly.all_at_once import forward_dynamics_by_projection, projected_equations
from dalembert.algorithms.assembly.block_elimination import (
    CompositeEquation,
    Expressed,
    solve_composite,
    standard_equations,
    variant_1_equations,
    variant_2_equations,
)
from dalembert.algorithms.assembly.collecting import (
    Equations,
    body_equations,
    collect,
    free_acceleration,
    tree_equations,
)
from dalembert.algorithms.assembly.constrained_body import (
    apparent_inverse_inertia,
    body_in_joint_coordinates,
    body_with_constraint_forces,
)
from dalembert.algorithms.assembly.constraint_space import forward_dynamics_in_constraint_space
from dalembert.algorithms.assembly.divide_and_conquer import (
    divide_and_conquer,
    forward_dynamics_by_inverse_inertias,
    forward_dynamics_by_plan,
    handle_equations,
)
from dalembert.algorithms.assembly.explicit import (
    Reduced,
    constrain_explicitly,
    dual_system,
    project,
    three_block_system,
)
from dalembert.algorithms.assembly.handles import (
    ArticulatedBody,
    ConnectedJoints,
    HandleJoint,
    collect_parts,
    connect,
    disconnect,
    single_body,
)
from dalembert.algorithms.assembly.implicit import Constrained, constrain, constraint_matrix
from dalembert.algorithms.assembly.planning import (
    AssemblyPlan,
    AssemblyStep,
    plan_in_pairs,
    plan_one_by_one,
)
from dalembert.algorithms.assembly.subspaces import decompose, dimension, dual_complement, split_force
from dalembert.algorithms.assembly.variants import (
    assemble_in_constraint_space,
    assemble_inverse,
    inverse_inertia,
    relative_acceleration,
)

__all__ = [
    "ArticulatedBody",
    "AssemblyPlan",
    "AssemblyStep",
    "CompositeEquation",
    "ConnectedJoints",
    "Constrained",
    "Equations",
    "Expressed",
    "HandleJoint",
    "Reduced",
    "apparent_inverse_inertia",
    "assemble_in_constraint_space",
    "assemble_inverse",
    "body_equations",
    "body_in_joint_coordinates",
    "body_with_constraint_forces",
    "collect",
    "collect_parts",
    "connect",
    "constrain",
    "constrain_explicitly",
    "constraint_matrix",
    "decompose",
    "dimension",
    "disconnect",
    "divide_and_conquer",
    "dual_complement",
    "dual_system",
    "forward_dynamics_by_inverse_inertias",
    "forward_dynamics_by_plan",
    "forward_dynamics_by_projection",
    "forward_dynamics_in_constraint_space",
    "free_acceleration",
    "handle_equations",
    "inverse_inertia",
    "plan_in_pairs",
    "plan_one_by_one",
    "project",
    "projected_equations",
    "relative_acceleration",
    "single_body",
    "solve_composite",
    "split_force",
    "standard_equations",
    "three_block_system",
    "tree_equations",
    "variant_1_equations",
    "variant_2_equations",
]
