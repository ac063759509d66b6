"""The operations of traced expressions: one row each, with value, derivative, text and cost.

`evaluate` *defines* an operation on floats, NumPy arrays and every other registered scalar: the interpreter
runs it, constant folding runs it, and every emitter is tested against it. Results are those of IEEE 754:
division by zero gives infinity or NaN and nothing raises. `constant`, `input` and `load` are leaves and
compute nothing; `lookup` has a table beside its argument and is evaluated by `dalembert.scalar.lookup`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, TypeAlias, final

import numpy as np

from dalembert import scalar
from dalembert.scalar import Scalar


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


def _real(a: Scalar) -> Scalar:
    """Return the value to compare: the real part of a complex number (complex-step derivatives)."""
    return a.real if isinstance(a, complex) else a


Partial: TypeAlias = Callable[..., Scalar]
"""dy/dx_k as a function of y and of all x."""


@final
@dataclass(frozen=True, slots=True)
class Operation:
    """One operation y = evaluate(*x) of `arity` scalars; `boolean` tells that y is a condition.

    `text`: the operator or the function of `dalembert.scalar` that writes it in Python. `partials`: dy/dx_k;
    none where the derivative is zero wherever it exists, or has a form of its own (`differentiate`).
    `choice(*x)` of an operation that returns one of its arguments: the condition, the argument chosen where
    it holds, and the argument chosen elsewhere. `counts`: the kinds of Featherstone 2008 §10.3 that it is
    counted in.
    """

    name: str
    arity: int
    evaluate: Callable[..., Scalar]
    text: str
    counts: tuple[str, ...] = ("other",)
    partials: tuple[Partial, ...] = ()
    choice: Callable[..., tuple[Any, Any, Any]] | None = None
    boolean: bool = False
    commutative: bool = False


_one: Partial = lambda y, *x: 1.0
_minus_one: Partial = lambda y, *x: -1.0

MULTIPLICATION, ADDITION = ("multiplications",), ("additions",)
DIVISION, ROOT, TRIGONOMETRIC = ("multiplications", "divisions"), ("square_roots",), ("trigonometric",)

_ROWS: Final = (
    Operation("add", 2, lambda a, b: a + b, "+", ADDITION, (_one, _one), commutative=True),
    Operation("sub", 2, lambda a, b: a - b, "-", ADDITION, (_one, _minus_one)),
    Operation(
        "mul",
        2,
        lambda a, b: a * b,
        "*",
        MULTIPLICATION,
        (lambda y, a, b: b, lambda y, a, b: a),
        commutative=True,
    ),
    Operation("div", 2, divide, "/", DIVISION),
    Operation("neg", 1, lambda a: -a, "-", (), (_minus_one,)),
    Operation("sqrt", 1, scalar.sqrt, "sqrt", ROOT, (lambda y, x: 0.5 / y,)),
    Operation("sin", 1, scalar.sin, "sin", TRIGONOMETRIC, (lambda y, x: scalar.cos(x),)),
    Operation("cos", 1, scalar.cos, "cos", TRIGONOMETRIC, (lambda y, x: -scalar.sin(x),)),
    Operation("tan", 1, scalar.tan, "tan", TRIGONOMETRIC, (lambda y, x: 1.0 + y * y,)),
    Operation("asin", 1, scalar.asin, "asin", TRIGONOMETRIC, (lambda y, x: 1.0 / scalar.sqrt(1.0 - x * x),)),
    Operation("acos", 1, scalar.acos, "acos", TRIGONOMETRIC, (lambda y, x: -1.0 / scalar.sqrt(1.0 - x * x),)),
    Operation(
        "atan2",
        2,
        scalar.atan2,
        "atan2",
        TRIGONOMETRIC,
        (lambda angle, y, x: x / (x * x + y * y), lambda angle, y, x: -(y / (x * x + y * y))),
    ),
    Operation("exp", 1, scalar.exp, "exp", partials=(lambda y, x: y,)),
    Operation("log", 1, scalar.log, "log", partials=(lambda y, x: 1.0 / x,)),
    Operation("abs", 1, scalar.absolute, "absolute"),
    Operation("min", 2, scalar.minimum, "minimum", choice=lambda a, b: (a < b, a, b)),
    Operation("max", 2, scalar.maximum, "maximum", choice=lambda a, b: (b < a, a, b)),
    Operation("floor", 1, scalar.floor, "floor"),
    Operation("lt", 2, lambda a, b: _real(a) < _real(b), "<", boolean=True),
    Operation("le", 2, lambda a, b: _real(a) <= _real(b), "<=", boolean=True),
    Operation("eq", 2, lambda a, b: _real(a) == _real(b), "==", boolean=True, commutative=True),
    Operation("and", 2, scalar.logical_and, "logical_and", boolean=True, commutative=True),
    Operation("or", 2, scalar.logical_or, "logical_or", boolean=True, commutative=True),
    Operation("not", 1, scalar.logical_not, "logical_not", boolean=True),
    Operation("select", 3, scalar.select, "select", choice=lambda c, a, b: (c, a, b)),
    Operation(
        "fma",
        3,
        fused_multiply_add,
        "fma",
        MULTIPLICATION + ADDITION,
        (lambda y, a, b, c: b, lambda y, a, b, c: a, _one),
    ),
)

OPERATIONS: Final[dict[str, Operation]] = {operation.name: operation for operation in _ROWS}

LEAF_OPS: Final = frozenset({"constant", "input", "load"})
BOOLEAN_OPS: Final = frozenset(operation.name for operation in _ROWS if operation.boolean)
COMMUTATIVE_OPS: Final = frozenset(operation.name for operation in _ROWS if operation.commutative)

CHOICES: Final = frozenset(operation.name for operation in _ROWS if operation.choice is not None)
"""Operations that return one of their arguments."""

CONSTANT_OPS: Final = BOOLEAN_OPS | {"floor", "lookup"}
"""Operations whose derivative is zero wherever it exists."""

FREE_OPS: Final = CHOICES | {"add", "sub", "neg", "abs"}
"""Operations whose partial derivatives are 1 and -1, so that no product is needed."""

WEIGHTS: Final = {"floor": 14, "lookup": 64}
"""Operations that such an operation is compiled to: the lines of LLVM text with 8 lanes."""
