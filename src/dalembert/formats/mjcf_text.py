"""The text of an MJCF model, written from the tree that was examined: one tag a line, elements only."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, final

from dalembert.formats.document import Element

__all__ = ["Text", "mjcf_text_of"]

_ESCAPES: Final = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"}
_ESCAPED: Final = re.compile(r'[&<>"\x00-\x1f\x7f-\x9f]')
_LINE: Final = re.compile(r"\bline (\d+)")


@final
@dataclass(frozen=True)
class Text:
    """The XML of a model, and the element on each of its lines."""

    xml: str
    lines: list[Element]

    def with_places(self, message: str) -> str:
        """Return a message about lines of the text as one about lines of the files that it came from."""

        def place(match: re.Match[str]) -> str:
            number = int(match[1])
            if not 1 <= number <= len(self.lines):
                return match[0]
            element = self.lines[number - 1]
            return f"{element.file} line {element.line}"

        return _LINE.sub(place, message)


def mjcf_text_of(root: Element) -> Text:
    """Write a tree; text, comments and processing instructions, which mean nothing in MJCF, are left out."""
    lines: list[str] = []
    elements: list[Element] = []
    waiting: list[tuple[Element, bool]] = [(root, False)]
    while waiting:
        element, written = waiting.pop()
        elements.append(element)
        if written:
            lines.append(f"</{element.tag}>")
            continue
        attributes = "".join(
            f' {name}="{_escape_attribute(value)}"' for name, value in element.attributes.items()
        )
        if element.children:
            lines.append(f"<{element.tag}{attributes}>")
            waiting.append((element, True))
            waiting += [(child, False) for child in reversed(element.children)]
        else:
            lines.append(f"<{element.tag}{attributes}/>")
    return Text("\n".join(lines), elements)


def _escape_attribute(value: str) -> str:
    return _ESCAPED.sub(lambda match: _ESCAPES.get(match[0], f"&#{ord(match[0])};"), value)
