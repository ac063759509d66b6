"""Euler angles in any of the twelve orders: R = R_i(q1) R_j(q2) R_k(q3), about axes that turn along."""

from __future__ import annotations

from collections.abc import Sequence

from dalembert.errors import ModelError
from dalembert.model.joints.axes import axial_rotation
from dalembert.scalar import Scalar, absolute, atan2, cos, sin, sqrt
from dalembert.spatial import Mat3, Vec3

__all__ = ["angles_of", "order_indices", "rotation_axes", "rotation_of", "singularity", "velocity_product"]


def order_indices(order: str) -> tuple[int, int, int]:
    """The axes 0, 1, 2 that an order such as "zyx" names; neighbouring letters must differ."""
    letters = order.lower() if isinstance(order, str) else ""
    if len(letters) != 3 or set(letters) - set("xyz") or letters[1] in (letters[0], letters[2]):
        raise ModelError(
            f"Euler angles cannot be taken in the order {order!r}; give three letters x, y, z of which "
            'neighbours differ, such as "zyx" or "zxz"'
        )
    first, second, third = ("xyz".index(letter) for letter in letters)
    return first, second, third


def rotation_of(order: str, q: Sequence[Scalar]) -> Mat3:
    """R = R_i(q1) R_j(q2) R_k(q3); for "zyx" E = R^T is Featherstone 2008 Eq. 4.7."""
    i, j, k = order_indices(order)
    first, second, third = (axial_rotation(n, cos(a), sin(a)) for n, a in zip((i, j, k), q))
    R: Mat3 = first @ (second @ third)
    return R


def rotation_axes(order: str, q: Sequence[Scalar]) -> tuple[Vec3, Vec3, Vec3]:
    """The three axes of rotation in successor coordinates: the angular part of S (Eq. 4.8 for "zyx")."""
    i, j, k = order_indices(order)
    second = axial_rotation(j, cos(q[1]), sin(q[1]))
    third = axial_rotation(k, cos(q[2]), sin(q[2]))
    w1 = third.transposed_times(second.transposed_times(Vec3.unit(i)))
    w2 = third.transposed_times(Vec3.unit(j))
    return w1, w2, Vec3.unit(k)


def velocity_product(axes: Sequence[Vec3], v: Sequence[Scalar]) -> Vec3:
    """The angular part of c_J = S° v for serial rotations about the axes w_i (Eq. 4.9 for "zyx").

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


def singularity(order: str, q: Sequence[Scalar]) -> Scalar:
    """|det| of the three axes: |cos q2|, or |sin q2| where the first and the third axis are the same."""
    i, _, k = order_indices(order)
    return absolute(sin(q[1]) if i == k else cos(q[1]))


def angles_of(order: str, R: Mat3) -> list[Scalar]:
    """The angles of R, with q2 in [-pi/2, pi/2], or in [0, pi] where the first and the third axis are the
    same.

    With d = R e_k (the last axis in the predecessor) and r = R^T e_i (the first axis in the successor), and
    sigma = +1 if i, j and the remaining axis are in cyclic order, else -1:
        i != k:  d_i = sigma s2,  d_j = -sigma c2 s1,  d_k = c2 c1;   r_i = c2 c3,  r_j = -sigma c2 s3
        i == k:  d_i = c2,  d_j = s2 s1,  d_m = -sigma s2 c1;         r_j = s2 s3,  r_m = sigma s2 c3
    """
    i, j, k = order_indices(order)
    m = 3 - i - j
    sigma = 1.0 if (j - i) % 3 == 1 else -1.0
    d, r = R.column(k), R.row(i)
    if i == k:
        q2 = atan2(sqrt(d[j] * d[j] + d[m] * d[m]), d[i])
        return [atan2(d[j], -sigma * d[m]), q2, atan2(r[j], sigma * r[m])]
    q2 = atan2(sigma * d[i], sqrt(d[j] * d[j] + d[k] * d[k]))
    return [atan2(-sigma * d[j], d[k]), q2, atan2(-sigma * r[j], r[i])]
