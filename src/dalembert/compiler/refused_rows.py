"""Rows that a kernel refuses: what is wrong with them, in words, and which they are."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from dalembert.call.arguments import Array, Rows
from dalembert.compiler.lowering import QUATERNION_TOLERANCE, Recipe
from dalembert.errors import StateError

MAY_BE_INFINITE: Final = ("effort",)
"""Arguments of the library's functions that may be infinite, which means no limit."""


def refusal_of(recipe: Recipe, rows: Rows, row: int, dtype: str, *, step: int | None = None) -> StateError:
    """Return the error of a refused row: which quaternion of which argument, or which other precondition.

    `step`: of a rollout, whose arguments at that step are in `rows`.
    """
    where = ""
    if rows.batch:
        where = f", sample {tuple(int(place) for place in np.unravel_index(row, rows.batch))}"
    if step is not None:
        where += f", step {step}"
    for name, place, norms in _norms(recipe, rows):
        norm = float(norms[min(row, len(norms) - 1)])
        if math.isnan(norm):
            bodies = (body for body in recipe.model.bodies if body.dependence is None)
            joint = next(x.joint_name for x in bodies if x.q_slice.start <= place.start < x.q_slice.stop)
            return StateError(
                f'{name}[{place.start}:{place.stop}]{where}: the quaternion of joint "{joint}" is not a '
                'number; check="flag" makes the results of such rows NaN, check="off" computes with it'
            )
        if _off_unit(norm, dtype):
            return StateError(
                f"{name}[{place.start}:{place.stop}]{where}: a quaternion must have unit norm, "
                f"this one has {norm:.9g}; normalize it first, for instance with "
                "da.dynamics.normalize(model, q)"
            )
    one = [matrix[min(row, len(matrix) - 1)].astype(np.float64).tolist() for matrix in rows.matrices]
    for refusal in recipe.refusals:
        measure = float(_evaluate_measure(recipe, refusal.measure, one))
        if measure > refusal.tolerance[dtype]:
            blamed = "" if refusal.place is None else _evaluate_measure(recipe, refusal.place, one)
            said = refusal.message.format(measure=measure, place=blamed)
            return StateError(f"{recipe.name}{where}: {said}")
    return StateError(f"{recipe.name}{where or ', this sample'}: refused")


def flagged_rows(recipe: Recipe, rows: Rows, first: int, dtype: str) -> Array:
    """Return a mask of the rows whose results `check="flag"` makes NaN: rows that the kernel refuses, of
    which `first` is the first (-1: none), and rows with an argument that is not finite.

    The kernel alone would not do: a result may come out finite where structural zeros drop a NaN.
    """
    bad = refused_rows(recipe, rows, first, dtype) if first >= 0 else np.zeros(rows.count, dtype=bool)
    for item, matrix in zip((*recipe.signature, *recipe.parameters), rows.matrices, strict=True):
        # A user's own function (no identity) may well give infinity a meaning.
        unbounded = item.name in MAY_BE_INFINITE or recipe.identity is None
        bad |= (np.isnan(matrix) if unbounded else ~np.isfinite(matrix)).any(axis=1)
    return bad


def refused_rows(recipe: Recipe, rows: Rows, first: int, dtype: str) -> Array:
    """Return a mask of the refused rows, of which the kernel named the first."""
    bad = off_unit_rows(recipe, rows, dtype)
    bad[first] = True
    columns = [list(matrix.T) for matrix in rows.matrices]
    for refusal in recipe.refusals:
        with np.errstate(all="ignore"):
            bad |= _evaluate_measure(recipe, refusal.measure, columns) > refusal.tolerance[dtype]
    return bad


def off_unit_rows(recipe: Recipe, rows: Rows, dtype: str) -> Array:
    """Return a mask of the rows with a quaternion off unit norm or not a number."""
    bad = np.zeros(rows.count, dtype=bool)
    for _, _, norms in _norms(recipe, rows):
        bad |= _off_unit(norms, dtype)
    return bad


def _evaluate_measure(recipe: Recipe, measure: Callable[..., Any], rows: Sequence[Sequence[Any]]) -> Any:
    """Evaluate a measure of one sample, or of all samples if the elements are arrays."""
    signature = (*recipe.signature, *recipe.parameters)
    arrays = [_nest(flat, item.shape) for flat, item in zip(rows, signature, strict=True)]
    own, parameters = len(recipe.arguments), len(recipe.parameters)
    return recipe.on_model(measure, arrays[:own] + arrays[len(arrays) - parameters :])


def _norms(recipe: Recipe, rows: Rows) -> Iterator[tuple[str, slice, Array]]:
    for argument, matrix in zip(recipe.arguments, rows.matrices, strict=False):
        for place in recipe.quaternions(argument):
            yield argument.name, place, np.linalg.norm(matrix[:, place], axis=1)


def _nest(flat: Sequence[Any], shape: tuple[int, ...]) -> Any:
    """Return the elements of an array, row-major, as nested lists."""
    if not shape:
        return flat[0]
    size = len(flat) // max(shape[0], 1)
    return [_nest(flat[k * size : (k + 1) * size], shape[1:]) for k in range(shape[0])]


def _off_unit(norm: Any, dtype: str) -> Any:
    """Return whether the kernels refuse a quaternion of this norm, or NaN; `lowering` checks the square."""
    return np.logical_not(abs(norm * norm - 1.0) <= 2.0 * QUATERNION_TOLERANCE[dtype])
