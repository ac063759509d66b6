"""The velocity terms from the mass matrix alone (Liu & Jain Eq. 17 and the note after it).

Lagrange's equations on T = qd^T M qd / 2 give M qdd + C with

    C = M' qd - ((dM/dq) qd)^T qd / 2                                                             (17)

The tensor dM/dq has dM/dq_k as its k-th matrix. Two different matrices come of it and qd:

    M'            column j is sum_k (dM_:j/dq_k) qd_k      the rate of M
    (dM/dq) qd    column j is (dM/dq_j) qd
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dalembert.algorithms.dense import Matrix, dot, identity
from dalembert.model.joints.dual import directional_derivative
from dalembert.scalar import Scalar

__all__ = ["coriolis_vector", "mass_matrix_gradient", "mass_matrix_gradient_times", "mass_matrix_rate"]

MassMatrix = Callable[[list[Scalar]], Sequence[Sequence[Scalar]]]
"""M(q), on generic scalars."""


def mass_matrix_gradient(mass_matrix: MassMatrix, q: Sequence[Scalar]) -> list[Matrix]:
    """Return dM/dq `(n, n, n)`: the k-th matrix is dM/dq_k."""
    units = identity(len(q))
    return [
        directional_derivative(lambda x: [list(row) for row in mass_matrix(x)], q, unit)[1] for unit in units
    ]


def mass_matrix_rate(gradient: Sequence[Matrix], qd: Sequence[Scalar]) -> Matrix:
    """Return M' = sum_k (dM/dq_k) qd_k `(n, n)`."""
    n = len(qd)
    return [[dot([dM[i][j] for dM in gradient], qd) for j in range(n)] for i in range(n)]


def mass_matrix_gradient_times(gradient: Sequence[Matrix], qd: Sequence[Scalar]) -> Matrix:
    """Return (dM/dq) qd `(n, n)`: column j is (dM/dq_j) qd. Not M'."""
    n = len(qd)
    columns = [[dot(row, qd) for row in dM] for dM in gradient]
    return [[columns[j][i] for j in range(n)] for i in range(n)]


def coriolis_vector(mass_matrix: MassMatrix, q: Sequence[Scalar], qd: Sequence[Scalar]) -> list[Scalar]:
    """Return C(q, qd) `(n,)` of Eq. 17: the velocity terms, quadratic in qd, without gravity."""
    gradient = mass_matrix_gradient(mass_matrix, q)
    rate = mass_matrix_rate(gradient, qd)
    slopes = mass_matrix_gradient_times(gradient, qd)
    return [dot(rate_i, qd) - 0.5 * dot([row[i] for row in slopes], qd) for i, rate_i in enumerate(rate)]
