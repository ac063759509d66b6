"""Rigid contact in a step: velocities by Gauss's principle, rebound, and the correction of overlaps.

Contact points are terms of `costs`; `newton` solves for the inelastic velocities, `rebound` adds restitution.
Position correction removes overlaps and closes loops by a displacement beside h eta, which enters no
velocity.

Points are soft: their compliance is a tenth of 1 / mass for normals and of the inverse effective mass for
friction, so that Newton's method takes few iterations. A point carries a load that lasts without giving way
(`WARM_START_RATIO`), so that bodies at rest have no velocities and do not creep. Limits and loops are stiff.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dalembert.algorithms.dense import inner_product
from dalembert.algorithms.kinematics import forward_kinematics
from dalembert.contact.contacts import Contacts, stack_bodies
from dalembert.contact.costs import (
    MIN_INVERSE_INERTIA,
    Point,
    factor_hessian,
    inverse_tree_masses,
    point_inverse_masses,
    turning_inverse_inertias,
)
from dalembert.contact.friction import PointVector
from dalembert.contact.narrow_phase.candidates import ABSENT_POINT_GAP
from dalembert.contact.newton import GaussProblem, GaussSolution, StepSolution, position_correction, solve
from dalembert.contact.options import Rigid
from dalembert.contact.point_set import PointSet, stack_motions
from dalembert.contact.step_terms import Memory, StepStart, flight_shift
from dalembert.contact.tree_system import TreeFactor
from dalembert.model.tree import PerBody
from dalembert.scalar import Family, Row, Scalar, logical_and, maximum, minimum, select, sqrt
from dalembert.spatial import Transform, Vec3

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
# In steps of finite length that is not all. Bodies that rebound move by the mean of v, the velocity before
# the step, and v+ (`step_terms.flight_shift`). That keeps T + V without contact; and contact adds
#
#     W' = P . (v + v+) / 2 = P . (v + v*) / 2 + 1/2 P . B^-1 P                                            (2)
#
# to it. W' - W = - h/2 f . A^-1 P is positive where the weight f presses: a body that bounces on its corners
# would climb. So rebound never makes W' positive either.

MAX_EXCESS_RATIO = 0.1
"""The most, beyond e, of its impulse that a point may gain again to make up for its compliance."""


class Rebound(NamedTuple):
    """Velocities after a step, and without contact, impulses of the points, and the work of contact [J]; the
    impulses P_0 of the inelastic impact and P_1 of restitution, both `(nv,)`."""

    v: list[Scalar]
    free: list[Scalar]
    impulses: Family[PointVector]
    work: Scalar
    inelastic: list[Scalar]
    elastic: list[Scalar] | None = None


def rebound(
    problem: GaussProblem,
    factors: TreeFactor,
    found: GaussSolution,
    before: Sequence[Scalar],
    speed: float,
) -> Rebound:
    """Return the end of a step, from the inelastic solution; `factors` of B; `before`: the velocities before
    the step, along the same axes."""
    system = problem.system
    others, momenta = problem.other_impulses(found.v, before), system.times(system.motion(before))
    acting = [p - m + x for p, m, x in zip(problem.p, momenta, others, strict=True)]
    v_free = [x + y for x, y in zip(before, factors.solve(acting).v, strict=True)]
    points, ends = problem.points, found.points
    near, laws = points.contacts.near, points.laws
    P_0 = points.generalized(lambda row: ends[row].force.impulse)
    change_0 = factors.solve(P_0).v
    a, b = inner_product(P_0, change_0), inner_product(P_0, v_free)
    b_steps = 0.5 * (b + inner_product(P_0, before))
    s_0 = _passive_fraction(a, b, 0.0)
    v = [x + s_0 * y for x, y in zip(v_free, change_0, strict=True)]
    work, work_steps = (s_0 * x + 0.5 * (s_0 * s_0) * a for x in (b, b_steps))
    if not points.contacts.rebounds:
        return Rebound(v, v_free, near.each(lambda row: ends[row].force.impulse * s_0), work, P_0)
    normal = near.each(lambda row: ends[row].force.normal * s_0)
    more = _rebounding(points, normal, before, v_free, v, speed)
    P_1 = points.generalized(lambda row: laws[row].push(more[row]))
    change_1 = factors.solve(P_1).v
    a, b = inner_product(P_1, change_1), inner_product(P_1, v)
    b_steps = 0.5 * (b + inner_product(P_1, before) + s_0 * inner_product(P_1, change_0))
    s_1 = minimum(_passive_fraction(a, b, work), _passive_fraction(a, b_steps, work_steps))
    return Rebound(
        [x + s_1 * y for x, y in zip(v, change_1, strict=True)],
        v_free,
        near.each(lambda row: ends[row].force.impulse * s_0 + laws[row].push(more[row] * s_1)),
        work + s_1 * b + 0.5 * (s_1 * s_1) * a,
        P_0,
        P_1,
    )


def _passive_fraction(a: Scalar, b: Scalar, c: Scalar) -> Scalar:
    """Return the largest s from 0 to 1 with c + b s + a s^2 / 2 <= 0, given c <= 0 <= a."""
    rising = a > 0.0
    root = (sqrt(maximum(b * b - 2.0 * (a * minimum(c, 0.0)), 0.0)) - b) / select(rising, a, 1.0)
    return select(logical_and(rising, root < 1.0), maximum(root, 0.0), 1.0)


def _rebounding(
    points: PointSet,
    normal: Family[Scalar],
    before: Sequence[Scalar],
    v_free: Sequence[Scalar],
    v: Sequence[Scalar],
    speed: float,
) -> Family[Scalar]:
    """Return the further normal impulses that take each point from its velocity u to - e times that before.

    The impulses of all points together changed the velocity of a point by u - u*; scaling all of them scales
    this change.
    """
    closing, faster, now = (points.velocities(points.system.motion(x)) for x in (before, v_free, v))

    def more(row: Row) -> Scalar:
        e, along = points.contacts.restitution[row], points.laws[row].normal_velocity
        incoming, stopped, u = along(closing[row]), along(faster[row]), along(now[row])
        gained = maximum(u - stopped, 1e-9)
        wanted = maximum(-(e * incoming) - u, 0.0)
        ratio = minimum(wanted / gained, e + MAX_EXCESS_RATIO * (1.0 + e))
        return select(logical_and(incoming < -speed, e > 0.0), normal[row] * ratio, 0.0)

    return points.contacts.near.each(more)


# Warm start: the normal impulse gamma_0 with which a point begins a step, of those of the steps before.
#
# A point of compliance R that bears the load W in a step moves with
#
#     u = R (gamma_0 - W),                                                                                 (3)
#
# so that it is at rest only if gamma_0 = W. A fraction a of the last impulse, gamma_0 = a gamma, leaves the
# velocity u = - (1 - a) R W of bodies that do not move: position correction holds them. The whole of it,
# a = 1, makes the point a spring without damper, on which stacks sway: where the load goes from one corner to
# another, one gives way and is held in its place by position correction, while its velocity gains the work of
# the weights. So changes of the load count by the fraction a, and its mean m wholly:
#
#     gamma_0 = a gamma + (1 - a) m,      m' = min(m + b (gamma - m), gamma)                               (4)
#
# Under a constant load W - m falls by 1 - b in each step, and u = - (1 - a) R (W - m) with it; a motion that
# is slower than 1 / b steps finds a spring, one that is faster a damper. The mean follows a falling load at
# once: m > W would lift what the point bears, and add energy. It is that of the lesser of the last two
# impulses, because an impact is no load, and begins with it.

WARM_START_RATIO = 0.97
"""a of Eq. (4). Of 32 towers of twenty boxes whose top one is pushed at 0.05 to 0.12 m/s two fall; ten boxes
sway by 2 mm at most 20 s later, by 36 mm with 1 (design/simulation.md)."""

MEAN_LOAD_RATIO = 0.02
"""b of Eq. (4): velocities at rest fall to a thousandth in 350 steps. With 0.1 the tower of twenty falls, and
with 0, which is a fraction alone, so does one of fifteen."""


def solve_rigid_step(start: StepStart, contacts: Contacts, memory: Memory, settings: Rigid) -> StepSolution:
    """Solve a step with rigid contact.

    `memory` of the previous step, five numbers a point: its impulse, the normal impulse before that, and its
    mean m of Eq. (4); where pairs resist turning three more, the impulse of its torque.
    """
    points, bounds = _points(start, contacts, memory, settings)
    problem = start.problem(points)
    factors = factor_hessian(start.system, {}, (), start.equalities)
    found = solve(
        problem,
        start.v,
        bounds,
        acting=start.acting,
        iterations=settings.iterations,
        tolerance=settings.tolerance,
    )
    end = rebound(problem, factors, found, start.v, settings.rebound_speed)
    flight = flight_shift(start, end.v, end.inelastic, end.elastic)
    overlaps = _overlaps(start, points, end.v, flight, settings.position_correction)
    correction = position_correction(problem, found, overlaps)
    cached = _cached_impulses(points, end.impulses, memory)
    solution = StepSolution(end.v, end.free, correction, end.impulses, end.work, cached, found.residual)
    solution = solution._replace(flight=flight)
    if start.prescribed is None:
        return solution
    others = problem.other_impulses(found.v, end.v)
    return solution._replace(reaction=problem.reaction(end.v, end.impulses, others))


def _points(
    start: StepStart, contacts: Contacts, memory: Memory, settings: Rigid
) -> tuple[PointSet, Family[Scalar]]:
    """Return the points of a step, and the normal impulses that bound friction at first."""
    system, dt = start.system, start.dt
    tree, bodies = system.axes.tree, contacts.bodies
    inverse_tree_mass = stack_bodies(tree, bodies, inverse_tree_masses(tree), 0.0)
    inverse_mass = stack_bodies(tree, bodies, point_inverse_masses(tree), 0.0)
    turns = contacts.turning is not None
    inverse_inertia = stack_bodies(tree, bodies, turning_inverse_inertias(tree), 0.0) if turns else None
    motions = stack_motions(contacts, system, system.motion(start.v)) if contacts.rebounds else None

    def law(row: Row) -> Point:
        """Return the law of a point. Its admissible approach velocity is gap / dt; a point with restitution
        rebounds from its full speed, in the step in which it hits."""
        point, first, second = contacts.points[row], contacts.first[row], contacts.second[row]
        arm, gap = point.position - system.axes.origin, point.gap
        bound = -(maximum(gap, 0.0) * (1.0 / dt))
        if motions is not None:
            relative = motions[second] - motions[first]
            closing = point.normal.dot(relative.linear + relative.angular.cross(arm))
            hits = select(gap + dt * closing < 0.0, 0.0, -(ABSENT_POINT_GAP * (1.0 / dt)))
            elastic = logical_and(closing < -settings.rebound_speed, contacts.restitution[row] > 0.0)
            bound = select(elastic, hits, bound)
        w = inverse_tree_mass[first] + inverse_tree_mass[second]
        w_t = inverse_mass[first] + inverse_mass[second]
        remembered = None if memory is None else memory[row]
        start, torque = _warm_start(point.normal, remembered)
        turning = None
        if contacts.turning is not None and inverse_inertia is not None:
            w_r = maximum(inverse_inertia[first] + inverse_inertia[second], MIN_INVERSE_INERTIA)
            turning = contacts.turning.law(row, 1.0 / (settings.friction_compliance * w_r), torque)
        return Point(
            arm,
            point.normal,
            bound,
            contacts.friction[row],
            stiffness=1.0 / (settings.compliance * w),
            friction_stiffness=1.0 / (settings.friction_compliance * w_t),
            warm_start=start,
            across=None if contacts.across is None else contacts.across[row],
            turning=turning,
        )

    points = PointSet.of(contacts, system, law)
    laws = points.laws
    return points, contacts.near.each(
        lambda row: 0.0 if memory is None else _lasting_load(laws[row].normal, memory[row])
    )


def _warm_start(n: Vec3, remembered: Sequence[Scalar] | None) -> tuple[Vec3, Vec3]:
    """Return the warm-start impulse of a point, and that of its torque.

    A contact that carried load in both of the last two steps starts from Eq. (4), scaled by the recent decay;
    a contact that carried load in only one step was an impact and starts from zero.
    """
    if remembered is None:
        return Vec3.zero(), Vec3.zero()
    x, y, z, _, mean, *torque = remembered
    last, pressed = Vec3(x, y, z), n.dot(Vec3(x, y, z))
    decay = _lasting_load(n, remembered) / maximum(pressed, 1e-12)
    start: Vec3 = (last + n * ((1.0 - WARM_START_RATIO) * (mean - pressed))) * decay
    return start, Vec3(*torque) * decay if torque else Vec3.zero()


def _lasting_load(n: Vec3, remembered: Sequence[Scalar]) -> Scalar:
    """Return the last normal impulse, scaled by the recent decay: the ratio of the lesser of the last two to
    the greater."""
    x, y, z, earlier, *_ = remembered
    pressed = maximum(n.dot(Vec3(x, y, z)), 0.0)
    return pressed * (maximum(minimum(pressed, earlier), 0.0) / maximum(maximum(pressed, earlier), 1e-12))


def _cached_impulses(points: PointSet, impulses: Family[PointVector], memory: Memory) -> Family[list[Scalar]]:
    """Return what is remembered for the next step: impulses, the normal impulses of the previous one, and
    their means."""

    def memory_row(row: Row) -> list[Scalar]:
        last, torque = impulses[row].linear, impulses[row].angular
        turning = [] if torque is None else [*torque]
        if memory is None:
            return [*last, 0.0, 0.0, *turning]
        x, y, z, earlier, mean, *_ = memory[row]
        n = points.laws[row].normal
        before = n.dot(Vec3(x, y, z))
        lasting = minimum(n.dot(last), before)
        mean = select(earlier > 0.0, minimum(mean + MEAN_LOAD_RATIO * (lasting - mean), lasting), lasting)
        return [*last, before, mean, *turning]

    return points.contacts.near.each(memory_row)


def _overlaps(
    start: StepStart,
    points: PointSet,
    eta: Sequence[Scalar],
    flight: Sequence[Scalar],
    correction_ratio: float,
) -> Family[Scalar]:
    """Return the overlaps [m] to correct: a fraction of every overlap, and all that this step would add to
    it.

    Points of turning bodies move on arcs: those above the centre of the arc come down by more than h u. On a
    round body another point touches after the step; the arc of the first one rises, and adds no overlap.
    """
    system, contacts = start.system, points.contacts
    travel = [start.dt * x + y for x, y in zip(eta, flight, strict=True)]
    q, _ = start.end(eta, travel)
    after, before = forward_kinematics(start.ahead, q), system.axes.poses
    displaced = _displacements(before, after, system.axes.origin)
    moves = stack_bodies(system.axes.tree, contacts.bodies, displaced, Transform.identity())

    def overlap(row: Row) -> Scalar:
        arm, gap = points.laws[row].arm, contacts.points[row].gap
        shift = moves[contacts.second[row]].transform_point(arm) - moves[contacts.first[row]].transform_point(
            arm
        )
        added = maximum(-(maximum(gap, 0.0) + points.laws[row].normal.dot(shift)), 0.0)
        return maximum(-gap, 0.0) * correction_ratio + added

    return contacts.near.each(overlap)


def _displacements(before: PerBody[Transform], after: PerBody[Transform], origin: Vec3) -> list[Transform]:
    """Return the displacement of each body in a step, along world axes about the common origin."""
    found = []
    for a, b in zip(before, after, strict=True):
        turn = b.R @ a.R.transpose()
        found.append(Transform(turn, b.p - origin - turn @ (a.p - origin)))
    return found
