"""Hybrid dynamics and floating bases."""

from __future__ import annotations

from tests.conformance.enrolling import Enrolled

ENROLLED: tuple[Enrolled, ...] = ()

STRUCTURE: dict[str, str] = {}
