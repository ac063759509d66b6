"""Acclaim motion files (.amc): for each frame its number, then one line a bone with the values of its dof.

The values are in the units of the skeleton file (.asf). The file does not say how long a frame lasts.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Final

import numpy as np

from dalembert.errors import UnknownNameError
from dalembert.formats.asf import AsfSkeleton, read_asf
from dalembert.formats.plain_text import PlainText, read_plain_text
from dalembert.formats.skeleton import Array, Recording

__all__ = ["FRAME_TIME", "read_asf_amc"]

FRAME_TIME: Final = 1.0 / 120.0
"""The time between frames [s] that is assumed: 120 Hz is what most of these files were recorded at."""

_OPTIONS: Final = (":fully-specified", ":degrees", ":radians")
_EXCERPT: Final = 40


def read_asf_amc(asf: Path, amc: Path, *, frame_time: float | None = None) -> Recording:
    """Read the skeleton of an .asf file with the motion of an .amc file."""
    skeleton = read_asf(asf)
    text = read_plain_text(amc)
    body = _skip_header(text, skeleton)
    rows = _frames(text, body[0], skeleton)
    values = _reorder_columns(np.array(rows, float), skeleton)
    _root_positions_in_its_frame(skeleton, values)
    turns = np.array([channel[0] == "r" for bone in skeleton.bones for channel in bone.channels], bool)
    if body[1]:
        values[:, turns] *= math.pi / 180.0
    if frame_time is None:
        skeleton.report.note(
            f"{text.name} does not say how long a frame lasts; 1/120 s is assumed (frame_time=…)"
        )
    dt = FRAME_TIME if frame_time is None else frame_time
    time: Array = dt * np.arange(len(values), dtype=np.float64)
    return Recording(text.name, skeleton.bones, values, time, skeleton.unit, skeleton.report)


def _root_positions_in_its_frame(skeleton: AsfSkeleton, values: Array) -> None:
    """Rotate the root's positions, given along world axes, into the axes that the root turns about."""
    root = skeleton.bones[0]
    where = [root.channels.index(f"t{axis}") for axis in ("xyz" if root.positions else "")]
    if where:
        values[:, where] = values[:, where] @ root.axes


def _skip_header(text: PlainText, skeleton: AsfSkeleton) -> tuple[int, bool]:
    """Return the index of the first line of frame 1, and whether angles are in degrees."""
    degrees = skeleton.degrees
    for i, content in enumerate(text.lines):
        word = content.split("#", 1)[0].strip().lower()
        if not word:
            continue
        if not word.startswith(":"):
            return i, degrees
        if word not in _OPTIONS:
            raise text.error(i + 1, str(UnknownNameError.of("option", word[:_EXCERPT], _OPTIONS)))
        if word != ":fully-specified":
            degrees = word == ":degrees"
    raise text.error(len(text.lines), "the file holds no frames")


def _frames(text: PlainText, start: int, skeleton: AsfSkeleton) -> list[list[float]]:
    """Return one row per frame: the values of all bones with dof, in the order of the skeleton's `orders`."""
    widths = {name: len(order) for name, order in skeleton.orders.items()}
    rows: list[list[float]] = []
    frame: dict[str, list[float]] = {}
    number, opened = 0, 0
    for i in range(start, len(text.lines)):
        words = text.lines[i].split()
        if not words or words[0].startswith("#"):
            continue
        line, name = i + 1, words[0]
        if len(words) == 1:
            if opened:
                rows.append(_row(text, opened, number, frame, widths))
            number, opened, frame = _frame_number(text, line, name, number if opened else None), line, {}
        elif not opened:
            raise text.error(line, f"a frame number is expected before the values of {name[:_EXCERPT]!r}")
        elif name not in widths:
            raise text.error(
                line, str(UnknownNameError.of("bone with degrees of freedom", name[:_EXCERPT], widths))
            )
        elif name in frame:
            raise text.error(line, f'frame {number} has bone "{name}" twice')
        else:
            what = f'frame {number}, bone "{name}",'
            frame[name] = text.numbers(words[1:], line, what, widths[name])
    rows.append(_row(text, len(text.lines), number, frame, widths))
    return rows


def _frame_number(text: PlainText, line: int, word: str, previous: int | None) -> int:
    if not word.isdecimal() or len(word) > 9:
        raise text.error(
            line, f"a frame number, or a bone with its values, is expected, not {word[:_EXCERPT]!r}"
        )
    number = int(word)
    if previous is not None and number != previous + 1:
        raise text.error(line, f"frame {number} follows frame {previous}; frames must be numbered in order")
    return number


def _row(
    text: PlainText, line: int, number: int, frame: dict[str, list[float]], widths: dict[str, int]
) -> list[float]:
    if len(frame) != len(widths):
        missing = [name for name in widths if name not in frame]
        raise text.error(
            line, f'frame {number} has no values for bone "{missing[0]}" ({len(missing)} bones are missing); '
            "the file may be truncated, or belong to another skeleton"
        )  # fmt: skip
    return [value for name in widths for value in frame[name]]


def _reorder_columns(rows: Array, skeleton: AsfSkeleton) -> Array:
    """Return the columns in the order of the bones and of their channels."""
    column = {
        (name, channel): k
        for k, (name, channel) in enumerate(
            (name, channel) for name, order in skeleton.orders.items() for channel in order
        )
    }
    return rows[:, [column[bone.name, channel] for bone in skeleton.bones for channel in bone.channels]]
