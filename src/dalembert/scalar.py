"""The elementary functions, over every kind of scalar.

A *scalar* is a Python float or int, a NumPy array (one sample an element), a traced expression or a SymPy
expression. These functions are the only ones that look at which of them it is; everything else is written
with `+ - * /`, comparisons and the functions below. Of several arguments the first that is not a number or
an array of numbers decides. Zero and one should be the literals `0.0` and `1.0`, so that structure folds.
"""

from __future__ import annotations

import cmath
import math
import sys
from typing import Any, Final, Protocol, TypeAlias

import numpy as np

from dalembert.errors import TracingError

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

Scalar: TypeAlias = Any
"""A float, NumPy array, traced expression or SymPy expression."""


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


class ScalarFunctions(Protocol):
    """What one kind of scalar must offer; see the functions of this module for their meaning."""

    def sin(self, x: Scalar) -> Scalar: ...
    def cos(self, x: Scalar) -> Scalar: ...
    def tan(self, x: Scalar) -> Scalar: ...
    def asin(self, x: Scalar) -> Scalar: ...
    def acos(self, x: Scalar) -> Scalar: ...
    def atan2(self, y: Scalar, x: Scalar) -> Scalar: ...
    def sqrt(self, x: Scalar) -> Scalar: ...
    def exp(self, x: Scalar) -> Scalar: ...
    def log(self, x: Scalar) -> Scalar: ...
    def absolute(self, x: Scalar) -> Scalar: ...
    def minimum(self, a: Scalar, b: Scalar) -> Scalar: ...
    def maximum(self, a: Scalar, b: Scalar) -> Scalar: ...
    def floor(self, x: Scalar) -> Scalar: ...
    def select(self, condition: Scalar, a: Scalar, b: Scalar) -> Scalar: ...
    def logical_and(self, a: Scalar, b: Scalar) -> Scalar: ...
    def logical_or(self, a: Scalar, b: Scalar) -> Scalar: ...
    def logical_not(self, a: Scalar) -> Scalar: ...
    def literal(self, x: Scalar) -> float | None: ...


class FloatFunctions:
    """Python floats and ints, with IEEE results (NaN, infinity) where `math` would raise."""

    def sin(self, x: Scalar) -> Scalar:
        return math.sin(x) if math.isfinite(x) else math.nan

    def cos(self, x: Scalar) -> Scalar:
        return math.cos(x) if math.isfinite(x) else math.nan

    def tan(self, x: Scalar) -> Scalar:
        return math.tan(x) if math.isfinite(x) else math.nan

    def asin(self, x: Scalar) -> Scalar:
        return math.asin(x) if -1.0 <= x <= 1.0 else math.nan

    def acos(self, x: Scalar) -> Scalar:
        return math.acos(x) if -1.0 <= x <= 1.0 else math.nan

    def atan2(self, y: Scalar, x: Scalar) -> Scalar:
        return math.atan2(y, x)

    def sqrt(self, x: Scalar) -> Scalar:
        return math.sqrt(x) if x >= 0.0 else math.nan

    def exp(self, x: Scalar) -> Scalar:
        try:
            return math.exp(x)
        except OverflowError:
            return math.inf

    def log(self, x: Scalar) -> Scalar:
        if x > 0.0:
            return math.log(x)
        return -math.inf if x == 0.0 else math.nan

    def absolute(self, x: Scalar) -> Scalar:
        return abs(x)

    def minimum(self, a: Scalar, b: Scalar) -> Scalar:
        return min(b, a)

    def maximum(self, a: Scalar, b: Scalar) -> Scalar:
        return max(b, a)

    def floor(self, x: Scalar) -> Scalar:
        return float(math.floor(x)) if math.isfinite(x) else float(x)

    def select(self, condition: Scalar, a: Scalar, b: Scalar) -> Scalar:
        return a if condition else b

    def logical_and(self, a: Scalar, b: Scalar) -> Scalar:
        return bool(a and b)

    def logical_or(self, a: Scalar, b: Scalar) -> Scalar:
        return bool(a or b)

    def logical_not(self, a: Scalar) -> Scalar:
        return not a

    def literal(self, x: Scalar) -> float | None:
        return float(x)


class ComplexFunctions(FloatFunctions):
    """Complex numbers, for derivatives by a complex step: analytic functions, ordered by the real part."""

    def sin(self, x: Scalar) -> Scalar:
        return cmath.sin(x)

    def cos(self, x: Scalar) -> Scalar:
        return cmath.cos(x)

    def tan(self, x: Scalar) -> Scalar:
        return cmath.tan(x)

    def asin(self, x: Scalar) -> Scalar:
        return cmath.asin(x)

    def acos(self, x: Scalar) -> Scalar:
        return cmath.acos(x)

    def atan2(self, y: Scalar, x: Scalar) -> Scalar:
        # First order in the imaginary parts, which is all that a complex step looks at.
        angle = math.atan2(y.real, x.real)
        return complex(angle, (x.real * y.imag - y.real * x.imag) / (x.real**2 + y.real**2))

    def sqrt(self, x: Scalar) -> Scalar:
        return cmath.sqrt(x)

    def exp(self, x: Scalar) -> Scalar:
        return cmath.exp(x)

    def log(self, x: Scalar) -> Scalar:
        return cmath.log(x)

    def absolute(self, x: Scalar) -> Scalar:
        return -x if x.real < 0.0 else x

    def minimum(self, a: Scalar, b: Scalar) -> Scalar:
        return a if a.real < b.real else b

    def maximum(self, a: Scalar, b: Scalar) -> Scalar:
        return a if b.real < a.real else b

    def floor(self, x: Scalar) -> Scalar:
        return complex(math.floor(x.real))

    def literal(self, x: Scalar) -> float | None:
        return None


class NumpyFunctions:
    """NumPy arrays, element by element; invalid arguments give NaN without a warning."""

    def sin(self, x: Scalar) -> Scalar:
        with np.errstate(invalid="ignore"):
            return np.sin(x)

    def cos(self, x: Scalar) -> Scalar:
        with np.errstate(invalid="ignore"):
            return np.cos(x)

    def tan(self, x: Scalar) -> Scalar:
        with np.errstate(invalid="ignore"):
            return np.tan(x)

    def asin(self, x: Scalar) -> Scalar:
        with np.errstate(invalid="ignore"):
            return np.arcsin(x)

    def acos(self, x: Scalar) -> Scalar:
        with np.errstate(invalid="ignore"):
            return np.arccos(x)

    def atan2(self, y: Scalar, x: Scalar) -> Scalar:
        return np.arctan2(y, x)

    def sqrt(self, x: Scalar) -> Scalar:
        with np.errstate(invalid="ignore"):
            return np.sqrt(x)

    def exp(self, x: Scalar) -> Scalar:
        with np.errstate(over="ignore"):
            return np.exp(x)

    def log(self, x: Scalar) -> Scalar:
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.log(x)

    def absolute(self, x: Scalar) -> Scalar:
        return np.abs(x)

    def minimum(self, a: Scalar, b: Scalar) -> Scalar:
        return _where(np.less(a, b), a, b)

    def maximum(self, a: Scalar, b: Scalar) -> Scalar:
        return _where(np.less(b, a), a, b)

    def floor(self, x: Scalar) -> Scalar:
        return np.floor(x)

    def select(self, condition: Scalar, a: Scalar, b: Scalar) -> Scalar:
        return _where(condition, a, b)

    def logical_and(self, a: Scalar, b: Scalar) -> Scalar:
        return np.logical_and(a, b)

    def logical_or(self, a: Scalar, b: Scalar) -> Scalar:
        return np.logical_or(a, b)

    def logical_not(self, a: Scalar) -> Scalar:
        return np.logical_not(a)

    def literal(self, x: Scalar) -> float | None:
        return None


class SympyFunctions:
    """SymPy expressions; `select` is a `Piecewise`."""

    def __init__(self, sympy: Any) -> None:
        self.sin, self.cos, self.tan = sympy.sin, sympy.cos, sympy.tan
        self.asin, self.acos, self.atan2 = sympy.asin, sympy.acos, sympy.atan2
        self.sqrt, self.exp, self.log = sympy.sqrt, sympy.exp, sympy.log
        self.absolute, self.minimum, self.maximum = sympy.Abs, sympy.Min, sympy.Max
        self.floor = sympy.floor
        self.logical_and, self.logical_or, self.logical_not = sympy.And, sympy.Or, sympy.Not
        self._piecewise = sympy.Piecewise

    def select(self, condition: Scalar, a: Scalar, b: Scalar) -> Scalar:
        return self._piecewise((a, condition), (b, True))

    def literal(self, x: Scalar) -> float | None:
        return float(x) if x.is_Number else None


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


def _where(condition: Scalar, a: Scalar, b: Scalar) -> Scalar:
    """np.where, whose result for scalars is a scalar."""
    chosen: Any = np.where(condition, a, b)
    return chosen[()]


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
