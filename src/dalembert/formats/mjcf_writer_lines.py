"""Lines of XML, and numbers in them that read back as themselves."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, final
from xml.sax.saxutils import quoteattr

from dalembert.spatial import Mat3
from dalembert.spatial.rotations import quaternion_of_rotation

__all__ = ["Lines", "number", "numbers", "placement_attributes"]


def number(value: Any) -> str:
    """Return a number as text that reads back as itself."""
    x = float(value)
    return str(int(x)) if x == int(x) and abs(x) < 1e15 else repr(x)


def numbers(values: Iterable[Any]) -> str:
    return " ".join(number(x) for x in values)


def placement_attributes(X: Any) -> dict[str, str]:
    """Return `pos` and `quat` of a placement."""
    X = X.as_transform()
    found = {}
    if any(X.p):
        found["pos"] = numbers(X.p)
    if list(X.R) != list(Mat3.identity()):
        found["quat"] = numbers(quaternion_of_rotation(X.R))
    return found


@final
class Lines:
    """Elements one after the other, indented by their depth."""

    def __init__(self, *, depth: int = 0) -> None:
        self.depth = depth
        self._lines: list[str] = []

    def open(self, tag: str, **attributes: str) -> None:
        """Begin an element."""
        self._add(tag, attributes, ">")
        self.depth += 1

    def close(self, tag: str) -> None:
        """End the element that is open."""
        self.depth -= 1
        self._lines.append("  " * self.depth + f"</{tag}>")

    def leaf(self, tag: str, **attributes: str) -> None:
        """Write an element without content."""
        self._add(tag, attributes, "/>")

    def text(self) -> str:
        return "".join(line + "\n" for line in self._lines)

    def _add(self, tag: str, attributes: dict[str, str], end: str) -> None:
        words = [tag, *(f"{key}={quoteattr(value)}" for key, value in attributes.items())]
        self._lines.append("  " * self.depth + "<" + " ".join(words) + end)
