"""Rigid contact in a step: velocities by Gauss's principle, rebound, and the correction of overlaps.

Contact points are terms of `costs`; `newton` solves for the inelastic velocities, `rebound` adds restitution.
Position correction removes overlaps and closes loops by a displacement beside h eta, which enters no
velocity.

Points are soft: their compliance is a tenth of 1 / mass for normals and of the inverse effective mass for
friction, so that Newton's method takes few iterations. A point carries its load of the last two steps nearly
without giving way (`costs`), so that bodies at rest hardly sink and do not creep. Limits and loops are stiff.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dalembert.algorithms.dense import dot
from dalembert.algorithms.kinematics import forward_kinematics
from dalembert.contact.active_contacts import JointAxes, body_signs, sum_over_bodies
from dalembert.contact.costs import (
    Point,
    SparseFactor,
    assemble_hessian,
    factor,
    inverse_tree_masses,
    point_inverse_masses,
)
from dalembert.contact.narrow_phase.candidates import ABSENT_POINT_GAP, Candidate
from dalembert.contact.newton import GaussProblem, GaussSolution, StepSolution, position_correction, solve
from dalembert.contact.options import Rigid
from dalembert.contact.step_terms import Memory, StepStart, advance_state
from dalembert.model.tree import PerBody
from dalembert.scalar import Scalar, is_zero, logical_and, maximum, minimum, select, sqrt
from dalembert.spatial import Motion, Transform, Vec3

# The end of a step: velocities from impulses, with rebound, so that contact never adds energy.
#
# Newton's law of impact can create energy where several points collide at once, or where friction acts
# (Featherstone 2008 section 11.7 gives it for one point). Here the impact is first inelastic, with impulses
# P_0 in all; then each point that closed fast gets a part of its normal impulse once more, P_1 in all, so
# large that alone it would rebound with zeta+ = - e zeta-. With loops closed throughout, contact has done the
# work
#
#     W = P . v* + 1/2 P . B^-1 P,      P = s_0 P_0 + s_1 P_1,      v+ = v* + B^-1 P                      (1)
#
# where B is A with the Hessian of loops, and v* the velocity without contact. s_0 and then s_1 are one, or
# the largest numbers at which W is not positive. So W <= 0 and Newton's second law hold to rounding, whether
# the solver that found P_0 had converged or not.
#
# In steps of finite length that is not all. In flight they keep E - h/2 v . f, f the weight, not E; and with
# v the velocity before the step, contact adds
#
#     W' = P . (v + v*) / 2 + 1/2 P . B^-1 P                                                               (2)
#
# to that. W' - W = - h/2 f . A^-1 P is positive where the weight presses: a body that bounces on its corners
# would climb. So rebound never makes W' positive either.

MAX_EXCESS_RATIO = 0.1
"""The most, beyond e, of its impulse that a point may gain again to make up for its compliance."""


class Rebound(NamedTuple):
    """Velocities after a step, and without contact, impulses of the points, and the work of contact [J]."""

    v: list[Scalar]
    free: list[Scalar]
    impulses: list[Vec3]
    work: Scalar


def rebound(
    problem: GaussProblem,
    factors: SparseFactor,
    found: GaussSolution,
    before: Sequence[Scalar],
    candidates: Sequence[Candidate],
    speed: float,
) -> Rebound:
    """Return the end of a step, from the inelastic solution; `factors` of B; `before`: the velocities before
    the step, along the same axes."""
    p = [a + b for a, b in zip(problem.p, problem.other_impulses(found.v, [0.0] * len(before)), strict=True)]
    v_free = factors.solve(p)
    if not candidates:
        return Rebound(v_free, v_free, [], 0.0)
    P_0 = problem.generalized_impulses(found.impulses)
    change_0 = factors.solve(P_0)
    a, b = dot(P_0, change_0), dot(P_0, v_free)
    b_steps = 0.5 * (b + dot(P_0, before))
    s_0 = _passive_fraction(a, b, 0.0)
    v = [x + s_0 * y for x, y in zip(v_free, change_0, strict=True)]
    work, work_steps = (s_0 * x + 0.5 * (s_0 * s_0) * a for x in (b, b_steps))
    impulses = [impulse * s_0 for impulse in found.impulses]
    normal = [x * s_0 for x in found.normal]
    more = _rebounding(problem, normal, before, v_free, v, candidates, speed)
    if all(is_zero(x) for x in more):
        return Rebound(v, v_free, impulses, work)
    P_1 = problem.generalized_impulses(
        [point.normal * x for point, x in zip(problem.points, more, strict=True)]
    )
    change_1 = factors.solve(P_1)
    a, b = dot(P_1, change_1), dot(P_1, v)
    b_steps = 0.5 * (b + dot(P_1, before) + s_0 * dot(P_1, change_0))
    s_1 = minimum(_passive_fraction(a, b, work), _passive_fraction(a, b_steps, work_steps))
    more = [x * s_1 for x in more]
    return Rebound(
        [x + s_1 * y for x, y in zip(v, change_1, strict=True)],
        v_free,
        [f + point.normal * x for f, point, x in zip(impulses, problem.points, more, strict=True)],
        work + s_1 * b + 0.5 * (s_1 * s_1) * a,
    )


def _passive_fraction(a: Scalar, b: Scalar, c: Scalar) -> Scalar:
    """Return the largest s from 0 to 1 with c + b s + a s^2 / 2 <= 0, given c <= 0 <= a."""
    rising = a > 0.0
    root = (sqrt(maximum(b * b - 2.0 * (a * minimum(c, 0.0)), 0.0)) - b) / select(rising, a, 1.0)
    return select(logical_and(rising, root < 1.0), maximum(root, 0.0), 1.0)


def _rebounding(
    problem: GaussProblem,
    normal: Sequence[Scalar],
    before: Sequence[Scalar],
    v_free: Sequence[Scalar],
    v: Sequence[Scalar],
    candidates: Sequence[Candidate],
    speed: float,
) -> list[Scalar]:
    """Return the further normal impulses that take each point from its velocity u to - e times that before.

    The impulses of all points together changed the velocity of a point by u - u*; scaling all of them scales
    this change.
    """
    more: list[Scalar] = [0.0] * len(candidates)
    elastic = [k for k, item in enumerate(candidates) if not is_zero(item.restitution)]
    if not elastic:
        return more
    closing, faster, now = (problem.point_velocities(x) for x in (before, v_free, v))
    for k in elastic:
        n, e = problem.points[k].normal, candidates[k].restitution
        incoming, stopped, u = n.dot(closing[k]), n.dot(faster[k]), n.dot(now[k])
        gained = maximum(u - stopped, 1e-9)
        wanted = maximum(-(e * incoming) - u, 0.0)
        ratio = minimum(wanted / gained, e + MAX_EXCESS_RATIO * (1.0 + e))
        more[k] = select(incoming < -speed, normal[k] * ratio, 0.0)
    return more


WARM_START_RATIO = 0.97
"""The fraction of a lasting normal impulse that a warm start uses: with all of it tall stacks begin to
sway."""


def solve_rigid_step(
    start: StepStart, candidates: Sequence[Candidate], memory: Memory, settings: Rigid
) -> StepSolution:
    """Solve a step with rigid contact at the candidates.

    `memory` of the previous step, four numbers a candidate: its impulse, and the normal impulse before that.
    """
    axes, v, dt, warm_start = start.axes, start.v, start.dt, _warm_start_impulses(candidates, memory)
    velocities = axes.velocities(v)
    inverse_tree_mass, inverse_mass = inverse_tree_masses(axes.tree), point_inverse_masses(axes.tree)
    problem = start.problem(
        [
            _point(axes, item, impulse, velocities, dt, inverse_tree_mass, inverse_mass, settings)
            for item, impulse in zip(candidates, warm_start, strict=True)
        ]
    )
    friction_bounds = [
        item.point.normal.dot(impulse) * (1.0 / WARM_START_RATIO)
        for item, impulse in zip(candidates, warm_start, strict=True)
    ]
    factors = factor(assemble_hessian(axes, start.A, (), (), start.equalities))
    found = solve(
        problem,
        v,
        friction_bounds,
        acting=start.acting,
        iterations=settings.iterations,
        tolerance=settings.tolerance,
    )
    end = rebound(problem, factors, found, v, candidates, settings.rebound_speed)
    ahead, _ = advance_state(axes.tree, start.q, end.v, [dt * x for x in end.v])
    poses = forward_kinematics(axes.tree, ahead)
    overlaps = _overlaps(problem, candidates, poses, settings.position_correction)
    return StepSolution(
        end.v,
        end.free,
        position_correction(problem, found, overlaps),
        end.impulses,
        end.work,
        lambda: _cache_impulses(candidates, end.impulses, memory),
        found.residual,
    )


def _warm_start_impulses(candidates: Sequence[Candidate], memory: Memory) -> list[Vec3]:
    """Return warm-start impulses.

    A contact that carried load in both of the last two steps starts from its last impulse, scaled by the
    recent decay; a contact that carried load in only one step was an impact and starts from zero.
    """
    if memory is None:
        return [Vec3.zero() for _ in candidates]
    found = []
    for item, (x, y, z, earlier) in zip(candidates, memory, strict=True):
        last, n = Vec3(x, y, z), item.point.normal
        pressed = n.dot(last)
        decay = maximum(minimum(pressed, earlier), 0.0) / maximum(maximum(pressed, earlier), 1e-12)
        found.append((last + n * ((WARM_START_RATIO - 1.0) * pressed)) * decay)
    return found


def _cache_impulses(
    candidates: Sequence[Candidate], impulses: Sequence[Vec3], memory: Memory
) -> list[list[Scalar]]:
    """Return the memory of the next step: impulses, and the normal impulses of the previous step."""
    if memory is None:
        return [[*impulse, 0.0] for impulse in impulses]
    return [
        [*impulse, item.point.normal.dot(Vec3(x, y, z))]
        for item, impulse, (x, y, z, _) in zip(candidates, impulses, memory, strict=True)
    ]


def _point(
    axes: JointAxes,
    item: Candidate,
    warm_start: Vec3,
    velocities: PerBody[Motion],
    dt: Scalar,
    inverse_tree_mass: Sequence[Scalar],
    inverse_mass: Sequence[Scalar],
    settings: Rigid,
) -> Point:
    """Return the point of a candidate.

    Its admissible approach velocity is gap / dt. A point with restitution rebounds from its full speed, in
    the step in which it hits.
    """
    w, w_t = sum_over_bodies(item, inverse_tree_mass), sum_over_bodies(item, inverse_mass)
    arm, gap = item.point.position - axes.origin, item.point.gap
    bound = -(maximum(gap, 0.0) * (1.0 / dt))
    if not is_zero(item.restitution):
        closing = item.point.normal.dot(_relative_velocity(item, velocities, arm))
        hits = select(gap + dt * closing < 0.0, 0.0, -(ABSENT_POINT_GAP * (1.0 / dt)))
        bound = select(closing < -settings.rebound_speed, hits, bound)
    return Point.of(
        item,
        axes,
        arm,
        bound=bound,
        stiffness=1.0 / (settings.compliance * w),
        friction_stiffness=1.0 / (settings.friction_compliance * w_t),
        warm_start=warm_start,
    )


def _overlaps(
    problem: GaussProblem,
    candidates: Sequence[Candidate],
    ahead: PerBody[Transform],
    correction_ratio: float,
) -> list[Scalar]:
    """Return the overlaps [m] to correct: a fraction of every overlap, and all that this step would add to
    it.

    Points of turning bodies move on arcs: those above the centre of the arc come down by more than h u. On a
    round body another point touches after the step; the arc of the first one rises, and adds no overlap.
    """
    poses = problem.axes.poses
    turns = [after.R @ before.R.transpose() for after, before in zip(ahead, poses, strict=True)]
    found = []
    for item, point in zip(candidates, problem.points, strict=True):
        x, shift = item.point.position, Vec3.zero()
        for body, sign in body_signs(item, len(turns)):
            after = ahead[body].p + turns[body] @ (x - poses[body].p)
            shift = shift + (after - x) * sign
        gap = item.point.gap
        added = maximum(-(maximum(gap, 0.0) + point.normal.dot(shift)), 0.0)
        found.append(maximum(-gap, 0.0) * correction_ratio + added)
    return found


def _relative_velocity(item: Candidate, velocities: PerBody[Motion], arm: Vec3) -> Vec3:
    total = Vec3.zero()
    for body, sign in body_signs(item, len(velocities)):
        total = total + (velocities[body].linear + velocities[body].angular.cross(arm)) * sign
    return total
