"""Gauss's principle for velocities, with contact: a Newton method of fixed structure.

Sought is the v that minimises 1/2 v^T A v - p^T v + the costs of points, limits, friction and equalities
(`costs`), where A v* = p is free motion. One iteration:

    1.  forces f(u) at the velocities u = J v; residual r = A v - p - J^T f
    2.  where r is below `GATE`, normal impulses become the `held` ones that bound friction, r anew
    3.  H = A + J^T G J,  H d = - r
    4.  a step along d to where the slope of the cost is zero

With held impulses fixed the problem is convex; when they no longer change, Coulomb's law holds; whatever they
are, friction opposes slip. The first iterations do without friction unless impulses of the step before are
given. Mending displacements are found
with the factors of H: H m = J^T G_n overlap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, final

from dalembert.algorithms.dense import Matrix, dot
from dalembert.contact.costs import Equality, JointDrive, JointLimit, Point
from dalembert.contact.curvature import factor, multiply, total_curvature
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

GATE = 1e-2
"""The relative residual below which friction may follow the normal impulses."""

UPDATES = 2.0
"""How often it follows them in a step. A third time hardly changes anything, and many may go in circles."""

TRIALS = 12
"""Trial steps of the line search, beside the whole step."""

FLAT = 1e-2
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

        return [
            at(point.second, point.arm)
            if point.first == WORLD
            else at(point.second, point.arm) - at(point.first, point.arm)
            for point in self.points
        ]

    def generalized(self, impulses: Sequence[Vec3]) -> list[Scalar]:
        """J^T of impulses on the second bodies, and their opposites on the first."""
        forces: dict[int, Force] = {}
        for point, impulse in zip(self.points, impulses, strict=True):
            wrench = point.wrench(impulse)
            for body, acting in ((point.second, wrench), (point.first, -wrench)):
                if body != WORLD:
                    forces[body] = forces[body] + acting if body in forces else acting
        return self.axes.generalized(forces)

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
    held: Sequence[Scalar] | None = None,
    *,
    iterations: int = 50,
    tolerance: float = 1e-6,
) -> GaussSolution:
    """Minimise from the guess v. `held`: normal impulses of the points to begin with, by default none.

    It ends where the residual is below `tolerance` times that of rest, or after `iterations`; each sample
    for itself.
    """
    A, p = problem.A, problem.p
    weights = [1.0 / A[i][i] for i in range(len(A))]
    scale = _norm(p, weights) + 1e-12
    start = list(v)
    momentum = [a - b for a, b in zip(multiply(A, start), p, strict=True)]
    nothing = [0.0] * len(problem.points)
    carry: Any = [
        start,
        momentum,
        [u.to_list() for u in problem.point_velocities(start)],
        nothing if held is None else list(held),
        [0.0] * len(start),
        1.0,
        0.0,
    ]

    def step(carry: Any) -> Any:
        v, momentum, lists, held, _, _, updates = carry
        u = [Vec3(*item) for item in lists]
        others = problem.other_impulses(v)

        def residual(held: Sequence[Scalar]) -> list[Scalar]:
            impulses = [point.force(x, h).impulse for point, x, h in zip(problem.points, u, held)]
            contact = problem.generalized(impulses)
            return [m - c - o for m, c, o in zip(momentum, contact, others, strict=True)]

        still = updates < UPDATES
        settled = logical_and(_norm(residual(held), weights) < GATE * scale, still)
        normal = [point.normal_impulse(x) for point, x in zip(problem.points, u)]
        held = [select(settled, new, old) for new, old in zip(normal, held, strict=True)]
        r = residual(held)
        size = _norm(r, weights) / scale
        H = total_curvature(
            problem.axes,
            A,
            [(point, point.curvature(x, h)) for point, x, h in zip(problem.points, u, held)],
            [(joint.place, joint.curvature(v[joint.place])) for joint in problem.joints],
            problem.equalities,
        )
        factors = factor(H)
        d = factors.solve([-x for x in r])
        mend = factors.solve(_mending(problem, u, v))
        change = problem.point_velocities(d)
        Ad = multiply(A, d)
        alpha = _line_search(problem, v, d, u, change, held, dot(d, momentum), dot(d, Ad))
        residual_left = select(logical_and(still, logical_not(settled)), 1.0, size)
        return [
            [x + alpha * y for x, y in zip(v, d, strict=True)],
            [x + alpha * y for x, y in zip(momentum, Ad, strict=True)],
            [(x + y * alpha).to_list() for x, y in zip(u, change, strict=True)],
            held,
            mend,
            residual_left,
            updates + select(settled, 1.0, 0.0),
        ]

    carry = loop(iterations, step, carry, until=lambda carry: carry[5] < tolerance)
    eta, _, lists, held, mend, left, _ = carry
    u = [Vec3(*item) for item in lists]
    forces = [point.force(x, h) for point, x, h in zip(problem.points, u, held)]
    return GaussSolution(
        eta,
        mend,
        [force.impulse for force in forces],
        [force.normal for force in forces],
        [joint.impulse(eta[joint.place]) for joint in problem.joints],
        [equality.impulse(equality.velocity(eta)) for equality in problem.equalities],
        left,
    )


def _mending(problem: GaussProblem, u: Sequence[Vec3], v: Sequence[Scalar]) -> list[Scalar]:
    """J^T G_n overlap of the points and limits that press, and of the gaps of equalities."""
    impulses = [
        point.normal * (select(point.normal_impulse(x) > 0.0, point.stiffness, 0.0) * point.overlap)
        for point, x in zip(problem.points, u)
    ]
    total = problem.generalized(impulses) if impulses else [0.0] * len(v)
    for joint in problem.joints:
        if isinstance(joint, JointLimit):
            push = joint.curvature(v[joint.place]) * joint.overlap * joint.sign
            total[joint.place] = total[joint.place] + push
    for equality in problem.equalities:
        push = -(equality.gap * equality.stiffness)
        for i, k in enumerate(equality.row):
            if not is_zero(k):
                total[i] = total[i] + k * push
    return total


def _line_search(
    problem: GaussProblem,
    v: Sequence[Scalar],
    d: Sequence[Scalar],
    u: Sequence[Vec3],
    change: Sequence[Vec3],
    held: Sequence[Scalar],
    slope: Scalar,
    bend: Scalar,
) -> Scalar:
    """The step along d at which the slope of the cost is nearly zero.

    The slope is slope + alpha bend - sum of change . f(u + alpha change), and grows with alpha. Newton's
    method on it, from the whole step, between bounds that close in on the zero.
    """
    rates = [(joint, v[joint.place], d[joint.place]) for joint in problem.joints]
    rows = [(e, e.velocity(v), e.velocity(d)) for e in problem.equalities]

    def slopes_at(alpha: Scalar) -> tuple[Scalar, Scalar]:
        first, second = slope + alpha * bend, bend
        for point, x, y, h in zip(problem.points, u, change, held, strict=True):
            at = x + y * alpha
            first = first - y.dot(point.force(at, h).impulse)
            second = second + y.dot(point.curvature(at, h) @ y)
        for joint, x, y in rates:
            first = first - y * joint.impulse(x + alpha * y)
            second = second + y * y * joint.curvature(x + alpha * y)
        for equality, x, y in rows:
            first = first - y * equality.impulse(x + alpha * y)
            second = second + y * y * equality.stiffness
        return first, second

    start, _ = slopes_at(0.0)
    enough = absolute(start) * FLAT

    def trial(carry: Any) -> Any:
        alpha, low, high, first, second = carry
        rising = first > 0.0
        low, high = select(rising, low, alpha), select(rising, alpha, high)
        aimed = alpha - first / second
        inside = logical_and(low < aimed, aimed < high)
        alpha = select(inside, aimed, 0.5 * (low + high))
        return [alpha, low, high, *slopes_at(alpha)]

    def flat(carry: Any) -> Any:
        return logical_or(absolute(carry[3]) <= enough, logical_and(carry[0] >= 1.0, carry[3] <= 0.0))

    alpha, low, _, first, _ = loop(TRIALS, trial, [1.0, 0.0, 1.0, *slopes_at(1.0)], until=flat)
    return select(logical_and(first > enough, low > 0.0), low, alpha)


def _norm(x: Sequence[Scalar], weights: Sequence[Scalar]) -> Scalar:
    total: Scalar = 0.0
    for a, w in zip(x, weights, strict=True):
        total = total + a * a * w
    return sqrt(maximum(total, 0.0))
