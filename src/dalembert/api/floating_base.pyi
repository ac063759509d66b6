"""Written by `make api`; do not edit."""

from dalembert.api.declared import floating_base_equations as floating_base_equations
from dalembert.api.declared import floating_base_inverse_dynamics as floating_base_inverse_dynamics
from dalembert.api.declared import floating_base_jacobian as floating_base_jacobian
from dalembert.api.records import FloatingBaseEquations as FloatingBaseEquations
