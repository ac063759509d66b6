"""One rigid body in generalized coordinates (Liu & Jain section 4).

x(q) is the centre of mass and R(q) the orientation, any functions of q; V = (omega, v) = J qd, angular
first:

    J_v = dx/dq,      [j_j] = (dR/dq_j) R^T,   j_j column j of J_omega                             (28 to 31)
    T = qd^T J^T M_c J qd / 2,      M_c = blockdiag(I_c, m 1)                                       (27, 32)
    M = J^T M_c J,    C = (J^T M_c J' + J^T [omega~] M_c J) qd,    [omega~] = blockdiag([omega], 0)   (45)
    Q = J_omega^T tau + J_v^T f                                                                     (48)

Eq. 45 follows from Lagrange's equations on T, and by multiplying Newton-Euler (Eq. 24) with J^T. In the
first way, of the five terms of Eq. 36 the third is + j_j . (omega x I_c omega), the fourth and the fifth
are - that, the fourth with a minus before it: one of them remains.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from dalembert.algorithms.dense import Matrix, dot, times, transpose, unit
from dalembert.algorithms.lagrange.newton_euler import newton_euler_blocks, world_inertia
from dalembert.errors import require_choice
from dalembert.model.joints.dual import directional_derivative
from dalembert.scalar import Scalar
from dalembert.spatial import Mat3, SymMat3, Transform, Vec3
from dalembert.spatial.exponential import so3_exp
from dalembert.spatial.rotations import (
    quaternion_normalized,
    rotation_of_euler_angles,
    rotation_of_quaternion,
)

__all__ = [
    "ORIENTATIONS",
    "BodyEquations",
    "body_equations",
    "body_jacobian",
    "body_kinetic_energy",
    "body_pose",
]

Pose = Callable[[list[Scalar]], Transform]
"""q -> the pose (R(q), x(q)) of the centre of mass."""

ORIENTATIONS: Final[dict[str, Callable[[Sequence[Scalar]], Mat3]]] = {
    "euler": lambda angles: rotation_of_euler_angles("xyz", angles),
    "exponential": lambda phi: so3_exp(Vec3(phi[0], phi[1], phi[2])),
    "quaternion": lambda p: rotation_of_quaternion(quaternion_normalized(p)),
}
"""R of three Euler angles, of a rotation vector, of four numbers along a quaternion, of any norm."""


class BodyEquations(NamedTuple):
    """M `(n, n)` and C `(n,)` of M qdd + C = Q."""

    M: Matrix
    C: list[Scalar]


def body_pose(orientation: str) -> Pose:
    """Return the function q -> pose, with q = (x, y, z, numbers of the orientation).

    `ORIENTATIONS` has the orientations by name.
    """
    require_choice("orientation", orientation, ORIENTATIONS)
    rotation = ORIENTATIONS[orientation]
    return lambda q: Transform(rotation(q[3:]), Vec3(q[0], q[1], q[2]))


def body_jacobian(pose: Pose, q: Sequence[Scalar]) -> Matrix:
    """Return J `(6, n)`: J_omega over J_v, in world axes, of (dR/dq_j) R^T and dx/dq_j (Eqs 28 to 31)."""
    columns = []
    for j in range(len(q)):
        X, slope = directional_derivative(pose, q, unit(len(q), j))
        j_j = (slope.R @ X.R.transpose()).axial()
        columns.append([*j_j.to_list(), *slope.p.to_list()])
    return transpose(columns)


def body_kinetic_energy(
    pose: Pose, mass: Scalar, inertia: SymMat3, q: Sequence[Scalar], qd: Sequence[Scalar]
) -> Scalar:
    """Return T = qd^T J^T M_c J qd / 2 (Eq. 32); `inertia` about the centre of mass, in body axes."""
    V = times(body_jacobian(pose, q), qd)
    M_c, _ = newton_euler_blocks(mass, world_inertia(pose(list(q)).R, inertia), Vec3(V[0], V[1], V[2]))
    return 0.5 * dot(V, times(M_c, V))


def body_equations(
    pose: Pose, mass: Scalar, inertia: SymMat3, q: Sequence[Scalar], qd: Sequence[Scalar]
) -> BodyEquations:
    """Return M and C of Eq. 45: Newton-Euler at the centre of mass, projected by J^T."""
    J, J_rate = directional_derivative(lambda x: body_jacobian(pose, x), q, qd)
    V = times(J, qd)
    M_c, bias = newton_euler_blocks(mass, world_inertia(pose(list(q)).R, inertia), Vec3(V[0], V[1], V[2]))
    columns = transpose(J)
    M = [[dot(a, times(M_c, b)) for b in columns] for a in columns]
    f = [x + b for x, b in zip(times(M_c, times(J_rate, qd)), bias, strict=True)]
    return BodyEquations(M, [dot(column, f) for column in columns])
