"""Written by `make api`; do not edit."""

from dalembert.api.declared import bias_forces as bias_forces
from dalembert.api.declared import center_of_mass as center_of_mass
from dalembert.api.declared import centroidal_momentum as centroidal_momentum
from dalembert.api.declared import centroidal_momentum_matrix as centroidal_momentum_matrix
from dalembert.api.declared import coriolis_forces as coriolis_forces
from dalembert.api.declared import difference as difference
from dalembert.api.declared import fluid_forces as fluid_forces
from dalembert.api.declared import forward_dynamics as forward_dynamics
from dalembert.api.declared import forward_dynamics_derivatives as forward_dynamics_derivatives
from dalembert.api.declared import gravity_forces as gravity_forces
from dalembert.api.declared import hybrid_dynamics as hybrid_dynamics
from dalembert.api.declared import hybrid_dynamics_derivatives as hybrid_dynamics_derivatives
from dalembert.api.declared import inertial_forces as inertial_forces
from dalembert.api.declared import integrate as integrate
from dalembert.api.declared import inverse_dynamics as inverse_dynamics
from dalembert.api.declared import inverse_dynamics_derivatives as inverse_dynamics_derivatives
from dalembert.api.declared import inverse_mass_matrix as inverse_mass_matrix
from dalembert.api.declared import kinetic_energy as kinetic_energy
from dalembert.api.declared import mass_matrix as mass_matrix
from dalembert.api.declared import normalize as normalize
from dalembert.api.declared import passive_forces as passive_forces
from dalembert.api.declared import potential_energy as potential_energy
from dalembert.api.derivative import derivative as derivative
from dalembert.api.records import HybridDynamicsDerivatives as HybridDynamicsDerivatives
from dalembert.api.time_step import force_at_point as force_at_point
from dalembert.api.time_step import step as step
