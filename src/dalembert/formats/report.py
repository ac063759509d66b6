"""What a reader says about a file: the report on one that it accepted, and errors about bad content."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import numpy as np

from dalembert.errors import DalembertError, FileError

if TYPE_CHECKING:
    from dalembert.model.model import Model

CHANGES_DYNAMICS: Final = "changes the dynamics: "
"""Prefix of a line about a loss that changes how the model moves."""

MAX_LINES_OF_A_KIND: Final = 200
"""Lines kept of one kind and subject; the rest are counted, so that a hostile file cannot fill memory."""

_LINES_NAMED: Final = 3


def refuse_functions(model: Model, format_name: str) -> None:
    """Refuse to write a model with constraints that are functions, which no file can hold."""
    names = [f'constraint "{item.name}"' for item in model.constraints]
    if model.closure is not None:
        names.append("the loop closure")
    if names:
        raise FileError(
            f"{format_name} cannot hold functions, such as {names[0]}; save model.tree(), and add them again "
            "when loading"
        )


class Report:
    """The lines for `model.report`; ignored things of one kind share a line."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._ignored: dict[str, list[int]] = {}
        self._left_out = 0

    def warn(self, message: str) -> None:
        """Add a warning: a doubtful value was used as the file gives it."""
        self._add(f"warning: {message}")

    def repair(self, message: str) -> None:
        """Add a repair: a value was changed so that it makes sense."""
        self._add(f"repaired: {message}")

    def note(self, message: str) -> None:
        """Add a remark on how the file was understood."""
        self._add(message)

    def ignore(self, what: str, line: int) -> None:
        """Count something in the file without effect, such as `<material>`, at that line."""
        if what in self._ignored or len(self._ignored) < MAX_LINES_OF_A_KIND:
            self._ignored.setdefault(what, []).append(line)
        else:
            self._left_out += 1

    def lines(self) -> tuple[str, ...]:
        """Return warnings and repairs in the order in which they came, then what was ignored."""
        ignored = [
            f"ignored: {what}, {len(lines)} times, {_places(lines)}"
            if len(lines) > 1
            else f"ignored: {what}, {_places(lines)}"
            for what, lines in self._ignored.items()
        ]
        more = [f"… and {self._left_out} lines more"] if self._left_out else []
        return (*self._lines, *ignored, *more)

    def _add(self, line: str) -> None:
        if len(self._lines) < MAX_LINES_OF_A_KIND * 10:
            self._lines.append(line)
        else:
            self._left_out += 1


def _places(lines: list[int]) -> str:
    named = ", ".join(str(line) for line in lines[:_LINES_NAMED])
    more = ", …" if len(lines) > _LINES_NAMED else ""
    return ("lines " if len(lines) > 1 else "line ") + named + more


FAILURES: Final = (
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    RecursionError,
    TypeError,
    ValueError,
    np.linalg.LinAlgError,
)
"""What hostile content can make a reader raise where no check of ours refused it first. `OSError` and
`KeyboardInterrupt` are not among them: they are not about the content.
"""


@contextlib.contextmanager
def reported_as_file_errors(name: str) -> Iterator[None]:
    """Turn failures of a reader into a `FileError` that names the file and keeps the failure as its cause.

    A reader refuses bad content by its own checks, with the place and the remedy. What gets past them ends
    here, so that callers need to catch errors of the library only.
    """
    try:
        yield
    except DalembertError:
        raise
    except FAILURES as error:
        raise FileError(
            f"{name} cannot be read: its content leads to {type(error).__name__}: {str(error)[:200]}; "
            "please report the file as a defect of dalembert"
        ) from error
