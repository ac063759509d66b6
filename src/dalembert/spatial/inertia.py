"""Spatial inertias: of a rigid body (10 numbers) and of an articulated body (21 numbers).

Both map motions to forces. In Plucker coordinates at an origin O (Featherstone 2008 Eq. 2.63, Table A.3)

    rigid         [[I_O, h x], [-h x, m 1]]      h = m c [kg m], I_O = I_C - m c x c x [kg m^2]
    articulated   [[I, H], [H^T, M]]             I and M symmetric
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, final

from dalembert.scalar import Scalar, absolute, select
from dalembert.spatial.motion_force import Force, Motion
from dalembert.spatial.symmetric import SymMat3, cross_cross
from dalembert.spatial.value import SpatialTypeError, Value, mismatch
from dalembert.spatial.vectors import Mat3, Vec3, block_matrix

if TYPE_CHECKING:
    from dalembert.spatial.acceleration import BodyAcceleration


@final
class RigidInertia(Value):
    """The spatial inertia of a rigid body, kept as mass [kg], h = mass * com [kg m] and I about the origin
    [kg m^2].

    `RigidInertia(mass, com, inertia_at_com)`: `com` and `inertia_at_com` in the body's frame; the inertia is
    a `SymMat3`, a symmetric 3x3 matrix or the three diagonal numbers. Whether the numbers are physical is not
    looked at here, since they may be symbols; see `physical_problems`.

    >>> I = da.RigidInertia(2.0, (0.5, 0.0, 0.0), (0.1, 0.2, 0.3))
    >>> momentum = I * da.spatial.Motion.of([0.0, 0.0, 3.0, 0.0, 0.0, 0.0])
    >>> print(np.round(momentum.to_list(), 6).tolist())
    [0.0, 0.0, 2.4, 0.0, 3.0, 0.0]
    >>> (I + I).mass
    4.0
    """

    __slots__ = ("_euler", "h", "inertia", "mass")

    mass: Scalar
    h: Vec3
    inertia: SymMat3
    _euler: SymMat3 | None

    def __init__(self, mass: Scalar, com: Any, inertia_at_com: Any) -> None:
        c = Vec3.of(com)
        try:
            h = c * mass
        except (TypeError, OverflowError) as error:
            raise SpatialTypeError(f"mass must be a scalar, got {type(mass).__name__}") from error
        self._fill(mass, h, SymMat3.of(inertia_at_com) - cross_cross(c, h))

    @staticmethod
    def from_compact(mass: Scalar, h: Vec3, inertia: SymMat3) -> RigidInertia:
        """Return the inertia of mass, h = mass * com and the inertia about the *origin*; rbi of Table A.3."""
        new = object.__new__(RigidInertia)
        new._fill(mass, h, inertia)
        return new

    @staticmethod
    def from_matrix(matrix: Any) -> RigidInertia:
        """Return the ten parameters of a 6x6 rigid-body inertia (Eq. 2.63)."""
        I = [list(row) for row in matrix]
        h = Vec3(I[2][4], I[0][5], I[1][3])
        about_origin = SymMat3(I[0][0], I[1][1], I[2][2], I[0][1], I[0][2], I[1][2])
        return RigidInertia.from_compact(I[5][5], h, about_origin)

    @staticmethod
    def zero() -> RigidInertia:
        """Return a zero inertia, of literals."""
        return RigidInertia.from_compact(0.0, Vec3.zero(), SymMat3.zero())

    @property
    def com(self) -> Vec3:
        """The centre of mass c = h / m [m]; the origin for a body without mass."""
        divisor: Scalar = select(absolute(self.mass) > 0.0, self.mass, 1.0)
        return Vec3(self.h.x / divisor, self.h.y / divisor, self.h.z / divisor)

    @property
    def inertia_at_com(self) -> SymMat3:
        """The rotational inertia about the centre of mass, I_C = I_O + m c x c x [kg m^2]."""
        at_com: SymMat3 = self.inertia + cross_cross(self.com, self.h)
        return at_com

    @property
    def euler_tensor(self) -> SymMat3:
        """Euler's tensor J = integral of r r^T dm = tr(I)/2 - I [kg m^2], computed once."""
        if self._euler is not None:
            return self._euler
        I = self.inertia
        half = I.trace() * 0.5
        J = SymMat3(half - I.xx, half - I.yy, half - I.zz, -I.xy, -I.xz, -I.yz)
        return self._keep("_euler", J)

    def rebuilt(self, leaves: Iterator[Scalar]) -> RigidInertia:
        return RigidInertia.from_compact(next(leaves), self.h.rebuilt(leaves), self.inertia.rebuilt(leaves))

    def __reduce__(self) -> Any:
        return RigidInertia.from_compact, (self.mass, self.h, self.inertia)

    def matrix(self) -> list[list[Scalar]]:
        """Return the 6x6 matrix [[I, h x], [-h x, m 1]], as nested lists."""
        return ArticulatedInertia.from_rigid(self).matrix()

    def inverse_matrix(self) -> list[list[Scalar]]:
        """Return the 6x6 inverse inertia Phi_O, with a = Phi f + b; Eq. 2.74."""
        c, phi = self.com.skew(), self.inertia_at_com.inverse()
        lower = c @ phi
        corner = lower @ c.transpose() + SymMat3.identity() * (1.0 / self.mass)
        return block_matrix(phi, lower.transpose(), lower, corner)

    def __add__(self, other: Any) -> Any:
        """Return the inertia of two bodies joined rigidly, in one frame; 10 a."""
        if type(other) is RigidInertia:
            mass, inertia = self.mass + other.mass, self.inertia + other.inertia
            return RigidInertia.from_compact(mass, self.h + other.h, inertia)
        if type(other) is ArticulatedInertia:
            return other + self
        raise mismatch("+", self, other, "inertias add to inertias only")

    def __sub__(self, other: RigidInertia) -> RigidInertia:
        if type(other) is not RigidInertia:
            raise mismatch("-", self, other, "a rigid part is taken from a rigid whole only")
        mass, inertia = self.mass - other.mass, self.inertia - other.inertia
        return RigidInertia.from_compact(mass, self.h - other.h, inertia)

    def __mul__(self, other: Any) -> Any:
        """Return I m -> Force (24 m + 18 a; Eq. 2.61), or a multiple of the inertia (10 m)."""
        if type(other) is Motion:
            w, v, h = other.angular, other.linear, self.h
            return Force(self.inertia @ w + h.cross(v), v * self.mass - h.cross(w))
        if isinstance(other, Value):
            raise mismatch("*", self, other, "an inertia multiplies a Motion")
        return RigidInertia.from_compact(self.mass * other, self.h * other, self.inertia * other)

    def __rmul__(self, factor: Scalar) -> RigidInertia:
        return RigidInertia.from_compact(factor * self.mass, factor * self.h, factor * self.inertia)

    def kinetic_energy(self, v: Motion) -> Scalar:
        """Return T = v . I v / 2 [J]; Eq. 2.67."""
        return v.dot(self * v) * 0.5

    def force_of(self, A: BodyAcceleration) -> Force:
        """Return f = I a + v x* I v [N m, N] of a body seen by its co-moving observer;
        33 m + 30 a without the tensor of A.

        Every point r of the body has the acceleration linear + W r, W = alpha x + omega x omega x. Summed
        over the body's mass, with first moment h and Euler's tensor J:

            (1)  f = integral (linear + W r) dm     = mass linear + W h
            (2)  n = integral r x (linear + W r) dm = h x linear + k
            (3)  k_x = integral (y (W r)_z - z (W r)_y) dm
                     = J_yy W_zy - J_zz W_yz + J_yz (W_zz - W_yy) + J_xy W_zx - J_xz W_yx,   cyclic for k_y,
                     k_z
        """
        W, J, h, a = A.tensor, self.euler_tensor, self.h, A.linear
        f = a * self.mass + W @ h  # (1)
        k = Vec3(  # (3)
            J.yy * W.zy - J.zz * W.yz + J.yz * (W.zz - W.yy) + J.xy * W.zx - J.xz * W.yx,
            J.zz * W.xz - J.xx * W.zx + J.xz * (W.xx - W.zz) + J.yz * W.xy - J.xy * W.zy,
            J.xx * W.yx - J.yy * W.xy + J.xy * (W.yy - W.xx) + J.xz * W.yz - J.yz * W.xz,
        )
        return Force(h.cross(a) + k, f)  # (2)


@final
class ArticulatedInertia(Value):
    """The inertia [[I, H], [H^T, M]] that a body shows with all that hangs on it; 21 numbers (Table A.3)."""

    __slots__ = ("H", "I", "M")

    I: SymMat3
    H: Mat3
    M: SymMat3

    @staticmethod
    def from_rigid(rigid: RigidInertia) -> ArticulatedInertia:
        """Return the same inertia in the larger form: H = h x, M = m 1."""
        m = rigid.mass
        return ArticulatedInertia(rigid.inertia, rigid.h.skew(), SymMat3(m, m, m, 0.0, 0.0, 0.0))

    @staticmethod
    def from_matrix(matrix: Any) -> ArticulatedInertia:
        """Return the 21 numbers of a symmetric 6x6 matrix."""
        A = [list(row) for row in matrix]
        return ArticulatedInertia.from_upper(lambda i, j: A[i][j])

    @staticmethod
    def from_upper(entry: Callable[[int, int], Scalar]) -> ArticulatedInertia:
        """Return the inertia whose upper triangle is entry(i, j), i <= j < 6."""
        A = {(i, j): entry(i, j) for i in range(6) for j in range(i, 6)}
        I = SymMat3(A[0, 0], A[1, 1], A[2, 2], A[0, 1], A[0, 2], A[1, 2])
        M = SymMat3(A[3, 3], A[4, 4], A[5, 5], A[3, 4], A[3, 5], A[4, 5])
        return ArticulatedInertia(I, Mat3(*[A[i, j] for i in range(3) for j in range(3, 6)]), M)

    @staticmethod
    def zero() -> ArticulatedInertia:
        """Return a zero inertia, of literals."""
        return ArticulatedInertia(SymMat3.zero(), Mat3.zero(), SymMat3.zero())

    def matrix(self) -> list[list[Scalar]]:
        """Return the 6x6 matrix, as nested lists."""
        return block_matrix(self.I, self.H, self.H.transpose(), self.M)

    def __add__(self, other: Any) -> ArticulatedInertia:
        """Return I^A + I^A (21 a) or I^A + I (15 a)."""
        if type(other) is ArticulatedInertia:
            return ArticulatedInertia(self.I + other.I, self.H + other.H, self.M + other.M)
        if type(other) is RigidInertia:
            H, M, h, m = self.H, self.M, other.h, other.mass
            H = Mat3(H.xx, H.xy - h.z, H.xz + h.y, H.yx + h.z, H.yy, H.yz - h.x, H.zx - h.y, H.zy + h.x, H.zz)
            M = SymMat3(M.xx + m, M.yy + m, M.zz + m, M.xy, M.xz, M.yz)
            return ArticulatedInertia(self.I + other.inertia, H, M)
        raise mismatch("+", self, other, "inertias add to inertias only")

    def __sub__(self, other: ArticulatedInertia) -> ArticulatedInertia:
        if type(other) is not ArticulatedInertia:
            raise mismatch("-", self, other, "articulated inertias are subtracted from each other only")
        return ArticulatedInertia(self.I - other.I, self.H - other.H, self.M - other.M)

    def __mul__(self, other: Any) -> Any:
        """Return I^A m -> Force (36 m + 30 a), or a multiple of the inertia (21 m)."""
        if type(other) is Motion:
            w, v = other.angular, other.linear
            return Force(self.I @ w + self.H @ v, self.M @ v + self.H.transposed_times(w))
        if isinstance(other, Value):
            raise mismatch("*", self, other, "an inertia multiplies a Motion")
        return ArticulatedInertia(self.I * other, self.H * other, self.M * other)

    def __rmul__(self, factor: Scalar) -> ArticulatedInertia:
        return ArticulatedInertia(factor * self.I, factor * self.H, factor * self.M)
