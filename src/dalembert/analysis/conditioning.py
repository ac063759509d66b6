"""Sensitivity of accelerations to small changes of the forces (Featherstone 2008 section 10.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
import numpy.typing as npt

from dalembert import algorithms
from dalembert.algorithms.constraints import constraint_equations
from dalembert.algorithms.open_tree import is_constrained, require_open_tree
from dalembert.analysis.configurations import configurations, instant, require_model
from dalembert.call.arguments import as_array
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
"""Relative singular value of K below which equations count as dependent."""


@own_errors
def condition_number(model: Model, q: npt.ArrayLike | None = None, *, scaled: bool = False) -> Any:
    """Compute cond(M(q)) = the largest over the least eigenvalue of the mass matrix: `(…,)` for q `(…, nq)`.

    The result is a float for one q (default: neutral). It is the largest factor by which relative errors of
    the forces grow in the accelerations. It depends on units if rotations and translations mix; `scaled`
    divides rows and columns by the roots of the diagonal first, which removes the units. With closed loops M
    is restricted to the motions that the loops allow.

    A chain of N equal links has about 4 N^4 in the worst case, stretched out; branched trees of the same
    bodies have less, since the number grows with depth. So choose the spanning tree of a mechanism with loops
    as shallow as possible: cut each loop at the joint farthest from the base.

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
    """Return 4 N^4, an estimate of the worst condition number of a chain of N equal links.

    Source: Featherstone 2008 section 10.2.

    >>> import dalembert as da
    >>> da.analysis.chain_condition_estimate(10)
    40000.0
    """
    return 4.0 * float(links) ** 4


@final
@dataclass(frozen=True, slots=True)
class Sensitivity:
    """The response of a system to slightly wrong forces.

    `desired` and `response`: accelerations (nv,) under the forces `tau` and `applied`; `force_error` and
    `acceleration_error`: the largest relative deviation of an entry; `amplification`: `acceleration_error`
    over `force_error`; `condition`: cond(M).
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
    """Solve a = M^-1 (tau - b) for intended and applied forces, and compare their relative errors.

    `tau` (nv,): the intended forces [N m or N]; `applied`: the forces that act, by default tau rounded to
    `figures` significant figures, as by imperfect motors; q (nq,); v (nv,), by default 0. Entries whose
    reference is zero are left out of the relative deviations. `time` [s]: for models with time-dependent
    joints. For models without loops.

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
    acting = _round_to_figures(forces, figures) if applied is None else _vector(applied, model.nv, "applied")
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
    M = np.moveaxis(_stack(rows, positions.shape[:-1]), (0, 1), (-2, -1))
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


def _stack(rows: Any, shape: tuple[int, ...]) -> Array:
    return np.array([[np.broadcast_to(x, shape) for x in row] for row in rows], dtype=np.float64)


def _vector(given: npt.ArrayLike, size: int, name: str) -> Array:
    array: Array = as_array(name, given, (size,), follow=True).astype(np.float64)
    if array.ndim != 1:
        raise ShapeError(f"{name} has shape {array.shape}; expected ({size},)")
    return array


def _round_to_figures(values: Array, figures: int) -> Array:
    return np.array([float(f"{x:.{figures}g}") for x in values])


def _deviation(reference: Array, found: Array) -> float:
    kept = reference != 0.0
    return float((np.abs(found - reference)[kept] / np.abs(reference[kept])).max(initial=0.0))
