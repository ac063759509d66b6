"""Rewriting at construction: rules, and sets of rules with fast dispatch.

A `Rule` names an operation, the operations that its arguments must have (`"*"`: any), and a function of the
arguments that returns an equal, cheaper expression, or None where a finer test fails. A rule is tried when
its operation is constructed, first match first; since its result is built by the same constructors,
rewriting is exhaustive. For commutative operations the mirrored pattern is implied.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeAlias, final

from dalembert.errors import TracingError
from dalembert.tracing.operations import BOOLEAN_OPS, COMMUTATIVE_OPS, OPERATIONS

__all__ = ["Apply", "Rule", "RuleSet"]

Apply: TypeAlias = Callable[..., Any]
"""(arguments) -> the replacing expression or None. Expressions are Any here, since they are built on
this module."""


@final
@dataclass(frozen=True, slots=True)
class Rule:
    """A rewrite rule: `op(args)` with `args[k].op` matching `pattern[k]` becomes `apply(*args)` unless that
    is None."""

    name: str
    op: str
    pattern: tuple[str, ...]
    apply: Apply

    def mirror(self) -> Rule:
        """Return the rule with its two arguments exchanged."""
        apply = self.apply
        return Rule(self.name, self.op, self.pattern[::-1], lambda a, b: apply(b, a))


@final
@dataclass(frozen=True)
class RuleSet:
    """A set of rules in order of preference; `canonical_order` sorts the arguments of commutative
    operations."""

    name: str
    rules: tuple[Rule, ...]
    canonical_order: bool = True
    _tables: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def dispatch(self, op: str) -> Any:
        """Return the functions to try, as `table[left.op][right.op]` for two arguments, else
        `table[first.op]`."""
        if op not in self._tables:
            rules = [rule for rule in self.rules if rule.op == op]
            if op in COMMUTATIVE_OPS:
                rules = [
                    item
                    for rule in rules
                    for item in ([rule] if rule.pattern[0] == rule.pattern[1] else [rule, rule.mirror()])
                ]
            self._tables[op] = _FirstLevel(op, rules)
        return self._tables[op]


class _FirstLevel(dict[str, Any]):
    """A table of rules by the operation of the first argument, filled on demand."""

    def __init__(self, op: str, rules: list[Rule]) -> None:
        self.op, self.rules = op, rules

    def __missing__(self, first: str) -> Any:
        rules = [rule for rule in self.rules if rule.pattern[0] in ("*", first)]
        if OPERATIONS[self.op].arity == 2:
            self[first] = _SecondLevel(self.op, first, rules)
        else:
            self[first] = _misuse(self.op, (first,)) or tuple(rule.apply for rule in rules)
        return self[first]


class _SecondLevel(dict[str, Any]):
    """A table of rules by the operation of the second argument, filled on demand."""

    def __init__(self, op: str, first: str, rules: list[Rule]) -> None:
        self.op, self.first, self.rules = op, first, rules

    def __missing__(self, second: str) -> Any:
        misuse = _misuse(self.op, (self.first, second))
        found = misuse or tuple(rule.apply for rule in self.rules if rule.pattern[1] in ("*", second))
        self[second] = found
        return found


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
