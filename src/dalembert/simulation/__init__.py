"""Motion through time: integrators, steps with contact, rollouts and their trajectories."""

from dalembert.simulation.adaptive import AdaptiveMotion, integrate_adaptive
from dalembert.simulation.events import Event, Happening
from dalembert.simulation.trajectory import SimulationWarning

__all__ = ["AdaptiveMotion", "Event", "Happening", "SimulationWarning", "integrate_adaptive"]
