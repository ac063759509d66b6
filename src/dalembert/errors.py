"""Every exception of dalembert. A message says the fact, the place and the remedy."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

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
]

MAX_LISTED_NAMES = 20
"""Number of valid names that an `UnknownNameError` spells out."""


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
    """A number that counts to no item."""


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
    """A GPU that is not there, that cannot do what is asked, or that failed."""


class MissingExtraError(DalembertError, ImportError):
    """An optional dependency is not installed."""
