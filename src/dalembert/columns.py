"""Jacobians too long for straight-line code: a product with each direction in turn.

A tree of n bodies that is compiled as loops has its products with the Jacobian in O(n) operations a sample;
the n columns of a sample are one batch of such products, O(n^2) in all, which is the size of the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

import numpy as np

from dalembert.arguments import ArrayArgument, Result, Rows

__all__ = ["Columns"]


@final
class Columns:
    """The directions of a Jacobian; `product(*arguments, *changes)` is J times a change of the arguments."""

    __slots__ = ("_changes", "_ends", "count", "product")

    def __init__(self, product: Any, tangents: Sequence[ArrayArgument], dtype: str) -> None:
        """`tangents`: what a change of each argument looks like."""
        ends = np.cumsum([item.size for item in tangents])
        self.count = int(ends[-1])
        self._ends = ends[:-1]
        self.product = product
        parts = np.split(np.eye(self.count, dtype=dtype), self._ends, axis=1)
        self._changes = [part.reshape(-1, *item.shape) for part, item in zip(parts, tangents, strict=True)]

    def fill(self, rows: Rows, signature: Sequence[ArrayArgument], results: Sequence[Result]) -> None:
        """Compute the rows' Jacobians, one result an argument."""
        for row in range(rows.count):
            given = [
                matrix[min(row, len(matrix) - 1)].reshape(item.shape)
                for matrix, item in zip(rows.matrices, signature, strict=True)
            ]
            parts = np.split(self.product(*given, *self._changes, check="off"), self._ends)
            for result, part in zip(results, parts, strict=True):
                result.matrix[row] = part.T.ravel()
