"""Bounded iteration over every kind of scalar."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeVar

import numpy as np

from dalembert.errors import ArgumentError, DtypeError, TracingError
from dalembert.scalar.kinds import Scalar, find, functions_of

# Nested values as flat lists of scalars and back: lists, tuples, mappings, dataclasses, spatial values.
#
# A value of a class of its own takes part by two methods: `leaves()`, the list of its scalars, and
# `rebuilt(iterator)`, a value of the same form from as many.


FORM: Final = (str, bytes, type, type(None))
"""The types of values that are part of a nested value's form, not scalars."""


def leaves(value: Any, form: tuple[type, ...] = FORM) -> list[Scalar]:
    """Return the scalars of a nested value, in a fixed order; what is of the types `form` is no scalar."""
    if isinstance(value, form):
        return []
    if isinstance(value, list | tuple):
        return [leaf for item in value for leaf in leaves(item, form)]
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in leaves(item, form)]
    if hasattr(value, "rebuilt"):
        own: list[Scalar] = value.leaves()
        return own
    if dataclasses.is_dataclass(value):
        fields = dataclasses.fields(value)
        return [leaf for field in fields for leaf in leaves(getattr(value, field.name), form)]
    return list(value.flat) if _is_nested_array(value) else [value]


def rebuild(value: Any, scalars: Sequence[Scalar]) -> Any:
    """Return a nested value of the same form with other scalars."""
    wanted = len(leaves(value))
    if len(scalars) != wanted:
        raise TracingError(
            f"the step of a loop was given {wanted} scalars and returned {len(scalars)}; "
            "it must return what it was given, in the same form"
        )
    return rebuild_from(value, iter(scalars))


def rebuild_from(value: Any, scalars: Iterator[Scalar], form: tuple[type, ...] = FORM) -> Any:
    """Return a nested value of the same form with scalars that are taken from an iterator."""
    if isinstance(value, form):
        return value
    if isinstance(value, tuple):
        parts = [rebuild_from(item, scalars, form) for item in value]
        return tuple(parts) if type(value) is tuple else type(value)(*parts)
    if isinstance(value, list):
        return [rebuild_from(item, scalars, form) for item in value]
    if isinstance(value, dict):
        return {key: rebuild_from(item, scalars, form) for key, item in value.items()}
    if hasattr(value, "rebuilt"):
        return value.rebuilt(scalars)
    if dataclasses.is_dataclass(value):
        names = [field.name for field in dataclasses.fields(value)]
        new = {name: rebuild_from(getattr(value, name), scalars, form) for name in names}
        return dataclasses.replace(value, **new)  # type: ignore[type-var]
    if _is_nested_array(value):
        array = np.empty(value.size, dtype=object)
        array[:] = [next(scalars) for _ in range(value.size)]
        return array.reshape(value.shape)
    return next(scalars)


def map_nested(value: Any, method: str, function: Callable[[Any], Any]) -> Any:
    """Return a nested value with `function(part)` for each part that has a method of that name."""
    if hasattr(value, method):
        return function(value)
    if isinstance(value, tuple):
        parts = [map_nested(item, method, function) for item in value]
        return tuple(parts) if type(value) is tuple else type(value)(*parts)
    if isinstance(value, list):
        return [map_nested(item, method, function) for item in value]
    if isinstance(value, dict):
        return {key: map_nested(item, method, function) for key, item in value.items()}
    return value


def _is_nested_array(value: Any) -> bool:
    """Return whether an array holds one scalar an element; one of numbers is one scalar itself."""
    return isinstance(value, np.ndarray) and value.dtype == object


Carry = TypeVar("Carry")


def loop(
    count: int,
    step: Callable[[Carry], Carry],
    carry: Carry,
    *,
    until: Callable[[Carry], Scalar] | None = None,
) -> Carry:
    """Return `carry` after `count` iterations of `carry = step(carry)`;
    it does not change once `until(carry)` holds.

    The carry is a scalar or any nesting of scalars: lists, tuples, mappings, dataclasses, spatial values. The
    step returns it in the same form and uses what was computed before the loop as it likes; what later
    arithmetic needs of a step goes through the carry. `until` is evaluated before each step, for each sample
    by itself: a sample that is done keeps its bits while its neighbours in a batch go on.

    In a trace the step is recorded once, not `count` times, and becomes a loop of machine code that ends when
    all samples of a block are done. It may be called several times while it is recorded.

    >>> from dalembert import scalar
    >>> def root(a):  # of a, by Newton's method
    ...     better = lambda x: 0.5 * (x + a / x)
    ...     return scalar.loop(50, better, a, until=lambda x: abs(x * x - a) < 1e-12 * a)
    >>> print(root(2.0))
    1.414213562373095
    """
    for done in range(_count(count)):
        values = leaves(carry)
        finished = False if until is None else until(carry)
        if isinstance(finished, np.ndarray | np.generic) and np.all(finished):
            break
        if finished is True:
            break
        recorder = _recorder([*values, finished])
        if recorder is None:
            new = leaves(step(carry))
            recorder = _recorder(new)
        if recorder is not None:
            result: Carry = recorder(count - done, step, carry, until)
            return result
        if finished is not False and len(new) == len(values):
            new = [_frozen(finished, old, value) for old, value in zip(values, new, strict=True)]
        carry = rebuild(carry, new)
    return carry


def _count(count: int) -> int:
    try:
        number = operator.index(count)
    except TypeError:
        raise DtypeError(
            f"a loop is run a whole number of times, got {type(count).__name__}; a number that depends on "
            "data is a bound and a condition: loop(bound, step, carry, until=condition)"
        ) from None
    if number < 0:
        raise ArgumentError(f"a loop cannot be run {number} times; count must be 0 or more")
    return number


def _frozen(finished: Scalar, old: Scalar, new: Scalar) -> Scalar:
    return old if new is old else functions_of(finished, old, new).select(finished, old, new)


def _recorder(values: list[Scalar]) -> Any:
    """Return the recorder of the first kind among the values that records iterations, or None."""
    for value in values:
        recorder = getattr(find(type(value)), "loop", None)
        if recorder is not None:
            return recorder
    return None
