"""Biovision hierarchy (.bvh): a skeleton by offsets and channels, and one line of channel values a frame.

Angles are in degrees, lengths have no unit, the up axis is not said. The order of channels is each joint's
own. Position channels, wherever they stand among the rotations, move the joint before it turns.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, final

import numpy as np

from dalembert.formats.mocap import (
    MAX_BONES,
    Array,
    Bone,
    PlainText,
    Recording,
    Tip,
    excerpt,
    read_plain_text,
    recording_of,
)

MAX_HIERARCHY_LINE: Final = 4096
"""Longer lines of the hierarchy are rejected."""

_CHANNEL: Final = re.compile(r"([xyz])(position|rotation)", re.IGNORECASE)
_BRACES: Final = re.compile(r"([{}])")


def read_bvh(path: Path) -> Recording:
    """Read the skeleton and the motion in a .bvh file."""
    text = read_plain_text(path)
    hierarchy = _Hierarchy(text)
    motion_line = hierarchy.read()
    bones = tuple(hierarchy.bones())
    values, frame_time = _motion(text, motion_line, sum(len(bone.channels) for bone in bones))
    return recording_of(text.name, bones, values, frame_time)


@dataclass(slots=True)
class _Draft:
    """A joint, or an End Site, as far as it has been read."""

    kind: str
    name: str
    parent: int
    line: int
    offset: Array | None = None
    channels: tuple[str, ...] | None = None
    tips: list[Tip] = field(default_factory=list)


@final
@dataclass
class _Hierarchy:
    """The HIERARCHY part: the joints so far, and a stack of the joints and the End Site that are open."""

    text: PlainText
    joints: list[_Draft] = field(default_factory=list)
    indices: dict[str, int] = field(default_factory=dict)
    open: list[_Draft] = field(default_factory=list)
    sites: int = 0

    def read(self) -> int:
        """Read up to MOTION; return the index of the line after it."""
        require = self.text.require
        started, awaiting = False, ""  # what the next brace opens
        for line, piece in self._pieces():
            word, *words = piece.split()
            keyword = word.upper()
            if not started:
                what = f"a BVH file begins with HIERARCHY, this one with {excerpt(piece)}"
                require(keyword == "HIERARCHY", line, what)
                started = True
            elif awaiting:
                require(piece == "{", line, f'"{{" is expected after {awaiting}, not {excerpt(piece)}')
                awaiting = ""
            elif keyword == "MOTION":
                for joint in (draft for draft in reversed(self.open) if draft.kind == "joint"):
                    what = f'MOTION begins while joint "{joint.name}" of line {joint.line} is open'
                    raise self.text.error(line, f'{what}; a "}}" is missing')
                require(self.joints, line, "the hierarchy holds no joints")
                return line
            elif keyword in ("ROOT", "JOINT"):
                awaiting = self._begin_joint(keyword, piece[len(keyword) :].strip(), line)
            elif keyword == "END":
                in_joint = self.open and self.open[-1].kind == "joint"
                require(in_joint, line, "End Site outside a joint")
                self.sites += 1
                require(self.sites <= MAX_BONES, line, f"more than {MAX_BONES} end sites")
                awaiting = "End Site"
                self.open.append(_Draft(awaiting, "", -1, line))
            elif keyword in ("OFFSET", "CHANNELS"):
                self._describe(keyword, words, line)
            elif keyword == "}":
                self._close(line)
            else:
                known = "ROOT, JOINT, OFFSET, CHANNELS, End Site, MOTION"
                raise self.text.error(line, f"{excerpt(word)} is none of {known}")
        last = len(self.text.lines)
        require(started, last, "the file holds no HIERARCHY section")
        what = "the file ends before its MOTION section; it is truncated, or holds no motion"
        raise self.text.error(last, what)

    def bones(self) -> Iterator[Bone]:
        for joint in self.joints:
            assert joint.offset is not None
            yield Bone(
                joint.name, joint.parent, joint.offset, joint.channels or (), np.eye(3), tuple(joint.tips)
            )

    def _pieces(self) -> Iterator[tuple[int, str]]:
        """Yield statements and braces with their line numbers."""
        too_long = f"more than {MAX_HIERARCHY_LINE} characters in the hierarchy"
        for number, content in enumerate(self.text.lines, 1):
            self.text.require(len(content) <= MAX_HIERARCHY_LINE, number, too_long)
            for piece in _BRACES.split(content) if "{" in content or "}" in content else (content,):
                if stripped := piece.strip():
                    yield number, stripped

    def _begin_joint(self, keyword: str, name: str, line: int) -> str:
        require, parent = self.text.require, self.open[-1] if self.open else None
        in_site = parent is not None and parent.kind == "End Site"
        require(not in_site, line, f"{keyword} inside an End Site; close it first")
        if keyword == "JOINT":
            require(parent, line, f'JOINT "{name}" outside a ROOT; the first joint is a ROOT')
        else:
            require(not parent, line, f'ROOT "{name}" inside a joint; write JOINT, or close the braces first')
        require(name, line, f"{keyword} without a name")
        if name in self.indices:
            first = self.joints[self.indices[name]].line
            what = f'joint "{name}" has the name of the one in line {first}; rename one of them'
            raise self.text.error(line, what)
        require(len(self.joints) < MAX_BONES, line, f"more than {MAX_BONES} joints")
        self.indices[name] = len(self.joints)
        self.joints.append(_Draft("joint", name, self.indices[parent.name] if parent else -1, line))
        self.open.append(self.joints[-1])
        return f'{keyword} "{name}"'

    def _describe(self, keyword: str, words: list[str], line: int) -> None:
        """Read the OFFSET or the CHANNELS of what is open."""
        inside = self.open and (keyword == "OFFSET" or self.open[-1].kind == "joint")
        self.text.require(inside, line, f"{keyword} outside a joint")
        draft = self.open[-1]
        given = draft.offset if keyword == "OFFSET" else draft.channels
        self.text.require(given is None, line, f"a second {keyword} for the same joint")
        if keyword == "OFFSET":
            draft.offset = np.array(self.text.numbers(words, line, keyword, 3))
            return
        promised, names = (words[0] if words else "nothing"), words[1:]
        what = f"CHANNELS says {promised[:40]} but names {len(names)} channels"
        self.text.require(promised == str(len(names)), line, what)
        channels = []
        for name in names:
            match = _CHANNEL.fullmatch(name)
            if match is None:
                what = f"unknown channel {excerpt(name)}; channels are Xposition … Zposition, Xrotation …"
                raise self.text.error(line, what)
            channels.append(("t" if match[2].lower() == "position" else "r") + match[1].lower())
        what = f'joint "{draft.name}" has a channel twice: {" ".join(names)}'
        self.text.require(len(set(channels)) == len(channels), line, what)
        draft.channels = tuple(channels)

    def _close(self, line: int) -> None:
        self.text.require(self.open, line, 'one "}" too many')
        closed = self.open.pop()
        if closed.offset is None:
            what = "this End Site" if closed.kind == "End Site" else f'joint "{closed.name}"'
            raise self.text.error(closed.line, f"{what} has no OFFSET")
        if closed.kind == "End Site":
            owner = self.open[-1]
            number = str(len(owner.tips) + 1) if owner.tips else ""
            owner.tips.append(Tip(f"{owner.name}_end{number}", closed.offset))


def _motion(text: PlainText, motion_line: int, width: int) -> tuple[Array, float]:
    """Return the rows of the MOTION part and the time between them."""
    rows = ((i + 1, text.lines[i]) for i in range(motion_line, len(text.lines)) if text.lines[i].strip())
    count_line, count = _header(text, rows, "Frames:")
    time_line, frame_time_word = _header(text, rows, "Frame Time:")
    promised = text.number(count, count_line, "Frames")
    what = f"Frames is {count}; a motion has a whole number of frames, at least one"
    text.require(promised == int(promised) >= 1, count_line, what)
    frame_time = text.number(frame_time_word, time_line, "Frame Time")
    what = f"Frame Time is {frame_time}; the time between frames must be positive [s]"
    text.require(frame_time > 0.0, time_line, what)
    found = list(rows)
    if len(found) != promised:
        why = "the file seems to be truncated" if len(found) < promised else "correct the number or the rows"
        line = found[-1][0] if found else time_line
        raise text.error(line, f"Frames promises {int(promised)} frames, the file holds {len(found)}; {why}")
    frames: list[list[float]] = []
    for row, (line, content) in enumerate(found, 1):
        words = content.split()
        if len(words) != width:
            hint = "; the file seems to be truncated" if row == promised and len(words) < width else ""
            what = f"frame {row} has {len(words)} numbers, the skeleton has {width} channels{hint}"
            raise text.error(line, what)
        frames.append(text.numbers(words, line, f"frame {row}"))
    return np.array(frames, float).reshape(len(frames), width), frame_time


def _header(text: PlainText, rows: Iterator[tuple[int, str]], keyword: str) -> tuple[int, str]:
    """Return the value behind a keyword of the MOTION part, with its line."""
    line, content = next(rows, (len(text.lines), ""))
    words = content.replace(":", " : ").split()
    expected = keyword.lower().replace(":", " :").split()
    if [word.lower() for word in words[:-1]] != expected:
        found = excerpt(content.strip()) if content else "the end of the file"
        raise text.error(line, f'"{keyword} …" is expected here, found {found}')
    return line, words[-1]
