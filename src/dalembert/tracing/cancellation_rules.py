"""Rewrite rules that cancel or collect equal terms and factors."""

from __future__ import annotations

from typing import Any, Final

from dalembert.tracing.constant_rules import safe, scale
from dalembert.tracing.operations import LEAF_OPS
from dalembert.tracing.rewriting import Apply, Rule

__all__ = ["CANCELLATION"]


def _combine(sign: float) -> Apply:
    """c1 x ± c2 x = (c1 ± c2) x"""

    def apply(a: Any, b: Any) -> Any:
        c1, x = scale(a)
        c2, y = scale(b)
        return (c1 + sign * c2) * x if x is y and safe(c1 + sign * c2) else None

    return apply


def _pythagoras(a: Any, b: Any) -> Any:
    """sin² x + cos² x = 1"""
    (s, s2), (c, c2) = a.args, b.args
    if s is s2 and c is c2 and {s.op, c.op} == {"sin", "cos"} and s.args[0] is c.args[0]:
        return a.graph.constant(1.0)
    return None


def _other(x: Any, term: Any) -> Any:
    """Return the other argument of a two-argument operation, if `term` is one of them."""
    a, b = x.args
    return b if a is term else a if b is term else None


def _factor(op: str) -> Apply:
    """a b ± a c = a (b ± c), where b ± c is a leaf or a part of b or c, so that it costs nothing."""

    def apply(left: Any, right: Any) -> Any:
        for a in left.args:
            if a is right.args[0] or a is right.args[1]:
                b, c = _other(left, a), _other(right, a)
                total = a.graph.rewrite(op, b, c)
                free = total is not None and (
                    total.op in LEAF_OPS or any(total is item for item in (*b.args, *c.args))
                )
                return a * total if free else None
        return None

    return apply


def _cancel_shared(sign: float) -> Apply:
    """(a + b) ± (c + d), with any signs inside, where one term cancels against one of the other sum."""

    def apply(left: Any, right: Any) -> Any:
        (a, b), (c, d) = left.args, right.args
        if a is not c and a is not d and b is not c and b is not d:
            return None
        sign_b = 1.0 if left.op == "add" else -1.0
        sign_d = sign if right.op == "add" else -sign
        for x, sign_x, y, sign_y in ((a, 1.0, b, sign_b), (b, sign_b, a, 1.0)):
            for u, sign_u, w, sign_w in ((c, sign, d, sign_d), (d, sign_d, c, sign)):
                if x is u and sign_x != sign_u:
                    return _signed_sum(y, sign_y, w, sign_w)
        return None

    return apply


def _signed_sum(x: Any, sign_x: float, y: Any, sign_y: float) -> Any:
    if sign_x == sign_y:
        return x + y if sign_x > 0.0 else -(x + y)
    return x - y if sign_x > 0.0 else y - x


def _minus(x: Any) -> Any:
    return None if x is None else -x


CANCELLATION: Final = (
    Rule("x - x = 0", "sub", ("*", "*"), lambda a, b: a.graph.constant(0.0) if a is b else None),
    Rule("c1 x + c2 x", "add", ("mul", "mul"), _combine(1.0)),
    Rule("c x + x", "add", ("mul", "*"), _combine(1.0)),
    Rule("c1 x - c2 x", "sub", ("mul", "*"), _combine(-1.0)),
    Rule("x - c x", "sub", ("*", "mul"), _combine(-1.0)),
    Rule("sin² + cos² = 1", "add", ("mul", "mul"), _pythagoras),
    Rule("a b + a c = a (b + c)", "add", ("mul", "mul"), _factor("add")),
    Rule("a b - a c = a (b - c)", "sub", ("mul", "mul"), _factor("sub")),
    Rule("(a - b) + b = a", "add", ("sub", "*"), lambda d, x: d.args[0] if d.args[1] is x else None),
    Rule("(a + b) - a = b", "sub", ("add", "*"), _other),
    Rule("a - (a + b) = -b", "sub", ("*", "add"), lambda x, s: _minus(_other(s, x))),
    Rule("(a - b) - a = -b", "sub", ("sub", "*"), lambda d, x: -d.args[1] if d.args[0] is x else None),
    Rule("a - (a - b) = b", "sub", ("*", "sub"), lambda x, d: d.args[1] if d.args[0] is x else None),
    Rule("(a + b) - (a + c) = b - c", "sub", ("add", "add"), _cancel_shared(-1.0)),
    Rule("(a + b) - (a - c) = b + c", "sub", ("add", "sub"), _cancel_shared(-1.0)),
    Rule("(a - b) - (a + c) = -(b + c)", "sub", ("sub", "add"), _cancel_shared(-1.0)),
    Rule("(a - b) - (a - c) = c - b", "sub", ("sub", "sub"), _cancel_shared(-1.0)),
    Rule("(a + b) + (c - a) = b + c", "add", ("add", "sub"), _cancel_shared(1.0)),
    Rule("(a - b) + (c - a) = c - b", "add", ("sub", "sub"), _cancel_shared(1.0)),
    Rule("b - a = -(a - b)", "sub", ("*", "*"), lambda a, b: _minus(a.graph.existing("sub", b, a))),
    Rule("x / x = 1", "div", ("*", "*"), lambda a, b: a.graph.constant(1.0) if a is b else None),
    Rule("sqrt(x) sqrt(x) = x", "mul", ("sqrt", "sqrt"), lambda a, b: a.args[0] if a is b else None),
)
