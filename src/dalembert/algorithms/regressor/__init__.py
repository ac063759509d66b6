"""Dynamics as linear functions of the inertial parameters, from which they are identified."""

from dalembert.algorithms.regressor.energies import kinetic_energy_regressor, potential_energy_regressor
from dalembert.algorithms.regressor.parameters import PARTS, inertia_of, inertial_parameters, parameter_names
from dalembert.algorithms.regressor.torques import inverse_dynamics_regressor, power_coefficients

__all__ = [
    "PARTS",
    "inertia_of",
    "inertial_parameters",
    "inverse_dynamics_regressor",
    "kinetic_energy_regressor",
    "parameter_names",
    "potential_energy_regressor",
    "power_coefficients",
]
