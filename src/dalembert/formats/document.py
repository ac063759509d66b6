"""XML files: read once, in bounded memory, on expat, as elements that know their place; and written.

Nothing outside the given bytes is ever opened: document types, entities and processing of external
references are rejected. Every limit is a named constant.
"""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, final
from xml.parsers import expat
from xml.sax.saxutils import quoteattr

from dalembert.errors import FileError
from dalembert.formats.resources import CHANGES_DYNAMICS, MAX_FILE_BYTES, read_regular_file

MAX_DEPTH: Final = 200
"""Elements inside one another; deeper files are rejected."""
MAX_ATTRIBUTE_BYTES: Final = 2 * 1024 * 1024
"""Length of one attribute's value, such as the heights of a field, and, unless more is allowed, of the text
inside one element."""
MAX_ELEMENTS: Final = 500_000
"""Elements of one file; more are rejected, since each takes a few hundred bytes of memory."""
MAX_TAG_BYTES: Final = 4 * 1024 * 1024
"""Length of one tag with all its attributes, or of one comment."""
_CHUNK: Final = 256 * 1024
_EXCERPT: Final = 40

_BYTE_ORDER_MARKS: Final = (b"\xff\xfe", b"\xfe\xff")

# Each character can be matched in one way only: a long word that is no number must not cost its square.
_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_NOT_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@final
@dataclass(slots=True, eq=False, repr=False)
class Element:
    """One element, its place in the file, its children, and the text directly inside.

    `path` is the way from the root, such as `robot/joint[elbow]/limit`: names stand in brackets.
    """

    tag: str
    attributes: dict[str, str]
    parent: Element | None = None
    line: int = 0
    column: int = 0
    file: str = ""
    children: list[Element] = field(default_factory=list)
    text: str = ""

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

    def require(self, condition: object, message: str) -> None:
        """Raise an error at this element unless the condition holds."""
        if not condition:
            raise self.error(message)

    def all(self, tag: str) -> list[Element]:
        """Return the children of that tag, in the file's order."""
        return [child for child in self.children if child.tag == tag]

    def only(self, tag: str) -> Element | None:
        """Return the child of that tag, or None; two are an error."""
        found = self.all(tag)
        if len(found) > 1:
            raise found[1].error(f"a second <{tag}>; the first is on line {found[0].line}; keep one")
        return found[0] if found else None

    def attribute(self, name: str) -> str:
        """Return the text of a required attribute."""
        self.require(name in self.attributes, f"attribute {name!r} is missing")
        return self.attributes[name]

    def name(self, attribute: str = "name") -> str:
        """Return a name: any text but an empty one."""
        name = self.attributes.get(attribute)
        if name is None or not name.strip():
            fact = "missing" if name is None else "empty"
            raise self.error(f"attribute {attribute!r} is {fact}; every <{self.tag}> needs it")
        return name

    def numbers(self, attribute: str, count: int) -> tuple[float, ...]:
        """Return the `count` finite numbers, separated by white space, of a required attribute."""
        text = self.attribute(attribute)
        values = []
        for word in text.split():
            if _NUMBER.fullmatch(word) is None:
                raise self.error(f"attribute {attribute} holds {word[:_EXCERPT]!r}; {_remedy(word)}")
            values.append(float(word))
            if math.isinf(values[-1]):
                shown = repr(word[:_EXCERPT])
                raise self.error(f"attribute {attribute} holds {shown}, which is too large a number")
        if len(values) != count:
            wanted = "one number" if count == 1 else f"{count} numbers"
            shown = f"{len(values)} numbers, {text[:_EXCERPT]!r}"
            raise self.error(f"attribute {attribute} holds {shown}; give {wanted}")
        return tuple(values)

    def __repr__(self) -> str:
        return f"<{self.path} line {self.line}>"


def _remedy(word: str) -> str:
    if re.search("[0-9],[0-9]", word):
        return "decimals are written with a point, as in 1.5, and numbers are separated by spaces"
    if word.lstrip("+-").lower() in ("nan", "inf", "infinity"):
        return "give a finite number"
    if "$" in word:
        return "this is a xacro expression; expand the file first: xacro model.urdf.xacro > model.urdf"
    return "give a number, such as 0.5 or 1e-3"


def read_document(source: Path | bytes, *, name: str, max_text: int = MAX_ATTRIBUTE_BYTES) -> Element:
    """Read the root element of an XML file (a path, or its bytes); `name` is the file's name in messages.

    `max_text` bounds the characters directly inside one element.
    """
    content = read_regular_file(source, limit=MAX_FILE_BYTES) if isinstance(source, Path) else bytes(source)
    _check_start(content, name)
    reader = _Reader(name, max_text)
    try:
        reader.read(content)
    except expat.ExpatError as error:
        reason = expat.errors.messages.get(error.code, "not well-formed")
        hint = f" ({_HINTS[reason]})" if reason in _HINTS else ""
        place = f"{name} line {error.lineno} column {error.offset + 1}"
        raise FileError(f"{place}: not well-formed XML: {reason}{hint}") from None
    except FileError:
        raise
    except (LookupError, ValueError) as error:  # an encoding that Python does not have
        raise FileError(f"{name} line 1: {error}; save the file as UTF-8") from None
    if reader.root is None:
        raise FileError(f"{name} holds no element")
    return reader.root


def _check_start(content: bytes, name: str) -> None:
    """Reject content about which expat would give an unhelpful message."""
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
        what = f"text {_decode(before)}" if before else "white space"
        raise FileError(
            f"{name} line {line}: there is {what} before the XML declaration; delete all before '<?xml'"
        )
    if not start.lstrip().startswith(b"<"):
        raise FileError(f"{name} line 1: not XML: it begins with {_decode(start)}, not with '<'")


def _decode(content: bytes) -> str:
    return repr(content[:_EXCERPT].decode("utf-8", "replace"))


_HINTS: Final = {
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
"""The likely cause of what expat finds."""


@final
class _Reader:
    """The handlers that expat calls; the open elements are a stack, so that depth costs no recursion."""

    def __init__(self, file: str, max_text: int) -> None:
        self.file = file
        self.max_text = max_text
        self.root: Element | None = None
        self.count = 0
        self.open: list[Element] = []
        self.pieces: list[list[str]] = []  # of the text of each open element; joined once, not one by one
        self.lengths: list[int] = []
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.buffer_size = _CHUNK
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
                raise self._error(f"a tag or comment has more than {MAX_TAG_BYTES} bytes")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        parent = self.open[-1] if self.open else None
        line, column = self.parser.CurrentLineNumber, self.parser.CurrentColumnNumber + 1
        element = Element(tag, attributes, parent, line, column, self.file)
        self.count += 1
        if self.count > MAX_ELEMENTS:
            raise self._error(f"there are more than {MAX_ELEMENTS} elements; no model needs that")
        if len(self.open) >= MAX_DEPTH:
            what = f"<{tag[:_EXCERPT]}> is nested deeper than {MAX_DEPTH} elements"
            raise self._error(f"{what}; no model needs that")
        for name, value in attributes.items():
            if len(value) > MAX_ATTRIBUTE_BYTES or len(name) > MAX_ATTRIBUTE_BYTES:
                what = f"attribute {name[:_EXCERPT]!r} of <{tag[:_EXCERPT]}> has {len(value)} characters"
                raise self._error(f"{what}; up to {MAX_ATTRIBUTE_BYTES} are read")
        if parent is None:
            self.root = element
        else:
            parent.children.append(element)
        self.open.append(element)
        self.pieces.append([])
        self.lengths.append(0)

    def _end(self, _tag: str) -> None:
        self.open.pop().text = "".join(self.pieces.pop()).strip()
        self.lengths.pop()

    def _text(self, text: str) -> None:
        self.pieces[-1].append(text)
        self.lengths[-1] += len(text)
        if self.lengths[-1] > self.max_text:
            raise self.open[-1].error(f"holds more than {self.max_text} characters of text")

    def _doctype(self, *_: Any) -> None:
        raise self._error("there is a DOCTYPE; document types and entities are refused; delete it")

    def _entity(self, *_: Any) -> int:
        raise self._error("an entity is declared or used; entities are refused; write out its text")

    def _error(self, message: str) -> FileError:
        line, column = self.parser.CurrentLineNumber, self.parser.CurrentColumnNumber + 1
        return FileError(f"{self.file} line {line} column {column}: {message}")


# Writing


def numbers(values: Iterable[float]) -> str:
    """Return numbers as the shortest text that reads back bit for bit."""
    return " ".join(repr(float(value) + 0.0) for value in values)


@final
class XmlText:
    """Elements in the order written, indented by depth; `losses` list what the format has no words for."""

    def __init__(self, *, depth: int = 0, indent: str = "  ") -> None:
        self.depth = depth
        self.losses: list[str] = []
        self._lines: list[str] = []
        self._indent = indent

    def open(self, tag: str, /, **attributes: str) -> None:
        """Begin an element."""
        self._add(tag, attributes, ">")
        self.depth += 1

    def close(self, tag: str) -> None:
        """End the element that is open."""
        self.depth -= 1
        self._lines.append(self._indent * self.depth + f"</{tag}>")

    def leaf(self, tag: str, /, **attributes: str) -> None:
        """Write an element without content."""
        self._add(tag, attributes, "/>")

    @contextlib.contextmanager
    def inside(self, tag: str, /, **attributes: str) -> Iterator[None]:
        """Write an element around what is written in the block."""
        self.open(tag, **attributes)
        yield
        self.close(tag)

    def group(self, tag: str, elements: Collection[tuple[str, dict[str, str]]]) -> None:
        """Write an element with others inside, if there are any."""
        if elements:
            with self.inside(tag):
                for child, attributes in elements:
                    self.leaf(child, **attributes)

    def lose(self, lost: object, what: str, *, grave: bool = False) -> None:
        """Note a loss where there is one; a `grave` one changes the dynamics."""
        if lost:
            self.losses.append(CHANGES_DYNAMICS + what if grave else what)

    def text(self) -> str:
        return "".join(line + "\n" for line in self._lines)

    def _add(self, tag: str, attributes: dict[str, str], end: str) -> None:
        for value in attributes.values():
            if _NOT_XML.search(value):
                raise FileError(f"{value!r} holds a character that XML cannot hold; choose another name")
        words = [tag, *(f"{key}={quoteattr(value)}" for key, value in attributes.items())]
        self._lines.append(self._indent * self.depth + "<" + " ".join(words) + end)
