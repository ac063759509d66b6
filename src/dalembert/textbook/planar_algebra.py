"""Planar vector algebra: spatial vectors restricted to the x-y plane (Featherstone 2008 §2.16, Table A.1).

A planar motion is (omega, v_x, v_y), a planar force (n, f_x, f_y): coordinates 3, 4 and 5 of the spatial
ones. The classes do for bodies in the plane what `Motion`, `Force`, `Transform` and `RigidInertia` do in
space, and `to_spatial` takes each to its spatial counterpart; the functions at the top build the book's 3x3
matrices as nested lists.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar, final, overload

from dalembert.scalar import Scalar, absolute, cos, select, sin
from dalembert.spatial import AxialScrew, Force, Motion, RigidInertia, SymMat3, Transform, Vec3
from dalembert.spatial.value import LinearValue, Value, mismatch, scalars_of

Matrix = list[list[Scalar]]


def Xpln(angle: Scalar, r: Any) -> Matrix:
    """Return the 3x3 transform of motions to a frame at r [m], turned by angle [rad] (Eq. 2.77)."""
    return PlanarTransform.of(angle, r).motion_matrix()


def crm(v: Any) -> Matrix:
    """Return v x of a planar motion (Eq. 2.75)."""
    omega, x, y = scalars_of(v, 3, "a planar motion")
    return [[0.0, 0.0, 0.0], [y, 0.0, -omega], [-x, omega, 0.0]]


def crf(v: Any) -> Matrix:
    """Return v x* of a planar motion, -crm(v)^T."""
    omega, x, y = scalars_of(v, 3, "a planar motion")
    return [[0.0, -y, x], [0.0, 0.0, -omega], [0.0, omega, 0.0]]


def mcI(mass: Scalar, com: Any, inertia_at_com: Scalar) -> Matrix:
    """Return the 3x3 inertia of mass [kg], centre of mass [m] and moment about it [kg m^2] (Eq. 2.78)."""
    return PlanarInertia(mass, com, inertia_at_com).matrix()


def XtoV(X: Any) -> list[Scalar]:
    """Return the velocity that takes frame A to B in one unit of time, approximately: Table A.1, version 2.

    A multiple of the exact u: u = v asin(X23) / X23. Invariant: X v = v. Exact for translations.
    """
    X21, X22, X23, X31 = X[1][0], X[1][1], X[1][2], X[2][0]
    return [X23, 0.5 * (X31 + X22 * X31 + X23 * X21), 0.5 * (X23 * X31 - X21 - X22 * X21)]


def XtoV_simple(X: Any) -> list[Scalar]:
    """Return that velocity to first order only, without its special properties: Table A.1, version 1."""
    return [X[1][2], X[2][0], -X[1][0]]


@final
class PlanarMotion(LinearValue):
    """A planar motion: omega [rad/s] and the velocity (x, y) [m/s] of the body point at the origin."""

    __slots__ = ("omega", "x", "y")

    omega: Scalar
    x: Scalar
    y: Scalar

    _product_remedy = "write inertia * motion, or use dot or cross"

    def to_spatial(self) -> Motion:
        """Return the same motion in space."""
        return Motion(Vec3(0.0, 0.0, self.omega), Vec3(self.x, self.y, 0.0))

    def dot(self, other: PlanarForce) -> Scalar:
        """Return the power m . f [W]."""
        if type(other) is not PlanarForce:
            raise mismatch("dot", self, other, "the scalar product is of a motion and a force")
        return self.omega * other.moment + self.x * other.x + self.y * other.y

    @overload
    def cross(self, other: PlanarMotion) -> PlanarMotion: ...
    @overload
    def cross(self, other: PlanarForce) -> PlanarForce: ...
    def cross(self, other: PlanarMotion | PlanarForce) -> PlanarMotion | PlanarForce:
        """Return v x m (Eq. 2.76) or v x* f."""
        w, x, y = self.omega, self.x, self.y
        if type(other) is PlanarMotion:
            return PlanarMotion(0.0, y * other.omega - w * other.y, w * other.x - x * other.omega)
        if type(other) is PlanarForce:
            return PlanarForce(x * other.y - y * other.x, -w * other.y, w * other.x)
        raise mismatch("cross", self, other, "a motion crosses a motion (v x m) or a force (v x* f)")


@final
class PlanarForce(LinearValue):
    """A planar force: moment about the origin [N m] and force (x, y) [N]."""

    __slots__ = ("moment", "x", "y")

    moment: Scalar
    x: Scalar
    y: Scalar

    _product_remedy = "write inertia * motion, or use dot or cross"

    def to_spatial(self) -> Force:
        """Return the same force in space."""
        return Force(Vec3(0.0, 0.0, self.moment), Vec3(self.x, self.y, 0.0))

    def dot(self, other: PlanarMotion) -> Scalar:
        """Return the power f . m [W]."""
        if type(other) is not PlanarMotion:
            raise mismatch("dot", self, other, "the scalar product is of a force and a motion")
        return other.dot(self)


@final
class PlanarInertia(Value):
    """The inertia of a planar body: mass [kg], h = mass * com [kg m], moment about the origin [kg m^2]."""

    __slots__ = ("hx", "hy", "inertia", "mass")

    mass: Scalar
    hx: Scalar
    hy: Scalar
    inertia: Scalar

    def __init__(self, mass: Scalar, com: Any, inertia_at_com: Scalar) -> None:
        x, y = scalars_of(com, 2, "a planar centre of mass")
        hx, hy = mass * x, mass * y
        self._fill(mass, hx, hy, inertia_at_com + (hx * x + hy * y))

    @staticmethod
    def from_compact(mass: Scalar, hx: Scalar, hy: Scalar, inertia: Scalar) -> PlanarInertia:
        """Return the inertia of mass, first moment and moment of inertia about the *origin*."""
        new = object.__new__(PlanarInertia)
        new._fill(mass, hx, hy, inertia)
        return new

    @property
    def com(self) -> tuple[Scalar, Scalar]:
        """The centre of mass [m]; the origin for a body without mass."""
        divisor: Scalar = select(absolute(self.mass) > 0.0, self.mass, 1.0)
        return self.hx / divisor, self.hy / divisor

    def rebuilt(self, leaves: Iterator[Scalar]) -> PlanarInertia:
        return PlanarInertia.from_compact(next(leaves), next(leaves), next(leaves), next(leaves))

    def __reduce__(self) -> Any:
        return PlanarInertia.from_compact, (self.mass, self.hx, self.hy, self.inertia)

    def to_spatial(self) -> RigidInertia:
        """Return a spatial inertia that acts the same in the plane, without moments about axes in it."""
        h = Vec3(self.hx, self.hy, 0.0)
        return RigidInertia.from_compact(self.mass, h, SymMat3(0.0, 0.0, self.inertia, 0.0, 0.0, 0.0))

    def matrix(self) -> Matrix:
        """Return the 3x3 matrix of Eq. 2.78."""
        m, x, y = self.mass, self.hx, self.hy
        return [[self.inertia, -y, x], [-y, m, 0.0], [x, 0.0, m]]

    def __add__(self, other: PlanarInertia) -> PlanarInertia:
        if type(other) is not PlanarInertia:
            raise mismatch("+", self, other, "inertias add to inertias only")
        return self.rebuilt(a + b for a, b in zip(self.leaves(), other.leaves(), strict=True))

    def __mul__(self, other: Any) -> Any:
        """Return I m -> PlanarForce, or a multiple of the inertia."""
        if type(other) is PlanarMotion:
            w, m = other.omega, self.mass
            moment = self.inertia * w + self.hx * other.y - self.hy * other.x
            return PlanarForce(moment, m * other.x - self.hy * w, m * other.y + self.hx * w)
        if isinstance(other, Value):
            raise mismatch("*", self, other, "an inertia multiplies a motion")
        return self.rebuilt(item * other for item in self.leaves())

    def __rmul__(self, factor: Scalar) -> PlanarInertia:
        return self.rebuilt(factor * item for item in self.leaves())


Quantity = TypeVar("Quantity", PlanarMotion, PlanarForce, PlanarInertia)


@final
class PlanarTransform(Value):
    """A child frame at (x, y) [m] in its parent, turned by the angle with cosine c and sine s."""

    __slots__ = ("c", "s", "x", "y")

    c: Scalar
    s: Scalar
    x: Scalar
    y: Scalar

    @staticmethod
    def of(angle: Scalar, r: Any) -> PlanarTransform:
        """Return the frame at r = (x, y), turned by angle [rad]."""
        x, y = scalars_of(r, 2, "a planar position")
        return PlanarTransform(cos(angle), sin(angle), x, y)

    def to_spatial(self) -> Transform:
        """Return the same placement in space."""
        return Transform(AxialScrew(2, self.c, self.s, 0.0).R, Vec3(self.x, self.y, 0.0))

    def motion_matrix(self) -> Matrix:
        """Return the book's 3x3 X, parent to child (Eq. 2.77)."""
        c, s, x, y = self.c, self.s, self.x, self.y
        return [[1.0, 0.0, 0.0], [s * x - c * y, c, s], [c * x + s * y, -s, c]]

    def inverse(self) -> PlanarTransform:
        """Return the placement of the parent in the child."""
        c, s, x, y = self.c, self.s, self.x, self.y
        return PlanarTransform(c, -s, -(c * x + s * y), s * x - c * y)

    def __matmul__(self, other: PlanarTransform) -> PlanarTransform:
        """Compose placements, parent <- self <- other."""
        if type(other) is not PlanarTransform:
            raise mismatch(
                "@", self, other, "placements are composed with placements; use apply for the rest"
            )
        c, s = self.c, self.s
        return PlanarTransform(
            c * other.c - s * other.s,
            s * other.c + c * other.s,
            self.x + c * other.x - s * other.y,
            self.y + s * other.x + c * other.y,
        )

    def apply(self, value: Quantity) -> Quantity:
        """Transform from parent to child coordinates: X m, X* f, X* I X^-1."""
        c, s, x, y = self.c, self.s, self.x, self.y
        if type(value) is PlanarMotion:
            vx, vy = value.x - y * value.omega, value.y + x * value.omega
            return PlanarMotion(value.omega, c * vx + s * vy, c * vy - s * vx)
        if type(value) is PlanarForce:
            moment = value.moment - (x * value.y - y * value.x)
            return PlanarForce(moment, c * value.x + s * value.y, c * value.y - s * value.x)
        if type(value) is PlanarInertia:
            m = value.mass
            hx, hy = value.hx - m * x, value.hy - m * y
            inertia = value.inertia - (x * (value.hx + hx) + y * (value.hy + hy))
            return PlanarInertia.from_compact(m, c * hx + s * hy, c * hy - s * hx, inertia)
        raise mismatch(
            "apply", self, value, "a planar placement transforms planar motions, forces and inertias"
        )

    def inverse_apply(self, value: Quantity) -> Quantity:
        """Transform from child to parent coordinates: X^-1 m, X^T f, X^T I X."""
        return self.inverse().apply(value)
