"""Written by `make api`; do not edit."""

from dalembert.api.declared import christoffel_symbols as christoffel_symbols
from dalembert.api.declared import connection_term as connection_term
from dalembert.api.declared import coriolis_matrix as coriolis_matrix
from dalembert.api.declared import coriolis_product as coriolis_product
from dalembert.api.declared import geodesic_acceleration as geodesic_acceleration
from dalembert.api.declared import hamiltonian as hamiltonian
from dalembert.api.declared import hamiltonian_rates as hamiltonian_rates
from dalembert.api.declared import inner_product as inner_product
from dalembert.api.declared import mass_matrix_rate as mass_matrix_rate
from dalembert.api.declared import momentum_coordinates as momentum_coordinates
from dalembert.api.declared import velocity_coordinates as velocity_coordinates
from dalembert.api.geodesics import covariant_derivative as covariant_derivative
from dalembert.api.geodesics import geodesic as geodesic
from dalembert.api.geodesics import parallel_transport as parallel_transport
