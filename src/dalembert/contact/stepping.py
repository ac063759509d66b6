"""One time step with contact: velocities by Gauss's principle, then positions.

The unknown is eta, the velocity after the step along the axes that bodies have before it. Where nothing
touches, A eta = p with

    A = M + h D + h^2 K,        p = M v + h (tau - b(q, u) - K x)

u are the velocities, but roots turn as in the middle of the step and are seen from their centres, where axes
that turn do not drift: `step_terms`; D and K are damping and springs, implicit. Contact points, limits,
motors, dry friction and loops are the terms of `costs`; `newton` solves for eta, `restitution` lets points
rebound. Overlaps and open loops are mended by a displacement beside h eta, which no velocity feels.

Compliances of points are soft, a tenth of 1 / mass for normals and of the mobility for friction, so that
Newton's method takes few iterations; but points bear what they bore in both steps before nearly without
giving way (`costs`), so that what rests hardly sinks and does not creep. Limits and loops are stiff.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, final

from dalembert.algorithms.external_forces import ExternalForces
from dalembert.algorithms.kinematics import forward_kinematics
from dalembert.contact.candidates import ABSENT_POINT_GAP, Candidate
from dalembert.contact.chosen_points import body_signs, sum_over_bodies
from dalembert.contact.costs import Point
from dalembert.contact.curvature import factor, total_curvature
from dalembert.contact.gauss import GaussProblem
from dalembert.contact.joint_axes import JointAxes
from dalembert.contact.mobility import point_mobilities, weights
from dalembert.contact.newton import mended, solve
from dalembert.contact.restitution import rebound
from dalembert.contact.step_terms import Motor, before_contact, moved, squared_turn, within_limits
from dalembert.model.tree import PerBody, Tree
from dalembert.scalar import Scalar, is_zero, maximum, minimum, select
from dalembert.spatial import Motion, Transform, Vec3

__all__ = ["ContactStep", "StepSettings", "contact_step"]

KEPT = 0.97
"""The share of a lasting normal impulse that is expected: with all of it tall stacks begin to sway."""


@final
@dataclass(frozen=True, slots=True)
class StepSettings:
    """How a step with contact is solved.

    `iterations` and `tolerance` of Newton's method; `compliance` of normals as a share of 1 / mass,
    `friction_compliance` as a share of the mobility; `mending`: the share of an overlap that one step
    removes; `rebound_speed` [m/s]: slower points do not rebound; `limits`: whether joints end at their
    limits.
    """

    iterations: int = 50
    tolerance: float = 1e-4
    compliance: float = 0.1
    friction_compliance: float = 0.1
    mending: float = 0.2
    rebound_speed: float = 0.02
    limits: bool = True


class ContactStep(NamedTuple):
    """The state after a step; the impulses [N s] on the second bodies of all candidates along world axes;
    `memory` for the next step, four numbers a candidate (this impulse, the normal one before); the relative
    residual of the solver, and the work [J] of contact, 1/2 (v+ + v*) . J^T gamma; for the balance of energy
    eta, and `free` that without contact, `bias` and `momenta` M v of
    `step_terms`, and `turn` by `squared_turn`."""

    q: list[Scalar]
    v: list[Scalar]
    impulses: list[Vec3]
    memory: list[list[Scalar]]
    residual: Scalar
    work: Scalar
    eta: list[Scalar]
    free: list[Scalar]
    bias: list[Scalar]
    momenta: list[Scalar]
    turn: Scalar


def contact_step(
    tree: Tree,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    tau: Sequence[Scalar],
    dt: Scalar,
    candidates: Sequence[Candidate],
    *,
    motors: Sequence[Motor] = (),
    memory: Sequence[Sequence[Scalar]] | None = None,
    settings: StepSettings | None = None,
    external_forces: ExternalForces = None,
    external_frame: str = "body",
) -> ContactStep:
    """The state after dt [s] under joint forces tau, with contact at the candidates (found at q).

    `memory`: that of the step before.
    """
    settings = StepSettings() if settings is None else settings
    begun = before_contact(
        tree,
        q,
        v,
        tau,
        dt,
        motors,
        limits=settings.limits,
        mending=settings.mending,
        friction_compliance=settings.friction_compliance,
        external_forces=external_forces,
        external_frame=external_frame,
    )
    axes, expected = begun.axes, _expected(candidates, memory)
    moving = axes.velocities(v)
    mass_weights, mobility = weights(tree), point_mobilities(tree)
    points = [
        _point(axes, item, impulse, moving, dt, mass_weights, mobility, settings)
        for item, impulse in zip(candidates, expected, strict=True)
    ]
    problem = begun.problem(points)
    held = [
        item.point.normal.dot(impulse) * (1.0 / KEPT)
        for item, impulse in zip(candidates, expected, strict=True)
    ]
    factors = factor(total_curvature(axes, begun.A, (), (), begun.equalities))
    found = solve(
        problem,
        v,
        held,
        acting=begun.acting,
        iterations=settings.iterations,
        tolerance=settings.tolerance,
    )
    end = rebound(problem, factors, found, v, candidates, settings.rebound_speed)
    way = [dt * x for x in end.v]
    ahead, _ = moved(tree, q, end.v, way)
    overlaps = _overlaps(problem, candidates, forward_kinematics(tree, ahead), settings.mending)
    mend = mended(problem, found, overlaps)
    travel = within_limits(begun.joints, [x + y for x, y in zip(way, mend, strict=True)])
    q_next, v_next = moved(tree, q, end.v, travel)
    remembered = _remembered(candidates, end.impulses, memory)
    return ContactStep(
        q_next,
        v_next,
        end.impulses,
        remembered,
        found.residual,
        end.work,
        end.v,
        end.free,
        begun.bias,
        begun.momenta,
        squared_turn(tree, q, begun.M, travel),
    )


def _expected(candidates: Sequence[Candidate], memory: Sequence[Sequence[Scalar]] | None) -> list[Vec3]:
    """The impulses that points bore in both steps before: what is there for one step only was an impact, and
    what fell from one to the other, the last of one, is expected to fall on."""
    if memory is None:
        return [Vec3.zero() for _ in candidates]
    found = []
    for item, (x, y, z, earlier) in zip(candidates, memory, strict=True):
        last, n = Vec3(x, y, z), item.point.normal
        pressed = n.dot(last)
        share = maximum(minimum(pressed, earlier), 0.0) / maximum(maximum(pressed, earlier), 1e-12)
        found.append((last + n * ((KEPT - 1.0) * pressed)) * share)
    return found


def _remembered(
    candidates: Sequence[Candidate], impulses: Sequence[Vec3], memory: Sequence[Sequence[Scalar]] | None
) -> list[list[Scalar]]:
    if memory is None:
        return [[*impulse, 0.0] for impulse in impulses]
    return [
        [*impulse, item.point.normal.dot(Vec3(x, y, z))]
        for item, impulse, (x, y, z, _) in zip(candidates, impulses, memory, strict=True)
    ]


def _point(
    axes: JointAxes,
    item: Candidate,
    expected: Vec3,
    moving: PerBody[Motion],
    dt: Scalar,
    mass_weights: Sequence[Scalar],
    mobility: Sequence[Scalar],
    settings: StepSettings,
) -> Point:
    """A point may close by its gap. One that rebounds does so at its speed, in the step in which it hits."""
    w, w_t = sum_over_bodies(item, mass_weights), sum_over_bodies(item, mobility)
    arm, gap = item.point.position - axes.origin, item.point.gap
    bound = -(maximum(gap, 0.0) * (1.0 / dt))
    if not is_zero(item.restitution):
        closing = item.point.normal.dot(_relative_velocity(item, moving, arm))
        hits = select(gap + dt * closing < 0.0, 0.0, -(ABSENT_POINT_GAP * (1.0 / dt)))
        bound = select(closing < -settings.rebound_speed, hits, bound)
    return Point(
        first=item.first,
        second=item.second,
        arm=arm,
        normal=item.point.normal,
        bound=bound,
        friction=item.friction,
        stiffness=1.0 / (settings.compliance * w),
        friction_stiffness=1.0 / (settings.friction_compliance * w_t),
        expected=expected,
        rows=None if item.runtime_bodies is None else item.runtime_bodies.rows(axes, arm),
    )


def _overlaps(
    problem: GaussProblem,
    candidates: Sequence[Candidate],
    ahead: PerBody[Transform],
    mending: float,
) -> list[Scalar]:
    """What is to be mended: a share of every overlap, and all that this step would add to it.

    Points of turning bodies move on arcs: those above the centre of the arc come down by more than h u. A
    point on a round body is another one after the step; its arc rises, and adds nothing.
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
        found.append(maximum(-gap, 0.0) * mending + added)
    return found


def _relative_velocity(item: Candidate, moving: PerBody[Motion], arm: Vec3) -> Vec3:
    total = Vec3.zero()
    for body, sign in body_signs(item, len(moving)):
        total = total + (moving[body].linear + moving[body].angular.cross(arm)) * sign
    return total
