"""From a trace to the statements of a program: straight-line code, and between it the loops of the trace.

With n loops there are 2 n + 1 parts: part 2 k is straight-line code, part 2 k + 1 the step of loop k. An
operation on what loop k carries stands in its step; every other stands in straight-line code, as late as all
its users allow and as early as what it needs does: earlier only where fewer values then go from one part to
another. Those are kept in arrays "values k", each once; constants and inputs need not be. What a step uses
and does not change is so computed once, before the loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, final

from dalembert.errors import TracingError
from dalembert.tracing.address import Address
from dalembert.tracing.expression import Expression
from dalembert.tracing.graph import Graph
from dalembert.tracing.iteration import from_cell, is_condition, to_cell
from dalembert.tracing.program import ArraySpec, IndexedStore, Loop, Program, Statement, Store, Straight

__all__ = ["assemble"]

VALUES: Final = "values {}"
"""The array of what one part hands to others."""


def assemble(
    graph: Graph,
    inputs: Sequence[ArraySpec],
    outputs: Sequence[ArraySpec],
    stores: Sequence[Store],
    check: Expression | None,
) -> Program:
    """The program that stores values of a trace in its outputs."""
    states: tuple[ArraySpec, ...] = ()
    statements: tuple[Statement, ...] = (Straight(tuple(stores)),)
    if graph.loops:
        states, statements = _Parts(graph, stores).write()
    return Program(
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        states=states,
        statements=statements,
        tables=dict(graph.tables),
        check=check,
    )


@final
class _Parts:
    """Where each node of a trace with loops is computed."""

    def __init__(self, graph: Graph, stores: Sequence[Store]) -> None:
        self.graph = graph
        self.stores = stores
        self.recorded = {name: loop for loop in graph.loops for name in (loop.name, loop.end)}
        self.wanted: dict[str, set[int]] = {loop.name: set() for loop in graph.loops}
        self.nodes = self._needed()
        self.args = {node.index: [self._resolved(item) for item in node.args] for node in self.nodes}
        self.loops = [loop for loop in graph.loops if self.wanted[loop.name]]
        self.number = {name: k for k, loop in enumerate(self.loops) for name in (loop.name, loop.end)}
        self.last = 2 * len(self.loops)
        self.users: dict[int, list[int]] = {}
        self.roots: dict[int, list[int]] = {}
        self.place: dict[int, int] = {}
        self._rank()
        self._sink()
        self._hoist()
        self.kept: dict[int, dict[int, int]] = {part: {} for part in range(0, self.last + 1, 2)}
        for node in self.nodes:
            own = self.place[node.index]
            if node.args and any(user != own for user in self._used_in(node)):
                self.kept[own][node.index] = len(self.kept[own])

    def write(self) -> tuple[tuple[ArraySpec, ...], tuple[Statement, ...]]:
        """The states and the statements."""
        states = [ArraySpec(VALUES.format(part // 2), len(kept)) for part, kept in self.kept.items() if kept]
        statements: list[Statement] = []
        for k, loop in enumerate(self.loops):
            places = sorted(self.wanted[loop.name])
            states.append(ArraySpec(loop.name, places[-1] + 1))
            before, inside = _Local(self, 2 * k), _Local(self, 2 * k + 1)
            starts = [Store(loop.name, j, before(loop.start[j])) for j in places]
            statements.append(Straight((*self._handed_on(before), *starts)))
            case = tuple(IndexedStore(Address.fixed(loop.name, j), inside(loop.result[j])) for j in places)
            until = None if loop.until is None else Address.fixed(loop.name, loop.until)
            statements.append(Loop(loop.count, False, None, (case,), until))
        after = _Local(self, self.last)
        last = [Store(store.array, store.position, after(store.value)) for store in self.stores]
        statements.append(Straight((*self._handed_on(after), *last)))
        return tuple(states), tuple(statements)

    def _needed(self) -> list[Expression]:
        """The nodes that outputs depend on, through loops too; `wanted` gets their places in loops."""
        seen: dict[int, Expression] = {}
        stack = [store.value for store in self.stores]
        while stack:
            node = self._resolved(stack.pop())
            if node.index in seen:
                continue
            seen[node.index] = node
            stack.extend(node.args)
            if node.op == "load":
                loop = self.recorded[node.data.array]
                for j in {node.data.offset, loop.until} - self.wanted[loop.name] - {None}:
                    self.wanted[loop.name].add(j)
                    stack += [loop.start[j], loop.result[j]]
        return [seen[index] for index in sorted(seen)]

    def _resolved(self, node: Expression) -> Expression:
        """A value that its loop does not change is what it was before."""
        while node.op == "load" and node.data.offset not in self.recorded[node.data.array].result:
            node = self.recorded[node.data.array].start[node.data.offset]
        return node

    def _rank(self) -> None:
        """The earliest part of each node, and the parts of its users."""
        for node in self.nodes:
            early = 0
            if node.op == "load":
                loop = self.recorded[node.data.array]
                early = 2 * self.number[loop.name] + (2 if node.data.array == loop.end else 1)
            for item in self.args[node.index]:
                early = max(early, self.place[item.index])
            self.place[node.index] = early
            for item in self.args[node.index]:
                self._require_inside(item, early)
                self.users.setdefault(item.index, []).append(node.index)
        for k, loop in enumerate(self.loops):
            for j in self.wanted[loop.name]:
                self._root(loop.start[j], 2 * k)
                self._root(loop.result[j], 2 * k + 1)
        for store in self.stores:
            self._root(store.value, self.last)

    def _root(self, node: Expression, part: int) -> None:
        node = self._resolved(node)
        self._require_inside(node, part)
        self.roots.setdefault(node.index, []).append(part)

    def _require_inside(self, node: Expression, part: int) -> None:
        if self.place[node.index] % 2 and self.place[node.index] != part:
            raise TracingError(
                "a value that the step of a loop computed is used outside it; let the step return it as a "
                "part of what it carries"
            )

    def _used_in(self, node: Expression) -> list[int]:
        """The parts that need a node."""
        own = [self.place[user] for user in self.users.get(node.index, ())]
        return own + self.roots.get(node.index, [])

    def _sink(self) -> None:
        """As late as users allow: never into a step, which would compute it many times."""
        for node in reversed(self.nodes):
            if node.args and self.place[node.index] % 2 == 0:
                self.place[node.index] = min(part // 2 * 2 for part in self._used_in(node))

    def _hoist(self) -> None:
        """Earlier again, where an operand then need not be kept for it alone."""
        for node in self.nodes:
            late = self.place[node.index]
            if not node.args or late % 2:
                continue
            args = self.args[node.index]
            early = max(self.place[item.index] for item in args)
            if early < late and any(self._only_user(item, late) for item in args if item.args):
                self.place[node.index] = early

    def _only_user(self, item: Expression, part: int) -> bool:
        used = self._used_in(item)
        return self.place[item.index] < part and sum(user != self.place[item.index] for user in used) == 1

    def _handed_on(self, local: _Local) -> list[Store]:
        """What a part keeps for others."""
        array = VALUES.format(local.part // 2)
        kept = self.kept[local.part]
        return [
            Store(array, kept[node.index], to_cell(self.graph, local(node)))
            for node in self.nodes
            if node.index in kept
        ]


@final
class _Local:
    """The nodes of a trace as one part sees them: its own are computed, others loaded."""

    def __init__(self, parts: _Parts, part: int) -> None:
        self.part = part
        self._parts = parts
        self._known: dict[int, Expression] = {}
        graph, known = parts.graph, self._known
        for node in parts.nodes:
            own = parts.place[node.index]
            if node.op == "load":
                name = parts.recorded[node.data.array].name
                known[node.index] = graph.load(Address.fixed(name, node.data.offset))
            elif not node.args:
                known[node.index] = node
            elif own == part:
                args = [known[item.index] for item in parts.args[node.index]]
                known[node.index] = graph.with_arguments(node, args)
            elif node.index in parts.kept.get(own, {}):
                cell = Address.fixed(VALUES.format(own // 2), parts.kept[own][node.index])
                known[node.index] = from_cell(graph, cell, condition=is_condition(node))

    def __call__(self, node: Expression) -> Expression:
        return self._known[self._parts._resolved(node).index]
