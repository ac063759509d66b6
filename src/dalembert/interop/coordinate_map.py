"""A map from the coordinates of one engine to those of another.

Almost every difference between engines is an order: quaternions end or begin with the scalar, free joints
list positions before or after rotations. The one exception is an angle kept as the two numbers (cos, sin).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np
import numpy.typing as npt

from dalembert.errors import DtypeError, ShapeError

__all__ = ["Array", "CoordinateMap", "Source", "shift_sources"]

Array: TypeAlias = npt.NDArray[Any]

Source: TypeAlias = int | tuple[int, int]
"""Where one of our coordinates comes from: a place, or the places of the cosine and the sine of an angle."""


def shift_sources(sources: Sequence[Source], start: int) -> tuple[Source, ...]:
    """Return the same places in an array where the joint begins at `start`."""
    return tuple(
        source + start if isinstance(source, int) else (source[0] + start, source[1] + start)
        for source in sources
    )


def real_array(name: str, value: object, inner: tuple[int, ...]) -> Array:
    """Return the value as float64 (float32 stays), with `inner` as its last axes."""
    array = np.asarray(value)
    if array.dtype.kind not in "fiub":
        raise DtypeError(f"{name} has type {array.dtype}; expected real numbers")
    depth = len(inner)
    if array.ndim < depth or array.shape[array.ndim - depth :] != inner:
        batch = ", ".join(map(str, inner))
        raise ShapeError(f"{name}: expected {inner} or a batch (…, {batch}), got {array.shape}")
    return array if array.dtype == np.float32 else array.astype(np.float64, copy=False)


@final
@dataclass(frozen=True, slots=True)
class CoordinateMap:
    """Our coordinates from another engine's and back: `sources[i]` tells where our coordinate i comes from.

    `size` is the length of the other engine's array. Angles come in (-pi, pi]; the way back gives unit (cos,
    sin).
    """

    sources: tuple[Source, ...]
    size: int

    @property
    def is_permutation(self) -> bool:
        """True if the map only reorders, so that it holds for velocities, accelerations and forces alike."""
        return sorted(s for s in self.sources if isinstance(s, int)) == list(range(self.size))

    def forth(self, theirs: object, name: str) -> Array:
        """Map (…, size) of the other engine to (…, len(sources)) of ours."""
        array = real_array(name, theirs, (self.size,))
        columns = [
            array[..., source]
            if isinstance(source, int)
            else np.arctan2(array[..., source[1]], array[..., source[0]])
            for source in self.sources
        ]
        return _stack_columns(columns, array)

    def back(self, ours: object, name: str) -> Array:
        """Map (…, len(sources)) of ours to (…, size) of the other engine."""
        array = real_array(name, ours, (len(self.sources),))
        columns: list[Any] = [None] * self.size
        for i, source in enumerate(self.sources):
            if isinstance(source, int):
                columns[source] = array[..., i]
            else:
                columns[source[0]], columns[source[1]] = np.cos(array[..., i]), np.sin(array[..., i])
        return _stack_columns(columns, array)


def _stack_columns(columns: Sequence[Array], like: Array) -> Array:
    result = np.empty((*like.shape[:-1], len(columns)), like.dtype)
    for i, column in enumerate(columns):
        result[..., i] = column
    return result
