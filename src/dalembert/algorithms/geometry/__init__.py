"""The geometry of configuration space: the mass matrix as a metric, with and without constraints."""

from dalembert.algorithms.geometry.christoffel import (
    christoffel_symbols,
    christoffel_symbols_by_derivatives,
    structure_constants,
)
from dalembert.algorithms.geometry.constrained_inertia import (
    ConstrainedMotion,
    ExplicitDynamics,
    ExplicitMotion,
    constrained_inverse_inertia,
    explicit_dynamics,
    explicit_dynamics_by_blocks,
    gauss_acceleration,
    implicit_dynamics,
    implicit_dynamics_kkt,
    nearest_acceleration,
    penalized_inverse_inertia,
    transformed_force,
    transformed_inertia,
)
from dalembert.algorithms.geometry.coriolis_matrix import (
    coriolis_matrix,
    coriolis_product,
    mass_matrix_rate,
    require_scleronomic,
)
from dalembert.algorithms.geometry.differentiation import MapMotion, map_motion
from dalembert.algorithms.geometry.gauss import forward_dynamics_gauss
from dalembert.algorithms.geometry.hamiltonian import (
    HamiltonianRates,
    forward_dynamics_hamiltonian,
    hamiltonian,
    hamiltonian_rates,
    momentum_coordinates,
    velocity_coordinates,
)
from dalembert.algorithms.geometry.riemannian import (
    connection_term,
    covariant_derivative,
    geodesic_acceleration,
    geodesic_step,
    inner_product,
)

__all__ = [
    "ConstrainedMotion",
    "ExplicitDynamics",
    "ExplicitMotion",
    "HamiltonianRates",
    "MapMotion",
    "christoffel_symbols",
    "christoffel_symbols_by_derivatives",
    "connection_term",
    "constrained_inverse_inertia",
    "coriolis_matrix",
    "coriolis_product",
    "covariant_derivative",
    "explicit_dynamics",
    "explicit_dynamics_by_blocks",
    "forward_dynamics_gauss",
    "forward_dynamics_hamiltonian",
    "gauss_acceleration",
    "geodesic_acceleration",
    "geodesic_step",
    "hamiltonian",
    "hamiltonian_rates",
    "implicit_dynamics",
    "implicit_dynamics_kkt",
    "inner_product",
    "map_motion",
    "mass_matrix_rate",
    "momentum_coordinates",
    "nearest_acceleration",
    "penalized_inverse_inertia",
    "require_scleronomic",
    "structure_constants",
    "transformed_force",
    "transformed_inertia",
    "velocity_coordinates",
]
