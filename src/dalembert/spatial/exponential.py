"""Exponential maps of SO(3), SE(3) and SE(2), their inverses and Jacobians.

A rotation vector phi = axis * angle [rad] turns a frame, R = exp(phi) (child to parent). A constant body
velocity (omega, v) during one unit of time moves a frame to exp(omega, v). With t = |phi| and [phi] = phi x

    R   = 1 + A [phi] + B [phi]^2          A = sin t / t,  B = (1 - cos t) / t^2
    J_l = 1 + B [phi] + C [phi]^2          C = (t - sin t) / t^3            J_r = J_l^T = R^T J_l

and omega = J_l phi' in parent coordinates, J_r phi' in child coordinates. Nothing is divided by zero and no
digits cancel at small angles: all coefficients are smooth functions of s = t^2. Where s < 1/4 they are summed
as power series, elsewhere computed in closed form, kept away from 0/0, and `select` joins the two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import accumulate
from typing import Final, final

from dalembert.host.process import renew_after_fork
from dalembert.scalar import Scalar, absolute, atan2, cos, select, sin, sqrt
from dalembert.spatial.motion_force import Motion
from dalembert.spatial.rotations import (
    quaternion_conjugate,
    quaternion_normalized,
    quaternion_of_rotation,
    quaternion_product,
)
from dalembert.spatial.transform import Placement, Transform
from dalembert.spatial.vectors import Mat3, Vec3, block_matrix

SMALL_ANGLE_SQUARED: Final = 0.25
"""s [rad^2] below which the series are used: seven terms leave less than a rounding of float64."""


def polynomial(coefficients: tuple[float, ...], x: Scalar) -> Scalar:
    """Return coefficients[0] + coefficients[1] x + ..., by Horner's scheme."""
    total: Scalar = coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        total = total * x + coefficient
    return total


def _alternating(n: int, *, terms: int = 7, scale: float = 1.0) -> tuple[float, ...]:
    """Return 1/n!, -scale/(n+2)!, scale^2/(n+4)!, ..."""
    factorials = list(accumulate(range(1, n + 2 * terms), lambda product, k: product * k, initial=1))
    return tuple((-scale) ** k / factorials[n + 2 * k] for k in range(terms))


def _derivative(coefficients: tuple[float, ...]) -> tuple[float, ...]:
    """Return the coefficients of the polynomial's derivative."""
    return tuple(k * c for k, c in enumerate(coefficients) if k)


def _coefficient(
    series: tuple[float, ...], closed_form: Callable[[ExponentialCoefficients], Scalar]
) -> cached_property[Scalar]:
    """Return a coefficient by its power series in s at small angles, by its closed form elsewhere."""

    def value(self: ExponentialCoefficients) -> Scalar:
        large = closed_form(self)
        return select(self._small, polynomial(series, self._s), large)

    return cached_property(value)


_D_SERIES: Final = (
    1 / 12, 1 / 720, 1 / 30240, 1 / 1209600, 1 / 47900160, 691 / 1307674368000, 1 / 74724249600,
)  # fmt: skip


@final
class ExponentialCoefficients:
    """The coefficients at one s = t^2, each computed once, when first read.

    A = sin t / t              B = (1 - cos t) / t^2          C = (t - sin t) / t^3 = (1 - A) / s
    D = (1 - A/(2B)) / t^2     E = (1/2 - B) / s              F = (1/6 - C) / s

    `half_cosine` = cos(t/2), `half_sine` = sin(t/2) / (t/2), `B_rate` = dB/ds, `C_rate` = dC/ds.
    """

    def __init__(self, s: Scalar) -> None:
        self._s = s
        self._small = s < SMALL_ANGLE_SQUARED
        self._safe = select(self._small, 1.0, s)
        self._angle = sqrt(self._safe)

    half_cosine = _coefficient(_alternating(0, scale=0.25), lambda k: cos(0.5 * k._angle))
    half_sine = _coefficient(
        _alternating(1, terms=6, scale=0.25), lambda k: sin(half := 0.5 * k._angle) / half
    )
    A = _coefficient(_alternating(1), lambda k: sin(k._angle) / k._angle)
    C = _coefficient(_alternating(3), lambda k: (1.0 - k.A) / k._safe)
    D = _coefficient(_D_SERIES, lambda k: (1.0 - k.A / (2.0 * k.B)) / k._safe)
    E = _coefficient(_alternating(4), lambda k: (0.5 - k.B) / k._safe)
    F = _coefficient(_alternating(5), lambda k: (1 / 6 - k.C) / k._safe)
    B_rate = _coefficient(
        _derivative(_alternating(2, terms=8)), lambda k: (k.A - 2.0 * k.B) / (2.0 * k._safe)
    )
    C_rate = _coefficient(
        _derivative(_alternating(3, terms=8)), lambda k: (k.B - 3.0 * k.C) / (2.0 * k._safe)
    )

    @cached_property
    def B(self) -> Scalar:
        """(1 - cos t) / s, by the half angle, as nothing cancels there."""
        return 0.5 * self.half_sine * self.half_sine


for _property in vars(ExponentialCoefficients).values():
    if isinstance(_property, cached_property) and hasattr(_property, "lock"):  # up to Python 3.11
        renew_after_fork(_property, "lock")


SMALL_SINE_SQUARED: Final = 1e-6
"""Squared sine of the half angle below which the logarithm of a quaternion is summed as a series."""


def so3_exp(phi: Vec3) -> Mat3:
    """Return R (child to parent) of the rotation vector phi [rad]; no singularity at zero."""
    k = _coefficients(phi)
    return _one_plus(k.A, k.B, phi)


def so3_log(R: Mat3) -> Vec3:
    """Return the rotation vector phi [rad], |phi| <= pi, of R (child to parent)."""
    return quaternion_log(quaternion_of_rotation(R))


def so3_left_jacobian(phi: Vec3) -> Mat3:
    """Return J_l: omega in parent coordinates = J_l phi'."""
    k = _coefficients(phi)
    return _one_plus(k.B, k.C, phi)


def so3_left_jacobian_times(phi: Vec3, v: Vec3) -> Vec3:
    """Return J_l v, at a lower cost than the matrix."""
    k = _coefficients(phi)
    return _one_plus_times(k.B, k.C, phi, v)


def so3_right_jacobian(phi: Vec3) -> Mat3:
    """Return J_r = J_l(-phi) = J_l^T: omega in child coordinates = J_r phi'."""
    return so3_left_jacobian(phi).transpose()


def so3_left_jacobian_inverse(phi: Vec3) -> Mat3:
    """Return J_l^-1 = 1 - [phi]/2 + D [phi]^2, D = (1 - A/(2B)) / t^2; singular at |phi| = 2 pi."""
    return _one_plus(-0.5, _coefficients(phi).D, phi)


def so3_left_jacobian_inverse_times(phi: Vec3, v: Vec3) -> Vec3:
    """Return J_l^-1 v, at a lower cost than the matrix."""
    return _one_plus_times(-0.5, _coefficients(phi).D, phi, v)


def so3_right_jacobian_inverse(phi: Vec3) -> Mat3:
    """Return J_r^-1 = (J_l^-1)^T: phi' = J_r^-1 omega, omega in child coordinates."""
    return so3_left_jacobian_inverse(phi).transpose()


def quaternion_exp(phi: Vec3) -> list[Scalar]:
    """Return the unit quaternion (cos(t/2), phi sin(t/2)/t) of the rotation vector phi [rad]."""
    k = _coefficients(phi)
    scale = 0.5 * k.half_sine
    return [k.half_cosine, phi.x * scale, phi.y * scale, phi.z * scale]


def quaternion_log(q: Sequence[Scalar]) -> Vec3:
    """Return the rotation vector phi [rad], |phi| <= pi, of a unit quaternion q, the same for -q."""
    turned = q[0] < 0.0
    w = absolute(q[0])
    v = Vec3(q[1], q[2], q[3])
    ss = v.dot(v)
    small = ss < SMALL_SINE_SQUARED
    s = sqrt(select(small, 1.0, ss))
    # atan(x)/x with x = s/w; away from small angles w may be zero.
    w_small = select(small, w, 1.0)
    near = polynomial((1.0, -1 / 3, 1 / 5), ss / (w_small * w_small)) / w_small
    scale = 2.0 * select(small, near, atan2(s, w) / s)
    phi: Vec3 = v * select(turned, -scale, scale)
    return phi


def quaternion_integrate(q: Sequence[Scalar], phi: Vec3) -> list[Scalar]:
    """Return the unit quaternion of q's frame after the turn phi [rad] in its own coordinates: q exp(phi)."""
    return quaternion_normalized(quaternion_product(q, quaternion_exp(phi)))


def quaternion_difference(q0: Sequence[Scalar], q1: Sequence[Scalar]) -> Vec3:
    """Return the shorter turn phi [rad] from q0 to q1, in the coordinates of q0's frame."""
    return quaternion_log(quaternion_product(quaternion_conjugate(q0), q1))


def se3_exp(twist: Motion) -> Transform:
    """Return the pose after unit time at constant body velocity (omega, v): (R, J_l v)."""
    return Transform(so3_exp(twist.angular), so3_left_jacobian_times(twist.angular, twist.linear))


def se3_log(X: Placement) -> Motion:
    """Return the constant body velocity that takes the parent to the child frame in one unit of time."""
    phi = so3_log(X.R)
    return Motion(phi, so3_left_jacobian_inverse_times(phi, X.p))


def se3_left_jacobian(twist: Motion) -> list[list[Scalar]]:
    """Return J_l 6x6, angular first: exp(twist + d) = exp(J_l d) exp(twist) for small d; [[J, 0], [Q, J]]."""
    J, Q = so3_left_jacobian(twist.angular), _translation_block(twist)
    return block_matrix(J, Mat3.zero(), Q, J)


def se3_right_jacobian(twist: Motion) -> list[list[Scalar]]:
    """Return J_r 6x6, angular first: exp(twist + d) = exp(twist) exp(J_r d) for small d."""
    return se3_left_jacobian(-twist)


def se3_left_jacobian_inverse(twist: Motion) -> list[list[Scalar]]:
    """Return the inverse of `se3_left_jacobian`: [[K, 0], [-K Q K, K]] with K = J^-1 of SO(3)."""
    K, Q = so3_left_jacobian_inverse(twist.angular), _translation_block(twist)
    return block_matrix(K, Mat3.zero(), -(K @ Q @ K), K)


def se3_right_jacobian_inverse(twist: Motion) -> list[list[Scalar]]:
    """Return the inverse of `se3_right_jacobian`: the rate of log under a body velocity of the child."""
    return se3_left_jacobian_inverse(-twist)


def se2_exp(omega: Scalar, vx: Scalar, vy: Scalar) -> tuple[Scalar, Scalar, Scalar]:
    """Return (x, y, angle) after unit time at the constant body velocity in the plane."""
    k = ExponentialCoefficients(omega * omega)
    along, across = k.A, k.B * omega
    return along * vx - across * vy, across * vx + along * vy, omega


def se2_log(x: Scalar, y: Scalar, angle: Scalar) -> tuple[Scalar, Scalar, Scalar]:
    """Return the constant body velocity (omega, vx, vy) that leads to (x, y, angle); |angle| < 2 pi."""
    k = ExponentialCoefficients(angle * angle)
    along, across = k.A / (2.0 * k.B), 0.5 * angle
    return angle, along * x + across * y, along * y - across * x


def _coefficients(phi: Vec3) -> ExponentialCoefficients:
    return ExponentialCoefficients(phi.dot(phi))


def _one_plus(a: Scalar, b: Scalar, phi: Vec3) -> Mat3:
    """Return 1 + a [phi] + b [phi]^2."""
    x, y, z = phi.x, phi.y, phi.z
    xx, yy, zz = b * x * x, b * y * y, b * z * z
    xy, xz, yz = b * x * y, b * x * z, b * y * z
    return Mat3(
        1.0 - (yy + zz), xy - a * z, xz + a * y,
        xy + a * z, 1.0 - (xx + zz), yz - a * x,
        xz - a * y, yz + a * x, 1.0 - (xx + yy),
    )  # fmt: skip


def _one_plus_times(a: Scalar, b: Scalar, phi: Vec3, v: Vec3) -> Vec3:
    """Return (1 + a [phi] + b [phi]^2) v; 18 m + 12 a."""
    turned = phi.cross(v)
    product: Vec3 = v + turned * a + phi.cross(turned) * b
    return product


def _translation_block(twist: Motion) -> Mat3:
    """Return Q(phi, rho) of the Jacobian of SE(3); Barfoot, State Estimation for Robotics, Eq. 7.86.

    With P = [phi], V = [rho], and C, E, F of `ExponentialCoefficients`:
    Q = V/2 + C (P V + V P + P V P) + E (P P V + V P P - 3 P V P) + (E - 3 F)/2 (P V P P + P P V P).
    """
    k = _coefficients(twist.angular)
    P, V = twist.angular.skew(), twist.linear.skew()
    PV, VP = P @ V, V @ P
    PVP = P @ VP
    outer = P @ PV + VP @ P - PVP * 3.0
    Q: Mat3 = V * 0.5 + (PV + VP + PVP) * k.C + outer * k.E + (PVP @ P + P @ PVP) * (0.5 * (k.E - 3.0 * k.F))
    return Q
