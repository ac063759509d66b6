"""The choice of products that are fused into sums (a b + c, rounded once) where code is divided into parts.

A product with one use is fused, as in `codegen.schedule`. Only uses for the same output as the product, or
for an earlier output, count, so that the bits of an output do not depend on what is computed for later
outputs. The sum then owns a copy of the product in its part (`statements.py`), and other users compute the
product again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from dalembert.tracing.expression import Expression

__all__ = ["fused_products"]


def fused_products(
    nodes: Sequence[Expression],
    args: Mapping[int, Sequence[Expression]],
    uses: Mapping[int, int],
    first: Mapping[int, int],
    same_home: Callable[[Expression, Expression], bool],
) -> dict[int, int]:
    """Return the position of the fused operand, by the index of the sum or difference.

    By index of a node: `args`; `first`, the number of the first output that needs it; its `uses` for that.
    `same_home`: whether two nodes are of one step, or both of the function. Of two products the later is
    fused, as in `codegen.schedule`.
    """

    def alone(item: Expression, total: Expression) -> bool:
        return uses[item.index] == 1 or first[item.index] < first[total.index]

    def fits(item: Expression, total: Expression) -> bool:
        chain = [item] if item.op != "neg" else [item, args[item.index][0]]
        return chain[-1].op == "mul" and all(alone(x, total) and same_home(x, total) for x in chain)

    found: dict[int, int] = {}
    for node in nodes:
        if node.op in ("add", "sub"):
            places = [place for place in (1, 0) if fits(args[node.index][place], node)]
            if places:
                found[node.index] = places[0]
    return found
