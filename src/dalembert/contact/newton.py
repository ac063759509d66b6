"""Gauss's principle for velocities, with contact: a Newton method of fixed structure.

Sought is the v that minimises 1/2 v^T A v - p^T v + the costs of points, limits, friction and equalities
(`costs`), where A v* = p is free motion. One iteration, with forces f(u) at the velocities u = J v and the
residual r = A v - p - J^T f:

    1.  H = A + J^T G J,  H d = - r
    2.  a step along d to where the slope of the cost is zero
    3.  where r is below `GATE`, the `held` impulses that bound friction follow the normal ones, r anew

With held impulses fixed the problem is convex; when they no longer change, Coulomb's law holds; whatever they
are, friction opposes slip. `mended` finds the displacement that takes overlaps away.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from dalembert.algorithms.dense import dot
from dalembert.contact.conjugate import solved
from dalembert.contact.costs import JointLimit, dyad
from dalembert.contact.curvature import multiply
from dalembert.contact.gauss import GaussProblem
from dalembert.contact.line_search import line_search
from dalembert.scalar import Scalar, logical_and, logical_not, loop, maximum, select, sqrt
from dalembert.spatial import Vec3

__all__ = ["GaussSolution", "mended", "solve"]

GATE = 0.1
"""The relative residual below which friction may follow the normal impulses."""

UPDATES = 8.0
"""How often it follows them in a step: with fewer, bodies that slide on an edge begin to chatter."""

WHOLE = 2.0
"""So often it follows them wholly, then half the way: where friction and pressure hinder each other by turns,
whole ones would go to and fro for ever."""

LATEST = 0.7
"""The share of the iterations after which it follows no more: so that the last ones converge."""

LEFT = 2.0 * UPDATES
"""Added to the count of updates where following would change little, and is left to the last impulses."""

FOLLOWED = 20.0
"""Times the tolerance: the relative residual below which what following would change is left alone."""

LEAST = 1e-3
"""The share of the momenta below which impulses that act do not count as a scale."""

NEAR = 1.0
"""A point that may close no faster than this [m/s] nearly touches."""


class GaussSolution(NamedTuple):
    """v, the velocities of the points and the `held` impulses they have then; impulses on the points' second
    bodies, their normal parts, impulses of limits and friction and equalities; the relative residual left."""

    v: list[Scalar]
    u: list[Vec3]
    held: Sequence[Scalar]
    impulses: list[Vec3]
    normal: list[Scalar]
    joint_impulses: list[Scalar]
    equality_impulses: list[Scalar]
    residual: Scalar


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
        number: Scalar,
    ) -> Any:
        """Friction follows the normal impulses, if it may; r, and what is left of it."""
        others = problem.other_impulses(v)

        def residual(held: Sequence[Scalar]) -> list[Scalar]:
            impulses = [point.force(x, h).impulse for point, x, h in zip(problem.points, u, held)]
            contact = problem.generalized(impulses)
            return [m - c - o for m, c, o in zip(momentum, contact, others, strict=True)]

        r = residual(held)
        size = _norm(r, weights) / scale
        still = logical_and(updates < UPDATES, number < LATEST * iterations)
        settled = logical_and(size < GATE, still)
        share = select(updates < WHOLE, 1.0, 0.5)
        normal = [h + (point.normal_impulse(x) - h) * share for point, x, h in zip(problem.points, u, held)]
        r_followed = residual(normal)
        size_followed = _norm(r_followed, weights) / scale
        follows = logical_and(settled, size_followed >= FOLLOWED * tolerance)
        held = [select(follows, new, old) for new, old in zip(normal, held, strict=True)]
        r = [select(follows, new, old) for new, old in zip(r_followed, r, strict=True)]
        size = select(follows, size_followed, size)
        left = select(logical_and(still, logical_not(settled)), 1.0, size)
        return [held, r, left, updates + select(settled, select(follows, 1.0, LEFT), 0.0), number + 1.0]

    def step(carry: Any) -> Any:
        v, momentum, lists, held, r, _, updates, number = carry
        u = [Vec3(*item) for item in lists]
        d = solved(
            problem.axes,
            A,
            [(point, point.curvature(x, h)) for point, x, h in zip(problem.points, u, held)],
            [(joint.place, joint.curvature(v[joint.place])) for joint in problem.joints],
            problem.held(v),
            [-x for x in r],
        )
        change = problem.point_velocities(d)
        Ad = multiply(A, d)
        alpha = line_search(problem, v, d, u, change, held, dot(d, r), dot(d, momentum), dot(d, Ad))
        v = [x + alpha * y for x, y in zip(v, d, strict=True)]
        momentum = [x + alpha * y for x, y in zip(momentum, Ad, strict=True)]
        u = [x + y * alpha for x, y in zip(u, change, strict=True)]
        return [v, momentum, [x.to_list() for x in u], *looked_at(v, momentum, u, held, updates, number)]

    momentum = [a - b for a, b in zip(multiply(A, v), p, strict=True)]
    u = problem.point_velocities(v)
    held, r, _, updates, number = looked_at(v, momentum, u, list(held), 0.0, 0.0)
    # One iteration at least: what a guess leaves, however little, adds up from step to step.
    carry: Any = [list(v), momentum, [x.to_list() for x in u], held, r, 1.0, updates, number]
    carry = loop(iterations, step, carry, until=lambda carry: carry[5] < tolerance)
    eta, _, lists, held, _, left, updates, _ = carry
    u = [Vec3(*item) for item in lists]
    near = updates >= LEFT
    forces = [
        point.force(x, select(logical_and(near, point.slides(x, h)), point.normal_impulse(x), h))
        for point, x, h in zip(problem.points, u, held)
    ]
    return GaussSolution(
        eta,
        u,
        held,
        [force.impulse for force in forces],
        [force.normal for force in forces],
        [joint.impulse(eta[joint.place]) for joint in problem.joints],
        [equality.impulse(equality.velocity(eta)) for equality in problem.equalities],
        left,
    )


def mended(problem: GaussProblem, found: GaussSolution, overlaps: Sequence[Scalar]) -> list[Scalar]:
    """The displacement m of v's variables with H m = J^T G_n overlap, - K^T gap / R.

    `overlaps` [m] of the points, as far as they are to be taken away. H has what presses, sticks or nearly
    touches: what mends one overlap must not make another.
    """
    v = found.v
    curvatures, impulses = [], []
    for point, x, h, overlap in zip(problem.points, found.u, found.held, overlaps, strict=True):
        pressing = point.normal_impulse(x) > 0.0
        firm = select(point.normal.dot(x) < point.bound + NEAR, point.stiffness, 0.0)
        G = point.curvature(x, h) + dyad(point.normal, select(pressing, 0.0, firm))
        curvatures.append((point, G))
        impulses.append(point.normal * (firm * overlap))
    diagonal = []
    total = problem.generalized(impulses) if impulses else [0.0] * len(v)
    for joint in problem.joints:
        curvature = joint.curvature(v[joint.place])
        if isinstance(joint, JointLimit):
            firm = select(joint.overlap > 0.0, joint.stiffness, 0.0)
            total[joint.place] = total[joint.place] + firm * joint.overlap * joint.sign
            curvature = maximum(curvature, firm)
        diagonal.append((joint.place, curvature))
    equalities = problem.held(v, mending=True)
    for equality in equalities:
        equality.add(-(equality.gap * equality.stiffness), total)
    return solved(problem.axes, problem.A, curvatures, diagonal, equalities, total)


def _norm(x: Sequence[Scalar], weights: Sequence[Scalar]) -> Scalar:
    total: Scalar = 0.0
    for a, w in zip(x, weights, strict=True):
        total = total + a * a * w
    return sqrt(maximum(total, 0.0))
