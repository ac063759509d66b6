"""Damped Gauss-Newton iteration of `close_loops`, over the samples whose loops are still open.

    q <- q exp(dq),   dq = -K^T (K K^T + mu² 1)^-1 residual                                     (1)

The kernels compute the residual and K. Each sample has its own damping mu, which decreases after successful
steps, so that (1) approaches the shortest step K^+ residual. mu stays above a small bound: overconstrained
loops always have dependent rows, and others have them where their rank changes. K^T cancels the large
solution components that a small mu leaves in these directions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dalembert.api.calls import Array

__all__ = ["close_positions", "close_velocities"]

RANK_TOLERANCE = 1e-9
"""Singular values of K below this, relative to the largest, count as zero."""

FIRST_DAMPING = 0.3
LAST_DAMPING = 1e-7
"""Initial and least mu, relative to the norm of K."""

LONGEST_STEP = 1.0
"""Largest change of a coordinate in one step [rad or m]."""

Equations = Callable[[Array, Array | None], tuple[Array, Array, Array]]
Integrate = Callable[[Array, Array], Array]


class Closed(NamedTuple):
    """Configurations (rows, nq), and for each of them the largest loop error."""

    q: Array
    gap: Array


def close_positions(
    q: Array,
    time: Array | None,
    free: Array,
    equations: Equations,
    integrate: Integrate,
    tolerance: float,
    max_iterations: int,
) -> Closed:
    """Move the rows of q along the free velocity variables until their gaps are below the tolerance."""
    q = q.copy()
    residual, K, gap = equations(q, time)
    error = _largest(gap)
    damping = np.full(len(q), FIRST_DAMPING)

    def advance(rows: Array) -> None:
        step = np.zeros((rows.size, K.shape[2]))
        step[:, free] = _step(K[rows][:, :, free], residual[rows], damping[rows])
        tried = integrate(q[rows], step)
        new_residual, new_K, new_gap = equations(tried, None if time is None else time[rows])
        better = np.linalg.norm(new_residual, axis=1) < np.linalg.norm(residual[rows], axis=1)
        kept, worse = rows[better], rows[~better]
        q[kept], residual[kept], K[kept] = tried[better], new_residual[better], new_K[better]
        error[kept] = _largest(new_gap)[better]
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
    return Closed(q, error)


def close_velocities(v: Array, M: Array, K: Array, target: Array, free: Array) -> Array:
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


def _largest(gap: Array) -> Array:
    largest: Array = np.abs(gap).max(axis=1, initial=0.0)
    return largest
