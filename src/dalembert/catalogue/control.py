"""Control laws."""

from __future__ import annotations

from typing import Final

from dalembert.catalogue.entry import LibraryFunction

__all__ = ["CONTROL"]

CONTROL: Final[dict[str, LibraryFunction]] = {}
