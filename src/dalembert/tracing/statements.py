"""The statements of a trace: straight-line code and, between it, the loops of the trace.

The parts of `placement.py` become statements. Values that one part computes for others are stored in arrays
"values k", each value once; constants and inputs need no storage.

A loop with inner loops becomes one `Loop` as well: its cases are the parts, selected in turn by a table, and
the parts of an inner loop are skipped once all samples are done with it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any, Final, final

import numpy as np
import numpy.typing as npt

from dalembert.tracing.address import Address
from dalembert.tracing.expression import Expression
from dalembert.tracing.graph import Graph
from dalembert.tracing.iteration import RecordedLoop, from_cell, is_condition, to_cell
from dalembert.tracing.placement import Placement
from dalembert.tracing.program import ArraySpec, IndexedStore, Loop, Program, Statement, Store, Straight

__all__ = ["assemble"]

VALUES: Final = "values {}"
"""The array of the values that one part computes for others."""


def assemble(
    graph: Graph,
    inputs: Sequence[ArraySpec],
    outputs: Sequence[ArraySpec],
    stores: Sequence[Store],
    check: Expression | None,
) -> Program:
    """Return the program that stores values of a trace in its outputs."""
    graph.grant(sys.maxsize)  # parts have copies of the nodes: as many as the trace, which was bounded
    states: tuple[ArraySpec, ...] = ()
    statements: tuple[Statement, ...] = (Straight(tuple(stores)),)
    tables: dict[str, npt.NDArray[Any]] = dict(graph.tables)
    if graph.loops:
        made = _Statements(Placement(graph, stores))
        statements = tuple(made.statements())
        states = tuple(made.states())
        tables |= made.tables
    graph.grant()
    return Program(tuple(inputs), tuple(outputs), states, statements, tables, check)


@final
class _Statements:
    """The statements of a trace, and the tables that they need."""

    def __init__(self, at: Placement) -> None:
        self.at = at
        self.tables: dict[str, npt.NDArray[np.int64]] = {}

    def states(self) -> Iterator[ArraySpec]:
        for part, kept in enumerate(self.at.kept):
            if kept:
                yield ArraySpec(VALUES.format(part), len(kept))
        for name, places in self.at.wanted.items():
            if places:
                yield ArraySpec(name, max(places) + 1)

    def statements(self) -> Iterator[Statement]:
        yield self._straight(self.at.first[None])
        for loop in self.at.live_loops(self.at.graph.loops):
            yield self._loop(loop)
            yield self._straight(self.at.after[loop.name])

    def _straight(self, part: int) -> Straight:
        return Straight(tuple(self._stores(part)))

    def _loop(self, loop: RecordedLoop) -> Loop:
        """Return the statement of a loop, with its inner loops."""
        parts = range(self.at.first[loop.name], self.at.last[loop.name] + 1)
        cases = {part: self._stores(part) for part in parts}
        used = [part for part in parts if cases[part]]
        order = [part for part in self._order(loop) if cases[part]]
        table = None
        if len(used) > 1:
            table = f"{loop.name} parts"
            self.tables[table] = np.array([used.index(part) for part in order], np.int64)
        skips = tuple(self._flag(self.at.owner[part], loop) for part in used)
        return Loop(
            len(order),
            False,
            table,
            tuple(
                tuple(IndexedStore(Address.fixed(s.array, s.position), s.value) for s in cases[part])
                for part in used
            ),
            self._flag(loop, None),
            skips if any(skips) else (),
        )

    def _order(self, loop: RecordedLoop) -> list[int]:
        """Return the parts of a loop in the order of their execution."""
        once = [self.at.first[loop.name]]
        for inner in self.at.live_loops(loop.inner):
            once += [*self._order(inner), self.at.after[inner.name]]
        return once * loop.count

    def _flag(self, loop: RecordedLoop | None, outer: RecordedLoop | None) -> Address | None:
        """Return the exit flag of a loop, or of the next loop around it inside `outer`, or None."""
        while loop is not None and loop is not outer:
            if loop.until is not None:
                return Address.fixed(loop.name, loop.until)
            loop = self.at.owner[self.at.before[loop.name]]
        return None

    def _stores(self, part: int) -> list[Store]:
        """Return the stores of a part: values for other parts, initial and final values of loops, and
        results."""
        local = _Local(self.at, part)
        owner, kept = self.at.owner[part], self.at.kept[part]
        found = [
            Store(VALUES.format(part), kept[node.index], to_cell(self.at.graph, local(node)))
            for node in self.at.inside[part]
            if node.index in kept
        ]
        for loop in self.at.live_loops(self.at.graph.loops if owner is None else owner.inner):
            if self.at.before[loop.name] == part:
                found += [
                    Store(loop.name, j, local(loop.start[j])) for j in sorted(self.at.wanted[loop.name])
                ]
        if owner is not None and part == self.at.last[owner.name]:
            found += [
                Store(owner.name, j, local(owner.result[j])) for j in sorted(self.at.wanted[owner.name])
            ]
        found += [
            Store(store.array, store.position, local(store.value))
            for store in self.at.stores
            if self.at.stored_in(store) == part
        ]
        return found


@final
class _Local:
    """The nodes of a trace as one part sees them: its own are computed, others loaded."""

    def __init__(self, at: Placement, part: int) -> None:
        self._at = at
        self._part = part
        self._known: dict[int, Expression] = {}
        for node in at.inside[part]:
            self._of(node)

    def __call__(self, node: Expression) -> Expression:
        return self._of(self._at.resolve(node))

    def _of(self, node: Expression) -> Expression:
        found = self._known.get(node.index)
        if found is None:
            found = self._known[node.index] = self._value(node)
        return found

    def _value(self, node: Expression) -> Expression:
        at, graph = self._at, self._at.graph
        own = at.place[node.index]
        if node.op == "load":
            name = at.recorded[node.data.array].name
            return graph.load(Address.fixed(name, node.data.offset))
        if not node.args:
            return node
        if own == self._part or at.computes(node, self._part):
            return self._compute(node)
        cell = Address.fixed(VALUES.format(own), at.kept[own][node.index])
        return from_cell(graph, cell, condition=is_condition(node))

    def _compute(self, node: Expression) -> Expression:
        """Return the operation on the values of this part, with a private copy of the product that a sum
        fuses."""
        at = self._at
        args = [at.resolve(item) for item in node.args]
        place = at.fused.get(node.index)
        local = [self._own(x) if j == place else self._of(x) for j, x in enumerate(args)]
        return at.graph.copy(node, local)

    def _own(self, product: Expression) -> Expression:
        args = [self._at.resolve(item) for item in product.args]
        return self._at.graph.copy(
            product, [self._own(x) if product.op == "neg" else self._of(x) for x in args]
        )
