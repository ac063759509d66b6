"""How strongly a system answers to small changes of its forces (Featherstone 2008 section 10.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
import numpy.typing as npt

from dalembert import algorithms
from dalembert.algorithms.constraints import constraint_equations
from dalembert.algorithms.open_tree import is_constrained, require_open_tree
from dalembert.analysis.configurations import configurations, instant, require_model
from dalembert.arguments import as_array
from dalembert.errors import ArgumentError, ShapeError, own_errors
from dalembert.model.model import Model

__all__ = [
    "Sensitivity",
    "chain_condition_estimate",
    "condition_number",
    "constrained_inertia",
    "sensitivity",
]

Array = npt.NDArray[np.float64]

RANK_TOLERANCE = 1e-9
"""Singular values of K below this share of the largest belong to dependent equations."""


@own_errors
def condition_number(model: Model, q: npt.ArrayLike | None = None, *, scaled: bool = False) -> Any:
    """cond(M(q)): the greatest over the least eigenvalue of the mass matrix, a float, or `(…,)` for q `(…,
    nq)`.

    By this factor at most, a relative error of the forces grows in the accelerations. It depends on units
    where rotations and translations mix; `scaled` divides rows and columns by the roots of the diagonal
    first, which removes them. q: default neutral. With closed loops M is taken on the motions that the loops
    allow.

    A chain of N equal links has about 4 N^4 in the worst case, stretched out; branched trees of the same
    bodies have less, since it grows with depth. So choose the spanning tree of a mechanism with loops as
    shallow as possible: cut each loop at the joint farthest from the base.

    Source: Featherstone 2008 section 10.2.

    >>> import dalembert as da
    >>> model = da.models.double_pendulum()
    >>> print(da.analysis.condition_number(model, [[0.0, 0.0], [0.0, 2.0]]).round(1))
    [34.   3.2]
    """
    require_model(model, "condition_number")
    M = constrained_inertia(model, q) if model.nv else np.zeros((0, 0))
    if M.shape[-1] == 0:
        raise ArgumentError(f'"{model.name}" has no velocity variables that are free to move')
    if scaled:
        d = np.sqrt(np.diagonal(M, axis1=-2, axis2=-1))
        d = np.where(d > 0.0, d, 1.0)
        M = M / (d[..., :, None] * d[..., None, :])
    eigenvalues = np.linalg.eigvalsh(M)
    least = eigenvalues[..., 0]
    with np.errstate(divide="ignore"):
        condition = np.where(least > 0.0, eigenvalues[..., -1] / least, np.inf)
    return float(condition) if condition.ndim == 0 else condition


@own_errors
def chain_condition_estimate(links: int) -> float:
    """4 N^4: about the worst condition number of a chain of N equal links.

    Source: Featherstone 2008 section 10.2.

    >>> import dalembert as da
    >>> da.analysis.chain_condition_estimate(10)
    40000.0
    """
    return 4.0 * float(links) ** 4


@final
@dataclass(frozen=True, slots=True)
class Sensitivity:
    """The answer to slightly wrong forces.

    `desired` and `response`: accelerations (nv,) under the forces `tau` and `applied`; `force_error` and
    `acceleration_error`: the greatest relative deviation of an entry; `amplification`: the second over the
    first; `condition`: cond(M).
    """

    tau: Array
    applied: Array
    desired: Array
    response: Array
    force_error: float
    acceleration_error: float
    amplification: float
    condition: float


@own_errors
def sensitivity(
    model: Model,
    q: npt.ArrayLike,
    tau: npt.ArrayLike,
    *,
    v: npt.ArrayLike | None = None,
    applied: npt.ArrayLike | None = None,
    figures: int = 3,
    time: float | None = None,
) -> Sensitivity:
    """a = M^-1 (tau - b) for forces as meant and as applied: how much the system amplifies the difference.

    `tau` (nv,): the forces that were meant [N m or N]; `applied`: those that act, by default tau rounded to
    `figures` significant figures, as imperfect motors would; q (nq,), v (nv,) default 0. Entries of a
    relative deviation whose reference is zero are left out. `time` [s]: of models with time-dependent joints.
    Models without loops.

    Source: Featherstone 2008 section 10.2.

    >>> import dalembert as da
    >>> model = da.models.double_pendulum()
    >>> found = da.analysis.sensitivity(model, [0.0, 0.1], [21.234, 8.3456], figures=2)
    >>> print(f"{100 * found.force_error:.1f} % -> {100 * found.acceleration_error:.0f} %")
    1.1 % -> 7 %
    """
    require_model(model, "sensitivity")
    require_open_tree(model, "sensitivity")
    position, forces = _vector(q, model.nq, "q"), _vector(tau, model.nv, "tau")
    speed = np.zeros(model.nv) if v is None else _vector(v, model.nv, "v")
    acting = _rounded(forces, figures) if applied is None else _vector(applied, model.nv, "applied")
    clock = instant(time, "sensitivity")
    M = np.array(algorithms.mass_matrix(model, position.tolist(), time=clock), dtype=np.float64)
    b = np.array(
        algorithms.inverse_dynamics(model, position.tolist(), speed.tolist(), [0.0] * model.nv, time=clock)
    )
    desired, response = np.linalg.solve(M, forces - b), np.linalg.solve(M, acting - b)
    force_error, acceleration_error = _deviation(forces, acting), _deviation(desired, response)
    return Sensitivity(
        tau=forces,
        applied=acting,
        desired=desired,
        response=response,
        force_error=force_error,
        acceleration_error=acceleration_error,
        amplification=acceleration_error / force_error if force_error else np.nan,
        condition=float(np.linalg.cond(M)),
    )


def constrained_inertia(model: Model, q: npt.ArrayLike | None = None) -> Array:
    """Return M(q) `(…, nv, nv)`; with loops N^T M N, where N is an orthonormal basis of the motions with K v
    = 0.
    """
    positions = configurations(model, q, "condition_number")
    time = 0.0 if model.time_dependent else None
    entries = list(np.moveaxis(positions, -1, 0))
    rows = algorithms.mass_matrix(model, entries, time=time)
    M = np.moveaxis(_stacked(rows, positions.shape[:-1]), (0, 1), (-2, -1))
    if not has_constraints(model):
        return M
    reduced = []
    for sample, full in zip(positions.reshape(-1, model.nq), M.reshape(-1, model.nv, model.nv)):
        N = _null_space(constraint_matrix(model, sample))
        reduced.append(N.T @ full @ N)
    if len({matrix.shape for matrix in reduced}) > 1:
        raise ArgumentError("the loops allow different numbers of motions at these q; ask for one at a time")
    return np.array(reduced).reshape(*positions.shape[:-1], *reduced[0].shape)


def has_constraints(model: Model) -> bool:
    """Return whether loops, user constraints or a loop closure bind the coordinates."""
    return is_constrained(model)


def constraint_matrix(model: Model, q: Array) -> Array:
    """Return K(q) (nc, nv) at one configuration."""
    time = 0.0 if model.time_dependent else None
    found = constraint_equations(model, q.tolist(), [0.0] * model.nv, time=time)
    return np.array([[float(x) for x in row] for row in found.K], dtype=np.float64).reshape(
        len(found.K), model.nv
    )


def _null_space(K: Array) -> Array:
    _, singular, V = np.linalg.svd(K)
    rank = int((singular > RANK_TOLERANCE * singular[0]).sum()) if singular.size and singular[0] else 0
    return np.asarray(V[rank:].T)


def _stacked(rows: Any, shape: tuple[int, ...]) -> Array:
    return np.array([[np.broadcast_to(x, shape) for x in row] for row in rows], dtype=np.float64)


def _vector(given: npt.ArrayLike, size: int, name: str) -> Array:
    array: Array = as_array(name, given, (size,), follow=True).astype(np.float64)
    if array.ndim != 1:
        raise ShapeError(f"{name} has shape {array.shape}; expected ({size},)")
    return array


def _rounded(values: Array, figures: int) -> Array:
    return np.array([float(f"{x:.{figures}g}") for x in values])


def _deviation(reference: Array, found: Array) -> float:
    kept = reference != 0.0
    return float((np.abs(found - reference)[kept] / np.abs(reference[kept])).max(initial=0.0))
