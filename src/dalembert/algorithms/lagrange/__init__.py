"""Lagrange's equations: particles, Jacobians, closed-form tensors."""

__all__: list[str] = []
