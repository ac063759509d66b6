"""Loop joints and other constraints."""

from __future__ import annotations

from typing import Final

from dalembert.catalogue.entry import LibraryFunction

__all__ = ["LOOPS"]

LOOPS: Final[dict[str, LibraryFunction]] = {}
