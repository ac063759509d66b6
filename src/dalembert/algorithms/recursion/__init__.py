"""Other recursions for inverse dynamics: the original of Luh, Walker and Paul, and Liu and Jain's."""

__all__: list[str] = []
