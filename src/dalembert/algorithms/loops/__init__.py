"""The dynamics of closed loops (Featherstone 2008 chapter 8)."""

__all__: list[str] = []
