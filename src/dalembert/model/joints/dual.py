"""Dual numbers: a value and its derivative along one direction, over any kind of scalar.

(a + b e)(c + d e) = a c + (a d + b c) e with e² = 0, so that f(a + b e) = f(a) + f'(a) b e: every function
written on generic scalars yields its exact directional derivative. Parts may be floats, arrays, traced or
symbolic expressions, or dual numbers of a lower level, which gives second derivatives. A level says which
derivative a part belongs to; of two levels the lower one counts as a constant of the higher.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, final

from dalembert import scalar
from dalembert.errors import TracingError
from dalembert.scalar import Scalar
from dalembert.scalar.kinds import Table
from dalembert.spatial.value import leaves, rebuild

Result = TypeVar("Result")


def directional_derivative(
    function: Callable[[list[Scalar]], Result],
    point: Sequence[Scalar],
    direction: Sequence[Scalar],
    constants: Sequence[Scalar] = (),
) -> tuple[Result, Result]:
    """Return f(x) and d/dh f(x + h dx) at h = 0; f returns scalars, spatial values or nestings of them.

    `constants`: what else f computes with; where these may be dual numbers themselves, they must be named,
    so that their rates are not taken for those along dx.
    """
    level = 1 + max((x.level for x in (*point, *direction, *constants) if isinstance(x, Dual)), default=0)
    result = function([Dual(x, dx, level) for x, dx in zip(point, direction)])
    parts = [_parts(leaf, level) for leaf in leaves(result)]
    return (
        rebuild(result, [value for value, _ in parts]),
        rebuild(result, [rate for _, rate in parts]),
    )


@final
class Condition:
    """The outcome of a comparison of dual numbers, which has no derivative."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __bool__(self) -> bool:
        return bool(self.value)


@final
class Dual:
    """value + rate e of one level."""

    __slots__ = ("level", "rate", "value")

    __array_ufunc__ = None  # An array must leave its products with a dual number to the dual number.
    _op_priority = 1000.0  # So must a SymPy expression.

    def __init__(self, value: Scalar, rate: Scalar, level: int) -> None:
        self.value = value
        self.rate = rate
        self.level = level

    def __add__(self, other: Scalar) -> Dual:
        (a, b), (c, d), level = _common_level(self, other)
        return Dual(a + c, b + d, level)

    __radd__ = __add__

    def __sub__(self, other: Scalar) -> Dual:
        (a, b), (c, d), level = _common_level(self, other)
        return Dual(a - c, b - d, level)

    def __rsub__(self, other: Scalar) -> Dual:
        (a, b), (c, d), level = _common_level(self, other)
        return Dual(c - a, d - b, level)

    def __neg__(self) -> Dual:
        return Dual(-self.value, -self.rate, self.level)

    def __mul__(self, other: Scalar) -> Dual:
        (a, b), (c, d), level = _common_level(self, other)
        return Dual(a * c, a * d + b * c, level)

    __rmul__ = __mul__

    def __truediv__(self, other: Scalar) -> Dual:
        (a, b), (c, d), level = _common_level(self, other)
        return _quotient(a, b, c, d, level)

    def __rtruediv__(self, other: Scalar) -> Dual:
        (a, b), (c, d), level = _common_level(self, other)
        return _quotient(c, d, a, b, level)

    def __pow__(self, exponent: int) -> Dual:
        """Return an integer power, by repeated multiplication."""
        if not isinstance(exponent, int):
            return NotImplemented
        if exponent < 0:
            return 1.0 / self**-exponent
        result = Dual(1.0, 0.0, self.level)
        for _ in range(exponent):
            result = result * self
        return result

    def __abs__(self) -> Scalar:
        return scalar.absolute(self)

    def __float__(self) -> float:
        raise TracingError(
            "this value carries its derivative and cannot become a float; use the functions of "
            "dalembert.scalar instead of those of math and NumPy"
        )

    def __eq__(self, other: object) -> Any:
        (a, _), (c, _), _ = _common_level(self, other)
        return Condition(_plain(a == c))

    def __ne__(self, other: object) -> Any:
        return scalar.logical_not(self == other)

    __hash__ = object.__hash__

    def __lt__(self, other: Scalar) -> Condition:
        (a, _), (c, _), _ = _common_level(self, other)
        return Condition(_plain(a < c))

    def __le__(self, other: Scalar) -> Condition:
        (a, _), (c, _), _ = _common_level(self, other)
        return Condition(_plain(a <= c))

    def __gt__(self, other: Scalar) -> Condition:
        (a, _), (c, _), _ = _common_level(self, other)
        return Condition(_plain(a > c))

    def __ge__(self, other: Scalar) -> Condition:
        (a, _), (c, _), _ = _common_level(self, other)
        return Condition(_plain(a >= c))


class DualFunctions:
    """The elementary functions of dual numbers: the chain rule."""

    def sin(self, x: Dual) -> Dual:
        return Dual(scalar.sin(x.value), scalar.cos(x.value) * x.rate, x.level)

    def cos(self, x: Dual) -> Dual:
        return Dual(scalar.cos(x.value), -(scalar.sin(x.value) * x.rate), x.level)

    def tan(self, x: Dual) -> Dual:
        t = scalar.tan(x.value)
        return Dual(t, (1.0 + t * t) * x.rate, x.level)

    def asin(self, x: Dual) -> Dual:
        return Dual(scalar.asin(x.value), x.rate / scalar.sqrt(1.0 - x.value * x.value), x.level)

    def acos(self, x: Dual) -> Dual:
        return Dual(scalar.acos(x.value), -(x.rate / scalar.sqrt(1.0 - x.value * x.value)), x.level)

    def atan2(self, y: Scalar, x: Scalar) -> Dual:
        (a, b), (c, d), level = _common_level(y, x)
        return Dual(scalar.atan2(a, c), (c * b - a * d) / (a * a + c * c), level)

    def sqrt(self, x: Dual) -> Dual:
        root = scalar.sqrt(x.value)
        return Dual(root, x.rate / (2.0 * root), x.level)

    def exp(self, x: Dual) -> Dual:
        e = scalar.exp(x.value)
        return Dual(e, e * x.rate, x.level)

    def log(self, x: Dual) -> Dual:
        return Dual(scalar.log(x.value), x.rate / x.value, x.level)

    def absolute(self, x: Dual) -> Dual:
        negative = _plain(x.value < 0.0)
        return Dual(scalar.absolute(x.value), _select(negative, -x.rate, x.rate), x.level)

    def minimum(self, a: Scalar, b: Scalar) -> Scalar:
        return scalar.select(a < b, a, b)

    def maximum(self, a: Scalar, b: Scalar) -> Scalar:
        return scalar.select(b < a, a, b)

    def floor(self, x: Dual) -> Dual:
        return Dual(scalar.floor(x.value), 0.0, x.level)

    def select(self, condition: Scalar, a: Scalar, b: Scalar) -> Scalar:
        return _select(_plain(condition), a, b)

    def logical_and(self, a: Scalar, b: Scalar) -> Condition:
        return Condition(scalar.logical_and(_plain(a), _plain(b)))

    def logical_or(self, a: Scalar, b: Scalar) -> Condition:
        return Condition(scalar.logical_or(_plain(a), _plain(b)))

    def logical_not(self, a: Scalar) -> Condition:
        return Condition(scalar.logical_not(_plain(a)))

    def literal(self, x: Scalar) -> None:
        return None

    def lookup(self, table: Table, index: Dual) -> Dual:
        return Dual(scalar.lookup(table, index.value), 0.0, index.level)


def _quotient(a: Scalar, b: Scalar, c: Scalar, d: Scalar, level: int) -> Dual:
    """Return (a + b e) / (c + d e)."""
    ratio = a / c
    return Dual(ratio, (b - ratio * d) / c, level)


def _common_level(x: Scalar, y: Scalar) -> tuple[tuple[Scalar, Scalar], tuple[Scalar, Scalar], int]:
    """Return the (value, rate) parts of both numbers at the higher of their levels, and that level."""
    level = max(number.level for number in (x, y) if isinstance(number, Dual))
    return _parts(x, level), _parts(y, level), level


def _parts(x: Scalar, level: int) -> tuple[Scalar, Scalar]:
    """Return (value, rate) of a number at a level; a number of a lower level is a constant."""
    if isinstance(x, Dual) and x.level == level:
        return x.value, x.rate
    return x, 0.0


def _select(condition: Any, a: Scalar, b: Scalar) -> Scalar:
    """Select a or b, part by part, by a condition on plain scalars; parts may be dual numbers of a lower
    level.
    """
    if not (isinstance(a, Dual) or isinstance(b, Dual)):
        return scalar.select(condition, a, b)
    (a0, a1), (b0, b1), level = _common_level(a, b)
    return Dual(_select(condition, a0, b0), _select(condition, a1, b1), level)


def _plain(condition: Any) -> Any:
    """Return the condition on plain scalars inside comparisons of any level."""
    while isinstance(condition, Condition):
        condition = condition.value
    return condition


scalar.register(Dual, DualFunctions())
scalar.register(Condition, DualFunctions())
