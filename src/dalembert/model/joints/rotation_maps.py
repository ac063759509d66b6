"""Rotations and rigid displacements as exponentials: SO(3) by quaternions, SE(3), SE(2), and their
logarithms.

A rotation vector w = angle times axis [rad], s = w . w. All maps are smooth functions of s, computed by
their series near zero and in closed form elsewhere; `select` joins the two, with the closed form kept away
from 0/0, so that no scalar kind meets a NaN at zero. Quaternions are (w, x, y, z), Hamilton, of R (child to
parent coordinates).
"""

from __future__ import annotations

from collections.abc import Sequence

from dalembert.errors import StateError
from dalembert.scalar import Scalar, atan2, cos, select, sin, sqrt
from dalembert.spatial import Mat3, Vec3

__all__ = [
    "ExponentialCoefficients",
    "difference_rigid",
    "integrate_rigid",
    "quaternion_difference",
    "quaternion_from_rotation",
    "quaternion_integrate",
    "quaternion_log",
    "quaternion_product",
    "quaternion_rate",
    "quaternion_unit",
    "rotation_from_quaternion",
    "sinc",
]

SERIES_LIMIT = 0.25
"""Below this s = angle² [rad²] the series are used: seven terms leave less than a rounding of float64."""

LOG_SERIES_LIMIT = 1.0e-6
"""Below this squared length of a quaternion's vector part its logarithm is a series of three terms."""


def polynomial(s: Scalar, coefficients: Sequence[float]) -> Scalar:
    """coefficients[0] + coefficients[1] s + …, by Horner's rule."""
    total: Scalar = coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        total = total * s + coefficient
    return total


def _alternating(first_factorial: int, terms: int = 7) -> list[float]:
    """1/n!, -1/(n+2)!, 1/(n+4)! …"""
    coefficients, factorial = [], 1.0
    for k in range(2, first_factorial + 1):
        factorial *= k
    n, sign = first_factorial, 1.0
    for _ in range(terms):
        coefficients.append(sign / factorial)
        factorial *= (n + 1) * (n + 2)
        n, sign = n + 2, -sign
    return coefficients


SINC_SERIES = _alternating(1)
COSINE_SERIES = [1.0] + [-c for c in _alternating(2)]
C_SERIES = _alternating(3)
B_RATE_SERIES = [(k + 1) * c for k, c in enumerate(_alternating(2, 8)[1:])]
C_RATE_SERIES = [(k + 1) * c for k, c in enumerate(_alternating(3, 8)[1:])]
D_SERIES = [
    1 / 12, 1 / 720, 1 / 30240, 1 / 1209600, 1 / 47900160, 691 / 1307674368000, 1 / 74724249600,
]  # fmt: skip


class ExponentialCoefficients:
    """The functions of s = angle² in the exponential of a rotation vector w, computed once for one w.

    A = sin(a)/a, B = (1 - cos a)/a², C = (a - sin a)/a³, D = (1 - A/(2B))/a²:
    exp = 1 + A w x + B w x w x,  left Jacobian V = 1 + B w x + C w x w x,  V^-1 = 1 - ½ w x + D w x w x.
    `B_rate` and `C_rate` are dB/ds and dC/ds.
    """

    __slots__ = ("A", "B", "_safe", "_small", "s")

    def __init__(self, s: Scalar) -> None:
        self.s = s
        self._small = s < SERIES_LIMIT
        self._safe = select(self._small, 1.0, s)
        self.A = sinc(s)
        half = sinc(0.25 * s)
        self.B = 0.5 * half * half

    @property
    def C(self) -> Scalar:
        return select(self._small, polynomial(self.s, C_SERIES), (1.0 - self.A) / self._safe)

    @property
    def D(self) -> Scalar:
        return select(self._small, polynomial(self.s, D_SERIES), (1.0 - self.A / (2.0 * self.B)) / self._safe)

    @property
    def B_rate(self) -> Scalar:
        closed = (self.A - 2.0 * self.B) / (2.0 * self._safe)
        return select(self._small, polynomial(self.s, B_RATE_SERIES), closed)

    @property
    def C_rate(self) -> Scalar:
        closed = (self.B - 3.0 * self.C) / (2.0 * self._safe)
        return select(self._small, polynomial(self.s, C_RATE_SERIES), closed)


def sinc(s: Scalar) -> Scalar:
    """sin(a)/a of s = a²."""
    small = s < SERIES_LIMIT
    a = sqrt(select(small, 1.0, s))
    return select(small, polynomial(s, SINC_SERIES), sin(a) / a)


def rotation_from_quaternion(w: Scalar, x: Scalar, y: Scalar, z: Scalar) -> Mat3:
    """R = E^T with E of Featherstone 2008 Eq. 4.12, for a unit quaternion."""
    x2, y2, z2 = x + x, y + y, z + z
    xx, yy, zz = x * x2, y * y2, z * z2
    xy, xz, yz = x * y2, x * z2, y * z2
    wx, wy, wz = w * x2, w * y2, w * z2
    return Mat3(
        1.0 - (yy + zz), xy - wz, xz + wy,
        xy + wz, 1.0 - (xx + zz), yz - wx,
        xz - wy, yz + wx, 1.0 - (xx + yy),
    )  # fmt: skip


def quaternion_from_rotation(R: Mat3) -> list[Scalar]:
    """The unit quaternion of R with w >= 0, from the largest of its four components (Shepperd 1978)."""
    r11, r12, r13, r21, r22, r23, r31, r32, r33 = R
    squares = (1.0 + r11 + r22 + r33, 1.0 + r11 - r22 - r33, 1.0 - r11 + r22 - r33, 1.0 - r11 - r22 + r33)
    a, b, c = r32 - r23, r13 - r31, r21 - r12
    d, e, f = r21 + r12, r13 + r31, r32 + r23
    rows = ((squares[0], a, b, c), (a, squares[1], d, e), (b, d, squares[2], f), (c, e, f, squares[3]))
    best: tuple[Scalar, ...] = rows[0]
    largest = squares[0]
    for row, square in zip(rows[1:], squares[1:]):
        larger = square > largest
        best = tuple(select(larger, new, old) for new, old in zip(row, best))
        largest = select(larger, square, largest)
    scale = select(best[0] < 0.0, -0.5, 0.5) / sqrt(largest)
    return [component * scale for component in best]


def quaternion_product(p: Sequence[Scalar], q: Sequence[Scalar]) -> list[Scalar]:
    """Hamilton's product: R(p q) = R(p) R(q)."""
    pw, px, py, pz = p
    qw, qx, qy, qz = q
    return [
        pw * qw - px * qx - py * qy - pz * qz,
        pw * qx + px * qw + py * qz - pz * qy,
        pw * qy - px * qz + py * qw + pz * qx,
        pw * qz + px * qy - py * qx + pz * qw,
    ]


def quaternion_unit(p: Sequence[Scalar]) -> list[Scalar]:
    """p scaled to unit norm. Four plain zeros raise; in a batch they give NaN, in their own row only."""
    square = p[0] * p[0] + p[1] * p[1] + p[2] * p[2] + p[3] * p[3]
    if type(square) is float and square == 0.0:
        raise StateError("a quaternion of four zeros is no rotation; no rotation is (1, 0, 0, 0)")
    scale = 1.0 / sqrt(square)
    return [component * scale for component in p]


def quaternion_rate(p: Sequence[Scalar], omega: Sequence[Scalar]) -> list[Scalar]:
    """dp/dt of a frame turning with omega [rad/s] in its own coordinates (Eq. 4.13)."""
    w, x, y, z = p
    a, b, c = (0.5 * component for component in omega)
    return [-(x * a + y * b + z * c), w * a - z * b + y * c, z * a + w * b - x * c, -(y * a) + x * b + w * c]


def quaternion_integrate(p: Sequence[Scalar], rotation: Vec3) -> list[Scalar]:
    """p times the exponential of a rotation vector in successor coordinates, of unit norm."""
    quarter = 0.25 * rotation.dot(rotation)
    small = quarter < SERIES_LIMIT
    half_angle = sqrt(select(small, 1.0, quarter))
    c = select(small, polynomial(quarter, COSINE_SERIES), cos(half_angle))
    vector = rotation * (0.5 * sinc(quarter))
    return quaternion_unit(quaternion_product(p, [c, vector.x, vector.y, vector.z]))


def quaternion_log(p: Sequence[Scalar]) -> Vec3:
    """The rotation vector of at most pi of a unit quaternion; p and -p give the same."""
    sign = select(p[0] < 0.0, -1.0, 1.0)
    w = sign * p[0]
    vector: Vec3 = Vec3(p[1], p[2], p[3]) * sign
    square = vector.dot(vector)
    small = square < LOG_SERIES_LIMIT
    length = sqrt(select(small, 1.0, square))
    # atan(t)/t with t = length/w; away from small angles w may be zero.
    safe_w = select(small, w, 1.0)
    t2 = square / (safe_w * safe_w)
    series = 2.0 / safe_w * polynomial(t2, (1.0, -1 / 3, 1 / 5))
    log: Vec3 = vector * select(small, series, 2.0 * atan2(length, w) / length)
    return log


def quaternion_difference(p0: Sequence[Scalar], p1: Sequence[Scalar]) -> Vec3:
    """The rotation vector, in the coordinates of p0's frame, that leads from p0 to p1 the short way round."""
    conjugate = [p0[0], -p0[1], -p0[2], -p0[3]]
    return quaternion_log(quaternion_product(conjugate, p1))


def integrate_rigid(
    position: Vec3, p: Sequence[Scalar], rotation: Vec3, translation: Vec3
) -> tuple[Vec3, list[Scalar]]:
    """A pose moved along the screw (rotation, translation) of body coordinates: the exponential of SE(3)."""
    k = ExponentialCoefficients(rotation.dot(rotation))
    turned = rotation.cross(translation)
    path = translation + turned * k.B + rotation.cross(turned) * k.C
    return position + rotation_from_quaternion(*p) @ path, quaternion_integrate(p, rotation)


def difference_rigid(
    position0: Vec3, p0: Sequence[Scalar], position1: Vec3, p1: Sequence[Scalar]
) -> tuple[Vec3, Vec3]:
    """The screw (rotation, translation) at pose 0 along which `integrate_rigid` reaches pose 1."""
    rotation = quaternion_difference(p0, p1)
    path = rotation_from_quaternion(*p0).transposed_times(position1 - position0)
    k = ExponentialCoefficients(rotation.dot(rotation))
    turned = rotation.cross(path)
    return rotation, path - turned * 0.5 + rotation.cross(turned) * k.D
