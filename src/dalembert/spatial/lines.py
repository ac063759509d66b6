"""Screws as lines: pitch, axis and magnitude of spatial vectors (Featherstone 2008 §2.5).

A pure rotation and a linear force are *line vectors*: a magnitude along a line in space. A pure translation
and a couple are *free vectors*: a magnitude and a direction. Every other spatial vector is a line vector plus
a parallel free vector (a twist or a wrench), and the ratio of the two is its pitch [m]. With s the part that
does not depend on the origin (omega of a motion, f of a force) and s_O the other, the pitch is h = s . s_O /
s . s.
"""

from __future__ import annotations

from typing import Literal, TypeVar

from dalembert.errors import ArgumentError
from dalembert.scalar import Scalar
from dalembert.spatial.motion_force import Force, Motion
from dalembert.spatial.vectors import Vec3

__all__ = ["classify", "decompose", "magnitude", "pitch", "point_on_axis"]

Vector = TypeVar("Vector", Motion, Force)

Kind = Literal["zero", "line", "free", "screw"]


def pitch(vector: Motion | Force) -> Scalar:
    """Return the pitch h = s . s_O / s . s [m]; free vectors have infinite pitch and are not allowed."""
    s, s_O = _parts(vector)
    return s.dot(s_O) / s.dot(s)


def point_on_axis(vector: Motion | Force) -> Vec3:
    """Return the point of the screw axis nearest the origin, s x s_O / s . s [m];
    the axis is parallel to s."""
    s, s_O = _parts(vector)
    nearest: Vec3 = s.cross(s_O) / s.dot(s)
    return nearest


def decompose(vector: Vector) -> tuple[Vector, Vector]:
    """Return the line vector and the parallel free vector that sum to the vector (Eq. 2.10);
    not for free vectors."""
    s, s_O = _parts(vector)
    along = s * pitch(vector)
    if type(vector) is Motion:
        return Motion(s, s_O - along), Motion(Vec3.zero(), along)
    return Force(s_O - along, s), Force(along, Vec3.zero())


def classify(vector: Motion | Force, *, tolerance: float = 1e-12) -> Kind:
    """Return the kind of a vector of numbers: "zero", "line" (s . s_O = 0), "free" (s = 0) or "screw"."""
    s, s_O = _parts(vector)
    line, free = s.dot(s) ** 0.5, s_O.dot(s_O) ** 0.5
    if line == 0.0 and free == 0.0:
        return "zero"
    if line <= tolerance * free:
        return "free"
    return "line" if abs(s.dot(s_O)) <= tolerance * line * free else "screw"


def magnitude(vector: Motion | Force) -> float:
    """Return the magnitude of a rotation [rad/s], translation [m/s],
    linear force [N] or couple [N m], of numbers.

    Only line and free vectors have one, and only those of one kind can be compared.
    """
    s, s_O = _parts(vector)
    kind = classify(vector)
    if kind == "screw":
        raise ArgumentError(
            f"a {type(vector).__name__} of pitch {pitch(vector)} m is neither a line nor a free vector "
            "and has no magnitude; decompose it first"
        )
    measured = s_O if kind == "free" else s
    return float(measured.dot(measured) ** 0.5)


def _parts(vector: Motion | Force) -> tuple[Vec3, Vec3]:
    """Return s and s_O: the part that is the same at every origin, and the part that is not."""
    if type(vector) is Motion:
        return vector.angular, vector.linear
    return vector.linear, vector.angular
