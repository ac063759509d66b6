"""Gains as callers give them: one number for all directions, or one for each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dalembert.call.arguments import DTYPES, pick_dtype
from dalembert.compiler.library import no_model
from dalembert.errors import ArgumentError, DtypeError, ShapeError
from dalembert.host.foreign_arrays import bridge_of, is_foreign
from dalembert.model.model import Model

__all__ = ["joint_gain", "per_direction", "positive_gain"]

Array = npt.NDArray[Any]


def joint_gain(
    model: Model, law: str, name: str, value: npt.ArrayLike | None, beside: Sequence[tuple[str, object]]
) -> Array | None:
    """Return a gain for each velocity variable of the model, or None if `value` is None."""
    if not isinstance(model, Model):
        raise no_model(law, model)
    return None if value is None else positive_gain(name, per_direction(name, value, model.nv, beside))


def per_direction(
    name: str,
    value: npt.ArrayLike,
    size: int,
    beside: Sequence[tuple[str, object]],
    *,
    before: int = 0,
    after: int = 0,
) -> Array:
    """Return an array `(…, size)` from one number or `size` numbers, in the float type of the arrays `beside`
    it.

    `before` and `after`: zeros to add at either end.
    """
    dtype = DTYPES[pick_dtype([*beside, (name, value)])]
    bridge = bridge_of([value])
    if bridge is not None:
        foreign: Any = value
        if foreign.ndim == 0:
            foreign = foreign * bridge.alike(np.ones(size), foreign)
        return foreign @ bridge.alike(np.eye(size, before + size + after, before), foreign)  # type: ignore[no-any-return]
    try:
        given = np.asarray(value)
    except ValueError as cause:
        raise ShapeError(f"{name}: {cause}") from None
    except Exception as cause:  # of somebody's array, whatever it is
        raise DtypeError(f"{name}: {type(value).__name__} gives no array: {cause}") from cause
    if given.dtype.kind not in "fiub":
        raise DtypeError(f"{name} has type {given.dtype}; expected real numbers")
    array = given.astype(dtype)
    if array.ndim == 0:
        array = np.full(size, array)
    if array.shape[-1] != size:
        raise ShapeError(
            f"{name}: expected one number or {size}, got shape {array.shape}; a batch is (…, {size})"
        )
    batch = array.shape[:-1]
    return np.concatenate(
        [np.zeros((*batch, before), dtype), array, np.zeros((*batch, after), dtype)], axis=-1
    )


def positive_gain(name: str, gain: Array) -> Array:
    """Return the gain after checking that it is not negative; a negative gain drives away from the target."""
    if not is_foreign(gain) and np.any(gain < 0.0):
        raise ArgumentError(f"{name} has negative numbers, which drive the system away; give gains >= 0")
    return gain
