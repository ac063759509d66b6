"""XML files as a tree of elements that know their place, read once, in bounded memory, on expat.

Nothing outside the given bytes is ever opened: document types, entities and processing of external
references are refused. Every limit is a named constant.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from xml.parsers import expat

from dalembert.errors import FileError
from dalembert.formats.resources import MAX_FILE_BYTES, read_regular_file

__all__ = [
    "MAX_ATTRIBUTE_BYTES",
    "MAX_DEPTH",
    "MAX_ELEMENTS",
    "MAX_FILE_BYTES",
    "MAX_TAG_BYTES",
    "Element",
    "read_document",
]

MAX_DEPTH: Final = 200
"""Elements inside one another; deeper files are refused."""
MAX_ATTRIBUTE_BYTES: Final = 2 * 1024 * 1024
"""Length of one attribute's value, such as the heights of a field, and of the text directly inside one
element.
"""
MAX_ELEMENTS: Final = 500_000
"""Elements of one file; more are refused, since each takes a few hundred bytes of memory."""
MAX_TAG_BYTES: Final = 4 * 1024 * 1024
"""Length of one tag with all its attributes, or of one comment."""
_CHUNK: Final = 256 * 1024
_EXCERPT: Final = 40

_BYTE_ORDER_MARKS: Final = (b"\xff\xfe", b"\xfe\xff")


def read_document(source: Path | bytes, *, name: str) -> Element:
    """Read the root element of an XML file (a path, or its bytes); `name` is the file's name in messages."""
    content = read_regular_file(source, limit=MAX_FILE_BYTES) if isinstance(source, Path) else bytes(source)
    _refuse_what_is_no_xml(content, name)
    reader = _Reader(name)
    try:
        reader.read(content)
    except expat.ExpatError as error:
        raise FileError(
            f"{name} line {error.lineno} column {error.offset + 1}: {_describe_parse_error(error)}"
        ) from None
    except (LookupError, ValueError) as error:  # an encoding that Python does not have
        if isinstance(error, FileError):
            raise
        raise FileError(f"{name} line 1: {error}; save the file as UTF-8") from None
    if reader.root is None:
        raise FileError(f"{name} holds no element")
    return reader.root


def _refuse_what_is_no_xml(content: bytes, name: str) -> None:
    """Refuse content that expat would reject with an unhelpful message."""
    if len(content) > MAX_FILE_BYTES:
        raise FileError(f"{name} has {len(content)} bytes; files up to {MAX_FILE_BYTES} bytes are read")
    if not content.strip():
        raise FileError(f"{name} is empty")
    if content.startswith(_BYTE_ORDER_MARKS):
        return
    if b"\x00" in content:
        raise FileError(f"{name} holds a NUL byte at {content.index(0)}; it is not text")
    start = content.removeprefix(b"\xef\xbb\xbf")
    declaration = start.find(b"<?xml ")
    if declaration > 0 and b"<" not in start[:declaration]:
        line = start[:declaration].count(b"\n") + 1
        before = start[:declaration].strip()
        what = f"text {_excerpt(before)}" if before else "white space"
        raise FileError(
            f"{name} line {line}: there is {what} before the XML declaration; delete all before '<?xml'"
        )
    if not start.lstrip().startswith(b"<"):
        raise FileError(f"{name} line 1: not XML: it begins with {_excerpt(start)}, not with '<'")


def _excerpt(content: bytes) -> str:
    return repr(content[:_EXCERPT].decode("utf-8", "replace"))


def _describe_parse_error(error: expat.ExpatError) -> str:
    """Describe what expat found, with the likely cause."""
    reason = expat.errors.messages.get(error.code, "not well-formed")
    hints = {
        "no element found": "the file ends before its first element closes; it may be truncated",
        "unclosed token": "the file ends inside a tag; it may be truncated",
        "unclosed CDATA section": "the file ends inside a CDATA section; it may be truncated",
        "mismatched tag": "a closing tag does not match the tag that is open",
        "junk after document element": "there is something after the root element; only one root is allowed",
        "undefined entity": "an entity is used; entities are refused, write the character itself",
        "duplicate attribute": "an attribute is given twice in one tag",
        "unbound prefix": "a prefix is used that no xmlns attribute declares",
        "XML or text declaration not at start of entity": "delete all before '<?xml'",
    }
    hint = hints.get(reason)
    return f"not well-formed XML: {reason}" + (f" ({hint})" if hint else "")


class Element:
    """One element: `tag`, `attributes`, `children`, the `text` directly inside, and its place in the file.

    `path` is the way from the root, such as `robot/joint[elbow]/limit`: names stand in brackets.
    """

    __slots__ = ("attributes", "children", "column", "file", "line", "parent", "tag", "text")

    def __init__(
        self,
        tag: str,
        attributes: dict[str, str],
        parent: Element | None = None,
        *,
        line: int = 0,
        column: int = 0,
        file: str = "",
    ) -> None:
        self.tag = tag
        self.attributes = attributes
        self.parent = parent
        self.children: list[Element] = []
        self.text = ""
        self.line = line
        self.column = column
        self.file = file

    @property
    def path(self) -> str:
        """The path from the root to this element."""
        steps: list[str] = []
        at: Element | None = self
        while at is not None:
            name = at.attributes.get("name") if at.parent is not None else None
            steps.append(at.tag if name is None else f"{at.tag}[{name[:_EXCERPT]}]")
            at = at.parent
        return "/".join(reversed(steps))

    @property
    def place(self) -> str:
        """The position of the element in its file, as messages name it."""
        return f"{self.file} line {self.line} column {self.column}: {self.path}"

    def error(self, message: str) -> FileError:
        """Return an error at this element, for the caller to raise."""
        return FileError(f"{self.place}: {message}")

    def all(self, tag: str) -> list[Element]:
        """Return the children of that tag, in the file's order."""
        return [child for child in self.children if child.tag == tag]

    def only(self, tag: str) -> Element | None:
        """Return the child of that tag, or None; two are an error."""
        found = self.all(tag)
        if len(found) > 1:
            raise found[1].error(f"a second <{tag}>; the first is on line {found[0].line}; keep one")
        return found[0] if found else None

    def walk(self) -> Iterator[Element]:
        """Yield this element and all below it, in the file's order, without recursion."""
        waiting = [self]
        while waiting:
            element = waiting.pop()
            yield element
            waiting.extend(reversed(element.children))

    def __repr__(self) -> str:
        return f"<{self.path} line {self.line}>"


class _Reader:
    """The handlers that expat calls; the open elements are a stack, so that depth costs no recursion."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.root: Element | None = None
        self.count = 0
        self.open: list[Element] = []
        self.texts: list[list[str]] = []
        self.text_sizes: list[int] = []
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text
        self.parser.StartDoctypeDeclHandler = self._doctype
        self.parser.EntityDeclHandler = self._entity
        self.parser.ExternalEntityRefHandler = self._entity
        self.parser.SkippedEntityHandler = self._entity

    def read(self, content: bytes) -> None:
        """Parse by pieces, so that a tag without end is noticed before it is taken apart."""
        for start in range(0, len(content), _CHUNK):
            end = start + _CHUNK
            self.parser.Parse(content[start:end], end >= len(content))
            if end - max(self.parser.CurrentByteIndex, 0) > MAX_TAG_BYTES + _CHUNK:
                raise FileError(f"{self._place()}: a tag or comment has more than {MAX_TAG_BYTES} bytes")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        parent = self.open[-1] if self.open else None
        element = Element(
            tag,
            attributes,
            parent,
            line=self.parser.CurrentLineNumber,
            column=self.parser.CurrentColumnNumber + 1,
            file=self.file,
        )
        self.count += 1
        if self.count > MAX_ELEMENTS:
            raise FileError(
                f"{self._place()}: there are more than {MAX_ELEMENTS} elements; no model needs that"
            )
        if len(self.open) >= MAX_DEPTH:
            raise FileError(
                f"{self._place()}: <{tag[:_EXCERPT]}> is nested deeper than {MAX_DEPTH} elements; "
                "no model needs that"
            )
        for name, value in attributes.items():
            if len(value) > MAX_ATTRIBUTE_BYTES or len(name) > MAX_ATTRIBUTE_BYTES:
                raise FileError(
                    f"{self._place()}: attribute {name[:_EXCERPT]!r} of <{tag[:_EXCERPT]}> has "
                    f"{len(value)} characters; up to {MAX_ATTRIBUTE_BYTES} are read"
                )
        if parent is None:
            self.root = element
        else:
            parent.children.append(element)
        self.open.append(element)
        self.texts.append([])
        self.text_sizes.append(0)

    def _end(self, _tag: str) -> None:
        element = self.open.pop()
        self.text_sizes.pop()
        element.text = "".join(self.texts.pop()).strip()

    def _text(self, text: str) -> None:
        self.text_sizes[-1] += len(text)
        if self.text_sizes[-1] > MAX_ATTRIBUTE_BYTES:
            raise self.open[-1].error(f"holds more than {MAX_ATTRIBUTE_BYTES} characters of text")
        self.texts[-1].append(text)

    def _place(self) -> str:
        return (
            f"{self.file} line {self.parser.CurrentLineNumber} column {self.parser.CurrentColumnNumber + 1}"
        )

    def _doctype(self, name: str, *_: Any) -> None:
        raise FileError(
            f"{self._place()}: there is a DOCTYPE; document types and entities are refused; delete it"
        )

    def _entity(self, *_: Any) -> int:
        raise FileError(
            f"{self._place()}: an entity is declared or used; entities are refused; write out its text"
        )
