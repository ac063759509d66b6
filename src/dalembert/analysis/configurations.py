"""Checks of the arguments of analysis functions: models, configurations and times."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dalembert.call.arguments import as_array
from dalembert.compiler.library import no_model
from dalembert.errors import ArgumentError, ShapeError
from dalembert.model.model import Model

__all__ = ["configurations", "instant", "one_configuration", "require_model"]

Array = npt.NDArray[np.float64]


def require_model(model: Model, function: str) -> None:
    """Raise an error if the argument is not a Model."""
    if not isinstance(model, Model):
        raise no_model(function, model)


def instant(time: float | None, function: str) -> float | None:
    """Return a time [s] as one finite number; None stays None."""
    if time is None:
        return None
    at = as_array("time", time, ())
    if at.ndim or not np.isfinite(at):
        raise ArgumentError(f"{function}: time is {time!r}; give one finite number [s]")
    return float(at)


def configurations(model: Model, q: npt.ArrayLike | None, function: str) -> Array:
    """Return q `(…, nq)` as finite float64 numbers; None gives the neutral configuration."""
    require_model(model, function)
    if q is None:
        return model.neutral()
    at: Array = as_array("q", q, (model.nq,), follow=True).astype(np.float64)
    if not np.isfinite(at).all():
        raise ArgumentError(f"{function}: q holds a number that is not finite")
    return at


def one_configuration(model: Model, q: npt.ArrayLike | None, function: str) -> Array:
    """Return one configuration q `(nq,)` as finite float64 numbers; None gives the neutral one."""
    at = configurations(model, q, function)
    if at.ndim != 1:
        raise ShapeError(f"{function} takes one configuration ({model.nq},), q has shape {at.shape}")
    return at
