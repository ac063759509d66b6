"""What the functions of bundled models ask of their arguments."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real

import numpy as np

from dalembert.errors import ArgumentError

__all__ = ["require_numbers", "require_pairs", "require_whole_numbers"]


def require_numbers(function: str, **given: object) -> None:
    """Refuse what is not a finite real number, by the name of the argument."""
    for name, value in given.items():
        if not _is_number(value):
            raise ArgumentError(f"{function}: {name} is {_shown(value)}; give a finite number")


def require_pairs(function: str, **given: object) -> None:
    """Refuse what is not two finite real numbers, by the name of the argument."""
    for name, value in given.items():
        pair = list(value) if isinstance(value, Sequence | np.ndarray) and np.ndim(value) == 1 else []
        if len(pair) != 2 or not all(_is_number(x) for x in pair):
            raise ArgumentError(f"{function}: {name} is {_shown(value)}; give two finite numbers")


def require_whole_numbers(function: str, **given: object) -> None:
    """Refuse what is not a whole number, by the name of the argument."""
    for name, value in given.items():
        if isinstance(value, bool) or not isinstance(value, Integral):
            raise ArgumentError(f"{function}: {name} is {_shown(value)}; give a whole number")


def _is_number(value: object) -> bool:
    try:
        return isinstance(value, Real) and bool(np.isfinite(float(value)))
    except OverflowError:  # whole numbers have no bound
        return False


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
