"""A scalar that counts: multiplications and additions are tallied, literal zeros, ones and signs are free.

It carries a float besides, so that a count can never come from a formula that is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dalembert.spatial import Value, leaves, rebuild


@dataclass
class Tally:
    """Operations since the last reset."""

    m: int = 0
    a: int = 0

    def reset(self) -> None:
        self.m = self.a = 0


class Counted:
    """A number whose arithmetic is tallied."""

    __array_ufunc__ = None

    def __init__(self, value: float, tally: Tally) -> None:
        self.value = value
        self.tally = tally

    def _other(self, other: Any) -> float:
        return other.value if isinstance(other, Counted) else float(other)

    def __add__(self, other: Any) -> Counted:
        if not isinstance(other, Counted) and other == 0.0:
            return self
        self.tally.a += 1
        return Counted(self.value + self._other(other), self.tally)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Counted:
        return self + -other

    def __rsub__(self, other: Any) -> Counted:
        return -self + other

    def __neg__(self) -> Counted:
        return Counted(-self.value, self.tally)

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, Value):
            return NotImplemented
        if not isinstance(other, Counted) and other in (0.0, 1.0, -1.0):
            return 0.0 if other == 0.0 else self if other == 1.0 else -self
        self.tally.m += 1
        return Counted(self.value * self._other(other), self.tally)

    __rmul__ = __mul__


def count(operation: Callable[..., Any], *values: Any) -> tuple[int, int]:
    """(m, a) of operation(*values), with the scalars of `values` as data; checks the result.

    A literal zero in `values` stays a literal.
    """
    tally = Tally()
    counted = [
        rebuild(value, [item if item == 0.0 else Counted(float(item), tally) for item in leaves(value)])
        for value in values
    ]
    result = operation(*counted)
    spent = tally.m, tally.a
    expected = operation(*values)
    for got, want in zip(leaves(result), leaves(expected), strict=True):
        np.testing.assert_allclose(
            float(got.value if isinstance(got, Counted) else got), want, rtol=1e-11, atol=1e-11
        )
    return spent
