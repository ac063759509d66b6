"""Activity analysis: the elements of a program's arrays that depend on the differentiated arguments."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, final

from dalembert.tracing.address import Address
from dalembert.tracing.expression import Expression, live
from dalembert.tracing.local_derivatives import CONSTANT_OPS
from dalembert.tracing.program import IndexedStore, Loop

__all__ = ["Activity", "address_of"]

LEAVES: Final = ("input", "load")


def address_of(node: Expression) -> Address | None:
    """Return the address that a leaf reads, or None for operations and constants."""
    if node.op == "load":
        address: Address = node.data
        return address
    return Address.fixed(*node.data) if node.op == "input" else None


@final
class Activity:
    """The active elements: `address in activity` tells whether an element depends on the arguments.

    `arrays` names the arrays with active elements. Arrays that are accessed only at fixed positions are
    tracked element by element, all others as a whole.
    """

    def __init__(self, loops: Sequence[Loop], arguments: Collection[str]) -> None:
        cases = [case for loop in loops for case in loop.cases]
        nodes = [live([store.value for store in case]) for case in cases]
        self._arguments = frozenset(arguments)
        self._whole = {
            address.array
            for case, known in zip(cases, nodes, strict=True)
            for address in [*(store.address for store in case), *map(address_of, known)]
            if address is not None and address.scale
        }
        self._found: set[tuple[str, int | None]] = set()
        before = -1
        while before < len(self._found):
            before = len(self._found)
            for case, known in zip(cases, nodes, strict=True):
                self._pass(case, known)

    @property
    def arrays(self) -> set[str]:
        return {array for array, _ in self._found} | self._arguments

    def __contains__(self, address: Address | None) -> bool:
        return address is not None and (address.array in self._arguments or self._key(address) in self._found)

    def _key(self, address: Address) -> tuple[str, int | None]:
        return address.array, None if address.array in self._whole else address.offset

    def _pass(self, case: tuple[IndexedStore, ...], nodes: Sequence[Expression]) -> None:
        active: set[int] = set()
        for node in nodes:
            if node.op in LEAVES:
                depends = address_of(node) in self
            else:
                depends = node.op not in CONSTANT_OPS and any(item.index in active for item in node.args)
            if depends:
                active.add(node.index)
        self._found |= {self._key(store.address) for store in case if store.value.index in active}
