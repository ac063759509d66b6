"""Dual numbers: a value and its derivative along one direction, over any kind of scalar.

(a + b e)(c + d e) = a c + (a d + b c) e with e² = 0, so that f(a + b e) = f(a) + f'(a) b e: every function
written on generic scalars yields its exact directional derivative. Parts may be floats, arrays, traced or
symbolic expressions, or dual numbers of a lower level, which gives second derivatives. A level says which
derivative a part belongs to; of two levels the lower one counts as a constant of the higher.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, Final, TypeVar, cast, final

from dalembert import scalar
from dalembert.errors import TracingError
from dalembert.scalar import Scalar
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
    return (rebuild(result, [value for value, _ in parts]), rebuild(result, [rate for _, rate in parts]))


@final
class Condition:
    """The outcome of a comparison of dual numbers, which has no derivative."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __bool__(self) -> bool:
        return bool(self.value)


def _operator(rule: Callable[[Scalar, Scalar, Scalar, Scalar], tuple[Scalar, Scalar]]) -> Any:
    """Return the operator on (a + b e) and (c + d e) whose value and rate are rule(a, b, c, d)."""

    def operate(self: Dual, other: Scalar) -> Dual:
        (a, b), (c, d), level = _common_level(self, other)
        return Dual(*rule(a, b, c, d), level)

    return operate


def _comparison(compare: Callable[[Scalar, Scalar], Any]) -> Any:
    """Return the comparison of the values of two dual numbers."""

    def operate(self: Dual, other: Scalar) -> Condition:
        (a, _), (c, _), _ = _common_level(self, other)
        return Condition(_plain(compare(a, c)))

    return operate


def _quotient(a: Scalar, b: Scalar, c: Scalar, d: Scalar) -> tuple[Scalar, Scalar]:
    """Return value and rate of (a + b e) / (c + d e)."""
    ratio = a / c
    return ratio, (b - ratio * d) / c


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

    __add__ = __radd__ = _operator(lambda a, b, c, d: (a + c, b + d))
    __sub__ = _operator(lambda a, b, c, d: (a - c, b - d))
    __rsub__ = _operator(lambda a, b, c, d: (c - a, d - b))
    __mul__ = __rmul__ = _operator(lambda a, b, c, d: (a * c, a * d + b * c))
    __truediv__ = _operator(_quotient)
    __rtruediv__ = _operator(lambda a, b, c, d: _quotient(c, d, a, b))

    __eq__ = _comparison(operator.eq)
    __lt__ = _comparison(operator.lt)
    __le__ = _comparison(operator.le)
    __gt__ = _comparison(operator.gt)
    __ge__ = _comparison(operator.ge)
    __hash__ = object.__hash__

    def __ne__(self, other: object) -> Any:
        return scalar.logical_not(self == other)

    def __neg__(self) -> Dual:
        return Dual(-self.value, -self.rate, self.level)

    def __pow__(self, exponent: int) -> Dual:
        """Return an integer power, by repeated multiplication."""
        if not isinstance(exponent, int):
            return NotImplemented
        if exponent < 0:
            return cast(Dual, 1.0 / self**-exponent)
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
    """Select a or b, part by part, by a condition on plain scalars."""
    if not (isinstance(a, Dual) or isinstance(b, Dual)):
        return scalar.select(condition, a, b)
    (a0, a1), (b0, b1), level = _common_level(a, b)
    return Dual(_select(condition, a0, b0), _select(condition, a1, b1), level)


def _plain(condition: Any) -> Any:
    """Return the condition on plain scalars inside comparisons of any level."""
    while isinstance(condition, Condition):
        condition = condition.value
    return condition


# The chain rule: value and rate of each function of a + b e.
_CHAIN_RULES: Final[dict[str, Callable[[Scalar, Scalar], tuple[Scalar, Scalar]]]] = {
    "sin": lambda a, b: (scalar.sin(a), scalar.cos(a) * b),
    "cos": lambda a, b: (scalar.cos(a), -(scalar.sin(a) * b)),
    "tan": lambda a, b: (t := scalar.tan(a), (1.0 + t * t) * b),
    "asin": lambda a, b: (scalar.asin(a), b / scalar.sqrt(1.0 - a * a)),
    "acos": lambda a, b: (scalar.acos(a), -(b / scalar.sqrt(1.0 - a * a))),
    "sqrt": lambda a, b: (root := scalar.sqrt(a), b / (2.0 * root)),
    "exp": lambda a, b: (e := scalar.exp(a), e * b),
    "log": lambda a, b: (scalar.log(a), b / a),
    "floor": lambda a, b: (scalar.floor(a), 0.0),
    "absolute": lambda a, b: (scalar.absolute(a), _select(_plain(a < 0.0), -b, b)),
}


def _elementary(rule: Callable[[Scalar, Scalar], tuple[Scalar, Scalar]]) -> Callable[[Dual], Dual]:
    """Return the function of a dual number by its chain rule."""
    return lambda x: Dual(*rule(x.value, x.rate), x.level)


_FUNCTIONS: Final[Any] = SimpleNamespace(
    **{name: _elementary(rule) for name, rule in _CHAIN_RULES.items()},
    atan2=_operator(lambda a, b, c, d: (scalar.atan2(a, c), (c * b - a * d) / (a * a + c * c))),
    minimum=lambda a, b: scalar.select(a < b, a, b),
    maximum=lambda a, b: scalar.select(b < a, a, b),
    select=lambda condition, a, b: _select(_plain(condition), a, b),
    logical_and=lambda a, b: Condition(scalar.logical_and(_plain(a), _plain(b))),
    logical_or=lambda a, b: Condition(scalar.logical_or(_plain(a), _plain(b))),
    logical_not=lambda a: Condition(scalar.logical_not(_plain(a))),
    literal=lambda x: None,
    lookup=lambda table, index: Dual(scalar.lookup(table, index.value), 0.0, index.level),
)
scalar.register(Dual, _FUNCTIONS)
scalar.register(Condition, _FUNCTIONS)
