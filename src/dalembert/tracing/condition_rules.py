"""Rewrite rules for conditions and for `select`."""

from __future__ import annotations

from typing import Any, Final

from dalembert.tracing.rewriting import Apply, Rule

__all__ = ["CONDITIONS"]


def _constant_truth(x: Any) -> bool | None:
    """Return the truth value of a constant condition, or None if the condition is not constant."""
    a, b = x.args
    if a is b and a.op == "constant" and a.data == 0.0:
        return bool(x.op == "le")
    return None


def _absorb(absorbing: bool) -> Apply:
    """(false and x) = false, (true and x) = x; (true or x) = true, (false or x) = x"""

    def apply(known: Any, x: Any) -> Any:
        value = _constant_truth(known)
        return None if value is None else known if value is absorbing else x

    return apply


def _not_known(x: Any) -> Any:
    value = _constant_truth(x)
    return None if value is None else x.graph.boolean(not value)


def _select_known(c: Any, a: Any, b: Any) -> Any:
    value = _constant_truth(c)
    return None if value is None else a if value else b


def _same(a: Any, b: Any) -> Any:
    return a if a is b else None


CONDITIONS: Final = (
    Rule("not (not x) = x", "not", ("not",), lambda x: x.args[0]),
    *(Rule("not, known", "not", (op,), _not_known) for op in ("le", "lt")),
    *(Rule("and, known", "and", (op, "*"), _absorb(False)) for op in ("le", "lt")),
    *(Rule("or, known", "or", (op, "*"), _absorb(True)) for op in ("le", "lt")),
    *(Rule("select, known", "select", (op, "*", "*"), _select_known) for op in ("le", "lt")),
    Rule("select of equals", "select", ("*", "*", "*"), lambda c, a, b: a if a is b else None),
    Rule(
        "select by not",
        "select",
        ("not", "*", "*"),
        lambda c, a, b: c.graph.operation("select", c.args[0], b, a),
    ),
    *(Rule(f"{op} of equals", op, ("*", "*"), _same) for op in ("and", "or", "min", "max")),
    Rule("x < x never", "lt", ("*", "*"), lambda a, b: a.graph.boolean(False) if a is b else None),
    Rule("abs of abs", "abs", ("abs",), lambda x: x),
    Rule("abs of a root", "abs", ("sqrt",), lambda x: x),
    Rule("floor of a floor", "floor", ("floor",), lambda x: x),
)
