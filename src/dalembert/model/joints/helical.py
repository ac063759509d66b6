"""Helical (screw) joint."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

from dalembert.model.joints.axes import (
    angle_about,
    basis_around,
    finite_number,
    screw,
    unit_axis,
)
from dalembert.model.joints.joint import Joint
from dalembert.model.joints.subspaces import forces, moments
from dalembert.scalar import Scalar, absolute, floor, select
from dalembert.spatial import Force, Motion, Placement, Transform, Vec3
from dalembert.spatial.rotations import principal_direction

__all__ = ["Helical", "turned_angle"]

PITCH_TOLERANCE = 1.0e-12
"""Below this advance per radian [m] the angle of a screw cannot be told from how far it has advanced."""


def turned_angle(angle: Scalar, advance: Scalar, pitch: Scalar) -> Scalar:
    """Return the angle plus the whole turns that bring pitch times angle nearest to the advance [m]."""
    usable = absolute(pitch) > PITCH_TOLERANCE
    turns = floor((advance / select(usable, pitch, 1.0) - angle) / math.tau + 0.5)
    return angle + select(usable, turns, 0.0) * math.tau


@final
@dataclass(frozen=True, slots=True, init=False)
class Helical(Joint):
    """Rotation by q [rad] about an axis with an advance of h q along it: S = (a, h a) (Featherstone 2008
    Table 4.1).

    `pitch` is h [m/rad]: the advance per radian, not per turn.

    >>> joint = da.Helical((0, 0, 1), pitch=0.1)
    >>> print(joint.subspace([0.0])[0].to_list())
    [0.0, 0.0, 1.0, 0.0, 0.0, 0.1]
    """

    axis: Vec3
    pitch: Scalar

    kind = "helical"
    constant_constraint_forces = True
    parameter_names = ("axis", "pitch")
    nq = 1
    nv = 1
    coordinates = ("angle",)

    def __init__(self, axis: Sequence[Scalar] | Vec3 = (0.0, 0.0, 1.0), pitch: Scalar = 0.0) -> None:
        object.__setattr__(self, "axis", unit_axis(axis, "Helical"))
        object.__setattr__(self, "pitch", finite_number(pitch, "pitch", "Helical"))

    def structure(self) -> tuple[Any, ...]:
        return (self.kind, principal_direction(self.axis))

    def transform(self, q: Sequence[Scalar], time: Scalar | None = None) -> Placement:
        return screw(self.axis, q[0], self.pitch * q[0])

    def subspace(self, q: Sequence[Scalar], time: Scalar | None = None) -> tuple[Motion, ...]:
        return (Motion(self.axis, self.axis * self.pitch),)

    def constraint_subspace(self, q: Sequence[Scalar], time: Scalar | None = None) -> tuple[Force, ...]:
        t1, t2, a = basis_around(self.axis)
        return moments(t1, t2) + forces(t1, t2) + (Force(a * -self.pitch, a),)

    def active_subspace(self, q: Sequence[Scalar], time: Scalar | None = None) -> tuple[Force, ...]:
        return moments(self.axis)

    def position_of(self, X: Transform, time: Scalar | None = None) -> list[Scalar]:
        return [turned_angle(angle_about(self.axis, X.R), self.axis.dot(X.p), self.pitch)]
