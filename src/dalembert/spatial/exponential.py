"""Exponential maps of SO(3), SE(3) and SE(2), their inverses and Jacobians: straight lines on curved spaces.

A rotation vector phi = axis * angle [rad] turns a frame, R = exp(phi) (child to parent). A constant body
velocity (omega, v) during one unit of time moves a frame to exp(omega, v). With t = |phi| and [phi] = phi x

    R   = 1 + A [phi] + B [phi]^2          A = sin t / t,  B = (1 - cos t) / t^2
    J_l = 1 + B [phi] + C [phi]^2          C = (t - sin t) / t^3            J_r = J_l^T = R^T J_l

and omega = J_l phi' in parent coordinates, J_r phi' in child coordinates. All coefficients are functions of
t^2; where t^2 < 1/4 they are summed as power series, so that nothing is divided by zero and no digits cancel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dalembert.scalar import Scalar, absolute, atan2, cos, select, sin, sqrt
from dalembert.spatial.motion_force import Motion
from dalembert.spatial.rotations import quaternion_of_rotation
from dalembert.spatial.transform import Placement, Transform
from dalembert.spatial.vectors import Mat3, Vec3

__all__ = [
    "quaternion_exp",
    "quaternion_log",
    "se2_exp",
    "se2_log",
    "se3_exp",
    "se3_left_jacobian",
    "se3_left_jacobian_inverse",
    "se3_log",
    "se3_right_jacobian",
    "se3_right_jacobian_inverse",
    "so3_exp",
    "so3_left_jacobian",
    "so3_left_jacobian_inverse",
    "so3_log",
    "so3_right_jacobian",
    "so3_right_jacobian_inverse",
]

SMALL_ANGLE_SQUARED: Final = 0.25
"""t^2 [rad^2] below which coefficients are summed as series; eight terms then leave an error below 1e-16."""

SMALL_TANGENT_SQUARED: Final = 1e-3
"""Squared tangent of the half angle below which the logarithm of a quaternion is summed as a series."""

# Coefficients of (-t^2)^k: 1/(2k+1)!, 1/(2k+2)!, ... and Bernoulli's of (1 - A/(2B)) / t^2, of (t^2)^k.
_SERIES_A: Final = (
    1.0,
    1 / 6,
    1 / 120,
    1 / 5040,
    1 / 362880,
    1 / 39916800,
    1 / 6227020800,
    1 / 1307674368000,
)
_SERIES_B: Final = (1 / 2, 1 / 24, 1 / 720, 1 / 40320, 1 / 3628800, 1 / 479001600, 1 / 87178291200)
_SERIES_C: Final = (*_SERIES_A[1:], 1 / 355687428096000)
_SERIES_E: Final = (*_SERIES_B[1:], 1 / 20922789888000)
_SERIES_F: Final = (*_SERIES_C[1:], 1 / 121645100408832000)
_SERIES_D: Final = (
    1 / 12, 1 / 720, 1 / 30240, 1 / 1209600, 1 / 47900160, 691 / 1307674368000, 1 / 74724249600,
    3617 / 10670622842880000,
)  # fmt: skip


def so3_exp(phi: Vec3) -> Mat3:
    """R (child to parent) of the rotation vector phi [rad]; no singularity at zero."""
    A, B, _ = _coefficients(phi)
    return _one_plus(A, B, phi)


def so3_log(R: Mat3) -> Vec3:
    """The rotation vector phi [rad], |phi| <= pi, of R (child to parent)."""
    return quaternion_log(quaternion_of_rotation(R))


def so3_left_jacobian(phi: Vec3) -> Mat3:
    """J_l: omega in parent coordinates = J_l phi'."""
    _, B, C = _coefficients(phi)
    return _one_plus(B, C, phi)


def so3_right_jacobian(phi: Vec3) -> Mat3:
    """J_r = J_l(-phi) = J_l^T: omega in child coordinates = J_r phi'."""
    return so3_left_jacobian(phi).transpose()


def so3_left_jacobian_inverse(phi: Vec3) -> Mat3:
    """J_l^-1 = 1 - [phi]/2 + D [phi]^2, D = (1 - A/(2B)) / t^2; singular at |phi| = 2 pi."""
    A, B, _ = _coefficients(phi)
    tt = phi.dot(phi)
    small, safe, _ = _angle(tt)
    D = select(small, _series(_SERIES_D, tt), (1.0 - A / (B + B)) / safe)
    return _one_plus(-0.5, D, phi)


def so3_right_jacobian_inverse(phi: Vec3) -> Mat3:
    """J_r^-1 = (J_l^-1)^T: phi' = J_r^-1 omega, omega in child coordinates."""
    return so3_left_jacobian_inverse(phi).transpose()


def quaternion_exp(phi: Vec3) -> list[Scalar]:
    """The unit quaternion [w, x, y, z] of the rotation vector phi [rad]: (cos(t/2), phi sin(t/2)/t)."""
    half = phi * 0.5
    tt = half.dot(half)
    small, _, t = _angle(tt)
    w = select(small, 1.0 - tt * _series(_SERIES_B, -tt), cos(t))
    scale = select(small, _series(_SERIES_A, -tt), sin(t) / t) * 0.5
    return [w, phi.x * scale, phi.y * scale, phi.z * scale]


def quaternion_log(q: Sequence[Scalar]) -> Vec3:
    """The rotation vector phi [rad], |phi| <= pi, of a unit quaternion; q and -q have the same."""
    turned = q[0] < 0.0
    w = absolute(q[0])
    v = Vec3(q[1], q[2], q[3])
    ss = v.dot(v)
    small = ss < w * w * SMALL_TANGENT_SQUARED
    s = sqrt(select(small, 1.0, ss))
    w_small = select(small, w, 1.0)
    tangent = ss / (w_small * w_small)
    near = _series((1.0, 1 / 3, 1 / 5, 1 / 7, 1 / 9, 1 / 11), -tangent) / w_small
    scale = 2.0 * select(small, near, atan2(s, w) / s)
    phi: Vec3 = v * select(turned, -scale, scale)
    return phi


def se3_exp(twist: Motion) -> Transform:
    """Where a frame gets with the constant body velocity (omega, v) in one unit of time: (R, J_l v)."""
    A, B, C = _coefficients(twist.angular)
    return Transform(_one_plus(A, B, twist.angular), _one_plus(B, C, twist.angular) @ twist.linear)


def se3_log(X: Placement) -> Motion:
    """The constant body velocity that takes the parent frame to the child frame in one unit of time."""
    phi = so3_log(X.R)
    return Motion(phi, so3_left_jacobian_inverse(phi) @ X.p)


def se3_left_jacobian(twist: Motion) -> list[list[Scalar]]:
    """6x6, angular first: exp(twist + d) = exp(J_l d) exp(twist) for small d; [[J, 0], [Q, J]]."""
    J, Q = so3_left_jacobian(twist.angular), _translation_block(twist)
    return _lower_blocks(J, Q)


def se3_right_jacobian(twist: Motion) -> list[list[Scalar]]:
    """6x6, angular first: exp(twist + d) = exp(twist) exp(J_r d) for small d; J_r(twist) = J_l(-twist)."""
    return se3_left_jacobian(-twist)


def se3_left_jacobian_inverse(twist: Motion) -> list[list[Scalar]]:
    """The inverse of `se3_left_jacobian`: [[K, 0], [-K Q K, K]] with K = J^-1 of SO(3)."""
    K, Q = so3_left_jacobian_inverse(twist.angular), _translation_block(twist)
    return _lower_blocks(K, -(K @ Q @ K))


def se3_right_jacobian_inverse(twist: Motion) -> list[list[Scalar]]:
    """The inverse of `se3_right_jacobian`: the rate of log under a body velocity of the child."""
    return se3_left_jacobian_inverse(-twist)


def se2_exp(omega: Scalar, vx: Scalar, vy: Scalar) -> tuple[Scalar, Scalar, Scalar]:
    """(x, y, angle) after one unit of time with the constant body velocity (omega, vx, vy) in the plane."""
    A, B, _ = _coefficients(Vec3(0.0, 0.0, omega))
    along, across = A, B * omega
    return along * vx - across * vy, across * vx + along * vy, omega


def se2_log(x: Scalar, y: Scalar, angle: Scalar) -> tuple[Scalar, Scalar, Scalar]:
    """The constant body velocity (omega, vx, vy) that leads to (x, y, angle); |angle| < 2 pi."""
    A, B, _ = _coefficients(Vec3(0.0, 0.0, angle))
    along, across = A / (B + B), angle * 0.5
    return angle, along * x + across * y, along * y - across * x


def _coefficients(phi: Vec3) -> tuple[Scalar, Scalar, Scalar]:
    """A, B, C of the module's formulas."""
    tt = phi.dot(phi)
    small, safe, t = _angle(tt)
    sine, half_sine = sin(t), sin(t * 0.5)
    A = select(small, _series(_SERIES_A, -tt), sine / t)
    B = select(small, _series(_SERIES_B, -tt), 2.0 * half_sine * half_sine / safe)
    C = select(small, _series(_SERIES_C, -tt), (t - sine) / (safe * t))
    return A, B, C


def _angle(tt: Scalar) -> tuple[Scalar, Scalar, Scalar]:
    """Whether t^2 is small, and t^2 and t with one in its place there: the branch not taken stays finite."""
    small = tt < SMALL_ANGLE_SQUARED
    safe = select(small, 1.0, tt)
    return small, safe, sqrt(safe)


def _series(coefficients: tuple[float, ...], x: Scalar) -> Scalar:
    """The polynomial with these coefficients of x^0, x^1, ..., by Horner's scheme."""
    total: Scalar = coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        total = total * x + coefficient
    return total


def _one_plus(a: Scalar, b: Scalar, phi: Vec3) -> Mat3:
    """1 + a [phi] + b [phi]^2."""
    x, y, z = phi.x, phi.y, phi.z
    xx, yy, zz = b * x * x, b * y * y, b * z * z
    xy, xz, yz = b * x * y, b * x * z, b * y * z
    return Mat3(
        1.0 - (yy + zz), xy - a * z, xz + a * y,
        xy + a * z, 1.0 - (xx + zz), yz - a * x,
        xz - a * y, yz + a * x, 1.0 - (xx + yy),
    )  # fmt: skip


def _translation_block(twist: Motion) -> Mat3:
    """Q(phi, rho) of the Jacobian of SE(3); Barfoot, State Estimation for Robotics, Eq. 7.86.

    With P = [phi], V = [rho], E = (cos t - 1 + t^2/2) / t^4 and F = (sin t - t + t^3/6) / t^5:
    Q = V/2 + C (P V + V P + P V P) + E (P P V + V P P - 3 P V P) + (E - 3 F)/2 (P V P P + P P V P).
    """
    phi = twist.angular
    P, V = phi.skew(), twist.linear.skew()
    tt = phi.dot(phi)
    small, safe, t = _angle(tt)
    _, _, C = _coefficients(phi)
    half_sine = sin(t * 0.5)
    E = select(small, _series(_SERIES_E, -tt), (0.5 * safe - 2.0 * half_sine * half_sine) / (safe * safe))
    F = select(small, _series(_SERIES_F, -tt), (sin(t) - t + t * safe / 6.0) / (safe * safe * t))
    PV, VP = P @ V, V @ P
    PVP = P @ VP
    outer = P @ PV + VP @ P - PVP * 3.0
    Q: Mat3 = V * 0.5 + (PV + VP + PVP) * C + outer * E + (PVP @ P + P @ PVP) * (0.5 * (E - 3.0 * F))
    return Q


def _lower_blocks(diagonal: Mat3, below: Mat3) -> list[list[Scalar]]:
    top = [[*row, 0.0, 0.0, 0.0] for row in diagonal.to_list()]
    return top + [[*a, *b] for a, b in zip(below.to_list(), diagonal.to_list(), strict=True)]
