"""The rewrite rules, as data.

`BOOK_RULES` is what Featherstone 2008 §10.4 lists: 0 and 1, constants evaluated. (Copy propagation and the
removal of dead code need no rule: a copy is the same node, and only live nodes are counted or compiled.)
`RULES`, the default, adds a normal form: negation, which costs nothing, is pulled outward; constant factors
and constant terms are gathered; equal terms cancel. `NO_RULES` records what was written.

No rule changes a finite result by more than the rounding of the terms involved, and none can cost more
operations, even if its arguments have other uses: each replaces one operation by at most one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final, NoReturn, TypeAlias, final

from dalembert.errors import TracingError
from dalembert.tracing.operations import BOOLEAN_OPS, COMMUTATIVE_OPS, LEAF_OPS, OPERATIONS

# Rewriting at construction: rules, and sets of rules with fast dispatch.
#
# A `Rule` names an operation, the operations that its arguments must have (`"*"`: any), and a function of the
# arguments that returns an equal, cheaper expression, or None where a finer test fails. A rule is tried when
# its operation is constructed, first match first; since its result is built by the same constructors,
# rewriting is exhaustive. For commutative operations the mirrored pattern is implied.

Apply: TypeAlias = Callable[..., Any]
"""(arguments) -> the replacing expression or None. Expressions are Any here, since they are built on
this module."""


@final
@dataclass(frozen=True, slots=True)
class Rule:
    """A rule: `op(args)` with `args[k].op` matching `pattern[k]` becomes `apply(*args)` if not None."""

    name: str
    op: str
    pattern: tuple[str, ...]
    apply: Apply


@final
@dataclass(frozen=True)
class RuleSet:
    """Rules in order of preference; `canonical_order` sorts the arguments of commutative operations."""

    name: str
    rules: tuple[Rule, ...]
    canonical_order: bool = True
    _tables: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def dispatch(self, op: str) -> Any:
        """Return the functions to try: `[left.op][right.op]` of two arguments, else `[first.op]`."""
        if op not in self._tables:
            rules: list[Rule] = []
            for rule in (rule for rule in self.rules if rule.op == op):
                rules.append(rule)
                if op in COMMUTATIVE_OPS and rule.pattern[0] != rule.pattern[1]:
                    mirrored = lambda a, b, apply=rule.apply: apply(b, a)
                    rules.append(replace(rule, pattern=rule.pattern[::-1], apply=mirrored))
            self._tables[op] = _Dispatch(op, rules)
        return self._tables[op]


class _Dispatch(dict[str, Any]):
    """A table of rules by the operation of the next argument after the `known` ones, filled on demand."""

    def __init__(self, op: str, rules: list[Rule], known: tuple[str, ...] = ()) -> None:
        self.op, self.rules, self.known = op, rules, known

    def __missing__(self, argument: str) -> Any:
        kinds = (*self.known, argument)
        rules = [rule for rule in self.rules if rule.pattern[len(self.known)] in ("*", argument)]
        if OPERATIONS[self.op].arity == 2 and not self.known:
            self[argument] = _Dispatch(self.op, rules, kinds)
        else:
            self[argument] = _misuse(self.op, kinds) or tuple(rule.apply for rule in rules)
        return self[argument]


def _misuse(op: str, kinds: tuple[str, ...]) -> tuple[Apply, ...]:
    """Return a function that raises, where a condition stands for a number or a number for a condition."""
    wants_condition = op in ("and", "or", "not", "select")
    wrong = [kind for kind in kinds if (kind in BOOLEAN_OPS) is not wants_condition]
    if not wrong:
        return ()

    def refuse(*args: Any) -> NoReturn:
        if wants_condition:
            raise TracingError(
                f"{op!r} needs a condition, got a number ({wrong[0]}); compare it first, as in x > 0.0"
            )
        raise TracingError(
            f"{op!r} needs numbers, got a condition ({wrong[0]}); write scalar.select(condition, 1.0, 0.0)"
        )

    return (refuse,)


# Rewrite rules that gather constant factors and constant terms.

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
    known = x is not product and c.data != 0.0 and safe(factor / c.data)
    return (factor / c.data) * x if known else None


def _divide_by_factors(c: Any, product: Any) -> Any:
    """c1 / (c2 x) = (c1 / c2) / x"""
    factor, x = scale(product)
    known = x is not product and factor != 0.0 and safe(c.data / factor)
    return (c.data / factor) / x if known else None


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
    Rule("x / (1 / y)", "div", ("*", "div"), lambda x, d: x * d.args[1] if d.args[0].data == 1.0 else None),
)


# Rewrite rules that cancel or collect equal terms and factors.


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
                    if sign_y == sign_w:
                        return y + w if sign_y > 0.0 else -(y + w)
                    return y - w if sign_y > 0.0 else w - y
        return None

    return apply


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


# Rewrite rules for conditions and for `select`.


def _constant_truth(x: Any) -> bool | None:
    """Return the truth value of a constant condition, or None if the condition is not constant."""
    a, b = x.args
    if a is b and a.op == "constant" and a.data == 0.0:
        return bool(x.op == "le")
    return None


def _decided_by_condition(result: Callable[..., Any]) -> Apply:
    """Apply `result` to the truth value of the first argument and to all arguments, if it is constant."""

    def apply(*args: Any) -> Any:
        value = _constant_truth(args[0])
        return None if value is None else result(value, *args)

    return apply


CONDITIONS: Final = (
    Rule("not (not x) = x", "not", ("not",), lambda x: x.args[0]),
    *(
        Rule(
            f"{op}, known",
            op,
            (condition, *["*"] * (OPERATIONS[op].arity - 1)),
            _decided_by_condition(result),
        )
        for op, result in (
            ("not", lambda value, c: c.graph.boolean(not value)),
            ("and", lambda value, c, x: x if value else c),
            ("or", lambda value, c, x: c if value else x),
            ("select", lambda value, c, a, b: a if value else b),
        )
        for condition in ("le", "lt")
    ),
    Rule("select of equals", "select", ("*", "*", "*"), lambda c, a, b: a if a is b else None),
    Rule(
        "select by not",
        "select",
        ("not", "*", "*"),
        lambda c, a, b: c.graph.operation("select", c.args[0], b, a),
    ),
    *(
        Rule(f"{op} of equals", op, ("*", "*"), lambda a, b: a if a is b else None)
        for op in ("and", "or", "min", "max")
    ),
    Rule("x < x never", "lt", ("*", "*"), lambda a, b: a.graph.boolean(False) if a is b else None),
    Rule("abs of abs", "abs", ("abs",), lambda x: x),
    Rule("abs of a root", "abs", ("sqrt",), lambda x: x),
    Rule("floor of a floor", "floor", ("floor",), lambda x: x),
)


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


def _negative_first(result: Apply) -> Apply:
    """Apply `result` to (c, x) where the first argument is a constant -c below zero."""
    return lambda c, x: result(-c.data, x) if c.data < 0.0 else None


def _negative_last(result: Apply) -> Apply:
    """Apply `result` to (x, c) where the last argument is a constant -c below zero."""
    return lambda x, c: result(x, -c.data) if c.data < 0.0 else None


def _is(value: float, result: Apply) -> Apply:
    """Apply `result` where the first argument is this constant."""
    return lambda c, x: result(c, x) if c.data == value else None


def _select_negated(c: Any, a: Any, b: Any) -> Any:
    """select(c, -a, -b) = -select(c, a, b)"""
    return -c.graph.operation("select", c, a.args[0], b.args[0]) if a.op == "neg" and b.op == "neg" else None


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
    Rule("(-c) x = -(c x)", "mul", ("constant", "*"), _negative_first(lambda c, x: -(c * x))),
    Rule("-a + -b = -(a + b)", "add", ("neg", "neg"), lambda a, b: -(a.args[0] + b.args[0])),
    Rule("-a + b = b - a", "add", ("neg", "*"), lambda a, b: b - a.args[0]),
    Rule("x + (-c) = x - c", "add", ("constant", "*"), _negative_first(lambda c, x: x - c)),
    Rule("-a - -b = b - a", "sub", ("neg", "neg"), lambda a, b: b.args[0] - a.args[0]),
    Rule("a - -b = a + b", "sub", ("*", "neg"), lambda a, b: a + b.args[0]),
    Rule("-a - b = -(a + b)", "sub", ("neg", "*"), lambda a, b: -(a.args[0] + b)),
    Rule("x - (-c) = x + c", "sub", ("*", "constant"), _negative_last(lambda x, c: x + c)),
    Rule("(-c) - x = -(x + c)", "sub", ("constant", "*"), _negative_first(lambda c, x: -(x + c))),
    Rule("-a / -b = a / b", "div", ("neg", "neg"), lambda a, b: a.args[0] / b.args[0]),
    Rule("-a / b = -(a / b)", "div", ("neg", "*"), lambda a, b: -(a.args[0] / b)),
    Rule("a / -b = -(a / b)", "div", ("*", "neg"), lambda a, b: -(a / b.args[0])),
    Rule("(-c) / x = -(c / x)", "div", ("constant", "*"), _negative_first(lambda c, x: -(c / x))),
    Rule("x / (-c) = -(x / c)", "div", ("*", "constant"), _negative_last(lambda x, c: -(x / c))),
    Rule("select of negatives", "select", ("*", "neg", "neg"), _select_negated),
    *(
        Rule(f"{op} is odd", op, ("neg",), lambda x, op=op: -x.graph.operation(op, x.args[0]))
        for op in ("sin", "tan", "asin")
    ),
    *(
        Rule(f"{op} is even", op, ("neg",), lambda x, op=op: x.graph.operation(op, x.args[0]))
        for op in ("cos", "abs")
    ),
)

RULES: Final = RuleSet("default", BOOK_RULES.rules + _NEGATION + CONSTANTS + CANCELLATION + CONDITIONS)

NO_RULES: Final = RuleSet("none", (), canonical_order=False)
