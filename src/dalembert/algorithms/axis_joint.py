"""A joint about z: the form of revolute, prismatic, helical and cylindrical joints in aligned frames."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, final

import numpy as np
import numpy.typing as npt

from dalembert.model.joints import Cylindrical, Helical, Joint, Prismatic, Revolute
from dalembert.scalar import Scalar, cos, is_zero, sin
from dalembert.spatial import AxialScrew, Motion, Transform, Vec3

__all__ = ["AxisJoint", "axis_of"]

COORDINATES: Final[dict[str, tuple[str, ...]]] = {
    "revolute": ("angle",),
    "prismatic": ("length",),
    "helical": ("angle",),
    "cylindrical": ("angle", "length"),
    "fixed": (),
}

Z: Final = Vec3(0.0, 0.0, 1.0)

QUARTER_TURN_TOLERANCE: Final = 2e-15
"""Rounding error [rad] up to which a turn is a multiple of a quarter turn."""


def axis_of(joint: Joint) -> npt.NDArray[np.float64] | None:
    """Return the one direction about or along which a joint moves, in its own frame;
    None for other joints."""
    if isinstance(joint, (Revolute, Prismatic, Helical, Cylindrical)):
        components = joint.axis.to_list()
        if all(isinstance(x, (int, float)) for x in components):
            return np.array(components, dtype=np.float64)
    return None


def _quarters(turn: Scalar) -> tuple[int, Scalar]:
    """Split a constant turn into quarter turns, which cost no arithmetic, and the rest."""
    if not isinstance(turn, float):
        return 0, turn
    quarters = round(turn / (0.5 * math.pi))
    rest = turn - quarters * 0.5 * math.pi
    return (quarters, 0.0) if abs(rest) <= QUARTER_TURN_TOLERANCE else (0, turn)


@final
@dataclass(frozen=True, slots=True)
class AxisJoint(Joint):
    """scrz(angle + turn, advance + shift): the freedom along z, with a constant turn [rad] and shift [m].

    `original_frame`: the successor frame of the joint that it stands for, placed in the aligned one. q, v and
    tau are the same; S is a coordinate direction, or (e_z, pitch e_z) if helical.
    """

    freedom: str
    turn: Scalar = 0.0
    shift: Scalar = 0.0
    pitch: Scalar = 0.0
    original_frame: Transform = field(default_factory=Transform.identity)

    kind = "aligned_axis"
    parameter_names = ("turn", "shift", "pitch", "original_frame")

    @staticmethod
    def like(joint: Joint, turn: float, shift: float, original_frame: Transform) -> AxisJoint:
        """Return the joint in a frame whose z is its axis, with its own successor frame as given."""
        pitch = joint.pitch if isinstance(joint, Helical) else 0.0
        return AxisJoint(joint.kind, turn, shift, pitch, original_frame)

    @property
    def nq(self) -> int:
        return len(COORDINATES[self.freedom])

    @property
    def nv(self) -> int:
        return len(COORDINATES[self.freedom])

    @property
    def coordinates(self) -> tuple[str, ...]:
        return COORDINATES[self.freedom]

    def structure(self) -> tuple[Any, ...]:
        quarters, rest = _quarters(self.turn)
        return (self.kind, self.freedom, quarters % 4, is_zero(rest), is_zero(self.shift))

    def transform(self, q: Sequence[Scalar], time: Scalar | None = None) -> AxialScrew:
        quarters, angle = _quarters(self.turn)
        advance: Scalar = self.shift
        if self.freedom in ("revolute", "helical", "cylindrical"):
            angle = q[0] + angle
        if self.freedom in ("prismatic", "cylindrical"):
            advance = q[-1] + advance
        if self.freedom == "helical":
            advance = self.pitch * q[0] + advance
        c, s = cos(angle), sin(angle)
        for _ in range(quarters % 4):
            c, s = -s, c
        return AxialScrew(2, c, s, advance)

    def subspace(self, q: Sequence[Scalar], time: Scalar | None = None) -> tuple[Motion, ...]:
        turning, sliding = Motion(Z, Vec3.zero()), Motion(Vec3.zero(), Z)
        if self.freedom == "helical":
            return (Motion(Z, Vec3(0.0, 0.0, self.pitch)),)
        columns = {
            "revolute": (turning,),
            "prismatic": (sliding,),
            "cylindrical": (turning, sliding),
            "fixed": (),
        }
        return columns[self.freedom]
