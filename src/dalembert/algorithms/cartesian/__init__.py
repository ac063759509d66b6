"""From Cartesian (maximal) to generalized quantities and back."""

__all__: list[str] = []
