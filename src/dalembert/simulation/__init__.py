"""Motion through time: integrators, steps with contact, rollouts and their trajectories."""

from dalembert.simulation.adaptive import AdaptiveMotion, Event, Happening, integrate_adaptive
from dalembert.simulation.trajectory import SimulationWarning

__all__ = ["AdaptiveMotion", "Event", "Happening", "SimulationWarning", "integrate_adaptive"]
