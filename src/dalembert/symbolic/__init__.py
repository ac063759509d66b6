"""Equations of motion as formulas (needs SymPy, the extra `symbolic`)."""

__all__: list[str] = []
