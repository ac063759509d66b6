"""Tables of constants, and the element that an index selects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from dalembert.errors import DtypeError, ShapeError

__all__ = ["Table", "as_table", "places"]

Table: TypeAlias = npt.NDArray[np.float64]

MAX_TABLE_LENGTH: Final = 2**31 - 1
"""Most elements of a table: a signed 32-bit index addresses them."""


def as_table(table: Sequence[float] | Table) -> Table:
    """Return the numbers as one axis of floats."""
    try:
        numbers = np.asarray(table, dtype=np.float64)
    except (TypeError, ValueError):
        raise DtypeError("a table is looked up in constants: give floats, none of them traced") from None
    if numbers.ndim != 1 or not 1 <= len(numbers) <= MAX_TABLE_LENGTH:
        raise ShapeError(f"a table has one axis and at least one element, got shape {numbers.shape}")
    return numbers


def places(table: Table, index: Any) -> Any:
    """Return floor(index) within the table; 0 for NaN."""
    last = len(table) - 1
    with np.errstate(invalid="ignore"):
        return np.where(index > 0.0, np.minimum(np.floor(index), last), 0.0).astype(np.int64)
