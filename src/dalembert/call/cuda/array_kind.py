"""What is asked of arrays on a GPU, whoever made them: where they are, on which stream, and new ones of the
same kind."""

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
        """(address, bytes between rows) with the last `inner` axes as a row; None where that is not so.

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
    """Bytes between elements of a row-major array."""
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
        """The number of the GPU on which an array is."""

    @abstractmethod
    def stream(self, ordinal: int, array: Any) -> int:
        """The stream on which the caller works."""

    @abstractmethod
    def view(self, name: str, array: Any, stream: int) -> View:
        """Where an array is."""

    @abstractmethod
    def empty(self, shape: tuple[int, ...], dtype: str, ordinal: int, stream: int) -> Any:
        """A new array, row-major, to be written on a stream."""

    @abstractmethod
    def spread(self, array: Any, shape: tuple[int, ...]) -> Any:
        """A row-major copy with the values of an array repeated over a shape."""


class Arithmetic(ABC):
    """What rollouts compute with arrays of a library beside their launch."""

    def is_watched(self, array: Any) -> bool:
        """Whether the library records what is computed with an array, for gradients."""
        return False

    @abstractmethod
    def beside(self, values: npt.NDArray[Any], array: Any) -> Any:
        """Numbers of the host as an array where another one is."""

    @abstractmethod
    def expanded(self, array: Any, shape: tuple[int, ...]) -> Any:
        """The values of an array repeated over a shape, in the same memory where the library can."""

    @abstractmethod
    def cast(self, array: Any, dtype: str) -> Any:
        """An array of a float type with the same values."""

    @abstractmethod
    def where(self, condition: Any, first: Any, second: float) -> Any:
        """An array with the values of another where a condition holds, a number elsewhere."""

    @abstractmethod
    def fetched(self, array: Any) -> npt.NDArray[Any]:
        """A copy on the host; waits for it."""


class ComputingKind(ArrayKind, Arithmetic):
    """Arrays of a library that computes with them."""

    @abstractmethod
    def holds(self, value: object) -> bool:
        """Whether a value is such an array, on a GPU and of no class of its own."""

    @abstractmethod
    def layout(self, array: Any) -> Hashable:
        """Everything about an array on a GPU but its numbers and its address."""

    @abstractmethod
    def address(self, array: Any) -> int:
        """Where the numbers of an array are."""

    @abstractmethod
    def assign(self, target: Any, values: Any) -> None:
        """Write values, of the host or of the device, into an array."""

    def beside(self, values: npt.NDArray[Any], array: Any) -> Any:
        """Numbers of the host as an array where another one is."""
        ordinal = self.ordinal(array)
        made = self.empty(values.shape, values.dtype.name, ordinal, self.stream(ordinal, array))
        self.assign(made, values)
        return made
