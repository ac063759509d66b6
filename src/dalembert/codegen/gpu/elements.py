"""Loops of one thread over elements of its arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from dalembert.codegen.ir import Value, Writer
from dalembert.codegen.memory import Place

__all__ = ["copy", "fill"]

MAX_UNROLLED_ELEMENTS: Final = 512
"""Elements up to which a copy is unrolled."""

LOADS_IN_FLIGHT: Final = 16
"""Loads of a copy that are in flight at once."""


def fill(writer: Writer, place: Place, start: int, stop: int) -> None:
    """Fill the elements from `start` to `stop` with zeros."""
    zero = writer.constant(0.0)
    if place.scattered or stop - start <= 8:
        for position in range(start, stop):
            place.store(writer, zero, position)
        return
    _each(writer, start, stop, lambda at: _put(writer, place, at, zero))


def copy(writer: Writer, source: Place, target: Place, size: int) -> None:
    """Copy the first `size` elements of one array into another."""

    def move(at: Value) -> None:
        place = writer.let(f"mul i64 {at}, {source.item}")
        _put(writer, target, at, writer.load(source.base, place, source.align))

    if size > MAX_UNROLLED_ELEMENTS:
        _each(writer, 0, size, move)
        return
    for start in range(0, size, LOADS_IN_FLIGHT):
        positions = range(start, min(start + LOADS_IN_FLIGHT, size))
        values = [source.load(writer, position) for position in positions]
        for position, value in zip(positions, values):
            target.store(writer, value, position)


def _put(writer: Writer, place: Place, at: Value, value: Value) -> None:
    writer.store(value, place.base, writer.let(f"mul i64 {at}, {place.item}"), place.align)


def _each(writer: Writer, start: int, stop: int, task: Callable[[Value], None]) -> None:
    before, head, after = (writer.label() for _ in range(3))
    at = f"%{head}.at"
    writer.line(f"br label %{before}")
    writer.begin(before)
    writer.line(f"br label %{head}")
    writer.begin(head)
    writer.line(f"{at} = phi i64 [ {start}, %{before} ], [ {at}.next, %{head} ]")
    task(at)
    writer.line(f"{at}.next = add i64 {at}, 1")
    more = writer.let(f"icmp ult i64 {at}.next, {stop}")
    writer.line(f"br i1 {more}, label %{head}, label %{after}")
    writer.begin(after)
