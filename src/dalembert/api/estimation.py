"""Identification of inertial parameters from measured forces, with their uncertainty.

The samples of joint j give equations Y_j beta = tau_j with noise of standard deviation s_j. The estimate of
least variance weights each joint by its noise:

    beta = argmin sum_j |Y_j beta - tau_j|^2 / s_j^2,     cov(beta) = (sum_j Y_j^T Y_j / s_j^2)^-1         (1)

Of each joint's equations only the triangular factor R_j of [Y_j tau_j] = Q_j R_j is kept, from which (1) and
the residuals follow for any s. So recordings of any length need little memory, and s can be estimated along
with beta,

    s_j^2 = |Y_j beta - tau_j|^2 / (samples - n / nv)                                                     (2)

Gautier (1997), "Dynamic identification of robots with power model"; Swevers et al. (1997), "Optimal robot
excitation and identification".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np

from dalembert.api.calls import Array, ArrayLike
from dalembert.api.declared import inverse_dynamics_regressor
from dalembert.api.frame_targets import read_array
from dalembert.api.inertial_parameters import base_parameters
from dalembert.call.arguments import ArrayArgument, as_rows
from dalembert.compiler.library import argument_shape, no_model
from dalembert.errors import ArgumentError, ShapeError
from dalembert.model.model import Model

__all__ = ["Identification", "identify"]

SAMPLES_PER_BLOCK = 4096
"""Samples whose regressors are in memory at a time."""

TRIANGLES_PER_BLOCK = 4
"""Rows of a block, in multiples of the width: four triangular factors are reduced to one."""

RANK_TOLERANCE = 1e-10
"""Relative singular value, of columns scaled to unit length, below which there is only round-off."""

MAX_REWEIGHTINGS = 50
"""Largest number of alternations of (1) and (2); a handful is usual."""

MIN_RELATIVE_NOISE = 1e-12
"""Least noise relative to the largest forces: smaller residuals are round-off, not measured accuracy."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Identification:
    """The result of `identify`: the estimated `values (n,)` and their `covariance (n, n)`.

    `names (n,)`: each value's combination of inertial parameters. `noise (nv,)`: standard deviation of each
    joint's forces, as given or as estimated from the residuals. `condition_number` of the weighted equations
    with columns scaled to unit length: 1 if the motion excites all parameters evenly, larger otherwise.
    `print(found)` shows a table.

    >>> model = da.models.pendulum()
    >>> q, v, a = da.identification.exciting_motion(model).at(np.arange(0.0, 10.0, 0.01))
    >>> tau = da.inverse_dynamics(model, q, v, a) + 0.01 * np.random.default_rng(0).standard_normal(q.shape)
    >>> print(da.identification.identify(model, q, v, a, tau))
           value     sigma  parameter
     2.79406e-05   4.8e-05  bob.h_x
        -1.00016   0.00012  bob.h_z
         1.00014   0.00012  bob.I_yy
    """

    names: tuple[str, ...]
    values: Array
    covariance: Array
    noise: Array
    condition_number: float

    @property
    def standard_deviations(self) -> Array:
        """sigma `(n,)` of the values: the roots of the diagonal of their covariance."""
        sigma: Array = np.sqrt(np.diagonal(self.covariance))
        return sigma

    def __len__(self) -> int:
        return len(self.names)

    def __str__(self) -> str:
        lines = [f"{'value':>12} {'sigma':>9}  parameter"]
        for value, sigma, name in zip(self.values, self.standard_deviations, self.names, strict=True):
            lines.append(f"{value:12.6g} {sigma:9.2g}  {name}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<Identification: {len(self)} parameters, condition number {self.condition_number:.3g}>"


def identify(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    tau: ArrayLike,
    *,
    noise: ArrayLike | None = None,
    unknowns: ArrayLike | None = None,
    armature: bool = False,
    time: ArrayLike | None = None,
) -> Identification:
    """Estimate inertial parameters from measured forces: beta = argmin sum_j |Y_j beta - tau_j|² / noise_j².

    `q (…, nq)`, `v`, `a`, `tau (…, nv)`: samples of a motion and the forces of its joints [N m or N], in the
    sense of `inverse_dynamics`: subtract `passive_forces` and the contribution of external forces first. Only
    the geometry and gravity of the model are used, not its inertias. `noise (nv,)`: standard deviation of
    each joint's forces, by which joints are weighted; by default it is estimated from the residuals. The
    parameters are `base_parameters(model, armature=…)`, or theta `(n,)` with `inertial_parameters` =
    `unknowns` theta for your own matrix `unknowns (p, n)`; a link of known shape, for instance, has one
    column that holds its parameters for unit mass. Of models with loops use the spanning tree,
    `model.tree()`. The computation is in float64. Gautier (1997).

    >>> model = da.models.arm6()
    >>> q, v, a = da.identification.exciting_motion(model, trials=20).at(np.arange(0.0, 10.0, 0.01))
    >>> found = da.identification.identify(model, q, v, a, da.inverse_dynamics(model, q, v, a))
    >>> true = da.identification.base_parameters(model).of(da.identification.inertial_parameters(model))
    >>> print(found.names[1][:27], np.allclose(found.values, true))
    upper_arm.h_x + 0.45 forear True
    """
    if not isinstance(model, Model):
        raise no_model("identify", model)
    base = base_parameters(model, armature=armature)
    if unknowns is None:
        directions, names = np.eye(len(base.names))[:, base.columns], base.formulas
    else:
        directions = _directions(unknowns, len(base.names))
        names = tuple(f"theta[{k}]" for k in range(directions.shape[1]))
    values = {"q": q, "v": v, "a": a, "tau": tau, **({} if time is None else {"time": time})}
    signature = [ArrayArgument(name, argument_shape(model, name) or ()) for name in values]
    arrays = [read_array(item.name, values[item.name], item.shape) for item in signature]
    for item, array in zip(signature, arrays, strict=True):
        if not np.isfinite(array).all():
            raise ArgumentError(f"identify: {item.name} holds NaN or infinity; leave such samples out")
    rows = as_rows(signature, arrays, "float64")
    if rows.count * model.nv <= len(names) or not names:
        raise ArgumentError(
            f"identify: {rows.count} samples of {model.nv} joints cannot show {len(names)} parameters and "
            "their spread; give more samples, of a motion such as da.identification.exciting_motion finds"
        )
    triangles = _triangles(model, rows.matrices, directions, armature)
    known = None if noise is None else _noise(model, noise)
    sizes, solution = _solve_with_noise(triangles, known, rows.count, names)
    return Identification(names, solution.values, solution.covariance, sizes, solution.condition_number)


class _Solution(NamedTuple):
    values: Array
    covariance: Array
    condition_number: float


def _triangles(model: Model, arrays: tuple[Array, ...], directions: Array, armature: bool) -> Array:
    """Return the triangular factor R_j of [Y_j tau_j] for every joint (nv, n + 1, n + 1)."""
    q, v, a, tau, *clock = arrays
    width = directions.shape[1] + 1
    R = np.zeros((model.nv, width, width))
    for start in range(0, len(tau), SAMPLES_PER_BLOCK):
        part = slice(start, start + SAMPLES_PER_BLOCK)
        time = clock[0][part, 0] if clock else None
        Y = inverse_dynamics_regressor(model, q[part], v[part], a[part], armature=armature, time=time)
        equations = np.concatenate([Y @ directions, tau[part, :, None]], axis=2).transpose(1, 0, 2)
        R = _triangle(np.concatenate([R, equations], axis=1))
    return R


def _triangle(equations: Array) -> Array:
    """Return the triangular factor R of each matrix (nv, rows, width), reducing blocks of rows as a tree.

    The blocks stay in the processor's cache, and LAPACK does not spread them over threads, which would cost
    many times the arithmetic when other programs use the cores.
    """
    count, _, width = equations.shape
    piece = TRIANGLES_PER_BLOCK * width
    while True:
        rows = equations.shape[1]
        padded = np.zeros((count, rows + -rows % piece, width))
        padded[:, :rows] = equations
        R = np.asarray(np.linalg.qr(padded.reshape(count, -1, piece, width), mode="r"))
        if R.shape[1] == 1:
            return np.asarray(R[:, 0])
        equations = R.reshape(count, -1, width)


def _solve_with_noise(
    triangles: Array, known: Array | None, samples: int, names: tuple[str, ...]
) -> tuple[Array, _Solution]:
    """Solve (1) with the noise of every joint, given or estimated by (2); return the noise and the
    solution.
    """
    if known is not None:
        return known, _solve_weighted(triangles, known, names)
    sizes = np.sqrt((triangles[:, :, -1] ** 2).sum(axis=1) / samples)
    floor = MIN_RELATIVE_NOISE * sizes.max() or 1.0
    sizes = np.maximum(sizes, floor)
    freedom = samples - len(names) / len(triangles)
    solution = _solve_weighted(triangles, sizes, names)
    for _ in range(MAX_REWEIGHTINGS):
        residuals = triangles @ np.append(solution.values, -1.0)
        before, sizes = sizes, np.maximum(np.sqrt((residuals**2).sum(axis=1) / freedom), floor)
        solution = _solve_weighted(triangles, sizes, names)
        if np.abs(sizes - before).max() <= 1e-6 * sizes.max():
            break
    return sizes, solution


def _solve_weighted(triangles: Array, sizes: Array, names: tuple[str, ...]) -> _Solution:
    """Solve (1) by singular values, with columns scaled to unit length."""
    stacked = (triangles / sizes[:, None, None]).reshape(-1, triangles.shape[2])
    W, y = stacked[:, :-1], stacked[:, -1]
    lengths = np.linalg.norm(W, axis=0)
    U, s, Vt = np.linalg.svd(W / np.where(lengths > 0.0, lengths, 1.0), full_matrices=False)
    if s[-1] <= RANK_TOLERANCE * s[0]:
        hidden = names[int(np.abs(Vt[-1]).argmax())]
        raise ArgumentError(
            f"identify: this motion does not show every parameter; {hidden!r} is one that it leaves open. "
            "Move all joints, as da.identification.exciting_motion does, or ask for fewer `unknowns`"
        )
    inverse = Vt.T / s / lengths[:, None]
    return _Solution(inverse @ (U.T @ y), inverse @ inverse.T, float(s[0] / s[-1]))


def _directions(unknowns: ArrayLike, count: int) -> Array:
    given = read_array("unknowns", unknowns, ())
    if given.ndim != 2 or given.shape[0] != count or not 0 < given.shape[1] <= count:
        raise ShapeError(
            f"unknowns has shape {given.shape}, expected ({count}, n): a column for each unknown, a row for "
            "each of inertial_parameters, with the same armature="
        )
    if not np.isfinite(given).all():
        raise ArgumentError("identify: unknowns holds NaN or infinity")
    return given


def _noise(model: Model, noise: ArrayLike) -> Array:
    sizes = read_array("noise", noise, (model.nv,))
    if sizes.ndim != 1:
        raise ShapeError(f"noise has shape {sizes.shape}, expected ({model.nv},): one number a joint")
    if not (np.isfinite(sizes) & (sizes > 0.0)).all():
        raise ArgumentError(
            f"identify: noise is {sizes.tolist()}; give positive standard deviations [N m or N], one a joint"
        )
    return sizes
