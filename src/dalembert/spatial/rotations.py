"""Rotation matrices, quaternions, axis and angle, Euler angles.

Two directions of the same matrix are in use, and every function says which it gives. `R` maps child to parent
coordinates (its columns are the child's axes), as in `Transform`. Featherstone's E = R^T maps parent to child
coordinates; his rx, ry, rz (2008, Table 2.2) are such *passive* matrices: "how frame A must move to become
B".

Quaternions are [w, x, y, z], scalar first, Hamilton's product, and describe R: the child's turn in the
parent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dalembert.errors import StateError, require_choice
from dalembert.scalar import Scalar, absolute, atan2, cos, select, sin, sqrt
from dalembert.spatial.symmetric import rotation_product
from dalembert.spatial.vectors import Mat3, Vec3

EULER_ORDERS: Final = ("xyz", "xzy", "yxz", "yzx", "zxy", "zyx", "xyx", "xzx", "yxy", "yzy", "zxz", "zyz")
"""The twelve orders of intrinsic Euler angles: each turn is about an axis of the frame already turned."""

GIMBAL_LOCK_SINE_SQUARED: Final = 1e-14
"""Squared sine of the angle between first and third Euler axis below which their turns are one."""


def rx(angle: Scalar) -> Mat3:
    """Return E of a frame turned by angle [rad] about x: the book's *passive* matrix, parent to child."""
    return axial_rotation(0, cos(angle), -sin(angle))


def ry(angle: Scalar) -> Mat3:
    """Return E of a frame turned by angle [rad] about y: the book's *passive* matrix, parent to child."""
    return axial_rotation(1, cos(angle), -sin(angle))


def rz(angle: Scalar) -> Mat3:
    """Return E of a frame turned by angle [rad] about z: the book's *passive* matrix, parent to child."""
    return axial_rotation(2, cos(angle), -sin(angle))


def axial_rotation(axis: int, c: Scalar, s: Scalar) -> Mat3:
    """Return R (child to parent) of a turn about coordinate axis 0, 1 or 2 by its cosine and sine."""
    if axis == 0:
        return Mat3(1.0, 0.0, 0.0, 0.0, c, -s, 0.0, s, c)
    if axis == 1:
        return Mat3(c, 0.0, s, 0.0, 1.0, 0.0, -s, 0.0, c)
    return Mat3(c, -s, 0.0, s, c, 0.0, 0.0, 0.0, 1.0)


def rotation_about_axis(axis: int, angle: Scalar) -> Mat3:
    """Return R (child to parent) of a child turned by angle [rad] about coordinate axis 0, 1 or 2."""
    return axial_rotation(axis, cos(angle), sin(angle))


def principal_direction(axis: Vec3) -> tuple[int, float] | None:
    """Return (0, 1 or 2; +1.0 or -1.0) if the axis is a coordinate axis or its opposite, else None.

    Only plain floats tell: what is traced may take any value.
    """
    components = axis.to_list()
    if not all(type(component) is float for component in components):
        return None
    for index, component in enumerate(components):
        if abs(component) == 1.0 and all(other == 0.0 for k, other in enumerate(components) if k != index):
            return index, component
    return None


def rotation_about(axis: Vec3, angle: Scalar) -> Mat3:
    """Return R (child to parent) of a turn [rad] about a unit axis: c 1 + s n x + (1 - c) n n^T."""
    c, s = cos(angle), sin(angle)
    principal = principal_direction(axis)
    if principal is not None:
        index, sign = principal
        return axial_rotation(index, c, sign * s)
    n, m = axis, axis * (1.0 - c)
    xy, xz, yz = n.x * m.y, n.x * m.z, n.y * m.z
    sx, sy, sz = n.x * s, n.y * s, n.z * s
    return Mat3(
        c + n.x * m.x, xy - sz, xz + sy,
        xy + sz, c + n.y * m.y, yz - sx,
        xz - sy, yz + sx, c + n.z * m.z,
    )  # fmt: skip


def axis_angle_of_rotation(R: Mat3) -> tuple[Vec3, Scalar]:
    """Return unit axis and angle in [0, pi] of R (child to parent); x if the angle is zero."""
    w, x, y, z = quaternion_of_rotation(R)
    sine = sqrt(x * x + y * y + z * z)
    still = sine <= 0.0
    divisor = select(still, 1.0, sine)
    axis = Vec3(select(still, 1.0, x / divisor), y / divisor, z / divisor)
    return axis, 2.0 * atan2(sine, w)


def rotation_of_quaternion(q: Sequence[Scalar]) -> Mat3:
    """Return R (child to parent) of a unit quaternion [w, x, y, z]; 9 m + 15 a (E = R^T: Eq. 4.12)."""
    w, x, y, z = q
    x2, y2, z2 = x + x, y + y, z + z
    xx, yy, zz = x * x2, y * y2, z * z2
    xy, xz, yz = x * y2, x * z2, y * z2
    wx, wy, wz = w * x2, w * y2, w * z2
    return Mat3(
        1.0 - (yy + zz), xy - wz, xz + wy,
        xy + wz, 1.0 - (xx + zz), yz - wx,
        xz - wy, yz + wx, 1.0 - (xx + yy),
    )  # fmt: skip


def quaternion_of_rotation(R: Mat3) -> list[Scalar]:
    """Return the unit quaternion [w, x, y, z], w >= 0, of R (child to parent).

    Of the four ways to divide, by w, x, y or z, the one with the greatest divisor is taken (Shepperd 1978).
    """
    tw = 1.0 + R.xx + R.yy + R.zz
    tx = 1.0 + R.xx - R.yy - R.zz
    ty = 1.0 - R.xx + R.yy - R.zz
    tz = 1.0 - R.xx - R.yy + R.zz
    wx, wy, wz = R.zy - R.yz, R.xz - R.zx, R.yx - R.xy
    xy, xz, yz = R.xy + R.yx, R.xz + R.zx, R.yz + R.zy
    ways = ((tw, (tw, wx, wy, wz)), (tx, (wx, tx, xy, xz)), (ty, (wy, xy, ty, yz)), (tz, (wz, xz, yz, tz)))
    t, q = ways[0]
    for other, way in ways[1:]:
        greater = t < other
        t = select(greater, other, t)
        q = tuple(select(greater, a, b) for a, b in zip(way, q, strict=True))
    scale = 0.5 / sqrt(t)
    scale = select(q[0] < 0.0, -scale, scale)
    return [item * scale for item in q]


def quaternion_product(a: Sequence[Scalar], b: Sequence[Scalar]) -> list[Scalar]:
    """Return Hamilton's product a b, with R(a b) = R(a) R(b); 16 m + 12 a."""
    aw, ax, ay, az = a
    bw, bx, by, bz = b
    return [
        aw * bw - ax * bx - ay * by - az * bz,
        aw * bx + ax * bw + ay * bz - az * by,
        aw * by - ax * bz + ay * bw + az * bx,
        aw * bz + ax * by - ay * bx + az * bw,
    ]


def quaternion_conjugate(q: Sequence[Scalar]) -> list[Scalar]:
    """Return [w, -x, -y, -z], the inverse of a unit quaternion."""
    return [q[0], -q[1], -q[2], -q[3]]


def quaternion_normalized(q: Sequence[Scalar]) -> list[Scalar]:
    """Return q / |q|. Four plain zeros raise; in a batch they give NaN, in their own row only."""
    square = q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]
    if type(square) is float and square == 0.0:
        raise StateError("a quaternion of four zeros is no rotation; no rotation is (1, 0, 0, 0)")
    scale = 1.0 / sqrt(square)
    return [item * scale for item in q]


def quaternion_rate(q: Sequence[Scalar], omega: Vec3) -> list[Scalar]:
    """Return q' = q (0, omega) / 2, omega [rad/s] in *child* coordinates; 15 m + 8 a (Eq. 4.13)."""
    return quaternion_product(q, [0.0, *(omega * 0.5)])


def rotation_of_euler_angles(order: str, angles: Sequence[Scalar]) -> Mat3:
    """Return R = R_i R_j R_k (child to parent) of three turns [rad] about the frame's own axes."""
    first, second, third = (rotation_about_axis(axis, angle) for axis, angle in zip(_axes(order), angles))
    return rotation_product(first, rotation_product(second, third))


def euler_axes(order: str, angles: Sequence[Scalar]) -> tuple[Vec3, Vec3, Vec3]:
    """Return the three axes of turning in *child* coordinates: omega = sum of axis times angle rate.

    The first stands off the third by the middle angle; where they fall together (gimbal lock) the axes do not
    span all angular velocities.
    """
    i, j, k = _axes(order)
    third = rotation_about_axis(k, angles[2])
    second = rotation_about_axis(j, angles[1])
    first_axis = third.transposed_times(second.transposed_times(Vec3.unit(i)))
    return first_axis, third.transposed_times(Vec3.unit(j)), Vec3.unit(k)


def euler_singularity(order: str, angles: Sequence[Scalar]) -> Scalar:
    """Return |det| of the axes: |cos| of the middle angle, or |sin| for orders like zxz."""
    i, _, k = _axes(order)
    return absolute(sin(angles[1]) if i == k else cos(angles[1]))


def euler_angles_of_rotation(order: str, R: Mat3) -> list[Scalar]:
    """Return the angles [rad] of R; the middle one in [-pi/2, pi/2], for orders like zxz in [0, pi].

    In gimbal lock the third angle is zero by choice.
    """
    i, j, last = _axes(order)
    k = 3 - i - j
    sign = 1.0 if (j - i) % 3 == 1 else -1.0
    M = R.to_list()
    if last == i:
        squared = M[i][j] * M[i][j] + M[i][k] * M[i][k]
        middle = atan2(sqrt(squared), M[i][i])
        a, c = atan2(M[j][i], -sign * M[k][i]), atan2(M[i][j], sign * M[i][k])
    else:
        squared = M[i][i] * M[i][i] + M[i][j] * M[i][j]
        middle = atan2(sign * M[i][k], sqrt(squared))
        a, c = atan2(-sign * M[j][k], M[k][k]), atan2(-sign * M[i][j], M[i][i])
    locked = absolute(squared) < GIMBAL_LOCK_SINE_SQUARED
    return [select(locked, atan2(sign * M[k][j], M[j][j]), a), middle, select(locked, 0.0, c)]


def _axes(order: str) -> tuple[int, int, int]:
    require_choice("order of Euler angles", order, EULER_ORDERS)
    i, j, k = ("xyz".index(letter) for letter in order)
    return i, j, k
