"""The geometry of configuration space."""

from __future__ import annotations

from typing import Final

from dalembert.catalogue.entry import LibraryFunction

__all__ = ["GEOMETRY"]

GEOMETRY: Final[dict[str, LibraryFunction]] = {}
