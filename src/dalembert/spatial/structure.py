"""Values as flat lists of scalars and back, for any nesting of spatial values, sequences, mappings and
dataclasses.

    rebuild(value, leaves(value)) == value

What is not a scalar (names, integers that say which axis, None) is structure: it stays as it is.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from dalembert.errors import ShapeError
from dalembert.scalar import Scalar
from dalembert.spatial.value import Value

__all__ = ["leaves", "rebuild"]

T = TypeVar("T")


def leaves(value: Any) -> list[Scalar]:
    """Return the scalars of a nested value, in a fixed order."""
    if isinstance(value, Value):
        return value.leaves()
    if isinstance(value, tuple | list):
        return [leaf for item in value for leaf in leaves(item)]
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in leaves(item)]
    if _is_record(value):
        return [leaf for field in dataclasses.fields(value) for leaf in leaves(getattr(value, field.name))]
    return [] if _is_structure(value) else [value]


def rebuild(value: T, new_leaves: Iterable[Scalar]) -> T:
    """Return a value of the same structure with other scalars, exactly as many as `leaves(value)` has."""
    items = list(new_leaves)
    wanted = len(leaves(value))
    if len(items) != wanted:
        raise ShapeError(f"a {type(value).__name__} of {wanted} scalars cannot be rebuilt from {len(items)}")
    rebuilt: T = _rebuild(value, iter(items))
    return rebuilt


def _rebuild(value: Any, items: Iterator[Scalar]) -> Any:
    if isinstance(value, Value):
        return value.rebuilt(items)
    if isinstance(value, tuple):
        parts = [_rebuild(item, items) for item in value]
        return type(value)(*parts) if type(value) is not tuple else tuple(parts)
    if isinstance(value, list):
        return [_rebuild(item, items) for item in value]
    if isinstance(value, dict):
        return {key: _rebuild(item, items) for key, item in value.items()}
    if _is_record(value):
        fields = {
            field.name: _rebuild(getattr(value, field.name), items) for field in dataclasses.fields(value)
        }
        return dataclasses.replace(value, **fields)
    return value if _is_structure(value) else next(items)


def _is_record(value: Any) -> bool:
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


def _is_structure(value: Any) -> bool:
    return value is None or isinstance(value, str | bool | bytes | type)
