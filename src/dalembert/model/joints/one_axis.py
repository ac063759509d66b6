"""Revolute (hinge) joint."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

from dalembert.model.joints.joint import Joint, axis_error, axis_offset, rotation_error
from dalembert.model.joints.subspaces import (
    angle_about,
    basis_around,
    finite_number,
    forces,
    moments,
    rotations,
    screw,
    unit_axis,
)
from dalembert.scalar import Scalar, absolute, cos, floor, select, sin
from dalembert.spatial import Force, Motion, Placement, Transform, Vec3
from dalembert.spatial.rotations import principal_direction, rotation_about_axis


@final
@dataclass(frozen=True, slots=True, init=False)
class Revolute(Joint):
    """Rotation by q [rad] about an axis through the origin: S = (a, 0) (Featherstone 2008 Table 4.1).

    Without limits it is a continuous joint; the angle is never wrapped. Along a coordinate axis, of either
    sign, the transform is an axial screw.

    >>> joint = da.Revolute((0, 0, 1))
    >>> print(np.round(joint.transform([np.pi / 2]).R.to_list(), 6).tolist()[0])
    [0.0, -1.0, 0.0]
    >>> joint.subspace([0.0])[0].to_list()
    [0.0, 0.0, 1.0, 0.0, 0.0, 0.0]
    """

    axis: Vec3

    kind = "revolute"
    constant_constraint_forces = True
    parameter_names = ("axis",)
    nq = 1
    nv = 1
    coordinates = ("angle",)

    def __init__(self, axis: Sequence[Scalar] | Vec3 = (0.0, 0.0, 1.0)) -> None:
        object.__setattr__(self, "axis", unit_axis(axis, "Revolute"))

    def structure(self) -> tuple[Any, ...]:
        return (self.kind, principal_direction(self.axis))

    def transform(self, q: Sequence[Scalar], time: Scalar | None = None) -> Placement:
        return screw(self.axis, q[0], None)

    def subspace(self, q: Sequence[Scalar], time: Scalar | None = None) -> tuple[Motion, ...]:
        return rotations(self.axis)

    def constraint_subspace(self, q: Sequence[Scalar], time: Scalar | None = None) -> tuple[Force, ...]:
        t1, t2, a = basis_around(self.axis)
        return moments(t1, t2) + forces(t1, t2, a)

    def active_subspace(self, q: Sequence[Scalar], time: Scalar | None = None) -> tuple[Force, ...]:
        return moments(self.axis)

    def position_of(self, X: Transform, time: Scalar | None = None) -> list[Scalar]:
        return [angle_about(self.axis, X.R)]

    def closure_error(self, X: Transform, time: Scalar | None = None) -> list[Scalar]:
        return [*axis_error(self.axis, X), axis_offset(self.axis, X)]


# Prismatic (sliding) joint.


@final
@dataclass(frozen=True, slots=True, init=False)
class Prismatic(Joint):
    """Translation by q [m] along an axis: S = (0, a) (Featherstone 2008 Table 4.1).

    >>> da.Prismatic((1, 0, 0)).transform([0.5]).p
    Vec3(x=0.5, y=0.0, z=0.0)
    """

    axis: Vec3

    kind = "prismatic"
    constant_constraint_forces = True
    parameter_names = ("axis",)
    nq = 1
    nv = 1
    coordinates = ("length",)

    def __init__(self, axis: Sequence[Scalar] | Vec3 = (0.0, 0.0, 1.0)) -> None:
        object.__setattr__(self, "axis", unit_axis(axis, "Prismatic"))

    def structure(self) -> tuple[Any, ...]:
        return (self.kind, principal_direction(self.axis))

    def transform(self, q: Sequence[Scalar], time: Scalar | None = None) -> Placement:
        return screw(self.axis, None, q[0])

    def subspace(self, q: Sequence[Scalar], time: Scalar | None = None) -> tuple[Motion, ...]:
        return (Motion(Vec3.zero(), self.axis),)

    def constraint_subspace(self, q: Sequence[Scalar], time: Scalar | None = None) -> tuple[Force, ...]:
        t1, t2, a = basis_around(self.axis)
        return moments(t1, t2, a) + forces(t1, t2)

    def active_subspace(self, q: Sequence[Scalar], time: Scalar | None = None) -> tuple[Force, ...]:
        return forces(self.axis)

    def position_of(self, X: Transform, time: Scalar | None = None) -> list[Scalar]:
        return [self.axis.dot(X.p)]

    def closure_error(self, X: Transform, time: Scalar | None = None) -> list[Scalar]:
        turn = rotation_error(X)
        return [turn.dot(direction) for direction in basis_around(self.axis)] + axis_error(self.axis, X)[2:]


# Helical (screw) joint.

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


# Rack-and-pinion joint.


@final
@dataclass(frozen=True, slots=True, init=False)
class RackPinion(Joint):
    """A pinion, centred on z of the successor, rolls along a rack parallel to x of the predecessor.

    q [rad] is the pinion's angle, r its radius [m] (signed: a rack on the other side): the pinion stands at
    (r q, 0, 0), S = (0, 0, 1, r c, -r s, 0), c_J = (0, 0, 0, -r s, -r c, 0) v² (Featherstone 2008 Example
    4.6).

    >>> joint = da.RackPinion(radius=0.1)
    >>> print(round(joint.transform([np.pi]).p.x, 6))
    0.314159
    """

    radius: Scalar

    kind = "rack_pinion"
    parameter_names = ("radius",)
    nq = 1
    nv = 1
    coordinates = ("angle",)

    def __init__(self, radius: Scalar) -> None:
        object.__setattr__(self, "radius", finite_number(radius, "radius", "RackPinion"))

    def transform(self, q: Sequence[Scalar], time: Scalar | None = None) -> Placement:
        return Transform(rotation_about_axis(2, q[0]), Vec3(self.radius * q[0], 0.0, 0.0))

    def subspace(self, q: Sequence[Scalar], time: Scalar | None = None) -> tuple[Motion, ...]:
        c, s = cos(q[0]), sin(q[0])
        return (Motion(Vec3.unit(2), Vec3(self.radius * c, -(self.radius * s), 0.0)),)

    def bias(self, q: Sequence[Scalar], v: Sequence[Scalar], time: Scalar | None = None) -> Motion:
        c, s = cos(q[0]), sin(q[0])
        push = self.radius * v[0] * v[0]
        return Motion(Vec3.zero(), Vec3(-(push * s), -(push * c), 0.0))

    def constraint_subspace(self, q: Sequence[Scalar], time: Scalar | None = None) -> tuple[Force, ...]:
        c, s = cos(q[0]), sin(q[0])
        rolling = Force(Vec3(0.0, 0.0, -self.radius), Vec3(c, -s, 0.0))
        return moments(Vec3.unit(0), Vec3.unit(1)) + (rolling,) + forces(Vec3(s, c, 0.0), Vec3.unit(2))

    def active_subspace(self, q: Sequence[Scalar], time: Scalar | None = None) -> tuple[Force, ...]:
        return moments(Vec3.unit(2))

    def position_of(self, X: Transform, time: Scalar | None = None) -> list[Scalar]:
        return [turned_angle(angle_about(Vec3.unit(2), X.R), X.p.x, self.radius)]
