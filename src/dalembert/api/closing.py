"""The iteration behind `close_loops`: damped Gauss-Newton over the samples that are not closed yet.

    q <- q exp(dq),   dq = -V diag(s / (s² + mu²)) U^T residual,   K = U diag(s) V^T           (1)

The kernels give residual and K; each sample has its own damping mu, which falls to zero as it succeeds, so
that (1) becomes the shortest step K^+ residual. Singular values that are small beside the largest, which
overconstrained loops have always and others where their rank changes, are left out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dalembert.api.calls import Array

__all__ = ["closed_positions", "closed_velocities"]

RANK_TOLERANCE = 1e-9
"""A singular value of K that is smaller than this beside the largest counts as zero."""

FIRST_DAMPING = 0.3
LAST_DAMPING = 1e-6
"""Damping below this is none, relative to the largest singular value."""

LONGEST_STEP = 1.0
"""The longest step of any coordinate [rad or m] that is tried at once."""

Equations = Callable[[Array, Array | None], tuple[Array, Array, Array]]
Integrate = Callable[[Array, Array], Array]


class Closed(NamedTuple):
    """Configurations (rows, nq), and how far each is from closed: the greatest of its gaps."""

    q: Array
    gap: Array


def closed_positions(
    q: Array,
    time: Array | None,
    free: Array,
    equations: Equations,
    integrate: Integrate,
    tolerance: float,
    max_iterations: int,
) -> Closed:
    """The rows of q moved along the free velocity variables until their gaps are below the tolerance."""
    q = q.copy()
    residual, K, gap = equations(q, time)
    error = _largest(gap)
    damping = np.full(len(q), FIRST_DAMPING)
    for _ in range(max_iterations):
        open_rows = np.flatnonzero(~(error <= tolerance) & np.isfinite(error))
        if open_rows.size == 0:
            break
        step = np.zeros((open_rows.size, K.shape[2]))
        step[:, free] = _step(K[open_rows][:, :, free], residual[open_rows], damping[open_rows])
        at = None if time is None else time[open_rows]
        tried = integrate(q[open_rows], step)
        new_residual, new_K, new_gap = equations(tried, at)
        better = np.linalg.norm(new_residual, axis=1) < np.linalg.norm(residual[open_rows], axis=1)
        better |= _largest(new_gap) <= tolerance
        rows = open_rows[better]
        q[rows], residual[rows], K[rows] = tried[better], new_residual[better], new_K[better]
        error[rows] = _largest(new_gap)[better]
        damping[rows] = np.where(damping[rows] < LAST_DAMPING, 0.0, 0.1 * damping[rows])
        worse = open_rows[~better]
        damping[worse] = np.maximum(4.0 * damping[worse], 1e-3)
    return Closed(q, error)


def closed_velocities(v: Array, M: Array, K: Array, target: Array, free: Array) -> Array:
    """The v' with K v' = target that is nearest to v in the kinetic-energy metric M; only `free` ones move.

    v' = v + K^+ r + N z with r = target - K v and N a basis of K's null space; (N^T M N) z = -N^T M K^+ r.
    M may be singular, as massless bodies in a loop make it.
    """
    moved = v.copy()
    missing = target - np.einsum("rij,rj->ri", K, v)
    U, s, Vt = np.linalg.svd(K[:, :, free], full_matrices=True)
    rank = (s > RANK_TOLERANCE * np.maximum(s[:, :1], np.finfo(float).tiny)).sum(axis=1)
    for r in np.unique(rank):
        rows = np.flatnonzero(rank == r)
        along = np.einsum("rji,rj->ri", U[rows][:, :, :r], missing[rows]) / s[rows][:, :r]
        shortest = np.einsum("rji,rj->ri", Vt[rows][:, :r], along)
        N = Vt[rows][:, r:].transpose(0, 2, 1)
        M_free = M[rows][:, free][:, :, free]
        MN = M_free @ N
        left = N.transpose(0, 2, 1) @ MN
        right = -np.einsum("rji,rj->ri", MN, shortest)
        z = np.einsum("rij,rj->ri", np.linalg.pinv(left, hermitian=True), right)
        moved[np.ix_(rows, np.flatnonzero(free))] += shortest + np.einsum("rij,rj->ri", N, z)
    return moved


def _step(K: Array, residual: Array, damping: Array) -> Array:
    """(1), shortened where a coordinate would move too far."""
    U, s, Vt = np.linalg.svd(K, full_matrices=False)
    largest = np.maximum(s[:, :1], np.finfo(float).tiny)
    mu = damping[:, None] * largest
    weight = np.where(s > RANK_TOLERANCE * largest, s / (s * s + mu * mu + np.finfo(float).tiny), 0.0)
    step = -np.einsum("rji,rj->ri", Vt, weight * np.einsum("rji,rj->ri", U, residual))
    longest = np.abs(step).max(axis=1, initial=0.0)
    return step * np.minimum(1.0, LONGEST_STEP / np.maximum(longest, np.finfo(float).tiny))[:, None]


def _largest(gap: Array) -> Array:
    return np.abs(gap).max(axis=1, initial=0.0)
