"""The library's own functions, one line each: which algorithm, of which arrays, by which methods."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Final, final

from dalembert.catalogue.entry import LibraryFunction

__all__ = ["FUNCTIONS", "LibraryFunction"]


@final
class Catalogue(Mapping[str, LibraryFunction]):
    """The functions of all subjects by name.

    They are loaded at the first look, since `import dalembert` needs none of their algorithms.
    """

    @functools.cached_property
    def entries(self) -> dict[str, LibraryFunction]:
        """All functions, subject by subject."""
        from dalembert.catalogue.cartesian import CARTESIAN
        from dalembert.catalogue.control import CONTROL
        from dalembert.catalogue.derivatives import DERIVATIVES
        from dalembert.catalogue.geometry import GEOMETRY
        from dalembert.catalogue.hybrid import HYBRID
        from dalembert.catalogue.identification import IDENTIFICATION
        from dalembert.catalogue.loops import LOOPS
        from dalembert.catalogue.trees import TREES

        return {
            **TREES, **LOOPS, **HYBRID, **CARTESIAN, **GEOMETRY, **CONTROL, **IDENTIFICATION, **DERIVATIVES
        }  # fmt: skip

    def __getitem__(self, name: str) -> LibraryFunction:
        return self.entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)


FUNCTIONS: Final[Mapping[str, LibraryFunction]] = Catalogue()
