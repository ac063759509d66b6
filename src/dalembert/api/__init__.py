"""Public functions of dynamics: one sample or any batch of samples, compiled for the model on first use.

All take one sample `(nq,)` or any leading batch shape `(…, nq)`, row-major. Integers and lists become
float64; float32 arrays give float32 results. `out=` takes preallocated results. `check="raise"` raises an
error for a quaternion that is not of unit norm, or NaN; `"flag"` returns NaN for such rows and for rows with
an argument that is not finite; `"off"` checks nothing. None means "raise", and "off" for arrays on a GPU,
where a check would have to wait for the device. Models with time-dependent joints need `time=`.
"""

from dalembert.api.base_parameters import BaseParameters
from dalembert.api.cartesian import (
    base_wrench,
    body_torques,
    cartesian_forces,
    cartesian_forces_at_points,
    generalized_force,
    generalized_velocity,
    joint_torques,
    maximal_jacobians,
    maximal_velocities,
)
from dalembert.api.constrained import constraint_forces, loop_forces
from dalembert.api.derivative import derivative
from dalembert.api.derivatives import (
    forward_dynamics_derivatives,
    hybrid_dynamics_derivatives,
    inverse_dynamics_derivatives,
)
from dalembert.api.dynamics import (
    bias_forces,
    coriolis_forces,
    force_at_point,
    forward_dynamics,
    gravity_forces,
    inertial_forces,
    inverse_dynamics,
    inverse_mass_matrix,
    mass_matrix,
    passive_forces,
)
from dalembert.api.energy_momentum import (
    center_of_mass,
    centroidal_momentum,
    centroidal_momentum_matrix,
    kinetic_energy,
    potential_energy,
)
from dalembert.api.estimation import Identification, identify
from dalembert.api.excitation import ExcitingMotion, exciting_motion
from dalembert.api.geometry import (
    christoffel_symbols,
    connection_term,
    coriolis_matrix,
    coriolis_product,
    covariant_derivative,
    geodesic,
    geodesic_acceleration,
    inner_product,
    mass_matrix_rate,
    parallel_transport,
)
from dalembert.api.hamilton import (
    hamiltonian,
    hamiltonian_rates,
    momentum_coordinates,
    velocity_coordinates,
)
from dalembert.api.hybrid import (
    FloatingBaseEquations,
    floating_base_equations,
    floating_base_inverse_dynamics,
    floating_base_jacobian,
    hybrid_dynamics,
)
from dalembert.api.identification import (
    base_parameters,
    inertial_parameters,
    inverse_dynamics_regressor,
    kinetic_energy_regressor,
    potential_energy_regressor,
    with_inertial_parameters,
)
from dalembert.api.inverse_kinematics import InverseKinematics, inverse_kinematics
from dalembert.api.kinematics import forward_kinematics, jacobian, jacobian_rate, point_motion
from dalembert.api.loops import close_loops, constraint_bias, constraint_error, constraint_jacobian
from dalembert.api.motion import difference, integrate, normalize, step

__all__ = [
    "BaseParameters",
    "ExcitingMotion",
    "FloatingBaseEquations",
    "Identification",
    "InverseKinematics",
    "base_parameters",
    "base_wrench",
    "bias_forces",
    "body_torques",
    "cartesian_forces",
    "cartesian_forces_at_points",
    "center_of_mass",
    "centroidal_momentum",
    "centroidal_momentum_matrix",
    "christoffel_symbols",
    "close_loops",
    "connection_term",
    "constraint_bias",
    "constraint_error",
    "constraint_jacobian",
    "constraint_forces",
    "coriolis_forces",
    "coriolis_matrix",
    "coriolis_product",
    "covariant_derivative",
    "derivative",
    "difference",
    "exciting_motion",
    "floating_base_equations",
    "floating_base_inverse_dynamics",
    "floating_base_jacobian",
    "force_at_point",
    "forward_dynamics",
    "forward_dynamics_derivatives",
    "forward_kinematics",
    "generalized_force",
    "generalized_velocity",
    "geodesic",
    "geodesic_acceleration",
    "gravity_forces",
    "hamiltonian",
    "hamiltonian_rates",
    "hybrid_dynamics",
    "hybrid_dynamics_derivatives",
    "inertial_forces",
    "identify",
    "inertial_parameters",
    "inner_product",
    "integrate",
    "inverse_dynamics",
    "inverse_dynamics_derivatives",
    "inverse_dynamics_regressor",
    "inverse_kinematics",
    "inverse_mass_matrix",
    "jacobian",
    "jacobian_rate",
    "joint_torques",
    "kinetic_energy",
    "kinetic_energy_regressor",
    "loop_forces",
    "mass_matrix",
    "mass_matrix_rate",
    "maximal_jacobians",
    "maximal_velocities",
    "momentum_coordinates",
    "normalize",
    "parallel_transport",
    "passive_forces",
    "point_motion",
    "potential_energy",
    "potential_energy_regressor",
    "step",
    "velocity_coordinates",
    "with_inertial_parameters",
]
