"""Acclaim skeleton files (.asf): bones by direction and length in the rest pose, with axes to turn about.

In the rest pose bone i starts where its parent ends and points along `direction`, in world coordinates. Its
degrees of freedom turn it about the axes of its own frame, which `axis` orients in the world, C_i:

    rotation in the world = (that of the parent) C_parent^-1 C_i M_i,   M_i = … R_dof2 R_dof1       (1)

Angles of `axis` and `dof` turn about fixed axes, the first one first, so that matrices multiply from the
right. The frame of a bone here is C_i at its start; so the skeleton's `axes` are C_parent^-1 C_i.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, final

import numpy as np

from dalembert.errors import UnknownNameError
from dalembert.formats.plain_text import PlainText, read_plain_text
from dalembert.formats.report import Report
from dalembert.formats.skeleton import CHANNELS, MAX_BONES, Array, Bone, Tip, axis_rotation

__all__ = ["AsfSkeleton", "read_asf"]

ROOT: Final = "root"
METRES_PER_INCH: Final = 0.0254
"""The length unit of an Acclaim file is an inch divided by its `length`."""

_SECTIONS: Final = ("version", "name", "units", "documentation", "root", "bonedata", "hierarchy", "skin")
_EXCERPT: Final = 40


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
    """A bone as the file gives it."""

    line: int
    name: str = ""
    direction: Array | None = None
    length: float = 0.0
    orientation: Array = field(default_factory=lambda: np.eye(3))
    position: Array = field(default_factory=lambda: np.zeros(3))
    dof: tuple[str, ...] = ()
    axis_order: str = "xyz"


def read_asf(path: Path) -> AsfSkeleton:
    """Read the skeleton in an .asf file."""
    text = read_plain_text(path)
    report = Report()
    sections = _sections(text, report)
    for name in ("root", "bonedata", "hierarchy"):
        if name not in sections:
            raise text.error(
                len(text.lines), f"the file has no :{name} section; it is truncated, or no ASF file"
            )
    units = _units(text, sections.get("units", []))
    angle = math.pi / 180.0 if units["angle"] else 1.0
    drafts = {ROOT: _root(text, sections["root"], angle)}
    _bonedata(text, sections["bonedata"], angle, drafts, report)
    parents = _hierarchy(text, sections["hierarchy"], drafts)
    bones = tuple(_bones(drafts, parents))
    if len(bones) < len(drafts):
        lost = next(name for name in drafts if name not in {bone.name for bone in bones})
        raise text.error(drafts[lost].line, f'bone "{lost}" hangs in a cycle of :hierarchy, not on the root')
    orders = {name: draft.dof for name, draft in drafts.items() if draft.dof}
    return AsfSkeleton(bones, orders, METRES_PER_INCH / units["length"], bool(units["angle"]), report)


Lines = list[tuple[int, list[str]]]


def _sections(text: PlainText, report: Report) -> dict[str, Lines]:
    """Return the words of every line, by section; comments and empty lines left out."""
    sections: dict[str, Lines] = {}
    current: Lines | None = None
    for line, content in enumerate(text.lines, 1):
        words = content.split("#", 1)[0].split()
        if not words:
            continue
        if words[0].startswith(":"):
            name = words[0][1:].lower()
            if name not in _SECTIONS:
                raise text.error(line, str(UnknownNameError.of("section", name[:_EXCERPT], _SECTIONS)))
            if name in sections:
                raise text.error(line, f"a second :{name} section")
            current = sections[name] = []
            if name == "skin":
                report.ignore(":skin", line)
        elif current is None:
            raise text.error(
                line,
                f"an ASF file begins with a section such as :version, this one with {words[0][:_EXCERPT]!r}",
            )
        else:
            current.append((line, words))
    if not sections:
        raise text.error(len(text.lines), "the file holds no sections")
    return sections


def _units(text: PlainText, lines: Lines) -> dict[str, float]:
    """Return `length`, and `angle`: one for degrees."""
    units = {"length": 1.0, "angle": 1.0}
    for line, words in lines:
        key, value = words[0].lower(), words[-1].lower()
        if key == "length":
            units[key] = text.number(value, line, "length")
            if units[key] <= 0.0:
                raise text.error(line, f"the unit of length is {value}; give a positive number")
        elif key == "angle":
            if value not in ("deg", "rad"):
                raise text.error(line, f"the unit of angle is {value[:_EXCERPT]!r}; it can be deg or rad")
            units[key] = 1.0 if value == "deg" else 0.0
        elif key != "mass":
            raise text.error(
                line, str(UnknownNameError.of("unit", key[:_EXCERPT], ("mass", "length", "angle")))
            )
    return units


def _root(text: PlainText, lines: Lines, angle: float) -> _Draft:
    root = _Draft(lines[0][0] if lines else 1, ROOT)
    angles: tuple[int, list[float]] = (root.line, [0.0, 0.0, 0.0])
    for line, words in lines:
        key, rest = words[0].lower(), words[1:]
        if key == "order":
            root.dof = _dof(text, line, rest)
        elif key == "axis":
            root.axis_order = _order(text, line, rest[-1] if rest else "")
        elif key == "position":
            root.position = np.array(text.numbers(rest, line, "position", 3))
        elif key == "orientation":
            angles = (line, text.numbers(rest, line, "orientation", 3))
        else:
            known = ("order", "axis", "position", "orientation")
            raise text.error(line, f":root: {UnknownNameError.of('entry', key[:_EXCERPT], known)}")
    if not root.dof:
        raise text.error(root.line, ":root has no order of channels, such as: order TX TY TZ RX RY RZ")
    if sum(channel[0] == "t" for channel in root.dof) not in (0, 3):
        raise text.error(root.line, ":root has some of the channels TX TY TZ; it needs all of them, or none")
    root.orientation = _turn(angles[1], root.axis_order, angle)
    root.direction = np.zeros(3)
    return root


def _bonedata(text: PlainText, lines: Lines, angle: float, drafts: dict[str, _Draft], report: Report) -> None:
    bone: _Draft | None = None
    for line, words in lines:
        key, rest = words[0].lower(), words[1:]
        if key == "begin":
            if bone is not None:
                raise text.error(
                    line, f"begin inside the bone that begins in line {bone.line}; an end is missing"
                )
            bone = _Draft(line)
        elif bone is None:
            raise text.error(line, f"{words[0][:_EXCERPT]!r} outside a bone; a bone starts with begin")
        elif key == "end":
            _keep(text, bone, drafts)
            bone = None
        elif key == "name":
            bone.name = " ".join(rest)
        elif key == "direction":
            bone.direction = np.array(text.numbers(rest, line, "direction", 3))
        elif key == "length":
            bone.length = text.numbers(rest, line, "length", 1)[0]
            if bone.length < 0.0:
                raise text.error(line, f"the length of a bone is {bone.length}; it cannot be negative")
        elif key == "axis":
            bone.axis_order = _order(text, line, rest[-1] if rest else "")
            bone.orientation = _turn(text.numbers(rest[:-1], line, "axis", 3), bone.axis_order, angle)
        elif key == "dof":
            bone.dof = _dof(text, line, rest)
            order = [axis for axis in bone.axis_order if f"r{axis}" in bone.dof]
            if order != [channel[1] for channel in bone.dof if channel[0] == "r"]:
                report.warn(f"line {line}: dof are turned in their own order, which is not that of axis")
        elif key == "limits" or key.startswith("("):
            report.ignore("limits", line)
        elif key in ("id", "bodymass", "cofmass"):
            if key != "id":
                report.ignore(key, line)
        else:
            known = ("begin", "end", "id", "name", "direction", "length", "axis", "dof", "limits")
            raise text.error(line, f":bonedata: {UnknownNameError.of('entry', key[:_EXCERPT], known)}")
    if bone is not None:
        raise text.error(bone.line, "this bone has no end; the file seems to be truncated")


def _keep(text: PlainText, bone: _Draft, drafts: dict[str, _Draft]) -> None:
    if not bone.name:
        raise text.error(bone.line, "this bone has no name")
    if bone.name in drafts:
        raise text.error(
            bone.line, f'bone "{bone.name}" has the name of the one in line {drafts[bone.name].line}'
        )
    if bone.direction is None:
        raise text.error(bone.line, f'bone "{bone.name}" has no direction')
    norm = float(np.linalg.norm(bone.direction))
    if norm == 0.0 and bone.length > 0.0:
        raise text.error(bone.line, f'bone "{bone.name}" has the direction zero; give three numbers')
    bone.direction = bone.direction / (norm or 1.0)
    if len(drafts) == MAX_BONES:
        raise text.error(bone.line, f"more than {MAX_BONES} bones")
    drafts[bone.name] = bone


def _hierarchy(text: PlainText, lines: Lines, drafts: dict[str, _Draft]) -> dict[str, str]:
    """Return the parent of every bone."""
    parents: dict[str, str] = {}
    where: dict[str, int] = {}
    for line, words in lines:
        if len(words) == 1 and words[0].lower() in ("begin", "end"):
            continue
        for name in words:
            if name not in drafts:
                raise text.error(line, str(UnknownNameError.of("bone", name[:_EXCERPT], drafts)))
        for child in words[1:]:
            if child in parents:
                other = f'"{parents[child]}" (line {where[child]})'
                raise text.error(line, f'bone "{child}" has two parents: {other} and "{words[0]}"')
            if child == ROOT:
                raise text.error(line, "the root cannot be the child of a bone")
            parents[child], where[child] = words[0], line
    for name in drafts:
        if name != ROOT and name not in parents:
            raise text.error(drafts[name].line, f'bone "{name}" has no parent in :hierarchy')
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
        C = draft.orientation
        assert draft.direction is not None
        end = C.T @ (draft.direction * draft.length)
        if name == ROOT:
            above_index, offset, axes = -1, draft.position, C
        else:
            above = drafts[parents[name]]
            assert above.direction is not None
            above_index = index[parents[name]]
            offset = above.orientation.T @ (above.direction * above.length)
            axes = above.orientation.T @ C
        index[name] = len(index)
        tips = () if children[name] or name == ROOT else (Tip(f"{name}_end", end),)
        moves = tuple(channel for channel in draft.dof if channel[0] == "t")
        turns = tuple(channel for channel in reversed(draft.dof) if channel[0] == "r")
        yield Bone(name, above_index, offset, moves + turns, axes, tips)


def _dof(text: PlainText, line: int, words: list[str]) -> tuple[str, ...]:
    channels = tuple(word.lower() for word in words)
    for channel in channels:
        if channel not in CHANNELS:
            why = "; bones that change their length are not supported" if channel == "l" else ""
            raise text.error(
                line, f"{UnknownNameError.of('degree of freedom', channel[:_EXCERPT], CHANNELS)}{why}"
            )
    if len(set(channels)) != len(channels):
        raise text.error(line, f"a degree of freedom is there twice: {' '.join(words)}")
    return channels


def _order(text: PlainText, line: int, word: str) -> str:
    if sorted(word.lower()) != ["x", "y", "z"]:
        raise text.error(
            line, f"the order of the axis is {word[:_EXCERPT]!r}; give the three letters, such as XYZ"
        )
    return word.lower()


def _turn(angles: list[float], order: str, unit: float) -> Array:
    """Return the rotation C of turns about fixed axes, the first one first."""
    C = np.eye(3)
    for axis, angle in zip(order, angles):
        C = axis_rotation(axis, angle * unit) @ C
    return C
