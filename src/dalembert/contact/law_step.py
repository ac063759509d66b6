"""Contact by a law of surfaces in a step: those of Featherstone 2008 section 11.8, or the user's own.

A law gives the normal force f(z, p, p') from the states z of a surface, the gap p [m] and its rate p' [m/s],
and friction from a patch x (`compliant`). In a step of h [s] it is taken where the step begins, or linearised
about that and taken at its end, with u the normal velocity there, and u_0 the one before:

    explicit    gamma = h f(z, p, u_0)                                                                    (1)
    implicit    gamma = h max(0, f(z, p, u_0) + f_p h u + f_p' (u - u_0))                                 (2)

f_p and f_p' come from dual numbers; (2) has the form of a point of `costs`, so that Newton's method solves
for all points, joints and loops together. Where f_p or f_p' is positive, the force is explicit in that.
"""

from __future__ import annotations

from typing import NamedTuple

from dalembert.algorithms.dense import inner_product
from dalembert.contact.compliant import friction_force, moved_patch
from dalembert.contact.contacts import Contacts
from dalembert.contact.costs import Point, factor_hessian
from dalembert.contact.friction import PointVector
from dalembert.contact.law import Law
from dalembert.contact.newton import StepSolution, position_correction, solve
from dalembert.contact.point_set import PointSet, stack_motions
from dalembert.contact.step_terms import Memory, StepStart, flight_shift
from dalembert.scalar import Row, Scalar, maximum
from dalembert.spatial import Vec3

NEWTON_ITERATIONS = 50
"""The most iterations of Newton's method, as in `Rigid`."""

RELATIVE_RESIDUAL = 1e-6
"""The residual, as a fraction of the impulses that act without contact; the impulses of points are then
applied as they are, so that momentum is kept to rounding."""


class _Patch(NamedTuple):
    """The states z of a surface, and the patch x [m] across the normal."""

    z: list[Scalar]
    x: Vec3


def solve_law_step(start: StepStart, contacts: Contacts, memory: Memory, law: Law) -> StepSolution:
    """Solve a step; `memory` of the previous one: the states z of the surface and the patch x."""
    system, near = start.system, contacts.near
    motions = stack_motions(contacts, system, system.motion(start.v))
    order = law.surface.order

    def velocity(row: Row) -> PointVector:
        relative = motions[contacts.second[row]] - motions[contacts.first[row]]
        arm = contacts.points[row].position - system.axes.origin
        return PointVector(relative.linear + relative.angular.cross(arm))

    def patch(row: Row) -> _Patch:
        past = [0.0] * (order + 3) if memory is None else memory[row]
        n, x = contacts.points[row].normal, Vec3(*past[order:])
        return _Patch(past[:order], x - n * n.dot(x))

    before, patches = near.each(velocity), near.each(patch)

    def point(row: Row) -> Point:
        return _point(contacts, row, system.axes.origin, patches[row], before[row].linear, start.dt, law)

    points = PointSet.of(contacts, system, point)
    laws = points.laws
    bounds = near.each(lambda row: laws[row].normal_impulse(before[row]))
    problem = start.problem(points)
    found = solve(
        problem,
        start.v,
        bounds,
        acting=start.acting,
        iterations=NEWTON_ITERATIONS,
        tolerance=RELATIVE_RESIDUAL,
    )
    impulses = near.each(lambda row: found.points[row].force.impulse)
    factors = factor_hessian(system, {}, (), start.equalities)
    others, momenta = problem.other_impulses(found.v, start.v), system.times(system.motion(start.v))
    acting = [p - m + x for p, m, x in zip(problem.p, momenta, others, strict=True)]
    free = [x + y for x, y in zip(start.v, factors.solve(acting).v, strict=True)]
    P = points.generalized(lambda row: impulses[row])
    change = factors.solve(P).v
    v = [x + y for x, y in zip(free, change, strict=True)]
    correction = position_correction(problem, found, near.each(lambda row: 0.0 * bounds[row]))
    after = points.velocities(system.motion(v))

    def memory_row(row: Row) -> list[Scalar]:
        u = (after[row] if law.implicit else before[row]).linear
        return _after(contacts, row, patches[row], u, impulses[row].linear * (1.0 / start.dt), start.dt, law)

    work = inner_product(P, free) + 0.5 * inner_product(P, change)
    solution = StepSolution(v, free, correction, impulses, work, near.each(memory_row))
    solution = solution._replace(flight=flight_shift(start, v, P))
    if start.prescribed is None:
        return solution._replace(residual=found.residual)
    reaction = problem.reaction(v, impulses, problem.other_impulses(found.v, v))
    return solution._replace(residual=found.residual, reaction=reaction)


def _point(contacts: Contacts, row: Row, origin: Vec3, patch: _Patch, u: Vec3, dt: Scalar, law: Law) -> Point:
    """Return a point whose impulse is that of (1) or (2); u: its velocity before the step."""
    found, mu = contacts.points[row], contacts.friction[row]
    n, rate = found.normal, found.normal.dot(u)
    slip = u - n * rate
    K_t, D_t = law.friction_stiffness, law.friction_damping
    if not law.implicit:
        f = maximum(law.surface.force(patch.z, found.gap, rate), 0.0)
        friction, _ = friction_force(patch.x, slip, mu * f, K=K_t, D=D_t)
        return Point(found.position - origin, n, 0.0, mu, 0.0, 0.0, (n * f + friction) * dt)
    f, f_p, f_rate = law.surface.tangent(patch.z, found.gap, rate)
    k, d = maximum(-f_p, 0.0), maximum(-f_rate, 0.0)
    return Point(
        found.position - origin,
        n,
        0.0,
        mu,
        stiffness=dt * (d + dt * k),
        friction_stiffness=dt * (D_t + dt * K_t),
        warm_start=n * (dt * (f + d * rate)) - patch.x * (dt * K_t),
    )


def _after(
    contacts: Contacts, row: Row, patch: _Patch, u: Vec3, force: Vec3, dt: Scalar, law: Law
) -> list[Scalar]:
    """Return z and x after a step with the velocity u and the force of a point."""
    found = contacts.points[row]
    n, rate = found.normal, found.normal.dot(u)
    pressed = n.dot(force)
    K_t, D_t = law.friction_stiffness, law.friction_damping
    x = moved_patch(
        patch.x, u - n * rate, force - n * pressed, contacts.friction[row] * pressed, dt, K=K_t, D=D_t
    )
    return [*law.surface.after(patch.z, found.gap, rate, dt), *x]
