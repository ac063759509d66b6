"""Jacobians too long for straight-line code: products with directions, as few as the sparsity allows.

A tree of n bodies that is compiled as loops has its products with the Jacobian in O(n) operations a sample.
Columns that share no row come from one product with the sum of their directions: joints of branches that do
not meet share no torque. Rows that would keep many columns apart, those of joints near the root, are taken as
gradients instead. The products of a sample are one batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, final

import numpy as np

from dalembert.call.arguments import Array, ArrayArgument, Result, Rows
from dalembert.tracing.program import Program
from dalembert.tracing.sparsity import colour_columns, dependence

__all__ = ["Columns"]


def _dense_rows(rows: Sequence[int]) -> list[int]:
    """Return the rows to take as gradients: as many as halve the products at least, the fewest products in
    all.

    The columns of a row all need products of their own, so the longest row that is left is what they cost.
    """
    order = sorted(range(len(rows)), key=lambda k: -rows[k].bit_count())
    lengths = [rows[k].bit_count() for k in order] + [0]
    best = min(range(len(lengths)), key=lambda taken: taken + lengths[taken])
    return sorted(order[:best]) if 2 * (best + lengths[best]) <= lengths[0] else []


@final
class Columns:
    """The directions of a Jacobian; `product(*arguments, *changes)` is J times a change of the arguments."""

    __slots__ = (
        "_changes",
        "_colours",
        "_ends",
        "_gradient",
        "_rows",
        "_weights",
        "count",
        "masks",
        "product",
    )

    def __init__(
        self,
        product: Any,
        gradient: Callable[[], Any],
        program: Program,
        tangents: Sequence[ArrayArgument],
        *,
        dtype: str,
    ) -> None:
        """`program` computes the product, one output; `tangents`: its arrays that are changes.

        `gradient()` is the function of the same arguments and of weights that gives rows times weights.
        """
        (rows,) = dependence(program, [item.name for item in tangents]).values()
        ends = np.cumsum([item.size for item in tangents])
        total = int(ends[-1])
        self._rows = _dense_rows(rows)
        self._weights = np.eye(len(rows), dtype=dtype)[self._rows]
        self._gradient = gradient() if self._rows else None
        dense = set(self._rows)
        groups = colour_columns([0 if k in dense else row for k, row in enumerate(rows)], total)
        seeds = np.zeros((len(groups), total), dtype)
        self._colours = np.zeros(total, np.int64)
        for colour, columns in enumerate(groups):
            seeds[colour, columns] = 1.0
            self._colours[columns] = colour
        self._ends = ends[:-1]
        self.count = len(groups) + len(self._rows)
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
            matrix = products.T[:, self._colours]
            if self._gradient is not None:
                found = self._gradient(*given, self._weights, check="off")
                parts = found if isinstance(found, tuple) else (found,)
                matrix[self._rows] = np.concatenate([x.reshape(len(x), -1) for x in parts], axis=1)
            for result, part, mask in zip(
                results, np.split(matrix, self._ends, axis=1), self.masks, strict=True
            ):
                result.matrix[row] = np.where(mask, part, 0.0).ravel()
