"""Motion-capture files of any format: a tree of bones with channels and values, read from lines of text.

Every bone has a frame at its joint. The placement of the frame of bone i in that of its parent is

    X_i = T(offset_i) A_i  T(positions)  R_1 R_2 …          (1)

with a constant rotation A_i (`axes`), the position channels, and one turn for each rotation channel, from
left to right in the order of `channels`. A channel is two letters: "tx", "ty", "tz" move, "rx", "ry", "rz"
turn.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal, final

import numpy as np
import numpy.typing as npt

from dalembert.errors import FileError, UnknownNameError
from dalembert.formats.resources import MAX_FILE_BYTES, Report, read_regular_file

Array = npt.NDArray[np.float64]

MAX_BONES: Final = 10_000
"""Skeletons with more bones are rejected."""
MAX_LINES: Final = 4_000_000
"""Files with more lines are rejected; a line costs more memory than the bytes in it."""
CHANNELS: Final = ("tx", "ty", "tz", "rx", "ry", "rz")

_NEXT: Final = {"x": "y", "y": "z", "z": "x"}
_BYTE_ORDER_MARKS: Final = (b"\xff\xfe", b"\xfe\xff")


@final
@dataclass(frozen=True, slots=True)
class Tip:
    """The end of a bone that carries no other: a named point in the bone's frame [file units]."""

    name: str
    offset: Array


@final
@dataclass(frozen=True, slots=True)
class Bone:
    """One joint and what it moves, as in (1); `parent` is -1 for the world; lengths in file units."""

    name: str
    parent: int
    offset: Array
    channels: tuple[str, ...]
    axes: Array
    tips: tuple[Tip, ...] = ()

    @property
    def positions(self) -> tuple[str, ...]:
        """The axes of the position channels, in their order."""
        return tuple(channel[1] for channel in self.channels if channel[0] == "t")

    @property
    def rotations(self) -> tuple[str, ...]:
        """The axes of the rotation channels, in their order."""
        return tuple(channel[1] for channel in self.channels if channel[0] == "r")


@final
@dataclass(frozen=True, slots=True)
class Recording:
    """A skeleton and its motion: `values (T, channels)`, all bones' channels in turn, lengths in file units,
    angles in radians; `time (T,)` [s]; `unit` [m], the length that the file itself gives its unit, if it
    does.
    """

    file: str
    bones: tuple[Bone, ...]
    values: Array
    time: Array
    unit: float | None
    report: Report


def recording_of(
    file: str,
    bones: Iterable[Bone],
    values: Array,
    frame_time: float,
    *,
    degrees: bool = True,
    unit: float | None = None,
    report: Report | None = None,
) -> Recording:
    """Return a recording of evenly spaced frames; angles in `degrees` become radians in place."""
    bones = tuple(bones)
    if degrees:
        turns = np.array([channel[0] == "r" for bone in bones for channel in bone.channels], bool)
        values[:, turns] *= math.pi / 180.0
    time = np.asarray(frame_time * np.arange(len(values), dtype=np.float64))
    return Recording(file, bones, values, time, unit, report or Report())


def with_z_up(recording: Recording, up: Literal["y", "z"]) -> Recording:
    """Return the recording in axes with z up.

    From y up, axes are renamed in a cycle: x becomes y, y becomes z, z becomes x. That is a rotation, so
    that no angle changes its value or sign; a figure that faces z with x at its left, as is usual in these
    files, then faces x with y at its left.
    """
    if up not in ("y", "z"):
        raise UnknownNameError.of("up axis", up, ("y", "z"))
    if up == "z":
        return recording
    bones = tuple(
        replace(
            bone,
            offset=np.roll(bone.offset, 1),
            channels=tuple(channel[0] + _NEXT[channel[1]] for channel in bone.channels),
            axes=np.roll(bone.axes, (1, 1), (0, 1)),
            tips=tuple(Tip(tip.name, np.roll(tip.offset, 1)) for tip in bone.tips),
        )
        for bone in recording.bones
    )
    return replace(recording, bones=bones)


def free_name(name: str, taken: Collection[str]) -> str:
    """Return the name, with the first number after it that makes it new if it is taken."""
    if name not in taken:
        return name
    number = 2
    while f"{name}{number}" in taken:
        number += 1
    return f"{name}{number}"


# Text files, line by line


@final
@dataclass(frozen=True, slots=True)
class PlainText:
    """The lines of a file and its name in messages. Lines are numbered from 1, as editors do."""

    name: str
    lines: list[str]

    def error(self, line: int, message: str) -> FileError:
        """Return the error to raise for something in a line."""
        return FileError(f"{self.name} line {line}: {message}")

    def require(self, condition: object, line: int, message: str) -> None:
        """Raise an error about a line unless the condition holds."""
        if not condition:
            raise self.error(line, message)

    def number(self, word: str, line: int, what: str) -> float:
        """Return a finite number."""
        return self.numbers([word], line, what)[0]

    def numbers(self, words: Sequence[str], line: int, what: str, count: int | None = None) -> list[float]:
        """Return finite numbers, as many as requested."""
        self.require(
            count in (None, len(words)), line, f"{what} has {len(words)} numbers; {count} are expected"
        )
        try:
            values = list(map(float, words))
        except ValueError:
            values = []
        # The sum of finite numbers may overflow, and then each is examined; it is NaN or infinite whenever
        # one of them is. "1_0" is a number to Python alone.
        if len(values) != len(words) or not math.isfinite(sum(values)) or any("_" in word for word in words):
            for word in words:
                try:
                    if "_" not in word and math.isfinite(float(word)):
                        continue
                except ValueError:
                    hint = "; write decimals with a point, as in 1.5" if "," in word else ""
                    what = f"{what} holds {excerpt(word)}, which is not a number{hint}"
                    raise self.error(line, what) from None
                raise self.error(line, f"{what} holds {excerpt(word)}; give finite numbers")
        return values

    def check_name(self, line: int, kind: str, name: str, valid: Iterable[str], hint: str = "") -> None:
        """Raise an error that names the nearest valid names, unless the name is one of them."""
        if name not in valid:
            raise self.error(line, f"{UnknownNameError.of(kind, name[:40], valid)}{hint}")


def excerpt(text: str) -> str:
    """Return the beginning of a text in quotes, for messages."""
    return repr(text[:40])


def read_plain_text(path: Path) -> PlainText:
    """Read the lines of a regular file of bounded size: UTF-8, or UTF-16 with its mark."""
    content = read_regular_file(path, limit=MAX_FILE_BYTES)
    if not content.strip():
        raise FileError(f"{path.name} is empty")
    try:
        text = content.decode("utf-16" if content.startswith(_BYTE_ORDER_MARKS) else "utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("latin-1")  # names written by old programs; the numbers are ASCII all the same
    if (zero := text.find("\0")) >= 0:
        line = text.count("\n", 0, zero) + 1
        raise FileError(f"{path.name} line {line}: a NUL character; this is not a text file")
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if text.count("\n") > MAX_LINES:
        raise FileError(f"{path.name} has more than {MAX_LINES} lines")
    return PlainText(path.name, text.split("\n"))
