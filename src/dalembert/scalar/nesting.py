"""Nested values as flat lists of scalars and back: lists, tuples, mappings, dataclasses, spatial values.

A value of a class of its own takes part by two methods: `leaves()`, the list of its scalars, and
`rebuilt(iterator)`, a value of the same form from as many.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dalembert.errors import TracingError
from dalembert.scalar.kinds import Scalar

__all__ = ["leaves", "rebuild"]


def leaves(value: Any) -> list[Scalar]:
    """Return the scalars of a nested value, in a fixed order; names and None are part of its form."""
    if isinstance(value, list | tuple):
        return [leaf for item in value for leaf in leaves(item)]
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in leaves(item)]
    if hasattr(value, "rebuilt"):
        own: list[Scalar] = value.leaves()
        return own
    if dataclasses.is_dataclass(value):
        return [leaf for field in dataclasses.fields(value) for leaf in leaves(getattr(value, field.name))]
    if _is_nested_array(value):
        return list(value.flat)
    return [] if value is None or isinstance(value, str) else [value]


def rebuild(form: Any, scalars: Sequence[Scalar]) -> Any:
    """Return a value of the given form with other scalars."""
    wanted = len(leaves(form))
    if len(scalars) != wanted:
        raise TracingError(
            f"the step of a loop was given {wanted} scalars and returned {len(scalars)}; "
            "it must return what it was given, in the same form"
        )
    return _rebuilt(form, iter(scalars))


def _rebuilt(form: Any, scalars: Iterator[Scalar]) -> Any:
    if isinstance(form, tuple):
        parts = [_rebuilt(item, scalars) for item in form]
        return tuple(parts) if type(form) is tuple else type(form)(*parts)
    if isinstance(form, list):
        return [_rebuilt(item, scalars) for item in form]
    if isinstance(form, dict):
        return {key: _rebuilt(item, scalars) for key, item in form.items()}
    if hasattr(form, "rebuilt"):
        return form.rebuilt(scalars)
    if dataclasses.is_dataclass(form) and not isinstance(form, type):
        names = [field.name for field in dataclasses.fields(form)]
        return dataclasses.replace(form, **{name: _rebuilt(getattr(form, name), scalars) for name in names})
    if _is_nested_array(form):
        array = np.empty(form.size, dtype=object)
        array[:] = [next(scalars) for _ in range(form.size)]
        return array.reshape(form.shape)
    return form if form is None or isinstance(form, str) else next(scalars)


def _is_nested_array(value: Any) -> bool:
    """Return whether an array holds one scalar an element, as arrays of objects do;
    one of numbers is one scalar."""
    return isinstance(value, np.ndarray) and value.dtype == object
