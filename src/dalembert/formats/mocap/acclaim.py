"""Acclaim skeletons (.asf) and motions (.amc).

A skeleton has bones by direction and length in the rest pose, with axes to turn about. In the rest pose bone
i starts where its parent ends and points along `direction`, in world coordinates. Its degrees of freedom turn
it about the axes of its own frame, which `axis` orients in the world, C_i:

    rotation in the world = (that of the parent) C_parent^-1 C_i M_i,   M_i = … R_dof2 R_dof1       (1)

Angles of `axis` and `dof` turn about fixed axes, the first one first, so that matrices multiply from the
right. The frame of a bone here is C_i at its start; so the skeleton's `axes` are C_parent^-1 C_i.

A motion has for each frame its number, then one line a bone with the values of its degrees of freedom, in the
units of the skeleton. The file does not say how long a frame lasts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, final

import numpy as np

from dalembert.formats.mocap import (
    CHANNELS,
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
from dalembert.formats.resources import Report
from dalembert.spatial.rotations import rotation_of_euler_angles

ASSUMED_FRAME_TIME: Final = 1.0 / 120.0
"""The time between frames [s] that is assumed: 120 Hz is what most of these files were recorded at."""
METRES_PER_INCH: Final = 0.0254
"""The length unit of an Acclaim file is an inch divided by its `length`."""

ROOT: Final = "root"
_SECTIONS: Final = ("version", "name", "units", "documentation", "root", "bonedata", "hierarchy", "skin")
_ROOT_ENTRIES: Final = ("order", "axis", "position", "orientation")
_BONE_ENTRIES: Final = ("begin", "end", "id", "name", "direction", "length", "axis", "dof", "limits")
_IGNORED_ENTRIES: Final = ("limits", "bodymass", "cofmass")
_MOTION_OPTIONS: Final = (":fully-specified", ":degrees", ":radians")

Statement = tuple[int, list[str]]
"""The number and the words of a line."""


def read_asf_amc(asf: Path, amc: Path, *, frame_time: float | None = None) -> Recording:
    """Read the skeleton of an .asf file with the motion of an .amc file."""
    skeleton = read_asf(asf)
    text = read_plain_text(amc)
    statements, degrees = _skip_header(text, skeleton)
    values = _frames(text, statements, skeleton)
    root = skeleton.bones[0]
    if root.positions:  # the file has them along world axes, (1) along those that the root turns about
        columns = [root.channels.index(f"t{axis}") for axis in "xyz"]
        values[:, columns] = values[:, columns] @ root.axes
    if frame_time is None:
        skeleton.report.note(
            f"{text.name} does not say how long a frame lasts; 1/120 s is assumed (frame_time=…)"
        )
        frame_time = ASSUMED_FRAME_TIME
    return recording_of(
        text.name, skeleton.bones, values, frame_time, degrees=degrees, unit=skeleton.unit,
        report=skeleton.report,
    )  # fmt: skip


# The skeleton


@final
@dataclass(frozen=True, slots=True)
class AsfSkeleton:
    """The bones, parents first; `orders[name]` are the channels as a frame of the .amc file lists them.

    `unit` [m]: these files divide lengths by `length`, in inches: a unit is 0.0254 / length metres.
    """

    bones: tuple[Bone, ...]
    orders: dict[str, tuple[str, ...]]
    unit: float
    degrees: bool
    report: Report


@dataclass(slots=True)
class _Draft:
    """A bone as the file gives it: its start `position` (of the root only), its `extent` from start to end in
    world axes, and its orientation C in the world.
    """

    line: int
    position: Array
    extent: Array
    orientation: Array
    dof: tuple[str, ...]


def read_asf(path: Path) -> AsfSkeleton:
    """Read the skeleton in an .asf file."""
    text = read_plain_text(path)
    report = Report()
    sections = _sections(text, report)
    for name in ("root", "bonedata", "hierarchy"):
        what = f"the file has no :{name} section; it is truncated, or no ASF file"
        text.require(name in sections, len(text.lines), what)
    length, degrees = 1.0, True
    for line, words in sections.get("units", []):
        key, value = words[0].lower(), words[-1].lower()
        text.check_name(line, "unit", key, ("mass", "length", "angle"))
        if key == "length":
            length = text.number(value, line, "length")
            text.require(length > 0.0, line, f"the unit of length is {value}; give a positive number")
        elif key == "angle":
            what = f"the unit of angle is {excerpt(value)}; it can be deg or rad"
            text.require(value in ("deg", "rad"), line, what)
            degrees = value == "deg"
    drafts = _Drafts(text, math.pi / 180.0 if degrees else 1.0, report)
    drafts.add_root(sections["root"])
    drafts.add_bones(sections["bonedata"])
    found = drafts.found
    bones = tuple(_bones(found, _hierarchy(text, sections["hierarchy"], found)))
    if len(bones) < len(found):
        lost = next(name for name in found if name not in {bone.name for bone in bones})
        raise text.error(found[lost].line, f'bone "{lost}" hangs in a cycle of :hierarchy, not on the root')
    orders = {name: draft.dof for name, draft in found.items() if draft.dof}
    return AsfSkeleton(bones, orders, METRES_PER_INCH / length, degrees, report)


def _statements(text: PlainText) -> Iterator[Statement]:
    """Yield the words of every line without comments that has any."""
    for line, content in enumerate(text.lines, 1):
        if words := content.split("#", 1)[0].split():
            yield line, words


def _sections(text: PlainText, report: Report) -> dict[str, list[Statement]]:
    """Return the statements by section."""
    sections: dict[str, list[Statement]] = {}
    current: list[Statement] | None = None
    for line, words in _statements(text):
        if words[0].startswith(":"):
            name = words[0][1:].lower()
            text.check_name(line, "section", name, _SECTIONS)
            text.require(name not in sections, line, f"a second :{name} section")
            current = sections[name] = []
            if name == "skin":
                report.ignore(":skin", line)
        elif current is None:
            what = f"this one with {excerpt(words[0])}"
            raise text.error(line, f"an ASF file begins with a section such as :version, {what}")
        else:
            current.append((line, words))
    text.require(sections, len(text.lines), "the file holds no sections")
    return sections


@final
@dataclass
class _Drafts:
    """The root and the bones as they are read, by name; `angle` is the unit of angles [rad]."""

    text: PlainText
    angle: float
    report: Report
    found: dict[str, _Draft] = field(default_factory=dict)

    def add_root(self, statements: Sequence[Statement]) -> None:
        line = statements[0][0] if statements else 1
        entries: dict[str, Statement] = {}
        for at, (word, *rest) in statements:
            self.text.check_name(at, "entry of :root", word.lower(), _ROOT_ENTRIES)
            entries[word.lower()] = at, rest
        dof = self._dof(entries.get("order"))
        order = self._axis_order(entries.get("axis"))
        C = self._rotation(self._numbers(entries, "orientation", 3, (0.0, 0.0, 0.0)), order)
        position = np.array(self._numbers(entries, "position", 3, (0.0, 0.0, 0.0)))
        what = ":root has no order of channels, such as: order TX TY TZ RX RY RZ"
        self.text.require(dof, line, what)
        what = ":root has some of the channels TX TY TZ; it needs all of them, or none"
        self.text.require(sum(channel[0] == "t" for channel in dof) in (0, 3), line, what)
        self.found[ROOT] = _Draft(line, position, np.zeros(3), C, dof)

    def add_bones(self, statements: Sequence[Statement]) -> None:
        begin, entries = 0, dict[str, Statement]()
        for line, (word, *rest) in statements:
            key = "limits" if word.startswith("(") else word.lower()
            if key == "begin":
                what = f"begin inside the bone that begins in line {begin}; an end is missing"
                self.text.require(not begin, line, what)
                begin, entries = line, {}
                continue
            self.text.require(begin, line, f"{excerpt(word)} outside a bone; a bone starts with begin")
            if key in _IGNORED_ENTRIES:
                self.report.ignore(key, line)
                continue
            self.text.check_name(line, "entry of :bonedata", key, _BONE_ENTRIES)
            entries[key] = line, rest
            if key == "end":
                self._add_bone(begin, entries)
                begin = 0
        self.text.require(not begin, begin, "this bone has no end; the file seems to be truncated")

    def _add_bone(self, begin: int, entries: Mapping[str, Statement]) -> None:
        require = self.text.require
        name = " ".join(entries.get("name", (0, []))[1])
        require(name, begin, "this bone has no name")
        if name in self.found:
            first = self.found[name].line
            raise self.text.error(begin, f'bone "{name}" has the name of the one in line {first}')
        require(len(self.found) < MAX_BONES, begin, f"more than {MAX_BONES} bones")
        require("direction" in entries, begin, f'bone "{name}" has no direction')
        direction = np.array(self._numbers(entries, "direction", 3, ()))
        (length,) = self._numbers(entries, "length", 1, (0.0,))
        norm = float(np.linalg.norm(direction))
        require(length >= 0.0, begin, f"the length of a bone is {length}; it cannot be negative")
        zero = f'bone "{name}" has the direction zero; give three numbers'
        require(norm > 0.0 or length == 0.0, begin, zero)
        order, C = "xyz", np.eye(3)
        if axis := entries.get("axis"):
            order = self._axis_order(axis)
            C = self._rotation(self.text.numbers(axis[1][:-1], axis[0], "axis", 3), order)
        dof = self._dof(entries.get("dof"))
        turns = [channel[1] for channel in dof if channel[0] == "r"]
        if turns != [letter for letter in order if letter in turns]:
            self.report.warn(
                f"line {entries['dof'][0]}: dof are turned in their own order, which is not that of axis"
            )
        self.found[name] = _Draft(begin, np.zeros(3), direction / (norm or 1.0) * length, C, dof)

    def _numbers(
        self, entries: Mapping[str, Statement], key: str, count: int, default: Sequence[float]
    ) -> Sequence[float]:
        if key not in entries:
            return default
        line, words = entries[key]
        return self.text.numbers(words, line, key, count)

    def _dof(self, entry: Statement | None) -> tuple[str, ...]:
        line, words = entry or (0, [])
        channels = tuple(word.lower() for word in words)
        for channel in channels:
            hint = "; bones that change their length are not supported" if channel == "l" else ""
            self.text.check_name(line, "degree of freedom", channel, CHANNELS, hint)
        what = f"a degree of freedom is there twice: {' '.join(words)}"
        self.text.require(len(set(channels)) == len(channels), line, what)
        return channels

    def _axis_order(self, entry: Statement | None) -> str:
        line, words = entry or (0, ["xyz"])
        word = words[-1] if words else ""
        what = f"the order of the axis is {excerpt(word)}; give the three letters, such as XYZ"
        self.text.require(sorted(word.lower()) == ["x", "y", "z"], line, what)
        return word.lower()

    def _rotation(self, angles: Sequence[float], order: str) -> Array:
        """Return the rotation C of turns about fixed axes, the first one first."""
        intrinsic = [angle * self.angle for angle in reversed(angles)]
        return np.array(rotation_of_euler_angles(order[::-1], intrinsic).to_list())


def _hierarchy(text: PlainText, statements: Sequence[Statement], drafts: dict[str, _Draft]) -> dict[str, str]:
    """Return the parent of every bone."""
    parents: dict[str, str] = {}
    where: dict[str, int] = {}
    for line, words in statements:
        if len(words) == 1 and words[0].lower() in ("begin", "end"):
            continue
        for name in words:
            text.check_name(line, "bone", name, drafts)
        for child in words[1:]:
            if child in parents:
                other = f'"{parents[child]}" (line {where[child]})'
                raise text.error(line, f'bone "{child}" has two parents: {other} and "{words[0]}"')
            text.require(child != ROOT, line, "the root cannot be the child of a bone")
            parents[child], where[child] = words[0], line
    for name in drafts:
        what = f'bone "{name}" has no parent in :hierarchy'
        text.require(name == ROOT or name in parents, drafts[name].line, what)
    return parents


def _bones(drafts: dict[str, _Draft], parents: dict[str, str]) -> Iterator[Bone]:
    """Yield the bones that hang on the root, parents first."""
    children: dict[str, list[str]] = {name: [] for name in drafts}
    for child, parent in parents.items():
        children[parent].append(child)
    index: dict[str, int] = {}
    waiting = [ROOT]
    while waiting:
        name = waiting.pop()
        waiting.extend(reversed(children[name]))
        draft = drafts[name]
        parent_index, offset, axes = -1, draft.position, draft.orientation
        if name != ROOT:
            above = drafts[parents[name]]
            parent_index = index[parents[name]]
            offset, axes = above.orientation.T @ above.extent, above.orientation.T @ axes
        index[name] = len(index)
        is_leaf = not children[name] and name != ROOT
        tips = (Tip(f"{name}_end", draft.orientation.T @ draft.extent),) if is_leaf else ()
        moves = tuple(channel for channel in draft.dof if channel[0] == "t")
        turns = tuple(channel for channel in reversed(draft.dof) if channel[0] == "r")
        yield Bone(name, parent_index, offset, moves + turns, axes, tips)


# The motion


def _skip_header(text: PlainText, skeleton: AsfSkeleton) -> tuple[Iterator[Statement], bool]:
    """Return the statements from frame 1 on, and whether angles are in degrees."""
    degrees = skeleton.degrees
    for line, words in _statements(text):
        word = " ".join(words).lower()
        if not word.startswith(":"):
            found = ((i + 1, text.lines[i].split()) for i in range(line - 1, len(text.lines)))
            return ((i, words) for i, words in found if words and not words[0].startswith("#")), degrees
        text.check_name(line, "option", word, _MOTION_OPTIONS)
        if word != ":fully-specified":
            degrees = word == ":degrees"
    raise text.error(len(text.lines), "the file holds no frames")


def _frames(text: PlainText, statements: Iterator[Statement], skeleton: AsfSkeleton) -> Array:
    """Return one row per frame, the columns in the order of the bones and of their channels."""
    orders = skeleton.orders
    rows: list[list[float]] = []
    frame: dict[str, list[float]] = {}
    number = opened = 0

    def close_frame(line: int) -> None:
        if missing := [name for name in orders if name not in frame]:
            raise text.error(
                line, f'frame {number} has no values for bone "{missing[0]}" ({len(missing)} bones are '
                "missing); the file may be truncated, or belong to another skeleton"
            )  # fmt: skip
        rows.append([value for name in orders for value in frame[name]])

    for line, (name, *words) in statements:
        if not words:
            if opened:
                close_frame(opened)
            what = f"a frame number, or a bone with its values, is expected, not {excerpt(name)}"
            text.require(name.isdecimal() and len(name) <= 9, line, what)
            what = f"frame {int(name)} follows frame {number}; frames must be numbered in order"
            text.require(not opened or int(name) == number + 1, line, what)
            number, opened, frame = int(name), line, {}
            continue
        text.require(opened, line, f"a frame number is expected before the values of {excerpt(name)}")
        text.check_name(line, "bone with degrees of freedom", name, orders)
        text.require(name not in frame, line, f'frame {number} has bone "{name}" twice')
        frame[name] = text.numbers(words, line, f'frame {number}, bone "{name}",', len(orders[name]))
    close_frame(len(text.lines))
    columns = {key: k for k, key in enumerate((name, dof) for name, order in orders.items() for dof in order)}
    return np.array(rows, float)[
        :, [columns[bone.name, channel] for bone in skeleton.bones for channel in bone.channels]
    ]
