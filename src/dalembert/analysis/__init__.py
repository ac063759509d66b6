"""How accurate, how sensitive, how mobile: numbers about a model rather than of its motion."""

__all__: list[str] = []
