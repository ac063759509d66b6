"""Biovision hierarchy (.bvh): a skeleton by offsets and channels, and one line of channel values a frame.

Angles are in degrees, lengths have no unit, the up axis is not said. The order of channels is each joint's
own. Position channels, wherever they stand among the rotations, move the joint before it turns.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NoReturn, final

import numpy as np

from dalembert.formats.plain_text import PlainText, read_plain_text
from dalembert.formats.report import Report
from dalembert.formats.skeleton import MAX_BONES, Array, Bone, Recording, Tip

__all__ = ["read_bvh"]

MAX_HIERARCHY_LINE: Final = 4096
"""Longer lines of the hierarchy are refused."""

_CHANNEL: Final = re.compile(r"([xyz])(position|rotation)", re.IGNORECASE)
_BRACES: Final = re.compile(r"([{}])")
_EXCERPT: Final = 40


def read_bvh(path: Path) -> Recording:
    """Read the skeleton and the motion in a .bvh file."""
    text = read_plain_text(path)
    hierarchy = _Hierarchy(text)
    motion_line = hierarchy.read()
    drafts = hierarchy.drafts
    channels = [channel for draft in drafts for channel in draft.channels]
    values, frame_time = _motion(text, motion_line, len(channels))
    turns = np.array([channel[0] == "r" for channel in channels], bool)
    values[:, turns] *= math.pi / 180.0
    time: Array = frame_time * np.arange(len(values), dtype=np.float64)
    return Recording(text.name, tuple(hierarchy.bones()), values, time, None, Report())


@dataclass(slots=True)
class _Draft:
    """A joint as far as it has been read."""

    name: str
    parent: int
    line: int
    offset: Array | None = None
    channels: tuple[str, ...] = ()
    has_channels: bool = False
    tips: list[Tip] = field(default_factory=list)


@final
class _Hierarchy:
    """The HIERARCHY part; the open joints are a stack, -2 stands for an open End Site."""

    END_SITE: Final = -2

    def __init__(self, text: PlainText) -> None:
        self.text = text
        self.drafts: list[_Draft] = []
        self.lines: dict[str, int] = {}  # where each name was given
        self.open: list[int] = []
        self.sites = 0
        self.site: tuple[int, Array | None] = (0, None)  # line and offset of the End Site that is open

    def read(self) -> int:
        """Read up to MOTION; the index of the line after it."""
        started = False
        awaiting = ""  # what the next brace opens
        pieces = self._pieces()
        for line, piece in pieces:
            words = piece.split()
            keyword = words[0].upper()
            if not started:
                if keyword != "HIERARCHY":
                    raise self.text.error(
                        line, f"a BVH file begins with HIERARCHY, this one with {piece[:_EXCERPT]!r}"
                    )
                started = True
            elif awaiting:
                if piece != "{":
                    raise self.text.error(
                        line, f'"{{" is expected after {awaiting}, not {piece[:_EXCERPT]!r}'
                    )
                awaiting = ""
            elif keyword == "MOTION":
                self._refuse_unless_complete(line)
                return line
            elif keyword in ("ROOT", "JOINT"):
                self._begin(keyword, piece[len(keyword) :].strip(), line)
                awaiting = f'{keyword} "{self.drafts[-1].name}"'
            elif keyword == "END":
                self._begin_site(line)
                awaiting = "End Site"
            elif keyword == "OFFSET":
                self._offset(words[1:], line)
            elif keyword == "CHANNELS":
                self._channels(words[1:], line)
            elif keyword == "}":
                self._close(line)
            else:
                raise self.text.error(
                    line,
                    f"{words[0][:_EXCERPT]!r} is none of ROOT, JOINT, OFFSET, CHANNELS, End Site, MOTION",
                )
        last = len(self.text.lines)
        if not started:
            raise self.text.error(last, "the file holds no HIERARCHY section")
        raise self.text.error(
            last, "the file ends before its MOTION section; it is truncated, or holds no motion"
        )

    def bones(self) -> Iterator[Bone]:
        for draft in self.drafts:
            assert draft.offset is not None
            yield Bone(draft.name, draft.parent, draft.offset, draft.channels, np.eye(3), tuple(draft.tips))

    def _pieces(self) -> Iterator[tuple[int, str]]:
        """Yield statements and braces with their line numbers."""
        for number, content in enumerate(self.text.lines, 1):
            if len(content) > MAX_HIERARCHY_LINE:
                raise self.text.error(number, f"more than {MAX_HIERARCHY_LINE} characters in the hierarchy")
            for piece in _BRACES.split(content) if "{" in content or "}" in content else (content,):
                if stripped := piece.strip():
                    yield number, stripped

    def _begin(self, keyword: str, name: str, line: int) -> None:
        if self.open and self.open[-1] == self.END_SITE:
            raise self.text.error(line, f"{keyword} inside an End Site; close it first")
        if keyword == "JOINT" and not self.open:
            raise self.text.error(line, f'JOINT "{name}" outside a ROOT; the first joint is a ROOT')
        if keyword == "ROOT" and self.open:
            raise self.text.error(
                line, f'ROOT "{name}" inside a joint; write JOINT, or close the braces first'
            )
        if not name:
            raise self.text.error(line, f"{keyword} without a name")
        if name in self.lines:
            raise self.text.error(
                line, f'joint "{name}" has the name of the one in line {self.lines[name]}; rename one of them'
            )
        if len(self.drafts) == MAX_BONES:
            raise self.text.error(line, f"more than {MAX_BONES} joints")
        self.lines[name] = line
        self.drafts.append(_Draft(name, self.open[-1] if self.open else -1, line))
        self.open.append(len(self.drafts) - 1)

    def _begin_site(self, line: int) -> None:
        if not self.open or self.open[-1] == self.END_SITE:
            raise self.text.error(line, "End Site outside a joint")
        self.sites += 1
        if self.sites > MAX_BONES:
            raise self.text.error(line, f"more than {MAX_BONES} end sites")
        self.open.append(self.END_SITE)
        self.site = (line, None)

    def _offset(self, words: list[str], line: int) -> None:
        if not self.open:
            raise self.text.error(line, "OFFSET outside a joint")
        offset = np.array(self.text.numbers(words, line, "OFFSET", 3))
        if self.open[-1] == self.END_SITE:
            self._refuse_second(self.site[1] is not None, "OFFSET", line)
            self.site = (self.site[0], offset)
        else:
            draft = self.drafts[self.open[-1]]
            self._refuse_second(draft.offset is not None, "OFFSET", line)
            draft.offset = offset

    def _channels(self, words: list[str], line: int) -> None:
        if not self.open or self.open[-1] == self.END_SITE:
            raise self.text.error(line, "CHANNELS outside a joint")
        draft = self.drafts[self.open[-1]]
        self._refuse_second(draft.has_channels, "CHANNELS", line)
        draft.has_channels = True
        promised, names = (words[0] if words else "nothing"), words[1:]
        if promised != str(len(names)):
            raise self.text.error(
                line, f"CHANNELS says {promised[:_EXCERPT]} but names {len(names)} channels"
            )
        matches = [_CHANNEL.fullmatch(name) for name in names]
        for name, match in zip(names, matches):
            if match is None:
                raise self.text.error(
                    line,
                    f"unknown channel {name[:_EXCERPT]!r}; channels are Xposition … Zposition, Xrotation …",
                )
        channels = tuple(
            ("t" if match[2].lower() == "position" else "r") + match[1].lower() for match in matches if match
        )
        if len(set(channels)) != len(channels):
            raise self.text.error(line, f'joint "{draft.name}" has a channel twice: {" ".join(names)}')
        draft.channels = channels

    def _close(self, line: int) -> None:
        if not self.open:
            raise self.text.error(line, 'one "}" too many')
        closed = self.open.pop()
        if closed == self.END_SITE:
            begin, offset = self.site
            if offset is None:
                raise self.text.error(begin, "this End Site has no OFFSET")
            owner = self.drafts[self.open[-1]]
            number = str(len(owner.tips) + 1) if owner.tips else ""
            owner.tips.append(Tip(f"{owner.name}_end{number}", offset))
        elif self.drafts[closed].offset is None:
            draft = self.drafts[closed]
            raise self.text.error(draft.line, f'joint "{draft.name}" has no OFFSET')

    def _refuse_second(self, already: bool, what: str, line: int) -> None:
        if already:
            raise self.text.error(line, f"a second {what} for the same joint")

    def _refuse_unless_complete(self, line: int) -> None:
        if self.open:
            where = next(i for i in reversed(self.open) if i != self.END_SITE)
            draft = self.drafts[where]
            raise self.text.error(
                line,
                f'MOTION begins while joint "{draft.name}" of line {draft.line} is open; a "}}" is missing',
            )
        if not self.drafts:
            raise self.text.error(line, "the hierarchy holds no joints")


def _motion(text: PlainText, motion_line: int, width: int) -> tuple[Array, float]:
    """Return the rows of the MOTION part and the time between them."""
    rows = ((i + 1, text.lines[i]) for i in range(motion_line, len(text.lines)) if text.lines[i].strip())
    count_line, count = _header(text, rows, "Frames:")
    time_line, frame_time_word = _header(text, rows, "Frame Time:")
    promised = text.number(count, count_line, "Frames")
    if promised != int(promised) or promised < 1.0:
        raise text.error(
            count_line, f"Frames is {count}; a motion has a whole number of frames, at least one"
        )
    frame_time = text.number(frame_time_word, time_line, "Frame Time")
    if frame_time <= 0.0:
        raise text.error(
            time_line, f"Frame Time is {frame_time}; the time between frames must be positive [s]"
        )
    held = list(rows)
    if len(held) != promised:
        why = "the file seems to be truncated" if len(held) < promised else "correct the number or the rows"
        line = held[-1][0] if held else time_line
        raise text.error(line, f"Frames promises {int(promised)} frames, the file holds {len(held)}; {why}")
    frames: list[list[float]] = []
    for row, (line, content) in enumerate(held, 1):
        words = content.split()
        if len(words) != width:
            hint = "; the file seems to be truncated" if row == promised and len(words) < width else ""
            raise text.error(
                line, f"frame {row} has {len(words)} numbers, the skeleton has {width} channels{hint}"
            )
        frames.append(text.numbers(words, line, f"frame {row}"))
    return np.array(frames, float).reshape(len(frames), width), frame_time


def _header(text: PlainText, rows: Iterator[tuple[int, str]], keyword: str) -> tuple[int, str]:
    """Return the value behind a keyword of the MOTION part, with its line."""

    def refuse(line: int, found: str) -> NoReturn:
        raise text.error(line, f'"{keyword} …" is expected here, found {found}')

    line, content = next(rows, (len(text.lines), ""))
    words = content.replace(":", " : ").split()
    expected = keyword.replace(":", " :").split()
    if [word.lower() for word in words[: len(expected)]] != [word.lower() for word in expected]:
        refuse(line, repr(content.strip()[:_EXCERPT]) if content else "the end of the file")
    if len(words) != len(expected) + 1:
        refuse(line, repr(content.strip()[:_EXCERPT]))
    return line, words[-1]
