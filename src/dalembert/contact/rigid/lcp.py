"""The linear complementarity problem of contact forces, by principal pivoting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np
import numpy.typing as npt

from dalembert.call.arguments import real_array
from dalembert.errors import ArgumentError, ContactError, ShapeError, own_errors

__all__ = ["ComplementaritySolution", "checked_problem", "independent_columns", "solve_lcp"]

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

    >>> solution = da.contact.solve_lcp([[2.0, 1.0], [1.0, 2.0]], [-4.0, 1.0])
    >>> print(solution.force, solution.rate, solution.active)
    [2. 0.] [0. 3.] (0,)
    >>> da.contact.solve_lcp([[1.0, -1.0], [-1.0, 1.0]], [-1.0, 0.5])
    Traceback (most recent call last):
    dalembert.errors.ContactError: no contact forces keep contacts 0, 1 from penetrating: ...
    """
    M, d = checked_problem(M, d)
    scale = 1.0 / np.sqrt(np.where(np.diag(M) > 0.0, np.diag(M), 1.0))  # then all diagonal entries are 1 or 0
    A, b = M * scale * scale[:, None], d * scale
    x, active = np.zeros(len(b)), list[int]()
    size = np.abs(b).max(initial=0.0)
    limit = 20 * len(b) + 20
    for pivot in range(2 * limit):
        rate = A @ x + b
        rate[active] = 0.0
        below = np.flatnonzero(rate < -ACCELERATION_TOLERANCE * max(size, x.max(initial=0.0)))
        if not below.size:
            force = x * scale
            order = tuple(sorted(active))
            return ComplementaritySolution(force, np.maximum(rate, 0.0) / scale, order)
        # The deepest first; by number (Bland's rule, which cannot cycle) should that take long.
        _enter(A, b, x, active, int(below[np.argmin(rate[below])] if pivot < limit else below[0]))
    raise ContactError("the contact forces were not found: M is not positive-semidefinite")


def independent_columns(M: Any, first: Any = (), among: Any = None) -> tuple[int, ...]:
    """Return contacts whose normals form a basis of the range of T, M = T^T H^-1 T: all of `first`, then
    others in order, each if it is independent of those before (Featherstone 2008 section 11.5).
    """
    A = real_array("M", M)
    scale = 1.0 / np.sqrt(np.where(np.diag(A) > 0.0, np.diag(A), 1.0))
    A = A * scale * scale[:, None]
    chosen: list[int] = []
    for contact in [*first, *(i for i in (range(len(A)) if among is None else among) if i not in set(first))]:
        schur, column = _schur(A, chosen, contact)
        if schur > RANK_TOLERANCE * A[contact, contact] * (1.0 + column @ column):
            chosen.append(int(contact))
    return tuple(sorted(chosen))


def _enter(A: Array, b: Array, x: Array, active: list[int], entering: int) -> None:
    """Raise the force of a contact until it no longer penetrates; contacts whose force vanishes leave the
    set."""
    while True:
        schur, column = _schur(A, active, entering)
        rate = float(A[entering] @ x + b[entering])
        dependent = schur <= RANK_TOLERANCE * A[entering, entering] * (
            1.0 + column @ column
        )  # above the rounding of schur
        full = np.inf if dependent else max(-rate / schur, 0.0)
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
    """Return the Schur complement of a diagonal entry with respect to the active set, and the active forces
    per unit of the entering one."""
    if not active:
        return float(A[entering, entering]), np.zeros(0)
    column = np.linalg.solve(A[np.ix_(active, active)], A[active, entering])
    return float(A[entering, entering] - A[entering, active] @ column), column


def checked_problem(M: Any, d: Any) -> tuple[Array, Array]:
    M, d = real_array("M", M), real_array("d", d)
    if d.ndim != 1 or M.shape != (d.size, d.size):
        raise ShapeError(f"M is (nc, nc) and d is (nc,), got {M.shape} and {d.shape}")
    if not (np.isfinite(M).all() and np.isfinite(d).all()):
        raise ArgumentError("M and d must be finite")
    if np.abs(M - M.T).max(initial=0.0) > 1e-8 * np.abs(M).max(initial=0.0):
        raise ArgumentError("M is not symmetric; M = T^T H^-1 T is")
    return M, d
