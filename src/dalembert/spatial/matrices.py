"""The book's 6x6 matrices as nested lists, under the book's names (Featherstone 2008 Tables 2.2 and A.2).

For teaching, tests and one-off work beside a matrix library; algorithms use the compact value classes.
Rotations are *passive*: rotx(angle) transforms motion vectors from A to B coordinates, where B is A turned by
angle about x.
"""

from __future__ import annotations

from typing import Any

from dalembert.scalar import Scalar
from dalembert.spatial.inertia import RigidInertia
from dalembert.spatial.motion_force import Motion
from dalembert.spatial.rotations import rx, ry, rz
from dalembert.spatial.vectors import Mat3, Vec3

__all__ = ["XtoV", "crf", "crm", "mcI", "rot", "rotx", "roty", "rotz", "xlt"]

Matrix = list[list[Scalar]]


def rot(E: Any) -> Matrix:
    """Return [[E, 0], [0, E]]: the transform by the rotation E; the same for forces (Eqs. 2.19, 2.20)."""
    E = Mat3.of(E)
    return _blocks(E, Mat3.zero(), Mat3.zero(), E)


def rotx(angle: Scalar) -> Matrix:
    """Return rot(rx(angle)), angle in rad."""
    return rot(rx(angle))


def roty(angle: Scalar) -> Matrix:
    """Return rot(ry(angle)), angle in rad."""
    return rot(ry(angle))


def rotz(angle: Scalar) -> Matrix:
    """Return rot(rz(angle)), angle in rad."""
    return rot(rz(angle))


def xlt(r: Any) -> Matrix:
    """Return [[1, 0], [-r x, 1]]: the transform of motions to a frame shifted by r [m] (Eq. 2.21)."""
    return _blocks(Mat3.identity(), Mat3.zero(), -Vec3.of(r).skew(), Mat3.identity())


def crm(v: Any) -> Matrix:
    """Return v x, with crm(v) m = v x m, of a motion or six numbers, angular first (Eq. 2.31)."""
    m = Motion.of(v)
    w = m.angular.skew()
    return _blocks(w, Mat3.zero(), m.linear.skew(), w)


def crf(v: Any) -> Matrix:
    """Return v x*, with crf(v) f = v x* f; equal to -crm(v)^T (Eq. 2.32)."""
    m = Motion.of(v)
    w = m.angular.skew()
    return _blocks(w, m.linear.skew(), Mat3.zero(), w)


def mcI(mass: Scalar, com: Any, inertia_at_com: Any) -> Matrix:
    """Return the 6x6 inertia of mass [kg], centre of mass [m] and inertia about it [kg m^2] (Eq. 2.63)."""
    return RigidInertia(mass, com, inertia_at_com).matrix()


def XtoV(X: Any) -> list[Scalar]:
    """Return the velocity that takes frame A to frame B in one unit of time,
    to first order in the angle between them.

    X: 6x6 transform of motions from A to B. Exact for a translation, and invariant: X v = v (Table A.2).
    """
    return [
        0.5 * (X[1][2] - X[2][1]),
        0.5 * (X[2][0] - X[0][2]),
        0.5 * (X[0][1] - X[1][0]),
        0.5 * (X[4][2] - X[5][1]),
        0.5 * (X[5][0] - X[3][2]),
        0.5 * (X[3][1] - X[4][0]),
    ]


def _blocks(a: Mat3, b: Mat3, c: Mat3, d: Mat3) -> Matrix:
    """Return [[a, b], [c, d]]."""
    rows = zip((a, c), (b, d), strict=True)
    return [[*p, *q] for left, right in rows for p, q in zip(left.to_list(), right.to_list(), strict=True)]
