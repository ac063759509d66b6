"""Constrained dynamics in any coordinates x with a constant or given inertia D (Todorov's slides).

Implicit constraints phi(x) = 0, J = dphi/dx, so that J x'' + J' x' = 0 ("implicit constraints"):

    [ D  -J^T ] [ x''    ]   [ f     ]
    [ -J   0  ] [ lambda ] = [ J' x' ]                                                                     (1)
    D x'' = f - J^T (J D^-1 J^T)^-1 (J' x' + J D^-1 f)                                                     (2)

At rest x'' = A f with the inverse of the constrained inertia ("Constrained inertia"):

    A = D^-1 - D^-1 J^T (J D^-1 J^T)^-1 J D^-1 = limit of (D + epsilon J^T J)^-1,  epsilon -> infinity     (3)

Gauss: of all accelerations with J a = b the system takes the one nearest to the free one, a_0,

    x'' = argmin (a - a_0)^T D (a - a_0)                                                                   (4)

Explicit constraints x = h(q), J = dh/dq, x'' = J q'' + J' q' ("Explicit constraints"), with the forces f_c
of the constraint, J^T f_c = 0:

    [ D  -1   0 ] [ x'' ]   [ f      ]
    [ 1   0  -J ] [ f_c ] = [ J' q'  ]        M = J^T D J,  c = J^T D J' q',  tau = J^T f                  (5)
    [ 0  J^T  0 ] [ q'' ]   [ 0      ]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from dalembert.algorithms.dense import Matrix, Rows, Vector, dot, identity, unit
from dalembert.algorithms.small_solve import factor, factor_semidefinite
from dalembert.scalar import Scalar

__all__ = [
    "ConstrainedMotion",
    "ExplicitDynamics",
    "ExplicitMotion",
    "constrained_inverse_inertia",
    "explicit_dynamics",
    "explicit_dynamics_by_blocks",
    "gauss_acceleration",
    "implicit_dynamics",
    "implicit_dynamics_kkt",
    "nearest_acceleration",
    "penalized_inverse_inertia",
    "transformed_force",
    "transformed_inertia",
]


class ConstrainedMotion(NamedTuple):
    """x'' and the multipliers lambda; the constraint forces are J^T lambda."""

    acceleration: Vector
    multipliers: Vector


class ExplicitDynamics(NamedTuple):
    """M q'' + c = tau."""

    M: Matrix
    c: Vector
    tau: Vector


class ExplicitMotion(NamedTuple):
    """x'', the constraint forces f_c and q''."""

    x: Vector
    f_c: Vector
    q: Vector


def implicit_dynamics(D: Rows, f: Sequence[Scalar], J: Rows, bias: Sequence[Scalar]) -> ConstrainedMotion:
    """Return x'' and lambda by the closed form (2); `bias` = J' x'."""
    inertia = factor(D)
    free = inertia.solve(f)
    Y = [inertia.solve(row) for row in J]
    wanted = [-(b + dot(row, free)) for b, row in zip(bias, J, strict=True)]
    multipliers = factor([[dot(row, y) for y in Y] for row in J]).solve(wanted)
    return ConstrainedMotion(_plus(free, Y, multipliers), multipliers)


def implicit_dynamics_kkt(D: Rows, f: Sequence[Scalar], J: Rows, bias: Sequence[Scalar]) -> ConstrainedMotion:
    """Return x'' and lambda by the system (1), which is quasi-definite:
    it has L d L^T factors without pivoting."""
    n, m = len(D), len(J)
    K = [[*row, *([0.0] * m)] for row in D] + [[*(-x for x in row), *([0.0] * m)] for row in J]
    solution = factor(K).solve([*f, *bias])
    return ConstrainedMotion(solution[:n], solution[n:])


def constrained_inverse_inertia(D: Rows, J: Rows) -> Matrix:
    """Return a `(n, n)` of (3): x'' = A f at rest; J A = 0, and its rank is the number of freedoms left."""
    n = len(D)
    inertia = factor(D)
    Y = [inertia.solve(row) for row in J]
    effective = factor([[dot(row, y) for y in Y] for row in J])
    A: Matrix = []
    for k in range(n):
        A.append(_plus(inertia.solve(unit(n, k)), Y, [-x for x in effective.solve([y[k] for y in Y])]))
    return A


def penalized_inverse_inertia(D: Rows, J: Rows, epsilon: Scalar) -> Matrix:
    """Return (D + epsilon J^T J)^-1, which tends to A of (3) with an error of order 1/epsilon."""
    n = len(D)
    columns = [[row[i] for row in J] for i in range(n)]
    stiff = [[D[i][k] + epsilon * dot(columns[i], columns[k]) for k in range(n)] for i in range(n)]
    heavy = factor(stiff)
    return [heavy.solve(unit(n, k)) for k in range(n)]


def gauss_acceleration(D: Rows, a_0: Sequence[Scalar], J: Rows, b: Sequence[Scalar]) -> Vector:
    """Return argmin over a of (a - a_0)^T D (a - a_0) with J a = b; Eq. (4).

    Rows of J may depend on each other if b agrees; a is unique all the same.
    """
    return nearest_acceleration(factor(D).solve, a_0, J, b)


def nearest_acceleration(
    solve: Callable[[Sequence[Scalar]], Vector],
    a_0: Sequence[Scalar],
    J: Rows,
    b: Sequence[Scalar],
    *,
    regularization: Sequence[Scalar] = (),
) -> Vector:
    """Return the minimiser of (4) with D^-1 given as a function:
    a = a_0 + D^-1 J^T (J D^-1 J^T)^-1 (b - J a_0).

    A row that depends on rows before it is left out, so that those count where rows contradict each other.
    `regularization`, a number for each row, is added to the diagonal of J D^-1 J^T: these rows then hold
    nearly, and a stays bounded where rows are almost dependent.
    """
    Y = [solve(row) for row in J]
    Phi = [[dot(row, y) for y in Y] for row in J]
    for i, epsilon in enumerate(regularization):
        Phi[i][i] = Phi[i][i] + epsilon
    missing = [b_k - dot(row, a_0) for b_k, row in zip(b, J, strict=True)]
    return _plus(a_0, Y, factor_semidefinite(Phi).solve(missing))


def explicit_dynamics(D: Rows, f: Sequence[Scalar], J: Rows, bias: Sequence[Scalar]) -> ExplicitDynamics:
    """Return M = J^T D J, c = J^T D J' q', tau = J^T f; `bias` = J' q'."""
    return ExplicitDynamics(
        transformed_inertia(D, J),
        transformed_force([dot(row, bias) for row in D], J),
        transformed_force(f, J),
    )


def explicit_dynamics_by_blocks(
    D: Rows, f: Sequence[Scalar], J: Rows, bias: Sequence[Scalar]
) -> ExplicitMotion:
    """Return x'', f_c and q'' at once from the three block rows (5);
    the second is negated to make it symmetric."""
    n, m = len(D), len(J[0])
    one = identity(n)
    top = [[*row, *([0.0] * (n + m))] for row in D]
    middle = [[*(-x for x in one[i]), *([0.0] * (n + m))] for i in range(n)]
    bottom = [[*([0.0] * n), *(row[k] for row in J), *([0.0] * m)] for k in range(m)]
    solution = factor(top + middle + bottom).solve([*f, *(-x for x in bias), *([0.0] * m)])
    return ExplicitMotion(solution[:n], solution[n : 2 * n], solution[2 * n :])


def transformed_force(f: Sequence[Scalar], J: Rows) -> Vector:
    """Return tau = J^T f: the force in coordinates q with x' = J q', of the same power."""
    return [dot([row[k] for row in J], f) for k in range(len(J[0]))]


def transformed_inertia(D: Rows, J: Rows) -> Matrix:
    """Return M = J^T D J: the inertia in coordinates q with x' = J q', of the same kinetic energy."""
    columns = [[row[k] for row in J] for k in range(len(J[0]))]
    return [[dot(column, [dot(row, other) for row in D]) for other in columns] for column in columns]


def _plus(a: Sequence[Scalar], columns: Rows, weights: Sequence[Scalar]) -> Vector:
    total = list(a)
    for column, weight in zip(columns, weights, strict=True):
        total = [x + weight * y for x, y in zip(total, column, strict=True)]
    return total
