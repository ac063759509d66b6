"""Motion through time: integrators, steps with contact, rollouts and their trajectories."""
