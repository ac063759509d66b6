"""The base of all spatial values: frozen, and compared, hashed and copied by their scalars."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NoReturn, TypeVar

import numpy as np

from dalembert.errors import DalembertError, ShapeError
from dalembert.scalar import Scalar

Self = TypeVar("Self", bound="Value")


class SpatialTypeError(DalembertError, TypeError):
    """An operation that physics does not define, such as the sum of a motion and a force."""


class FrozenValueError(DalembertError, AttributeError):
    """An attempt to change a frozen value."""


def mismatch(operation: str, left: object, right: object, remedy: str) -> SpatialTypeError:
    """Return the error for `left operation right`: what was given, and what is defined instead."""
    names = f"{type(left).__name__} {operation} {type(right).__name__}"
    return SpatialTypeError(f"{names} is not defined; {remedy}")


def scalars_of(values: Any, count: int, what: str) -> list[Scalar]:
    """Return `count` scalars of a sequence or array; numbers become floats, so that zeros are structural."""
    if isinstance(values, np.ndarray) and values.ndim == 1:
        values = values.tolist()
    plain = isinstance(values, str | bytes) or (isinstance(values, np.ndarray) and not values.ndim)
    if plain or not isinstance(values, Sequence | np.ndarray | Value):
        raise SpatialTypeError(f"{what} must be a sequence of {count} scalars, got {type(values).__name__}")
    items = list(values)
    if len(items) != count:
        raise ShapeError(f"{what} must have {count} elements, got {len(items)}")
    return [float(item) if isinstance(item, int | np.integer | np.floating) else item for item in items]


class Value:
    """Abstract base of the spatial values.

    A subclass lists its fields in `__slots__` and fills them in `__init__` through the slots' own setters,
    which is twice as fast as `object.__setattr__`: values are made by the ten thousand while an algorithm is
    traced.
    """

    __slots__ = ()

    __array_ufunc__ = None  # `array * value` is the product by a scalar, not an array of values.

    def leaves(self) -> list[Scalar]:
        """Return the scalars that the value consists of, in a fixed order."""
        raise SpatialTypeError(f"{type(self).__name__} is abstract")

    def rebuilt(self: Self, leaves: Iterator[Scalar]) -> Self:
        """Return a value of the same structure from as many scalars, taken from the iterator."""
        raise SpatialTypeError(f"{type(self).__name__} is abstract")

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise FrozenValueError(f"{type(self).__name__} is frozen; make a new one instead of setting {name!r}")

    def __delattr__(self, name: str) -> NoReturn:
        raise FrozenValueError(f"{type(self).__name__} is frozen; {name!r} cannot be deleted")

    def __iter__(self) -> Iterator[Scalar]:
        return iter(self.leaves())

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        ours, theirs = self.leaves(), other.leaves()
        return len(ours) == len(theirs) and all(a is b or bool(np.all(a == b)) for a, b in zip(ours, theirs))

    def __hash__(self) -> int:
        return hash((type(self).__name__, *self.leaves()))

    def __copy__(self: Self) -> Self:
        return self

    def __deepcopy__(self: Self, memo: object) -> Self:
        return self.rebuilt(iter(self.leaves()))

    def __repr__(self) -> str:
        slots: tuple[str, ...] = type(self).__slots__
        names = [name for name in slots if name[0] != "_"]
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"


# Values as flat lists of scalars and back, for any nesting of spatial values, sequences, mappings and
# dataclasses.
#
#     rebuild(value, leaves(value)) == value
#
# What is not a scalar (names, integers that say which axis, None) is structure: it stays as it is.

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
