"""Identification of inertial parameters from measured forces, and motions that show them well.

The samples of joint j give equations Y_j beta = tau_j with noise of standard deviation s_j. The estimate of
least variance weights each joint by its noise:

    beta = argmin sum_j |Y_j beta - tau_j|^2 / s_j^2,     cov(beta) = (sum_j Y_j^T Y_j / s_j^2)^-1         (1)

Of each joint's equations only the triangular factor R_j of [Y_j tau_j] = Q_j R_j is kept, from which (1) and
the residuals follow for any s. So recordings of any length need little memory, and s can be estimated along
with beta,

    s_j^2 = |Y_j beta - tau_j|^2 / (samples - n / nv)                                                     (2)

Gautier (1997), "Dynamic identification of robots with power model"; Swevers et al. (1997), "Optimal robot
excitation and identification".

Exciting motions show the parameters well. Every joint follows a Fourier series about the middle of its range,

    q(t) = c + sum_k A_k sin(k w t) + B_k cos(k w t),     w = 2 pi / period,     k = 1 … harmonics        (3)

as large as the limits of position and speed allow. The coefficients are optimised for D-optimality, the least
volume of the uncertainty: maximise log det sum_j Y_j^T Y_j / s_j^2, where the noise s_j of a joint is taken
proportional to the root mean square of its forces. Unlike the condition number, this measure includes the
signal strength and does not depend on the units of the parameters.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np

from dalembert.api.calls import Array, ArrayLike
from dalembert.api.declared import inverse_dynamics, inverse_dynamics_regressor
from dalembert.api.frame_targets import read_array
from dalembert.api.inertial_parameters import BaseParameters, base_parameters
from dalembert.call.arguments import ArrayArgument, as_rows
from dalembert.compiler.library import argument_shape, no_model
from dalembert.errors import ArgumentError, ShapeError, positive_number, whole_number
from dalembert.model.model import Model

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

MAX_HARMONICS: Final = 1000
"""Above any useful number for a robot; memory grows with it."""
MAX_TRIALS: Final = 10**6
"""This many trials take hours on a small arm."""
MAX_SEED: Final = 2**128 - 1
"""NumPy's generators use 128 bits of a seed."""

LIMIT_FRACTION: Final = 0.95
"""Fraction of the limits that is used; the rest is a margin for extremes between two samples."""

SAMPLES_PER_WAVE: Final = 20
"""Samples of the shortest wave at which a candidate is evaluated."""

UNLIMITED_HALF_RANGE: Final = math.pi
"""Half the range [rad or m] of joints without position limits."""


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
        directions = _read_directions(unknowns, len(base.names))
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
    if noise is not None:
        return _solve_weighted(triangles, _read_noise(model, noise), names)
    sizes = np.sqrt((triangles[:, :, -1] ** 2).sum(axis=1) / rows.count)
    floor = MIN_RELATIVE_NOISE * sizes.max() or 1.0
    sizes = np.maximum(sizes, floor)
    freedom = rows.count - len(names) / model.nv
    found = _solve_weighted(triangles, sizes, names)
    for _ in range(MAX_REWEIGHTINGS):
        residuals = triangles @ np.append(found.values, -1.0)
        before, sizes = sizes, np.maximum(np.sqrt((residuals**2).sum(axis=1) / freedom), floor)
        found = _solve_weighted(triangles, sizes, names)
        if np.abs(sizes - before).max() <= 1e-6 * sizes.max():
            break
    return found


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


def _solve_weighted(triangles: Array, sizes: Array, names: tuple[str, ...]) -> Identification:
    """Solve (1) by singular values, with columns scaled to unit length; `sizes`: the noise of every joint."""
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
    return Identification(names, inverse @ (U.T @ y), inverse @ inverse.T, sizes, float(s[0] / s[-1]))


def _read_directions(unknowns: ArrayLike, count: int) -> Array:
    given = read_array("unknowns", unknowns, ())
    if given.ndim != 2 or given.shape[0] != count or not 0 < given.shape[1] <= count:
        raise ShapeError(
            f"unknowns has shape {given.shape}, expected ({count}, n): a column for each unknown, a row for "
            "each of inertial_parameters, with the same armature="
        )
    if not np.isfinite(given).all():
        raise ArgumentError("identify: unknowns holds NaN or infinity")
    return given


def _read_noise(model: Model, noise: ArrayLike) -> Array:
    sizes = read_array("noise", noise, (model.nv,))
    if sizes.ndim != 1:
        raise ShapeError(f"noise has shape {sizes.shape}, expected ({model.nv},): one number a joint")
    if not (np.isfinite(sizes) & (sizes > 0.0)).all():
        raise ArgumentError(
            f"identify: noise is {sizes.tolist()}; "
            "give positive standard deviations [N m or N], one for each joint"
        )
    return sizes


@final
@dataclass(frozen=True, slots=True, eq=False)
class ExcitingMotion:
    """A periodic motion q(t) = middle + sum_k sine_k sin(k w t) + cosine_k cos(k w t), w = 2 pi / period.

    `period` [s]; `middle (nv,)`; `sine`, `cosine (harmonics, nv)` [rad or m]; `condition_number` of the
    weighted base regressor over a period, with columns scaled to unit length. `motion.at(t)` returns (q, v,
    a).

    >>> motion = da.identification.exciting_motion(da.models.two_link_arm(), period=4.0)
    >>> q, v, a = motion.at([0.5, 4.5])
    >>> print(q.shape, np.allclose(q[0], q[1]))
    (2, 2) True
    """

    period: float
    middle: Array
    sine: Array
    cosine: Array
    condition_number: float

    def at(self, t: ArrayLike) -> tuple[Array, Array, Array]:
        """Return positions, velocities and accelerations `(…, nv)` at times `t (…)` [s]."""
        q, v, a = _series(self.sine, self.cosine, read_array("t", t, ()), self.period)
        return self.middle + q, v, a


def exciting_motion(
    model: Model,
    *,
    period: float = 10.0,
    harmonics: int = 5,
    armature: bool = False,
    trials: int = 500,
    seed: int = 0,
) -> ExcitingMotion:
    """Find a motion for `identify`: maximise log det sum_j Y_j^T Y_j / s_j² over Fourier series q(t).

    The motion has the period `period` [s] and `harmonics` waves for each joint. It stays within 95 % of the
    joints' limits of position, speed and effort, the latter predicted with the model's own inertias. Joints
    without position limits move by pi [rad or m] either way. Y is the base regressor, with columns for
    armatures if `armature`; s_j is the root mean square of joint j's forces. A quarter of the `trials`
    motions is random, the others vary the best one so far; the same `seed` gives the same motion. Collisions
    are not checked. Joints whose velocities are not the rates of their positions (ball joints, free bodies)
    are rejected. Swevers et al. (1997).

    >>> model = da.models.arm6()
    >>> motion = da.identification.exciting_motion(model, trials=40)
    >>> q, v, a = motion.at(np.arange(0.0, 10.0, 0.01))
    >>> print(np.abs(v).max(axis=0).round(1), motion.condition_number < 10.0)
    [2.9 2.9 3.3 4.8 4.8 5.7] True
    """
    if not isinstance(model, Model):
        raise no_model("exciting_motion", model)
    positive_number("exciting_motion: period", period, "s")
    whole_number("exciting_motion: harmonics", harmonics, 1, MAX_HARMONICS)
    whole_number("exciting_motion: trials", trials, 1, MAX_TRIALS)
    whole_number("exciting_motion: seed", seed, 0, MAX_SEED)
    middle, ranges, speeds, efforts = _limits(model)
    base = base_parameters(model, armature=armature)
    if not len(base):
        raise ArgumentError(f"model {model.name!r} has no parameter that forces would show")
    t = np.linspace(0.0, period, max(SAMPLES_PER_WAVE * harmonics, 2 * len(base)), endpoint=False)

    def fit_to_limits(waves: Array) -> Array:
        q, v, _ = _series(waves[0], waves[1], t, period)
        scale: Array = np.minimum(ranges / np.abs(q).max(axis=0), speeds / np.abs(v).max(axis=0))
        return LIMIT_FRACTION * scale * waves

    def cost(waves: Array) -> tuple[float, float]:
        q, v, a = _series(waves[0], waves[1], t, period)
        G, tau = _information(model, base, (middle + q, v, a), t, armature)
        excess = max(0.0, float((np.abs(tau) / (LIMIT_FRACTION * efforts)).max()) - 1.0)
        return excess, -float(np.linalg.slogdet(G)[1])

    waves, (excess, _) = _search(
        fit_to_limits, cost, (2, harmonics, model.nv), trials, np.random.default_rng(seed)
    )
    if excess > 0.0:
        raise ArgumentError(
            f"exciting_motion: no motion found whose forces stay within the limits of effort (the best "
            f"exceeds them by {excess:.0%}); give a longer period, more trials, or other limits"
        )
    q, v, a = _series(waves[0], waves[1], t, period)
    G = _information(model, base, (middle + q, v, a), t, armature)[0]
    lengths = np.sqrt(np.diagonal(G))
    try:
        condition = math.sqrt(np.linalg.cond(G / lengths / lengths[:, None]))
    except (np.linalg.LinAlgError, ValueError):
        raise ArgumentError(
            f"exciting_motion: motions of a period of {period} s do not show the parameters; give another one"
        ) from None
    return ExcitingMotion(float(period), middle, waves[0], waves[1], condition)


def _series(sine: Array, cosine: Array, t: Array, period: float) -> tuple[Array, Array, Array]:
    """Return q of (3) without the middle c, and its first and second derivatives."""
    w = 2.0 * math.pi / period * np.arange(1, len(sine) + 1)
    S, C = np.sin(w * t[..., None]), np.cos(w * t[..., None])
    w = w[:, None]
    return (
        S @ sine + C @ cosine,
        C @ (w * sine) - S @ (w * cosine),
        -S @ (w * w * sine) - C @ (w * w * cosine),
    )


def _information(
    model: Model, base: BaseParameters, motion: tuple[Array, ...], t: Array, armature: bool
) -> tuple[Array, Array]:
    """Return sum_j Y_j^T Y_j / s_j^2, averaged over the samples, and the forces tau."""
    time = t if model.time_dependent else None
    tau = inverse_dynamics(model, *motion, time=time)
    sizes = np.sqrt((tau**2).mean(axis=0))
    sizes = np.where(sizes > 0.0, sizes, 1.0)
    Y = base.reduced(inverse_dynamics_regressor(model, *motion, armature=armature, time=time))
    W = Y / sizes[:, None]
    return (W.transpose(1, 2, 0) @ W.transpose(1, 0, 2)).sum(axis=0) / len(t), tau


def _search(
    fit_to_limits: Callable[[Array], Array],
    cost: Callable[[Array], Any],
    shape: tuple[int, ...],
    trials: int,
    rng: np.random.Generator,
) -> tuple[Array, Any]:
    """Search the coefficients of least cost: random ones, then variations of the best, step size adapted."""
    best, least, step = np.zeros(shape), (math.inf, math.inf), 0.5
    for trial in range(trials):
        draw = rng.standard_normal(shape)
        if trial < max(trials // 4, 1):
            waves = fit_to_limits(draw)
        else:
            chosen = rng.random(shape) < 0.3
            waves = fit_to_limits(best + step * np.abs(best).mean(axis=(0, 1)) * chosen * draw)
        found = cost(waves)
        better = found < least
        if better:
            best, least = waves, found
        if trial >= trials // 4:
            step = step * 1.3 if better else max(0.97 * step, 0.01)
    return best, least


def _limits(model: Model) -> tuple[Array, Array, Array, Array]:
    """Return middle and half the range of every position, and limits of speed and effort, (nv,) each."""
    columns = []
    for body in model.bodies:
        size = body.v_slice.stop - body.v_slice.start
        if not size:
            continue
        joint = body.joint
        q, v = [0.3 + 0.1 * k for k in range(joint.nq)], [0.7 - 0.2 * k for k in range(joint.nv)]
        if joint.nq != joint.nv or list(joint.position_rate(q, v)) != v:
            raise ArgumentError(
                f'joint "{body.joint_name}" ({joint.kind}) has velocities that are not the rates of its '
                "coordinates; exciting_motion moves hinges, slides and what consists of them"
            )
        own = (body.limits.lower, body.limits.upper, body.limits.velocity, body.limits.effort)
        columns.append([np.broadcast_to(x, (size,)) for x in own])
    if not columns:
        raise ArgumentError(f"model {model.name!r} has no joint that moves")
    lower, upper, speeds, efforts = (np.concatenate(x) for x in zip(*columns, strict=True))
    lower = np.where(
        np.isfinite(lower),
        lower,
        np.where(np.isfinite(upper), upper, UNLIMITED_HALF_RANGE) - 2.0 * UNLIMITED_HALF_RANGE,
    )
    upper = np.where(np.isfinite(upper), upper, lower + 2.0 * UNLIMITED_HALF_RANGE)
    return (lower + upper) / 2.0, (upper - lower) / 2.0, speeds, efforts
