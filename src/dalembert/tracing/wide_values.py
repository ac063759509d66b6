"""Wide values of a trace: expressions that stand for a value of every row of a set.

Code that reads a family at `Rows.every` computes with one expression for all rows, as with any scalar.
Nothing is computed then. A loop over the rows that needs a wide value (`Rows.each`, a sum over the rows, a
value that a loop carries) computes it for its own row, together with what it depends on, and stores each of
these values in a column of an array. Later loops load what earlier ones have computed; columns that none of
them loads are left out of the program (`placement`). A value that does not change in a loop around is
computed before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias, final

from dalembert.errors import TracingError
from dalembert.scalar import Scalar
from dalembert.scalar.for_each import leaves, rebuild
from dalembert.tracing import iteration
from dalembert.tracing.expression import Address, Expression, RowIndex, caller
from dalembert.tracing.iteration import RecordedLoop, RowStore, Step, Until, from_cell, is_condition, to_cell

EVERY: Final = "every one"
"""Begins the name of the loop that a wide value seems to be in."""

MOST_COLUMNS: Final = 1 << 24
"""The distance of rows in an array of columns before those are left out that nothing reads."""


class Column(NamedTuple):
    """A place for a value of every row: an array, its column, and whether it holds a condition."""

    array: str
    number: int
    condition: bool

    def address(self, loop: str, rows: str) -> Address:
        """Return the address of the element of the row that a loop is at."""
        return Address(self.array, None, MOST_COLUMNS, self.number, RowIndex(loop, rows))


Available: TypeAlias = dict[int, Column]
"""The columns of nodes that have been computed for every row."""


@final
class WideValues:
    """The wide values of a graph.

    `rows`: the sets with wide values, by the name of the loop that these seem to be in; `computed`: what
    loops of the function itself have computed, those of the steps of loops are with the open ones; `stores`:
    what loops over rows store, whose record is not yet complete.
    """

    def __init__(self, graph: Any) -> None:
        self.graph = graph
        self.rows: dict[str, Any] = {}
        self.computed: Available = {}
        self.stores: dict[str, list[RowStore]] = {}
        self._sets: dict[int, str | None] = {}
        self._depths: dict[int, int] = {}

    def set_of(self, value: Scalar) -> str | None:
        """Return the name of the loop that a wide value seems to be in; None for any other value."""
        if type(value) is not Expression or not self.rows:
            return None
        found: str | None = self._known(value, self._sets, self._find_set)
        return found

    def rows_of(self, value: Scalar) -> Any:
        """Return the rows that a wide value stands for; None for any other value."""
        name = self.set_of(value)
        return None if name is None else self.rows[name]

    def require_none(self, values: Sequence[Expression]) -> None:
        """Refuse wide values where numbers are needed."""
        if any(self.set_of(value) is not None for value in values):
            raise TracingError(
                "a value of every row of a set is used as one number; sum it over the rows, or read it in a "
                "loop over them"
            )

    def _known(self, node: Expression, known: dict[int, Any], find: Callable[[Expression], Any]) -> Any:
        """Return what `find` gives for a node, from what is known of its arguments."""
        stack = [node]
        while stack:
            top = stack[-1]
            missing = [item for item in top.args if item.index not in known]
            if missing and top.index not in known:
                stack += missing
                continue
            stack.pop()
            if top.index not in known:
                known[top.index] = find(top)
        return known[node.index]

    def _find_set(self, node: Expression) -> str | None:
        if node.op == "load":
            index = node.data.index
            return index.loop if index is not None and index.loop in self.rows else None
        found = {name for item in node.args if (name := self._sets[item.index]) is not None}
        if len(found) > 1:
            raise TracingError(
                f"{caller()}: values of the rows of different sets in one operation; sum them over their "
                "rows first"
            )
        return found.pop() if found else None

    def _depth(self, node: Expression) -> int:
        """Return how many loops there are around the code that may compute a node first."""
        found: int = self._known(node, self._depths, self._find_depth)
        return found

    def _find_depth(self, node: Expression) -> int:
        if node.op != "load":
            return max((self._depths[item.index] for item in node.args), default=0)
        address, around = node.data, self.graph.loop_depths
        deepest = 0
        if address.index is not None and address.index.loop not in self.rows:
            deepest = around[address.index.loop] + 1
        family = self.graph.families.get(address.array)
        if family is not None:
            deepest = max([deepest, *(around[name] for name in family.after)])
            inside = family.carried_by
        else:
            inside = address.array
            ended = inside.removesuffix(" end")
            if ended != inside and ended in around:
                return int(max(deepest, around[ended]))
        found: int = max(deepest, around[inside] + 1) if inside in around else deepest
        return found

    # A loop over the rows, named `loop` and with `depth` loops around it, which needs wide values.

    def localise(self, value: Any, loop: str, rows: Any) -> Any:
        """Return a nested value at the row of a loop that is being recorded, its wide values with it."""
        own = leaves(value)
        sets = {name for item in own if (name := self.set_of(item)) is not None}
        if not sets:
            return value
        name = every(rows.name)
        if sets != {name}:
            raise TracingError(
                f"{caller()}: a value of every row of one set in a loop over another; give it to the other "
                "by links"
            )
        depth = self.graph.loop_depths[loop]
        self._hoist([item for item in own if self.set_of(item) is not None], name, depth)
        return rebuild(value, self._at_row(own, loop, name, depth))

    def forget(self, loop: str) -> None:
        """Drop what a loop has computed whose step is recorded once more."""
        scope, array = self._scope(self.graph.loop_depths[loop]), f"{loop} wide"
        for index in [index for index, column in scope.items() if column.array == array]:
            del scope[index]
        self.stores.pop(loop, None)

    def _at_row(self, values: Sequence[Scalar], loop: str, name: str, depth: int) -> list[Scalar]:
        """Return values at the row of a loop, and let it store all that it computes for them."""
        rows, array = self.rows[name], f"{loop} wide"
        new: dict[int, Expression] = {}
        wanted = [item for item in values if self.set_of(item) is not None]
        scope, stores = self._scope(depth), self.stores.setdefault(loop, [])
        for node in self._missing(wanted, name, depth, new, loop):
            args = [new.get(item.index, item) for item in node.args]
            found = new[node.index] = self.graph.with_arguments(node, args)
            if self._depth(node) <= depth and found.args:
                column = Column(array, len(stores), is_condition(node))
                scope[node.index] = column
                stores.append(RowStore(column.address(loop, rows.name), to_cell(self.graph, found)))
        if stores:
            rows.add_columns(array, loop, len(stores))
        return [new.get(item.index, item) if type(item) is Expression else item for item in values]

    def _missing(
        self,
        values: Sequence[Expression],
        name: str,
        depth: int,
        new: dict[int, Expression] | None = None,
        loop: str = "",
    ) -> list[Expression]:
        """Return the wide operations behind values that no loop has computed yet, in order; loads at the row
        of `loop` of leaves, and of what has been computed, go to `new`."""
        found: dict[int, Expression] = {}
        seen: set[int] = set()
        stack = [*values]
        while stack:
            node = stack.pop()
            if node.index in seen or self.set_of(node) is None:
                continue
            seen.add(node.index)
            column = self._column(node, depth)
            if column is None and node.args:
                found[node.index] = node
                stack.extend(node.args)
            elif new is not None:
                new[node.index] = self._load(node, column, name, loop)
        return [found[index] for index in sorted(found)]

    def _load(self, node: Expression, column: Column | None, name: str, loop: str) -> Expression:
        if column is not None:
            at = column.address(loop, self.rows[name].name)
            return from_cell(self.graph, at, condition=column.condition)
        found: Expression = self.graph.load(replace(node.data, index=node.data.index._replace(loop=loop)))
        return found

    def _hoist(self, values: Sequence[Expression], name: str, depth: int) -> None:
        """Compute what does not change in the loops around before these, but nothing before a loop of one
        iteration, which may not run at all."""
        branches = [k for k, loop in enumerate(self.graph.open_loops[:depth], 1) if loop.is_branch]
        first = max(branches, default=0)
        levels: dict[int, list[Expression]] = {}
        for node in self._missing(values, name, depth):
            level = max(self._depth(node), first)
            if level < depth:
                levels.setdefault(level, []).append(node)
        rows = self.rows[name]
        for level in sorted(levels):
            loop = self.graph.loop_name()
            self.graph.loop_depths[loop] = level
            self._at_row(levels[level], loop, name, level)
            own = RecordedLoop(
                loop, rows.count, {}, {}, None, (), rows.name, stores=tuple(self.stores.pop(loop))
            )
            iteration.loops_at(self.graph, level).append(own)

    def _scope(self, depth: int) -> Available:
        found: Available = self.graph.open_loops[depth - 1].computed if depth else self.computed
        return found

    def _column(self, node: Expression, depth: int) -> Column | None:
        for level in range(depth + 1):
            column = self._scope(level).get(node.index)
            if column is not None:
                return column
        return None


def every(rows: str) -> str:
    """Return the name of the loop that values of every row of a set seem to be in."""
    return f"{EVERY} of {rows}"


# Loops that carry wide values: as families, an element of a row for each.


@final
class _NewSets(Exception):
    """A step made wide what it was given as one number; `sets` of all carried values."""

    def __init__(self, sets: list[str | None]) -> None:
        super().__init__("a step of a loop made a wide value")
        self.sets = sets


def _at_any(values: list[Scalar], _: Any) -> list[Scalar]:
    return values


@final
class _Packing:
    """How a loop carries a nested value: the wide ones as a family for each set, at the places of `sets`."""

    def __init__(self, wide: WideValues, sets: list[str | None]) -> None:
        self._wide, self._sets = wide, sets
        self._names = sorted({name for name in sets if name is not None})

    def record(self, count: int, step: Step, carry: Any, until: Until) -> Any:
        """Record the loop, and return the carry after it."""
        ends = None if until is None else lambda given: until(self.unpack(given))
        packed_step = lambda given: self.pack(step(self.unpack(given)))
        return self.unpack(iteration.record_loop(count, packed_step, self.pack(carry), ends))

    def pack(self, value: Any) -> Any:
        """Return a value without its wide parts, and these as families."""
        own = leaves(value)
        found = [self._wide.set_of(item) for item in own]
        if len(found) == len(self._sets) and any(a not in (None, b) for a, b in zip(found, self._sets)):
            raise _NewSets([a or b for a, b in zip(found, self._sets, strict=True)])
        if not self._names or len(found) != len(self._sets):
            return value, []
        families = []
        for name in self._names:
            held = [item for item, own_set in zip(own, self._sets, strict=True) if own_set == name]
            families.append(self._wide.rows[name].each(partial(_at_any, held)))
        rest = [0.0 if name is not None else x for x, name in zip(own, self._sets, strict=True)]
        return rebuild(value, rest), families

    def unpack(self, packed: Any) -> Any:
        """Return the value that was packed."""
        value, families = packed
        if not families:
            return value
        held: dict[str, Iterator[Scalar]] = {
            name: iter(family[self._wide.rows[name].every])
            for name, family in zip(self._names, families, strict=True)
        }
        own = leaves(value)
        return rebuild(value, [x if name is None else next(held[name]) for x, name in zip(own, self._sets)])


def record_loop(count: int, step: Step, carry: Any, until: Until) -> Any:
    """Record a loop in the graph of its values and return the carry after it, which may hold wide values."""
    graph = next((item.graph for item in leaves(carry) if type(item) is Expression), None)
    if graph is None or not graph.wide.rows:
        return iteration.record_loop(count, step, carry, until)
    sets = [graph.wide.set_of(item) for item in leaves(carry)]
    while True:
        try:
            return _Packing(graph.wide, sets).record(count, step, carry, until)
        except _NewSets as found:
            sets = found.sets
