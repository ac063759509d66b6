"""The interface to arrays on a GPU of any library: their memory, their stream, and new arrays of the same
kind."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, final

import numpy.typing as npt

__all__ = ["Arithmetic", "ArrayKind", "ComputingKind", "View", "contiguous_strides"]


@final
@dataclass(frozen=True, slots=True)
class View:
    """Memory of an array: address, shape, bytes between elements along each axis; `keep` keeps it alive."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    keep: object = None

    def rows(self, inner: int) -> tuple[int, int] | None:
        """Return (address, bytes between rows) with the last `inner` axes as a row, or None if strides
        differ.

        An array without batch axes, or with axes of length one alone, is one row for all: 0 bytes apart.
        """
        size = {"float64": 8, "float32": 4}[self.dtype]
        split, step = len(self.shape) - inner, size
        if 0 in self.shape:  # strides of nothing may be anything
            return self.address, size * math.prod(self.shape[split:])
        for length, stride in reversed(list(zip(self.shape[split:], self.strides[split:], strict=True))):
            if length != 1 and stride != step:
                return None
            step *= length
        batch = [(n, s) for n, s in zip(self.shape[:split], self.strides[:split], strict=True) if n != 1]
        for (_, outer), (length, stride) in pairwise(batch):
            if outer != length * stride:
                return None
        row = batch[-1][1] if batch else 0
        return None if row < 0 or row % size else (self.address, row)


def contiguous_strides(shape: Sequence[int], size: int) -> tuple[int, ...]:
    """Return the bytes between elements of a row-major array along each axis."""
    strides = [size] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * max(shape[axis + 1], 1)
    return tuple(strides)


class ArrayKind(ABC):
    """Arrays of one library."""

    library: str
    """Its name, where it computes with its arrays, else empty."""

    remedy: str
    """How to make an array row-major: a suffix or a call, with {name} for the array."""

    @abstractmethod
    def ordinal(self, array: Any) -> int:
        """Return the number of the GPU on which an array is."""

    @abstractmethod
    def stream(self, ordinal: int, array: Any) -> int:
        """Return the stream on which the caller works."""

    @abstractmethod
    def view(self, name: str, array: Any, stream: int) -> View:
        """Return the memory of an array."""

    @abstractmethod
    def empty(self, shape: tuple[int, ...], dtype: str, ordinal: int, stream: int) -> Any:
        """Return a new row-major array, to be written on a stream."""

    @abstractmethod
    def spread(self, array: Any, shape: tuple[int, ...]) -> Any:
        """Return a row-major copy of an array broadcast to a shape."""


class Arithmetic(ABC):
    """The array operations of a library that rollouts need beside their launch."""

    def is_watched(self, array: Any) -> bool:
        """Return whether the library records operations on an array for gradients."""
        return False

    @abstractmethod
    def beside(self, values: npt.NDArray[Any], array: Any) -> Any:
        """Copy numbers of the host to a new array on the device of `array`."""

    @abstractmethod
    def expand(self, array: Any, shape: tuple[int, ...]) -> Any:
        """Return an array broadcast to a shape, as a view if the library can."""

    @abstractmethod
    def cast(self, array: Any, dtype: str) -> Any:
        """Return the array converted to a float type."""

    @abstractmethod
    def where(self, condition: Any, first: Any, second: float) -> Any:
        """Return an array with the values of `first` where a condition holds, and `second` elsewhere."""

    @abstractmethod
    def to_host(self, array: Any) -> npt.NDArray[Any]:
        """Copy an array to the host and wait for it."""


class ComputingKind(ArrayKind, Arithmetic):
    """Arrays of a library that computes with them."""

    @abstractmethod
    def holds(self, value: object) -> bool:
        """Return whether a value is an array of this library on a GPU, and not of a subclass."""

    @abstractmethod
    def layout(self, array: Any) -> Hashable:
        """Return all properties of an array on a GPU but its numbers and its address."""

    @abstractmethod
    def address(self, array: Any) -> int:
        """Return the address of the numbers of an array."""

    @abstractmethod
    def assign(self, target: Any, values: Any) -> None:
        """Write values, of the host or of the device, into an array."""

    def beside(self, values: npt.NDArray[Any], array: Any) -> Any:
        """Copy numbers of the host to a new array on the device of `array`."""
        ordinal = self.ordinal(array)
        made = self.empty(values.shape, values.dtype.name, ordinal, self.stream(ordinal, array))
        self.assign(made, values)
        return made
