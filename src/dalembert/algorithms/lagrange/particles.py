"""A system of particles r_i(q) in generalized coordinates (Liu & Jain section 2).

A virtual displacement is dr_i = sum_j (dr_i/dq_j) dq_j, so that forces f_i do the virtual work Q . dq with

    Q = sum_i J_i^T f_i,        J_i = [dr_i/dq_1 … dr_i/dq_n]                              (1 to 3)
    M(q) = sum_i mu_i J_i^T J_i,    T = qd^T M qd / 2                                       (15, 16)

The columns of J_i are exact derivatives of the function r(q), by dual numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dalembert.algorithms.dense import Matrix, unit
from dalembert.model.joints.dual import directional_derivative
from dalembert.scalar import Scalar
from dalembert.spatial import Vec3

__all__ = ["particle_forces", "particle_jacobians", "particle_kinetic_energy", "particle_mass_matrix"]

Positions = Callable[[list[Scalar]], Sequence[Vec3]]
"""r(q): the positions of all particles, in the world; of r(q, t) the function at one time."""


def particle_jacobians(positions: Positions, q: Sequence[Scalar]) -> list[Matrix]:
    """Return J_i `(3, nq)` of every particle: column j is dr_i/dq_j."""
    columns = [
        directional_derivative(lambda x: list(positions(x)), q, unit(len(q), j))[1] for j in range(len(q))
    ]
    count = len(columns[0]) if columns else 0
    return [[[column[i][row] for column in columns] for row in range(3)] for i in range(count)]


def particle_forces(positions: Positions, forces: Sequence[Vec3], q: Sequence[Scalar]) -> list[Scalar]:
    """Return Q `(nq,)` = sum J_i^T f_i of one force a particle (Eq. 3):
    equal power, Q . qd = sum f_i . r_i'."""
    Q: list[Scalar] = [0.0] * len(q)
    for J, f in zip(particle_jacobians(positions, q), forces, strict=True):
        Q = [Q[j] + J[0][j] * f.x + J[1][j] * f.y + J[2][j] * f.z for j in range(len(q))]
    return Q


def particle_mass_matrix(positions: Positions, masses: Sequence[Scalar], q: Sequence[Scalar]) -> Matrix:
    """Return M(q) `(nq, nq)` = sum mu_i J_i^T J_i (Eq. 16)."""
    n = len(q)
    M: Matrix = [[0.0] * n for _ in range(n)]
    for J, mass in zip(particle_jacobians(positions, q), masses, strict=True):
        for i in range(n):
            for j in range(n):
                dot = J[0][i] * J[0][j] + J[1][i] * J[1][j] + J[2][i] * J[2][j]
                M[i][j] = M[i][j] + mass * dot
    return M


def particle_kinetic_energy(
    positions: Positions, masses: Sequence[Scalar], q: Sequence[Scalar], qd: Sequence[Scalar]
) -> Scalar:
    """Return T = sum mu_i |r_i'|^2 / 2 (Eq. 10), with r_i' the derivative of r_i along qd."""
    total: Scalar = 0.0
    velocities = directional_derivative(lambda x: list(positions(x)), q, qd)[1]
    for mass, velocity in zip(masses, velocities, strict=True):
        total = total + 0.5 * mass * velocity.dot(velocity)
    return total
