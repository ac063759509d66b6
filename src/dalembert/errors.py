"""Every exception of dalembert. A message says the fact, the place and the remedy."""

from __future__ import annotations

import contextlib
import difflib
import functools
import math
import numbers
import operator
from collections.abc import Callable, Iterable
from typing import Any, ParamSpec, TypeVar

__all__ = [
    "ArgumentError",
    "CompileError",
    "ContactError",
    "DalembertError",
    "DeviceError",
    "DtypeError",
    "FileError",
    "InertiaError",
    "MissingExtraError",
    "ModelError",
    "OutOfRangeError",
    "ProgramSizeError",
    "ShapeError",
    "StateError",
    "TracingError",
    "UnknownNameError",
    "items_of",
    "own_errors",
    "require_choice",
    "require_flag",
    "require_names",
]

Given = ParamSpec("Given")
Found = TypeVar("Found")

FOREIGN = (TypeError, ValueError, AttributeError, ArithmeticError, LookupError, RuntimeError, MemoryError)
"""Exceptions of Python and NumPy for an argument of the wrong kind."""

MAX_LISTED_NAMES = 20
"""Number of valid names that an `UnknownNameError` spells out."""

MAX_SHOWN_CHARACTERS = 200
"""Length of a name in a message; more is cut."""

MAX_REPR_CHARACTERS = 60
"""Length of the repr of a value in a message; more is cut."""


class DalembertError(Exception):
    """The base class of every exception that dalembert raises on purpose."""


class ArgumentError(DalembertError, ValueError):
    """An argument has a value that the function cannot accept."""


class ShapeError(ArgumentError):
    """An array argument has the wrong shape."""


class DtypeError(DalembertError, TypeError):
    """An array argument has an element type that the function cannot accept."""


class UnknownNameError(DalembertError, KeyError):
    """A body, joint, frame, method or option name that does not exist."""

    @classmethod
    def of(cls, kind: str, name: object, valid: Iterable[object]) -> UnknownNameError:
        """Build `unknown body "hnd"; valid: "arm", "hand"; nearest: "hand"` from the names that exist."""
        names = [str(item) for item in valid]
        name = _short_text(name)
        listed = ", ".join(f'"{item}"' for item in names[:MAX_LISTED_NAMES]) or "none"
        if len(names) > MAX_LISTED_NAMES:
            listed += f", … ({len(names)} in all)"
        message = f'unknown {kind} "{name}"; valid: {listed}'
        nearest = difflib.get_close_matches(str(name), names, n=3, cutoff=0.6)
        if nearest:
            message += "; nearest: " + ", ".join(f'"{item}"' for item in nearest)
        return cls(message)

    def __str__(self) -> str:
        # KeyError would show the repr of the message, with its quotes escaped.
        return str(self.args[0]) if self.args else ""


class OutOfRangeError(DalembertError, IndexError):
    """An index outside the valid range."""


class ModelError(DalembertError, ValueError):
    """A model, or the data to build one from, is not a valid system of bodies and joints."""


class FileError(DalembertError, ValueError):
    """A file that cannot be read or written, or that does not hold what its ending says."""


class InertiaError(ModelError):
    """An inertia that no body of positive mass density can have."""


class StateError(DalembertError, ValueError):
    """A state outside the configuration space, such as a quaternion that is not of unit length."""


class ContactError(DalembertError, ValueError):
    """Contacts that no forces can keep from penetrating; `contacts` are their numbers, where known."""

    contacts: tuple[int, ...] = ()


class TracingError(DalembertError, TypeError):
    """A traced function does something that cannot be recorded as straight-line arithmetic."""


class CompileError(DalembertError, RuntimeError):
    """A program could not be turned into machine code on this machine."""


class ProgramSizeError(CompileError):
    """A program has more operations than may be compiled."""


class DeviceError(DalembertError, RuntimeError):
    """A GPU that is missing, that cannot do what is requested, or that failed."""


class MissingExtraError(DalembertError, ImportError):
    """An optional dependency is not installed."""


def own_errors(function: Callable[Given, Found]) -> Callable[Given, Found]:
    """Decorate a public function so that arguments of a kind it cannot compute with are an `ArgumentError`.

    For functions of Python's numbers and lists that take time anyway; functions of arrays check theirs.
    """

    @functools.wraps(function)
    def call(*args: Given.args, **options: Given.kwargs) -> Found:
        try:
            return function(*args, **options)
        except DalembertError:
            raise
        except FOREIGN as error:
            raise ArgumentError(
                f"{function.__name__} cannot compute with these arguments ({type(error).__name__}: {error}); "
                f"see help({function.__name__}) for what it takes"
            ) from error

    return call


def require_choice(kind: str, value: object, valid: Iterable[str]) -> str:
    """Return a name if it is one of the valid ones; anything else, arrays and numbers too, is unknown."""
    names = tuple(valid)
    if isinstance(value, str) and value in names:
        return value
    raise UnknownNameError.of(kind, value, names)


def require_names(what: str, values: object) -> tuple[str, ...]:
    """Return names that were given as a list, a tuple or another iterable of strings."""
    if isinstance(values, str):
        raise ArgumentError(f'{what} is a list of names; write ["{_short_text(values)}"]')
    if isinstance(values, Iterable):
        names = tuple(items_of(values))
        if all(isinstance(name, str) for name in names):
            return names
    raise ArgumentError(f"{what} is a list of names, got {_short_text(values)}")


def require_flag(what: str, value: object) -> bool:
    """Return True or False, also of NumPy; anything else, numbers and arrays too, is refused."""
    if value is True or value is False or type(value).__name__ in ("bool", "bool_"):
        return bool(value)
    raise ArgumentError(f"{what} is {_short_text(value)}; give True or False")


def items_of(values: Any) -> list[Any]:
    """Return the items of a list, a tuple, an array or another iterable; anything else is the only item."""
    plain = isinstance(values, str | bytes) or getattr(values, "ndim", 1) == 0
    return [values] if plain or not isinstance(values, Iterable) else list(values)


def whole_number(what: str, value: Any, least: int, most: int) -> int:
    """Return a whole number from `least` to `most`; `what` names the argument in the error."""
    try:
        number = operator.index(value)
    except TypeError:
        number = least - 1
    if not least <= number <= most or type(value).__name__ in ("bool", "bool_"):
        raise ArgumentError(f"{what} is {short_repr(value)}; give a whole number from {least} to {most}")
    return number


def positive_number(what: str, value: Any, unit: str = "") -> float:
    """Return a finite number above zero; `what` names the argument in the error."""
    number = math.nan
    if not isinstance(value, bool) and isinstance(value, numbers.Real):
        with contextlib.suppress(OverflowError):  # an int beyond all floats
            number = float(value)
    if not 0.0 < number < math.inf:
        raise ArgumentError(
            f"{what} is {short_repr(value)}; give a finite number above zero{unit and f' [{unit}]'}"
        )
    return number


def short_repr(value: object) -> str:
    """Return the repr of a value as a message shows it: short, and without an error of its own."""
    return _shorten(repr, value, MAX_REPR_CHARACTERS)


def _short_text(value: object) -> str:
    """Return a value as a message shows it: short, and without an error of its own."""
    text = _shorten(str, value, MAX_SHOWN_CHARACTERS)
    return text.encode("utf-8", "backslashreplace").decode()


def _shorten(write: Callable[[object], str], value: object, length: int) -> str:
    try:
        text = write(value)
    except Exception:  # an int of thousands of digits, or somebody's class
        text = f"a {type(value).__name__}"
    return text if len(text) <= length else f"{text[:length]}…"
