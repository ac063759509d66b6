"""Constraint equations of loop joints and of users' own functions."""

from __future__ import annotations

from tests.conformance.enrolling import Enrolled

ENROLLED: tuple[Enrolled, ...] = ()

STRUCTURE: dict[str, str] = {}
