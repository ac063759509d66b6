"""The catalogue of library functions: the algorithm, arguments and methods of each."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from typing import Final, cast, final

from dalembert.compiler.catalogue.entry import LibraryFunction

__all__ = ["FUNCTIONS", "LibraryFunction"]

SUBJECTS: Final = (
    "trees", "loops", "hybrid", "cartesian", "geometry", "control", "identification", "derivatives",
)  # fmt: skip
"""The modules of the catalogue; each holds its table under its own name in capitals."""


@final
class Catalogue(Mapping[str, LibraryFunction]):
    """The functions of all subjects by name.

    `import dalembert` needs none of their algorithms, and a first call only those of its own subject. So
    subjects are loaded when a function is looked up: first one whose name is part of the function's name,
    then the others in turn.
    """

    def __init__(self) -> None:
        self._tables: dict[str, dict[str, LibraryFunction]] = {}

    def __getitem__(self, name: str) -> LibraryFunction:
        for subject in sorted(SUBJECTS, key=lambda subject: subject not in str(name)):
            table = self._table(subject)
            if name in table:
                return table[name]
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return (name for subject in SUBJECTS for name in self._table(subject))

    def __len__(self) -> int:
        return sum(len(self._table(subject)) for subject in SUBJECTS)

    def _table(self, subject: str) -> dict[str, LibraryFunction]:
        table = self._tables.get(subject)
        if table is None:
            module = importlib.import_module(f"{__name__}.{subject}")
            table = self._tables[subject] = cast(
                "dict[str, LibraryFunction]", getattr(module, subject.upper())
            )
        return table


FUNCTIONS: Final[Mapping[str, LibraryFunction]] = Catalogue()
