"""Rebound that never adds energy.

Newton's law of impact can create energy where several points collide at once, or where friction acts
(Featherstone 2008 section 11.7 gives it for one point). Here the impact is first inelastic, with impulses
P_0; then each point that closed fast rebounds with e times its normal impulse, P_1 = J^T n e gamma_n in all
(Poisson's law). Contact has done the work

    W(s) = P . v* + 1/2 P . A^-1 P,      P = P_0 + s P_1                                      (1)

and s is one, or the largest number at which W is not positive. For one point without friction the
result is zeta+ = - e zeta-.
"""

from __future__ import annotations

from collections.abc import Sequence

from dalembert.algorithms.dense import dot
from dalembert.contact.candidates import Candidate
from dalembert.contact.curvature import factor
from dalembert.contact.newton import GaussProblem, GaussSolution
from dalembert.scalar import Scalar, is_zero, logical_and, maximum, minimum, select, sqrt
from dalembert.spatial import Vec3

__all__ = ["rebound"]


def rebound(
    problem: GaussProblem,
    found: GaussSolution,
    before: Sequence[Scalar],
    candidates: Sequence[Candidate],
    speed: float,
) -> tuple[list[Scalar], list[Vec3], list[Scalar]]:
    """Velocities, impulses and normal impulses with restitution; `before` the velocities without forces."""
    elastic = [k for k, item in enumerate(candidates) if not is_zero(item.restitution)]
    if not elastic:
        return found.v, found.impulses, found.normal
    factors = factor(problem.A)
    v_free = factors.solve(problem.p)
    closing, faster = problem.point_velocities(before), problem.point_velocities(v_free)
    more: list[Scalar] = [0.0] * len(candidates)
    for k in elastic:
        normal = problem.points[k].normal
        incoming, stopped = normal.dot(closing[k]), normal.dot(faster[k])
        # Of the impulse, the part that stopped what the forces of this step added does not rebound.
        share = minimum(incoming / select(stopped < incoming, stopped, incoming - 1e-9), 1.0)
        more[k] = select(incoming < -speed, found.normal[k] * (candidates[k].restitution * share), 0.0)
    P_0 = problem.generalized(found.impulses)
    P_1 = problem.generalized([point.normal * x for point, x in zip(problem.points, more, strict=True)])
    change_0, change_1 = factors.solve(P_0), factors.solve(P_1)
    # Eq. (1) as c + 2 b s + a s^2, times two.
    a = dot(P_1, change_1)
    b = dot(P_1, v_free) + dot(P_1, change_0)
    c = minimum(2.0 * dot(P_0, v_free) + dot(P_0, change_0), 0.0)
    rising = a > 0.0
    root = (sqrt(maximum(b * b - a * c, 0.0)) - b) / select(rising, a, 1.0)
    s = select(logical_and(rising, root < 1.0), maximum(root, 0.0), 1.0)
    more = [x * s for x in more]
    return (
        [x + s * y for x, y in zip(found.v, change_1, strict=True)],
        [
            impulse + point.normal * x
            for impulse, point, x in zip(found.impulses, problem.points, more, strict=True)
        ],
        [x + y for x, y in zip(found.normal, more, strict=True)],
    )
