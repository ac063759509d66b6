"""Written by `make api`; do not edit."""

from dalembert.api.declared import constraint_bias as constraint_bias
from dalembert.api.declared import constraint_error as constraint_error
from dalembert.api.declared import constraint_forces as constraint_forces
from dalembert.api.declared import constraint_jacobian as constraint_jacobian
from dalembert.api.declared import loop_forces as loop_forces
from dalembert.api.loop_closing import close_loops as close_loops
