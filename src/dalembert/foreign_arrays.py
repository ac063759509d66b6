"""Arrays of PyTorch and JAX among the arguments of a call: which bridge of `interop` computes with them.

Neither library is imported to find out: a type says by its module where it comes from.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import Any, Final, Protocol

import numpy as np

from dalembert.errors import DtypeError

__all__ = ["Bridge", "bridge_of", "float_type", "is_foreign", "require_numpy"]

BRIDGES: Final = {
    "torch": "dalembert.interop.torch",
    "jax": "dalembert.interop.jax",
    "jaxlib": "dalembert.interop.jax",
}
"""The module that serves the arrays of a library, by the library's name."""

KINDS: Final = {"dalembert.interop.torch": "PyTorch tensor", "dalembert.interop.jax": "JAX array"}

FLOATS: Final = ("float64", "float32")


class Bridge(Protocol):
    """What a module of `interop` gives for the arrays of its library."""

    def call(self, function: Any, values: list[object], out: object, check: str) -> Any:
        """The results of a `CompiledFunction`, as arrays of the library that know their derivatives."""

    def alike(self, array: np.ndarray[Any, Any], beside: Any) -> Any:
        """A constant as an array of the library, of the float type of the array beside it."""


def is_foreign(value: object) -> bool:
    """Whether a value is an array of one of these libraries."""
    return _home(value) is not None


def require_numpy(name: str, value: object) -> None:
    """Refuse a foreign array where NumPy computes, through which no gradient would pass."""
    home = _home(value)
    if home is not None:
        raise DtypeError(
            f"{name} is a {KINDS[home]}, but this function computes in NumPy, which knows no gradients; "
            "pass a NumPy array"
        )


def bridge_of(values: Iterable[object]) -> Bridge | None:
    """The bridge for the first foreign array; None where there is none."""
    for value in values:
        home = _home(value)
        if home is not None:
            return importlib.import_module(home)
    return None


def float_type(value: object) -> str | None:
    """The float type of a foreign array, if it is one that kernels are compiled for."""
    name = str(getattr(value, "dtype", "")).removeprefix("torch.")
    return name if name in FLOATS and is_foreign(value) else None


def _home(value: object) -> str | None:
    if type(value) is np.ndarray:
        return None
    for kind in type(value).__mro__:
        found = BRIDGES.get(kind.__module__.partition(".")[0])
        if found is not None:
            return found
    return None
