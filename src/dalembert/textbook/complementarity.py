"""The linear complementarity problem of contact forces, by principal pivoting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np
import numpy.typing as npt

from dalembert.call.arguments import real_array
from dalembert.errors import ArgumentError, ContactError, ShapeError, own_errors, positive_number

Array: TypeAlias = npt.NDArray[Any]

RANK_TOLERANCE = 1e-11
"""The ratio of Schur complement to diagonal entry of M below which a normal depends on others: the square of
an angle of about 3e-6 rad."""
ACCELERATION_TOLERANCE = 1e-11
"""The fraction of the greatest acceleration, or of the acceleration by the greatest force alone, below which
an acceleration counts as zero."""


@final
@dataclass(frozen=True, eq=False)
class ComplementaritySolution:
    """A basic solution: `force` lambda `(nc,)`, `rate` zeta-dot = M lambda + d `(nc,)`, and `active`, the
    contacts whose forces may be positive; their columns of T are independent.
    """

    force: Array
    rate: Array
    active: tuple[int, ...]


@own_errors
def solve_lcp(M: Any, d: Any) -> ComplementaritySolution:
    """Solve zeta = M lambda + d, zeta >= 0, lambda >= 0, zeta . lambda = 0 for a basic solution.

    `M (nc, nc)` symmetric and positive-semidefinite, M = T^T H^-1 T; `d (nc,)` the separation accelerations
    without contact forces [m/s^2]. Principal pivoting: contacts that would penetrate enter the active set
    one at a time, the others of the set keep zeta = 0, and those whose force would turn negative leave it.
    A contact whose normal depends on those of the set enters in exchange for one of them. T lambda and zeta
    are unique, lambda is one of possibly many solutions, with no more positive elements than M has rank.

    Raises `ContactError` where no solution exists, as in Example 11.1 of the book: forces z >= 0 with M z =
    0 that accelerate nothing, and d . z < 0.

    Source: Featherstone 2008 section 11.5, Eq. 11.42; Cottle and Dantzig 1968.

    >>> solution = da.textbook.solve_lcp([[2.0, 1.0], [1.0, 2.0]], [-4.0, 1.0])
    >>> print(solution.force, solution.rate, solution.active)
    [2. 0.] [0. 3.] (0,)
    >>> da.textbook.solve_lcp([[1.0, -1.0], [-1.0, 1.0]], [-1.0, 0.5])
    Traceback (most recent call last):
    dalembert.errors.ContactError: no contact forces keep contacts 0, 1 from penetrating: ...
    """
    M, d = checked_problem(M, d)
    A, scale = _unit_diagonal(M)
    b = d * scale
    x, active = np.zeros(len(b)), list[int]()
    size = np.abs(b).max(initial=0.0)
    limit = 20 * len(b) + 20
    for pivot in range(2 * limit):
        rate = A @ x + b
        rate[active] = 0.0
        below = np.flatnonzero(rate < -ACCELERATION_TOLERANCE * max(size, x.max(initial=0.0)))
        if not below.size:
            return ComplementaritySolution(x * scale, np.maximum(rate, 0.0) / scale, tuple(sorted(active)))
        # The deepest first; by number (Bland's rule, which cannot cycle) should that take long.
        _enter(A, b, x, active, int(below[np.argmin(rate[below])] if pivot < limit else below[0]))
    raise ContactError("the contact forces were not found: M is not positive-semidefinite")


def independent_columns(M: Any, first: Any = (), among: Any = None) -> tuple[int, ...]:
    """Return contacts whose normals form a basis of the range of T, M = T^T H^-1 T: all of `first`, then
    others in order, each if it is independent of those before (Featherstone 2008 section 11.5).
    """
    A, _ = _unit_diagonal(real_array("M", M))
    chosen: list[int] = []
    for contact in [*first, *(i for i in (range(len(A)) if among is None else among) if i not in set(first))]:
        if _schur(A, chosen, contact)[0] > 0.0:
            chosen.append(int(contact))
    return tuple(sorted(chosen))


def _unit_diagonal(M: Array) -> tuple[Array, Array]:
    """Return S M S and the diagonal of S, which makes the diagonal entries of M one, or leaves them zero."""
    scale = 1.0 / np.sqrt(np.where(np.diag(M) > 0.0, np.diag(M), 1.0))
    return M * scale * scale[:, None], scale


def _enter(A: Array, b: Array, x: Array, active: list[int], entering: int) -> None:
    """Raise the force of a contact until it no longer penetrates; contacts without force leave the set."""
    while True:
        schur, column = _schur(A, active, entering)
        rate = float(A[entering] @ x + b[entering])
        full = max(-rate / schur, 0.0) if schur else np.inf
        # One unit of the new force changes those of the active set by -column.
        falling = [k for k in range(len(active)) if column[k] > RANK_TOLERANCE]
        steps = [x[active[k]] / column[k] for k in falling]
        step = min([full, *steps])
        if step == np.inf:
            contacts = sorted(
                [entering, *(active[k] for k in range(len(active)) if column[k] < -RANK_TOLERANCE)]
            )
            named = ", ".join(map(str, contacts))
            error = ContactError(
                f"no contact forces keep contacts {named} from penetrating: their forces cancel each other, "
                "and they close together; let them penetrate a little, until their normals change, or use "
                "compliant contact"
            )
            error.contacts = tuple(contacts)
            raise error
        x[active] -= step * column
        x[entering] += step
        if step == full:
            active.append(entering)
            x[active] = np.maximum(-np.linalg.solve(A[np.ix_(active, active)], b[active]), 0.0)
            return
        leaving = active[falling[int(np.argmin(steps))]]
        active.remove(leaving)
        x[leaving] = 0.0


def _schur(A: Array, active: list[int], entering: int) -> tuple[float, Array]:
    """Return the Schur complement of a diagonal entry with respect to the active set, zero if it is within
    rounding, and the active forces per unit of the entering one."""
    column = np.linalg.solve(A[np.ix_(active, active)], A[active, entering])
    schur = float(A[entering, entering] - A[entering, active] @ column)
    dependent = schur <= RANK_TOLERANCE * A[entering, entering] * (1.0 + column @ column)
    return 0.0 if dependent else schur, column


def checked_problem(M: Any, d: Any) -> tuple[Array, Array]:
    M, d = real_array("M", M), real_array("d", d)
    if d.ndim != 1 or M.shape != (d.size, d.size):
        raise ShapeError(f"M is (nc, nc) and d is (nc,), got {M.shape} and {d.shape}")
    if not (np.isfinite(M).all() and np.isfinite(d).all()):
        raise ArgumentError("M and d must be finite")
    if np.abs(M - M.T).max(initial=0.0) > 1e-8 * np.abs(M).max(initial=0.0):
        raise ArgumentError("M is not symmetric; M = T^T H^-1 T is")
    return M, d


# The two quadratic programs that are equivalent to the complementarity problem of contact forces.


@own_errors
def solve_force_qp(M: Any, d: Any, *, tolerance: float = 1e-12) -> ComplementaritySolution:
    """Minimise 1/2 lambda^T M lambda + lambda^T d subject to lambda >= 0, by an interior point method.

    `M (nc, nc)` symmetric and positive-semidefinite, `d (nc,)` [m/s^2]: those of `solve_lcp`, whose
    conditions are the Kuhn-Tucker conditions of this program. T lambda and zeta = M lambda + d are the same;
    where lambda is not unique it comes from amid the solutions instead of a corner, so that four equal feet
    carry about equal loads, and `active` then has more contacts than M has rank. Newton's method on zeta_i
    lambda_i = mu as mu goes to zero (Mehrotra), until products and residuals are below `tolerance` of the
    problem's scale.

    Raises `ContactError` where no solution exists.

    Source: Featherstone 2008 section 11.5, Eq. 11.43.

    >>> solution = da.textbook.solve_force_qp(np.ones((4, 4)), [-9.81, -9.81, -9.81, -9.81])
    >>> print(solution.force.round(6))
    [2.4525 2.4525 2.4525 2.4525]
    """
    M, d = checked_problem(M, d)
    positive_number("tolerance", tolerance)
    A, scale = _unit_diagonal(M)
    size = float(np.abs(d * scale).max(initial=0.0)) or 1.0
    b = d * scale / size
    x, z = np.ones(len(b)), np.ones(len(b))
    for _ in range(100):
        residual, product = A @ x + b - z, x * z
        largest = max(1.0, x.max(initial=0.0))
        if largest > 1e4 and np.abs(A @ x).max() <= 1e-4 * largest and b @ x < -1e-6 * largest:
            # forces that accelerate nothing grow without bound
            raise ContactError(
                "no contact forces keep the contacts from penetrating; their forces cancel each other"
            )
        if max(np.abs(residual).max(initial=0.0), product.max(initial=0.0) / largest) <= tolerance * largest:
            break
        D = 1.0 / np.sqrt(z / x + 1e-14)  # (A + Z/X) dx = r, scaled so that it stays regular as forces vanish
        inverse = np.linalg.inv(A * D * D[:, None] + np.eye(len(b)))

        def newton(target: Array) -> tuple[Array, Array]:
            dx = D * (inverse @ (D * (target / x - residual)))  # noqa: B023
            return dx, A @ dx + residual  # noqa: B023

        dx, dz = newton(-product)  # Mehrotra: where would a step to mu = 0 lead …
        length = _within(x, dx, z, dz)
        ahead = float(((x + length * dx) * (z + length * dz)).mean() / product.mean())
        dx, dz = newton(ahead**3 * product.mean() - product - dx * dz)  # … and a step that allows for it
        length = 0.995 * _within(x, dx, z, dz)
        x, z = x + length * dx, z + length * dz
    else:
        raise ContactError(
            "the contact forces were not found: M is not positive-semidefinite, or no forces exist"
        )
    force = np.where(x > z, x, 0.0) * scale * size
    active = tuple(int(i) for i in np.flatnonzero(force > 0.0))
    return ComplementaritySolution(force, np.where(x > z, 0.0, z) * size / scale, active)


def _within(x: Array, dx: Array, z: Array, dz: Array) -> float:
    """Return the fraction of a step, at most 1, that leaves forces and accelerations positive."""
    return min(1.0, 1.0 / max(1e-300, float((-dx / x).max()), float((-dz / z).max())))


@final
@dataclass(frozen=True, eq=False)
class LeastConstraint:
    """`acceleration` a `(nv,)`, the contact forces `force` `(nc,)` that go with it, and the contacts that
    hold it, `active`.
    """

    acceleration: Array
    force: Array
    active: tuple[int, ...]


@own_errors
def least_constraint(H: Any, free: Any, T: Any, bias: Any) -> LeastConstraint:
    """Minimise 1/2 (a - a_0)^T H (a - a_0) subject to T^T a + bias >= 0: Gauss's principle with inequalities.

    `H (nv, nv)` the joint-space inertia; `free` a_0 = H^-1 (tau - C) `(nv,)`; `T (nv, nc)` the contact
    normals in joint space; `bias` = dT/dt^T v `(nc,)` [m/s^2]. The acceleration is unique. By the dual
    active-set method of Goldfarb and Idnani, whose steps on M = T^T H^-1 T are the pivots of `solve_lcp`: the
    set holds nv contacts at most, however many there are, and contact forces come out as multipliers.

    Source: Featherstone 2008 section 11.5, Eq. 11.44; Goldfarb and Idnani 1983.

    >>> T = np.array([[1.0, -1.0]])  # a bead of 2 kg between two stops, pushed against the first
    >>> result = da.textbook.least_constraint([[2.0]], [-3.0], T, [0.0, 0.5])
    >>> print(result.acceleration, result.force)
    [0.] [6. 0.]
    """
    H, a, T, bias = (real_array(name, x) for name, x in (("H", H), ("free", free), ("T", T), ("bias", bias)))
    if a.ndim != 1 or bias.ndim != 1 or H.shape != (a.size, a.size) or T.shape != (a.size, bias.size):
        raise ShapeError(
            f"H is (nv, nv), free (nv,), T (nv, nc), bias (nc,); "
            f"got {H.shape}, {a.shape}, {T.shape}, {bias.shape}"
        )
    if not all(np.isfinite(x).all() for x in (H, a, T, bias)):
        raise ArgumentError("H, free, T and bias must be finite")
    try:
        response = np.linalg.solve(H, T)
    except np.linalg.LinAlgError:
        raise ContactError("H is singular: a freedom moves nothing that has mass") from None
    M = T.T @ response
    try:
        solution = solve_lcp((M + M.T) / 2, T.T @ a + bias)
    except ContactError as error:
        raise ContactError(
            "no acceleration obeys all contacts: their normals oppose each other, and they close"
            if error.contacts
            else "the accelerations were not found: H is not positive-definite"
        ) from None
    return LeastConstraint(a + response @ solution.force, solution.force, solution.active)
