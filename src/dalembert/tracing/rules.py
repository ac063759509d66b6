"""The rewrite rules, as data.

`BOOK_RULES` is what Featherstone 2008 §10.4 lists: 0 and 1, constants evaluated. (Copy propagation and the
removal of dead code need no rule: a copy is the same node, and only live nodes are counted or compiled.)
`RULES`, the default, adds a normal form: negation, which costs nothing, is pulled outward; constant factors
and constant terms are gathered; equal terms cancel. `NO_RULES` records what was written.

No rule changes a finite result by more than the rounding of the terms involved, and none can cost more
operations, even if its arguments have other uses: each replaces one operation by at most one.
"""

from __future__ import annotations

from typing import Any, Final

from dalembert.tracing.cancellation_rules import CANCELLATION
from dalembert.tracing.condition_rules import CONDITIONS
from dalembert.tracing.constant_rules import CONSTANTS
from dalembert.tracing.operations import OPERATIONS
from dalembert.tracing.rewriting import Apply, Rule, RuleSet

__all__ = ["BOOK_RULES", "NO_RULES", "RULES"]


def _fold(op: str) -> Apply:
    """Evaluate an operation on constants by its definition."""
    evaluate = OPERATIONS[op].evaluate

    def apply(*args: Any) -> Any:
        if any(item.op != "constant" for item in args):
            return None
        value = evaluate(*[item.data for item in args])
        graph = args[0].graph
        return graph.boolean(value) if isinstance(value, bool) else graph.constant(value)

    return apply


def _is(value: float, result: Apply) -> Apply:
    """Apply `result` where the first argument is this constant."""
    return lambda c, x: result(c, x) if c.data == value else None


def _select_negated(c: Any, a: Any, b: Any) -> Any:
    """select(c, -a, -b) = -select(c, a, b)"""
    return -c.graph.operation("select", c, a.args[0], b.args[0]) if a.op == "neg" and b.op == "neg" else None


def _odd(op: str) -> Apply:
    return lambda x: -x.graph.operation(op, x.args[0])


def _even(op: str) -> Apply:
    return lambda x: x.graph.operation(op, x.args[0])


_FOLDING: Final = tuple(
    Rule(f"{op} of constants", op, ("constant",) * operation.arity, _fold(op))
    for op, operation in OPERATIONS.items()
    if op not in ("select", "and", "or", "not")
)

BOOK_RULES: Final = RuleSet(
    "book",
    (
        Rule("0 x = 0", "mul", ("constant", "*"), _is(0.0, lambda c, x: c)),
        *_FOLDING,
        Rule("1 x = x", "mul", ("constant", "*"), _is(1.0, lambda c, x: x)),
        Rule("0 + x = x", "add", ("constant", "*"), _is(0.0, lambda c, x: x)),
        Rule("0 - x = -x", "sub", ("constant", "*"), _is(0.0, lambda c, x: -x)),
        Rule("x - 0 = x", "sub", ("*", "constant"), lambda x, c: x if c.data == 0.0 else None),
        Rule("0 / x = 0", "div", ("constant", "*"), _is(0.0, lambda c, x: c)),
        Rule("x / 1 = x", "div", ("*", "constant"), lambda x, c: x if c.data == 1.0 else None),
        Rule("-(-x) = x", "neg", ("neg",), lambda x: x.args[0]),
    ),
)

_NEGATION: Final = (
    Rule("(-a)(-b) = ab", "mul", ("neg", "neg"), lambda a, b: a.args[0] * b.args[0]),
    Rule("(-a) b = -(ab)", "mul", ("neg", "*"), lambda a, b: -(a.args[0] * b)),
    Rule("(-c) x = -(c x)", "mul", ("constant", "*"), lambda c, x: -(-c.data * x) if c.data < 0.0 else None),
    Rule("-a + -b = -(a + b)", "add", ("neg", "neg"), lambda a, b: -(a.args[0] + b.args[0])),
    Rule("-a + b = b - a", "add", ("neg", "*"), lambda a, b: b - a.args[0]),
    Rule("x + (-c) = x - c", "add", ("constant", "*"), lambda c, x: x - -c.data if c.data < 0.0 else None),
    Rule("-a - -b = b - a", "sub", ("neg", "neg"), lambda a, b: b.args[0] - a.args[0]),
    Rule("a - -b = a + b", "sub", ("*", "neg"), lambda a, b: a + b.args[0]),
    Rule("-a - b = -(a + b)", "sub", ("neg", "*"), lambda a, b: -(a.args[0] + b)),
    Rule("x - (-c) = x + c", "sub", ("*", "constant"), lambda x, c: x + -c.data if c.data < 0.0 else None),
    Rule(
        "(-c) - x = -(x + c)", "sub", ("constant", "*"), lambda c, x: -(x + -c.data) if c.data < 0.0 else None
    ),
    Rule("-a / -b = a / b", "div", ("neg", "neg"), lambda a, b: a.args[0] / b.args[0]),
    Rule("-a / b = -(a / b)", "div", ("neg", "*"), lambda a, b: -(a.args[0] / b)),
    Rule("a / -b = -(a / b)", "div", ("*", "neg"), lambda a, b: -(a / b.args[0])),
    Rule(
        "(-c) / x = -(c / x)", "div", ("constant", "*"), lambda c, x: -(-c.data / x) if c.data < 0.0 else None
    ),
    Rule(
        "x / (-c) = -(x / c)", "div", ("*", "constant"), lambda x, c: -(x / -c.data) if c.data < 0.0 else None
    ),
    Rule("select of negatives", "select", ("*", "neg", "neg"), _select_negated),
    *(Rule(f"{op} is odd", op, ("neg",), _odd(op)) for op in ("sin", "tan", "asin")),
    *(Rule(f"{op} is even", op, ("neg",), _even(op)) for op in ("cos", "abs")),
)

RULES: Final = RuleSet("default", BOOK_RULES.rules + _NEGATION + CONSTANTS + CANCELLATION + CONDITIONS)

NO_RULES: Final = RuleSet("none", (), canonical_order=False)
