"""XML that is none, or more than is good for the reader; and where things stand in what is good."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dalembert.errors import FileError
from dalembert.formats.document import (
    MAX_ATTRIBUTE_BYTES,
    MAX_DEPTH,
    MAX_ELEMENTS,
    MAX_FILE_BYTES,
    MAX_TAG_BYTES,
    Element,
    read_document,
)


def walk(element: Element) -> Iterator[Element]:
    """Yield an element and all below it, in the file's order, without recursion."""
    waiting = [element]
    while waiting:
        found = waiting.pop()
        yield found
        waiting.extend(reversed(found.children))


def test_elements_know_their_place() -> None:
    text = '<?xml version="1.0"?>\n<robot name="r">\n  <link name="a"/>\n'
    text += '  <link name="b"> x <mass/> y </link>\n</robot>'
    root = read_document(text.encode(), name="file.urdf")
    first, second = root.all("link")
    assert (first.line, first.column) == (3, 3)
    assert second.path == "robot/link[b]"
    assert second.text.split() == ["x", "y"]
    assert [element.tag for element in walk(root)] == ["robot", "link", "link", "mass"]
    mass = second.only("mass")
    assert mass is not None
    assert str(mass.error("too heavy")) == "file.urdf line 4 column 21: robot/link[b]/mass: too heavy"
    assert second.only("inertia") is None
    with pytest.raises(FileError, match="a second <link>; the first is on line 3"):
        root.only("link")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_unicode_encodings_with_a_mark_are_read(encoding: str) -> None:
    root = read_document("<robot name='Ärm 腕'/>".encode(encoding), name="x")
    assert root.attributes["name"] == "Ärm 腕"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b" \n ", "is empty"),
        (b"solid cube", "not XML: it begins with 'solid cube'"),
        (b"\x89PNG\r\n\x1a\n", "not XML"),
        (b"<robot>", "line 1 column 8.*truncated"),
        (b"<robot><link", "truncated"),
        (b"<robot><link></robot>", "mismatched tag"),
        (b"<robot/><robot/>", "only one root"),
        (b"<robot a='1' a='2'/>", "given twice"),
        (b"<robot>\x00</robot>", "NUL byte at 7"),
        (b"hello <?xml version='1.0'?><robot/>", "text 'hello' before the XML declaration; delete"),
        (b"\n\n<?xml version='1.0'?><robot/>", "line 3: there is white space before the XML declaration"),
        (b"<!DOCTYPE robot><robot/>", "DOCTYPE"),
        (b"<!DOCTYPE r [<!ENTITY a 'b'>]><r>&a;</r>", "DOCTYPE"),
        (b"<!DOCTYPE r [<!ENTITY a SYSTEM 'file:///etc/hostname'>]><r>&a;</r>", "DOCTYPE"),
        (b"<robot>&a;</robot>", "entities are refused"),
        (b"<?xml version='1.0' encoding='klingon'?><robot/>", "unknown encoding"),
        (b"\xff\xfe<\x00r", "not well-formed"),
        (b"<a>" * (MAX_DEPTH + 1), "nested deeper than 200"),
        (
            b"<a b='" + b"x" * (MAX_ATTRIBUTE_BYTES + 1) + b"'/>",
            "attribute 'b' of <a> has 2097153 characters",
        ),
        (b"<a>" + b"x" * (MAX_ATTRIBUTE_BYTES + 1) + b"</a>", "characters of text"),
        (b"<a>\xff</a>", "not well-formed"),
    ],
)
def test_what_is_no_good_xml_is_refused_with_the_reason(content: bytes, words: str) -> None:
    with pytest.raises(FileError, match=words) as raised:
        read_document(content, name="bad.urdf")
    assert str(raised.value).startswith("bad.urdf ")


def test_the_deepest_file_allowed_is_read() -> None:
    root = read_document(b"<a>" * MAX_DEPTH + b"</a>" * MAX_DEPTH, name="deep")
    assert sum(1 for _ in walk(root)) == MAX_DEPTH


def test_endless_tags_and_endless_elements_are_refused_in_bounded_memory() -> None:
    comment = b"<a><!--" + b"x" * (2 * MAX_TAG_BYTES) + b"--></a>"
    attributes = b"<a " + b" ".join(b"b%d='1'" % i for i in range(600_000)) + b"/>"
    for content in (comment, attributes):
        assert len(content) > MAX_TAG_BYTES + 1_000_000
        with pytest.raises(FileError, match="a tag or comment has more than"):
            read_document(content, name="x")
    with pytest.raises(FileError, match="more than 500000 elements"):
        read_document(b"<a>" + b"<b/>" * (MAX_ELEMENTS + 1), name="x")


def test_a_file_of_several_pieces_is_read_whole() -> None:
    for encoding in ("utf-8", "utf-16"):
        text = "<a>" + "".join(f"<b c='é{i}'>ü</b>\n" for i in range(40_000)) + "</a>"
        root = read_document(text.encode(encoding), name="x")
        assert [child.attributes["c"] for child in root.children] == [f"é{i}" for i in range(40_000)]
        assert all(child.text == "ü" for child in root.children)
        assert root.children[-1].line == 40_000


def test_files_over_the_limit_are_refused_unread(tmp_path: Path) -> None:
    file = tmp_path / "large.urdf"
    with file.open("wb") as stream:
        stream.truncate(MAX_FILE_BYTES + 1)
    with pytest.raises(FileError, match="bytes are read"):
        read_document(file, name="large.urdf")
