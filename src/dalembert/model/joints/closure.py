"""delta of Table 8.1: how far a loop joint's frames are from where the joint allows them to be.

X places the successor frame in the predecessor frame. In the book's matrix ^sX_p = [E 0; L E], E = R^T and L
= -E r x, with r = X.p the successor origin in predecessor coordinates. The table is written for joints along
z; here every formula is given for a unit axis a with a basis (t1, t2, a) around it, of which z with (x, y,
z) is one case:

    u = E a        column 3 of E        (E23, -E13) = (u x a) along t1, t2
    w = L a        column 3 of L        (X53, -X43) = (w x a) along t1, t2
"""

from __future__ import annotations

from dalembert.model.joints.axes import basis_around
from dalembert.scalar import Scalar
from dalembert.spatial import Motion, Transform, Vec3

__all__ = ["axis_error", "axis_offset", "displacement", "origin_offset", "rotation_error"]


def rotation_error(X: Transform) -> Vec3:
    """Return ½ (E23 - E32, E31 - E13, E12 - E21), the sine of the angle times the axis of R."""
    return X.R.axial()


def displacement(X: Transform) -> Motion:
    """Return d of a zero-DoF joint, the small motion from the predecessor to the successor frame (Table
    8.1).
    """
    # ½ (X53 - X62, ...) is the skew part of L = -E r x with its sign turned.
    return Motion(rotation_error(X), (X.R.transpose() @ X.p.skew()).axial())


def axis_error(axis: Vec3, X: Transform) -> list[Scalar]:
    """Return (E23, -E13, X53, -X43): tilt of the axis and distance from it, as for a cylindrical joint."""
    t1, t2, a = basis_around(axis)
    u, w = _axis_columns(a, X)
    return [u.dot(t2), -u.dot(t1), w.dot(t2), -w.dot(t1)]


def axis_offset(axis: Vec3, X: Transform) -> Scalar:
    """Return X41 X21 + X42 X22, the displacement along the axis to first order: the last entry of a revolute
    joint's delta.
    """
    t1, t2, a = basis_around(axis)
    u, w = _axis_columns(a, X)
    # L E^T = -(E r) x, so that the sum over all three columns is a . E r; the table leaves out the third
    # product.
    return a.dot(origin_offset(X)) - w.dot(t1) * u.dot(t2)


def origin_offset(X: Transform) -> Vec3:
    """Return E r = (sum X5k X3k, sum X6k X1k, sum X4k X2k), the delta of a spherical joint."""
    return X.R.transposed_times(X.p)


def _axis_columns(a: Vec3, X: Transform) -> tuple[Vec3, Vec3]:
    """Return u = E a and w = L a = -E (r x a)."""
    E = X.R.transpose()
    return E @ a, E @ a.cross(X.p)
