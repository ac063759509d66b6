"""The book's 6x6 matrices as nested lists, under the book's names (Featherstone 2008 Tables 2.2 and A.2).

For teaching, tests and one-off work beside a matrix library; algorithms use the compact value classes.
Rotations are *passive*: rotx(angle) transforms motion vectors from A to B coordinates, where B is A turned by
angle about x.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dalembert.scalar import Scalar
from dalembert.spatial.inertia import RigidInertia
from dalembert.spatial.motion_force import Motion
from dalembert.spatial.rotations import rx, ry, rz
from dalembert.spatial.vectors import Mat3, Vec3, block_matrix

Matrix = list[list[Scalar]]


def rot(E: Any) -> Matrix:
    """Return [[E, 0], [0, E]]: the transform by the rotation E; the same for forces (Eqs. 2.19, 2.20)."""
    E = Mat3.of(E)
    return block_matrix(E, Mat3.zero(), Mat3.zero(), E)


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
    return block_matrix(Mat3.identity(), Mat3.zero(), -Vec3.of(r).skew(), Mat3.identity())


def crm(v: Any) -> Matrix:
    """Return v x, with crm(v) m = v x m, of a motion or six numbers, angular first (Eq. 2.31)."""
    m = Motion.of(v)
    w = m.angular.skew()
    return block_matrix(w, Mat3.zero(), m.linear.skew(), w)


def crf(v: Any) -> Matrix:
    """Return v x*, with crf(v) f = v x* f; equal to -crm(v)^T (Eq. 2.32)."""
    m = Motion.of(v)
    w = m.angular.skew()
    return block_matrix(w, m.linear.skew(), Mat3.zero(), w)


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


# Inertias that a body can have: mass and moments about the centre of mass of a non-negative density.

RELATIVE_SLACK = 1e-9
"""How far principal moments may break a law, relative to the greatest: flat bodies are at the limit."""

ROUNDING_RATIO = 64 * float(np.finfo(float).eps)
"""Rounding of moments about the centre of mass, relative to the moments about the origin."""


def physical_problems(inertia: RigidInertia) -> list[str]:
    """Return the reasons why no body can have an inertia of plain numbers, one sentence each.

    Mass must not be negative. The principal moments about the centre of mass must not be negative and each
    must be at most the sum of the other two. Limits are allowed: a particle has no moments, a lamina or a
    thin rod has two that sum to the third; a body without mass must be without inertia.
    """
    numbers = [float(item) for item in inertia.leaves()]
    if not all(math.isfinite(item) for item in numbers):
        return [
            f"inertia is not finite: mass {inertia.mass}, mass * com {numbers[1:4]}, inertia {numbers[4:]}"
        ]
    if numbers[0] < 0.0:
        return [f"mass is negative: {numbers[0]:g} kg"]
    if numbers[0] == 0.0:
        return ["mass is zero, but the inertia is not"] if any(numbers) else []
    about_com = np.array(inertia.inertia_at_com.to_list(), dtype=float)
    if not np.isfinite(about_com).all():
        return [
            f"the inertia about the centre of mass overflows: mass {numbers[0]:g}, mass * com {numbers[1:4]}"
        ]
    moments = np.linalg.eigvalsh(about_com)
    slack = RELATIVE_SLACK * float(np.abs(moments).max()) + ROUNDING_RATIO * max(
        abs(item) for item in numbers[4:]
    )
    listed = ", ".join(f"{moment:.6g}" for moment in moments)
    problems = []
    if moments[0] < -slack:
        problems.append(
            f"principal moments about the centre of mass are {listed} kg m^2; none may be negative"
        )
    if moments[0] + moments[1] < moments[2] - slack:
        problems.append(
            f"principal moments about the centre of mass are {listed} kg m^2; the greatest exceeds the sum "
            f"of the others by {moments[2] - moments[0] - moments[1]:.6g} (triangle inequality)"
        )
    return problems
