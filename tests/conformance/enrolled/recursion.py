"""Other recursions, Lagrange's equations, Cartesian quantities."""

from __future__ import annotations

from tests.conformance.enrolling import Enrolled

ENROLLED: tuple[Enrolled, ...] = ()

STRUCTURE: dict[str, str] = {}
