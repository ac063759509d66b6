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

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, final

from dalembert.algorithms.dense import dot, inner_product
from dalembert.contact.costs import (
    Equality,
    JointDrive,
    JointLimit,
    Point,
    PointForce,
    RangeEnd,
    factor_hessian,
)
from dalembert.contact.friction import EllipticHessian, FrictionLine, PointHessian, PointVector
from dalembert.contact.point_set import PointSet
from dalembert.contact.tree_system import TreeMotion, TreeSystem
from dalembert.scalar import (
    Family,
    Row,
    Scalar,
    absolute,
    is_zero,
    logical_and,
    logical_not,
    logical_or,
    loop,
    maximum,
    select,
    sqrt,
)
from dalembert.scalar.row_sets import sum_all

# The linear system H x = b, H = H_0 + D^T K D, where D x are the relative velocities of moving bodies that
# touch each other, and K the sums of the Hessians of their points, 6 x 6 each.
#
# Such pairs would fill all of H. So the matrix H_0 without them is factored along the tree, and conjugate
# gradients find what they add. With K = R R^T, x_0 = H_0^-1 b and W = D H_0^-1 D^T
#
#     (1 + R^T W R) y = R^T D x_0,      x = x_0 - H_0^-1 D^T R y                                           (1)
#
# (substitute y = R^T D x). The matrix has no eigenvalue below one, and n points that press differ from one in
# at most 3 n directions, so that 3 n iterations would be exact (Hestenes, Stiefel 1952): none where no such
# point presses, and few where some do. An iteration is one solve along the tree for impulses on bodies.

MAX_CG_ITERATIONS = 40
"""The most iterations: more than are ever useful, as about a dozen directions press at once."""

CG_TOLERANCE = 1e-3
"""The residual of Eq. (1) in a Newton step, as a fraction of its right-hand side."""


class _Gradients(NamedTuple):
    """x, the residual r of Eq. (1), the direction p, and r . r."""

    x: list[Scalar]
    r: Family[list[Scalar]]
    p: Family[list[Scalar]]
    square: Scalar


def solve_newton_system(
    system: TreeSystem,
    points: PointSet,
    hessian: Callable[[Row], PointHessian | EllipticHessian],
    diagonal: Sequence[tuple[int, Scalar]],
    equalities: Sequence[Equality],
    b: Sequence[Scalar],
    tolerance: float = CG_TOLERANCE,
    scale: Scalar = 0.0,
) -> TreeMotion:
    """Return the motion x of H x = b; `hessian` of each point; `tolerance`: the residual of Eq. (1) as a
    fraction of its right-hand side or, if that is less, of sqrt(`scale`) [J].

    The error of x has at most a quarter of the squared residual as its energy x^T H_0 x: with W the matrix
    1 + R^T W R of Eq. (1), it is r^T (W - 1) W^-2 r.
    """
    factors = factor_hessian(system, points.inertias(hessian), diagonal, equalities)
    start, pairs = factors.solve(b), points.pairs
    if pairs is None:
        return start
    near, R = pairs.near, points.pair_roots(hessian)
    motions, none = points.motions(start), [0.0] * len(b)
    r = near.each(lambda row: R[row].resisted(pairs.relative(row, motions)))
    square = near.fold(lambda total, row: total + dot(r[row], r[row]), 0.0)

    def step(at: _Gradients) -> _Gradients:
        p, r = at.p, at.r
        z = factors.solve(none, system.on_arcs(points.pair_wrenches(lambda row: R[row].impulse(p[row]))))
        moved = points.motions(z)

        def product(slope: Scalar, row: Row) -> tuple[Scalar, list[Scalar]]:
            more = R[row].resisted(pairs.relative(row, moved))
            q = [x + y for x, y in zip(p[row], more, strict=True)]
            return slope + dot(p[row], q), q

        slope, q = near.scan(product, 0.0)
        alpha = at.square / maximum(slope, 1e-300)

        def residual(total: Scalar, row: Row) -> tuple[Scalar, list[Scalar]]:
            left = [x - alpha * y for x, y in zip(r[row], q[row], strict=True)]
            return total + dot(left, left), left

        square, left = near.scan(residual, 0.0)
        beta = square / maximum(at.square, 1e-300)
        return _Gradients(
            [x - alpha * y for x, y in zip(at.x, z.v, strict=True)],
            left,
            near.each(lambda row: [x + beta * y for x, y in zip(left[row], p[row], strict=True)]),
            square,
        )

    enough = tolerance * tolerance * maximum(square, scale)
    begun = _Gradients(start.v, r, r, square)
    found: _Gradients = loop(MAX_CG_ITERATIONS, step, begun, until=lambda at: at.square <= enough)
    return system.motion(found.x)


# The cost that a step with contact minimises: free motion and the terms of contact, limits and loops.


@final
@dataclass(frozen=True, slots=True)
class GaussProblem:
    """The cost 1/2 v^T A v - p^T v and the terms that are added to it."""

    system: TreeSystem
    p: Sequence[Scalar]
    points: PointSet
    joints: Sequence[JointLimit | JointDrive] = ()
    equalities: Sequence[Equality] = ()
    ranges: Sequence[RangeEnd] = ()

    def other_impulses(self, v: Sequence[Scalar], v_equalities: Sequence[Scalar]) -> list[Scalar]:
        """Return the impulses of limits and joint friction at v on the momenta `(nv,)`, and of equalities at
        their own velocities."""
        total: list[Scalar] = [0.0] * len(v)
        for joint in self.joints:
            total[joint.place] = total[joint.place] + joint.impulse(v[joint.place])
        for equality in self.equalities:
            equality.add(equality.impulse(equality.velocity(v_equalities)), total)
        for end in self.ranges:
            end.add(end.impulse(end.velocity(v)), total)
        return total

    def reaction(
        self, v: Sequence[Scalar], impulses: Family[PointVector], others: Sequence[Scalar]
    ) -> list[Scalar]:
        """Return A v - p - J^T gamma - `others` `(nv,)`: what known variables need beside these impulses."""
        momenta, contact = (
            self.system.times(self.system.motion(v)),
            self.points.generalized(impulses.__getitem__),
        )
        terms = zip(momenta, self.p, contact, others, strict=True)
        return [a - b - c - d for a, b, c, d in terms]

    def active_equalities(self, v: Sequence[Scalar], *, correcting: bool = False) -> list[Equality]:
        """Return equalities and the ends of ranges that are reached at v or, if `correcting`, exceeded."""
        ends = []
        for end in self.ranges:
            reached = end.velocity(v) < end.bound
            reached = logical_or(end.overlap > 0.0, reached) if correcting else reached
            ends.append(end.as_equality(reached, end.bound))
        return [*self.equalities, *ends]


class StepSolution(NamedTuple):
    """The velocities v after a step, and `free` without contact; the position correction of v's variables;
    the impulses [N s] on the points' second bodies along world axes; the work [J] of contact; what the law
    remembers of the points for the next step; the relative residual of the solver; the impulses that move
    prescribed joints as they should, if there are any, at their places `(nv,)`; `step_terms.flight_shift`."""

    v: list[Scalar]
    free: list[Scalar]
    correction: list[Scalar]
    impulses: Family[PointVector]
    work: Scalar
    memory: Family[list[Scalar]]
    residual: Scalar = 0.0
    reaction: Sequence[Scalar] = ()
    flight: Sequence[Scalar] = ()


# Line search along a direction of Newton's method: to where the slope of the cost is nearly zero.
#
# Along v + alpha d the velocity of a point is u + alpha y, and all that its force needs is a few numbers:
#
#     gamma_n = max(0, g - alpha k s),    s = n . y,    g: gamma_n at alpha = 0, unlimited                 (1)
#     y . f = s gamma_n + the power of each part of friction (`FrictionLine`)                              (2)

MAX_TRIAL_STEPS = 12
"""The most trial steps after the full step."""

TARGET_SLOPE_RATIO = 0.1
"""The ratio of the slope of the cost to its initial slope at which the search ends."""


class _Along(NamedTuple):
    """The data of a point along the line: y, g, s, k s and the parts of its friction."""

    change: PointVector
    pressing: Scalar
    opening: Scalar
    relief: Scalar
    friction: list[FrictionLine]

    def power(self, alpha: Scalar) -> Scalar:
        """Return y . f of Eq. (2)."""
        total = self.opening * maximum(self.pressing - alpha * self.relief, 0.0)
        for part in self.friction:
            if not is_zero(part.limit):
                total = total + part.power(alpha)
        return total


def _along(point: Point, u: PointVector, y: PointVector, friction_bound: Scalar) -> _Along:
    opening = point.normal_velocity(y)
    lines = point.lines(u, y, friction_bound)
    return _Along(y, point.pressing(u), opening, point.stiffness * opening, lines)


def line_search(
    problem: GaussProblem,
    v: Sequence[Scalar],
    d: Sequence[Scalar],
    lines: Family[_Along],
    start: Scalar,
    slope: Scalar,
    bend: Scalar,
    whole: Scalar,
) -> Scalar:
    """Return the alpha at which the slope of the cost along d is nearly zero.

    The slope is slope + alpha bend - sum of y . f, `start` < 0 at zero, and grows with alpha; `lines`: the
    points along d; `whole`: the slope at alpha = 1 of all but joints and constraints. Where it is positive
    there, its zero is found by false position (Illinois).
    """
    rates = [(joint, v[joint.place], d[joint.place]) for joint in problem.joints]
    constraints: list[Equality | RangeEnd] = [*problem.equalities, *problem.ranges]
    rows = [(e, e.velocity(v), e.velocity(d)) for e in constraints]

    def slope_at(alpha: Scalar) -> Scalar:
        near = problem.points.contacts.near
        total = near.fold(lambda so_far, row: so_far - lines[row].power(alpha), slope + alpha * bend)
        return with_others(total, alpha)

    def with_others(total: Scalar, alpha: Scalar) -> Scalar:
        return sum_all((-(y * term.impulse(x + alpha * y)) for term, x, y in (*rates, *rows)), total)

    enough = absolute(start) * TARGET_SLOPE_RATIO

    def trial(carry: Any) -> Any:
        low, at_low, high, at_high, _, _, side = carry
        gap = at_high - at_low
        alpha = low - (high - low) * (at_low / select(gap > 0.0, gap, 1.0))
        found = slope_at(alpha)
        rising = found > 0.0
        # Illinois rule: halve the value of an end that stays for a second time, or it would stay for ever.
        at_low = select(side > 0.0, 0.5 * at_low, at_low)
        at_high = select(side < 0.0, 0.5 * at_high, at_high)
        return [
            select(rising, low, alpha),
            select(rising, at_low, found),
            select(rising, alpha, high),
            select(rising, found, at_high),
            alpha,
            found,
            select(rising, 1.0, -1.0),
        ]

    def flat(carry: Any) -> Any:
        alpha, found = carry[4], carry[5]
        return logical_or(absolute(found) <= enough, logical_and(alpha >= 1.0, found <= 0.0))

    whole = with_others(whole, 1.0)
    low, _, _, _, alpha, found, _ = loop(
        MAX_TRIAL_STEPS, trial, [0.0, start, 1.0, whole, 1.0, whole, 0.0], until=flat
    )
    return select(logical_and(found > enough, low > 0.0), low, alpha)


FRICTION_UPDATE_RESIDUAL = 0.05
"""The relative residual below which the friction bounds may be updated to the normal impulses: at 0.1 a step
of humanoid_CMU takes a tenth more iterations, at 0.02 one of solo12 a tenth more (design/simulation.md)."""

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


class PointSolution(NamedTuple):
    """The velocity u of a point, the bound of its friction, and its impulse on the second body."""

    u: PointVector
    friction_bound: Scalar
    force: PointForce


class GaussSolution(NamedTuple):
    """The solution v, that of every point, and the relative residual."""

    v: list[Scalar]
    points: Family[PointSolution]
    residual: Scalar


def solve(
    problem: GaussProblem,
    v: Sequence[Scalar],
    friction_bounds: Family[Scalar],
    *,
    acting: Sequence[Scalar],
    iterations: int,
    tolerance: float,
) -> GaussSolution:
    """Minimise from the guess v. `friction_bounds`: the initial normal impulses that bound friction.

    The iteration ends where the residual is below `tolerance` times the impulses `acting` without contact, or
    after `iterations`, for each sample separately.
    """
    newton = _Newton(problem, tolerance, LAST_UPDATE_ITERATION_RATIO * iterations, acting)
    motion, points = problem.system.motion(v), problem.points
    momentum = [a - b for a, b in zip(problem.system.times(motion), problem.p, strict=True)]
    motions = points.motions(motion)

    def start(row: Row) -> tuple[PointVector, Scalar]:
        return points.velocity(row, motions), friction_bounds[row]

    begun = newton.update_friction(list(v), momentum, start, updates=0.0, number=0.0)
    # At least one iteration: the residual of the guess, however small, would add up from step to step.
    begun = begun._replace(left=1.0)
    end: _Iterate = loop(iterations, newton.step, begun, until=lambda at: at.left < tolerance)
    skipped = end.updates >= NEGLIGIBLE_UPDATE_MARK

    def solution(row: Row) -> PointSolution:
        point, x, h = points.laws[row], end.points[row].u, end.friction_bound(row)
        final = select(logical_and(skipped, point.slides(x, h)), point.normal_impulse(x), h)
        return PointSolution(x, h, point.force(x, final))

    return GaussSolution(end.v, points.contacts.near.each(solution), end.left)


class _PointIterate(NamedTuple):
    """The velocity u of a point, the bound of its friction, and that which the normal impulse would give."""

    u: PointVector
    friction_bound: Scalar
    updated_bound: Scalar


class _Iterate(NamedTuple):
    """The velocities v, A v - p, the points, and whether their `updated_bound` bounds friction; the residual
    r and its relative size, or 1 while friction is to be updated; how many updates and iterations there
    were."""

    v: list[Scalar]
    momentum: list[Scalar]
    points: Family[_PointIterate]
    updated: Scalar
    r: list[Scalar]
    left: Scalar
    updates: Scalar
    number: Scalar

    def friction_bound(self, row: Row) -> Scalar:
        """Return the bound of a point's friction."""
        return select(self.updated, self.points[row].updated_bound, self.points[row].friction_bound)


@final
class _Newton:
    """One iteration of Newton's method; `last_update`: the number of iterations with updates of friction."""

    def __init__(
        self, problem: GaussProblem, tolerance: float, last_update: float, acting: Sequence[Scalar]
    ) -> None:
        self.problem, self.tolerance, self.last_update = problem, tolerance, last_update
        self.weights = problem.system.weights
        scale = _norm(acting, self.weights) + MOMENTUM_SCALE_RATIO * _norm(problem.p, self.weights)
        self.scale = scale + 1e-12

    def step(self, at: _Iterate) -> _Iterate:
        """Return the next iterate."""
        problem, points = self.problem, self.problem.points
        laws = points.laws
        moved = solve_newton_system(
            problem.system,
            points,
            lambda row: laws[row].hessian(at.points[row].u, at.friction_bound(row)),
            [(joint.place, joint.hessian(at.v[joint.place])) for joint in problem.joints],
            problem.active_equalities(at.v),
            [-x for x in at.r],
        )
        d, Ad, motions = moved.v, problem.system.times(moved), points.motions(moved)
        start, slope, bend = (inner_product(d, x) for x in (at.r, at.momentum, Ad))

        def along(total: Scalar, row: Row) -> tuple[Scalar, _Along]:
            y = points.velocity(row, motions)
            line = _along(laws[row], at.points[row].u, y, at.friction_bound(row))
            return total - line.power(1.0), line

        whole, lines = points.contacts.near.scan(along, slope + bend)
        alpha = line_search(problem, at.v, d, lines, start, slope, bend, whole)
        v = [x + alpha * y for x, y in zip(at.v, d, strict=True)]
        momentum = [x + alpha * y for x, y in zip(at.momentum, Ad, strict=True)]

        def reached(row: Row) -> tuple[PointVector, Scalar]:
            return at.points[row].u + lines[row].change * alpha, at.friction_bound(row)

        return self.update_friction(v, momentum, reached, updates=at.updates, number=at.number)

    def update_friction(
        self,
        v: list[Scalar],
        momentum: list[Scalar],
        point: Callable[[Row], tuple[PointVector, Scalar]],
        *,
        updates: Scalar,
        number: Scalar,
    ) -> _Iterate:
        """Return the iterate at v, with the friction bounds updated if that is due; `point`: u of each point,
        and its bound so far."""
        points = self.problem.points
        others = self.problem.other_impulses(v, v)
        ratio = select(updates < UNDAMPED_FRICTION_UPDATES, 1.0, 0.5)

        def both(row: Row) -> tuple[tuple[PointVector, PointVector], _PointIterate]:
            law, (u, bound) = points.laws[row], point(row)
            updated = bound + (law.normal_impulse(u) - bound) * ratio
            impulses = law.force(u, bound).impulse, law.force(u, updated).impulse
            return impulses, _PointIterate(u, bound, updated)

        contacts, iterates = points.generalized_each(both, 2)
        r, r_updated = (
            [m - c - o for m, c, o in zip(momentum, contact, others, strict=True)] for contact in contacts
        )
        size, size_updated = (_norm(x, self.weights) / self.scale for x in (r, r_updated))
        may_update = logical_and(updates < FRICTION_UPDATES_PER_STEP, number < self.last_update)
        is_due = logical_and(size < FRICTION_UPDATE_RESIDUAL, may_update)
        updates_now = logical_and(is_due, size_updated >= NEGLIGIBLE_UPDATE_FACTOR * self.tolerance)
        size = select(updates_now, size_updated, size)
        return _Iterate(
            v,
            momentum,
            iterates,
            updates_now,
            r=[select(updates_now, a, b) for a, b in zip(r_updated, r, strict=True)],
            left=select(logical_and(may_update, logical_not(is_due)), 1.0, size),
            updates=updates + select(is_due, select(updates_now, 1.0, NEGLIGIBLE_UPDATE_MARK), 0.0),
            number=number + 1.0,
        )


def position_correction(
    problem: GaussProblem, found: GaussSolution, overlaps: Family[Scalar]
) -> list[Scalar]:
    """Return the displacement m of v's variables with H m = J^T G_n overlap - K^T gap / R.

    `overlaps` [m]: the parts of the points' overlaps to remove. H includes all points that press, stick or
    nearly touch: removing one overlap must not create another.
    """
    v, points, ends, laws = found.v, problem.points, found.points, problem.points.laws

    def firmness(row: Row) -> Scalar:
        point = laws[row]
        return select(
            point.normal_velocity(ends[row].u) < point.bound + NEAR_CONTACT_SPEED, point.stiffness, 0.0
        )

    def hessian(row: Row) -> PointHessian | EllipticHessian:
        point, (u, bound, force) = laws[row], ends[row]
        G = point.hessian(u, bound)
        return replace(G, k_n=select(force.normal > 0.0, G.k_n, firmness(row)))

    total = points.generalized(lambda row: laws[row].push(firmness(row) * overlaps[row]))
    diagonal = []
    for joint in problem.joints:
        own = joint.hessian(v[joint.place])
        if isinstance(joint, JointLimit):
            firm = select(joint.overlap > 0.0, joint.stiffness, 0.0)
            total[joint.place] = total[joint.place] + firm * joint.overlap * joint.sign
            own = maximum(own, firm)
        diagonal.append((joint.place, own))
    equalities = problem.active_equalities(v, correcting=True)
    for equality in equalities:
        equality.add(-(equality.gap * equality.stiffness), total)
    return solve_newton_system(problem.system, points, hessian, diagonal, equalities, total).v


def weighted_square(x: Sequence[Scalar], weights: Sequence[Scalar]) -> Scalar:
    """Return the sum of w x^2."""
    return sum_all(a * a * w for a, w in zip(x, weights, strict=True))


def _norm(x: Sequence[Scalar], weights: Sequence[Scalar]) -> Scalar:
    return sqrt(maximum(weighted_square(x, weights), 0.0))
