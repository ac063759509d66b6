"""Mutations of the structure of files: elements, attributes, entries, headers, members, lines and words."""

from __future__ import annotations

import copy
import io
import json
import random
import re
import struct
import zipfile
from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree

import numpy as np

Mutation = Callable[[bytes, random.Random], bytes]

ODD_WORDS = (
    "nan", "inf", "-inf", "1e400", "-1", "0", "", "1,5", "1e-320", "1e300", "-1e300", "1e155", "x", "9" * 25,
    "9" * 400, "1_000", "0x10", "\u0663", "true", "None", "\u202e", "\U0001f600", "a/b", "../../x", "%s",
    "1e-300", "1e308", "4294967296", "-0.0", "1 2", "1 2 3", "1e20", "0.5",
)  # fmt: skip
ODD_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**63, 10**400, -(10**30), 1e308, -1e308, 1e155, 5e-324, 0.1,
    float("nan"), float("inf"), "", "x", "inf", "-inf", "nan", "\ud800", "\udfff\ud800", "\0", "world",
    "a" * 5000,
    [], {}, [[]], [None], [1, 2, 3], ["x"], {"type": "revolute"}, {"x": {}}, [1e300] * 3, [0] * 9,
    [[1, 0], [0]],
    {"rotation": [0] * 9, "translation": [0, 0, 0]}, {"chain": []}, {"axis": True, "screw": [1, 0, 0]},
    "DEEP LIST", "DEEP OBJECT",
)  # fmt: skip
ODD_NUMBERS = (
    0,
    1,
    -1,
    0.5,
    -2.5,
    1e-300,
    1e300,
    -1e300,
    1e155,
    1e20,
    5e-324,
    1.7e308,
    2**53,
    3,
    1e-12,
    -0.0,
)
DEPTHS = (50, 500, 5_000, 100_000)


def bytes_changed(content: bytes, rng: random.Random) -> bytes:
    """Change, cut or repeat bytes anywhere."""
    if not content:
        return b"x"
    at = rng.randrange(len(content))
    match rng.randrange(4):
        case 0:
            return content[:at] + bytes([rng.randrange(256)]) + content[at + 1 :]
        case 1:
            return content[:at] + content[at + rng.choice((1, 10, 200, 10**9)) :]
        case 2:
            return (
                content[:at] + content[at : at + rng.choice((10, 200))] * rng.choice((2, 50)) + content[at:]
            )
        case _:
            return content[:at] + rng.randbytes(rng.choice((1, 4, 16))) + content[at:]


NUMBER = re.compile(rb"-?\d+\.?\d*(?:e-?\d+)?")


def number_changed(content: bytes, rng: random.Random) -> bytes:
    """Replace a number by an odd word."""
    places = list(NUMBER.finditer(content[:300_000]))
    if not places:
        return content
    place = rng.choice(places)
    return content[: place.start()] + rng.choice(ODD_WORDS).encode() + content[place.end() :]


def words_changed(content: bytes, rng: random.Random) -> bytes:
    """Replace, drop, repeat or exchange words."""
    words = re.split(rb"(\s+)", content)
    if len(words) < 3:
        return content
    at, other = (2 * rng.randrange((len(words) + 1) // 2) for _ in range(2))
    match rng.randrange(5):
        case 0:
            words[at] = rng.choice(ODD_WORDS).encode()
        case 1:
            words[at] = b""
        case 2:
            words[at] = (words[at] + b" ") * rng.choice((2, 30))
        case 3:
            words[at] = words[other]
        case _:
            words[at], words[other] = words[other], words[at]
    return b"".join(words)


def lines_changed(content: bytes, rng: random.Random) -> bytes:
    """Drop, repeat, move or exchange lines."""
    lines = content.split(b"\n")
    at, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    match rng.randrange(4):
        case 0:
            del lines[at : at + rng.choice((1, 5))]
        case 1:
            lines[at:at] = lines[other : other + rng.choice((1, 5, 20))] * rng.choice((1, 3))
        case 2:
            lines.insert(other, lines.pop(at))
        case _:
            lines[at], lines[other] = lines[other], lines[at]
    return b"\n".join(lines)


def xml_changed(content: bytes, rng: random.Random) -> bytes:
    """Duplicate, delete, move, rename, nest elements; exchange, drop, add and change attributes."""
    try:
        root = ElementTree.fromstring(content)
    except (ElementTree.ParseError, ValueError, LookupError):
        return bytes_changed(content, rng)
    parents = {child: parent for parent in root.iter() for child in parent}
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        elements = list(parents) or [root]
        _change_element(rng.choice(elements), rng.choice(elements), parents, rng)
    encoding = rng.choice(["utf-8"] * 8 + ["utf-16", "latin-1", "us-ascii"])
    try:
        return ElementTree.tostring(root, encoding, xml_declaration=rng.random() < 0.5)
    except (RecursionError, ValueError):
        return content


def _change_element(
    one: ElementTree.Element,
    other: ElementTree.Element,
    parents: dict[ElementTree.Element, ElementTree.Element],
    rng: random.Random,
) -> None:
    parent = parents.get(one)
    action = rng.randrange(10)
    inside = other is one or any(item is other for item in one.iter())
    if parent is not None and one in list(parent):
        if action == 0:
            parent.insert(rng.randint(0, len(parent)), one)
        elif action == 1:
            parent.remove(one)
        elif action == 2 and not inside:
            parent.remove(one)
            other.append(one)
        elif action == 3:
            parent.remove(one)
            for _ in range(rng.choice((1, 30, 150))):
                wrapper = ElementTree.Element(one.tag, dict(one.attrib))
                wrapper.append(one)
                one = wrapper
            parent.append(one)
    if action == 4:
        one.tag = other.tag
    elif action == 5 and one.attrib and other.attrib:
        a, b = rng.choice(list(one.attrib)), rng.choice(list(other.attrib))
        one.attrib[a], other.attrib[b] = other.attrib[b], one.attrib[a]
    elif action == 6 and one.attrib:
        del one.attrib[rng.choice(list(one.attrib))]
    elif action == 7 and other.attrib:
        name = rng.choice(list(other.attrib))
        one.attrib[name] = other.attrib[name]
    elif one.attrib:
        name = rng.choice(list(one.attrib))
        words = one.attrib[name].split() or [""]
        words[rng.randrange(len(words))] = rng.choice(ODD_WORDS)
        one.attrib[name] = " ".join(words[: rng.choice((1, 3, 99))])


def json_changed(content: bytes, rng: random.Random) -> bytes:
    """Replace any entry by a value of another type, or by another entry; drop and repeat entries."""
    try:
        data = json.loads(content)
    except (ValueError, RecursionError):
        return bytes_changed(content, rng)
    return changed_json_text(data, rng).encode("utf-8", "surrogatepass")


def changed_json_text(data: Any, rng: random.Random) -> str:
    """Return JSON text of data with one to three changes."""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        places = _places(data)
        if not places:
            break
        holder, key = rng.choice(places)
        number = isinstance(holder[key], (int, float)) and not isinstance(holder[key], bool)
        match rng.randrange(6):
            case _ if number and rng.random() < 0.7:
                holder[key] = rng.choice(ODD_NUMBERS)
            case 0:
                del holder[key]
            case 1:
                there, name = rng.choice(places)
                if name in (there if isinstance(there, dict) else range(len(there))):
                    holder[key] = copy.deepcopy(there[name])
            case 2 if isinstance(holder, list):
                holder.insert(key, copy.deepcopy(holder[key]))
            case 3 if isinstance(holder, dict):
                holder[str(rng.choice(("readable", "x", "__class__", "type", "\ud800")))] = copy.deepcopy(
                    holder[key]
                )
            case _:
                holder[key] = copy.deepcopy(rng.choice(ODD_VALUES))
    text = json.dumps(data)
    depth = rng.choice(DEPTHS)
    text = text.replace('"DEEP LIST"', "[" * depth + "]" * depth)
    text = text.replace('"DEEP OBJECT"', '{"x":' * depth + "0" + "}" * depth)
    if rng.random() < 0.05:
        text = text.replace("{", '{"name": 1, "name": 2, ', 1)
    return text


def _places(data: Any) -> list[tuple[Any, Any]]:
    found: list[tuple[Any, Any]] = []
    waiting = [data]
    while waiting and len(found) < 20_000:
        item = waiting.pop()
        entries = list(item.items()) if isinstance(item, dict) else list(enumerate(item))
        for key, value in entries:
            found.append((item, key))
            if isinstance(value, (dict, list)):
                waiting.append(value)
    return found


HEADER_CHANGES = (
    (rb"'shape': \([^)]*\)", b"'shape': (99999999999999999,)"), (rb"'shape': \([^)]*\)", b"'shape': (-3,)"),
    (rb"'shape': \([^)]*\)", b"'shape': (3.0,)"), (rb"'shape': \([^)]*\)", b"'shape': ()"),
    (rb"'shape': \([^)]*\)", b"'shape': (1,2,3,4,5,6,7,8,9,0)"), (rb"'shape': \([^)]*\)", b"'shape': 'x'"),
    (rb"'descr': '[^']*'", b"'descr': '|O'"), (rb"'descr': '[^']*'", b"'descr': '<U99999999'"),
    (rb"'descr': '[^']*'", b"'descr': '<c16'"), (rb"'descr': '[^']*'", b"'descr': '|V8'"),
    (rb"'descr': '[^']*'", b"'descr': [('a', '<f8'), ('b', '|O')]"),
    (rb"'descr': '[^']*'", b"'descr': 'zzz'"),
    (rb"'descr': '[^']*'", b"'descr': '<M8[s]'"), (rb"'descr': '[^']*'", b"'descr': '<f2'"),
    (rb"False", b"True"), (rb"\{", b"{{"), (rb"\}", b"*9**9**9}"), (rb"'descr'", b"'other'"),
    (rb"\{", b"{" + b"(" * 150), (rb"'shape'", b"'shape': (1,), 'shape'"),
)  # fmt: skip


def npz_changed(content: bytes, rng: random.Random) -> bytes:
    """Change members, element types, shapes, headers, the head's text, or fields of the archive."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
    except Exception:  # an archive that an earlier mutation has damaged
        return bytes_changed(content, rng)
    if not members:
        return bytes_changed(content, rng)
    names = list(members)
    name = rng.choice(names)
    match rng.randrange(8):
        case 0:
            del members[name]
        case 1:
            members[rng.choice(("other.npy", "../x.npy", "head", "q.npz", "observed x.npy"))] = members[name]
        case 2:
            members[name] = members[rng.choice(names)]
        case 3:
            members[name] = _header_changed(members[name], rng)
        case 4:
            members[name] = _array_changed(members[name], rng)
        case 5 | 6:
            members["head.npy"] = _head_changed(members.get("head.npy", b""), rng)
        case _:
            members[name] = bytes_changed(members[name], rng)
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as archive:
        for name, member in members.items():
            archive.writestr(name, member)
    made = whole.getvalue()
    if rng.random() < 0.15:  # a field of the archive's list of members
        at = rng.randrange(max(0, len(made) - 400), len(made) - 4)
        made = made[:at] + struct.pack("<I", rng.choice((0, 1, 2**31, 2**32 - 1))) + made[at + 4 :]
    return made


def _header_changed(member: bytes, rng: random.Random) -> bytes:
    pattern, new = rng.choice(HEADER_CHANGES)
    if len(member) < 10:
        return member
    size = struct.unpack_from("<H", member, 8)[0]
    header = re.sub(pattern, lambda _: new, member[10 : 10 + size], count=1)
    return member[:8] + struct.pack("<H", min(len(header), 65535)) + header + member[10 + size :]


def _array_changed(member: bytes, rng: random.Random) -> bytes:
    try:
        array = np.load(io.BytesIO(member), allow_pickle=False)
        dtype = rng.choice(("f2", "f4", ">f8", "i8", "u1", "c16", "U8", "S4", "?", "M8[s]", "f8", "f16"))
        match rng.randrange(5):
            case 0:
                array = array.astype(dtype)
            case 1:
                array = array[np.newaxis]
            case 2:
                array = array.ravel()
            case 3:
                array = array[..., : array.shape[-1] // 2] if array.ndim else array.reshape(1, 1)
            case _:
                array = np.where(np.arange(array.size).reshape(array.shape) % 3, array, np.nan)
    except Exception:  # a member that an earlier mutation has damaged
        return member
    whole = io.BytesIO()
    np.save(whole, array, allow_pickle=True)
    return whole.getvalue()


def _head_changed(member: bytes, rng: random.Random) -> bytes:
    """Change the head, or the model's text inside it."""
    try:
        head = json.loads(str(np.load(io.BytesIO(member), allow_pickle=False)))
        if rng.random() < 0.6:
            head["model"] = changed_json_text(json.loads(head["model"]), rng)
            text = json.dumps(head)
        else:
            text = changed_json_text(head, rng)
    except Exception:  # a head that an earlier mutation has damaged
        return bytes_changed(member, rng)
    whole = io.BytesIO()
    np.save(whole, np.array(text))
    return whole.getvalue()


def stl_changed(content: bytes, rng: random.Random) -> bytes:
    """Change the number of faces, or coordinates, of a binary file."""
    if len(content) < 134:
        return bytes_changed(content, rng)
    if rng.random() < 0.3:
        count = rng.choice((0, 1, 2**31, 2**32 - 1, rng.randrange(100)))
        return content[:80] + struct.pack("<I", count) + content[84:]
    at = 84 + 4 * rng.randrange((len(content) - 88) // 4)
    value = rng.choice((float("nan"), float("inf"), 3e38, -3e38, 1e-45, 0.0, 1e20))
    return content[:at] + struct.pack("<f", value) + content[at + 4 :]


BYTES: tuple[Mutation, ...] = (bytes_changed, number_changed)
MUTATIONS: dict[str, tuple[Mutation, ...]] = {
    "urdf": (*(xml_changed,) * 8, words_changed, lines_changed, *BYTES),
    "mjcf": (*(xml_changed,) * 8, words_changed, lines_changed, *BYTES),
    "json model": (json_changed, json_changed, json_changed, json_changed, *BYTES),
    "npz trajectory": (npz_changed, npz_changed, npz_changed, npz_changed, bytes_changed),
    "bvh": (words_changed, lines_changed, *BYTES),
    "asf": (words_changed, lines_changed, *BYTES),
    "amc": (words_changed, lines_changed, *BYTES),
    "deepmimic": (json_changed, json_changed, *BYTES),
    "stl text": (words_changed, lines_changed, *BYTES),
    "stl binary": (stl_changed, bytes_changed),
    "obj": (words_changed, lines_changed, *BYTES),
    "collada": (*(xml_changed,) * 4, words_changed, words_changed, lines_changed, *BYTES),
    "pose json": (json_changed, json_changed, *BYTES),
    "pose npz": (npz_changed, npz_changed, bytes_changed),
}
"""How a file of each kind is changed; those that are listed more often are chosen more often."""


def mutated(kind: str, content: bytes, rng: random.Random) -> bytes:
    """Return the content with one to three mutations."""
    for _ in range(rng.choice((1, 1, 1, 1, 2, 3))):
        content = rng.choice(MUTATIONS[kind])(content, rng)
    return content
