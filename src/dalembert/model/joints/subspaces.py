"""Subspaces of a joint: combinations of S, and the force subspaces T_a and T dual to it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Real

from dalembert.errors import ArgumentError, ModelError, items_of
from dalembert.scalar import Scalar, absolute, atan2, cos, maximum, select, sin, sqrt
from dalembert.spatial import AxialScrew, Force, Mat3, Motion, Placement, Transform, Vec3
from dalembert.spatial.rotations import principal_direction, rotation_about

MIN_SQUARED_LENGTH = 1.0e-30
"""Squared length below which a column counts as zero."""


AXES = (Vec3.unit(0), Vec3.unit(1), Vec3.unit(2))


def rotations(*axes: Vec3) -> tuple[Motion, ...]:
    """Return unit rotations about axes through the origin."""
    return tuple(Motion(axis, Vec3.zero()) for axis in axes)


def translations(*axes: Vec3) -> tuple[Motion, ...]:
    """Return unit translations along axes."""
    return tuple(Motion(Vec3.zero(), axis) for axis in axes)


def moments(*axes: Vec3) -> tuple[Force, ...]:
    """Return pure moments about the axes."""
    return tuple(Force(axis, Vec3.zero()) for axis in axes)


def forces(*axes: Vec3) -> tuple[Force, ...]:
    """Return pure forces through the origin along the axes."""
    return tuple(Force(Vec3.zero(), axis) for axis in axes)


def combination(S: Sequence[Motion], v: Sequence[Scalar]) -> Motion:
    """Return S v, the sum of the columns S_i times v_i."""
    if len(S) == 0:
        return Motion.zero()
    total: Motion = S[0] * v[0]
    for column, speed in zip(S[1:], v[1:]):
        total = total + column * speed
    return total


def velocity_product(axes: Sequence[Vec3], v: Sequence[Scalar]) -> Vec3:
    """Return the angular part of c_J = S° v for serial rotations about the axes w_i (Eq. 4.9 for "zyx").

    An axis is fixed in the frame before its own rotation, which the successor leaves with the later rates:
    w_i° = w_i x (sum over j > i of w_j v_j).
    """
    total = Vec3.zero()
    for i in range(len(axes) - 1):
        later = axes[i + 1] * v[i + 1]
        for axis, rate in zip(axes[i + 2 :], v[i + 2 :]):
            later = later + axis * rate
        total = total + axes[i].cross(later) * v[i]
    return total


def reciprocal_basis(a: Vec3, b: Vec3, c: Vec3) -> tuple[Vec3, Vec3, Vec3]:
    """Return the rows of the inverse of the matrix with columns a, b, c: b x c / det and cyclic."""
    bc = b.cross(c)
    scale = 1.0 / a.dot(bc)
    return bc * scale, c.cross(a) * scale, a.cross(b) * scale


def dual_bases(S: Sequence[Motion]) -> tuple[tuple[Force, ...], tuple[Force, ...]]:
    """Return (T_a, T) with T_a^T S = 1 and T^T S = 0, for any S of full rank.

    Elimination finds A with A S = [1; 0]: the first nv rows of A are the columns of T_a, the rest those of T.
    """
    n = len(S)
    entries = [column.to_list() for column in S]
    rows = _eliminate([[column[i] for column in entries] + _unit_row(i, 6) for i in range(6)], n)
    columns = tuple(Force(Vec3(*row[n : n + 3]), Vec3(*row[n + 3 :])) for row in rows)
    return columns[:n], columns[n:]


def active_subspace_along(S: Sequence[Motion], directions: Sequence[Force]) -> tuple[Force, ...]:
    """Return T_a = F (S^T F)^-1, active forces along directions F, scaled so that T_a^T S = 1 (Example 3.2).

    The choice changes the bearing forces a joint must withstand, never the motion.
    """
    n = len(S)
    if len(directions) != n:
        raise ArgumentError(
            f"{len(directions)} force directions given for {n} motion freedoms; give one for each column of S"
        )
    rows = [[column.dot(force) for column in S] + _unit_row(i, n) for i, force in enumerate(directions)]
    result = []
    for row in _eliminate(rows, n):
        column = directions[0] * row[n]
        for force, weight in zip(directions[1:], row[n + 1 :]):
            column = column + force * weight
        result.append(column)
    return tuple(result)


def relative_volume(S: Sequence[Motion]) -> Scalar:
    """Return sqrt(det(S^T S)) over the product of the columns' lengths: 1 if the columns are orthogonal, 0 if
    dependent.

    A measure of rank only: it adds squares of metres and radians.
    """
    volume: Scalar = 1.0
    columns = [column.to_list() for column in S]
    remaining = [list(column) for column in columns]
    for k, column in enumerate(columns):
        length = sum(entry * entry for entry in column)
        rest = sum(entry * entry for entry in remaining[k])
        volume = volume * sqrt(rest / maximum(length, MIN_SQUARED_LENGTH))
        for later in remaining[k + 1 :]:
            along = sum(a * b for a, b in zip(later, remaining[k])) / maximum(rest, MIN_SQUARED_LENGTH)
            later[:] = [a - along * b for a, b in zip(later, remaining[k])]
    return volume


def _eliminate(rows: list[list[Scalar]], n: int) -> list[list[Scalar]]:
    """Reduce the first n columns of the rows to [1; 0] by Gauss-Jordan elimination with row exchange.

    Exchanges go through `select`, so that the entries may be traced; those of literals happen while tracing.
    """
    for k in range(n):
        for i in range(k + 1, len(rows)):
            swap = absolute(rows[i][k]) > absolute(rows[k][k])
            rows[k], rows[i] = (
                [select(swap, below, above) for above, below in zip(rows[k], rows[i])],
                [select(swap, above, below) for above, below in zip(rows[k], rows[i])],
            )
        pivot_row = [entry / rows[k][k] if j != k else 1.0 for j, entry in enumerate(rows[k])]
        rows = [
            pivot_row if i == k else [entry - row[k] * over for entry, over in zip(row, pivot_row)]
            for i, row in enumerate(rows)
        ]
    return rows


def _unit_row(i: int, n: int) -> list[Scalar]:
    """Return row i of the identity."""
    return [1.0 if j == i else 0.0 for j in range(n)]


# Joint axes: validation, screws about an axis, a basis around it.

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
    """Return a rotation about and translation along an axis through the origin; None omits either."""
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
        first, second = AXES[(index + 1) % 3], AXES[(index + 2) % 3]
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
