"""Functions on NVIDIA GPUs: their modules, calls and rollouts."""
