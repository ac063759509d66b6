"""Conversions between generalized and Cartesian quantities."""

from __future__ import annotations

from typing import Final

from dalembert.catalogue.entry import LibraryFunction

__all__ = ["CARTESIAN"]

CARTESIAN: Final[dict[str, LibraryFunction]] = {}
