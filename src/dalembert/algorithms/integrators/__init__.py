"""Integrators on the configuration manifold, one module a family; `stepping.step` chooses one by its name."""

from dalembert.algorithms.integrators.carried import CentroidalCoordinates, State
from dalembert.algorithms.integrators.circumstances import Integrator, StepConditions
from dalembert.algorithms.integrators.explicit import euler, heun, runge_kutta_4, semi_implicit
from dalembert.algorithms.integrators.implicit import implicit, midpoint
from dalembert.algorithms.integrators.variational import variational

__all__ = ["INTEGRATORS", "VELOCITY_FIRST", "StepConditions", "CentroidalCoordinates", "Integrator", "State"]

INTEGRATORS: dict[str, Integrator] = {
    "semi_implicit": semi_implicit,
    "rk4": runge_kutta_4,
    "euler": euler,
    "heun": heun,
    "midpoint": midpoint,
    "implicit": implicit,
    "variational": variational,
}
"""Every integrator by the name that `step` knows it under."""

VELOCITY_FIRST = ("semi_implicit", "midpoint", "implicit")
"""The integrators that move positions by the new velocities; these keep constraints by a `Leap`."""
