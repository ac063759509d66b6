"""Rows of a trace: loops over index sets, whose values live in arrays, a row each.

A step over rows is recorded once. What it reads of a family is a load at the row's index; what it gives is
stored at the end of an iteration. So code that reads a family comes after the loop that made it, which
`placement.py` sees to by `FamilyArray`: the loops after which an array is complete, or the loop that carries
it. A set that `collect` found lists, for each of its rows, the row of the set that it was collected from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, TypeAlias, final

import numpy as np
import numpy.typing as npt

from dalembert import scalar
from dalembert.errors import ShapeError, TracingError
from dalembert.scalar import Family, Named, Row, Rows, Scalar, Source, Write
from dalembert.scalar.for_each import leaves, rebuild
from dalembert.scalar.row_sets import Numbers
from dalembert.tracing.expression import Address, Expression, RowIndex
from dalembert.tracing.iteration import (
    OpenLoop,
    RecordedLoop,
    RowAppend,
    RowStore,
    add_loop,
    all_loops,
    from_cell,
    is_condition,
    record_iterations,
    to_cell,
)
from dalembert.tracing.program import RowSet
from dalembert.tracing.wide_values import MOST_COLUMNS, every

Array: TypeAlias = npt.NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True)
class FamilyArray:
    """An array with `width` numbers for each row of a set. It is complete after the loops `after`; one that a
    loop carries has its values in the step of the loop `carried_by`. `storage`: the array that holds it;
    `rest`: further rows, for what is written to no row of a sample; `sparse`: the columns that nothing reads
    take no room."""

    rows: str
    width: int
    storage: str
    after: tuple[str, ...] = ()
    carried_by: str | None = None
    rest: int = 0
    sparse: bool = False


class RecordedRow(NamedTuple):
    """A row in the step of a loop: that of the loop's set and of those it was collected from (`levels`), or
    the row of another set that an index table tells."""

    loop: str
    levels: tuple[str, ...]
    table: str | None = None
    source: str = ""

    def address(self, rows: str, array: str, width: int, offset: int) -> Address:
        """Return the address of an element of the row's values, which are those of the set `rows`."""
        if rows not in self.levels:
            raise TracingError(
                f"a row of {' and '.join(self.levels)} is no row of {rows}; families are indexed by rows of "
                "their own set, of sets collected from it, or by links to it"
            )
        return Address(array, self.table, width, offset, RowIndex(self.loop, self.source or rows))


def _recorded_row(row: Row) -> RecordedRow:
    if not isinstance(row, RecordedRow):
        raise TracingError("a family of a trace is indexed by a row, or by at(number)")
    return row


def record_rows(value: Expression, count: int) -> Rows:
    """Return rows in the graph of an expression."""
    graph = value.graph
    return RecordedRows(graph, graph.add_rows(RowSet(count)), count)


@final
class RecordedFamily(Family[Any]):
    """A family in an array: a template, and for each of its scalars a literal or the offset in a row."""

    def __init__(
        self, rows: RecordedRows, array: str, template: Any, places: Sequence[Scalar | _Cell]
    ) -> None:
        self.rows, self.array, self._template, self._places = rows, array, template, list(places)
        self.width = sum(isinstance(x, _Cell) for x in self._places)

    def complete_after(self, *loops: str, rest: int = 0) -> RecordedFamily:
        """Note the loops after which the array is complete, and its further rows; return the family."""
        made = FamilyArray(self.rows.name, self.width, self.array, loops, rest=rest)
        self.rows.graph.families[self.array] = made
        return self

    def cells(self, value: Any) -> list[tuple[int, Expression]]:
        """Return the numbers of a value that are stored in a row, with their offsets."""
        places = zip(leaves(value), self._places, strict=True)
        return [(x.offset, to_cell(self.rows.graph, leaf)) for leaf, x in places if isinstance(x, _Cell)]

    def __getitem__(self, row: Row) -> Any:
        graph, rows, own = self.rows.graph, self.rows.name, _recorded_row(row)
        return self._value(lambda cell: own.address(rows, self.array, self.width, cell.offset), graph)

    def at(self, number: int) -> Any:
        if not 0 <= number < self.rows.count:
            raise ShapeError(f"row {number} of {self.rows.count}")
        first = number * self.width
        return self._value(lambda cell: Address.fixed(self.array, first + cell.offset), self.rows.graph)

    def first(self, count: int) -> list[Any]:
        places, width, load = self._places, self.width, self.rows.graph.load
        form = self._template
        plain = type(form) is list and all(isinstance(x, Expression | float) for x in form)
        if not plain or any(x.condition for x in places if isinstance(x, _Cell)):
            return super().first(count)
        fixed = Address.fixed
        return [
            [load(fixed(self.array, k + x.offset)) if isinstance(x, _Cell) else x for x in places]
            for k in range(0, count * width, width)
        ]

    def leaves(self) -> list[Scalar]:
        """Return no scalars: a loop carries the array as a whole."""
        return []

    def rebuilt(self, scalars: Iterator[Scalar]) -> RecordedFamily:
        return self

    def carried_by(self, loop: str, number: int) -> RecordedFamily:
        """Return the family of the same form that a loop carries."""
        conditions = [is_condition(x) if not isinstance(x, _Cell) else x.condition for x in self._places]
        return _carried_family(self.rows, self._template, conditions, loop, number)

    def copy_from(self, other: RecordedFamily, unless: Expression | None) -> None:
        """Record the copy of another family's values, except in samples for which `unless` holds."""
        if other.rows is not self.rows:
            raise TracingError("a loop must return a family of the rows that it was given")

        def step(row: Row) -> Any:
            new = other[row]
            if unless is None:
                return new
            old = self[row]
            return rebuild(new, [scalar.select(unless, a, b) for a, b in zip(leaves(old), leaves(new))])

        self.rows.store_each(step, self)

    def updated_in_place(self, new: RecordedFamily, unless: Expression | None, step: OpenLoop) -> bool:
        """Let the loop of a step that makes `new` store it as the next values of this carried family, except
        in samples for which `unless` holds; return False where that is not possible.

        Later code reads `new` from here. So no code after that loop may read the values before it, and the
        loop itself only those of its own row, as it stores at the end of an iteration.
        """
        graph, rows = self.rows.graph, self.rows
        maker = next((k for k, x in enumerate(step.inner) if f"{x.name} rows" == new.array), None)
        if maker is None or new._places != self._places:
            return False
        loop, own = step.inner[maker], RecordedRow(step.inner[maker].name, rows.levels)
        if loop.rows != rows.name or loop.bounds is not None:
            return False
        number = {inner.name: k for k, top in enumerate(step.inner) for inner in all_loops([top])}
        for address in [x.data for x in graph.nodes if x.op == "load" and x.data.array == self.array]:
            if address.index is None:
                return False
            own_value = own.address(rows.name, self.array, self.width, address.offset)
            if number.get(address.index.loop, -1) >= maker and address != own_value:
                return False

        def redirect(store: RowStore) -> RowStore:
            if store.address.array != new.array:
                return store
            address = replace(store.address, array=self.array)
            if unless is None:
                return replace(store, address=address)
            return replace(
                store, address=address, value=scalar.select(unless, graph.load(address), store.value)
            )

        step.inner[maker] = replace(loop, stores=tuple(map(redirect, loop.stores)))
        graph.families[new.array] = replace(graph.families[new.array], storage=self.array)
        return True

    def after(self, loop: str) -> RecordedFamily:
        """Return the family after the loop that carried it."""
        graph = self.rows.graph
        own = graph.families[self.array]
        array = f"{self.array} end"
        graph.families[array] = FamilyArray(own.rows, own.width, self.array, (loop,))
        return RecordedFamily(self.rows, array, self._template, self._places)

    def _value(self, address: Callable[[_Cell], Address], graph: Any) -> Any:
        found = [
            from_cell(graph, address(x), condition=x.condition) if isinstance(x, _Cell) else x
            for x in self._places
        ]
        return rebuild(self._template, found)


def _carried_family(
    rows: RecordedRows, template: Any, conditions: Sequence[bool], loop: str, number: int
) -> RecordedFamily:
    """Return the family that a loop carries; `conditions`: which of its scalars are conditions."""
    cells, array = [_Cell(k, x) for k, x in enumerate(conditions)], f"{loop} family {number}"
    rows.graph.families[array] = FamilyArray(rows.name, len(cells), array, carried_by=loop)
    return RecordedFamily(rows, array, template, cells)


class _Cell(NamedTuple):
    """A place in the rows of an array: a number, or a condition as 1 or 0."""

    offset: int
    condition: bool


@final
class _Numbers(Family[Scalar]):
    """Constants, a row each: a place in the rows of a table, or all the same."""

    def __init__(self, rows: RecordedRows, values: Array, table: str, width: int, offset: int) -> None:
        self._rows, self._values = rows, values
        self._table, self._width, self._offset = table, width, offset

    @staticmethod
    def of(rows: RecordedRows, values: Array) -> list[Family[Scalar]]:
        """Return the columns of an array (n, k). What differs from row to row is one table, row by row:
        columns of their own would lie so far apart that they take the same few lines of a cache."""
        differ = [k for k in range(values.shape[1]) if np.any(values[:, k] != values[:1, k])]
        table = rows.graph.add_table(values[:, differ].ravel()) if differ else ""
        places = {k: place for place, k in enumerate(differ)}
        return [
            _Numbers(rows, values[:, k], table if k in places else "", len(differ), places.get(k, 0))
            for k in range(values.shape[1])
        ]

    def __getitem__(self, row: Row) -> Scalar:
        if not self._table:
            return float(self._values[0])
        own = _recorded_row(row).address(self._rows.name, self._table, self._width, self._offset)
        return self._rows.graph.load(own)

    def at(self, number: int) -> Scalar:
        return float(self._values[number])


def _table_entry(rows: RecordedRows, row: Row, numbers: Any) -> Address:
    """Return the entry of a row in a table of integers, one for each row of a set."""
    known = _recorded_row(row).address(rows.name, "", 1, 0)
    if known.table is not None:
        numbers = numbers[rows.graph.tables[known.table]]
    return Address("", rows.graph.add_table(numbers), 1, 0, known.index)


@final
class _InputRows(Family[Any]):
    """Parts of an input array, that of each row from an element on."""

    def __init__(self, rows: RecordedRows, template: Any, first: Sequence[Any], starts: Any) -> None:
        self.rows, self._template, self._starts = rows, template, starts
        self._array = first[0].data[0]
        self._offsets = [x.data[1] - first[0].data[1] for x in first]

    def __getitem__(self, row: Row) -> Any:
        entry, load = _table_entry(self.rows, row, self._starts), self.rows.graph.load
        return rebuild(
            self._template, [load(replace(entry, array=self._array, offset=k)) for k in self._offsets]
        )

    def at(self, number: int) -> Any:
        start, given = int(self._starts[number]), self.rows.graph.input
        return rebuild(self._template, [given(self._array, start + k) for k in self._offsets])

    def leaves(self) -> list[Scalar]:
        return []

    def rebuilt(self, scalars: Iterator[Scalar]) -> _InputRows:
        return self

    def carried_by(self, loop: str, number: int) -> RecordedFamily:
        return _carried_family(self.rows, self._template, [False] * len(self._offsets), loop, number)


@final
class _Links(Family[Row]):
    """Rows of another set, by an index table."""

    def __init__(self, rows: RecordedRows, to: RecordedRows, numbers: Numbers) -> None:
        self._rows, self._to, self._numbers = rows, to, np.array(numbers, np.int64)
        if self._numbers.shape != (rows.count,):
            raise ShapeError(f"{len(self._numbers)} links for {rows.count} rows")

    def __getitem__(self, row: Row) -> Row:
        entry = _table_entry(self._rows, row, self._numbers)
        assert entry.index is not None
        return RecordedRow(_recorded_row(row).loop, (self._to.name,), entry.table, entry.index.level)

    def at(self, number: int) -> Row:
        raise TracingError("a row with a known number is read by at(number)")


@final
class _Ranges(Family[Rows]):
    """Rows of another set from a number on, by index tables of first rows and how many there are."""

    def __init__(
        self, rows: RecordedRows, of: RecordedRows, first: Sequence[int], counts: Sequence[int]
    ) -> None:
        self._rows, self._of = rows, of
        self._first, self._counts = np.array(first, np.int64), np.array(counts, np.int64)
        if not self._first.shape == self._counts.shape == (rows.count,):
            raise ShapeError(f"{len(first)} and {len(counts)} bounds of ranges for {rows.count} rows")
        if len(of.levels) > 1:
            raise TracingError("a range is one of rows of a set that was not collected")

    def __getitem__(self, row: Row) -> Rows:
        first, count = (_table_entry(self._rows, row, table) for table in (self._first, self._counts))
        return RecordedRows(self._of.graph, self._of.name, int(self._counts.max()), bounds=(first, count))

    def at(self, number: int) -> Rows:
        raise TracingError("a range of rows is read in a loop over rows")


@final
class RecordedRows(Rows):
    """The rows of a set of a graph's, `count` at most; of a set collected from others, at those `levels`; in
    a range, those within the `bounds` (first row, how many)."""

    def __init__(
        self,
        graph: Any,
        name: str,
        count: int,
        levels: tuple[str, ...] = (),
        bounds: tuple[Address, Address] | None = None,
    ) -> None:
        self.graph, self.name, self.count = graph, name, count
        self.levels, self.bounds = (name, *levels), bounds

    @property
    def every(self) -> Row:
        name = every(self.name)
        if len(self.levels) > 1 or self.bounds is not None:
            raise TracingError("values of every row are those of a whole set, no collected one and no range")
        self.graph.wide.rows[name] = self
        return RecordedRow(name, self.levels)

    def add_columns(self, array: str, loop: str, count: int) -> None:
        """Let a loop store `count` columns of an array, of which those remain that are read."""
        assert count < MOST_COLUMNS
        self.graph.families[array] = FamilyArray(self.name, MOST_COLUMNS, array, (loop,), sparse=True)

    def numbers(self, values: Numbers) -> Family[Scalar]:
        if len(values) != self.count:
            raise ShapeError(f"{len(values)} numbers for {self.count} rows")
        return _Numbers.of(self, np.array(values, np.float64).reshape(self.count, 1))[0]

    def columns(self, values: Sequence[Sequence[float]]) -> list[Family[Scalar]]:
        if len(values) != self.count:
            raise ShapeError(f"{len(values)} numbers for {self.count} rows")
        width = len(values[0]) if values else 1
        return _Numbers.of(self, np.array(values, np.float64).reshape(self.count, width))

    def links(self, to: Rows, numbers: Numbers) -> Family[Row]:
        return _Links(self, _of_trace(to), numbers)

    def ranges(self, of: Rows, first: Sequence[int], counts: Sequence[int]) -> Family[Rows]:
        return _Ranges(self, _of_trace(of), first, counts)

    def stack(self, values: Sequence[Any]) -> Family[Any]:
        if len(values) != self.count:
            raise ShapeError(f"{len(values)} values for {self.count} rows")
        columns = [leaves(value) for value in values]
        given = _whole_input(columns)
        if given is not None:
            cells = [_Cell(j, False) for j in range(len(columns[0]))]
            return RecordedFamily(self, given, values[0], cells).complete_after()
        starts = _input_rows(columns)
        if starts is not None:
            return _InputRows(self, values[0], columns[0], starts)
        name = self.graph.loop_name()
        family = RecordedFamily(self, f"{name} rows", values[0] if values else (), _places(columns))
        stores = [
            RowStore(Address.fixed(family.array, k * family.width + offset), cell)
            for k, value in enumerate(values)
            for offset, cell in family.cells(value)
        ]
        self._add(name, (), stores=stores, count=0)
        return family.complete_after(name)

    def each(self, step: Callable[[Row], Any]) -> Family[Any]:
        return self._each(step, self)

    def each_where(self, condition: Callable[[Row], Scalar], step: Callable[[Row], Any]) -> Family[Any]:
        return self._own(condition)._each(step, self)

    def _own(self, condition: Callable[[Row], Scalar]) -> RecordedRows:
        """Return the rows for which a condition holds, each sample's own."""
        graph, loop = self.graph, self.graph.loop_name()
        name = graph.add_rows(RowSet(self.count, self.name, own=True))
        holds, inner = self._trace(loop, condition)
        entry = RecordedRow(loop, self.levels).address(self.name, "", 1, 0)
        append = RowAppend(name, entry, to_cell(graph, graph.condition(holds)), ())
        self._add(loop, inner, appends=(append,), empties=(name,))
        return RecordedRows(graph, name, self.count, self.levels)

    def _each(self, step: Callable[[Row], Any], to: RecordedRows) -> Family[Any]:
        """Return the values of a step for the rows of a set that these are rows of."""
        name = self.graph.loop_name()
        value, inner = self._trace(name, step)
        family = to._family(name, value)
        self._add(name, inner, stores=self._stores(name, value, family))
        return family.complete_after(name)

    def store_each(self, step: Callable[[Row], Any], family: RecordedFamily) -> None:
        """Record the storing of a value for each row in a family of this set, or of one that it was collected
        from."""
        name = self.graph.loop_name()
        value, inner = self._trace(name, step)
        self._add(name, inner, stores=self._stores(name, value, family))

    def scan(self, step: Callable[[Any, Row], tuple[Any, Any]], carry: Any) -> tuple[Any, Family[Any]]:
        graph, name = self.graph, self.graph.loop_name()
        row, given = RecordedRow(name, self.levels), list[Any]()

        def record_step(so_far: Any) -> Any:
            graph.wide.forget(name)
            so_far, value = graph.wide.localise(step(so_far, row), name, self)
            given.append(value)
            return so_far

        def stores() -> list[RowStore]:
            own = self._stores(name, given[-1], self._family(name, given[-1]))
            return [*own, *graph.wide.stores.pop(name, ())]

        carry = record_iterations(
            graph, name, self.count, record_step, carry, rows=self.name, stores=stores, bounds=self.bounds
        )
        return carry, self._family(name, given[-1]).complete_after(name)

    def write(self, writes: Sequence[Write]) -> Family[Any]:
        graph, array = self.graph, f"{self.graph.loop_name()} written"
        traced: list[tuple[RecordedRows, str, Any, tuple[RecordedLoop, ...]]] = []
        for rows, step in writes:
            loop = graph.loop_name()
            found, inner = _of_trace(rows)._trace(loop, partial(_list_sources, step))
            traced.append((_of_trace(rows), loop, found, inner))
        values = [value for _, _, found, _ in traced for _, value in found]
        family = RecordedFamily(self, array, values[0], _places([*map(leaves, values)], literals=False))
        width = family.width
        for rows, loop, found, inner in traced:
            stores = []
            for row, value in found:
                for offset, cell in family.cells(value):
                    if isinstance(row, RecordedRow):
                        stores.append(RowStore(row.address(self.name, array, width, offset), cell))
                    else:
                        address = Address(array, None, width, offset)
                        stores.append(RowStore(address, cell, row=graph.coerce(row)))
            rows._add(loop, inner, stores=stores)
        return family.complete_after(*(loop for _, loop, _, _ in traced), rest=1)

    def scatter_each(
        self, step: Callable[[Row], tuple[Iterable[tuple[Row, Any]], Any]], to: Rows, zero: Any
    ) -> tuple[Family[Any], Family[Any]]:
        target, graph = _of_trace(to), self.graph
        whole = RecordedRows(graph, target.levels[-1], graph.rows[target.levels[-1]].size)
        name = graph.loop_name()
        (found, own), inner = self._trace(name, partial(_list_first, step))
        places = _places([leaves(zero), *(leaves(value) for _, value in found)])
        sums, each = RecordedFamily(whole, f"{name} sums", zero, places), self._family(name, own)
        target.store_each(lambda row: zero, sums)
        stores = [
            RowStore(row.address(whole.name, sums.array, sums.width, offset), cell, True)
            for row, value in found
            for offset, cell in sums.cells(value)
        ]
        self._add(name, inner, stores=[*stores, *self._stores(name, own, each)])
        return sums.complete_after(name), each.complete_after(name)

    def collect_each(self, sources: Sequence[Source]) -> tuple[Rows, Family[Any], list[Family[Any]]]:
        graph = self.graph
        traced: list[tuple[RecordedRows, str, tuple[list[Named], Any], tuple[RecordedLoop, ...]]] = []
        for source in sources:
            rows, loop = _of_trace(source.rows), graph.loop_name()
            traced.append((rows, loop, *rows._trace(loop, partial(_list_first, source.step))))
        values = [item.value for _, _, (found, _), _ in traced for item in found]
        size = sum(rows.count * len(found) for rows, _, (found, _), _ in traced)
        name = graph.add_rows(RowSet(size, self.name))
        collected = RecordedRows(graph, name, size, self.levels)
        places = _places([*map(leaves, values)])
        family = RecordedFamily(collected, f"{name} values", values[0] if values else (), places)
        kept: list[Family[Any]] = []
        for number, (rows, loop, (found, own), inner) in enumerate(traced):
            appends = []
            for item in found:
                given = tuple(
                    (Address(family.array, None, family.width, offset), cell)
                    for offset, cell in family.cells(item.value)
                )
                entry = _recorded_row(item.row).address(self.name, "", 1, 0)
                condition = to_cell(graph, graph.condition(item.condition))
                appends.append(RowAppend(name, entry, condition, given))
            each = rows._family(loop, own)
            stores = rows._stores(loop, own, each)
            rows._add(loop, inner, stores=stores, appends=appends, empties=() if number else (name,))
            kept.append(each.complete_after(loop))
        return collected, family.complete_after(*(loop for _, loop, _, _ in traced)), kept

    def _trace(self, name: str, step: Callable[[Row], Any]) -> tuple[Any, tuple[RecordedLoop, ...]]:
        """Return what a step gives for a row, and the loops that it contains."""
        graph = self.graph
        outer = graph.open_loops[-1] if graph.open_loops else None
        own = OpenLoop(None if outer is None else outer.flag)
        graph.loop_depths[name] = len(graph.open_loops)
        graph.open_loops.append(own)
        try:
            found = graph.wide.localise(step(RecordedRow(name, self.levels)), name, self)
            return found, tuple(own.inner)
        finally:
            graph.open_loops.pop()

    def _family(self, loop: str, value: Any) -> RecordedFamily:
        """Return the family of the values that a loop gives, each of the form of `value`."""
        return RecordedFamily(self, f"{loop} rows", value, _places([leaves(value)]))

    def _stores(self, loop: str, value: Any, family: RecordedFamily) -> list[RowStore]:
        row = RecordedRow(loop, self.levels)
        return [
            RowStore(row.address(family.rows.name, family.array, family.width, offset), cell)
            for offset, cell in family.cells(value)
        ]

    def _add(
        self,
        name: str,
        inner: Sequence[RecordedLoop],
        stores: Sequence[RowStore] = (),
        appends: Sequence[RowAppend] = (),
        empties: tuple[str, ...] = (),
        count: int | None = None,
    ) -> None:
        size = self.count if count is None else count
        own = (*stores, *self.graph.wide.stores.pop(name, ())), tuple(appends), empties
        loop = RecordedLoop(name, size, {}, {}, None, tuple(inner), self.name, *own, self.bounds)
        add_loop(self.graph, loop)


def _list_sources(step: Callable[[Row], Iterable[Any]], row: Row) -> list[Any]:
    return list(step(row))


def _list_first(step: Callable[[Row], tuple[Iterable[Any], Any]], row: Row) -> tuple[list[Any], Any]:
    found, value = step(row)
    return list(found), value


def _of_trace(rows: Rows) -> RecordedRows:
    if not isinstance(rows, RecordedRows):
        raise TracingError(
            "rows of a trace and rows of numbers do not mix; make all with scalar.rows(like=…)"
        )
    return rows


def _whole_input(columns: Sequence[Sequence[Scalar]]) -> str | None:
    """Return the name of the input array of which the values are the rows as they lie, or None."""
    flat = [leaf for column in columns for leaf in column]
    if not flat or not all(type(x) is Expression and x.op == "input" for x in flat):
        return None
    array = flat[0].data[0]
    return array if [x.data for x in flat] == [(array, k) for k in range(len(flat))] else None


def _input_rows(columns: Sequence[Sequence[Scalar]]) -> Any:
    """Return the first element of each row where all rows are parts of one input array that have their
    elements in the same order, or None."""
    flat = [leaf for column in columns for leaf in column]
    if len(columns) < 2 or not flat or not all(type(x) is Expression and x.op == "input" for x in flat):
        return None
    places = np.array([[x.data[1] for x in column] for column in columns], np.int64)
    same = np.all(places - places[:, :1] == places[0] - places[0, 0])
    return places[:, 0] if same and len({x.data[0] for x in flat}) == 1 else None


def _places(columns: Sequence[Sequence[Scalar]], *, literals: bool = True) -> list[Any]:
    """Return for each scalar of a form the literal that it is everywhere, or its cell in a row."""
    places: list[Any] = []
    offset = 0
    for j in range(len(columns[0]) if columns else 0):
        numbers = {None if is_condition(x[j]) else scalar.literal(x[j]) for x in columns}
        if literals and len(numbers) == 1 and None not in numbers:
            places.append(numbers.pop())
        else:
            places.append(_Cell(offset, is_condition(columns[0][j])))
            offset += 1
    return places
