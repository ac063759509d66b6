"""The algorithms, once each, as pure functions on generic scalars: floats, arrays, traces, SymPy.

`f(tree, q, v, …)` takes sequences of scalars and returns lists of scalars or spatial values.
`dalembert.api` compiles them.
"""

from __future__ import annotations

import importlib.util
import pkgutil
from typing import TYPE_CHECKING, Any

from dalembert.algorithms.aligned import AlignedBody, AlignedTree, aligned
from dalembert.algorithms.applied_forces import (
    FRICTION_SPEED,
    ExternalForces,
    body_forces,
    force_at_point,
    passive_forces,
    spring_energy,
)
from dalembert.algorithms.articulated import (
    JointElimination,
    assemble,
    coordinate_rows,
    eliminate_joint,
    joint_inertia,
)
from dalembert.algorithms.energy_momentum import (
    center_of_mass,
    center_of_mass_acceleration,
    center_of_mass_velocity,
    centroidal_momentum,
    centroidal_momentum_matrix,
    centroidal_momentum_rate,
    centroidal_momentum_rate_matrix,
    kinetic_energy,
    momentum,
    potential_energy,
    total_mass,
)
from dalembert.algorithms.forward_dynamics import (
    articulated_inertias,
    forward_dynamics,
    forward_dynamics_by_matrix,
    forward_dynamics_spatial,
)
from dalembert.algorithms.integrators import State
from dalembert.algorithms.inverse_dynamics import (
    NewtonEuler,
    bias_forces,
    coriolis_forces,
    differential_inverse_dynamics,
    gravity_forces,
    inverse_dynamics,
    rnea_common_frame,
    rnea_spatial,
)
from dalembert.algorithms.jacobians import (
    FRAMES,
    all_jacobians,
    frame_of,
    jacobian,
    jacobian_rate,
    jacobian_rate_times_velocity,
    point_jacobian,
    subspace_rate,
)
from dalembert.algorithms.kinematics import (
    BodyMotion,
    PointMotion,
    body_accelerations,
    body_motions,
    body_velocities,
    forward_kinematics,
    placed_motion,
    point_motion,
    relative_motion,
)
from dalembert.algorithms.mass_matrix import (
    Block,
    composite_inertias,
    crba_common_frame,
    inverse_mass_matrix,
    mass_matrix,
    mass_matrix_by_columns,
)
from dalembert.algorithms.open_tree import matrix_density, variable_parents
from dalembert.algorithms.sparse import (
    ancestors,
    depths,
    expanded_parents,
    factor_ltdl,
    factor_ltl,
    factor_with_reciprocals,
    multiply_h,
    multiply_l,
    multiply_l_transposed,
    operation_sums,
    solve_l,
    solve_l_transposed,
    solve_ltdl,
    solve_ltl,
    solve_with_reciprocals,
)
from dalembert.algorithms.stepping import INTEGRATORS, state_rate, step
from dalembert.host import moved_names

if TYPE_CHECKING:
    from dalembert.algorithms import (
        cartesian as cartesian,
    )
    from dalembert.algorithms import (
        clusters as clusters,
    )
    from dalembert.algorithms import (
        constraints as constraints,
    )
    from dalembert.algorithms import (
        control_laws as control_laws,
    )
    from dalembert.algorithms import (
        coriolis as coriolis,
    )
    from dalembert.algorithms import (
        floating_base as floating_base,
    )
    from dalembert.algorithms import (
        gears as gears,
    )
    from dalembert.algorithms import (
        geometry as geometry,
    )
    from dalembert.algorithms import (
        hybrid as hybrid,
    )
    from dalembert.algorithms import (
        inverse_kinematics as inverse_kinematics,
    )
    from dalembert.algorithms import (
        loops as loops,
    )
    from dalembert.algorithms import (
        regressor as regressor,
    )

__all__ = [
    "AlignedBody",
    "AlignedTree",
    "Block",
    "BodyMotion",
    "ExternalForces",
    "FRAMES",
    "FRICTION_SPEED",
    "INTEGRATORS",
    "JointElimination",
    "NewtonEuler",
    "PointMotion",
    "State",
    "aligned",
    "all_jacobians",
    "ancestors",
    "articulated_inertias",
    "assemble",
    "bias_forces",
    "body_accelerations",
    "body_forces",
    "body_motions",
    "body_velocities",
    "center_of_mass",
    "center_of_mass_acceleration",
    "center_of_mass_velocity",
    "centroidal_momentum",
    "centroidal_momentum_matrix",
    "centroidal_momentum_rate",
    "centroidal_momentum_rate_matrix",
    "composite_inertias",
    "coordinate_rows",
    "coriolis_forces",
    "crba_common_frame",
    "depths",
    "differential_inverse_dynamics",
    "eliminate_joint",
    "expanded_parents",
    "factor_ltdl",
    "factor_ltl",
    "factor_with_reciprocals",
    "force_at_point",
    "forward_dynamics",
    "forward_dynamics_by_matrix",
    "forward_dynamics_spatial",
    "forward_kinematics",
    "frame_of",
    "gravity_forces",
    "inverse_dynamics",
    "inverse_mass_matrix",
    "jacobian",
    "jacobian_rate",
    "jacobian_rate_times_velocity",
    "joint_inertia",
    "kinetic_energy",
    "mass_matrix",
    "mass_matrix_by_columns",
    "matrix_density",
    "momentum",
    "multiply_h",
    "multiply_l",
    "multiply_l_transposed",
    "operation_sums",
    "passive_forces",
    "placed_motion",
    "point_jacobian",
    "point_motion",
    "potential_energy",
    "relative_motion",
    "rnea_common_frame",
    "rnea_spatial",
    "solve_l",
    "solve_l_transposed",
    "solve_ltdl",
    "solve_ltl",
    "solve_with_reciprocals",
    "spring_energy",
    "state_rate",
    "step",
    "subspace_rate",
    "total_mass",
    "variable_parents",
]

if not TYPE_CHECKING:  # a type checker would take any name for a package

    def __getattr__(name: str) -> Any:
        """Import a subject beyond the plain tree when it is first asked for."""
        if name.startswith("_") or importlib.util.find_spec(f"{__name__}.{name}") is None:
            return _moved(name)
        return importlib.import_module(f"{__name__}.{name}")

    _moved = moved_names(
        __name__,
        {"dalembert.textbook": ("handle_bias_acceleration", "handle_inertia", "handle_inverse_inertia")},
    )


def __dir__() -> list[str]:
    return sorted({*globals(), *(found.name for found in pkgutil.iter_modules(__path__) if found.ispkg)})
