"""The elementary functions, over every kind of scalar.

A *scalar* is a Python float or int, a NumPy array (one sample an element), a traced expression or a SymPy
expression. These functions are the only ones that look at which of them it is; everything else is written
with `+ - * /`, comparisons and the functions below. Of several arguments the first that is not a number or
an array of numbers decides. Zero and one should be the literals `0.0` and `1.0`, so that structure folds.
"""

from __future__ import annotations

from collections.abc import Sequence

from dalembert.scalar.for_each import loop
from dalembert.scalar.kinds import FLOAT as _FLOAT
from dalembert.scalar.kinds import Scalar, ScalarFunctions, Scalars, Table, Time, as_table, register
from dalembert.scalar.kinds import find as _find
from dalembert.scalar.kinds import functions_of as _functions
from dalembert.scalar.row_sets import Family, Linked, Named, Row, Rows, Source, Write, rows

__all__ = [
    "Family",
    "Linked",
    "Named",
    "Row",
    "Rows",
    "Scalar",
    "ScalarFunctions",
    "Scalars",
    "Source",
    "Time",
    "Write",
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
    "lookup",
    "loop",
    "maximum",
    "minimum",
    "register",
    "rows",
    "select",
    "sin",
    "sqrt",
    "tan",
]


def sin(x: Scalar) -> Scalar:
    """Return the sine of x [rad]."""
    return _FLOAT.sin(x) if type(x) is float else _functions(x).sin(x)


def cos(x: Scalar) -> Scalar:
    """Return the cosine of x [rad]."""
    return _FLOAT.cos(x) if type(x) is float else _functions(x).cos(x)


def tan(x: Scalar) -> Scalar:
    """Return the tangent of x [rad]."""
    return _FLOAT.tan(x) if type(x) is float else _functions(x).tan(x)


def asin(x: Scalar) -> Scalar:
    """Return the angle in [-pi/2, pi/2] whose sine is x."""
    return _functions(x).asin(x)


def acos(x: Scalar) -> Scalar:
    """Return the angle in [0, pi] whose cosine is x."""
    return _functions(x).acos(x)


def atan2(y: Scalar, x: Scalar) -> Scalar:
    """Return the angle in [-pi, pi] of the point (x, y)."""
    return _functions(y, x).atan2(y, x)


def sqrt(x: Scalar) -> Scalar:
    """Return the non-negative square root of x; NaN for a negative float."""
    return _functions(x).sqrt(x)


def exp(x: Scalar) -> Scalar:
    """Return e to the power x; infinity where a float overflows."""
    return _functions(x).exp(x)


def log(x: Scalar) -> Scalar:
    """Return the natural logarithm of x; -infinity at zero, NaN below it."""
    return _functions(x).log(x)


def absolute(x: Scalar) -> Scalar:
    """Return the magnitude |x|."""
    return abs(x) if type(x) is float else _functions(x).absolute(x)


def minimum(a: Scalar, b: Scalar) -> Scalar:
    """Return the lesser of a and b: `select(a < b, a, b)`, so that b is the result where either is NaN."""
    return _functions(a, b).minimum(a, b)


def maximum(a: Scalar, b: Scalar) -> Scalar:
    """Return the greater of a and b: `select(b < a, a, b)`, so that b is the result where either is NaN."""
    return _functions(a, b).maximum(a, b)


def floor(x: Scalar) -> Scalar:
    """Return the greatest whole number that does not exceed x, as a float."""
    return _functions(x).floor(x)


def select(condition: Scalar, a: Scalar, b: Scalar) -> Scalar:
    """Return a where the condition holds, else b.

    Both branches are computed; the one not taken may be NaN.
    """
    if condition is True:
        return a
    if condition is False:
        return b
    return _functions(condition, a, b).select(condition, a, b)


def logical_and(a: Scalar, b: Scalar) -> Scalar:
    """Return true where both conditions hold."""
    return _functions(a, b).logical_and(a, b)


def logical_or(a: Scalar, b: Scalar) -> Scalar:
    """Return true where at least one condition holds."""
    return _functions(a, b).logical_or(a, b)


def logical_not(a: Scalar) -> Scalar:
    """Return true where the condition does not hold."""
    return _functions(a).logical_not(a)


def lookup(table: Sequence[float] | Table, index: Scalar) -> Scalar:
    """Return element floor(index) of a table of constants, the same for all samples.

    The index is clamped to the table; NaN gives the first element. The derivative with respect to the
    index is zero.

    >>> from dalembert import scalar
    >>> print([scalar.lookup([1.0, 4.0, 9.0], x) for x in (-3.0, 1.7, 2.0, 50.0)])
    [1.0, 4.0, 9.0, 9.0]
    """
    return _functions(index).lookup(as_table(table), index)


def literal(x: Scalar) -> float | None:
    """Return the number that a scalar is *by structure* (a Python number, a folded constant); None for data.

    Formulas may choose between equal ways to compute a thing by it, never between different results.
    """
    kind = type(x)
    if kind is float or kind is int:
        return float(x)
    functions = _find(kind)
    number: float | None = None if functions is None else functions.literal(x)
    return number


def is_zero(x: Scalar) -> bool:
    """Return whether the scalar is a structural zero."""
    return literal(x) == 0.0


def is_one(x: Scalar) -> bool:
    """Return whether the scalar is a structural one."""
    return literal(x) == 1.0
