"""Newton's method, of fixed structure, for Gauss's principle for velocities with contact.

The unknown is the v that minimises 1/2 v^T A v - p^T v + the costs of points, limits, friction and equalities
(`costs`), where A v* = p is free motion. One iteration, with forces f(u) at the velocities u = J v and the
residual r = A v - p - J^T f:

    1.  H = A + J^T G J,  H d = - r
    2.  a step along d to where the slope of the cost is zero
    3.  where r is below `FRICTION_UPDATE_RESIDUAL`, update friction bounds to the normal impulses, and r

With fixed friction bounds the problem is convex; when they no longer change, Coulomb's law holds; for any
bounds friction opposes slip. `position_correction` finds the displacement that removes overlaps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from dalembert.algorithms.dense import dot
from dalembert.contact.conjugate import solve_newton_system
from dalembert.contact.costs import JointLimit, dyad
from dalembert.contact.curvature import multiply
from dalembert.contact.gauss import GaussProblem
from dalembert.contact.line_search import line_search
from dalembert.scalar import Scalar, logical_and, logical_not, loop, maximum, select, sqrt
from dalembert.spatial import Vec3

__all__ = ["GaussSolution", "position_correction", "solve"]

FRICTION_UPDATE_RESIDUAL = 0.1
"""The relative residual below which the friction bounds may be updated to the normal impulses."""

FRICTION_UPDATES_PER_STEP = 8.0
"""The most updates of the friction bounds in a step: with fewer, bodies that slide on an edge chatter."""

UNDAMPED_FRICTION_UPDATES = 2.0
"""After two full updates of the friction bounds, update by half: full updates cycle where friction and normal
force feed on each other (for 63 of 2,000 thrown rods: design/simulation.md)."""

LAST_UPDATE_ITERATION_RATIO = 0.7
"""The fraction of the iterations after which friction bounds stay fixed, so that the last ones converge."""

NEGLIGIBLE_UPDATE_MARK = 2.0 * FRICTION_UPDATES_PER_STEP
"""Added to the count of updates where an update would change little: the final impulses include it."""

NEGLIGIBLE_UPDATE_FACTOR = 20.0
"""The relative residual, in multiples of the tolerance, below which an update is skipped as negligible."""

MOMENTUM_SCALE_RATIO = 1e-3
"""The fraction of the momenta that is added to the scale of the residual, for small acting impulses."""

NEAR_CONTACT_SPEED = 1.0
"""The margin [m/s] above its velocity bound within which a point counts as nearly touching."""


class GaussSolution(NamedTuple):
    """The solution v, the velocities u of the points and their friction bounds; impulses on the points'
    second bodies, their normal parts, impulses of limits and friction and equalities; the relative
    residual."""

    v: list[Scalar]
    u: list[Vec3]
    friction_bounds: Sequence[Scalar]
    impulses: list[Vec3]
    normal: list[Scalar]
    joint_impulses: list[Scalar]
    equality_impulses: list[Scalar]
    residual: Scalar


def solve(
    problem: GaussProblem,
    v: Sequence[Scalar],
    friction_bounds: Sequence[Scalar],
    *,
    acting: Sequence[Scalar],
    iterations: int,
    tolerance: float,
) -> GaussSolution:
    """Minimise from the guess v. `friction_bounds`: the initial normal impulses that bound friction.

    The iteration ends where the residual is below `tolerance` times the impulses `acting` without contact, or
    after `iterations`, for each sample separately.
    """
    A, p = problem.A, problem.p
    weights = [1.0 / A[i][i] for i in range(len(A))]
    scale = _norm(acting, weights) + MOMENTUM_SCALE_RATIO * _norm(p, weights) + 1e-12

    def update_friction(
        v: Sequence[Scalar],
        momentum: Sequence[Scalar],
        u: Sequence[Vec3],
        friction_bounds: Sequence[Scalar],
        updates: Scalar,
        number: Scalar,
    ) -> Any:
        """Update the friction bounds if that is due, and return them, r and the relative residual."""
        others = problem.other_impulses(v)

        def residual_of(bounds: Sequence[Scalar]) -> list[Scalar]:
            impulses = [point.force(x, h).impulse for point, x, h in zip(problem.points, u, bounds)]
            contact = problem.generalized_impulses(impulses)
            return [m - c - o for m, c, o in zip(momentum, contact, others, strict=True)]

        r = residual_of(friction_bounds)
        size = _norm(r, weights) / scale
        may_update = logical_and(
            updates < FRICTION_UPDATES_PER_STEP, number < LAST_UPDATE_ITERATION_RATIO * iterations
        )
        is_due = logical_and(size < FRICTION_UPDATE_RESIDUAL, may_update)
        ratio = select(updates < UNDAMPED_FRICTION_UPDATES, 1.0, 0.5)
        normal = [
            h + (point.normal_impulse(x) - h) * ratio
            for point, x, h in zip(problem.points, u, friction_bounds)
        ]
        r_updated = residual_of(normal)
        size_updated = _norm(r_updated, weights) / scale
        updates_now = logical_and(is_due, size_updated >= NEGLIGIBLE_UPDATE_FACTOR * tolerance)
        friction_bounds = [
            select(updates_now, new, old) for new, old in zip(normal, friction_bounds, strict=True)
        ]
        r = [select(updates_now, new, old) for new, old in zip(r_updated, r, strict=True)]
        size = select(updates_now, size_updated, size)
        left = select(logical_and(may_update, logical_not(is_due)), 1.0, size)
        return [
            friction_bounds,
            r,
            left,
            updates + select(is_due, select(updates_now, 1.0, NEGLIGIBLE_UPDATE_MARK), 0.0),
            number + 1.0,
        ]

    def step(carry: Any) -> Any:
        v, momentum, lists, friction_bounds, r, _, updates, number = carry
        u = [Vec3(*item) for item in lists]
        d = solve_newton_system(
            problem.axes,
            A,
            [(point, point.hessian(x, h)) for point, x, h in zip(problem.points, u, friction_bounds)],
            [(joint.place, joint.hessian(v[joint.place])) for joint in problem.joints],
            problem.active_equalities(v),
            [-x for x in r],
        )
        change = problem.point_velocities(d)
        Ad = multiply(A, d)
        alpha = line_search(
            problem, v, d, u, change, friction_bounds, dot(d, r), dot(d, momentum), dot(d, Ad)
        )
        v = [x + alpha * y for x, y in zip(v, d, strict=True)]
        momentum = [x + alpha * y for x, y in zip(momentum, Ad, strict=True)]
        u = [x + y * alpha for x, y in zip(u, change, strict=True)]
        return [
            v,
            momentum,
            [x.to_list() for x in u],
            *update_friction(v, momentum, u, friction_bounds, updates, number),
        ]

    momentum = [a - b for a, b in zip(multiply(A, v), p, strict=True)]
    u = problem.point_velocities(v)
    friction_bounds, r, _, updates, number = update_friction(v, momentum, u, list(friction_bounds), 0.0, 0.0)
    # At least one iteration: the residual of the guess, however small, would add up from step to step.
    carry: Any = [list(v), momentum, [x.to_list() for x in u], friction_bounds, r, 1.0, updates, number]
    carry = loop(iterations, step, carry, until=lambda carry: carry[5] < tolerance)
    eta, _, lists, friction_bounds, _, left, updates, _ = carry
    u = [Vec3(*item) for item in lists]
    skipped = updates >= NEGLIGIBLE_UPDATE_MARK
    forces = [
        point.force(x, select(logical_and(skipped, point.slides(x, h)), point.normal_impulse(x), h))
        for point, x, h in zip(problem.points, u, friction_bounds)
    ]
    return GaussSolution(
        eta,
        u,
        friction_bounds,
        [force.impulse for force in forces],
        [force.normal for force in forces],
        [joint.impulse(eta[joint.place]) for joint in problem.joints],
        [equality.impulse(equality.velocity(eta)) for equality in problem.equalities],
        left,
    )


def position_correction(
    problem: GaussProblem, found: GaussSolution, overlaps: Sequence[Scalar]
) -> list[Scalar]:
    """Return the displacement m of v's variables with H m = J^T G_n overlap - K^T gap / R.

    `overlaps` [m]: the parts of the points' overlaps to remove. H includes all points that press, stick or
    nearly touch: removing one overlap must not create another.
    """
    v = found.v
    hessians, impulses = [], []
    for point, x, h, overlap in zip(problem.points, found.u, found.friction_bounds, overlaps, strict=True):
        pressing = point.normal_impulse(x) > 0.0
        firm = select(point.normal.dot(x) < point.bound + NEAR_CONTACT_SPEED, point.stiffness, 0.0)
        G = point.hessian(x, h) + dyad(point.normal, select(pressing, 0.0, firm))
        hessians.append((point, G))
        impulses.append(point.normal * (firm * overlap))
    diagonal = []
    total = problem.generalized_impulses(impulses) if impulses else [0.0] * len(v)
    for joint in problem.joints:
        hessian = joint.hessian(v[joint.place])
        if isinstance(joint, JointLimit):
            firm = select(joint.overlap > 0.0, joint.stiffness, 0.0)
            total[joint.place] = total[joint.place] + firm * joint.overlap * joint.sign
            hessian = maximum(hessian, firm)
        diagonal.append((joint.place, hessian))
    equalities = problem.active_equalities(v, correcting=True)
    for equality in equalities:
        equality.add(-(equality.gap * equality.stiffness), total)
    return solve_newton_system(problem.axes, problem.A, hessians, diagonal, equalities, total)


def _norm(x: Sequence[Scalar], weights: Sequence[Scalar]) -> Scalar:
    total: Scalar = 0.0
    for a, w in zip(x, weights, strict=True):
        total = total + a * a * w
    return sqrt(maximum(total, 0.0))
