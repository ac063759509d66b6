"""The built-in kinds of scalars, and their elementary functions.

`ScalarFunctions` lists what a kind must offer. A table has the functions of Python's floats, of complex
numbers (for derivatives by a complex step) and of NumPy arrays; SymPy expressions are enrolled when SymPy is
loaded, traced expressions by `dalembert.tracing`.
"""

from __future__ import annotations

import cmath
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
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

Scalars: TypeAlias = Sequence[Scalar]
"""Numbers in a row, such as q `(nq,)`, v, a and tau `(nv,)`."""

Time: TypeAlias = Scalar | None
"""The time [s] that models may depend on, or None."""


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


# The functions of the kinds that need no enrolment, one row each.


def _quiet_float(function: Callable[[float], float]) -> Callable[[Scalar], Scalar]:
    """Return a function of `math` that is NaN where it would raise, and infinite where it overflows."""

    def call(x: Scalar) -> Scalar:
        try:
            return function(x)
        except ValueError:
            return math.nan
        except OverflowError:
            return math.inf

    return call


def _float_log(x: Scalar) -> Scalar:
    if x > 0.0:
        return math.log(x)
    return -math.inf if x == 0.0 else math.nan


def _float_floor(x: Scalar) -> Scalar:
    return float(math.floor(x)) if math.isfinite(x) else float(x)


def _complex_atan2(y: Scalar, x: Scalar) -> Scalar:
    # First order in the imaginary parts, which is all that a complex step looks at.
    angle = math.atan2(y.real, x.real)
    return complex(angle, (x.real * y.imag - y.real * x.imag) / (x.real**2 + y.real**2))


def _quiet_array(function: Any) -> Callable[[Scalar], Scalar]:
    """Return a function of NumPy that is NaN or infinite without a warning."""

    def call(x: Scalar) -> Scalar:
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            return function(x)

    return call


def _where(condition: Scalar, a: Scalar, b: Scalar) -> Scalar:
    """Return np.where(…), as a scalar for scalars."""
    chosen: Any = np.where(condition, a, b)
    return chosen[()]


def _no_literal(x: Scalar) -> None:
    return None


_BUILT_IN: Final[Mapping[str, tuple[Any, Any, Any]]] = {
    # name: (floats and ints, with IEEE results; complex numbers, ordered by the real part; NumPy arrays)
    "sin": (_quiet_float(math.sin), cmath.sin, _quiet_array(np.sin)),
    "cos": (_quiet_float(math.cos), cmath.cos, _quiet_array(np.cos)),
    "tan": (_quiet_float(math.tan), cmath.tan, _quiet_array(np.tan)),
    "asin": (_quiet_float(math.asin), cmath.asin, _quiet_array(np.arcsin)),
    "acos": (_quiet_float(math.acos), cmath.acos, _quiet_array(np.arccos)),
    "atan2": (math.atan2, _complex_atan2, np.arctan2),
    "sqrt": (_quiet_float(math.sqrt), cmath.sqrt, _quiet_array(np.sqrt)),
    "exp": (_quiet_float(math.exp), cmath.exp, _quiet_array(np.exp)),
    "log": (_float_log, cmath.log, _quiet_array(np.log)),
    "absolute": (abs, lambda x: -x if x.real < 0.0 else x, np.abs),
    "minimum": (
        lambda a, b: min(b, a),
        lambda a, b: a if a.real < b.real else b,
        lambda a, b: _where(np.less(a, b), a, b),
    ),
    "maximum": (
        lambda a, b: max(b, a),
        lambda a, b: a if b.real < a.real else b,
        lambda a, b: _where(np.less(b, a), a, b),
    ),
    "floor": (_float_floor, lambda x: complex(math.floor(x.real)), np.floor),
    "select": (lambda c, a, b: a if c else b, lambda c, a, b: a if c else b, _where),
    "logical_and": (lambda a, b: bool(a and b), lambda a, b: bool(a and b), np.logical_and),
    "logical_or": (lambda a, b: bool(a or b), lambda a, b: bool(a or b), np.logical_or),
    "logical_not": (lambda a: not a, lambda a: not a, np.logical_not),
    "literal": (float, _no_literal, _no_literal),
    "lookup": (
        lambda table, index: float(table[int(places(table, float(index)))]),
        lambda table, index: complex(table[int(places(table, index.real))]),
        lambda table, index: table[places(table, index)],
    ),
}

FLOAT, COMPLEX, NUMPY = (
    SimpleNamespace(**{name: row[kind] for name, row in _BUILT_IN.items()}) for kind in range(3)
)


def _sympy_functions(sympy: Any) -> SimpleNamespace:
    """Return the functions of SymPy expressions; `select` is a `Piecewise`."""

    def lookup(table: Table, index: Scalar) -> Scalar:
        pieces = [(float(element), index < k) for k, element in enumerate(table[:-1], 1)]
        return sympy.Piecewise(*pieces, (float(table[-1]), True))

    own = {
        "select": lambda condition, a, b: sympy.Piecewise((a, condition), (b, True)),
        "literal": lambda x: float(x) if x.is_Number else None,
        "lookup": lookup,
    }
    renamed = {"absolute": "Abs", "minimum": "Min", "maximum": "Max"}
    renamed |= {"logical_and": "And", "logical_or": "Or", "logical_not": "Not"}
    same = {name: getattr(sympy, renamed.get(name, name)) for name in _BUILT_IN if name not in own}
    return SimpleNamespace(**own, **same)


# The registry of scalar types and the functions that compute with them.


def register(kind: type, functions: ScalarFunctions) -> None:
    """Enrol a kind of scalar: values of the type and its subclasses are computed by `functions`."""
    _REGISTRY[kind] = functions
    for known in [item for item in _REGISTRY if issubclass(item, kind)]:
        _REGISTRY[known] = functions


_REGISTRY: Final[dict[type, Any]] = {
    float: FLOAT,
    int: FLOAT,
    bool: FLOAT,
    complex: COMPLEX,
    np.ndarray: NUMPY,
    np.generic: NUMPY,
}


def functions_of(*values: Scalar) -> Any:
    """Return the functions of the first symbolic value, else of arrays, complex numbers or floats."""
    numeric: Any = FLOAT
    for value in values:
        found = _REGISTRY.get(type(value)) or _resolve(type(value))
        if found is NUMPY or (found is COMPLEX and numeric is FLOAT):
            numeric = found
        elif found is not FLOAT and found is not COMPLEX:
            return found
    return numeric


def find(kind: type) -> Any:
    """Return the functions of a type, found through its bases and cached; None if it has none."""
    known = _REGISTRY.get(kind)
    if known is not None:
        return known
    sympy = sys.modules.get("sympy")
    if sympy is not None and sympy.Basic not in _REGISTRY:
        _REGISTRY[sympy.Basic] = _sympy_functions(sympy)
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
