"""Addresses: the array element that a program reads or writes, by an index table or in order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np
import numpy.typing as npt

__all__ = ["Address", "Table"]

Table: TypeAlias = npt.NDArray[Any]


@final
@dataclass(frozen=True, slots=True)
class Address:
    """The element `tables[table][i] * scale + offset` of an array in iteration i; without a table, the
    element `i * scale + offset`.

    `array` names an input, a state, an output, or a table of floats (the same for all samples).
    """

    array: str
    table: str | None
    scale: int
    offset: int

    @classmethod
    def fixed(cls, array: str, position: int) -> Address:
        """Return the address of the same element in every iteration, the only form that a `Straight` may
        load."""
        return cls(array, None, 0, position)

    def position(self, tables: Mapping[str, Table], iteration: int) -> int:
        """Return the element's position in iteration i."""
        entry = iteration if self.table is None else int(tables[self.table][iteration])
        return entry * self.scale + self.offset

    def positions(
        self, tables: Mapping[str, Table], iterations: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.int64]:
        """Return the element's positions in many iterations."""
        entries = iterations if self.table is None else tables[self.table][iterations].astype(np.int64)
        return entries * self.scale + self.offset
