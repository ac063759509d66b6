"""Checks of the arguments of bundled models."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real

import numpy as np

from dalembert.errors import ArgumentError

__all__ = ["require_numbers", "require_pairs", "require_whole_numbers"]


def require_numbers(function: str, **given: object) -> None:
    """Raise an error that names the argument if a value is not a finite real number."""
    for name, value in given.items():
        if not _is_number(value):
            raise ArgumentError(f"{function}: {name} is {_short_repr(value)}; give a finite number")


def require_pairs(function: str, **given: object) -> None:
    """Raise an error that names the argument if a value is not a pair of finite real numbers."""
    for name, value in given.items():
        pair = list(value) if isinstance(value, Sequence | np.ndarray) and np.ndim(value) == 1 else []
        if len(pair) != 2 or not all(_is_number(x) for x in pair):
            raise ArgumentError(f"{function}: {name} is {_short_repr(value)}; give two finite numbers")


def require_whole_numbers(function: str, **given: object) -> None:
    """Raise an error that names the argument if a value is not an integer."""
    for name, value in given.items():
        if isinstance(value, bool) or not isinstance(value, Integral):
            raise ArgumentError(f"{function}: {name} is {_short_repr(value)}; give a whole number")


def _is_number(value: object) -> bool:
    try:
        return isinstance(value, Real) and bool(np.isfinite(float(value)))
    except OverflowError:  # whole numbers have no bound
        return False


def _short_repr(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
