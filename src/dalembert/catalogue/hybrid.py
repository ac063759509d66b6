"""Hybrid dynamics and floating bases."""

from __future__ import annotations

from typing import Final

from dalembert.catalogue.entry import LibraryFunction

__all__ = ["HYBRID"]

HYBRID: Final[dict[str, LibraryFunction]] = {}
