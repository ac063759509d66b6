"""The content of motion-capture files of any format: a tree of bones with channels, and their values.

Every bone has a frame at its joint. The placement of the frame of bone i in that of its parent is

    X_i = T(offset_i) A_i  T(positions)  R_1 R_2 …          (1)

with a constant rotation A_i (`axes`), the position channels, and one turn for each rotation channel, from
left to right in the order of `channels`. A channel is two letters: "tx", "ty", "tz" move, "rx", "ry", "rz"
turn.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Final, Literal, final

import numpy as np
import numpy.typing as npt

from dalembert.errors import UnknownNameError
from dalembert.formats.report import Report

__all__ = ["CHANNELS", "MAX_BONES", "Bone", "Recording", "Tip", "axis_rotation", "free_name", "with_z_up"]

Array = npt.NDArray[np.float64]

MAX_BONES: Final = 10_000
"""Skeletons with more bones are refused."""

CHANNELS: Final = ("tx", "ty", "tz", "rx", "ry", "rz")

_NEXT: Final = {"x": "y", "y": "z", "z": "x"}


def axis_rotation(axis: str, angle: float) -> Array:
    """Return the rotation R (child to parent) by angle [rad] about the axis "x", "y" or "z"."""
    c, s = np.cos(angle), np.sin(angle)
    i = "xyz".index(axis)
    j, k = (i + 1) % 3, (i + 2) % 3
    R = np.zeros((3, 3))
    R[i, i], R[j, j], R[j, k], R[k, j], R[k, k] = 1.0, c, -s, s, c
    return R


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
    return replace(recording, bones=tuple(_cycle_axes(bone) for bone in recording.bones))


def _cycle_axes(bone: Bone) -> Bone:
    return replace(
        bone,
        offset=np.roll(bone.offset, 1),
        axes=np.roll(bone.axes, (1, 1), (0, 1)),
        channels=tuple(channel[0] + _NEXT[channel[1]] for channel in bone.channels),
        tips=tuple(Tip(tip.name, np.roll(tip.offset, 1)) for tip in bone.tips),
    )


def free_name(name: str, taken: Collection[str]) -> str:
    """Return the name, with the first number after it that makes it new if it is taken."""
    if name not in taken:
        return name
    number = 2
    while f"{name}{number}" in taken:
        number += 1
    return f"{name}{number}"
