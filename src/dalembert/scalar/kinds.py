"""The built-in kinds of scalars, and their elementary functions.

`ScalarFunctions` lists what a kind must offer. Python's floats, complex numbers, NumPy arrays and SymPy
expressions have a class each; traced expressions are enrolled by `dalembert.tracing`.
"""

from __future__ import annotations

import cmath
import math
import sys
from collections.abc import Sequence
from typing import Any, Final, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from dalembert.errors import DtypeError, ShapeError, TracingError

# Tables of constants, and the element that an index selects.

Table: TypeAlias = npt.NDArray[np.float64]

MAX_TABLE_LENGTH: Final = 2**31 - 1
"""Most elements of a table: a signed 32-bit index addresses them."""


def as_table(table: Sequence[float] | Table) -> Table:
    """Return the numbers as one axis of floats."""
    try:
        numbers = np.asarray(table, dtype=np.float64)
    except (TypeError, ValueError):
        raise DtypeError("a table is looked up in constants: give floats, none of them traced") from None
    if numbers.ndim != 1 or not 1 <= len(numbers) <= MAX_TABLE_LENGTH:
        raise ShapeError(f"a table has one axis and at least one element, got shape {numbers.shape}")
    return numbers


def places(table: Table, index: Any) -> Any:
    """Return floor(index) within the table; 0 for NaN."""
    last = len(table) - 1
    with np.errstate(invalid="ignore"):
        return np.where(index > 0.0, np.minimum(np.floor(index), last), 0.0).astype(np.int64)


Scalar: TypeAlias = Any
"""A float, NumPy array, traced expression or SymPy expression."""


class ScalarFunctions(Protocol):
    """The functions that each kind of scalar provides; `dalembert.scalar` documents them."""

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
    def lookup(self, table: Table, index: Scalar) -> Scalar: ...


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

    def lookup(self, table: Table, index: Scalar) -> Scalar:
        return float(table[int(places(table, float(index)))])


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

    def lookup(self, table: Table, index: Scalar) -> Scalar:
        return complex(table[int(places(table, index.real))])


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

    def lookup(self, table: Table, index: Scalar) -> Scalar:
        return table[places(table, index)]


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

    def lookup(self, table: Table, index: Scalar) -> Scalar:
        pieces = [(float(element), index < k) for k, element in enumerate(table[:-1], 1)]
        return self._piecewise(*pieces, (float(table[-1]), True))


def _where(condition: Scalar, a: Scalar, b: Scalar) -> Scalar:
    """Return np.where(…), as a scalar for scalars."""
    chosen: Any = np.where(condition, a, b)
    return chosen[()]


# The registry of scalar types and the functions that compute with them.


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
