"""Guards: the conditions under which a value affects the results, tracked while adjoints propagate back.

A value in a branch that is not taken has the adjoint zero, but zero times an infinite or undefined local
derivative is not zero. So each adjoint carries a guard, the condition under which the value matters. Where
adjoints with different guards are added, `select` masks those whose own guard does not hold. Inside a branch
no operation is added.

A guard is a sum of products: a set of sets of (condition, holds). It is exact; when it grows too long it
becomes one condition of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias, final

from dalembert import scalar
from dalembert.scalar import Scalar
from dalembert.tracing.expression import Expression
from dalembert.tracing.graph import Graph

__all__ = ["ALWAYS", "Guard", "Guards"]

Guard: TypeAlias = frozenset[frozenset[tuple[int, bool]]]

ALWAYS: Final[Guard] = frozenset({frozenset()})

MAX_GUARD_PRODUCTS: Final = 6
"""The number of products up to which a guard stays a sum of products; a longer one becomes one condition."""


@final
class Guards:
    """The guards of one graph."""

    __slots__ = ("_conditions", "_graph", "_nodes")

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._nodes: dict[int, Expression] = {}
        self._conditions: dict[Guard, Scalar] = {ALWAYS: True}

    def within(self, guard: Guard, condition: Expression | None, holds: bool) -> Guard:
        """Return the guard of an argument that matters where its node does and `condition` equals `holds`."""
        if condition is None:
            return guard
        while condition.op == "not":
            condition, holds = condition.args[0], not holds
        self._nodes[condition.index] = condition
        own, other = (condition.index, holds), (condition.index, not holds)
        return self._short(_simplify(product | {own} for product in guard if other not in product))

    def either(self, guards: Iterable[Guard]) -> Guard:
        """Return the guard that holds where at least one of the guards holds."""
        return self._short(_simplify(product for guard in guards for product in guard))

    def total(self, shares: Sequence[tuple[Guard, Scalar]], guard: Guard) -> Scalar:
        """Return the sum of adjoint contributions, masking those whose guard differs from the guard of the
        sum."""
        sums: dict[Guard, Scalar] = {}
        for own, share in shares:
            sums[own] = sums.get(own, 0.0) + share
        total: Scalar = 0.0
        for own, part in sums.items():
            total = total + (part if own == guard else scalar.select(self._condition(own), part, 0.0))
        return total

    def _condition(self, guard: Guard) -> Scalar:
        found = self._conditions.get(guard)
        if found is None:
            found = False
            for product in sorted(guard, key=sorted):
                term: Scalar = True
                for index, holds in sorted(product):
                    node = self._nodes[index]
                    term = scalar.logical_and(term, node if holds else scalar.logical_not(node))
                found = scalar.logical_or(found, term)
            self._conditions[guard] = found
        return found

    def _short(self, guard: Guard) -> Guard:
        if len(guard) <= MAX_GUARD_PRODUCTS:
            return guard
        node = self._graph.condition(self._condition(guard))
        self._nodes[node.index] = node
        return frozenset({frozenset({(node.index, True)})})


def _simplify(products: Iterable[frozenset[tuple[int, bool]]]) -> Guard:
    """Simplify a sum of products by A B + A not B = A and A + A B = A."""
    left = set(products)
    merged = True
    while merged:
        merged = False
        for product in list(left):
            for literal in product:
                rest = product - {literal}
                if rest | {(literal[0], not literal[1])} in left:
                    left -= {product, rest | {(literal[0], not literal[1])}}
                    left.add(rest)
                    merged = True
                    break
            if merged:
                break
    return frozenset(a for a in left if not any(b < a for b in left))
