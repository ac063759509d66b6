"""Articulated-body and operational-space inertias by projection (Featherstone 2008 section 7.2.1).

The equation of motion of the whole system, projected onto the motion of one or more handles with the
stacked Jacobian J:

    a = Phi f + b,     Phi = J M^-1 J^T,     b = J' v + J M^-1 (tau - C)                 (7.8 to 7.10)
    f = I a + p,       I = Phi^-1,           p = -I b                                    (7.11 to 7.13)

f are the forces on the handles beside everything in C and tau. Phi is positive semidefinite of the rank of
J; I exists where J has full row rank, and is then also called the operational-space inertia.
"""

from __future__ import annotations

from collections.abc import Sequence

from dalembert.algorithms.dense import Matrix, dot, symmetric_product, transpose, unit
from dalembert.algorithms.forward_dynamics import forward_dynamics
from dalembert.algorithms.jacobians import jacobian, jacobian_rate_times_velocity
from dalembert.algorithms.mass_matrix import mass_matrix
from dalembert.algorithms.small_solve import factor
from dalembert.algorithms.sparse import factor_with_reciprocals, solve_l_transposed
from dalembert.algorithms.sparsity import variable_parents
from dalembert.model.body import Body
from dalembert.model.elements import Frame
from dalembert.model.model import Model
from dalembert.scalar import Scalar

__all__ = ["handle_bias_acceleration", "handle_inertia", "handle_inverse_inertia"]

Handle = str | Body | Frame


def handle_inverse_inertia(
    model: Model,
    q: Sequence[Scalar],
    handles: Sequence[Handle],
    *,
    frame: str = "body",
    time: Scalar | None = None,
) -> Matrix:
    """Return Phi `(6 h, 6 h)` of h handles (Eqs 7.4, 7.9): with Y = L^-T J^T, Phi = Y^T D^-1 Y."""
    lam = variable_parents(model)
    L, reciprocals = factor_with_reciprocals(mass_matrix(model, q, time=time), lam)
    rows = [row for handle in handles for row in jacobian(model, q, handle, frame=frame, time=time)]
    Y = [solve_l_transposed(L, lam, row, unit=True) for row in rows]
    W = [[y_k * r for y_k, r in zip(y, reciprocals, strict=True)] for y in Y]
    return symmetric_product(Y, W)


def handle_bias_acceleration(
    model: Model,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    tau: Sequence[Scalar],
    handles: Sequence[Handle],
    *,
    frame: str = "body",
    time: Scalar | None = None,
) -> list[Scalar]:
    """Return b `(6 h,)`: the acceleration of the handles without forces on them (Eq. 7.10, with tau)."""
    a = forward_dynamics(model, q, v, tau, time=time)
    b: list[Scalar] = []
    for handle in handles:
        rate = jacobian_rate_times_velocity(model, q, v, handle, frame=frame, time=time)
        J = jacobian(model, q, handle, frame=frame, time=time)
        b += [dot(row, a) + r for row, r in zip(J, rate, strict=True)]
    return b


def handle_inertia(Phi: Sequence[Sequence[Scalar]]) -> Matrix:
    """Return I = Phi^-1, of handles that can move in every direction (Eq. 7.12)."""
    inverse = factor(Phi)
    n = len(Phi)
    columns = [inverse.solve(unit(n, i)) for i in range(n)]
    return transpose(columns)
