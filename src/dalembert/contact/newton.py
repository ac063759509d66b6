"""Gauss's principle for velocities, with contact: a Newton method of fixed structure.

Sought is the v that minimises 1/2 v^T A v - p^T v + the costs of points, limits, friction and equalities
(`costs`), where A v* = p is free motion. One iteration, with forces f(u) at the velocities u = J v and the
residual r = A v - p - J^T f:

    1.  H = A + J^T G J,  H d = - r
    2.  a step along d to where the slope of the cost is zero
    3.  where r is below `GATE`, normal impulses become the `held` ones that bound friction, r anew

With held impulses fixed the problem is convex; when they no longer change, Coulomb's law holds; whatever they
are, friction opposes slip. The displacement that mends overlaps is found last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, final

from dalembert.algorithms.dense import Matrix, dot
from dalembert.contact.conjugate import add_impulse, solved, velocity_of
from dalembert.contact.costs import Equality, JointDrive, JointLimit, Point, dyad
from dalembert.contact.curvature import multiply
from dalembert.contact.joint_axes import WORLD, JointAxes
from dalembert.scalar import (
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
from dalembert.spatial import Force, Vec3

__all__ = ["GaussProblem", "GaussSolution", "solve"]

GATE = 0.1
"""The relative residual below which friction may follow the normal impulses."""

UPDATES = 8.0
"""How often it follows them in a step: with fewer, bodies that slide on an edge begin to chatter."""

FOLLOWED = 20.0
"""Times the tolerance: the relative residual below which what following would change is left alone."""

LEAST = 1e-3
"""The share of the momenta below which impulses that act do not count as a scale."""

NEAR = 0.5
"""A point that may close no faster than this [m/s] nearly touches."""

TRIALS = 12
"""Trial steps of the line search, beside the whole step."""

FLAT = 0.1
"""The share of its first slope to which the line search follows the cost."""


class GaussSolution(NamedTuple):
    """v, the mending displacement of v's variables, impulses on the points' second bodies, their normal
    parts, impulses of limits and friction and equalities, and the relative residual that is left."""

    v: list[Scalar]
    mend: list[Scalar]
    impulses: list[Vec3]
    normal: list[Scalar]
    joint_impulses: list[Scalar]
    equality_impulses: list[Scalar]
    residual: Scalar


@final
@dataclass(frozen=True, slots=True)
class GaussProblem:
    """1/2 v^T A v - p^T v and the terms that are added to it."""

    axes: JointAxes
    A: Matrix
    p: Sequence[Scalar]
    points: Sequence[Point] = ()
    joints: Sequence[JointLimit | JointDrive] = ()
    equalities: Sequence[Equality] = ()

    def point_velocities(self, v: Sequence[Scalar]) -> list[Vec3]:
        """u of every point: the velocity of its second body relative to its first."""
        if not self.points:
            return []
        velocities = self.axes.velocities(v)

        def at(body: int, arm: Vec3) -> Vec3:
            motion = velocities[body]
            return motion.linear + motion.angular.cross(arm)

        def of(point: Point) -> Vec3:
            if point.rows is not None:
                return velocity_of(point.rows, v)
            own = at(point.second, point.arm)
            return own if point.first == WORLD else own - at(point.first, point.arm)

        return [of(point) for point in self.points]

    def generalized(self, impulses: Sequence[Vec3]) -> list[Scalar]:
        """J^T of impulses on the second bodies, and their opposites on the first."""
        forces: dict[int, Force] = {}
        chosen = []
        for point, impulse in zip(self.points, impulses, strict=True):
            if point.rows is not None:
                chosen.append((point.rows, impulse))
                continue
            wrench = point.wrench(impulse)
            for body, acting in ((point.second, wrench), (point.first, -wrench)):
                if body != WORLD:
                    forces[body] = forces[body] + acting if body in forces else acting
        total = self.axes.generalized(forces)
        for rows, impulse in chosen:
            add_impulse(total, rows, impulse)
        return total

    def other_impulses(self, v: Sequence[Scalar]) -> list[Scalar]:
        """What limits, joint friction and equalities add to the momenta `(nv,)`."""
        return self._impulses(v, v)

    def free_impulses(self, v: Sequence[Scalar]) -> list[Scalar]:
        """The same, of equalities only what they add at rest."""
        return self._impulses(v, [0.0] * len(v))

    def _impulses(self, v: Sequence[Scalar], v_equalities: Sequence[Scalar]) -> list[Scalar]:
        total: list[Scalar] = [0.0] * len(v)
        for joint in self.joints:
            total[joint.place] = total[joint.place] + joint.impulse(v[joint.place])
        for equality in self.equalities:
            gamma = equality.impulse(equality.velocity(v_equalities))
            for i, k in enumerate(equality.row):
                if not is_zero(k):
                    total[i] = total[i] + k * gamma
        return total


def solve(
    problem: GaussProblem,
    v: Sequence[Scalar],
    held: Sequence[Scalar],
    *,
    acting: Sequence[Scalar],
    iterations: int,
    tolerance: float,
) -> GaussSolution:
    """Minimise from the guess v. `held`: normal impulses of the points to begin with.

    It ends where the residual is below `tolerance` times the impulses `acting` without contact, or after
    `iterations`; each sample for itself.
    """
    A, p = problem.A, problem.p
    weights = [1.0 / A[i][i] for i in range(len(A))]
    scale = _norm(acting, weights) + LEAST * _norm(p, weights) + 1e-12

    def looked_at(
        v: Sequence[Scalar],
        momentum: Sequence[Scalar],
        u: Sequence[Vec3],
        held: Sequence[Scalar],
        updates: Scalar,
    ) -> Any:
        """Friction follows the normal impulses, if it may; r, and what is left of it."""
        others = problem.other_impulses(v)

        def residual(held: Sequence[Scalar]) -> list[Scalar]:
            impulses = [point.force(x, h).impulse for point, x, h in zip(problem.points, u, held)]
            contact = problem.generalized(impulses)
            return [m - c - o for m, c, o in zip(momentum, contact, others, strict=True)]

        r = residual(held)
        size = _norm(r, weights) / scale
        still = updates < UPDATES
        settled = logical_and(size < GATE, still)
        normal = [point.normal_impulse(x) for point, x in zip(problem.points, u)]
        r_followed = residual(normal)
        size_followed = _norm(r_followed, weights) / scale
        follows = logical_and(settled, size_followed >= FOLLOWED * tolerance)
        held = [select(follows, new, old) for new, old in zip(normal, held, strict=True)]
        r = [select(follows, new, old) for new, old in zip(r_followed, r, strict=True)]
        size = select(follows, size_followed, size)
        left = select(logical_and(still, logical_not(settled)), 1.0, size)
        return [held, r, left, updates + select(settled, select(follows, 1.0, UPDATES), 0.0)]

    def step(carry: Any) -> Any:
        v, momentum, lists, held, r, _, updates = carry
        u = [Vec3(*item) for item in lists]
        d = solved(
            problem.axes,
            A,
            [(point, point.curvature(x, h)) for point, x, h in zip(problem.points, u, held)],
            [(joint.place, joint.curvature(v[joint.place])) for joint in problem.joints],
            problem.equalities,
            [-x for x in r],
        )
        change = problem.point_velocities(d)
        Ad = multiply(A, d)
        alpha = _line_search(problem, v, d, u, change, held, dot(d, r), dot(d, momentum), dot(d, Ad))
        v = [x + alpha * y for x, y in zip(v, d, strict=True)]
        momentum = [x + alpha * y for x, y in zip(momentum, Ad, strict=True)]
        u = [x + y * alpha for x, y in zip(u, change, strict=True)]
        return [v, momentum, [x.to_list() for x in u], *looked_at(v, momentum, u, held, updates)]

    momentum = [a - b for a, b in zip(multiply(A, v), p, strict=True)]
    u = problem.point_velocities(v)
    held, r, _, updates = looked_at(v, momentum, u, list(held), 0.0)
    # One iteration at least: what a guess leaves, however little, adds up from step to step.
    carry: Any = [list(v), momentum, [x.to_list() for x in u], held, r, 1.0, updates]
    carry = loop(iterations, step, carry, until=lambda carry: carry[5] < tolerance)
    eta, _, lists, held, _, left, _ = carry
    u = [Vec3(*item) for item in lists]
    forces = [point.force(x, h) for point, x, h in zip(problem.points, u, held)]
    return GaussSolution(
        eta,
        _mended(problem, eta, u, held),
        [force.impulse for force in forces],
        [force.normal for force in forces],
        [joint.impulse(eta[joint.place]) for joint in problem.joints],
        [equality.impulse(equality.velocity(eta)) for equality in problem.equalities],
        left,
    )


def _mended(
    problem: GaussProblem, v: Sequence[Scalar], u: Sequence[Vec3], held: Sequence[Scalar]
) -> list[Scalar]:
    """The displacement m of v's variables with H m = J^T G_n overlap, - K^T gap / R.

    H has what presses, sticks or nearly touches: what mends one overlap must not make another.
    """
    curvatures, impulses = [], []
    for point, x, h in zip(problem.points, u, held):
        pressing = point.normal_impulse(x) > 0.0
        firm = select(point.normal.dot(x) < point.bound + NEAR, point.stiffness, 0.0)
        G = point.curvature(x, h) + dyad(point.normal, select(pressing, 0.0, firm))
        curvatures.append((point, G))
        impulses.append(point.normal * (firm * point.overlap))
    diagonal = []
    total = problem.generalized(impulses) if impulses else [0.0] * len(v)
    for joint in problem.joints:
        curvature = joint.curvature(v[joint.place])
        if isinstance(joint, JointLimit):
            firm = select(joint.overlap > 0.0, joint.stiffness, 0.0)
            total[joint.place] = total[joint.place] + firm * joint.overlap * joint.sign
            curvature = maximum(curvature, firm)
        diagonal.append((joint.place, curvature))
    for equality in problem.equalities:
        push = -(equality.gap * equality.stiffness)
        for i, k in enumerate(equality.row):
            if not is_zero(k):
                total[i] = total[i] + k * push
    return solved(problem.axes, problem.A, curvatures, diagonal, problem.equalities, total)


def _line_search(
    problem: GaussProblem,
    v: Sequence[Scalar],
    d: Sequence[Scalar],
    u: Sequence[Vec3],
    change: Sequence[Vec3],
    held: Sequence[Scalar],
    start: Scalar,
    slope: Scalar,
    bend: Scalar,
) -> Scalar:
    """The step along d at which the slope of the cost is nearly zero.

    The slope is slope + alpha bend - sum of change . f(u + alpha change), `start` < 0 at zero, and grows
    with alpha. Where it is positive after the whole step, its zero is sought by false position (Illinois).
    """
    rates = [(joint, v[joint.place], d[joint.place]) for joint in problem.joints]
    rows = [(e, e.velocity(v), e.velocity(d)) for e in problem.equalities]

    def slope_at(alpha: Scalar) -> Scalar:
        total = slope + alpha * bend
        for point, x, y, h in zip(problem.points, u, change, held, strict=True):
            total = total - y.dot(point.force(x + y * alpha, h).impulse)
        for joint, x, y in rates:
            total = total - y * joint.impulse(x + alpha * y)
        for equality, x, y in rows:
            total = total - y * equality.impulse(x + alpha * y)
        return total

    enough = absolute(start) * FLAT

    def trial(carry: Any) -> Any:
        low, at_low, high, at_high, _, _, side = carry
        gap = at_high - at_low
        alpha = low - (high - low) * (at_low / select(gap > 0.0, gap, 1.0))
        found = slope_at(alpha)
        rising = found > 0.0
        # An end that stays for a second time counts half, so that it does not stay for ever.
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

    whole = slope_at(1.0)
    low, _, _, _, alpha, found, _ = loop(TRIALS, trial, [0.0, start, 1.0, whole, 1.0, whole, 0.0], until=flat)
    return select(logical_and(found > enough, low > 0.0), low, alpha)


def _norm(x: Sequence[Scalar], weights: Sequence[Scalar]) -> Scalar:
    total: Scalar = 0.0
    for a, w in zip(x, weights, strict=True):
        total = total + a * a * w
    return sqrt(maximum(total, 0.0))
