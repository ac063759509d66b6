"""Lagrange's equations, evaluated for any kinetic energy (Liu & Jain section 2).

D'Alembert: for every virtual displacement sum_i (f_i - mu_i r_i'') . dr_i = 0. With dr_i = sum_j dr_i/dq_j
dq_j the inertia forces belonging to dq_j are

    mu r'' . dr/dq_j = d/dt (mu r' . dr/dq_j) - mu r' . d/dt (dr/dq_j)                            (5)
    dr'/dqd_j = dr/dq_j,     d/dt (dr/dq_j) = dr'/dq_j                                            (7, 8)
    mu r'' . dr/dq_j = d/dt d(mu r'^2/2)/dqd_j - d(mu r'^2/2)/dq_j                                (9, 11)

and, since the dq_j are independent, with T = sum mu r'^2 / 2

    d/dt (dT/dqd_j) - dT/dq_j = Q_j                                                               (13)

d/dt follows (q, qd) along (qd, qdd). The variables must be rates of the coordinates, as for every joint but
spherical, planar and free ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dalembert.algorithms.dense import unit
from dalembert.algorithms.small_solve import factor
from dalembert.model.joints.dual import directional_derivative
from dalembert.scalar import Scalar

__all__ = ["accelerations_from", "forces_from", "lagrange_equations"]

Matrix = Sequence[Sequence[Scalar]]
Energy = Callable[[list[Scalar], list[Scalar]], Scalar]
"""T(q, qd) on generic scalars; a Lagrangian T - V serves as well."""


def lagrange_equations(
    energy: Energy, q: Sequence[Scalar], qd: Sequence[Scalar], qdd: Sequence[Scalar]
) -> list[Scalar]:
    """Return Q_j = d/dt (dT/dqd_j) - dT/dq_j `(n,)` for any T(q, qd) (Eq. 13), by nested dual numbers.

    With L = T - V for `energy`, V(q) a potential, Q is what acts besides the forces of V.
    """
    n = len(q)

    def momentum(x: list[Scalar], direction: Sequence[float]) -> Scalar:
        return directional_derivative(lambda rates: energy(x[:n], rates), x[n:], direction)[1]

    Q = []
    for j in range(n):
        direction = unit(n, j)
        rate = directional_derivative(lambda x: momentum(x, direction), [*q, *qd], [*qd, *qdd])[1]  # noqa: B023
        slope = directional_derivative(lambda x: energy(x, list(qd)), q, direction, qd)[1]
        Q.append(rate - slope)
    return Q


def accelerations_from(M: Matrix, C: Sequence[Scalar], Q: Sequence[Scalar]) -> list[Scalar]:
    """Return qdd = M^-1 (Q - C) of M qdd + C = Q (Eq. 14), for simulation."""
    return factor(M).solve([Q_j - C_j for Q_j, C_j in zip(Q, C, strict=True)])


def forces_from(M: Matrix, C: Sequence[Scalar], qdd: Sequence[Scalar]) -> list[Scalar]:
    """Return Q = M qdd + C (Eq. 14), for inverse dynamics."""
    Q = []
    for row, C_j in zip(M, C, strict=True):
        total = C_j
        for m, x in zip(row, qdd, strict=True):
            total = total + m * x
        Q.append(total)
    return Q
