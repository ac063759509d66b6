"""Written by `make api`; do not edit."""

from dalembert.api.declared import inverse_dynamics_regressor as inverse_dynamics_regressor
from dalembert.api.declared import kinetic_energy_regressor as kinetic_energy_regressor
from dalembert.api.declared import potential_energy_regressor as potential_energy_regressor
from dalembert.api.estimation import ExcitingMotion as ExcitingMotion
from dalembert.api.estimation import Identification as Identification
from dalembert.api.estimation import exciting_motion as exciting_motion
from dalembert.api.estimation import identify as identify
from dalembert.api.inertial_parameters import BaseParameters as BaseParameters
from dalembert.api.inertial_parameters import base_parameters as base_parameters
from dalembert.api.inertial_parameters import inertial_parameters as inertial_parameters
from dalembert.api.inertial_parameters import with_inertial_parameters as with_inertial_parameters
from dalembert.model.equivalence import simplify_inertias as simplify_inertias
