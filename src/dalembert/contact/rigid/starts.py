"""Checks of the arguments of chapter 11's functions."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dalembert.call.arguments import as_array, short_repr
from dalembert.contact.rigid.gaps import GapFunction
from dalembert.errors import ArgumentError, DtypeError, ModelError, ShapeError
from dalembert.model.model import Model, require_model

__all__ = ["checked_start", "checked_state", "require_finite", "require_gaps", "require_number"]

Array: TypeAlias = npt.NDArray[Any]


def checked_state(model: Model, q: Any, v: Any) -> tuple[Array, Array]:
    """Return q `(nq,)` and v `(nv,)` of one sample."""
    require_model(model)
    found = as_array("q", q, (model.nq,)), as_array("v", v, (model.nv,))
    if found[0].ndim != 1 or found[1].ndim != 1:
        raise ShapeError(
            f"q and v have the shapes {found[0].shape} and {found[1].shape}; samples have contacts of their "
            "own, so call this for one at a time"
        )
    return found


def checked_start(model: Model, q: Any, v: Any, gaps: GapFunction) -> Array:
    """Return y = (q, v) after checking that the contacts and the model's constraints allow this state."""
    from dalembert.simulation.initial_state import require_closed_loops

    require_model(model)
    require_gaps(gaps)
    if gaps.model is not model and gaps.model != model:
        raise ModelError(f'the gaps are those of "{gaps.model.name}" and not of "{model.name}"')
    position, velocity = checked_state(model, q, v)
    require_finite("q", position)
    require_finite("v", velocity)
    require_closed_loops(model, position, velocity, np.zeros(()))
    return np.concatenate([position, velocity])


def require_gaps(gaps: object) -> None:
    """Raise an error unless `gaps` is a `GapFunction`."""
    if not isinstance(gaps, GapFunction):
        raise DtypeError(
            f"gaps is {type(gaps).__name__}; give a GapFunction, such as da.contact.shape_gaps(model)"
        )


def require_finite(name: str, array: Array) -> None:
    """Raise an error if the array has NaN or infinities."""
    if not np.isfinite(array).all():
        raise ArgumentError(f"{name} holds numbers that are not finite")


def require_number(name: str, value: object, *, positive: bool) -> None:
    """Raise an error unless `value` is a finite number that is positive or, otherwise, not negative."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise DtypeError(f"{name} is {short_repr(value)}; give a number")
    try:
        number = float(value)
    except OverflowError:  # an int beyond all floats
        number = math.inf
    if not math.isfinite(number) or number < 0.0 or (positive and number == 0.0):
        wanted = "a positive, finite number" if positive else "a finite number from 0 on"
        raise ArgumentError(f"{name} is {short_repr(value)}; give {wanted}")
