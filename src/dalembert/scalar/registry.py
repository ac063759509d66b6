"""The registry of scalar types and the functions that compute with them."""

from __future__ import annotations

import sys
from typing import Any, Final

import numpy as np

from dalembert.errors import TracingError
from dalembert.scalar.kinds import (
    ComplexFunctions,
    FloatFunctions,
    NumpyFunctions,
    Scalar,
    ScalarFunctions,
    SympyFunctions,
)

__all__ = ["FLOAT", "find", "functions_of", "register"]


def register(kind: type, functions: ScalarFunctions) -> None:
    """Enrol a kind of scalar: values of the type and its subclasses are computed by `functions`."""
    _REGISTRY[kind] = functions
    for known in [item for item in _REGISTRY if issubclass(item, kind)]:
        _REGISTRY[known] = functions


FLOAT: Final = FloatFunctions()
_COMPLEX: Final = ComplexFunctions()
_NUMPY: Final = NumpyFunctions()
_REGISTRY: Final[dict[type, Any]] = {
    float: FLOAT,
    int: FLOAT,
    bool: FLOAT,
    complex: _COMPLEX,
    np.ndarray: _NUMPY,
    np.generic: _NUMPY,
}


def functions_of(*values: Scalar) -> Any:
    """Return the functions of the first symbolic value;
    else of NumPy arrays, of complex numbers, of floats."""
    numeric: Any = FLOAT
    for value in values:
        found = _REGISTRY.get(type(value)) or _resolve(type(value))
        if found is _NUMPY or (found is _COMPLEX and numeric is FLOAT):
            numeric = found
        elif found is not FLOAT and found is not _COMPLEX:
            return found
    return numeric


def find(kind: type) -> Any:
    """Return the functions of a type, found through its bases and cached; None if it has none."""
    known = _REGISTRY.get(kind)
    if known is not None:
        return known
    sympy = sys.modules.get("sympy")
    if sympy is not None and sympy.Basic not in _REGISTRY:
        _REGISTRY[sympy.Basic] = SympyFunctions(sympy)
    for base in kind.__mro__:
        if base in _REGISTRY:
            _REGISTRY[kind] = _REGISTRY[base]
            return _REGISTRY[kind]
    return None


def _resolve(kind: type) -> Any:
    """Return the functions of a type that is not cached; raise an error if it has none."""
    found = find(kind)
    if found is not None:
        return found
    raise TracingError(
        f"{kind.__module__}.{kind.__qualname__} is not a scalar; use a float, a NumPy array, "
        "a traced expression or a SymPy expression, or enrol the type with dalembert.scalar.register"
    )
