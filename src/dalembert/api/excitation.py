"""Exciting motions: motions from which inertial parameters can be identified well.

Every joint follows a Fourier series about the middle of its range,

    q(t) = c + sum_k A_k sin(k w t) + B_k cos(k w t),     w = 2 pi / period,     k = 1 … harmonics        (1)

as large as the limits of position and speed allow. The coefficients are optimised for D-optimality, the least
volume of the uncertainty: maximise log det sum_j Y_j^T Y_j / s_j^2, where the noise s_j of a joint is taken
proportional to the root mean square of its forces. Unlike the condition number, this measure includes the
signal strength and does not depend on the units of the parameters. Swevers, Ganseman, Tukel, de Schutter &
van Brussel (1997), "Optimal robot excitation and identification".
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
from dalembert.compiler.library import no_model
from dalembert.errors import ArgumentError, positive_number, whole_number
from dalembert.model.model import Model

__all__ = ["ExcitingMotion", "exciting_motion"]

MAX_HARMONICS: Final = 1000
"""Above any useful number for a robot; memory grows with it."""
MAX_TRIALS: Final = 10**6
"""This many trials take hours on a small arm."""
MAX_SEED: Final = 2**128 - 1
"""NumPy's generators use 128 bits of a seed."""

LIMIT_FRACTION = 0.95
"""Fraction of the limits that is used; the rest is a margin for extremes between two samples."""

SAMPLES_PER_WAVE = 20
"""Samples of the shortest wave at which a candidate is evaluated."""

UNLIMITED_HALF_RANGE = math.pi
"""Half the range [rad or m] of joints without position limits."""


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
    _check_options(period, harmonics, trials, seed)
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
    """Return q of (1) without the middle c, and its first and second derivatives."""
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
    """Search the coefficients of least cost: random ones first, then variations of the best with adapted step
    size.
    """
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
    """Return the middle and half the range of every position, and the limits of speed and effort (nv
    each).
    """
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


def _check_options(period: object, harmonics: object, trials: object, seed: object) -> None:
    positive_number("exciting_motion: period", period, "s")
    whole_number("exciting_motion: harmonics", harmonics, 1, MAX_HARMONICS)
    whole_number("exciting_motion: trials", trials, 1, MAX_TRIALS)
    whole_number("exciting_motion: seed", seed, 0, MAX_SEED)
