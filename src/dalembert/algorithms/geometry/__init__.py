"""The geometry of configuration space: the mass matrix as a metric."""

__all__: list[str] = []
