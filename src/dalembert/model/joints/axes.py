"""Joint axes: validation, screws about an axis, a basis around it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Real

from dalembert.errors import ModelError, items_of
from dalembert.scalar import Scalar, atan2, cos, select, sin
from dalembert.spatial import AxialScrew, Mat3, Placement, Transform, Vec3
from dalembert.spatial.rotations import principal_direction, rotation_about

__all__ = [
    "angle_about",
    "basis_around",
    "finite_number",
    "screw",
    "unit_axis",
]

NORM_TOLERANCE = 4.0e-16
"""An axis whose squared length is this close to 1 is kept as it is: saving and loading changes no bit."""


def unit_axis(axis: Sequence[Scalar] | Vec3, owner: str) -> Vec3:
    """Return the axis normalised and checked if it holds plain numbers; a traced axis is not normalised."""
    components = items_of(axis)
    if len(components) != 3 or any(isinstance(component, str | None) for component in components):
        raise ModelError(
            f"{owner}: the axis {axis!r} is not a direction; give three numbers, such as (0, 0, 1)"
        )
    if not all(isinstance(component, Real) for component in components):
        return Vec3(*components)
    x, y, z = (float(component) for component in components)
    if not all(math.isfinite(component) for component in (x, y, z)):
        raise ModelError(f"{owner}: the axis ({x}, {y}, {z}) is not finite; give a direction")
    # Scaled first, so that neither a very long nor a very short axis leaves the range of floats.
    largest = max(abs(x), abs(y), abs(z))
    if largest == 0.0:
        raise ModelError(f"{owner}: the axis is zero; give a direction, such as (0, 0, 1)")
    if abs(x * x + y * y + z * z - 1.0) <= NORM_TOLERANCE:
        return Vec3(x + 0.0, y + 0.0, z + 0.0)
    x, y, z = x / largest, y / largest, z / largest
    length = math.sqrt(x * x + y * y + z * z)
    return Vec3(x / length + 0.0, y / length + 0.0, z / length + 0.0)


def finite_number(value: Scalar, name: str, owner: str) -> Scalar:
    """Return a parameter after checking that it is finite if it is a plain number."""
    if not isinstance(value, Real):
        return value
    try:
        number = float(value)
    except OverflowError:  # an int beyond all floats
        number = math.inf
    if not math.isfinite(number):
        raise ModelError(f"{owner}: {name} = {number} must be a finite number")
    return number


def screw(axis: Vec3, angle: Scalar | None, advance: Scalar | None) -> Placement:
    """Return the rotation about and translation along one axis through the origin; None leaves one of them
    out.
    """
    principal = principal_direction(axis)
    if principal is not None:
        index, sign = principal
        c, s = (1.0, 0.0) if angle is None else (cos(angle), sign * sin(angle))
        d = 0.0 if advance is None else sign * advance
        return AxialScrew(index, c, s, d)
    R = Mat3.identity() if angle is None else rotation_about(axis, angle)
    return Transform(R, Vec3(0.0, 0.0, 0.0) if advance is None else axis * advance)


def basis_around(axis: Vec3) -> tuple[Vec3, Vec3, Vec3]:
    """Return (t1, t2, a), a right-handed orthonormal basis whose last vector is the unit axis a.

    The coordinate axes give coordinate directions (z: x, y, z). Any other axis, also a traced one, follows
    Duff et al. 2017, which is free of cases but for one sign.
    """
    principal = principal_direction(axis)
    if principal is not None:
        index, sign = principal
        units = (Vec3(1.0, 0.0, 0.0), Vec3(0.0, 1.0, 0.0), Vec3(0.0, 0.0, 1.0))
        first, second = units[(index + 1) % 3], units[(index + 2) % 3]
        return (first, second, axis) if sign > 0.0 else (second, first, axis)
    x, y, z = axis
    sign = select(z < 0.0, -1.0, 1.0)
    k = -1.0 / (sign + z)
    xyk = x * y * k
    t1 = Vec3(1.0 + sign * x * x * k, sign * xyk, -(sign * x))
    t2 = Vec3(xyk, sign + y * y * k, -y)
    return t1, t2, axis


def angle_about(axis: Vec3, R: Mat3) -> Scalar:
    """Return the angle in (-pi, pi] of the rotation about the axis that is nearest to R."""
    t1, t2, _ = basis_around(axis)
    image1, image2 = R @ t1, R @ t2
    return atan2(t2.dot(image1) - t1.dot(image2), t1.dot(image1) + t2.dot(image2))
