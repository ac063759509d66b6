"""Loops of a trace: the step is recorded once, on symbols for the values that it carries.

Carried value j of loop n is loaded from place j of an array "loop n": that is its symbol in the step. After
the loop it is loaded from "loop n end", so that the use of a value of the step outside it is detected.
`placement.py` makes statements of a program from both. A number that every step hands on as it is stays a
literal, and a value that no step changes stays what it was before the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, final

import numpy as np

from dalembert import scalar
from dalembert.errors import TracingError
from dalembert.scalar import Scalar
from dalembert.scalar.for_each import leaves, map_nested, rebuild
from dalembert.tracing.expression import Address, Expression, caller
from dalembert.tracing.operations import BOOLEAN_OPS

Step: TypeAlias = Callable[[Any], Any]
Until: TypeAlias = Callable[[Any], Scalar] | None


@final
@dataclass(frozen=True, slots=True, eq=False)
class RowStore:
    """A value that each iteration of a loop over rows stores in an array, or adds to an element of it; `row`:
    the row of the array by number, where that differs from sample to sample."""

    address: Address
    value: Expression
    accumulate: bool = False
    row: Expression | None = None

    @property
    def values(self) -> list[Expression]:
        return [self.value] if self.row is None else [self.value, self.row]

    def copy(self, nodes: Any) -> RowStore:
        """Return the store on other nodes."""
        row = None if self.row is None else nodes[self.row.index]
        return replace(self, value=nodes[self.value.index], row=row)


@final
@dataclass(frozen=True, slots=True, eq=False)
class RowAppend:
    """The row `entry` (an index table's, or the index itself) that an iteration appends to the set `to` where
    `condition` is not zero for any sample, with `values` for elements of arrays, a row of `width` each."""

    to: str
    entry: Address
    condition: Expression
    values: tuple[tuple[Address, Expression], ...]


@final
@dataclass(frozen=True, slots=True, eq=False)
class RecordedLoop:
    """A recorded loop: the carried values before the loop and after one step, by place.

    A place with a start and no result does not change. `until` is the place that holds 1 once a sample is
    done, else 0. `inner` are the loops of the step. A loop over `rows` visits those that the set has, or
    those of the range `bounds`, (first row, how many); at the end of each iteration come its `stores` and
    `appends`. The sets `empties` lose their rows before it begins. A loop of no iterations stores before it
    would begin.
    """

    name: str
    count: int
    start: dict[int, Expression]
    result: dict[int, Expression]
    until: int | None
    inner: tuple[RecordedLoop, ...]
    rows: str | None = None
    stores: tuple[RowStore, ...] = ()
    appends: tuple[RowAppend, ...] = ()
    empties: tuple[str, ...] = ()
    bounds: tuple[Address, Address] | None = None

    @property
    def is_branch(self) -> bool:
        """True if the step runs once or not at all."""
        return self.count == 1 and self.rows is None

    @property
    def end(self) -> str:
        """The name of the array that values after the loop are loaded from."""
        return f"{self.name} end"

    def copy(self, nodes: Any, names: Mapping[str, str]) -> RecordedLoop:
        """Return the loop on other nodes, `nodes[index]`, under another name where `names` has one."""
        return RecordedLoop(
            names.get(self.name, self.name),
            self.count,
            {place: nodes[node.index] for place, node in self.start.items()},
            {place: nodes[node.index] for place, node in self.result.items()},
            self.until,
            tuple(inner.copy(nodes, names) for inner in self.inner),
            self.rows,
            tuple(store.copy(nodes) for store in self.stores),
            tuple(
                replace(
                    append,
                    condition=nodes[append.condition.index],
                    values=tuple((at, nodes[value.index]) for at, value in append.values),
                )
                for append in self.appends
            ),
            self.empties,
            self.bounds,
        )


def all_loops(loops: Sequence[RecordedLoop]) -> Iterator[RecordedLoop]:
    """Yield loops, each followed by those of its step."""
    for loop in loops:
        yield loop
        yield from all_loops(loop.inner)


@final
@dataclass(slots=True, eq=False)
class OpenLoop:
    """A loop whose step is being recorded: the condition that a sample is done, and inner loops so far;
    whether it is a loop of one iteration; `computed`: the columns of wide values that these loops have
    computed (`wide_values`)."""

    flag: Expression | None
    inner: list[RecordedLoop] = field(default_factory=list)
    is_branch: bool = False
    computed: dict[int, Any] = field(default_factory=dict)


def record_loop(count: int, step: Step, carry: Any, until: Until) -> Any:
    """Record a loop in the graph of its values and return the carry after it."""
    finished: Scalar = False if until is None else until(carry)
    start = leaves(carry)
    graph = _graph_of([*start, finished]) or _graph_of(leaves(step(carry)))
    if finished is True or graph is None:
        return carry
    return record_iterations(graph, graph.loop_name(), count, step, carry, until, finished)


def record_iterations(
    graph: Any,
    name: str,
    count: int,
    step: Step,
    carry: Any,
    until: Until = None,
    finished: Scalar = False,
    rows: str | None = None,
    stores: Callable[[], Sequence[RowStore]] = tuple,
    bounds: tuple[Address, Address] | None = None,
) -> Any:
    """Record a loop under a name, over `rows` if they are given (or those in `bounds`), and return the carry
    after it; `stores` of each iteration are known once the step is traced."""
    graph.loop_depths[name] = len(graph.open_loops)
    families = _families(carry)
    carried = [family.carried_by(name, k) for k, family in enumerate(families)]
    for own, family in zip(carried, families, strict=True):
        own.copy_from(family, None)
    carry, outer_carry = _with_families(carry, carried), carry
    start = leaves(carry)
    cells = [to_cell(graph, leaf) for leaf in start]
    done = None if until is None else len(start)
    outer = graph.open_loops[-1] if graph.open_loops else None
    flag = None if outer is None else outer.flag
    if done is not None:
        flag = from_cell(graph, Address.fixed(name, done), condition=True)
    own = OpenLoop(flag, is_branch=count == 1 and rows is None)
    graph.open_loops.append(own)
    try:
        given, new, result = _trace_step(graph, own, name, step, carry, start)
        results = {
            j: to_cell(graph, after)
            for j, (before, after) in enumerate(zip(given, new, strict=True))
            if _literal_value(before) is None and after is not before
        }
        if until is not None:
            following = until(rebuild(carry, new))
        for cell, family in zip(carried, _families(result), strict=True):
            unless = own.flag if done is not None else None
            if not cell.updated_in_place(family, unless, own):
                cell.copy_from(family, unless)
    finally:
        graph.open_loops.pop()
    starts = {j: cell for j, cell in enumerate(cells) if _literal_value(given[j]) is None}
    if done is not None:
        results = {
            j: scalar.select(own.flag, graph.load(Address.fixed(name, j)), value)
            for j, value in results.items()
        }
        if outer is not None and outer.flag is not None:
            # A sample that has left the outer loop runs no iteration of the inner one.
            finished = graph.operation("or", outer.flag, finished)
        starts[done] = to_cell(graph, graph.condition(finished))
        results[done] = to_cell(graph, graph.operation("or", own.flag, following))
    parts = tuple(own.inner), rows, tuple(stores())
    loop = RecordedLoop(name, count, starts, results, done, *parts, bounds=bounds)
    add_loop(graph, loop)
    after = [
        from_cell(graph, Address.fixed(loop.end, j), condition=is_condition(leaf)) if j in results else leaf
        for j, leaf in enumerate(start)
    ]
    carry = _with_families(outer_carry, [family.after(name) for family in carried])
    return rebuild(carry, after)


def add_loop(graph: Any, loop: RecordedLoop) -> None:
    """Add a loop to the step that is being recorded, or to the function."""
    depth = graph.loop_depths.setdefault(loop.name, len(graph.open_loops))
    loops_at(graph, depth).append(loop)


def loops_at(graph: Any, depth: int) -> list[RecordedLoop]:
    """Return the loops so far of the open loop with that many around it, itself counted; 0: of the
    function."""
    found: list[RecordedLoop] = graph.open_loops[depth - 1].inner if depth else graph.loops
    return found


def _families(value: Any) -> list[Any]:
    """Return the families of rows in a nested value."""
    found: list[Any] = []

    def note(family: Any) -> Any:
        found.append(family)
        return family

    map_nested(value, "carried_by", note)
    return found


def _with_families(value: Any, families: Sequence[Any]) -> Any:
    """Return a nested value with other families."""
    given = iter(families)
    return map_nested(value, "carried_by", lambda _: next(given)) if families else value


def is_condition(value: Scalar) -> bool:
    return isinstance(value, bool | np.bool_) or (type(value) is Expression and value.op in BOOLEAN_OPS)


def to_cell(graph: Any, value: Scalar) -> Expression:
    """Return the number that an array stores for a value; a condition is stored as 1 or 0."""
    if is_condition(value):
        value = graph.operation("select", value, 1.0, 0.0)
    node: Expression = graph.coerce(value)
    return node


def from_cell(graph: Any, address: Address, *, condition: bool) -> Expression:
    """Return the value that an array element holds."""
    cell: Expression = graph.load(address)
    return cell if not condition else graph.operation("lt", 0.0, cell)


def _trace_step(
    graph: Any, own: OpenLoop, name: str, step: Step, carry: Any, start: Sequence[Scalar]
) -> tuple[list[Scalar], list[Scalar], Any]:
    """Trace the step and return the values that it takes, those that it returns, and what it returns.

    A literal stays a literal only if the step returns the same literal; the step is traced again until no
    further literal changes."""
    kept = [_literal_value(leaf) for leaf in start]
    while True:
        own.inner.clear()
        own.computed.clear()
        given = [
            from_cell(graph, Address.fixed(name, j), condition=is_condition(leaf)) if known is None else leaf
            for j, (leaf, known) in enumerate(zip(start, kept, strict=True))
        ]
        result = step(rebuild(carry, given))
        new = leaves(result)
        rebuild(carry, new)
        for before, after in zip(start, new, strict=True):
            if is_condition(before) is not is_condition(after):
                raise TracingError(
                    f"{caller()}: the step of a loop makes a condition of a number, or a number of a "
                    "condition; what it carries must stay what it is"
                )
        settled = [
            known if known is not None and _literal_value(value) == known else None
            for known, value in zip(kept, new, strict=True)
        ]
        if settled == kept:
            return given, new, result
        kept = settled


def _literal_value(leaf: Scalar) -> tuple[str, float] | None:
    """Return the number or truth value of a literal leaf, or None for any other."""
    if isinstance(leaf, bool | np.bool_):
        return "condition", float(leaf)
    number = scalar.literal(leaf)
    return None if number is None else ("number", number)


def _graph_of(values: Sequence[Scalar]) -> Any:
    return next((value.graph for value in values if type(value) is Expression), None)
