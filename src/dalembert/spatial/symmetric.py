"""Symmetric 3x3 matrices over generic scalars: rotational inertias, and the blocks of articulated ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, final

import numpy as np

from dalembert.errors import ShapeError
from dalembert.scalar import Scalar
from dalembert.spatial.value import SpatialTypeError, scalars_of
from dalembert.spatial.vectors import Mat3, Matrix3, Vec3

__all__ = ["SymMat3"]

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

    def __init__(self, xx: Scalar, yy: Scalar, zz: Scalar, xy: Scalar, xz: Scalar, yz: Scalar) -> None:
        _sym_xx(self, xx)
        _sym_yy(self, yy)
        _sym_zz(self, zz)
        _sym_xy(self, xy)
        _sym_xz(self, xz)
        _sym_yz(self, yz)

    @staticmethod
    def of(matrix: Any) -> SymMat3:
        """Return the matrix of a `SymMat3`, three diagonal scalars, or a 3x3 matrix,
        which must be symmetric."""
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
        """Return the zero matrix, of literals."""
        return SymMat3(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)

    @staticmethod
    def identity() -> SymMat3:
        """Return the unit matrix, of literals."""
        return SymMat3(1.0, 1.0, 1.0, 0.0, 0.0, 0.0)

    def leaves(self) -> list[Scalar]:
        return [self.xx, self.yy, self.zz, self.xy, self.xz, self.yz]

    def rebuilt(self, leaves: Iterator[Scalar]) -> SymMat3:
        return SymMat3(*[next(leaves) for _ in range(6)])

    def to_list(self) -> list[list[Scalar]]:
        """Return three rows of three scalars."""
        return [[self.xx, self.xy, self.xz], [self.xy, self.yy, self.yz], [self.xz, self.yz, self.zz]]

    def to_mat3(self) -> Mat3:
        """Return all nine elements."""
        return Mat3(self.xx, self.xy, self.xz, self.xy, self.yy, self.yz, self.xz, self.yz, self.zz)

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


_sym_xx, _sym_yy, _sym_zz = (SymMat3.__dict__[name].__set__ for name in ("xx", "yy", "zz"))
_sym_xy, _sym_xz, _sym_yz = (SymMat3.__dict__[name].__set__ for name in ("xy", "xz", "yz"))


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
