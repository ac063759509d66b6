"""Options of readers, their reports on the content of a file, their errors, and the losses of writers."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, Literal, get_args

import numpy as np

from dalembert.errors import DalembertError, FileError, require_choice

if TYPE_CHECKING:
    from dalembert.model.model import Model

RootOption = Literal["fixed", "floating"] | None
InertiaOption = Literal["as_given", "strict", "repair"]

CHANGES_DYNAMICS: Final = "changes the dynamics: "
"""Prefix of a line about a loss that changes how the model moves."""

MAX_LINES_OF_A_KIND: Final = 200
"""Lines kept of one kind and subject; the rest are counted, so that a hostile file cannot fill memory."""

_LINES_NAMED: Final = 3


def check_options(root: object, inertia: object) -> None:
    """Reject options of readers that do not exist."""
    if root is not None:
        require_choice("root", root, ("fixed", "floating"))
    require_choice("inertia option", inertia, get_args(InertiaOption))


def reject_functions(model: Model, format_name: str) -> None:
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
        self.note(f"warning: {message}")

    def repair(self, message: str) -> None:
        """Add a repair: a value was changed so that it makes sense."""
        self.note(f"repaired: {message}")

    def note(self, message: str) -> None:
        """Add a remark on how the file was understood."""
        if len(self._lines) < MAX_LINES_OF_A_KIND * 10:
            self._lines.append(message)
        else:
            self._left_out += 1

    def ignore(self, what: str, line: int) -> None:
        """Count something in the file without effect, such as `<material>`, at that line."""
        if what in self._ignored or len(self._ignored) < MAX_LINES_OF_A_KIND:
            self._ignored.setdefault(what, []).append(line)
        else:
            self._left_out += 1

    def lines(self) -> tuple[str, ...]:
        """Return warnings and repairs in the order in which they came, then what was ignored."""
        ignored = []
        for what, lines in self._ignored.items():
            named = ", ".join(map(str, lines[:_LINES_NAMED])) + (", …" if len(lines) > _LINES_NAMED else "")
            times = f"{len(lines)} times, lines" if len(lines) > 1 else "line"
            ignored.append(f"ignored: {what}, {times} {named}")
        more = [f"… and {self._left_out} lines more"] if self._left_out else []
        return (*self._lines, *ignored, *more)


FAILURES: Final = (
    ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError,
    np.linalg.LinAlgError,
)  # fmt: skip
"""What hostile content can make a reader raise where no check of ours rejected it first. `OSError` and
`KeyboardInterrupt` are not among them: they are not about the content.
"""


@contextlib.contextmanager
def reported_as_file_errors(name: str) -> Iterator[None]:
    """Turn failures of a reader into a `FileError` that names the file and keeps the failure as its cause.

    A reader rejects bad content by its own checks, with the place and the remedy. What gets past them ends
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
