"""Control laws on the dynamics: feedback linearisation, operational space."""

__all__: list[str] = []
