"""The end of a step: velocities from impulses, with rebound, so that contact never adds energy.

Newton's law of impact can create energy where several points collide at once, or where friction acts
(Featherstone 2008 section 11.7 gives it for one point). Here the impact is first inelastic, with impulses P_0
in all; then each point that closed fast gets a part of its normal impulse once more, P_1 in all, so large
that alone it would rebound with zeta+ = - e zeta-. With loops closed throughout, contact has done the work

    W = P . v* + 1/2 P . B^-1 P,      P = s_0 P_0 + s_1 P_1,      v+ = v* + B^-1 P                      (1)

where B is A with the Hessian of loops, and v* the velocity without contact. s_0 and then s_1 are one, or
the largest numbers at which W is not positive. So W <= 0 and Newton's second law hold to rounding, whether
the solver that found P_0 had converged or not.

In steps of finite length that is not all. In flight they keep E - h/2 v . f, f the weight, not E; and with v
the velocity before the step, contact adds

    W' = P . (v + v*) / 2 + 1/2 P . B^-1 P                                                               (2)

to that. W' - W = - h/2 f . A^-1 P is positive where the weight presses: a body that bounces on its corners
would climb. So rebound never makes W' positive either.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dalembert.algorithms.dense import dot
from dalembert.contact.candidates import Candidate
from dalembert.contact.curvature import SparseFactor
from dalembert.contact.gauss import GaussProblem
from dalembert.contact.newton import GaussSolution
from dalembert.scalar import Scalar, is_zero, logical_and, maximum, minimum, select, sqrt
from dalembert.spatial import Vec3

__all__ = ["Rebound", "rebound"]

MAX_EXCESS_RATIO = 0.1
"""The most, beyond e, of its impulse that a point may gain again to make up for its compliance."""


class Rebound(NamedTuple):
    """Velocities after a step, and without contact, impulses of the points and their normal parts, and the
    work of contact [J]."""

    v: list[Scalar]
    free: list[Scalar]
    impulses: list[Vec3]
    normal: list[Scalar]
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
    p = [a + b for a, b in zip(problem.p, problem.free_impulses(found.v), strict=True)]
    v_free = factors.solve(p)
    if not candidates:
        return Rebound(v_free, v_free, [], [], 0.0)
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
        return Rebound(v, v_free, impulses, normal, work)
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
        [x + y for x, y in zip(normal, more, strict=True)],
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
