"""3-D vectors and matrices over generic scalars: the bricks of the spatial values.

Iterating any of them yields its scalars in constructor order. Nothing here knows about frames; a function
that uses them says which frame its vectors are in. `a.cross(b)` is the vector product, `a.skew()` the matrix
a x of Featherstone 2008 Eq. 2.23.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, final

import numpy as np

from dalembert.errors import ShapeError
from dalembert.scalar import Scalar, sqrt
from dalembert.spatial.value import SpatialTypeError, Value, mismatch, scalars_of

__all__ = ["Mat3", "SymMat3", "Vec3"]

SYMMETRY_TOLERANCE = 1e-9
"""Difference of opposite elements, relative to the sum of all, up to which a matrix is symmetric."""


@final
class Vec3(Value):
    """A 3-D coordinate vector (x, y, z)."""

    __slots__ = ("x", "y", "z")

    x: Scalar
    y: Scalar
    z: Scalar

    def __init__(self, x: Scalar, y: Scalar, z: Scalar) -> None:
        _vec_x(self, x)
        _vec_y(self, y)
        _vec_z(self, z)

    @staticmethod
    def of(values: Any) -> Vec3:
        """The vector of three scalars: a `Vec3`, a sequence, or an array whose first axis has length 3."""
        return values if type(values) is Vec3 else Vec3(*scalars_of(values, 3, "a 3-D vector"))

    @staticmethod
    def zero() -> Vec3:
        """(0, 0, 0)."""
        return Vec3(0.0, 0.0, 0.0)

    @staticmethod
    def unit(axis: int) -> Vec3:
        """The unit vector along axis 0, 1 or 2."""
        return Vec3(1.0 if axis == 0 else 0.0, 1.0 if axis == 1 else 0.0, 1.0 if axis == 2 else 0.0)

    def leaves(self) -> list[Scalar]:
        return [self.x, self.y, self.z]

    def rebuilt(self, leaves: Iterator[Scalar]) -> Vec3:
        return Vec3(next(leaves), next(leaves), next(leaves))

    def to_list(self) -> list[Scalar]:
        """[x, y, z]."""
        return [self.x, self.y, self.z]

    def __reduce__(self) -> Any:
        return Vec3, (self.x, self.y, self.z)

    def __getitem__(self, index: int) -> Scalar:
        return (self.x, self.y, self.z)[index]

    def __len__(self) -> int:
        return 3

    def __add__(self, other: Vec3) -> Vec3:
        if type(other) is not Vec3:
            raise mismatch("+", self, other, "add two Vec3")
        return Vec3(self.x + other.x, self.y + other.y, self.z + other.z)

    def __sub__(self, other: Vec3) -> Vec3:
        if type(other) is not Vec3:
            raise mismatch("-", self, other, "subtract two Vec3")
        return Vec3(self.x - other.x, self.y - other.y, self.z - other.z)

    def __neg__(self) -> Vec3:
        return Vec3(-self.x, -self.y, -self.z)

    def __mul__(self, factor: Scalar) -> Vec3:
        if isinstance(factor, Value):
            raise mismatch("*", self, factor, "use dot or cross for two vectors, @ for a matrix")
        return Vec3(self.x * factor, self.y * factor, self.z * factor)

    __rmul__ = __mul__

    def __truediv__(self, divisor: Scalar) -> Vec3:
        if isinstance(divisor, Value):
            raise mismatch("/", self, divisor, "divide by a scalar")
        return Vec3(self.x / divisor, self.y / divisor, self.z / divisor)

    def dot(self, other: Vec3) -> Scalar:
        """The scalar product; 3 m + 2 a."""
        if type(other) is not Vec3:
            raise mismatch("dot", self, other, "the scalar product is of two Vec3")
        return self.x * other.x + self.y * other.y + self.z * other.z

    def cross(self, other: Vec3) -> Vec3:
        """The vector product self x other; 6 m + 3 a."""
        if type(other) is not Vec3:
            raise mismatch("cross", self, other, "the vector product is of two Vec3")
        ax, ay, az = self.x, self.y, self.z
        bx, by, bz = other.x, other.y, other.z
        return Vec3(ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx)

    def skew(self) -> Mat3:
        """The matrix self x, with self.skew() @ b = self x b; Featherstone 2008 Eq. 2.23."""
        x, y, z = self.x, self.y, self.z
        return Mat3(0.0, -z, y, z, 0.0, -x, -y, x, 0.0)

    def outer(self, other: Vec3) -> Mat3:
        """The dyad self other^T."""
        return Mat3(*[a * b for a in (self.x, self.y, self.z) for b in (other.x, other.y, other.z)])

    def norm(self) -> Scalar:
        """The Euclidean length."""
        return sqrt(self.dot(self))


_vec_x = Vec3.__dict__["x"].__set__
_vec_y = Vec3.__dict__["y"].__set__
_vec_z = Vec3.__dict__["z"].__set__


@final
class Mat3(Value):
    """A 3x3 matrix, nine scalars row by row: `xy` stands in row x, column y."""

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

    def __init__(
        self,
        xx: Scalar,
        xy: Scalar,
        xz: Scalar,
        yx: Scalar,
        yy: Scalar,
        yz: Scalar,
        zx: Scalar,
        zy: Scalar,
        zz: Scalar,
    ) -> None:
        _mat_xx(self, xx)
        _mat_xy(self, xy)
        _mat_xz(self, xz)
        _mat_yx(self, yx)
        _mat_yy(self, yy)
        _mat_yz(self, yz)
        _mat_zx(self, zx)
        _mat_zy(self, zy)
        _mat_zz(self, zz)

    @staticmethod
    def of(rows: Any) -> Mat3:
        """The matrix of a `Mat3`, a `SymMat3`, three rows of three scalars, or an array (3, 3, ...)."""
        if type(rows) is Mat3:
            return rows
        if type(rows) is SymMat3:
            return rows.to_mat3()
        return Mat3(*_nine(rows))

    @staticmethod
    def identity() -> Mat3:
        """The unit matrix, of literals."""
        return Mat3(1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)

    @staticmethod
    def zero() -> Mat3:
        """The zero matrix, of literals."""
        return Mat3(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)

    @staticmethod
    def from_columns(a: Vec3, b: Vec3, c: Vec3) -> Mat3:
        """The matrix [a b c]."""
        return Mat3(a.x, b.x, c.x, a.y, b.y, c.y, a.z, b.z, c.z)

    def leaves(self) -> list[Scalar]:
        return [self.xx, self.xy, self.xz, self.yx, self.yy, self.yz, self.zx, self.zy, self.zz]

    def rebuilt(self, leaves: Iterator[Scalar]) -> Mat3:
        return Mat3(*[next(leaves) for _ in range(9)])

    def to_list(self) -> list[list[Scalar]]:
        """Three rows of three scalars."""
        return [[self.xx, self.xy, self.xz], [self.yx, self.yy, self.yz], [self.zx, self.zy, self.zz]]

    def __reduce__(self) -> Any:
        return Mat3, tuple(self.leaves())

    def row(self, index: int) -> Vec3:
        """Row 0, 1 or 2."""
        return Vec3(*self.to_list()[index])

    def column(self, index: int) -> Vec3:
        """Column 0, 1 or 2."""
        return Vec3(*[row[index] for row in self.to_list()])

    def transpose(self) -> Mat3:
        """The transpose; free."""
        return Mat3(self.xx, self.yx, self.zx, self.xy, self.yy, self.zy, self.xz, self.yz, self.zz)

    def trace(self) -> Scalar:
        """The sum of the diagonal."""
        return self.xx + self.yy + self.zz

    def determinant(self) -> Scalar:
        """The determinant; one for a rotation."""
        return self.row(0).dot(self.row(1).cross(self.row(2)))

    def axial(self) -> Vec3:
        """The vector a of the skew part a x of the matrix: half of (zy - yz, xz - zx, yx - xy)."""
        return Vec3((self.zy - self.yz) * 0.5, (self.xz - self.zx) * 0.5, (self.yx - self.xy) * 0.5)

    def __add__(self, other: Mat3 | SymMat3) -> Mat3:
        if type(other) is not Mat3 and type(other) is not SymMat3:
            raise mismatch("+", self, other, "add two matrices")
        return Mat3(*[a + b for a, b in zip(self.leaves(), Mat3.of(other).leaves(), strict=True)])

    def __sub__(self, other: Mat3 | SymMat3) -> Mat3:
        if type(other) is not Mat3 and type(other) is not SymMat3:
            raise mismatch("-", self, other, "subtract two matrices")
        return Mat3(*[a - b for a, b in zip(self.leaves(), Mat3.of(other).leaves(), strict=True)])

    def __neg__(self) -> Mat3:
        return Mat3(*[-a for a in self.leaves()])

    def __mul__(self, factor: Scalar) -> Mat3:
        if isinstance(factor, Value):
            raise mismatch("*", self, factor, "use @ for a product of matrices or with a vector")
        return Mat3(*[a * factor for a in self.leaves()])

    __rmul__ = __mul__

    def __matmul__(self, other: Any) -> Any:
        """Matrix times vector (9 m + 6 a) or matrix (27 m + 18 a)."""
        if type(other) is Vec3:
            x, y, z = other.x, other.y, other.z
            return Vec3(
                self.xx * x + self.xy * y + self.xz * z,
                self.yx * x + self.yy * y + self.yz * z,
                self.zx * x + self.zy * y + self.zz * z,
            )
        if type(other) is SymMat3:
            other = other.to_mat3()
        if type(other) is Mat3:
            return Mat3.from_columns(*[self @ other.column(j) for j in range(3)])
        raise mismatch("@", self, other, "a matrix multiplies a Vec3, Mat3 or SymMat3")

    def transposed_times(self, v: Vec3) -> Vec3:
        """The product of the transpose with a vector; 9 m + 6 a."""
        x, y, z = v.x, v.y, v.z
        return Vec3(
            self.xx * x + self.yx * y + self.zx * z,
            self.xy * x + self.yy * y + self.zy * z,
            self.xz * x + self.yz * y + self.zz * z,
        )


_mat_xx, _mat_xy, _mat_xz = (Mat3.__dict__[name].__set__ for name in ("xx", "xy", "xz"))
_mat_yx, _mat_yy, _mat_yz = (Mat3.__dict__[name].__set__ for name in ("yx", "yy", "yz"))
_mat_zx, _mat_zy, _mat_zz = (Mat3.__dict__[name].__set__ for name in ("zx", "zy", "zz"))


@final
class SymMat3(Value):
    """A symmetric 3x3 matrix, six scalars: the diagonal, then xy, xz, yz."""

    __slots__ = ("xx", "xy", "xz", "yy", "yz", "zz")

    xx: Scalar
    yy: Scalar
    zz: Scalar
    xy: Scalar
    xz: Scalar
    yz: Scalar

    def __init__(self, xx: Scalar, yy: Scalar, zz: Scalar, xy: Scalar, xz: Scalar, yz: Scalar) -> None:
        _sym_xx(self, xx)
        _sym_yy(self, yy)
        _sym_zz(self, zz)
        _sym_xy(self, xy)
        _sym_xz(self, xz)
        _sym_yz(self, yz)

    @staticmethod
    def of(matrix: Any) -> SymMat3:
        """The matrix of a `SymMat3`, three diagonal scalars, or a 3x3 matrix, which must be symmetric."""
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
    def zero() -> SymMat3:
        """The zero matrix, of literals."""
        return SymMat3(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)

    @staticmethod
    def identity() -> SymMat3:
        """The unit matrix, of literals."""
        return SymMat3(1.0, 1.0, 1.0, 0.0, 0.0, 0.0)

    def leaves(self) -> list[Scalar]:
        return [self.xx, self.yy, self.zz, self.xy, self.xz, self.yz]

    def rebuilt(self, leaves: Iterator[Scalar]) -> SymMat3:
        return SymMat3(*[next(leaves) for _ in range(6)])

    def to_list(self) -> list[list[Scalar]]:
        """Three rows of three scalars."""
        return [[self.xx, self.xy, self.xz], [self.xy, self.yy, self.yz], [self.xz, self.yz, self.zz]]

    def to_mat3(self) -> Mat3:
        """All nine elements."""
        return Mat3(self.xx, self.xy, self.xz, self.xy, self.yy, self.yz, self.xz, self.yz, self.zz)

    def __reduce__(self) -> Any:
        return SymMat3, tuple(self.leaves())

    def transpose(self) -> SymMat3:
        """The matrix itself."""
        return self

    def trace(self) -> Scalar:
        """The sum of the diagonal."""
        return self.xx + self.yy + self.zz

    def inverse(self) -> SymMat3:
        """The inverse, by cofactors; the matrix must not be singular."""
        axx = self.yy * self.zz - self.yz * self.yz
        ayy = self.xx * self.zz - self.xz * self.xz
        azz = self.xx * self.yy - self.xy * self.xy
        axy = self.xz * self.yz - self.xy * self.zz
        axz = self.xy * self.yz - self.xz * self.yy
        ayz = self.xy * self.xz - self.xx * self.yz
        scale = 1.0 / (self.xx * axx + self.xy * axy + self.xz * axz)
        return SymMat3(axx * scale, ayy * scale, azz * scale, axy * scale, axz * scale, ayz * scale)

    def __add__(self, other: Any) -> Any:
        if type(other) is Mat3:
            return self.to_mat3() + other
        if type(other) is not SymMat3:
            raise mismatch("+", self, other, "add two matrices")
        return SymMat3(*[a + b for a, b in zip(self.leaves(), other.leaves(), strict=True)])

    def __sub__(self, other: Any) -> Any:
        if type(other) is Mat3:
            return self.to_mat3() - other
        if type(other) is not SymMat3:
            raise mismatch("-", self, other, "subtract two matrices")
        return SymMat3(*[a - b for a, b in zip(self.leaves(), other.leaves(), strict=True)])

    def __neg__(self) -> SymMat3:
        return SymMat3(*[-a for a in self.leaves()])

    def __mul__(self, factor: Scalar) -> SymMat3:
        if isinstance(factor, Value):
            raise mismatch("*", self, factor, "use @ for a product of matrices or with a vector")
        return SymMat3(*[a * factor for a in self.leaves()])

    __rmul__ = __mul__

    def __matmul__(self, other: Any) -> Any:
        """Matrix times vector (9 m + 6 a) or matrix."""
        if type(other) is Vec3:
            x, y, z = other.x, other.y, other.z
            return Vec3(
                self.xx * x + self.xy * y + self.xz * z,
                self.xy * x + self.yy * y + self.yz * z,
                self.xz * x + self.yz * y + self.zz * z,
            )
        return self.to_mat3() @ other


_sym_xx, _sym_yy, _sym_zz = (SymMat3.__dict__[name].__set__ for name in ("xx", "yy", "zz"))
_sym_xy, _sym_xz, _sym_yz = (SymMat3.__dict__[name].__set__ for name in ("xy", "xz", "yz"))


def _is_flat(values: Any) -> bool:
    """Whether the items are scalars rather than rows; an array of length 3 is taken for a row."""
    if isinstance(values, np.ndarray):
        return values.ndim == 1
    return not any(
        isinstance(item, list | tuple | Vec3) or (isinstance(item, np.ndarray) and item.shape[:1] == (3,))
        for item in values
    )


def _same(a: Scalar, b: Scalar, m: Mat3) -> bool:
    """Whether two elements are equal: numbers up to rounding, symbols exactly."""
    if a is b:
        return True
    if not (isinstance(a, float | np.ndarray) and isinstance(b, float | np.ndarray)):
        return bool(a == b)
    size = sum(np.abs(item) for item in m.leaves() if isinstance(item, float | np.ndarray))
    return bool(np.all(np.abs(a - b) <= SYMMETRY_TOLERANCE * size))


def _nine(rows: Any) -> list[Scalar]:
    if isinstance(rows, str | bytes | int | float):
        raise SpatialTypeError(f"a 3x3 matrix must be three rows of three scalars, got {type(rows).__name__}")
    items = list(rows)
    if len(items) != 3:
        raise ShapeError(f"a 3x3 matrix must have 3 rows, got {len(items)}")
    return [item for row in items for item in scalars_of(row, 3, "a row of a 3x3 matrix")]
