"""Rows that a kernel refuses: what is wrong with them, in words, and which they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dalembert.arguments import Array, Rows
from dalembert.catalogue.entry import Refusal
from dalembert.errors import StateError
from dalembert.lowering import QUATERNION_TOLERANCE, Recipe

__all__ = ["off_unit_rows", "refusal_of", "refused_rows"]


def refusal_of(recipe: Recipe, rows: Rows, row: int, dtype: str, *, step: int | None = None) -> StateError:
    """Which quaternion of which argument, in which row, or what else the function refuses there.

    `step`: of a rollout, whose arguments at that step are in `rows`.
    """
    where = ""
    if rows.batch:
        where = f", sample {tuple(int(place) for place in np.unravel_index(row, rows.batch))}"
    if step is not None:
        where += f", step {step}"
    for name, place, norms in _norms(recipe, rows):
        norm = float(norms[min(row, len(norms) - 1)])
        if _off_unit(norm, dtype):
            return StateError(
                f"{name}[{place.start}:{place.stop}]{where}: a quaternion must have unit norm, "
                f"this one has {norm:.9g}; normalize it first, for instance with da.normalize(model, q)"
            )
    one = [matrix[min(row, len(matrix) - 1)].astype(np.float64).tolist() for matrix in rows.matrices]
    for refusal in recipe.refusals:
        measure = float(_measured(recipe, refusal, one))
        if measure > refusal.tolerance[dtype]:
            return StateError(f"{recipe.name}{where}: {refusal.message.format(measure=measure)}")
    return StateError(f"{recipe.name}{where or ', this sample'}: refused")


def refused_rows(recipe: Recipe, rows: Rows, first: int, dtype: str) -> Array:
    """A mask of the refused rows, of which the kernel named the first."""
    bad = off_unit_rows(recipe, rows, dtype)
    bad[first] = True
    columns = [list(matrix.T) for matrix in rows.matrices]
    for refusal in recipe.refusals:
        with np.errstate(all="ignore"):
            bad |= _measured(recipe, refusal, columns) > refusal.tolerance[dtype]
    return bad


def off_unit_rows(recipe: Recipe, rows: Rows, dtype: str) -> Array:
    """A mask of the rows with a quaternion off unit norm."""
    bad = np.zeros(rows.count, dtype=bool)
    for _, _, norms in _norms(recipe, rows):
        bad |= _off_unit(norms, dtype)
    return bad


def _measured(recipe: Recipe, refusal: Refusal, rows: Sequence[Sequence[Any]]) -> Any:
    """A measure of one sample, or of all of them where the elements are arrays."""
    signature = (*recipe.signature, *recipe.parameters)
    arrays = [_nested(flat, item.shape) for flat, item in zip(rows, signature, strict=True)]
    own, parameters = len(recipe.arguments), len(recipe.parameters)
    return recipe.on_model(refusal.measure, arrays[:own] + arrays[len(arrays) - parameters :])


def _norms(recipe: Recipe, rows: Rows) -> Iterator[tuple[str, slice, Array]]:
    for argument, matrix in zip(recipe.arguments, rows.matrices, strict=False):
        for place in recipe.quaternions(argument):
            yield argument.name, place, np.linalg.norm(matrix[:, place], axis=1)


def _nested(flat: Sequence[Any], shape: tuple[int, ...]) -> Any:
    """The elements of an array, row-major, as nested lists."""
    if not shape:
        return flat[0]
    size = len(flat) // max(shape[0], 1)
    return [_nested(flat[k * size : (k + 1) * size], shape[1:]) for k in range(shape[0])]


def _off_unit(norm: Any, dtype: str) -> Any:
    """Whether the kernels refuse a quaternion of this norm; `lowering` says it of the square."""
    return abs(norm * norm - 1.0) > 2.0 * QUATERNION_TOLERANCE[dtype]
