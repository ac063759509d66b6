"""Index sets over every kind of scalar: code that is written, traced and compiled once for many rows.

A `loop` repeats a step; `Rows` are what data-parallel code runs over: the pairs of a scene, the points of
contact, the bodies that they act on. Rows come with constants (`numbers`, `links` to rows of another set,
`ranges` of its rows) and with values (`Family`), and code runs over them in these ways:

    rows.each(step)                a value for each row
    rows.each_where(which, step)   the same, of the rows for which a condition holds
    rows.fold(step, carry)         one value from all rows, in order
    rows.scan(step, carry)         both: a value for each row that depends on those before
    rows.scatter(step, to, zero)   sums of contributions to the rows of another set
    rows.scatter_each(…)           both: sums, and a value for each row
    rows.write(writes)             values of rows that differ from sample to sample
    rows.collect(sources)          the rows that some code names at run time, with a value for each
    rows.collect_each(sources)     and a value for each row of the sources

What `collect` returns are rows again. In a batch they are the rows that any sample names, so that all samples
visit the same rows: a sample that did not name a row must make its value harmless. A trace records each step
once, for any number of rows, and machine code visits the rows that were named and no others.

    >>> from dalembert import scalar
    >>> masses = [1.0, 2.0, 4.0]
    >>> parts = scalar.rows(3, like=masses)
    >>> m = parts.stack(masses)
    >>> heavy = parts.where(lambda i: m[i] > 1.5)
    >>> print(heavy.fold(lambda total, i: total + m[i], 0.0))
    6.0
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar, cast, final

import numpy as np
import numpy.typing as npt

from dalembert.errors import ArgumentError, ShapeError
from dalembert.scalar.for_each import leaves, rebuild
from dalembert.scalar.kinds import FLOAT, Scalar, find, functions_of

Numbers: TypeAlias = Sequence[float] | npt.NDArray[Any]
"""Constants, one for each row."""

T = TypeVar("T")
Carry = TypeVar("Carry")
Value = TypeVar("Value")


class Row(Protocol):
    """One row while code runs over it: an index of families, nothing to compute with."""


class Named(NamedTuple):
    """A row that a step of `collect` names where `condition` holds, and the value to keep with it."""

    row: Row
    condition: Scalar
    value: Any = ()


class Source(NamedTuple):
    """Code that names rows: a step that yields what it names for each row of a set, for `collect_each` a step
    that returns this and a value."""

    rows: Rows
    step: Callable[[Row], Any]


def _alone(step: Callable[[Row], Iterable[Named]], row: Row) -> tuple[Iterable[Named], tuple[()]]:
    return step(row), ()


class Write(NamedTuple):
    """Code that writes values of rows: a step that yields (row, value) for each row of a set. The row may be
    a number that differs from sample to sample; one outside of the set writes nothing."""

    rows: Rows
    step: Callable[[Row], Iterable[tuple[Row | Scalar, Any]]]


class Family(ABC, Generic[T]):
    """A value of one form for each row of a set."""

    @abstractmethod
    def __getitem__(self, row: Row) -> T:
        """Return the value of a row."""

    @abstractmethod
    def at(self, number: int) -> T:
        """Return the value of the row with a known number."""

    def first(self, count: int) -> list[T]:
        """Return the values of that many rows, from the first one on."""
        return [self.at(number) for number in range(count)]


@final
class Linked(Family[T]):
    """The values of the rows that other rows are linked to."""

    def __init__(self, links: Family[Row], values: Family[T]) -> None:
        self._links, self._values = links, values

    def __getitem__(self, row: Row) -> T:
        return self._values[self._links[row]]

    def at(self, number: int) -> T:
        return self._values[self._links.at(number)]


class Rows(ABC):
    """A set of rows, numbered from 0, or those that `collect` found."""

    @property
    @abstractmethod
    def every(self) -> Row:
        """The row that stands for every one of a set: what code reads there is *wide*, a value for each row,
        with which it computes as with one number. Loops over the rows read the value of their own row;
        `sum_all` and `greatest` make one number of those of all rows. For traces alone."""

    @abstractmethod
    def numbers(self, values: Numbers) -> Family[Scalar]:
        """Return a constant for each row."""

    @abstractmethod
    def columns(self, values: Sequence[Sequence[float]]) -> list[Family[Scalar]]:
        """Return the constants of rows of several numbers, a family for each place in a row."""

    @abstractmethod
    def links(self, to: Rows, numbers: Numbers) -> Family[Row]:
        """Return for each row a row of another set, by constant numbers."""

    @abstractmethod
    def ranges(self, of: Rows, first: Sequence[int], counts: Sequence[int]) -> Family[Rows]:
        """Return for each row the rows of another set, not a collected one, from a number on."""

    @abstractmethod
    def stack(self, values: Sequence[T]) -> Family[T]:
        """Return the family of values that are known one by one."""

    @abstractmethod
    def each(self, step: Callable[[Row], T]) -> Family[T]:
        """Return `step(row)` for each row."""

    @abstractmethod
    def each_where(self, condition: Callable[[Row], Scalar], step: Callable[[Row], T]) -> Family[T]:
        """Return `step(row)` for each row for which a condition holds; other values are not defined.

        Samples that share the rows may be at rows of their own, so that none waits while others are at a row
        that it does not need. The step has no loops over rows.
        """

    @abstractmethod
    def scan(self, step: Callable[[Carry, Row], tuple[Carry, T]], carry: Carry) -> tuple[Carry, Family[T]]:
        """Return the carry after `carry, value = step(carry, row)` for all rows in order, and the values."""

    def fold(self, step: Callable[[Carry, Row], Carry], carry: Carry) -> Carry:
        """Return the carry after `carry = step(carry, row)` for all rows in order."""
        return self.scan(lambda so_far, row: (step(so_far, row), ()), carry)[0]

    @abstractmethod
    def write(self, writes: Sequence[Write]) -> Family[Any]:
        """Return the values that are written, in order; those of other rows are not defined."""

    def scatter(self, step: Callable[[Row], Iterable[tuple[Row, T]]], to: Rows, zero: T) -> Family[T]:
        """Return, for the rows of `to`, the sums of the values that the step yields for them; `to` may be
        collected from the set whose rows the step names, and must then have all that it names."""
        return self.scatter_each(lambda row: (step(row), ()), to, zero)[0]

    @abstractmethod
    def scatter_each(
        self, step: Callable[[Row], tuple[Iterable[tuple[Row, T]], Value]], to: Rows, zero: T
    ) -> tuple[Family[T], Family[Value]]:
        """Return the sums of `scatter` and the values of `each`, from a step that returns what it yields for
        rows of `to`, and its value."""

    def collect(self, sources: Sequence[Source]) -> tuple[Rows, Family[Any]]:
        """Return the rows of this set that the sources name, in the order of naming, with their values."""
        found, values, _ = self.collect_each([Source(rows, partial(_alone, step)) for rows, step in sources])
        return found, values

    @abstractmethod
    def collect_each(self, sources: Sequence[Source]) -> tuple[Rows, Family[Any], list[Family[Any]]]:
        """Return what `collect` does, and for each source the values of its own rows: their steps give what
        they name and a value."""

    def where(self, condition: Callable[[Row], Scalar]) -> Rows:
        """Return the rows for which a condition holds in any sample."""
        return self.collect([Source(self, lambda row: [Named(row, condition(row))])])[0]


def rows(count: int, *, like: Any) -> Rows:
    """Return a set of `count` rows for code that computes with scalars of the kind of `like`, nested as it
    may be."""
    for value in leaves(like):
        recorder = getattr(find(type(value)), "rows", None)
        if recorder is not None:
            found: Rows = recorder(value, count)
            return found
    return _PlainRows(None, [{} for _ in range(count)])


# Wide values (`Rows.every`): from all rows to one number.


def rows_of(value: Scalar) -> Rows | None:
    """Return the rows that a wide value stands for; None for any other."""
    finder = getattr(find(type(value)), "rows_of", None)
    found: Rows | None = None if finder is None else finder(value)
    return found


def sum_all(terms: Iterable[Scalar], start: Scalar = 0.0) -> Scalar:
    """Return `start` and the terms, added up in order; of a wide one, the values of all rows."""
    return _reduce(terms, start, lambda a, b: a + b)


def greatest(terms: Iterable[Scalar], start: Scalar) -> Scalar:
    """Return the greatest of `start` and the terms; of a wide one, the values of all rows."""
    return _reduce(terms, start, lambda a, b: functions_of(a, b).maximum(a, b))


def _reduce(terms: Iterable[Scalar], start: Scalar, join: Callable[[Scalar, Scalar], Scalar]) -> Scalar:
    wide: list[tuple[Rows, Scalar]] = []
    for term in terms:
        own = rows_of(term)
        if own is None:
            start = join(start, term)
        elif wide and wide[-1][0] is own:
            wide[-1] = own, join(wide[-1][1], term)
        else:
            wide.append((own, term))
    for own, value in wide:
        start = own.fold(partial(_join_row, join, value), start)
    return start


def _join_row(join: Callable[[Scalar, Scalar], Scalar], value: Scalar, so_far: Scalar, _: Row) -> Scalar:
    return join(so_far, value)


def at_first_row(value: T) -> T:
    """Return a nested value with the first row's of each of its wide values."""

    def first(x: Scalar) -> Scalar:
        own = rows_of(x)
        return x if own is None else own.each(lambda _: x).at(0)

    found: T = rebuild(value, [first(x) for x in leaves(value)])
    return found


# Rows of numbers and arrays: each is visited in Python. A row is known by its place in its set and in those
# that its set was collected from.


def _place(row: Row, rows: _PlainRows) -> int:
    """Return the place of a row in one of the sets that it belongs to."""
    places = cast("dict[Any, int]", row)
    if rows not in places:
        raise ArgumentError(
            "a family is indexed by rows of its own set, of sets collected from it, or by links"
        )
    return places[rows]


@final
class _PlainFamily(Family[Any]):
    def __init__(self, of: _PlainRows, values: Sequence[Any]) -> None:
        self._rows, self._values = of, list(values)

    def __getitem__(self, row: Row) -> Any:
        return self._values[_place(row, self._rows)]

    def at(self, number: int) -> Any:
        return self._values[number]

    # A family may be part of what a loop carries.

    def leaves(self) -> list[Scalar]:
        return leaves(self._values)

    def rebuilt(self, scalars: Iterator[Scalar]) -> _PlainFamily:
        own = [next(scalars) for _ in leaves(self._values)]
        return _PlainFamily(self._rows, rebuild(self._values, own))


@final
class _PlainRows(Rows):
    def __init__(self, parent: _PlainRows | None, places: Sequence[dict[Any, int]]) -> None:
        self._parent = parent
        self._places = [{**place, self: k} for k, place in enumerate(places)]

    @property
    def every(self) -> Row:
        raise ArgumentError("rows of numbers have no values of every row; trace the code")

    def numbers(self, values: Numbers) -> Family[Scalar]:
        return self.stack([float(x) for x in values])

    def columns(self, values: Sequence[Sequence[float]]) -> list[Family[Scalar]]:
        return [self.numbers(column) for column in zip(*values, strict=True)]

    def links(self, to: Rows, numbers: Numbers) -> Family[Row]:
        return self.stack([{to: int(k)} for k in numbers])

    def ranges(self, of: Rows, first: Sequence[int], counts: Sequence[int]) -> Family[Rows]:
        pieces = [range(int(k), int(k) + int(n)) for k, n in zip(first, counts, strict=True)]
        return self.stack([_PlainRows(None, [{of: k} for k in piece]) for piece in pieces])

    def stack(self, values: Sequence[Any]) -> Family[Any]:
        if len(values) != len(self._places):
            raise ShapeError(f"{len(values)} values for {len(self._places)} rows")
        return _PlainFamily(self, values)

    def each(self, step: Callable[[Row], Any]) -> Family[Any]:
        return _PlainFamily(self, [step(place) for place in self._places])

    def each_where(self, condition: Callable[[Row], Scalar], step: Callable[[Row], Any]) -> Family[Any]:
        return self.each(step)

    def scan(self, step: Callable[[Any, Row], tuple[Any, Any]], carry: Any) -> tuple[Any, Family[Any]]:
        values = []
        for place in self._places:
            carry, value = step(carry, place)
            values.append(value)
        return carry, _PlainFamily(self, values)

    def write(self, writes: Sequence[Write]) -> Family[Any]:
        found: list[Any] = [None] * len(self._places)
        for rows, step in writes:
            for place in rows._places:  # type: ignore[attr-defined]
                for row, value in step(place):
                    if isinstance(row, dict):
                        found[row[self]] = value
                        continue
                    number: Any = row
                    for k in {int(x) for x in np.ravel(number) if 0.0 <= x < len(found)}:
                        old = value if found[k] is None else found[k]
                        here = np.floor(number) == k
                        new = [
                            FLOAT.select(here, a, b) if np.ndim(here) == 0 else np.where(here, a, b)
                            for a, b in zip(leaves(value), leaves(old), strict=True)
                        ]
                        found[k] = rebuild(value, new)
        return _PlainFamily(self, found)

    def scatter_each(
        self, step: Callable[[Row], tuple[Iterable[tuple[Row, Any]], Any]], to: Rows, zero: Any
    ) -> tuple[Family[Any], Family[Any]]:
        if not isinstance(to, _PlainRows):
            raise ArgumentError("rows of numbers are summed to rows of numbers")
        whole = to
        while whole._parent is not None:
            whole = whole._parent
        start = leaves(zero)
        sums, values = [list(start) for _ in whole._places], []
        for place in self._places:
            added, own = step(place)
            values.append(own)
            for row, value in added:
                k = _place(row, whole)
                sums[k] = [a + b for a, b in zip(sums[k], leaves(value), strict=True)]
        return _PlainFamily(whole, [rebuild(zero, item) for item in sums]), _PlainFamily(self, values)

    def collect_each(self, sources: Sequence[Source]) -> tuple[Rows, Family[Any], list[Family[Any]]]:
        named: list[Named] = []
        kept: list[Family[Any]] = []
        for rows, step in sources:
            own = []
            for place in rows._places:  # type: ignore[attr-defined]
                items, value = step(place)
                named += [item for item in items if _may_hold(item.condition)]
                own.append(value)
            kept.append(rows.stack(own))
        found = _PlainRows(self, [cast("dict[Any, int]", item.row) for item in named])
        return found, found.stack([item.value for item in named]), kept


def _may_hold(condition: Scalar) -> bool:
    """Return whether a condition holds in any sample; a symbolic one may."""
    known = isinstance(condition, bool | np.bool_ | np.ndarray)
    return bool(np.any(condition)) if known else True
