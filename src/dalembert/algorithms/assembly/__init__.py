"""Systems put together from subsystems (Featherstone 2008 chapters 3 and 7)."""

__all__: list[str] = []
