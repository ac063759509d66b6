"""Text files read line by line: their lines, their numbers, and errors that say the line."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

from dalembert.errors import FileError
from dalembert.formats.document import MAX_FILE_BYTES
from dalembert.formats.resources import read_regular_file

__all__ = ["PlainText", "read_plain_text"]

MAX_LINES: Final = 4_000_000
"""Files with more lines are refused; a line costs more memory than the bytes in it."""

_BYTE_ORDER_MARKS: Final = (b"\xff\xfe", b"\xfe\xff")
_EXCERPT: Final = 40


def read_plain_text(path: Path) -> PlainText:
    """Read the lines of a regular file of bounded size (`document.MAX_FILE_BYTES`): UTF-8, or UTF-16 with its
    mark.
    """
    content = read_regular_file(path, limit=MAX_FILE_BYTES)
    if not content.strip():
        raise FileError(f"{path.name} is empty")
    encoding = "utf-16" if content.startswith(_BYTE_ORDER_MARKS) else "utf-8-sig"
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError:
        text = content.decode("latin-1")  # names written by old programs; the numbers are ASCII all the same
    zero = text.find("\0")
    if zero >= 0:
        line = text.count("\n", 0, zero) + 1
        raise FileError(f"{path.name} line {line}: a NUL character; this is not a text file")
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if text.count("\n") > MAX_LINES:
        raise FileError(f"{path.name} has more than {MAX_LINES} lines")
    return PlainText(path.name, text.split("\n"))


@final
@dataclass(frozen=True, slots=True)
class PlainText:
    """The lines of a file and its name in messages. Lines are numbered from 1, as editors do."""

    name: str
    lines: list[str]

    def error(self, line: int, message: str) -> FileError:
        """Return the error to raise for something in a line."""
        return FileError(f"{self.name} line {line}: {message}")

    def number(self, word: str, line: int, what: str) -> float:
        """Return a finite number."""
        return self.numbers([word], line, what)[0]

    def numbers(self, words: Sequence[str], line: int, what: str, count: int | None = None) -> list[float]:
        """Return finite numbers, as many as requested."""
        if count is not None and len(words) != count:
            raise self.error(line, f"{what} has {len(words)} numbers; {count} are expected")
        try:
            values = list(map(float, words))
        except ValueError:
            values = []
        # The sum of finite numbers may overflow, and then each is looked at; it is NaN or infinite whenever
        # one of them is. "1_0" is a number to Python alone.
        if len(values) != len(words) or not math.isfinite(sum(values)) or any("_" in word for word in words):
            for word in words:
                self._refuse_unless_number(word, line, what)
        return values

    def _refuse_unless_number(self, word: str, line: int, what: str) -> None:
        shown = repr(word[:_EXCERPT])
        try:
            if "_" not in word and math.isfinite(float(word)):
                return
        except ValueError:
            hint = "; write decimals with a point, as in 1.5" if "," in word else ""
            raise self.error(line, f"{what} holds {shown}, which is not a number{hint}") from None
        raise self.error(line, f"{what} holds {shown}; give finite numbers")
