"""The operations of a traced expression: for each its arity, its kind of result, and what it computes.

`evaluate` *defines* the operation on floats, NumPy arrays and every other registered scalar: the
interpreter runs it, constant folding runs it, and every emitter is tested against it. Results are those of
IEEE 754: division by zero gives infinity or NaN and nothing raises. `constant`, `input` and `load` are
leaves and compute nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from dalembert import scalar
from dalembert.scalar import Scalar

__all__ = [
    "BOOLEAN_OPS",
    "COMMUTATIVE_OPS",
    "LEAF_OPS",
    "OPERATIONS",
    "Operation",
    "divide",
    "fused_multiply_add",
]


def divide(a: Scalar, b: Scalar) -> Scalar:
    """Return a / b, where a float divided by zero is infinity, or NaN for 0/0."""
    if isinstance(a, np.ndarray | np.generic) or isinstance(b, np.ndarray | np.generic):
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            return np.true_divide(a, b)
    try:
        return a / b
    except ZeroDivisionError:
        if a == 0.0 or a != a:
            return math.nan
        return math.copysign(math.inf, a.real) * math.copysign(1.0, b.real)


def fused_multiply_add(a: Scalar, b: Scalar, c: Scalar) -> Scalar:
    """Return a b + c, rounded once."""
    if any(isinstance(item, np.ndarray) for item in (a, b, c)):
        return np.vectorize(_fused_float, otypes=[float])(a, b, c)
    if all(isinstance(item, int | float) for item in (a, b, c)):
        return _fused_float(a, b, c)
    return a * b + c


def _fused_float(a: float, b: float, c: float) -> float:
    plain = float(a * b + c)
    if not (math.isfinite(a) and math.isfinite(b) and math.isfinite(c)):
        return plain
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        return plain if a * b == -c else 0.0
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def _comparable(a: Scalar) -> Scalar:
    """Return the value to compare: the real part of a complex number (complex-step derivatives)."""
    return a.real if isinstance(a, complex) else a


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation: `evaluate` takes `arity` scalars; `boolean` tells that the result is a condition."""

    name: str
    arity: int
    evaluate: Callable[..., Scalar]
    boolean: bool = False
    commutative: bool = False


LEAF_OPS: Final = frozenset({"constant", "input", "load"})

OPERATIONS: Final[dict[str, Operation]] = {
    operation.name: operation
    for operation in (
        Operation("add", 2, lambda a, b: a + b, commutative=True),
        Operation("sub", 2, lambda a, b: a - b),
        Operation("mul", 2, lambda a, b: a * b, commutative=True),
        Operation("div", 2, divide),
        Operation("neg", 1, lambda a: -a),
        Operation("sqrt", 1, scalar.sqrt),
        Operation("sin", 1, scalar.sin),
        Operation("cos", 1, scalar.cos),
        Operation("tan", 1, scalar.tan),
        Operation("asin", 1, scalar.asin),
        Operation("acos", 1, scalar.acos),
        Operation("atan2", 2, scalar.atan2),
        Operation("exp", 1, scalar.exp),
        Operation("log", 1, scalar.log),
        Operation("abs", 1, scalar.absolute),
        Operation("min", 2, scalar.minimum),
        Operation("max", 2, scalar.maximum),
        Operation("floor", 1, scalar.floor),
        Operation("lt", 2, lambda a, b: _comparable(a) < _comparable(b), boolean=True),
        Operation("le", 2, lambda a, b: _comparable(a) <= _comparable(b), boolean=True),
        Operation("eq", 2, lambda a, b: _comparable(a) == _comparable(b), boolean=True, commutative=True),
        Operation("and", 2, scalar.logical_and, boolean=True, commutative=True),
        Operation("or", 2, scalar.logical_or, boolean=True, commutative=True),
        Operation("not", 1, scalar.logical_not, boolean=True),
        Operation("select", 3, scalar.select),
        Operation("fma", 3, fused_multiply_add),
    )
}

BOOLEAN_OPS: Final = frozenset(name for name, operation in OPERATIONS.items() if operation.boolean)
COMMUTATIVE_OPS: Final = frozenset(name for name, operation in OPERATIONS.items() if operation.commutative)
