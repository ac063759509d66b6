"""Where each node of a trace with loops is computed.

Code falls into *parts*, numbered in order: a part ends where a loop begins, and another begins after it, in a
step that has loops inside as in the function itself. An operation on what a loop carries stands in a part of
its step; every other stands outside, so that it is computed once, unless it is needed in a loop of one pass
alone, which may not run at all. Among the parts that are left it comes as
late as all its users allow, and earlier only where fewer values then go from one part to another. A product
that is fused into a sum stands where the sum does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import final

from dalembert.errors import TracingError
from dalembert.tracing.expression import Expression
from dalembert.tracing.fusing import fused_products
from dalembert.tracing.graph import Graph
from dalembert.tracing.iteration import RecordedLoop
from dalembert.tracing.operations import BOOLEAN_OPS
from dalembert.tracing.program import Store
from dalembert.tracing.size import check_count

__all__ = ["Placement"]

LIGHT = 12
"""Operations that a loop of one pass rather does again than have their outcome kept: it may not run at
all."""


@final
class Placement:
    """Where each node of a trace with loops is computed.

    Of a part: `owner`, the loop whose step it is of; the nodes `inside` it, and which of them are `kept` for
    other parts, with their places. Of a loop: the part `before` it, `after` it, its `first` and `last` (of
    None: of the function), and the places that are `wanted`. Of a node: its part, `place`, and for sums the
    operand that is `fused`.
    """

    def __init__(self, graph: Graph, stores: Sequence[Store]) -> None:
        self.graph = graph
        self.stores = stores
        self.recorded = {name: loop for loop in _all(graph.loops) for name in (loop.name, loop.end)}
        self.wanted: dict[str, set[int]] = {loop.name: set() for loop in _all(graph.loops)}
        self.output: dict[int, int] = {}
        self.asked: list[tuple[Expression, int]] = []
        self.nodes = self._needed()
        check_count(sum(bool(node.args) for node in self.nodes))
        self.args = {node.index: [self.resolved(item) for item in node.args] for node in self.nodes}
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
        self._enter()
        self._fuse()
        self._find_users()
        self.place = dict(self.rank)
        self._sink()
        self._hoist()
        self.light = self._light() if any(loop.count == 1 for loop in _all(graph.loops)) else set()
        self.kept: list[dict[int, int]] = [{} for _ in self.owner]
        self.inside: list[list[Expression]] = [[] for _ in self.owner]
        for node in self.nodes:
            own = self.place[node.index]
            self.inside[own].append(node)
            if any(user != own and not self.is_made(node, user) for user in self._used_in(node)):
                self.kept[own][node.index] = len(self.kept[own])

    def used(self, loops: Sequence[RecordedLoop]) -> list[RecordedLoop]:
        """Those of which something is wanted."""
        return [loop for loop in loops if self.wanted[loop.name]]

    def _divide(self, owner: RecordedLoop | None, loops: Sequence[RecordedLoop]) -> None:
        """Number the parts of a step, or of the function."""
        name = None if owner is None else owner.name
        self.first[name] = len(self.owner)
        self.owner.append(owner)
        for loop in self.used(loops):
            self.before[loop.name] = self.last[name] if name in self.last else self.first[name]
            self._divide(loop, loop.inner)
            self.after[loop.name] = self.last[name] = len(self.owner)
            self.owner.append(owner)
        self.last.setdefault(name, self.first[name])

    def _needed(self) -> list[Expression]:
        """The nodes that outputs depend on, through loops too; `wanted` gets their places in loops, `output`
        the number of the first output that needs a node, `asked` values that are stored, with the outputs
        that they are for."""
        seen: dict[int, Expression] = {}
        for number, (_, stores) in enumerate(groupby(self.stores, lambda store: store.array)):
            stack = [store.value for store in stores]
            self.asked += [(value, number) for value in stack]
            while stack:
                node = self.resolved(stack.pop())
                if node.index in seen:
                    continue
                seen[node.index] = node
                self.output[node.index] = number
                stack.extend(node.args)
                if node.op == "load":
                    loop = self.recorded[node.data.array]
                    for j in {node.data.offset, loop.until} - self.wanted[loop.name] - {None}:
                        self.wanted[loop.name].add(j)
                        stack += [loop.start[j], loop.result[j]]
                        self.asked += [(loop.start[j], number), (loop.result[j], number)]
        return [seen[index] for index in sorted(seen)]

    def resolved(self, node: Expression) -> Expression:
        """A value that its loop does not change is what it was before."""
        while node.op == "load" and node.data.offset not in self.recorded[node.data.array].result:
            node = self.recorded[node.data.array].start[node.data.offset]
        return node

    def _rank(self) -> None:
        """The earliest part of each node."""
        for node in self.nodes:
            early = 0
            if node.op == "load":
                loop = self.recorded[node.data.array]
                early = (self.after if node.data.array == loop.end else self.first)[loop.name]
            self.rank[node.index] = max([early, *(self.rank[item.index] for item in self.args[node.index])])

    def _enter(self) -> None:
        """What is needed in a loop of one pass alone stands in its step."""
        homes: dict[int, set[int]] = {}
        for name, before in self.before.items():
            loop = self.recorded[name]
            for j in self.wanted[name]:
                homes.setdefault(self.resolved(loop.start[j]).index, set()).add(before)
                homes.setdefault(self.resolved(loop.result[j]).index, set()).add(self.last[name])
        for store in self.stores:
            homes.setdefault(self.resolved(store.value).index, set()).add(self.last[None])
        for node in reversed(self.nodes):
            if node.args and node.index in homes:
                self.rank[node.index] = self._entered(self.rank[node.index], homes[node.index])
            for item in self.args[node.index]:
                homes.setdefault(item.index, set()).add(self.rank[node.index])

    def _entered(self, part: int, users: set[int]) -> int:
        """The earliest part of a node that these parts use, in the innermost loop of one pass around them."""
        while True:
            loops = {self._loop_within(self.owner[part], user) for user in users}
            loop = loops.pop()
            if loops or loop is None or loop.count != 1:
                return part
            part = self.first[loop.name]

    def _loop_within(self, own: RecordedLoop | None, part: int) -> RecordedLoop | None:
        """The loop directly in a step, or in the function, that a part belongs to; None: to none."""
        found = None
        while (loop := self.owner[part]) is not own:
            if loop is None:
                return None
            found, part = loop, self.before[loop.name]
        return found

    def _fuse(self) -> None:
        """A sum takes the factors of a product that is fused into it; products are left out where no other
        use is left."""
        uses: Counter[int] = Counter()
        for node in self.nodes:
            uses.update(
                x.index for x in self.args[node.index] if self.output[x.index] == self.output[node.index]
            )
        asked = ((self.resolved(node).index, number) for node, number in self.asked)
        uses.update(index for index, number in asked if self.output[index] == number)

        def same_home(a: Expression, b: Expression) -> bool:
            return self.owner[self.rank[a.index]] is self.owner[self.rank[b.index]]

        self.fused = fused_products(self.nodes, self.args, uses, self.output, same_home)
        for index, place in self.fused.items():
            args = self.args[index]
            product = args[place] if args[place].op == "mul" else self.args[args[place].index][0]
            self.args[index] = [*args[:place], *self.args[product.index], *args[place + 1 :]]

    def _find_users(self) -> None:
        """The users of each node; nodes without any are left out."""
        for loop in map(self.recorded.__getitem__, self.before):
            for j in self.wanted[loop.name]:
                self._root(loop.start[j], self.before[loop.name])
                self._root(loop.result[j], self.last[loop.name])
        for store in self.stores:
            self._root(store.value, self.stored_in(store))
        used = []
        for node in reversed(self.nodes):
            if node.index in self.users or node.index in self.roots:
                used.append(node)
                for item in self.args[node.index]:
                    self._seen_from(self.rank[node.index], item)
                    self.users.setdefault(item.index, []).append(node.index)
        self.nodes = used[::-1]

    def stored_in(self, store: Store) -> int:
        """Return the part that stores a result: the first that has it, so that it is not kept for later
        ones."""
        part = self.rank[self.resolved(store.value).index]
        return part if self.owner[part] is None else self.last[None]

    def _root(self, node: Expression, part: int) -> None:
        node = self.resolved(node)
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

    def is_made(self, node: Expression, part: int) -> bool:
        """Whether a part makes a node itself, wherever it stands: leaves are where they are, a comparison of
        leaves costs no more than to keep its outcome, and a loop of one pass makes light ones again."""
        leaves = all(not item.args for item in self.args[node.index])
        owner = self.owner[part]
        again = owner is not None and owner.count == 1 and node.index in self.light
        return not node.args or (leaves and node.op in BOOLEAN_OPS) or again

    def _light(self) -> set[int]:
        """The nodes that a few operations make of arguments."""
        behind: dict[int, frozenset[int]] = {}
        for node in self.nodes:
            if not node.args and node.op != "load":
                behind[node.index] = frozenset()
            elif node.args and all(item.index in behind for item in self.args[node.index]):
                made = frozenset((node.index,)).union(*(behind[item.index] for item in self.args[node.index]))
                if len(made) <= LIGHT:
                    behind[node.index] = made
        return {index for index, made in behind.items() if made}

    def _only_user(self, item: Expression, part: int) -> bool:
        used = self._used_in(item)
        return self.place[item.index] < part and sum(user != self.place[item.index] for user in used) == 1


def _all(loops: Sequence[RecordedLoop]) -> Iterator[RecordedLoop]:
    for loop in loops:
        yield loop
        yield from _all(loop.inner)
