"""Rewrite rules that gather constant factors and constant terms."""

from __future__ import annotations

import math
from typing import Any, Final

from dalembert.tracing.rewriting import Apply, Rule

__all__ = ["CONSTANTS", "safe", "scale"]

SMALLEST_NORMAL: Final = 2.2250738585072014e-308


def safe(value: float) -> bool:
    """Return whether a combined constant neither overflows nor loses digits."""
    return SMALLEST_NORMAL <= abs(value) < math.inf or value == 0.0


def scale(x: Any) -> tuple[float, Any]:
    """Return (c, y) with x = c y and c constant; (1, x) without a constant factor."""
    if x.op == "mul":
        a, b = x.args
        if a.op == "constant":
            return a.data, b
        if b.op == "constant":
            return b.data, a
    return 1.0, x


def _gather_factors(c: Any, product: Any) -> Any:
    """c1 (c2 x) = (c1 c2) x"""
    factor, x = scale(product)
    return (c.data * factor) * x if x is not product and safe(c.data * factor) else None


def _gather_quotient(c: Any, quotient: Any) -> Any:
    """c1 (c2 / x) = (c1 c2) / x,  c1 (x / c2) = (c1 / c2) x"""
    a, b = quotient.args
    if a.op == "constant" and safe(c.data * a.data):
        return (c.data * a.data) / b
    if b.op == "constant" and b.data != 0.0 and safe(c.data / b.data):
        return (c.data / b.data) * a
    return None


def _offset(x: Any) -> tuple[Any, float, float] | None:
    """Return (y, sign, c) with x = sign y + c and c constant, or None."""
    a, b = x.args
    if b.op == "constant":
        return a, 1.0, b.data if x.op == "add" else -b.data
    if a.op == "constant":
        return b, 1.0 if x.op == "add" else -1.0, a.data
    return None


def _gather_terms(sign_c: float, sign_x: float) -> Apply:
    """c1 ± (y + c2) = (c1 ± c2) ± y, with either sign for each"""

    def apply(c: Any, sum_: Any) -> Any:
        found = _offset(sum_)
        if found is None:
            return None
        y, sign, c2 = found
        total = sign_c * c.data + sign_x * c2
        if math.isinf(total):
            return None
        return total + y if sign * sign_x > 0.0 else total - y

    return apply


def _power_of_two(x: Any, c: Any) -> Any:
    """x / 2^k = 2^-k x, exactly"""
    return (1.0 / c.data) * x if abs(math.frexp(c.data)[0]) == 0.5 and safe(1.0 / c.data) else None


def _divide_factors(product: Any, c: Any) -> Any:
    """(c1 x) / c2 = (c1 / c2) x"""
    factor, x = scale(product)
    if x is product or c.data == 0.0 or not safe(factor / c.data):
        return None
    return (factor / c.data) * x


def _divide_by_factors(c: Any, product: Any) -> Any:
    """c1 / (c2 x) = (c1 / c2) / x"""
    factor, x = scale(product)
    if x is product or factor == 0.0 or not safe(c.data / factor):
        return None
    return (c.data / factor) / x


CONSTANTS: Final = (
    Rule("c1 (c2 x) = (c1 c2) x", "mul", ("constant", "mul"), _gather_factors),
    Rule("c1 (c2 / x)", "mul", ("constant", "div"), _gather_quotient),
    Rule("c1 + (x + c2)", "add", ("constant", "add"), _gather_terms(1.0, 1.0)),
    Rule("c1 + (x - c2)", "add", ("constant", "sub"), _gather_terms(1.0, 1.0)),
    Rule("c1 - (x + c2)", "sub", ("constant", "add"), _gather_terms(1.0, -1.0)),
    Rule("c1 - (x - c2)", "sub", ("constant", "sub"), _gather_terms(1.0, -1.0)),
    Rule("(x + c2) - c1", "sub", ("add", "constant"), lambda x, c: _gather_terms(-1.0, 1.0)(c, x)),
    Rule("(x - c2) - c1", "sub", ("sub", "constant"), lambda x, c: _gather_terms(-1.0, 1.0)(c, x)),
    Rule("x / 2^k", "div", ("*", "constant"), _power_of_two),
    Rule("(c1 x) / c2", "div", ("mul", "constant"), _divide_factors),
    Rule("c1 / (c2 x)", "div", ("constant", "mul"), _divide_by_factors),
    Rule(
        "x / (1 / y) = x y",
        "div",
        ("*", "div"),
        lambda x, d: x * d.args[1] if d.args[0].data == 1.0 else None,
    ),
)
