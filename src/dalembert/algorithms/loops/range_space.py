"""Method 2: solve for lambda first (Featherstone 2008 section 8.5, Eqs 8.37 to 8.41).

With the sparse factors M = L^T D L (section 6.5),

    Y = L^-T K^T,   z = L^-T tau'                                                                      (1)
    A = K M^-1 K^T = Y^T D^-1 Y,   b = k - Y^T D^-1 z                                                  (2)
    A lambda = b,   M a = tau' + K^T lambda  =>  L a = D^-1 (z + Y lambda)                             (3)

Where constraints depend on each other A is singular: `factor_semidefinite` drops rows until it is not, which
changes lambda and not a. The last line of (3) saves one of the two triangular solutions of the book's step 6.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Unpack

from dalembert.algorithms.dense import Matrix, dot, symmetric_product
from dalembert.algorithms.external_forces import Conditions
from dalembert.algorithms.loops.system import ConstrainedSystem, constrained_system
from dalembert.algorithms.pseudo_inverse import minimum_norm_solution
from dalembert.algorithms.small_solve import factor_semidefinite
from dalembert.algorithms.sparse import factor_with_reciprocals, solve_l, solve_l_transposed
from dalembert.model.tree import Tree
from dalembert.scalar import Scalar, is_zero

__all__ = [
    "ConstrainedMotion",
    "accelerations_by_range_space",
    "constrained_motion",
    "multiplier_equation",
]


class ConstrainedMotion(NamedTuple):
    """a (nv), and lambda (nc) of the constraint forces K^T lambda."""

    a: list[Scalar]
    multipliers: list[Scalar]


class MultiplierEquation(NamedTuple):
    """A lambda = b of Eq. 8.37, with the factors that it came from."""

    A: Matrix
    b: list[Scalar]
    Y: Matrix
    z: list[Scalar]
    L: Matrix
    reciprocals: list[Scalar]


def accelerations_by_range_space(
    tree: Tree,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    tau: Sequence[Scalar],
    **options: Unpack[Conditions],
) -> list[Scalar]:
    """Return a `(nv,)` of M a + C = tau + K^T lambda, K a = k; method 2 of section 8.5."""
    system = constrained_system(tree, q, v, tau, **options)
    return constrained_motion(system).a


def constrained_motion(system: ConstrainedSystem, *, minimum_norm: bool = False) -> ConstrainedMotion:
    """Return a and lambda (Eqs 8.37 to 8.41).

    `minimum_norm`: of the many lambda of dependent constraints the shortest, A^+ b, which also solves
    inconsistent constraints in the sense of least squares; else one with zeros at the rows that were dropped.
    """
    equation = multiplier_equation(system)
    factors = factor_semidefinite(equation.A)
    if minimum_norm:
        lam = minimum_norm_solution(factors, equation.b)
    else:
        lam = factors.solve(equation.b)
    push = list(equation.z)
    for y, x in zip(equation.Y, lam, strict=True):
        push = [p if is_zero(y_k) else p + y_k * x for p, y_k in zip(push, y, strict=True)]
    scaled = [p * r for p, r in zip(push, equation.reciprocals, strict=True)]
    return ConstrainedMotion(
        solve_l(equation.L, system.parents, scaled, unit=True), system.spread(lam)
    )  # (3)


def multiplier_equation(system: ConstrainedSystem) -> MultiplierEquation:
    """Return A = K M^-1 K^T, b = k - K M^-1 tau' (Eqs 8.38, 8.39)."""
    L, reciprocals = factor_with_reciprocals(system.M, system.parents)
    Y = [solve_l_transposed(L, system.parents, row, unit=True) for row in system.K]  # (1)
    z = solve_l_transposed(L, system.parents, system.force, unit=True)
    W = [[y_k if is_zero(y_k) else y_k * r for y_k, r in zip(y, reciprocals, strict=True)] for y in Y]
    A = symmetric_product(Y, W)  # (2)
    b = [k_i - dot(w, z) for k_i, w in zip(system.k, W, strict=True)]
    return MultiplierEquation(A, b, Y, z, L, reciprocals)
