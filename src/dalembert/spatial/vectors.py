"""3-D vectors and matrices over generic scalars, of which spatial values consist.

Iterating any of them yields its scalars in constructor order. Nothing here knows about frames; a function
that uses them says which frame its vectors are in. `a.cross(b)` is the vector product, `a.skew()` the matrix
a x of Featherstone 2008 Eq. 2.23.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, final

import numpy as np

from dalembert.errors import ShapeError
from dalembert.scalar import Scalar, sqrt
from dalembert.spatial.value import LinearValue, SpatialTypeError, Value, mismatch, scalars_of

M = TypeVar("M", bound="Matrix3")


@final
class Vec3(LinearValue):
    """A 3-D coordinate vector (x, y, z)."""

    __slots__ = ("x", "y", "z")

    x: Scalar
    y: Scalar
    z: Scalar

    _product_remedy = "use dot or cross for two vectors, @ for a matrix"

    @staticmethod
    def of(values: Any) -> Vec3:
        """Return the vector of a `Vec3`, a sequence of three, or an array whose first axis has length 3."""
        return values if type(values) is Vec3 else Vec3(*scalars_of(values, 3, "a 3-D vector"))

    @staticmethod
    def unit(axis: int) -> Vec3:
        """Return the unit vector along axis 0, 1 or 2."""
        return Vec3(1.0 if axis == 0 else 0.0, 1.0 if axis == 1 else 0.0, 1.0 if axis == 2 else 0.0)

    def to_list(self) -> list[Scalar]:
        """Return [x, y, z]."""
        return [self.x, self.y, self.z]

    def __getitem__(self, index: int) -> Scalar:
        return (self.x, self.y, self.z)[index]

    def __len__(self) -> int:
        return 3

    def __truediv__(self, divisor: Scalar) -> Vec3:
        if isinstance(divisor, Value):
            raise mismatch("/", self, divisor, "divide by a scalar")
        return Vec3(self.x / divisor, self.y / divisor, self.z / divisor)

    def dot(self, other: Vec3) -> Scalar:
        """Return the scalar product; 3 m + 2 a."""
        if type(other) is not Vec3:
            raise mismatch("dot", self, other, "the scalar product is of two Vec3")
        return self.x * other.x + self.y * other.y + self.z * other.z

    def cross(self, other: Vec3) -> Vec3:
        """Return the vector product self x other; 6 m + 3 a."""
        if type(other) is not Vec3:
            raise mismatch("cross", self, other, "the vector product is of two Vec3")
        ax, ay, az = self.x, self.y, self.z
        bx, by, bz = other.x, other.y, other.z
        return Vec3(ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx)

    def skew(self) -> Mat3:
        """Return the matrix self x, with self.skew() @ b = self x b; Featherstone 2008 Eq. 2.23."""
        x, y, z = self.x, self.y, self.z
        return Mat3(0.0, -z, y, z, 0.0, -x, -y, x, 0.0)

    def outer(self, other: Vec3) -> Mat3:
        """Return the dyad self other^T."""
        return Mat3(*[a * b for a in (self.x, self.y, self.z) for b in (other.x, other.y, other.z)])

    def norm(self) -> Scalar:
        """Return the Euclidean length."""
        return sqrt(self.dot(self))


class Matrix3(LinearValue):
    """Abstract base of the 3x3 matrices: elements named by row and column."""

    __slots__ = ()

    _product_remedy = "use @ for a product of matrices or with a vector"

    if TYPE_CHECKING:

        def __add__(self: M, other: M) -> M: ...
        def __sub__(self: M, other: M) -> M: ...

    def to_mat3(self) -> Mat3:
        """Return all nine elements."""
        raise SpatialTypeError(f"{type(self).__name__} is abstract")

    def to_list(self) -> list[list[Scalar]]:
        """Return three rows of three scalars."""
        m = self.to_mat3()
        return [[m.xx, m.xy, m.xz], [m.yx, m.yy, m.yz], [m.zx, m.zy, m.zz]]

    def _alike(self, operation: str, other: Any) -> tuple[Mat3, Mat3]:
        """Return both matrices with all nine elements."""
        if not isinstance(other, Matrix3):
            raise mismatch(operation, self, other, "both sides must be matrices")
        return self.to_mat3(), other.to_mat3()


@final
class Mat3(Matrix3):
    """A 3x3 matrix, nine scalars row by row: `xy` is in row x, column y."""

    __slots__ = ("xx", "xy", "xz", "yx", "yy", "yz", "zx", "zy", "zz")

    xx: Scalar
    xy: Scalar
    xz: Scalar
    yx: Scalar
    yy: Scalar
    yz: Scalar
    zx: Scalar
    zy: Scalar
    zz: Scalar

    @staticmethod
    def of(rows: Any) -> Mat3:
        """Return the matrix of a matrix, three rows of three scalars, or an array (3, 3, ...)."""
        return rows.to_mat3() if isinstance(rows, Matrix3) else Mat3(*_nine(rows))

    @staticmethod
    def identity() -> Mat3:
        """Return the unit matrix, of literals."""
        return Mat3(1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)

    @staticmethod
    def from_columns(a: Vec3, b: Vec3, c: Vec3) -> Mat3:
        """Return the matrix [a b c]."""
        return Mat3(a.x, b.x, c.x, a.y, b.y, c.y, a.z, b.z, c.z)

    def to_mat3(self) -> Mat3:
        """Return the matrix itself."""
        return self

    def row(self, index: int) -> Vec3:
        """Return row 0, 1 or 2."""
        return Vec3(*self.to_list()[index])

    def column(self, index: int) -> Vec3:
        """Return column 0, 1 or 2."""
        return Vec3(*[row[index] for row in self.to_list()])

    def trace(self) -> Scalar:
        """Return the sum of the diagonal."""
        return self.xx + self.yy + self.zz

    def transpose(self) -> Mat3:
        """Return the transpose; free."""
        return Mat3(self.xx, self.yx, self.zx, self.xy, self.yy, self.zy, self.xz, self.yz, self.zz)

    def determinant(self) -> Scalar:
        """Return the determinant; one for a rotation."""
        return self.row(0).dot(self.row(1).cross(self.row(2)))

    def axial(self) -> Vec3:
        """Return the vector a of the skew part a x of the matrix: half of (zy - yz, xz - zx, yx - xy)."""
        return Vec3((self.zy - self.yz) * 0.5, (self.xz - self.zx) * 0.5, (self.yx - self.xy) * 0.5)

    def __matmul__(self, other: Any) -> Any:
        """Return the product with a vector (9 m + 6 a) or a matrix (27 m + 18 a)."""
        if type(other) is Vec3:
            x, y, z = other.x, other.y, other.z
            return Vec3(
                self.xx * x + self.xy * y + self.xz * z,
                self.yx * x + self.yy * y + self.yz * z,
                self.zx * x + self.zy * y + self.zz * z,
            )
        if isinstance(other, Matrix3):
            right = other.to_mat3()
            return Mat3.from_columns(*[self @ right.column(j) for j in range(3)])
        raise mismatch("@", self, other, "a matrix multiplies a Vec3, Mat3 or SymMat3")

    def transposed_times(self, v: Vec3) -> Vec3:
        """Return the product of the transpose with a vector; 9 m + 6 a."""
        x, y, z = v.x, v.y, v.z
        return Vec3(
            self.xx * x + self.yx * y + self.zx * z,
            self.xy * x + self.yy * y + self.zy * z,
            self.xz * x + self.yz * y + self.zz * z,
        )


def _nine(rows: Any) -> list[Scalar]:
    if isinstance(rows, str | bytes | int | float) or (isinstance(rows, np.ndarray) and not rows.ndim):
        raise SpatialTypeError(f"a 3x3 matrix must be three rows of three scalars, got {type(rows).__name__}")
    items = list(rows)
    if len(items) != 3:
        raise ShapeError(f"a 3x3 matrix must have 3 rows, got {len(items)}")
    return [item for row in items for item in scalars_of(row, 3, "a row of a 3x3 matrix")]


def block_matrix(a: Matrix3, b: Matrix3, c: Matrix3, d: Matrix3) -> list[list[Scalar]]:
    """Return the 6x6 matrix [[a, b], [c, d]] as nested lists."""
    rows = ((a, b), (c, d))
    return [[*p, *q] for left, right in rows for p, q in zip(left.to_list(), right.to_list(), strict=True)]
