"""Hybrid dynamics: some joints' forces and the other joints' accelerations are given."""

__all__: list[str] = []
