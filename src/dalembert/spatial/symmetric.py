"""Symmetric 3x3 matrices over generic scalars: rotational inertias, and the blocks of articulated ones."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, final

import numpy as np

from dalembert.errors import ShapeError
from dalembert.scalar import Scalar, is_zero
from dalembert.spatial.value import SpatialTypeError, scalars_of
from dalembert.spatial.vectors import Mat3, Matrix3, Vec3

SYMMETRY_TOLERANCE = 1e-9
"""Difference of opposite elements, relative to the sum of all, up to which a matrix is symmetric."""


@final
class SymMat3(Matrix3):
    """A symmetric 3x3 matrix, six scalars: the diagonal, then xy, xz, yz."""

    __slots__ = ("xx", "xy", "xz", "yy", "yz", "zz")

    xx: Scalar
    yy: Scalar
    zz: Scalar
    xy: Scalar
    xz: Scalar
    yz: Scalar

    @staticmethod
    def of(matrix: Any) -> SymMat3:
        """Return the matrix of a `SymMat3`, three diagonal scalars or a symmetric 3x3 matrix."""
        if type(matrix) is SymMat3:
            return matrix
        if type(matrix) is Vec3 or (type(matrix) is not Mat3 and _is_flat(matrix)):
            xx, yy, zz = scalars_of(matrix, 3, "a diagonal")
            return SymMat3(xx, yy, zz, 0.0, 0.0, 0.0)
        m = Mat3.of(matrix)
        for name, a, b in (("xy", m.xy, m.yx), ("xz", m.xz, m.zx), ("yz", m.yz, m.zy)):
            if not _same(a, b, m):
                raise ShapeError(
                    f"matrix is not symmetric: {name} = {a!r} but {name[::-1]} = {b!r}; make them equal"
                )
        return SymMat3(m.xx, m.yy, m.zz, m.xy, m.xz, m.yz)

    @staticmethod
    def identity() -> SymMat3:
        """Return the unit matrix, of literals."""
        return SymMat3(1.0, 1.0, 1.0, 0.0, 0.0, 0.0)

    def to_mat3(self) -> Mat3:
        """Return all nine elements."""
        return Mat3(self.xx, self.xy, self.xz, self.xy, self.yy, self.yz, self.xz, self.yz, self.zz)

    def trace(self) -> Scalar:
        """Return the sum of the diagonal."""
        return self.xx + self.yy + self.zz

    def transpose(self) -> SymMat3:
        """Return the matrix itself."""
        return self

    def inverse(self) -> SymMat3:
        """Return the inverse, by cofactors; the matrix must not be singular."""
        axx = self.yy * self.zz - self.yz * self.yz
        ayy = self.xx * self.zz - self.xz * self.xz
        azz = self.xx * self.yy - self.xy * self.xy
        axy = self.xz * self.yz - self.xy * self.zz
        axz = self.xy * self.yz - self.xz * self.yy
        ayz = self.xy * self.xz - self.xx * self.yz
        scale = 1.0 / (self.xx * axx + self.xy * axy + self.xz * axz)
        return SymMat3(axx * scale, ayy * scale, azz * scale, axy * scale, axz * scale, ayz * scale)

    def __matmul__(self, other: Any) -> Any:
        """Return the product with a vector (9 m + 6 a) or a matrix."""
        if type(other) is Vec3:
            x, y, z = other.x, other.y, other.z
            return Vec3(
                self.xx * x + self.xy * y + self.xz * z,
                self.xy * x + self.yy * y + self.yz * z,
                self.xz * x + self.yz * y + self.zz * z,
            )
        return self.to_mat3() @ other


def _is_flat(values: Any) -> bool:
    """Return whether the items are scalars rather than rows; an array of length 3 counts as a row."""
    if isinstance(values, np.ndarray):
        return values.ndim == 1
    if not isinstance(values, Iterable):
        raise SpatialTypeError(
            f"a 3x3 matrix must be three rows of three scalars, got {type(values).__name__}"
        )
    return not any(
        isinstance(item, list | tuple | Vec3) or (isinstance(item, np.ndarray) and item.shape[:1] == (3,))
        for item in values
    )


def _same(a: Scalar, b: Scalar, m: Mat3) -> bool:
    """Return whether two elements are equal: numbers up to rounding, symbols exactly."""
    if a is b:
        return True
    if not (isinstance(a, float | np.ndarray) and isinstance(b, float | np.ndarray)):
        return bool(a == b)
    size = sum(np.abs(item) for item in m.leaves() if isinstance(item, float | np.ndarray))
    return bool(np.all(np.abs(a - b) <= SYMMETRY_TOLERANCE * size))


# Products of rotations, and rotation of 3x3 matrices E A E^T, at the costs of Featherstone 2008 §A.5.
#
# The tricks of §A.5 trade multiplications for additions on the assumption that every element is data. Where
# the rotation has structural zeros (an unrotated frame, a turn about one axis, a permutation of axes) the
# plain product folds to less, so the functions look at the structure, never at the values, and take the
# cheaper of two equal ways.

AxialTurn = tuple[Scalar, Scalar, Scalar, Scalar, Scalar, Scalar]
"""(c, s, s^2, cs, 2cs, 1 - 2s^2) of a turn about an axis; the last four cost 2 m + 3 a once (§A.4)."""

MIN_SPARSE_ROTATION_ZEROS = 4
"""Structural zeros from which a rotation is a turn about a coordinate axis or a permutation."""


def rotation_product(F: Mat3, G: Mat3) -> Mat3:
    """Return F G for rotations, its third column by the cross product of the others; 24 m + 15 a (§A.5)."""
    if _zeros(F) or _zeros(G):
        product: Mat3 = F @ G
        return product
    first, second = F @ G.column(0), F @ G.column(1)
    return Mat3.from_columns(first, second, first.cross(second))


def rotate_symmetric(E: Mat3, A: SymMat3) -> SymMat3:
    """Return E A E^T for a symmetric A: 28 m + 29 a by A = L + D + v x (§A.5)."""
    if _zeros(E) >= MIN_SPARSE_ROTATION_ZEROS:
        x, y, z = E.row(0), E.row(1), E.row(2)
        Ax, Ay, Az = A @ x, A @ y, A @ z
        return SymMat3(x.dot(Ax), y.dot(Ay), z.dot(Az), y.dot(Ax), z.dot(Ax), z.dot(Ay))
    L11, L22 = A.xx - A.zz, A.yy - A.zz
    L31, L32 = A.xz + A.xz, A.yz + A.yz
    Y21 = E.yx * L11 + E.yy * A.xy + E.yz * L31
    Y22 = E.yx * A.xy + E.yy * L22 + E.yz * L32
    Y31 = E.zx * L11 + E.zy * A.xy + E.zz * L31
    Y32 = E.zx * A.xy + E.zy * L22 + E.zz * L32
    Z21, Z22 = Y21 * E.xx + Y22 * E.xy, Y21 * E.yx + Y22 * E.yy
    Z31, Z32, Z33 = Y31 * E.xx + Y32 * E.xy, Y31 * E.yx + Y32 * E.yy, Y31 * E.zx + Y32 * E.zy
    Z11 = L11 + L22 - Z22 - Z33
    # E v with v = (-A_23, A_13, 0); (E v) x adds -v_z above and v_z below the diagonal.
    vx, vy, vz = E.xy * A.xz - E.xx * A.yz, E.yy * A.xz - E.yx * A.yz, E.zy * A.xz - E.zx * A.yz
    return SymMat3(Z11 + A.zz, Z22 + A.zz, Z33 + A.zz, Z21 + vz, Z31 - vy, Z32 + vx)


def rotate_general(E: Mat3, A: Mat3, *, trace: bool = True) -> Mat3:
    """Return E A E^T for any A: 40 m + 39 a by A = L + D + v x (§A.5).

    With `trace=False` Z_11 is computed like the rest of Z instead of from the invariant trace: 42 m + 37 a,
    and no subtraction of what was just added.
    """
    if _zeros(E) >= MIN_SPARSE_ROTATION_ZEROS:
        product: Mat3 = E @ (A @ E.transpose())
        return product
    L11, L22 = A.xx - A.zz, A.yy - A.zz
    L31, L32 = A.zx + A.xz, A.zy + A.yz
    first = E @ Vec3(L11, A.yx, L31)
    second = E @ Vec3(A.xy, L22, L32)
    Z12, Z13 = first.x * E.yx + second.x * E.yy, first.x * E.zx + second.x * E.zy
    Z21, Z22 = first.y * E.xx + second.y * E.xy, first.y * E.yx + second.y * E.yy
    Z23 = first.y * E.zx + second.y * E.zy
    Z31, Z32 = first.z * E.xx + second.z * E.xy, first.z * E.yx + second.z * E.yy
    Z33 = first.z * E.zx + second.z * E.zy
    Z11 = L11 + L22 - Z22 - Z33 if trace else first.x * E.xx + second.x * E.xy
    vx, vy, vz = E.xy * A.xz - E.xx * A.yz, E.yy * A.xz - E.yx * A.yz, E.zy * A.xz - E.zx * A.yz
    return Mat3(
        Z11 + A.zz, Z12 - vz, Z13 + vy, Z21 + vz, Z22 + A.zz, Z23 - vx, Z31 - vy, Z32 + vx, Z33 + A.zz
    )


def rotate_symmetric_about_z(turn: AxialTurn, A: SymMat3) -> SymMat3:
    """Return rz A rz^T for a symmetric A: 8 m + 7 a (§A.5, after McMillan 1994)."""
    c, s, ss, cs, cs2, cos2 = turn
    difference = A.yy - A.xx
    alpha = cs2 * A.xy + ss * difference
    beta = cs * difference + cos2 * A.xy
    return SymMat3(A.xx + alpha, A.yy - alpha, A.zz, beta, c * A.xz + s * A.yz, c * A.yz - s * A.xz)


def rotate_general_about_z(turn: AxialTurn, A: Mat3) -> Mat3:
    """Return rz A rz^T for any A: 12 m + 12 a (§A.5, after McMillan 1994)."""
    c, s, ss, cs, _, _ = turn
    difference, total = A.yy - A.xx, A.xy + A.yx
    alpha = cs * total + ss * difference
    beta = cs * difference - ss * total
    return Mat3(
        A.xx + alpha, A.xy + beta, c * A.xz + s * A.yz,
        A.yx + beta, A.yy - alpha, c * A.yz - s * A.xz,
        c * A.zx + s * A.zy, c * A.zy - s * A.zx, A.zz,
    )  # fmt: skip


def times_symmetric(r: Vec3, M: SymMat3) -> Mat3:
    """Return r x M for a symmetric M: 15 m + 9 a, since three of the products occur twice (§A.3)."""
    x_yz, y_xz, z_xy = r.x * M.yz, r.y * M.xz, r.z * M.xy
    return Mat3(
        y_xz - z_xy, r.y * M.yz - r.z * M.yy, r.y * M.zz - r.z * M.yz,
        r.z * M.xx - r.x * M.xz, z_xy - x_yz, r.z * M.xz - r.x * M.zz,
        r.x * M.xy - r.y * M.xx, r.x * M.yy - r.y * M.xy, x_yz - y_xz,
    )  # fmt: skip


def cross_cross(a: Vec3, b: Vec3) -> SymMat3:
    """Return the lower triangle of a x b x = b a^T - (a . b) 1 (Table 2.1); 6 m + 3 a."""
    xx, yy, zz = a.x * b.x, a.y * b.y, a.z * b.z
    return SymMat3(-(yy + zz), -(xx + zz), -(xx + yy), b.y * a.x, b.z * a.x, b.z * a.y)


def shift_terms(r: Vec3, H: Mat3, Y: Mat3) -> SymMat3:
    """Return the lower triangle of -r x H^T + Y r x, which is symmetric where Y = H -+ r x M; 24 m + 18 a."""
    return SymMat3(
        r.z * H.xy - r.y * H.xz + (r.z * Y.xy - r.y * Y.xz),
        r.x * H.yz - r.z * H.yx + (r.x * Y.yz - r.z * Y.yx),
        r.y * H.zx - r.x * H.zy + (r.y * Y.zx - r.x * Y.zy),
        r.x * H.xz - r.z * H.xx + (r.z * Y.yy - r.y * Y.yz),
        r.y * H.xx - r.x * H.xy + (r.z * Y.zy - r.y * Y.zz),
        r.y * H.yx - r.x * H.yy + (r.x * Y.zz - r.z * Y.zx),
    )


def _zeros(E: Mat3) -> int:
    return sum(is_zero(item) for item in E.leaves())
