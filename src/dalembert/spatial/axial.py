"""The formulas of axial screws, at the costs of Featherstone 2008 §A.4 and Table A.5.

A screw is a turn by (c, s) about and a shift by d along coordinate axis 0, 1 or 2. All formulas are written
for the z axis; the other two are the same formulas on components taken in cyclic order, which keeps every
cross product. Since turn and shift commute, inertias may be rotated first and shifted then: that order makes
the best use of structural zeros (Table A.5, last lines).
"""

from __future__ import annotations

from dalembert.scalar import Scalar
from dalembert.spatial.congruence import AxialTurn, rotate_general_about_z, rotate_symmetric_about_z
from dalembert.spatial.inertia import ArticulatedInertia, RigidInertia
from dalembert.spatial.symmetric import SymMat3
from dalembert.spatial.vectors import Mat3, Vec3

__all__ = [
    "inverse_turn",
    "transform_pair",
    "transform_articulated",
    "transform_rigid",
    "rotate_vector",
    "vector_from_z",
]


def vector_from_z(axis: int, v: Vec3) -> Vec3:
    """Return the vector whose components in cyclic order, the axis last, are v's."""
    return v if axis == 2 else Vec3(v.z, v.x, v.y) if axis == 0 else Vec3(v.y, v.z, v.x)


def inverse_turn(turn: AxialTurn) -> AxialTurn:
    """Return the quantities of the turn by the opposite angle; free."""
    c, s, ss, cs, cs2, cos2 = turn
    return c, -s, ss, -cs, -cs2, cos2


def rotate_vector(axis: int, c: Scalar, s: Scalar, v: Vec3) -> Vec3:
    """Return E v; 4 m + 2 a."""
    v = _vector_to_z(axis, v)
    return vector_from_z(axis, Vec3(c * v.x + s * v.y, c * v.y - s * v.x, v.z))


def transform_pair(axis: int, c: Scalar, s: Scalar, d: Scalar, line: Vec3, free: Vec3) -> tuple[Vec3, Vec3]:
    """Return E line and E (free - r x line): (omega, v) of a motion, (f, n) of a force; 10 m + 6 a (§A.4)."""
    a, b = _vector_to_z(axis, line), _vector_to_z(axis, free)
    bx, by = b.x + a.y * d, b.y - a.x * d
    rotated_line = Vec3(c * a.x + s * a.y, c * a.y - s * a.x, a.z)
    rotated_free = Vec3(c * bx + s * by, c * by - s * bx, b.z)
    return vector_from_z(axis, rotated_line), vector_from_z(axis, rotated_free)


def transform_rigid(axis: int, turn: AxialTurn, d: Scalar, inertia: RigidInertia) -> RigidInertia:
    """Transform a rigid inertia.

    y = h - m r: 1 m + 1 a; Z = I + r x h x + y x r x: 3 m + 5 a; E y: 4 m + 2 a; E Z E^T: 8 m + 7 a.
    """
    h, I = _vector_to_z(axis, inertia.h), _symmetric_to_z(axis, inertia.inertia)
    c, s = turn[0], turn[1]
    y = h.z - inertia.mass * d
    both = (h.z + y) * d
    Z = SymMat3(I.xx - both, I.yy - both, I.zz, I.xy, I.xz + h.x * d, I.yz + h.y * d)
    Ey = Vec3(c * h.x + s * h.y, c * h.y - s * h.x, y)
    EZE = rotate_symmetric_about_z(turn, Z)
    return RigidInertia.from_compact(inertia.mass, vector_from_z(axis, Ey), _symmetric_from_z(axis, EZE))


def transform_articulated(
    axis: int, turn: AxialTurn, d: Scalar, inertia: ArticulatedInertia
) -> ArticulatedInertia:
    """Turn M, H, I: 28 m + 26 a; Y = H - r x M: 5 m + 6 a; Z = I - r x H^T + Y r x: 5 m + 8 a (§A.4)."""
    M = rotate_symmetric_about_z(turn, _symmetric_to_z(axis, inertia.M))
    H = rotate_general_about_z(turn, _matrix_to_z(axis, inertia.H))
    I = rotate_symmetric_about_z(turn, _symmetric_to_z(axis, inertia.I))
    dxy = M.xy * d
    Y = Mat3(
        H.xx + dxy, H.xy + M.yy * d, H.xz + M.yz * d,
        H.yx - M.xx * d, H.yy - dxy, H.yz - M.xz * d,
        H.zx, H.zy, H.zz,
    )  # fmt: skip
    Z = SymMat3(
        I.xx + (H.xy + Y.xy) * d,
        I.yy - (H.yx + Y.yx) * d,
        I.zz,
        I.xy + (Y.yy - H.xx) * d,
        I.xz + H.zy * d,
        I.yz - H.zx * d,
    )
    return ArticulatedInertia(_symmetric_from_z(axis, Z), _matrix_from_z(axis, Y), _symmetric_from_z(axis, M))


def _vector_to_z(axis: int, v: Vec3) -> Vec3:
    """Return the components in cyclic order, the screw's axis last."""
    return v if axis == 2 else Vec3(v.y, v.z, v.x) if axis == 0 else Vec3(v.z, v.x, v.y)


def _matrix_to_z(axis: int, A: Mat3) -> Mat3:
    if axis == 2:
        return A
    if axis == 0:
        return Mat3(A.yy, A.yz, A.yx, A.zy, A.zz, A.zx, A.xy, A.xz, A.xx)
    return Mat3(A.zz, A.zx, A.zy, A.xz, A.xx, A.xy, A.yz, A.yx, A.yy)


def _matrix_from_z(axis: int, A: Mat3) -> Mat3:
    return A if axis == 2 else _matrix_to_z(1 - axis, A)


def _symmetric_to_z(axis: int, A: SymMat3) -> SymMat3:
    if axis == 2:
        return A
    if axis == 0:
        return SymMat3(A.yy, A.zz, A.xx, A.yz, A.xy, A.xz)
    return SymMat3(A.zz, A.xx, A.yy, A.xz, A.yz, A.xy)


def _symmetric_from_z(axis: int, A: SymMat3) -> SymMat3:
    return A if axis == 2 else _symmetric_to_z(1 - axis, A)
