"""The elementary functions, over every kind of scalar.

A *scalar* is a Python float or int, a NumPy array (one sample an element), a traced expression or a SymPy
expression. These functions are the only ones that look at which of them it is; everything else is written
with `+ - * /`, comparisons and the functions below. Of several arguments the first that is not a number or
an array of numbers decides. Zero and one should be the literals `0.0` and `1.0`, so that structure folds.
"""

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

__all__ = [
    "Scalar",
    "ScalarFunctions",
    "absolute",
    "acos",
    "asin",
    "atan2",
    "cos",
    "exp",
    "floor",
    "is_one",
    "is_zero",
    "literal",
    "log",
    "logical_and",
    "logical_not",
    "logical_or",
    "maximum",
    "minimum",
    "register",
    "select",
    "sin",
    "sqrt",
    "tan",
]


def sin(x: Scalar) -> Scalar:
    """The sine of x [rad]."""
    return _FLOAT.sin(x) if type(x) is float else _functions(x).sin(x)


def cos(x: Scalar) -> Scalar:
    """The cosine of x [rad]."""
    return _FLOAT.cos(x) if type(x) is float else _functions(x).cos(x)


def tan(x: Scalar) -> Scalar:
    """The tangent of x [rad]."""
    return _FLOAT.tan(x) if type(x) is float else _functions(x).tan(x)


def asin(x: Scalar) -> Scalar:
    """The angle in [-pi/2, pi/2] whose sine is x."""
    return _functions(x).asin(x)


def acos(x: Scalar) -> Scalar:
    """The angle in [0, pi] whose cosine is x."""
    return _functions(x).acos(x)


def atan2(y: Scalar, x: Scalar) -> Scalar:
    """The angle in [-pi, pi] of the point (x, y)."""
    return _functions(y, x).atan2(y, x)


def sqrt(x: Scalar) -> Scalar:
    """The non-negative square root of x; NaN for a negative float."""
    return _functions(x).sqrt(x)


def exp(x: Scalar) -> Scalar:
    """e to the power x; infinity where a float overflows."""
    return _functions(x).exp(x)


def log(x: Scalar) -> Scalar:
    """The natural logarithm of x; -infinity at zero, NaN below it."""
    return _functions(x).log(x)


def absolute(x: Scalar) -> Scalar:
    """The magnitude |x|."""
    return abs(x) if type(x) is float else _functions(x).absolute(x)


def minimum(a: Scalar, b: Scalar) -> Scalar:
    """The lesser of a and b: `select(a < b, a, b)`, so that b is the result where either is NaN."""
    return _functions(a, b).minimum(a, b)


def maximum(a: Scalar, b: Scalar) -> Scalar:
    """The greater of a and b: `select(b < a, a, b)`, so that b is the result where either is NaN."""
    return _functions(a, b).maximum(a, b)


def floor(x: Scalar) -> Scalar:
    """The greatest whole number that does not exceed x, as a float."""
    return _functions(x).floor(x)


def select(condition: Scalar, a: Scalar, b: Scalar) -> Scalar:
    """a where the condition holds, else b. Both branches are computed; the one not taken may be NaN."""
    if condition is True:
        return a
    if condition is False:
        return b
    return _functions(condition, a, b).select(condition, a, b)


def logical_and(a: Scalar, b: Scalar) -> Scalar:
    """True where both conditions hold."""
    return _functions(a, b).logical_and(a, b)


def logical_or(a: Scalar, b: Scalar) -> Scalar:
    """True where at least one condition holds."""
    return _functions(a, b).logical_or(a, b)


def logical_not(a: Scalar) -> Scalar:
    """True where the condition does not hold."""
    return _functions(a).logical_not(a)


def literal(x: Scalar) -> float | None:
    """The number that a scalar is *by structure* (a Python number, a folded constant); None for data.

    Formulas may choose between equal ways to compute a thing by it, never between different results.
    """
    kind = type(x)
    if kind is float or kind is int:
        return float(x)
    functions = _REGISTRY.get(kind) or _find(kind)
    number: float | None = None if functions is None else functions.literal(x)
    return number


def is_zero(x: Scalar) -> bool:
    """Whether the scalar is a structural zero."""
    return literal(x) == 0.0


def is_one(x: Scalar) -> bool:
    """Whether the scalar is a structural one."""
    return literal(x) == 1.0


def register(kind: type, functions: ScalarFunctions) -> None:
    """Enrol a kind of scalar: values of the type and its subclasses are computed by `functions`."""
    _REGISTRY[kind] = functions
    for known in [item for item in _REGISTRY if issubclass(item, kind)]:
        _REGISTRY[known] = functions


_FLOAT: Final = FloatFunctions()
_COMPLEX: Final = ComplexFunctions()
_NUMPY: Final = NumpyFunctions()
_REGISTRY: Final[dict[type, Any]] = {
    float: _FLOAT,
    int: _FLOAT,
    bool: _FLOAT,
    complex: _COMPLEX,
    np.ndarray: _NUMPY,
    np.generic: _NUMPY,
}


def _functions(*values: Scalar) -> Any:
    """The functions of the first symbolic value; else of NumPy arrays, of complex numbers, of floats."""
    numeric: Any = _FLOAT
    for value in values:
        found = _REGISTRY.get(type(value)) or _resolve(type(value))
        if found is _NUMPY or (found is _COMPLEX and numeric is _FLOAT):
            numeric = found
        elif found is not _FLOAT and found is not _COMPLEX:
            return found
    return numeric


def _find(kind: type) -> Any:
    """The functions of a type not met before, through its bases, remembered; None if it has none."""
    sympy = sys.modules.get("sympy")
    if sympy is not None and sympy.Basic not in _REGISTRY:
        _REGISTRY[sympy.Basic] = SympyFunctions(sympy)
    for base in kind.__mro__:
        if base in _REGISTRY:
            _REGISTRY[kind] = _REGISTRY[base]
            return _REGISTRY[kind]
    return None


def _resolve(kind: type) -> Any:
    """The functions of a type not met before; an error if it has none."""
    found = _find(kind)
    if found is not None:
        return found
    raise TracingError(
        f"{kind.__module__}.{kind.__qualname__} is not a scalar; use a float, a NumPy array, "
        "a traced expression or a SymPy expression, or enrol the type with dalembert.scalar.register"
    )
