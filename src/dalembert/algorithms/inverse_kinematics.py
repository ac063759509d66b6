"""Configurations that bring frames to their targets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from dalembert.algorithms.constraints import closing_equations
from dalembert.algorithms.dense import (
    DEPENDENT_ROW_RATIO_SQUARED,
    NEGLIGIBLE_ROW_RATIO_SQUARED,
    Matrix,
    dot,
    factor,
    factor_semidefinite,
    largest,
    symmetric_product,
    threshold,
    total,
    transpose,
)
from dalembert.algorithms.jacobians import jacobian
from dalembert.algorithms.kinematics import forward_kinematics
from dalembert.algorithms.open_tree import is_constrained
from dalembert.errors import ModelError
from dalembert.model import configuration
from dalembert.model.body import Body
from dalembert.model.model import Model
from dalembert.model.tree import Tree
from dalembert.scalar import (
    Scalar,
    Scalars,
    Time,
    absolute,
    is_zero,
    logical_and,
    logical_or,
    maximum,
    minimum,
    select,
    sqrt,
)
from dalembert.spatial import Mat3, Transform, Vec3
from dalembert.spatial.exponential import so3_log

# The limits of a model's joints as bounds of single coordinates, in q and in v.


class Bound(NamedTuple):
    """lower <= q[position] <= upper, a coordinate whose rate is v[velocity]."""

    position: int
    velocity: int
    lower: float
    upper: float


def position_bounds(tree: Tree) -> list[Bound]:
    """Return the bounds of coordinates with finite limits; a joint that follows another bounds that one.

    Limits of coordinates whose rate is not a velocity variable (quaternions, positions of free bodies), and
    of joints that follow several others, are not bounds of this kind and are rejected.
    """
    bounds: dict[int, Bound] = {}
    for body in tree.bodies:
        if body.dependence is None:
            for bound in _own_bounds(body):
                bounds[bound.position] = bound
    for body in tree.bodies:
        limits = [*_ends(body.limits.lower, 1), *_ends(body.limits.upper, 1)]
        if body.dependence is not None and any(math.isfinite(x) for x in limits):
            found = _followed_bound(body, limits)
            old = bounds.get(found.position, found)
            lower, upper = max(old.lower, found.lower), min(old.upper, found.upper)
            if lower > upper:
                raise ModelError(
                    f'joint "{body.joint_name}" and the joint that it follows have no position within the '
                    "limits of both; change the limits or solve with limits=False"
                )
            bounds[found.position] = found._replace(lower=lower, upper=upper)
    return [bounds[position] for position in sorted(bounds)]


def _own_bounds(body: Body) -> list[Bound]:
    lower, upper = _ends(body.limits.lower, body.nq), _ends(body.limits.upper, body.nq)
    limited = [i for i in range(body.nq) if math.isfinite(lower[i]) or math.isfinite(upper[i])]
    if not limited:
        return []
    # A velocity variable is the rate of a coordinate if it is at a random state.
    rng = np.random.default_rng(1)
    state = body.joint.random(rng, [-math.inf] * body.nq, [math.inf] * body.nq)
    v = rng.uniform(1.0, 2.0, body.nv).tolist()
    rates = body.joint.position_rate(state, v)
    for i in limited:
        if rates[i] not in v:
            raise ModelError(
                f'joint "{body.joint_name}" has a limit on its coordinate {i}, whose rate is no velocity '
                "variable, so that it cannot be kept; take the limit away or solve with limits=False"
            )
    start, first = body.q_slice.start, body.v_slice.start
    return [Bound(start + i, first + v.index(rates[i]), lower[i], upper[i]) for i in limited]


def _followed_bound(body: Body, limits: Sequence[float]) -> Bound:
    """Return the limits of a dependent joint as limits of the coordinate that it follows."""
    dependence = body.dependence
    assert dependence is not None
    if len(dependence.terms) != 1 or dependence.terms[0][2] == 0.0:
        raise ModelError(
            f'joint "{body.joint_name}" has limits and follows several others, so that these limits are no '
            "bounds of single coordinates; take them away or solve with limits=False"
        )
    position, velocity, ratio = dependence.terms[0]
    ends = sorted((end - dependence.offset) / ratio for end in limits)
    return Bound(position, velocity, ends[0], ends[1])


def _ends(value: Sequence[float] | float, n: int) -> list[float]:
    return [float(value)] * n if isinstance(value, int | float) else [float(x) for x in value]


# The errors of frames relative to their targets, and the Jacobians of these errors.
#
# For a frame at (R, p) with the target (R*, p*), in world axes
#
#     (1)  orientation   psi = log(R R*^T)    [rad]          (2)  position   e = p - p*    [m]
#     (3)  (omega, p') = J v                                  J: `jacobian`, "world_aligned"
#
# e' = J_p v. psi' = L(psi)^-1 omega with the left Jacobian L of SO(3), but L psi = L^T psi = psi, so that
#
#     (4)  L^-1 J_w dq = -psi  where  J_w dq = -psi,      d (psi . psi) / dt = 2 psi . omega
#
# J_w itself gives the exact Gauss-Newton step and the exact gradient of the squared error; L is not needed.


class FrameTarget(NamedTuple):
    """A frame or body by name, and what of its pose is prescribed."""

    frame: str
    orientation: bool
    position: bool


class FrameErrors(NamedTuple):
    """`errors`: three numbers each, of orientations (1) in the order of the targets, then of positions (2);
    `J`: three rows of (3) each.
    """

    errors: list[Vec3]
    J: list[Matrix]


def frame_errors(
    model: Model,
    q: Scalars,
    targets: Sequence[FrameTarget],
    rotations: Sequence[Sequence[Scalars]],
    translations: Sequence[Scalars],
    *,
    time: Time = None,
) -> FrameErrors:
    """Return errors and their Jacobians; `rotations` 3x3 and `translations` 3 of targets that have them."""
    poses = forward_kinematics(model, q, time=time)
    turned, moved = [], []
    turning, moving = [], []
    R_star, p_star = iter(rotations), iter(translations)
    for target in targets:
        frame = model.frame(target.frame)
        at = frame.placement.as_transform()
        X: Transform = at if frame.body < 0 else poses[frame.body].as_transform() @ at
        J = jacobian(model, q, frame, time=time)
        if target.orientation:
            rows = next(R_star)
            wanted = Mat3(*(x for row in rows for x in row))
            turned.append(so3_log(X.R @ wanted.transpose()))  # (1)
            turning.append(J[:3])
        if target.position:
            moved.append(X.p - Vec3(*next(p_star)))  # (2)
            moving.append(J[3:])
    return FrameErrors(turned + moved, turning + moving)


# One step of damped Gauss-Newton toward the targets of frames, on the configuration manifold.
#
# With the weighted errors r and their Jacobian J, the rows K dq = -c of closed loops, and z the way to a
# preferred posture, the step solves
#
#     minimise  |J dq + r|^2 + mu |dq - z|^2   subject to   K dq = -c   and to limits of coordinates      (1)
#
# through its dual, which is small: with B = [K; J] without the columns of coordinates at a limit,
#
#     (B B^T + [0; mu]) y = [c; r] + B z,     dq = z - B^T y,      q <- integrate(q, dq)             (2)
#
# or, where there are no loops and more errors than coordinates, as itself,
#
#     (J^T J + mu) w = J^T (r + J z),     dq = z - w                                                     (3)
#
# mu = damping |r|^2 makes the last steps those of Newton's method, and bounds the step at singular postures.
# A coordinate is held at a limit where the descent of (1) would lead beyond it; one that (2) takes beyond
# goes to the limit, and (2) is solved again for the others.

MAX_COORDINATE_STEP: Final = 0.8
"""The longest step of any coordinate [rad or m]."""

CLAMPED_RESOLVES: Final = 2
"""Further solutions of the step for the free coordinates, after some have met their limits."""

LOOP_WEIGHT: Final = 10.0
"""Weight of squared loop errors, relative to those of the targets, in the merit of a configuration."""

MIN_DAMPING_RATIO: Final = 1e-11
"""Least mu relative to the trace of J J^T: targets may depend on one another."""


class DampedStep(NamedTuple):
    """`q`: the next configuration; of the one where the step starts: `merit` |r|^2, with loops 10 |c|^2 more;
    `error`, the greatest distance from a target or of a loop from closed [m or rad]; `slope`, the squared
    gradient of half the merit along what may move; `length` of the step, in the coordinate that moves most.
    """

    q: list[Scalar]
    merit: Scalar
    error: Scalar
    slope: Scalar
    length: Scalar


def damped_step(
    model: Model,
    q: Scalars,
    rotations: Sequence[Sequence[Scalars]],
    translations: Sequence[Scalars],
    weights: Scalars,
    damping: Scalar,
    posture: Scalars | None = None,
    draw: Scalar = 0.0,
    *,
    targets: Sequence[FrameTarget],
    bounds: Sequence[Bound] = (),
    time: Time = None,
) -> DampedStep:
    """Compute (1) by (2).

    `weights`: of orientations, then of positions; `posture`: a configuration, and `draw`: the fraction of the
    way to it that is z.
    """
    found = frame_errors(model, q, targets, rotations, translations, time=time)
    r = [w * x for w, e in zip(weights, found.errors, strict=True) for x in e.to_list()]
    J = [[_scale(w, x) for x in row] for w, rows in zip(weights, found.J, strict=True) for row in rows]
    squares = [e.dot(e) for e in found.errors]
    error = sqrt(largest(squares))
    cost = dot(r, r)
    c: list[Scalar] = []
    K: Matrix = []
    if is_constrained(model):
        closing = closing_equations(model, q, time=time)
        kept = [i for i, row in enumerate(closing.K) if not all(is_zero(x) for x in row)]
        c, K = [closing.residual[i] for i in kept], [closing.K[i] for i in kept]
        error = maximum(error, largest([absolute(x) for x in closing.gap]))
    mu = damping * cost
    gradient = [dot(column, r) for column in transpose(J)] or [0.0] * model.nv
    z: list[Scalar] = [0.0] * model.nv
    if posture is not None:
        z = [draw * x for x in configuration.difference(model, q, posture)]
    free = _free(q, gradient, bounds)
    if posture is not None:  # then the gradient vanishes, and it is the step that tells which limits hold
        free = [select(draw > 0.0, 1.0, f) for f in free]
    pull = gradient
    if K:
        closing_pull = [dot(column, c) for column in transpose(K)]
        pull = [g + LOOP_WEIGHT * x for g, x in zip(gradient, closing_pull, strict=True)]
    slope = dot([_scale(f, g) for f, g in zip(free, pull, strict=True)], pull)
    fixed: list[Scalar] = [0.0] * model.nv
    overdetermined = not K and len(J) > model.nv
    H = symmetric_product(transpose(J), transpose(J)) if overdetermined else []
    for _ in range(1 + CLAMPED_RESOLVES * bool(bounds)):
        if overdetermined:
            dq = _normal_step(H, gradient, free, z, fixed, mu)
        else:
            dq = _step([*K, *J], [*c, *r], free, z, fixed, len(K), mu)
        free, fixed = _clamp_to_limits(q, dq, free, fixed, bounds)
    longest = largest([absolute(x) for x in dq])
    shorter = MAX_COORDINATE_STEP / maximum(longest, MAX_COORDINATE_STEP)
    moved = configuration.integrate(model, q, [shorter * x for x in dq])
    for bound in bounds:
        moved[bound.position] = minimum(maximum(moved[bound.position], bound.lower), bound.upper)
    return DampedStep(moved, cost + LOOP_WEIGHT * dot(c, c), error, slope, longest)


def _step(
    B: Matrix, b: Scalars, free: Scalars, z: Scalars, fixed: Scalars, hard: int, mu: Scalar
) -> list[Scalar]:
    """Solve (2) for the free coordinates; the others move by `fixed`."""
    start = [_scale(f, x) + d for f, x, d in zip(free, z, fixed, strict=True)]
    right = [s + dot(row, start) for s, row in zip(b, B, strict=True)]
    loose = [[_scale(f, x) for f, x in zip(free, row, strict=True)] for row in B]
    y = _multipliers(loose, right, hard, mu)
    columns = transpose(loose) or [[] for _ in start]
    return [way - dot(column, y) for way, column in zip(start, columns, strict=True)]


def _clamp_to_limits(
    q: Scalars, dq: Scalars, free: Scalars, fixed: Scalars, bounds: Sequence[Bound]
) -> tuple[list[Scalar], list[Scalar]]:
    """Clamp the coordinates that a step would take beyond a limit to that limit."""
    free, fixed = list(free), list(fixed)
    for bound in bounds:
        j = bound.velocity
        low, high = bound.lower - q[bound.position], bound.upper - q[bound.position]
        beyond = logical_or(dq[j] < low, high < dq[j])
        fixed[j] = select(beyond, minimum(maximum(dq[j], low), high), fixed[j])
        free[j] = select(beyond, 0.0, free[j])
    return free, fixed


def _multipliers(B: Matrix, b: list[Scalar], hard: int, mu: Scalar) -> list[Scalar]:
    """Solve (2) for y; the first `hard` rows are kept exactly, but for dependent and negligible ones."""
    n = len(B)
    A = [[dot(B[i], B[j]) if j <= i else 0.0 for j in range(n)] for i in range(n)]
    shift = mu + MIN_DAMPING_RATIO * total(A[i][i] for i in range(hard, n))
    longest = largest([A[i][i] for i in range(hard)])
    noise = (
        longest
        * threshold(NEGLIGIBLE_ROW_RATIO_SQUARED, longest)
        / threshold(DEPENDENT_ROW_RATIO_SQUARED, longest)
    )
    scale = [A[i][i] + noise if i < hard else 0.0 for i in range(n)]
    for i in range(hard, n):
        A[i][i] = A[i][i] + shift
    return (factor_semidefinite(A, scale=scale) if hard else factor(A)).solve(b)


def _normal_step(
    H: Matrix, gradient: Scalars, free: Scalars, z: Scalars, fixed: Scalars, mu: Scalar
) -> list[Scalar]:
    """Solve (3) with H = J^T J and the gradient J^T r, for the free coordinates.

    Coordinates of different branches do not meet in H; leaves that are eliminated first keep it so.
    """
    start = [_scale(f, x) + d for f, x, d in zip(free, z, fixed, strict=True)]
    right = [f * (g + dot(row, start)) for f, g, row in zip(free, gradient, H, strict=True)]
    n = len(H)
    A = [[_scale(free[i] * free[j], H[i][j]) for j in reversed(range(n))] for i in reversed(range(n))]
    shift = mu + MIN_DAMPING_RATIO * total(A[i][i] for i in range(n))
    for i in range(n):
        A[i][i] = A[i][i] + shift
    w = factor(A).solve(right[::-1])[::-1]
    return [way - x for way, x in zip(start, w, strict=True)]


def _free(q: Scalars, gradient: Scalars, bounds: Sequence[Bound]) -> list[Scalar]:
    """Return one for each velocity variable that may move, zero for those that a limit holds."""
    free: list[Scalar] = [1.0] * len(gradient)
    for bound in bounds:
        g = gradient[bound.velocity]
        below = logical_and(q[bound.position] <= bound.lower, g > 0.0)
        above = logical_and(q[bound.position] >= bound.upper, g < 0.0)
        free[bound.velocity] = select(logical_or(below, above), 0.0, 1.0)
    return free


def _scale(factor: Scalar, x: Scalar) -> Scalar:
    return 0.0 if is_zero(x) else factor * x
