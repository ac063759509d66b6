"""Code motion for traces with loops: the part in which each node is computed, and the parts as statements.

Code is divided into *parts*, numbered in order: a part ends where a loop begins, and the next begins after
the loop, in the function itself and in the step of a loop with inner loops. An operation on a carried value
belongs to a part of the step. Every other operation is loop-invariant and is hoisted out of the loop, so that
it is computed once; the exception is an operation that only a loop of one iteration needs, since that loop
may not run at all. Among the parts that remain, an operation is placed as late as all its users allow, and
earlier only if fewer values then have to be kept from one part to another. A product that is fused into a sum
is placed with the sum.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, groupby
from typing import Final, final

import numpy as np
import numpy.typing as npt

from dalembert.errors import TracingError
from dalembert.tracing.expression import Address, Expression
from dalembert.tracing.graph import Graph, check_count
from dalembert.tracing.iteration import RecordedLoop, all_loops, from_cell, is_condition, to_cell
from dalembert.tracing.operations import BOOLEAN_OPS
from dalembert.tracing.program import Append, ArraySpec, Loop, Repeat, Statement, Store, Straight

MAX_RECOMPUTED_OPERATIONS = 12
"""Operations up to which a loop of one iteration recomputes a value instead of loading it: the loop may not
run at all, and storing the value for it would always cost."""

VALUES: Final = "values {}"
"""The array of the values that one part computes for others."""

APPENDED: Final = "{} appended"
"""The array of the conditions and values of the rows that one iteration of a loop may append to sets."""


@final
class Placement:
    """The part in which each node of a trace with loops is computed, and the statements of a program.

    For each part: `owner`, the loop whose step it belongs to (None: the function), the nodes `inside` it, and
    those that are `kept` in memory for other parts, with their positions there. For each loop: the part
    `before` it, the part `after` it, the `first` and `last` part of its step (None: of the function), and the
    carried places that are `wanted`. For each node: its part, `place`; for a sum also the operand that is
    `fused`. The statements need the index `tables`.
    """

    def __init__(self, graph: Graph, stores: Sequence[Store]) -> None:
        self.graph, self.stores = graph, stores
        self.computed = [store for store in stores if not self._is_row(store.value)]
        self.tables: dict[str, npt.NDArray[np.int64]] = {}
        self.recorded = {name: loop for loop in all_loops(graph.loops) for name in (loop.name, loop.end)}
        self.wanted: dict[str, set[int]] = {loop.name: set() for loop in all_loops(graph.loops)}
        self.stored: dict[str, set[int]] = {}
        self.live: set[str] = set()
        self.outer = {inner.name: loop for loop in all_loops(graph.loops) for inner in loop.inner}
        self.makers: dict[str, list[RecordedLoop]] = {}
        self.listers: dict[str, list[RecordedLoop]] = {}
        self.columns: dict[str, dict[int, list[Expression]]] = {}
        for loop in all_loops(graph.loops):
            for array, offset, values in _stored_values(loop):
                if loop not in (makers := self.makers.setdefault(array, [])):
                    makers.append(loop)
                column = offset % max(graph.families[array].width, 1)
                self.columns.setdefault(array, {}).setdefault(column, []).extend(values)
            for name in dict.fromkeys(append.to for append in loop.appends):
                self.listers.setdefault(name, []).append(loop)
        self._dense: dict[str, dict[int, int]] = {}
        self.output: dict[int, int] = {}
        self.asked: list[tuple[Expression, int]] = []
        self.nodes = self._find_live_nodes()
        check_count(sum(bool(node.args) for node in self.nodes))
        self.args = {node.index: [self.resolve(item) for item in node.args] for node in self.nodes}
        self.owner: list[RecordedLoop | None] = []
        self.before: dict[str, int] = {}
        self.after: dict[str, int] = {}
        self.first: dict[str | None, int] = {}
        self.last: dict[str | None, int] = {}
        self._divide(None, graph.loops)
        # `rank` is the earliest legal part of a node. Fusing comes before users are counted, because a fused
        # product is no longer a value of its own; sinking comes before hoisting, which undoes it selectively.
        self.users: dict[int, list[int]] = {}
        self.roots: dict[int, list[int]] = {}
        self.rank: dict[int, int] = {}
        self.fused: dict[int, int] = {}
        self._rank()
        self._sink_into_single_pass_loops()
        self._fuse()
        self._find_users()
        self.place = dict(self.rank)
        # Sink each operation to the latest part that its users allow, never into a loop; in reverse order the
        # users of a node have their final part before the node itself is placed.
        for node in reversed(self.nodes):
            if node.args:
                self.place[node.index] = min(self._seen_from(part, node) for part in self._used_in(node))
        self._hoist()
        self.cheap = self._cheap_nodes() if any(loop.is_branch for loop in all_loops(graph.loops)) else set()
        self.delivered: dict[int, list[Store]] = {}
        for store in stores:
            self.delivered.setdefault(self.stored_in(store), []).append(store)
        self.kept: list[dict[int, int]] = [{} for _ in self.owner]
        self.inside: list[list[Expression]] = [[] for _ in self.owner]
        for node in self.nodes:
            own = self.place[node.index]
            self.inside[own].append(node)
            # A value crosses parts through memory, unless every other user computes it again.
            if any(user != own and not self.computes(node, user) for user in self._used_in(node)):
                self.kept[own][node.index] = len(self.kept[own])

    def live_loops(self, loops: Sequence[RecordedLoop]) -> list[RecordedLoop]:
        """Return the loops of which some result is needed."""
        return [loop for loop in loops if loop.name in self.live]

    def _divide(self, owner: RecordedLoop | None, loops: Sequence[RecordedLoop]) -> None:
        """Number the parts of a step, or of the function."""
        name = None if owner is None else owner.name
        self.first[name] = len(self.owner)
        self.owner.append(owner)
        for loop in self.live_loops(loops):
            self.before[loop.name] = self.last[name] if name in self.last else self.first[name]
            self._divide(loop, loop.inner)
            self.after[loop.name] = self.last[name] = len(self.owner)
            self.owner.append(owner)
        self.last.setdefault(name, self.first[name])

    def _find_live_nodes(self) -> list[Expression]:
        """Return the nodes that the outputs depend on, also through loops.

        Fills `wanted` (the carried places that are needed), `output` (the first output that needs a node) and
        `asked` (the stored values, each with the number of its output)."""
        seen: dict[int, Expression] = {}
        for number, (_, stores) in enumerate(groupby(self.stores, lambda store: store.array)):
            stack: list[Expression] = []
            for store in stores:
                stack += self._needed_by(store.value.data) if self._is_row(store.value) else [store.value]
            self.asked += [(value, number) for value in stack]
            while stack:
                node = self.resolve(stack.pop())
                if node.index in seen:
                    continue
                seen[node.index] = node
                self.output[node.index] = number
                stack.extend(node.args)
                if node.op == "load":
                    needed = list(self._needed_by(node.data))
                    stack += needed
                    self.asked += [(value, number) for value in needed]
        return [seen[index] for index in sorted(seen)]

    def _is_row(self, node: Expression) -> bool:
        """Return whether a result, one of thousands, is an element of a family, and needs no code motion."""
        return node.op == "load" and node.data.array in self.graph.families

    def _needed_by(self, address: Address) -> Iterator[Expression]:
        """Yield the values that a load needs, and note which loops and which of their results are needed."""
        loop = self.recorded.get(address.array)
        if loop is not None:
            # A carried value needs its initial value and its update, and so does the exit flag.
            yield from self._mark_live(loop)
            yield from self._carry(loop, address.offset)
        elif address.array in self.graph.families:
            family = self.graph.families[address.array]
            column = address.offset % max(family.width, 1)
            own = self.stored.setdefault(family.storage, set())
            if column not in own:
                own.add(column)
                for maker in self.makers.get(family.storage, ()):
                    yield from self._mark_live(maker)
                yield from self.columns.get(family.storage, {}).get(column, ())

    def _carry(self, loop: RecordedLoop, place: int) -> Iterator[Expression]:
        if place not in self.wanted[loop.name]:
            self.wanted[loop.name].add(place)
            yield loop.start[place]
            yield loop.result[place]

    def _mark_live(self, loop: RecordedLoop) -> Iterator[Expression]:
        """Yield what a loop needs to run at all: its exit flag, the rows that it visits, the loops around."""
        if loop.name in self.live:
            return
        self.live.add(loop.name)
        if loop.until is not None:
            yield from self._carry(loop, loop.until)
        if loop.name in self.outer:
            yield from self._mark_live(self.outer[loop.name])
        sets = [append.to for append in loop.appends]
        name = loop.rows
        while name is not None:
            sets.append(name)
            name = self.graph.rows[name].parent
        for name in sets:
            for lister in self.listers.get(name, ()):
                yield from self._mark_live(lister)
                for append in lister.appends:
                    if append.to == name:
                        yield append.condition

    def resolve(self, node: Expression) -> Expression:
        """Return the value before the loop for a carried value that the loop does not change."""
        while node.op == "load":
            loop = self.recorded.get(node.data.array)
            if loop is None or node.data.offset in loop.result:
                break
            node = loop.start[node.data.offset]
        return node

    def _rank(self) -> None:
        """Find the earliest part of each node."""
        for node in self.nodes:
            early = self._loaded_from(node.data) if node.op == "load" else 0
            self.rank[node.index] = max([early, *(self.rank[item.index] for item in self.args[node.index])])

    def _loaded_from(self, address: Address) -> int:
        """Return the earliest part that can load an element."""
        if address.index is not None and address.index.loop not in self.first:
            raise TracingError(f"a value is used outside the loop in which it is computed: {address}")
        early = 0 if address.index is None else self.first[address.index.loop]
        loop = self.recorded.get(address.array)
        if loop is not None:
            return max(early, (self.after if address.array == loop.end else self.first)[loop.name])
        family = self.graph.families.get(address.array)
        if family is None:
            return early
        ready = [self.after[name] for name in family.after]
        if family.carried_by is not None:
            ready.append(self.first[family.carried_by])
        return max([early, *ready])

    def _sink_into_single_pass_loops(self) -> None:
        """Move operations that only a loop of one iteration needs into its step."""
        # A loop of one iteration is a branch: its step runs only for samples that are not done. An operation
        # placed before it would always run. Users are visited before operands, so that operands follow them.
        homes: dict[int, set[int]] = {}
        for name, before in self.before.items():
            loop = self.recorded[name]
            for j in self.wanted[name]:
                homes.setdefault(self.resolve(loop.start[j]).index, set()).add(before)
                homes.setdefault(self.resolve(loop.result[j]).index, set()).add(self.last[name])
            for value in self._row_values(loop):
                homes.setdefault(self.resolve(value).index, set()).add(self._stored_in(loop))
        for store in self.computed:
            homes.setdefault(self.resolve(store.value).index, set()).add(self.last[None])
        for node in reversed(self.nodes):
            if node.args and node.index in homes:
                self.rank[node.index] = self._innermost_part(self.rank[node.index], homes[node.index])
            for item in self.args[node.index]:
                homes.setdefault(item.index, set()).add(self.rank[node.index])

    def _innermost_part(self, part: int, users: set[int]) -> int:
        """Return the earliest part, in the innermost loop of one iteration that contains all `users`."""
        while True:
            loops = {self._loop_within(self.owner[part], user) for user in users}
            loop = loops.pop()
            if loops or loop is None or not loop.is_branch:
                return part
            part = self.first[loop.name]

    def _loop_within(self, own: RecordedLoop | None, part: int) -> RecordedLoop | None:
        """Return the loop directly inside the step of `own` that contains a part, or None."""
        found = None
        while (loop := self.owner[part]) is not own:
            if loop is None:
                return None
            found, part = loop, self.before[loop.name]
        return found

    def _fuse(self) -> None:
        """Choose the products that are fused into sums (a b + c, rounded once), of two the later.

        A product with one use is fused, as in `codegen.schedule`: the sum gets its factors, and owns a copy
        of the product in its part (`_Local`); other users compute the product again.
        """
        # Only uses for the same output, or an earlier one, count: the bits of an output must not depend on
        # what is computed for later outputs.
        uses: Counter[int] = Counter()
        for node in self.nodes:
            uses.update(
                x.index for x in self.args[node.index] if self.output[x.index] == self.output[node.index]
            )
        asked = ((self.resolve(node).index, number) for node, number in self.asked)
        uses.update(index for index, number in asked if self.output[index] == number)

        def fits(item: Expression, total: Expression) -> bool:
            chain = [item] if item.op != "neg" else [item, self.args[item.index][0]]
            home = self.owner[self.rank[total.index]]
            return chain[-1].op == "mul" and all(
                (uses[x.index] == 1 or self.output[x.index] < self.output[total.index])
                and self.owner[self.rank[x.index]] is home
                for x in chain
            )

        for node in self.nodes:
            if node.op in ("add", "sub"):
                places = [place for place in (1, 0) if fits(self.args[node.index][place], node)]
                if places:
                    self.fused[node.index] = places[0]
        for index, place in self.fused.items():
            args = self.args[index]
            product = args[place] if args[place].op == "mul" else self.args[args[place].index][0]
            self.args[index] = [*args[:place], *self.args[product.index], *args[place + 1 :]]

    def _find_users(self) -> None:
        """Find the users of each node and drop nodes without users."""
        for loop in map(self.recorded.__getitem__, self.before):
            for j in self.wanted[loop.name]:
                self._root(loop.start[j], self.before[loop.name])
                self._root(loop.result[j], self.last[loop.name])
            for value in self._row_values(loop):
                self._root(value, self._stored_in(loop))
        for store in self.computed:
            self._root(store.value, self.stored_in(store))
        used = []
        for node in reversed(self.nodes):
            if node.index in self.users or node.index in self.roots:
                used.append(node)
                for item in self.args[node.index]:
                    self._seen_from(self.rank[node.index], item)
                    self.users.setdefault(item.index, []).append(node.index)
        self.nodes = used[::-1]

    def _row_values(self, loop: RecordedLoop) -> list[Expression]:
        """Return the values that a loop over rows stores and appends, without those that nothing reads."""
        stored = (values for array, offset, values in _stored_values(loop) if self._is_read(array, offset))
        return [*chain.from_iterable(stored), *(append.condition for append in loop.appends)]

    def _is_read(self, array: str, offset: int) -> bool:
        return offset % max(self.graph.families[array].width, 1) in self.stored.get(array, ())

    def _stored_in(self, loop: RecordedLoop) -> int:
        """Return the part in which a loop stores and appends rows: its last or, if it only stores, the one
        before it."""
        return self.last[loop.name] if loop.count else self.before[loop.name]

    def stored_in(self, store: Store) -> int:
        """Return the part that stores a result: the first that has it."""
        value, ranks = store.value, self.rank
        part = self._loaded_from(value.data) if self._is_row(value) else ranks[self.resolve(value).index]
        return part if self.owner[part] is None else self.last[None]

    def _root(self, node: Expression, part: int) -> None:
        node = self.resolve(node)
        self._seen_from(part, node)
        self.roots.setdefault(node.index, []).append(part)

    def _seen_from(self, part: int, node: Expression) -> int:
        """Return the last part at the loop level of a node that runs no later than a part using it."""
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
        """Return the parts that need a node."""
        own = [self.place[user] for user in self.users.get(node.index, ())]
        return own + self.roots.get(node.index, [])

    def _hoist(self) -> None:
        """Hoist an operation again if one of its operands is then no longer kept in memory for it alone."""
        for node in self.nodes:
            late = self.place[node.index]
            args = self.args[node.index]
            own = self.owner[self.rank[node.index]]
            early = max(
                (self.place[item.index] for item in args if self.owner[self.place[item.index]] is own),
                default=0,
            )
            early = max(early, self.rank[node.index])
            # Its result is then kept in memory in place of an operand that it alone needs from there.
            if early < late and any(
                self.place[item.index] < late
                and sum(user != self.place[item.index] for user in self._used_in(item)) == 1
                for item in args
                if item.args
            ):
                self.place[node.index] = early

    def computes(self, node: Expression, part: int) -> bool:
        """Return whether a part computes a node itself, even if the node is placed elsewhere.

        Leaves are available in every part, a comparison of leaves costs no more than a load of its result,
        and a loop of one iteration recomputes cheap nodes."""
        leaves = all(not item.args for item in self.args[node.index])
        owner = self.owner[part]
        again = owner is not None and owner.is_branch and node.index in self.cheap
        return not node.args or (leaves and node.op in BOOLEAN_OPS) or again

    def _cheap_nodes(self) -> set[int]:
        """Return the nodes that at most `MAX_RECOMPUTED_OPERATIONS` operations compute from the inputs."""
        behind: dict[int, frozenset[int]] = {}
        for node in self.nodes:
            if not node.args and node.op != "load":
                behind[node.index] = frozenset()
            elif node.args and all(item.index in behind for item in self.args[node.index]):
                made = frozenset((node.index,)).union(*(behind[item.index] for item in self.args[node.index]))
                if len(made) <= MAX_RECOMPUTED_OPERATIONS:
                    behind[node.index] = made
        return {index for index, made in behind.items() if made}

    # The parts become statements: straight-line code and, between it, the loops of the trace. Values that one
    # part computes for others are stored in arrays "values k", each value once; constants and inputs need no
    # storage. A loop with inner loops becomes one `Loop` as well: its cases are the parts, selected in turn
    # by a table, and the parts of an inner loop are skipped once all samples are done with it.

    def states(self) -> Iterator[ArraySpec]:
        for part, kept in enumerate(self.kept):
            if kept:
                yield ArraySpec(VALUES.format(part), len(kept))
        for name, places in self.wanted.items():
            if places:
                yield ArraySpec(name, max(places) + 1)
        for name, family in self.graph.families.items():
            if self.stored.get(name) and family.storage == name and name in self.makers:
                width = len(self.stored[name]) if family.sparse else family.width
                yield ArraySpec(name, (self.graph.rows[family.rows].size + family.rest) * width)
        for loop in all_loops(self.graph.loops):
            if loop.appends and loop.name in self.live:
                yield ArraySpec(APPENDED.format(loop.name), sum(1 + len(x.values) for x in loop.appends))

    def statements(self) -> Iterator[Statement]:
        if self.graph.rows:
            yield from self._block(None)  # type: ignore[misc]
            return
        yield Straight(tuple(self._stores(self.first[None])))
        for loop in self.live_loops(self.graph.loops):
            yield self._loop(loop)
            yield Straight(tuple(self._stores(self.after[loop.name])))

    def _block(self, owner: RecordedLoop | None) -> Iterator[Straight | Repeat | Append]:
        """Yield the statements of a step, or of the function, where loops are nested."""
        yield Straight(tuple(self._stores(self.first[owner and owner.name])))
        for loop in self.live_loops(self.graph.loops if owner is None else owner.inner):
            if loop.count:
                until = None if loop.until is None else Address.fixed(loop.name, loop.until)
                body = tuple(
                    item for item in self._block(loop) if not isinstance(item, Straight) or item.stores
                )
                yield Repeat(loop.name, loop.count, loop.rows, body, until, loop.empties, loop.bounds)
            yield Straight(tuple(self._stores(self.after[loop.name])))
        if owner is not None:
            yield from self._appends(owner)

    def _appends(self, loop: RecordedLoop) -> Iterator[Append]:
        """Yield the appends of a loop, whose values are in cells of its own."""
        array, cell = APPENDED.format(loop.name), 0
        for append in loop.appends:
            copies = [
                (address, Address.fixed(array, cell + 1 + k))
                for k, (address, _) in enumerate(append.values)
                if self._is_read(address.array, address.offset)
            ]
            yield Append(append.to, append.entry, Address.fixed(array, cell), tuple(copies))
            cell += 1 + len(append.values)

    def _append_stores(self, loop: RecordedLoop, local: _Local) -> Iterator[Store]:
        array, cell = APPENDED.format(loop.name), 0
        for append in loop.appends:
            yield Store.fixed(array, cell, local(append.condition))
            for k, (address, value) in enumerate(append.values):
                if self._is_read(address.array, address.offset):
                    yield Store.fixed(array, cell + 1 + k, local(value))
            cell += 1 + len(append.values)

    def _row_stores(self, loop: RecordedLoop, local: _Local) -> Iterator[Store]:
        for store in loop.stores:
            if self._is_read(store.address.array, store.address.offset):
                row = None if store.row is None else local(store.row)
                yield Store(self.dense(store.address), local(store.value), store.accumulate, row)

    def dense(self, address: Address) -> Address:
        """Return where an element of an array is without the columns that nothing reads."""
        family = self.graph.families[address.array]
        if not family.sparse:
            return address
        if address.array not in self._dense:
            self._dense[address.array] = {k: n for n, k in enumerate(sorted(self.stored[address.array]))}
        places = self._dense[address.array]
        return replace(address, scale=len(places), offset=places[address.offset])

    def _loop(self, loop: RecordedLoop) -> Loop:
        """Return the statement of a loop, with its inner loops."""
        parts = range(self.first[loop.name], self.last[loop.name] + 1)
        cases = {part: self._stores(part) for part in parts}
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
            tuple(tuple(cases[part]) for part in used),
            self._flag(loop, None),
            skips if any(skips) else (),
        )

    def _order(self, loop: RecordedLoop) -> list[int]:
        """Return the parts of a loop in the order of their execution."""
        once = [self.first[loop.name]]
        for inner in self.live_loops(loop.inner):
            once += [*self._order(inner), self.after[inner.name]]
        return once * loop.count

    def _flag(self, loop: RecordedLoop | None, outer: RecordedLoop | None) -> Address | None:
        """Return the exit flag of a loop, or of the next loop around it inside `outer`, or None."""
        while loop is not None and loop is not outer:
            if loop.until is not None:
                return Address.fixed(loop.name, loop.until)
            loop = self.owner[self.before[loop.name]]
        return None

    def _stores(self, part: int) -> list[Store]:
        """Return the stores of a part: values for other parts, those of loops, and results."""
        local = _Local(self, part)
        owner, kept = self.owner[part], self.kept[part]
        found = [
            Store.fixed(VALUES.format(part), kept[node.index], to_cell(self.graph, local(node)))
            for node in self.inside[part]
            if node.index in kept
        ]
        for loop in self.live_loops(self.graph.loops if owner is None else owner.inner):
            if self.before[loop.name] == part:
                found += [
                    Store.fixed(loop.name, j, local(loop.start[j])) for j in sorted(self.wanted[loop.name])
                ]
                if not loop.count:
                    found += self._row_stores(loop, local)
        if owner is not None and part == self.last[owner.name]:
            found += [
                Store.fixed(owner.name, j, local(owner.result[j])) for j in sorted(self.wanted[owner.name])
            ]
            found += [*self._row_stores(owner, local), *self._append_stores(owner, local)]
        return found + [replace(store, value=local(store.value)) for store in self.delivered.get(part, ())]


def _stored_values(loop: RecordedLoop) -> Iterator[tuple[str, int, list[Expression]]]:
    """Yield (array, offset, values that it takes) of all that a loop over rows writes."""
    for store in loop.stores:
        yield store.address.array, store.address.offset, store.values
    for append in loop.appends:
        for address, value in append.values:
            yield address.array, address.offset, [value]


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
        if node.op == "load":
            address = node.data
            if address.array in at.recorded:
                return graph.load(Address.fixed(at.recorded[address.array].name, address.offset))
            family = graph.families.get(address.array)
            return node if family is None else graph.load(at.dense(replace(address, array=family.storage)))
        if not node.args:
            return node
        own = at.place[node.index]
        if own == self._part or at.computes(node, self._part):
            return self._compute(node, at.fused.get(node.index))
        cell = Address.fixed(VALUES.format(own), at.kept[own][node.index])
        return from_cell(graph, cell, condition=is_condition(node))

    def _compute(self, node: Expression, fused: int | None) -> Expression:
        """Return the operation on values of this part, with its own copy of the product that it fuses."""
        args = [self._at.resolve(item) for item in node.args]
        local = [
            self._compute(x, 0 if x.op == "neg" else None) if j == fused else self._of(x)
            for j, x in enumerate(args)
        ]
        return self._at.graph.copy(node, local)
