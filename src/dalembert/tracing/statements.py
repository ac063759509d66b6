"""From a trace to the statements of a program: straight-line code, and between it the loops of the trace.

Code falls into *parts*, numbered in order: a part ends where a loop begins, and another begins after it, in a
step that has loops inside as in the function itself. An operation on what a loop carries stands in a part of
its step; every other stands outside, so that it is computed once. Among the parts that are left it comes as
late as all its users allow, and earlier only where fewer values then go from one part to another. Those are
kept in arrays "values k", each once; constants and inputs need not be.

A loop with others inside becomes one `Loop` as well: its cases are the parts, taken in turn by a table, and
the parts of an inner loop are skipped once all samples are done with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, final

import numpy as np
import numpy.typing as npt

from dalembert.errors import TracingError
from dalembert.tracing.address import Address
from dalembert.tracing.expression import Expression
from dalembert.tracing.graph import Graph
from dalembert.tracing.iteration import RecordedLoop, from_cell, is_condition, to_cell
from dalembert.tracing.operations import BOOLEAN_OPS
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
    tables: dict[str, npt.NDArray[Any]] = dict(graph.tables)
    if graph.loops:
        parts = _Parts(graph, stores)
        statements = tuple(parts.statements())
        states = tuple(parts.states())
        tables |= parts.tables
    return Program(tuple(inputs), tuple(outputs), states, statements, tables, check)


@final
class _Parts:
    """Where each node of a trace with loops is computed.

    Of a part: `owner`, the loop whose step it is of. Of a loop: the part `before` it, `after` it, and its
    `first` and `last` (of None: of the function).
    """

    def __init__(self, graph: Graph, stores: Sequence[Store]) -> None:
        self.graph = graph
        self.stores = stores
        self.tables: dict[str, npt.NDArray[np.int64]] = {}
        self.recorded = {name: loop for loop in _all(graph.loops) for name in (loop.name, loop.end)}
        self.wanted: dict[str, set[int]] = {loop.name: set() for loop in _all(graph.loops)}
        self.nodes = self._needed()
        self.args = {node.index: [self._resolved(item) for item in node.args] for node in self.nodes}
        self.owner: list[RecordedLoop | None] = []
        self.before: dict[str, int] = {}
        self.after: dict[str, int] = {}
        self.first: dict[str | None, int] = {}
        self.last: dict[str | None, int] = {}
        self._divide(None, graph.loops)
        self.users: dict[int, list[int]] = {}
        self.roots: dict[int, list[int]] = {}
        self.rank: dict[int, int] = {}
        self._rank()
        self.place = dict(self.rank)
        self._sink()
        self._hoist()
        self.kept: list[dict[int, int]] = [{} for _ in self.owner]
        self.inside: list[list[Expression]] = [[] for _ in self.owner]
        for node in self.nodes:
            own = self.place[node.index]
            self.inside[own].append(node)
            if self._is_kept(node) and any(user != own for user in self._used_in(node)):
                self.kept[own][node.index] = len(self.kept[own])

    def states(self) -> Iterator[ArraySpec]:
        for part, kept in enumerate(self.kept):
            if kept:
                yield ArraySpec(VALUES.format(part), len(kept))
        for name, places in self.wanted.items():
            if places:
                yield ArraySpec(name, max(places) + 1)

    def statements(self) -> Iterator[Statement]:
        yield self._straight(self.first[None])
        for loop in self._inside(self.graph.loops):
            yield self._loop(loop)
            yield self._straight(self.after[loop.name])

    def _straight(self, part: int) -> Straight:
        return Straight(tuple(self._stored(part)))

    def _loop(self, loop: RecordedLoop) -> Loop:
        """A loop and all that is inside it."""
        parts = range(self.first[loop.name], self.last[loop.name] + 1)
        cases = {part: self._stored(part) for part in parts}
        used = [part for part in parts if cases[part]]
        order = [part for part in self._order(loop) if cases[part]]
        table = None
        if len(used) > 1:
            table = f"{loop.name} parts"
            self.tables[table] = np.array([used.index(part) for part in order], np.int64)
        skips = tuple(self._flag(self.owner[part], loop) for part in used)
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
        """The parts of a loop as they follow each other."""
        once = [self.first[loop.name]]
        for inner in self._inside(loop.inner):
            once += [*self._order(inner), self.after[inner.name]]
        return once * loop.count

    def _flag(self, loop: RecordedLoop | None, outer: RecordedLoop | None) -> Address | None:
        """What tells that a sample is done with a loop or with one around it, inside the outer one."""
        while loop is not None and loop is not outer:
            if loop.until is not None:
                return Address.fixed(loop.name, loop.until)
            loop = self.owner[self.before[loop.name]]
        return None

    def _stored(self, part: int) -> list[Store]:
        """What a part stores: for other parts, to begin loops, to end its step, and as results."""
        local = _Local(self, part)
        owner, kept = self.owner[part], self.kept[part]
        found = [
            Store(VALUES.format(part), kept[node.index], to_cell(self.graph, local(node)))
            for node in self.inside[part]
            if node.index in kept
        ]
        for loop in self._inside(self.graph.loops if owner is None else owner.inner):
            if self.before[loop.name] == part:
                found += [Store(loop.name, j, local(loop.start[j])) for j in sorted(self.wanted[loop.name])]
        if owner is not None and part == self.last[owner.name]:
            found += [Store(owner.name, j, local(owner.result[j])) for j in sorted(self.wanted[owner.name])]
        if part == self.last[None]:
            found += [Store(store.array, store.position, local(store.value)) for store in self.stores]
        return found

    def _inside(self, loops: Sequence[RecordedLoop]) -> list[RecordedLoop]:
        return [loop for loop in loops if self.wanted[loop.name]]

    def _divide(self, owner: RecordedLoop | None, loops: Sequence[RecordedLoop]) -> None:
        """Number the parts of a step, or of the function."""
        name = None if owner is None else owner.name
        self.first[name] = len(self.owner)
        self.owner.append(owner)
        for loop in self._inside(loops):
            self.before[loop.name] = self.last[name] if name in self.last else self.first[name]
            self._divide(loop, loop.inner)
            self.after[loop.name] = self.last[name] = len(self.owner)
            self.owner.append(owner)
        self.last.setdefault(name, self.first[name])

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
                early = (self.after if node.data.array == loop.end else self.first)[loop.name]
            for item in self.args[node.index]:
                early = max(early, self.rank[item.index])
            self.rank[node.index] = early
            for item in self.args[node.index]:
                self._seen_from(early, item)
                self.users.setdefault(item.index, []).append(node.index)
        for loop in map(self.recorded.__getitem__, self.before):
            for j in self.wanted[loop.name]:
                self._root(loop.start[j], self.before[loop.name])
                self._root(loop.result[j], self.last[loop.name])
        for store in self.stores:
            self._root(store.value, self.last[None])

    def _root(self, node: Expression, part: int) -> None:
        node = self._resolved(node)
        self._seen_from(part, node)
        self.roots.setdefault(node.index, []).append(part)

    def _seen_from(self, part: int, node: Expression) -> int:
        """The last part of a node's own step, or of the function, that is done before a part that uses it."""
        own = self.owner[self.rank[node.index]]
        while self.owner[part] is not own:
            outer = self.owner[part]
            if outer is None:
                raise TracingError(
                    "a value that the step of a loop computed is used outside it; let the step return it as "
                    "a part of what it carries"
                )
            part = self.before[outer.name]
        return part

    def _used_in(self, node: Expression) -> list[int]:
        """The parts that need a node."""
        own = [self.place[user] for user in self.users.get(node.index, ())]
        return own + self.roots.get(node.index, [])

    def _sink(self) -> None:
        """As late as users allow: never into a loop, which would compute it many times."""
        for node in reversed(self.nodes):
            if node.args:
                self.place[node.index] = min(self._seen_from(part, node) for part in self._used_in(node))

    def _hoist(self) -> None:
        """Earlier again, where an operand then need not be kept for it alone."""
        for node in self.nodes:
            late = self.place[node.index]
            args = self.args[node.index]
            own = self.owner[self.rank[node.index]]
            early = max(
                (self.place[item.index] for item in args if self.owner[self.place[item.index]] is own),
                default=0,
            )
            early = max(early, self.rank[node.index])
            if args and early < late and any(self._only_user(item, late) for item in args if item.args):
                self.place[node.index] = early

    def _is_kept(self, node: Expression) -> bool:
        """Leaves are where they are, and a comparison of leaves costs no more than to keep its outcome."""
        leaves = all(not item.args for item in self.args[node.index])
        return bool(node.args) and not (leaves and node.op in BOOLEAN_OPS)

    def _only_user(self, item: Expression, part: int) -> bool:
        used = self._used_in(item)
        return self.place[item.index] < part and sum(user != self.place[item.index] for user in used) == 1


def _all(loops: Sequence[RecordedLoop]) -> Iterator[RecordedLoop]:
    for loop in loops:
        yield loop
        yield from _all(loop.inner)


@final
class _Local:
    """The nodes of a trace as one part sees them: its own are computed, others loaded."""

    def __init__(self, parts: _Parts, part: int) -> None:
        self._parts = parts
        self._part = part
        self._known: dict[int, Expression] = {}
        for node in parts.inside[part]:
            self._of(node)

    def __call__(self, node: Expression) -> Expression:
        return self._of(self._parts._resolved(node))

    def _of(self, node: Expression) -> Expression:
        found = self._known.get(node.index)
        if found is None:
            found = self._known[node.index] = self._made(node)
        return found

    def _made(self, node: Expression) -> Expression:
        parts, graph = self._parts, self._parts.graph
        own = parts.place[node.index]
        if node.op == "load":
            name = parts.recorded[node.data.array].name
            return graph.load(Address.fixed(name, node.data.offset))
        if not node.args:
            return node
        if own == self._part or not parts._is_kept(node):
            return graph.with_arguments(node, [self._of(item) for item in parts.args[node.index]])
        cell = Address.fixed(VALUES.format(own), parts.kept[own][node.index])
        return from_cell(graph, cell, condition=is_condition(node))
