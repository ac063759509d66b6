"""The geometry of configuration space, and control."""

from __future__ import annotations

from tests.conformance.enrolling import Enrolled

ENROLLED: tuple[Enrolled, ...] = ()

STRUCTURE: dict[str, str] = {}
