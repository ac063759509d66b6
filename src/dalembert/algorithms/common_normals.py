"""The common normal of two joint axes, the origin of Denavit-Hartenberg frames.

Frames are 4x4 arrays [[R, p], [0, 1]]: a child placed in its parent.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dalembert.scalar import Scalar
from dalembert.spatial import AxialScrew

__all__ = [
    "ROUNDING_TOLERANCE",
    "Array",
    "Normal",
    "basis",
    "common_normal",
    "frame_of",
    "inverse",
    "on_axis",
    "screw_z",
    "tidy",
]

Array = npt.NDArray[np.float64]

ROUNDING_TOLERANCE = 2e-15
"""Rounding error, relative to its neighbours, of a constant that is exactly 0 or ±1."""

MAX_NORMAL_DISTANCE_RATIO = 20.0
"""Largest distance from a joint to the foot of its normal, relative to its distance from the other axis."""


class Normal(NamedTuple):
    """scrz(t, d) scrx(alpha, a) xlt(0, b, 0) leads from a frame to `frame`, whose z is the child's axis."""

    frame: Array
    t: float
    d: float
    cos_alpha: float
    sin_alpha: float
    a: float
    b: float

    def factors(self) -> Iterator[AxialScrew]:
        """Return the screws that are not the identity."""
        c, s, d = tidy(math.cos(self.t)), tidy(math.sin(self.t)), tidy(self.d)
        if (c, s, d) != (1.0, 0.0, 0.0):
            yield AxialScrew(2, c, s, d)
        c, s, a = tidy(self.cos_alpha), tidy(self.sin_alpha), tidy(self.a)
        if (c, s, a) != (1.0, 0.0, 0.0):
            yield AxialScrew(0, c, s, a)
        if tidy(self.b) != 0.0:
            yield AxialScrew(1, 1.0, 0.0, tidy(self.b))


def common_normal(offset: Array, axis: Array) -> Normal:
    """Return the common normal of a frame's z axis and a child's axis,
    which passes through the origin of `offset`.

    With z' the child's axis through p, x along z x z' and y = z x x:  z' = cos(alpha) z - sin(alpha) y, and

        p = d z + a x - u z'          a = p.x,   u = (p.y) / sin(alpha),   d = p.z + u cos(alpha)     (1)
        p = d z + a x + b (z' x x)    a = p.x,   b = (p.y) / cos(alpha),   d = p.z - b sin(alpha)     (2)

    (2) where u would be far. Parallel axes have a normal at every height: d = 0. On one axis, nothing is
    left to do.
    """
    p, z_child = offset[:3, 3], offset[:3, :3] @ axis
    across = np.array([-z_child[1], z_child[0], 0.0])
    sine, cosine = math.hypot(across[0], across[1]), float(z_child[2])
    if sine <= ROUNDING_TOLERANCE:
        return _parallel_normal(p, math.copysign(1.0, cosine))
    if across[0] < 0.0:
        sine = -sine  # of the two directions of the normal, the one that turns x less
    x = across / sine
    y = np.array([-x[1], x[0], 0.0])
    t, a, along = math.atan2(x[1], x[0]), float(p @ x), float(p @ y)
    if abs(along) <= MAX_NORMAL_DISTANCE_RATIO * abs(sine) * math.hypot(p[0], p[1]):
        u, b = along / sine, 0.0
        d = float(p[2]) + u * cosine  # (1)
    else:
        u, b = 0.0, along / cosine
        d = float(p[2]) - b * sine  # (2)
    frame = frame_of(x, _cross(z_child, x), z_child, p + u * z_child)
    return Normal(frame, t, d, cosine, sine, a, b)


def _parallel_normal(p: Array, cosine: float) -> Normal:
    """Return the normal to an axis through p that points along +z or -z."""
    away = math.hypot(p[0], p[1])
    if away <= ROUNDING_TOLERANCE * (1.0 + abs(p[2])):
        x, a = np.array([1.0, 0.0, 0.0]), 0.0
    else:
        a = math.copysign(away, p[0])
        x = np.array([p[0], p[1], 0.0]) / a
    z = np.array([0.0, 0.0, cosine])
    return Normal(frame_of(x, _cross(z, x), z, a * x), math.atan2(x[1], x[0]), 0.0, cosine, 0.0, a, 0.0)


def on_axis(frame: Array, axis: Array) -> Array:
    """Return the frame with z exactly on the axis, so that rounding does not build up along a chain."""
    y = _cross(axis, frame[:3, 0])
    y = y / np.linalg.norm(y)
    return frame_of(_cross(y, axis), y, axis, float(frame[:3, 3] @ axis) * axis)


def basis(z: Array) -> tuple[Array, Array, Array]:
    """Return a right-handed orthonormal (x, y, z)."""
    x = _cross(np.eye(3)[int(np.argmin(np.abs(z)))], z)
    x = x / np.linalg.norm(x)
    return x, _cross(z, x), z


def frame_of(x: Array, y: Array, z: Array, p: Array) -> Array:
    """Return the frame with these axes at p."""
    frame = np.eye(4)
    frame[:3, 0], frame[:3, 1], frame[:3, 2], frame[:3, 3] = x, y, z, p
    return frame


def screw_z(t: float, d: float) -> Array:
    """Return the screw of a turn t about z and a shift d along it."""
    c, s = math.cos(t), math.sin(t)
    return frame_of(
        np.array([c, s, 0.0]), np.array([-s, c, 0.0]), np.array([0.0, 0.0, 1.0]), np.array([0.0, 0.0, d])
    )


def inverse(frame: Array) -> Array:
    """Return the placement of the parent in the child."""
    R, p = frame[:3, :3], frame[:3, 3]
    return frame_of(R[0], R[1], R[2], -R.T @ p)


def tidy(x: Scalar, scale: float = 1.0) -> Scalar:
    """Round a number to an exact 0 or ±1 if it differs only by rounding."""
    if not isinstance(x, (int, float)):
        return x
    if abs(x) <= ROUNDING_TOLERANCE * scale:
        return 0.0
    return math.copysign(1.0, x) if scale == 1.0 and abs(abs(x) - 1.0) <= ROUNDING_TOLERANCE else float(x)


def _cross(a: Array, b: Array) -> Array:
    """Return a x b; NumPy's function takes ten times as long for three numbers."""
    (ax, ay, az), (bx, by, bz) = a.tolist(), b.tolist()
    return np.array([ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx])
