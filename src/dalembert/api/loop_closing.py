"""The closing of kinematic loops: configurations and velocities that satisfy the constraints.

Damped Gauss-Newton iteration over the samples whose loops are still open:

    q <- q exp(dq),   dq = -K^T (K K^T + mu² 1)^-1 residual                                     (1)

The kernels compute the residual and K. Each sample has its own damping mu, which decreases after successful
steps, so that (1) approaches the shortest step K^+ residual. mu stays above a small bound: overconstrained
loops always have dependent rows, and others have them where their rank changes. K^T cancels the large
solution components that a small mu leaves in these directions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, overload

import numpy as np

from dalembert.api.calls import Array, ArrayLike, results
from dalembert.api.declared import integrate
from dalembert.api.frame_targets import broadcast_samples, read_array
from dalembert.call.arguments import pick_dtype
from dalembert.compiler.library import no_model
from dalembert.errors import ArgumentError, StateError, require_names, whole_number
from dalembert.model.model import Model

LISTED_SAMPLES = 5
"""Samples listed in an error message."""

RANK_TOLERANCE = 1e-9
"""Singular values of K below this, relative to the largest, count as zero."""

FIRST_DAMPING = 0.3
LAST_DAMPING = 1e-7
"""Initial and least mu, relative to the norm of K."""

LONGEST_STEP = 1.0
"""Largest change of a coordinate in one step [rad or m]."""

MAX_ITERATIONS = 10**9
"""This many steps take hours."""


@overload
def close_loops(
    model: Model,
    q: ArrayLike,
    v: None = None,
    *,
    hold: Iterable[str] = (),
    tolerance: float = 1e-10,
    max_iterations: int = 100,
    time: ArrayLike | None = None,
) -> Array: ...
@overload
def close_loops(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    *,
    hold: Iterable[str] = (),
    tolerance: float = 1e-10,
    max_iterations: int = 100,
    time: ArrayLike | None = None,
) -> tuple[Array, Array]: ...
def close_loops(
    model: Model,
    q: ArrayLike,
    v: ArrayLike | None = None,
    *,
    hold: Iterable[str] = (),
    tolerance: float = 1e-10,
    max_iterations: int = 100,
    time: ArrayLike | None = None,
) -> Any:
    """Find the nearest q `(…, nq)` with closed loops, phi(q) = 0, and for a given v the v' with K v' = 0.

    Damped Gauss-Newton with shortest steps dq = -K^+ phi on the configuration manifold. v' is nearest to v in
    the kinetic-energy metric, (v' - v)^T M (v' - v), as after an impulsive closing of the loops. `hold`:
    joints whose q and v stay as given. `tolerance` [rad or m] bounds every component of the displacement
    across a loop joint, so that a bearing half a turn off does not count as closed. If samples cannot be
    closed, an error lists them. The computation is in float64.

    >>> model = da.models.four_bar()
    >>> q, v = da.constraints.close_loops(model, [0.7, 0.0, 0.0], [1.0, 0.0, 0.0], hold=["crank_pivot"])
    >>> print(q.round(4), np.abs(da.constraints.constraint_error(model, q)).max() < 1e-10)
    [ 0.7    -0.9752 -0.1366] True
    >>> print(v.round(4))
    [ 1.     -1.3102  0.0518]
    """
    if not isinstance(model, Model):
        raise no_model("close_loops", model)
    if not isinstance(tolerance, int | float | np.number) or not tolerance > 0.0:
        raise ArgumentError(f"close_loops: tolerance is {tolerance!r}; give a positive number [rad or m]")
    whole_number("close_loops: max_iterations", max_iterations, 1, MAX_ITERATIONS)
    free = np.ones(model.nv, dtype=bool)
    for name in require_names("close_loops: hold", hold):
        joint = model.joint(name)
        if joint.body.dependence is not None:
            raise ArgumentError(
                f'close_loops: joint "{name}" follows a coupling; hold the joint that drives it'
            )
        free[joint.v_slice] = False
    pick_dtype([("q", q), ("v", v), ("time", time)])
    given = {"q": (read_array("q", q, (model.nq,)), 1)}
    if v is not None:
        given["v"] = read_array("v", v, (model.nv,)), 1
    if time is not None:
        given["time"] = read_array("time", time, ()), 0
    batch, samples = broadcast_samples(given)
    closed, times = samples["q"], samples.get("time")
    by_positions = model.loops or model.closure or any(x.kind != "velocity" for x in model.constraints)
    constrained = count_constraint_rows(model) > 0
    if constrained and by_positions and len(closed):
        closed, gap = _close_positions(model, closed, times, free, tolerance, max_iterations)
        _require_closed(samples["q"], gap, batch, tolerance, max_iterations)
    shaped = closed.reshape(*batch, model.nq)
    if v is None:
        return shaped
    speeds = samples["v"]
    if constrained and speeds.size:
        K, still = results(model, "constraint_velocity", (closed,), {"time": times}, None, {}, None, None)
        M = results(model, "mass_matrix", (closed,), {"time": times}, None, {}, None, None)
        speeds = _close_velocities(speeds, M, K, -still, free)
    return shaped, speeds.reshape(*batch, model.nv)


def count_constraint_rows(model: Model) -> int:
    """Return the number of constraint equations."""
    rows = sum(6 - loop.joint.nv for loop in model.loops) + sum(item.size for item in model.constraints)
    if model.closure is not None and not model.loops and not model.constraints:
        rows += model.nv - len(model.closure.velocities)
    return rows


def _require_closed(
    q: Array, gap: Array, batch: tuple[int, ...], tolerance: float, max_iterations: int
) -> None:
    """Raise an error that lists the samples whose loops are open, but for those that were not finite."""
    stuck = np.flatnonzero(~(gap <= tolerance) & np.isfinite(q).all(axis=1))
    if not stuck.size:
        return
    named = [f"by {gap[row]:.3g}" for row in stuck[:LISTED_SAMPLES]]
    which = f"the state {named[0]}"
    if batch:
        places = [tuple(int(i) for i in np.unravel_index(row, batch)) for row in stuck]
        which = "samples " + ", ".join(f"{place} {text}" for place, text in zip(places, named))
        which += f" and {stuck.size - LISTED_SAMPLES} more" if stuck.size > LISTED_SAMPLES else ""
    raise StateError(
        f"close_loops: {stuck.size} of {len(q)} samples stay open after {max_iterations} steps: {which} "
        "(rad or m); start nearer to a closed configuration, hold fewer joints, or allow more steps with "
        "max_iterations"
    )


# The iteration on rows of samples.


def _close_positions(
    model: Model, q: Array, time: Array | None, free: Array, tolerance: float, max_iterations: int
) -> tuple[Array, Array]:
    """Move the rows of q along the free velocity variables until their gaps are below the tolerance; return
    them with their gaps.
    """

    def equations(q: Array, rows: Any = slice(None)) -> Any:
        at = {"time": None if time is None else time[rows]}
        # A diverging step may overflow; it is then rejected and is no reason to raise an error.
        residual, K, gap = results(model, "closing_equations", (q,), at, None, {}, None, "off")
        return residual, K, np.abs(gap).max(axis=1, initial=0.0)

    integrate(model, q, np.zeros(model.nv))  # rejects quaternions without unit norm
    q = q.copy()
    residual, K, error = equations(q)
    damping = np.full(len(q), FIRST_DAMPING)

    def advance(rows: Array) -> None:
        step = np.zeros((rows.size, K.shape[2]))
        step[:, free] = _step(K[rows][:, :, free], residual[rows], damping[rows])
        tried = integrate(model, q[rows], step, check="off")
        new_residual, new_K, new_error = equations(tried, rows)
        better = np.linalg.norm(new_residual, axis=1) < np.linalg.norm(residual[rows], axis=1)
        kept, worse = rows[better], rows[~better]
        q[kept], residual[kept], K[kept] = tried[better], new_residual[better], new_K[better]
        error[kept] = new_error[better]
        damping[kept] = np.maximum(0.1 * damping[kept], LAST_DAMPING)
        damping[worse] = np.maximum(4.0 * damping[worse], 1e-3)

    for _ in range(max_iterations):
        open_rows = np.flatnonzero(~(error <= tolerance) & np.isfinite(error))
        if open_rows.size == 0:
            break
        advance(open_rows)
    # Convergence is quadratic: one more step doubles the digits.
    damping[:] = LAST_DAMPING
    advance(np.flatnonzero((error <= tolerance) & (error > 0.0)))
    return q, error


def _close_velocities(v: Array, M: Array, K: Array, target: Array, free: Array) -> Array:
    """Return the v' with K v' = target that is nearest to v in the kinetic-energy metric M, varying `free`
    entries only.

    M (v' - v) = K^T lambda, K v' = target (Featherstone 2008 section 11.7, an impulse of the loops).
    """
    moved = np.full_like(v, np.nan)
    known = np.isfinite(K).all(axis=(1, 2)) & np.isfinite(M).all(axis=(1, 2))
    moved[known] = v[known]
    K, K_free, M_free, target = K[known], K[known][:, :, free], M[known][:, free][:, :, free], target[known]
    move: Callable[[Array, Array, Array], Array] = _nearest_by_impulse
    try:
        factor = np.linalg.cholesky(M_free)
    except np.linalg.LinAlgError:
        move, factor = _nearest_by_null_space, M_free
    for _ in range(3):  # the second and third pass correct rounding and regularisation errors
        missing = target - np.einsum("rij,rj->ri", K, moved[known])
        moved[np.ix_(known, free)] += move(K_free, factor, missing)
    return moved


def _nearest_by_impulse(K: Array, L: Array, missing: Array) -> Array:
    """Return dv = M^-1 K^T (K M^-1 K^T)^+ missing, M = L L^T."""
    Y = np.linalg.solve(L, K.transpose(0, 2, 1))
    A = Y.transpose(0, 2, 1) @ Y
    impulse = _solve_damped(A, missing, np.full(len(A), LAST_DAMPING))
    through = np.einsum("rij,rj->ri", Y, impulse)
    moved: Array = np.linalg.solve(L.transpose(0, 2, 1), through[..., None])[..., 0]
    return moved


def _nearest_by_null_space(K: Array, M: Array, missing: Array) -> Array:
    """Return dv = K^+ missing + N z with N a basis of K's null space, (N^T M N) z = -N^T M K^+ missing.

    M may be singular here, as massless bodies in a loop make it.
    """
    moved = np.zeros((len(K), K.shape[2]))
    U, s, Vt = np.linalg.svd(K, full_matrices=True)
    rank = (s > RANK_TOLERANCE * np.maximum(s[:, :1], np.finfo(float).tiny)).sum(axis=1)
    for r in np.unique(rank):
        rows = np.flatnonzero(rank == r)
        along = np.einsum("rji,rj->ri", U[rows][:, :, :r], missing[rows]) / s[rows][:, :r]
        shortest = np.einsum("rji,rj->ri", Vt[rows][:, :r], along)
        N = Vt[rows][:, r:].transpose(0, 2, 1)
        MN = M[rows] @ N
        left = N.transpose(0, 2, 1) @ MN
        right = -np.einsum("rji,rj->ri", MN, shortest)
        z = np.einsum("rij,rj->ri", np.linalg.pinv(left, hermitian=True), right)
        moved[rows] = shortest + np.einsum("rij,rj->ri", N, z)
    return moved


def _step(K: Array, residual: Array, damping: Array) -> Array:
    """Return the step (1), shortened where a coordinate would move too far."""
    step = -np.einsum("rji,rj->ri", K, _solve_damped(K @ K.transpose(0, 2, 1), residual, damping))
    longest = np.abs(step).max(axis=1, initial=0.0)
    short: Array = step * np.minimum(1.0, LONGEST_STEP / np.maximum(longest, np.finfo(float).tiny))[:, None]
    return short


def _solve_damped(A: Array, b: Array, damping: Array) -> Array:
    """Solve (A + mu² 1) x = b for x, mu relative to the square root of A's trace."""
    size = np.maximum(np.trace(A, axis1=1, axis2=2), np.finfo(float).tiny)
    shift = (damping * damping * size)[:, None, None] * np.eye(A.shape[1])
    x: Array = np.linalg.solve(A + shift, b[..., None])[..., 0]
    return x
