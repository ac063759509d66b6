"""Jacobians too long for straight-line code: products with directions, as few as the sparsity allows.

A tree of n bodies that is compiled as loops has its products with the Jacobian in O(n) operations a sample.
Columns that share no row come from one product with the sum of their directions: joints of branches that do
not meet share no torque. The products of a sample are one batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

import numpy as np

from dalembert.arguments import Array, ArrayArgument, Result, Rows
from dalembert.tracing.program import Program
from dalembert.tracing.sparsity import coloured, dependence

__all__ = ["Columns"]


@final
class Columns:
    """The directions of a Jacobian; `product(*arguments, *changes)` is J times a change of the arguments."""

    __slots__ = ("_changes", "_colours", "_ends", "count", "masks", "product")

    def __init__(
        self, product: Any, program: Program, tangents: Sequence[ArrayArgument], *, dtype: str
    ) -> None:
        """`program` computes the product, one output; `tangents`: its arrays that are changes."""
        (rows,) = dependence(program, [item.name for item in tangents]).values()
        ends = np.cumsum([item.size for item in tangents])
        total = int(ends[-1])
        groups = coloured(rows, total)
        seeds = np.zeros((len(groups), total), dtype)
        self._colours = np.zeros(total, np.int64)
        for colour, columns in enumerate(groups):
            seeds[colour, columns] = 1.0
            self._colours[columns] = colour
        self._ends = ends[:-1]
        self.count = len(groups)
        self.product = product
        self._changes = [
            part.reshape(-1, *item.shape)
            for part, item in zip(np.split(seeds, self._ends, axis=1), tangents, strict=True)
        ]
        depends = np.array([[row >> k & 1 for k in range(total)] for row in rows], bool).reshape(-1, total)
        self.masks: list[Array] = np.split(depends, self._ends, axis=1)

    def fill(self, rows: Rows, signature: Sequence[ArrayArgument], results: Sequence[Result]) -> None:
        """Compute the rows' Jacobians, one result an argument."""
        for row in range(rows.count):
            given = [
                matrix[min(row, len(matrix) - 1)].reshape(item.shape)
                for matrix, item in zip(rows.matrices, signature, strict=True)
            ]
            products = self.product(*given, *self._changes, check="off")
            parts = np.split(products.T[:, self._colours], self._ends, axis=1)
            for result, part, mask in zip(results, parts, self.masks, strict=True):
                result.matrix[row] = np.where(mask, part, 0.0).ravel()
