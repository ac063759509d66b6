"""What a function of the caller's has taken from around it, so that a change of that is noticed.

A traced policy becomes machine code once, with the numbers that it found: globals, variables of enclosing
functions, attributes of its object. Where one of them has another value later, the code is that of another
function.
"""

from __future__ import annotations

import functools
import hashlib
import types
from collections.abc import Callable, Iterable, Iterator, MutableMapping
from typing import Any, Final, TypeVar

import numpy as np

__all__ = ["captured", "kept"]

Made = TypeVar("Made")

DEPTH: Final = 6
"""Values inside values, and functions inside functions, are looked at up to this."""
LARGEST: Final = 1 << 26
"""Bytes of an array that are compared; larger ones are known by what they are, not by what they hold."""


def kept(
    store: MutableMapping[Any, Any],
    key: tuple[Any, ...],
    functions: Iterable[Callable[..., Any] | None],
    make: Callable[[], Made],
) -> Made:
    """What was made of functions, as long as they and what they have captured are the same; else made anew,
    in the place of the old."""
    held = tuple(function for function in functions if function is not None)
    place = (*key, *map(_identity, held))
    values = captured(*held)
    found = store.get(place)
    if found is None or found[1] != values:
        found = store[place] = (held, values, make())  # they live on, so that no other takes their place
    made: Made = found[2]
    return made


def _identity(function: Callable[..., Any]) -> tuple[int, ...]:
    """A bound method is another object at every mention of it."""
    if isinstance(function, types.MethodType):
        return id(function.__self__), id(function.__func__)
    return (id(function),)


def captured(*functions: Callable[..., Any]) -> tuple[Any, ...]:
    """The values that functions depend on, as something to compare."""
    return tuple(_described(function, DEPTH, set()) for function in functions)


def _described(value: Any, depth: int, seen: set[int]) -> Any:
    if value is None or isinstance(value, bool | int | float | complex | str | bytes | np.generic):
        return type(value).__name__, repr(value)
    if isinstance(value, np.ndarray):
        return _array(value)
    if depth == 0 or id(value) in seen or isinstance(value, types.ModuleType | type):
        return id(value)
    seen = seen | {id(value)}
    if isinstance(value, tuple | list):
        return type(value).__name__, tuple(_described(item, depth - 1, seen) for item in value)
    if isinstance(value, dict):
        items = ((repr(name), _described(item, depth - 1, seen)) for name, item in value.items())
        return "dict", tuple(items)
    if isinstance(value, types.FunctionType):
        return _function(value, depth, seen)
    if isinstance(value, types.MethodType):
        return _described(value.__func__, depth - 1, seen), _described(value.__self__, depth - 1, seen)
    parts: tuple[Any, ...]
    if isinstance(value, functools.partial):
        parts = (value.func, value.args, value.keywords)
    else:
        own = getattr(value, "__dict__", None)
        parts = (own,) if isinstance(own, dict) and not _ours(type(value)) else ()
    return id(value), tuple(_described(part, depth - 1, seen) for part in parts)


def _array(value: np.ndarray[Any, Any]) -> Any:
    if value.dtype.hasobject or value.nbytes > LARGEST:
        return id(value)
    content = hashlib.blake2b(np.ascontiguousarray(value).tobytes()).hexdigest()
    return value.shape, value.dtype.str, content


def _function(function: types.FunctionType, depth: int, seen: set[int]) -> Any:
    if _ours(function):
        return id(function)
    around = [cell.cell_contents for cell in function.__closure__ or () if _filled(cell)]
    around += [
        function.__globals__[name] for name in _names(function.__code__) if name in function.__globals__
    ]
    values = (*around, function.__defaults__, function.__kwdefaults__)
    return function.__code__, tuple(_described(value, depth - 1, seen) for value in values)


def _names(code: types.CodeType) -> Iterator[str]:
    """Names that may be globals, in functions inside it too."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


def _filled(cell: types.CellType) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False


def _ours(thing: Any) -> bool:
    """Whether it belongs to this library or to NumPy, whose parts do not change."""
    return str(getattr(thing, "__module__", "")).partition(".")[0] in ("dalembert", "numpy")
