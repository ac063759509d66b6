"""Values of a model that a rollout was given at run time, for all samples or for each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dalembert.call.arguments import as_array
from dalembert.model.model import Model

__all__ = ["batch_of_value", "checked_parameters", "for_frames", "of_samples"]

Array: TypeAlias = npt.NDArray[Any]


def checked_parameters(model: Model, parameters: Mapping[str, Any] | None) -> dict[str, Array]:
    """Return the values by name, as arrays `(…, *own)`."""
    return {
        name: as_array(name, value, np.shape(model.value(name))).copy()
        for name, value in (parameters or {}).items()
    }


def batch_of_value(model: Model, name: str, value: Array) -> tuple[int, ...]:
    """Return the batch shape of a value, () if it is the same for all samples."""
    return value.shape[: value.ndim - np.ndim(model.value(name))]


def for_frames(model: Model, parameters: Mapping[str, Array]) -> dict[str, Array]:
    """Return values of samples with an axis for their frames."""
    found = {}
    for name, value in parameters.items():
        own = np.ndim(model.value(name))
        found[name] = value if value.ndim == own else np.expand_dims(value, -1 - own)
    return found


def of_samples(
    model: Model, parameters: Mapping[str, Array], batch: tuple[int, ...], key: Any
) -> dict[str, Array]:
    """Return the values of some samples of a batch."""
    found = {}
    for name, value in parameters.items():
        own = value.shape[value.ndim - np.ndim(model.value(name)) :]
        found[name] = value if value.shape == own else np.broadcast_to(value, (*batch, *own))[key]
    return found
