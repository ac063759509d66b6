"""One rigid body in the world's axes, at its centre of mass (Liu & Jain section 3).

Legend: m mass; v, omega velocity of the centre of mass and angular velocity; I_0 inertia about it in body
axes, I_c = R I_0 R^T in the world's; P, L momentum and angular momentum about the centre of mass; f, tau
net force and torque there. [a] is the matrix of a x: [a] b = -[b] a, [a]^T = -[a], -[a][a] = (a . a) 1 - a
a^T.

    P = m v,   L = I_c omega,   I_c = sum -mu [r'][r']                                             (18 to 21)
    I_c' = [omega] I_c - I_c [omega]                  from I_c = R I_0 R^T and [omega] = R' R^T
    f = m v',   tau = I_c omega' + omega x I_c omega                                               (22, 23)

Both as one equation of six numbers, angular first:

    [ I_c   0  ] [omega']   [ omega x I_c omega ]   [ tau ]
    [ 0    m 1 ] [  v'  ] + [         0         ] = [  f  ]                                        (24)
"""

from __future__ import annotations

from typing import NamedTuple

from dalembert.algorithms.dense import Matrix
from dalembert.scalar import Scalar
from dalembert.spatial import Force, Mat3, Motion, SymMat3, Vec3

__all__ = [
    "NewtonEulerBlocks",
    "newton_euler",
    "newton_euler_blocks",
    "rigid_body_momenta",
    "world_inertia",
    "world_inertia_rate",
]


class NewtonEulerBlocks(NamedTuple):
    """M_c `(6, 6)` = blockdiag(I_c, m 1) and the velocity terms `(6,)` of Eq. 24, angular first."""

    M_c: Matrix
    bias: list[Scalar]


def world_inertia(R: Mat3, inertia: SymMat3) -> SymMat3:
    """Return I_c = R I_0 R^T, R from body to world axes (Eq. 21)."""
    A = R @ inertia.to_mat3() @ R.transpose()
    return SymMat3(A.xx, A.yy, A.zz, A.xy, A.xz, A.yz)


def world_inertia_rate(omega: Vec3, I_c: SymMat3) -> SymMat3:
    """Return I_c' = [omega] I_c - I_c [omega], symmetric; omega in world axes."""
    W = omega.skew()
    A = W @ I_c.to_mat3() - I_c.to_mat3() @ W
    return SymMat3(A.xx, A.yy, A.zz, A.xy, A.xz, A.yz)


def rigid_body_momenta(mass: Scalar, I_c: SymMat3, velocity: Motion) -> Force:
    """Return (L, P) = (I_c omega, m v), for velocity (omega, v) of the centre of mass (Eqs 18, 21)."""
    return Force(I_c @ velocity.angular, velocity.linear * mass)


def newton_euler(mass: Scalar, I_c: SymMat3, velocity: Motion, acceleration: Motion) -> Force:
    """Return (tau, f) = (I_c omega' + omega x I_c omega, m v'): the rates of (L, P) (Eqs 22, 23)."""
    omega = velocity.angular
    return Force(
        I_c @ acceleration.angular + omega.cross(I_c @ omega),
        acceleration.linear * mass,
    )


def newton_euler_blocks(mass: Scalar, I_c: SymMat3, omega: Vec3) -> NewtonEulerBlocks:
    """Return the two terms of Eq. 24: (tau, f) = M_c (omega', v') + bias."""
    top = [[*row, 0.0, 0.0, 0.0] for row in I_c.to_list()]
    bottom = [[0.0, 0.0, 0.0, *(mass if i == j else 0.0 for j in range(3))] for i in range(3)]
    return NewtonEulerBlocks(top + bottom, [*omega.cross(I_c @ omega).to_list(), 0.0, 0.0, 0.0])
