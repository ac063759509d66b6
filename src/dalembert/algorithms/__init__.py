"""The algorithms, once each, as pure functions on generic scalars: floats, arrays, traces, SymPy.

`f(tree, q, v, …)` takes sequences of scalars and returns lists of scalars or spatial values.
`dalembert.api` compiles them.
"""

from __future__ import annotations

import importlib.util
import pkgutil
from typing import Any, Final

from dalembert.host import moved_names, names_of_modules

MODULES: Final = {
    "aligned": "AlignedBody AlignedTree aligned",
    "applied_forces": "FRICTION_SPEED ExternalForces body_forces force_at_point passive_forces spring_energy",
    "articulated": "JointElimination assemble coordinate_rows eliminate_joint joint_inertia",
    "energy_momentum": (
        "center_of_mass center_of_mass_acceleration center_of_mass_velocity centroidal_momentum "
        "centroidal_momentum_matrix centroidal_momentum_rate centroidal_momentum_rate_matrix "
        "kinetic_energy momentum potential_energy total_mass"
    ),
    "forward_dynamics": (
        "articulated_inertias forward_dynamics forward_dynamics_by_matrix forward_dynamics_spatial"
    ),
    "integrators": "State",
    "inverse_dynamics": (
        "NewtonEuler bias_forces coriolis_forces differential_inverse_dynamics gravity_forces "
        "inverse_dynamics rnea_common_frame rnea_spatial"
    ),
    "jacobians": (
        "FRAMES all_jacobians frame_of jacobian jacobian_rate jacobian_rate_times_velocity point_jacobian "
        "subspace_rate"
    ),
    "kinematics": (
        "BodyMotion PointMotion body_accelerations body_motions body_velocities forward_kinematics "
        "placed_motion point_motion relative_motion"
    ),
    "mass_matrix": (
        "Block composite_inertias crba_common_frame inverse_mass_matrix mass_matrix mass_matrix_by_columns"
    ),
    "open_tree": "matrix_density variable_parents",
    "sparse": (
        "ancestors depths expanded_parents factor_ltdl factor_ltl factor_with_reciprocals multiply_h "
        "multiply_l multiply_l_transposed operation_sums solve_l solve_l_transposed solve_ltdl solve_ltl "
        "solve_with_reciprocals"
    ),
    "stepping": "INTEGRATORS state_rate step",
}
"""The public names of the modules for plain trees; the other modules are attributes of the package."""

globals().update(_names := names_of_modules(__name__, MODULES))
__all__ = sorted(_names)


def __getattr__(name: str) -> Any:
    """Import a subject beyond the plain tree when it is first asked for."""
    if name.startswith("_") or importlib.util.find_spec(f"{__name__}.{name}") is None:
        return _moved(name)
    return importlib.import_module(f"{__name__}.{name}")


_moved = moved_names(
    __name__, {"dalembert.textbook": ("handle_bias_acceleration", "handle_inertia", "handle_inverse_inertia")}
)


def __dir__() -> list[str]:
    return sorted({*globals(), *(found.name for found in pkgutil.iter_modules(__path__) if found.ispkg)})
