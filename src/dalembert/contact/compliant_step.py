"""Compliant contact in a step: springs and dampers at the end of the step, by linear solves.

A surface with K and D under a body at p, and a patch at x along it with K_t and D_t, give to velocities u at
the end of a step of h seconds the impulses (Featherstone 2008 Eqs 11.74, 11.78 with z = p + h u_n, x + h u_t)

    gamma_n = max(0, - h K p - h (D + h K) u_n)                                                          (1)
    gamma_t = - h K_t x - h (D_t + h K_t) u_t, shortened to mu gamma_n                                   (2)

and, where p > 0, gamma_n = max(0, - h (D + h K) (u_n + p / h)): these are points of `costs` whose warm-start
impulse is that of the springs. The equation to solve, with A and p of `step_terms`, is

    A eta = p + J^T gamma(J eta)                                                                         (3)

`solve_compliant` does so with the pressing points and the fractions of friction of an earlier eta: a linear
system, twice or until these agree. Its springs and dampers are passive for any stiffness, so that they do not
limit h. Impulses that pull or leave the friction cone are then cut; the rest acts on A. Patches move by
Eq. (11.77) with x at the end of the step:

    x+ = (D_t x - h f_t) / (D_t + h K_t)                                                                 (4)

which is x + h u_t where the body sticks. The surface itself moves likewise: pressed in by z, and by

    z+ = (D z + gamma_n) / (D + h K)                                                                     (5)

after the step, which is the depth that the body then has, unless its impulse was cut. Surfaces return as
soon as bodies leave them: z is never more than the depth. Where it is less, since a body went deep without a
force or starts there, springs store only the energy that contact has put into them; z then grows by 0.25 m/s,
up to 25 times the sag under the weight. At the start z is that bound or the depth, if that is less: bodies
that start deep in each other would otherwise be thrown apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, final

from dalembert.algorithms.dense import inner_product
from dalembert.contact.contacts import Contacts, stack_bodies
from dalembert.contact.costs import (
    MIN_INVERSE_INERTIA,
    Equality,
    JointDrive,
    JointLimit,
    Point,
    RangeEnd,
    drive_stiffnesses,
    factor_hessian,
    inverse_tree_masses,
    turning_inverse_inertias,
)
from dalembert.contact.friction import EllipticHessian, Friction, PointHessian, PointVector
from dalembert.contact.narrow_phase.candidates import ABSENT_POINT_GAP
from dalembert.contact.newton import GaussProblem, StepSolution, solve_newton_system, weighted_square
from dalembert.contact.options import Compliant
from dalembert.contact.point_set import PointSet
from dalembert.contact.step_terms import GRAVITY_SCALE, Memory, Motor, StepStart, flight_shift
from dalembert.contact.tree_system import TreeMotion
from dalembert.scalar import Family, Row, Scalar, logical_and, loop, maximum, minimum, select, sqrt
from dalembert.spatial import Vec3

# The velocities after a step with compliant contact: the solution of Eq. (3).
#
# At a known eta, that before the step or of an earlier solve, a point presses or it does not (Eq. 1), and
# friction is the fraction s = min(1, mu gamma_n / |gamma_t|) of the impulse that would stop the slip (Eq. 2).
# With both fixed, impulses are linear in the unknown velocities,
#
#     gamma = gamma_0 - G u,    G = k_n n n^T + s k_t (1 - n n^T)                                          (6)
#
# and (A + J^T G J) eta = p + J^T gamma_0: bilateral springs and dampers, which are passive. Friction as a
# fraction, not as a force of given size, cannot reverse the slip that it opposes.
#
# Impulses by (6) at the new eta are then cut to the friction cone. Where more than a twentieth of them is
# cut, eta is solved for again. Two solves are enough unless light limbs are hit hard or caught between heavy
# ones: cutting would leave these with excessive speeds. Where cutting would let contact give more energy than
# its springs release, all impulses are scaled down: with P = J^T gamma and B = A with the joints' terms, the
# work of the fraction s is b s + a s^2 / 2, a = P . B^-1 P, b = P . v_free, and springs then store, by Eqs
# (4) and (5), 1/2 K z+(s)^2 + 1/2 K_t x+(s)^2: also quadratic in s. Position correction removes overlaps of
# joint limits and closes loops by a displacement, as in `newton`.

MIN_EXCEEDED_CORRECTION = 1e-5
"""The correction [rad, m] of a step above which a limit counts as exceeded."""

LINEAR_SOLVE_TOLERANCE = 1e-7
"""The residual of the linear solves as a fraction of p, where bodies of points are known at run time."""

FIRST_SOLVE_TOLERANCE = 1e-3
"""The same of the first solve, from which the next one only takes which points press, and the fractions of
friction: of these a twentieth may be cut. With 1e-2 more steps take a third solve."""

MAX_LINEAR_SOLVES = 10
"""The most linear solves of a step; the least are two."""

MAX_CUT_RATIO = 0.0025
"""The fraction of the squared impulses that may be cut without another solve: a twentieth, squared."""

SLIDING_FRACTION = 0.5
"""The fraction of friction below which a point slides so fast that more friction would not turn it back."""

MAX_FRICTION_RAISE = 1.05
"""The ratio by which friction of sliding points is raised to mu gamma_n, at most. The fraction is that of the
slip u_1 of the solve before, so that friction at the slip u of this one is u / u_1 of it: 2.4 % too small for
a box on a belt of 0.6 m/s, in steps of 5 ms. Friction that is farther off is that of impacts: where it was
raised, all impulses were scaled down, and limbs went twice as deep."""

LIMIT_REST_SPEED = 1e-3
"""The speed [rad/s, m/s] up to which a joint is at rest at a limit that it exceeds."""


@final
@dataclass(frozen=True, slots=True)
class Patch:
    """A patch of a surface, which friction displaces by x [m], or turns by x [rad], against a spring K and a
    damper D, in steps of h [s]. Where friction has an ellipse, x, K and D are those of scaled coordinates."""

    x: Vec3
    stiffness: Scalar
    damping: Scalar
    dt: Scalar

    def stretch(self) -> Vec3:
        """Return the impulse of the spring alone, - h K x."""
        impulse: Vec3 = self.x * -(self.dt * self.stiffness)
        return impulse

    @property
    def impulse_per_speed(self) -> Scalar:
        """h (D + h K)."""
        return self.dt * (self.damping + self.dt * self.stiffness)

    def after(self, g: Vec3) -> Vec3:
        """Return x+ of Eq. (4)."""
        moved: Vec3 = (self.x * self.damping - g) * self._way_per_impulse
        return moved

    def energy_gain(self, g: Vec3, square: Scalar) -> tuple[Scalar, Scalar, Scalar]:
        """Return c of the energy [J] that the spring gains, c_0 + c_1 s + c_2 s^2, if the fraction s of the
        impulse g acts; `square` is that of g."""
        k, y = 0.5 * self.stiffness, self._way_per_impulse
        left = self.damping * y
        return (
            (k * (left * left - 1.0)) * self.x.dot(self.x),
            -((2.0 * k * left * y) * self.x.dot(g)),
            (k * y * y) * square,
        )

    @property
    def _way_per_impulse(self) -> Scalar:
        """1 / (D + h K) [m/N s]."""
        return 1.0 / (self.damping + self.dt * self.stiffness)


@final
@dataclass(frozen=True, slots=True)
class CompliantPoint:
    """A point on compliant surfaces: the depth z [m] by which its spring is pressed in, K, D, the patch along
    the surface, the normal impulse [N s] of the previous step, and the patch that turns, if there is one."""

    point: Point
    z: Scalar
    stiffness: Scalar
    damping: Scalar
    patch: Patch
    last_normal_impulse: Scalar
    turning: Patch | None = None

    def spring(self) -> Scalar:
        """Return the normal impulse of the spring alone, h K z."""
        return self.z * (self.patch.dt * self.stiffness)

    def depth_after(self, impulse: Vec3) -> Scalar:
        """Return z+ of Eq. (5)."""
        gamma = self.point.normal.dot(impulse)
        return (self.damping * self.z + gamma) * self._depth_per_impulse

    def patches_after(self, impulse: PointVector) -> tuple[Vec3, Vec3 | None]:
        """Return x+ of both patches."""
        turning = None if self.turning is None else self.turning.after(self._torque(impulse))
        return self.patch.after(self._along_surface(impulse.linear)), turning

    def spring_energy_gain(self, impulse: PointVector) -> tuple[Scalar, Scalar, Scalar]:
        """Return c of the energy [J] that its springs gain, c_0 + c_1 s + c_2 s^2, if it exerts the fraction
        s of an impulse: that of 1/2 K z+^2 with z+ = y (D z + s gamma_n), and of the patches. A point that
        exerts no impulse has released no energy."""
        gamma, linear = self.point.normal.dot(impulse.linear), impulse.linear
        eased, k, y = select(gamma > 0.0, self.z, 0.0), 0.5 * self.stiffness, self._depth_per_impulse
        left = self.damping * y
        if self.point.across is None:
            across = self.patch.energy_gain(linear, maximum(linear.dot(linear) - gamma * gamma, 0.0))
        else:
            g = self._along_surface(linear)
            across = self.patch.energy_gain(g, g.dot(g))
        c = (
            (k * (left * left - 1.0)) * (eased * eased) + across[0],
            (2.0 * k * left * y) * (self.z * gamma) + across[1],
            (k * y * y) * (gamma * gamma) + across[2],
        )
        if self.turning is None:
            return c
        torque = self._torque(impulse)
        turned = self.turning.energy_gain(torque, torque.dot(torque))
        return c[0] + turned[0], c[1] + turned[1], c[2] + turned[2]

    def pulls(self, u: PointVector) -> list[tuple[Friction, Vec3]]:
        """Return the parts of friction, and the impulses that would stop their slips."""
        sliding, turning, patch = self.point.sliding, self.point.turning, self.turning
        found: list[tuple[Friction, Vec3]] = []
        if sliding is not None:
            found += [(sliding, self.patch.stretch() - sliding.slip(u.linear) * sliding.stiffness)]
        if turning is not None and patch is not None and u.angular is not None:
            pull = patch.stretch() - u.angular * turning.stiffness
            found += [(part, part.slip(pull)) for part in turning.parts(self.point.normal)]
        return found

    def impulse(self, gamma: Scalar, friction: Sequence[Vec3]) -> PointVector:
        """Return the impulse of gamma along the normal and the parts of friction."""
        parts, linear = [*friction], self.point.normal * gamma
        sliding = self.point.sliding
        if sliding is not None:
            linear = linear + sliding.friction_force(parts.pop(0))
        return PointVector(linear, None if self.turning is None else parts[0] + parts[1])

    def hessian(self, linearised: _Linearisation) -> PointHessian | EllipticHessian:
        """Return G of Eq. (6)."""
        point, still = self.point, Vec3.zero()
        sliding, turning, fractions = point.sliding, point.turning, [*linearised.fractions]
        k_n = linearised.pressing * point.stiffness
        G: PointHessian | EllipticHessian = PointHessian(point.normal, k_n, still, 0.0)
        if sliding is not None:
            G = sliding.stiff(k_n, fractions.pop(0) * sliding.stiffness, still)
        if turning is None:
            return G
        spin, roll = (fraction * turning.stiffness for fraction in fractions)
        return replace(G, turning=PointHessian(point.normal, spin, still, roll))

    def _along_surface(self, impulse: Vec3) -> Vec3:
        """Return the friction of an impulse, in scaled coordinates where friction has an ellipse."""
        sliding, n = self.point.sliding, self.point.normal
        if sliding is not None and sliding.ellipse is not None:
            return sliding.ellipse.unscale(impulse)
        across: Vec3 = impulse - n * n.dot(impulse)
        return across

    def _torque(self, impulse: PointVector) -> Vec3:
        return Vec3.zero() if impulse.angular is None else impulse.angular

    @property
    def _depth_per_impulse(self) -> Scalar:
        """1 / (D + h K) [m/N s]."""
        return 1.0 / (self.damping + self.patch.dt * self.stiffness)


class _Linearisation(NamedTuple):
    """The linearised state of a point: 1 if it presses, else 0, and the fraction of each part of friction."""

    pressing: Scalar
    fractions: list[Scalar]


class _CutImpulse(NamedTuple):
    """The velocity u of a point, and its impulse by Eq. (6) after cutting."""

    u: PointVector
    impulse: PointVector


def solve_compliant(
    problem: GaussProblem, v: Sequence[Scalar], surfaces: Family[CompliantPoint]
) -> tuple[StepSolution, list[Scalar]]:
    """Solve for the velocities: linear solves from v, cut impulses, and the velocities that these give; and
    return the impulses on v."""
    eta, found = _iterate_solves(problem, v, surfaces)
    rest, diagonal, equalities = _joint_terms(problem, eta, v)
    B = factor_hessian(problem.system, {}, diagonal, equalities)
    known = bool(problem.system.known)
    if known:  # velocities that are given, at v, are no unknowns of B
        rest_left = _minus(rest, _joint_product(problem, v, diagonal, equalities))
        free = _plus(v, B.solve(rest_left).v)
    else:
        free = B.solve(rest).v
    correction = B.solve(_correction_impulses(problem, eta, v)).v
    points = problem.points
    P = points.generalized(lambda row: found[row].impulse)
    change = B.solve(P).v

    def add_energy_gain(so_far: list[Scalar], row: Row) -> list[Scalar]:
        more = surfaces[row].spring_energy_gain(found[row].impulse)
        return [c + x for c, x in zip(so_far, more, strict=True)]

    c_0, c_1, c_2 = points.contacts.near.fold(add_energy_gain, [0.0, 0.0, 0.0])
    a, b = inner_product(P, change), inner_product(P, free)
    s = _passive_fraction(a + 2.0 * c_2, b + c_1, maximum(-c_0, 0.0))
    acting = points.contacts.near.each(lambda row: found[row].impulse * s)

    def memory_row(row: Row) -> list[Scalar]:
        own, impulse = surfaces[row], acting[row]
        across, turned = own.patches_after(impulse)
        gamma, depth = own.point.normal_velocity(impulse), own.depth_after(impulse.linear)
        return [*across, gamma, depth, *(() if turned is None else turned)]

    end = [x + s * y for x, y in zip(free, change, strict=True)]
    reaction: list[Scalar] = []
    if known:
        reaction = _minus(_joint_product(problem, end, diagonal, equalities), rest)
        reaction = [x - s * y for x, y in zip(reaction, P, strict=True)]
    work, memory = s * (b + 0.5 * s * a), points.contacts.near.each(memory_row)
    return StepSolution(end, free, correction, acting, work, memory, reaction=reaction), P


def _joint_product(
    problem: GaussProblem,
    v: Sequence[Scalar],
    diagonal: Sequence[tuple[int, Scalar]],
    equalities: Sequence[Equality],
) -> list[Scalar]:
    """Return B v: A v with the terms of joints and loops."""
    total = problem.system.times(problem.system.motion(v))
    for i, hessian in diagonal:
        total[i] = total[i] + hessian * v[i]
    for equality in equalities:
        equality.add(equality.velocity(v) * equality.stiffness, total)
    return total


def _plus(a: Sequence[Scalar], b: Sequence[Scalar]) -> list[Scalar]:
    return [x + y for x, y in zip(a, b, strict=True)]


def _minus(a: Sequence[Scalar], b: Sequence[Scalar]) -> list[Scalar]:
    return [x - y for x, y in zip(a, b, strict=True)]


def _iterate_solves(
    problem: GaussProblem, v: Sequence[Scalar], surfaces: Family[CompliantPoint]
) -> tuple[list[Scalar], Family[_CutImpulse]]:
    """Repeat linear solves until hardly any impulse is cut; return eta and the impulses after cutting."""
    points = problem.points
    near, given = points.contacts.near, points.velocities(problem.system.motion(v))
    begun = near.each(lambda row: _linearise(surfaces[row], given[row], first=True))
    first = _linear(problem, v, v, surfaces, begun, FIRST_SOLVE_TOLERANCE)

    def step(carry: Any) -> Any:
        eta, state, _ = carry
        linearised = near.each(lambda row: _linearise(surfaces[row], state[row].u, first=False))
        moved = _linear(problem, eta, v, surfaces, linearised, LINEAR_SOLVE_TOLERANCE)
        motions = points.motions(moved)

        def cut(so_far: list[Scalar], row: Row) -> tuple[list[Scalar], _CutImpulse]:
            u = points.velocity(row, motions)
            impulse, square = _cut(surfaces[row], u, linearised[row])
            return [so_far[0] + impulse.dot(impulse), so_far[1] + square], _CutImpulse(u, impulse)

        (whole, gone), state = near.scan(cut, [1e-30, 0.0])
        return [moved.v, state, gone / whole]

    none = PointVector(Vec3.zero(), None if points.contacts.turning is None else Vec3.zero())
    motions = points.motions(first)
    uncut = near.each(lambda row: _CutImpulse(points.velocity(row, motions), none))
    carry: Any = [first.v, uncut, 1.0]
    eta, state, _ = loop(MAX_LINEAR_SOLVES - 1, step, carry, until=lambda carry: carry[2] < MAX_CUT_RATIO)
    return eta, state


def _linearise(surface: CompliantPoint, u: PointVector, *, first: bool) -> _Linearisation:
    """Return whether a point presses at u, and its fractions of friction.

    Before the first solve the normal impulse of the previous step bounds friction: the impulse of a deep
    spring at rest may be far from its impulse in the step, and such friction would jam the body.
    """
    point, spring = surface.point, surface.spring()
    closing = point.stiffness * (point.bound - point.normal_velocity(u))
    pressing = select(spring + closing > 0.0, 1.0, 0.0)
    normal = surface.last_normal_impulse if first else maximum(spring + closing, 0.0)
    fractions = [_friction_fraction(pull, part.coefficient * normal) for part, pull in surface.pulls(u)]
    return _Linearisation(pressing, fractions)


def _linear(
    problem: GaussProblem,
    v: Sequence[Scalar],
    before: Sequence[Scalar],
    surfaces: Family[CompliantPoint],
    linearised: Family[_Linearisation],
    tolerance: float,
) -> TreeMotion:
    """Return the motion eta of (A + J^T G J) eta = p + J^T gamma_0."""
    p, diagonal, equalities = _joint_terms(problem, v, before)
    points = problem.points

    def hessian(row: Row) -> PointHessian | EllipticHessian:
        return surfaces[row].hessian(linearised[row])

    def bound_impulse(row: Row) -> PointVector:
        surface, (pressing, fractions) = surfaces[row], linearised[row]
        point = surface.point
        gamma = pressing * (surface.spring() + point.stiffness * point.bound)
        still = PointVector(Vec3.zero(), None if surface.turning is None else Vec3.zero())
        pulls = [pull for _, pull in surface.pulls(still)]
        return surface.impulse(gamma, [x * y for x, y in zip(pulls, fractions, strict=True)])

    p, system = _plus(p, points.generalized(bound_impulse)), problem.system

    def solve(b: Sequence[Scalar]) -> TreeMotion:
        scale = weighted_square(problem.p, system.weights)
        return solve_newton_system(system, points, hessian, diagonal, equalities, b, tolerance, scale)

    if not system.known:
        return solve(p)
    # Known velocities, those of `before`, are no unknowns: solve for the change of the others.
    u = points.velocities(system.motion(before))
    pressed = points.generalized(lambda row: hessian(row).times(u[row]))
    left = _minus(p, _plus(_joint_product(problem, before, diagonal, equalities), pressed))
    return system.motion(_plus(before, solve(left).v))


def _joint_terms(
    problem: GaussProblem, v: Sequence[Scalar], before: Sequence[Scalar]
) -> tuple[list[Scalar], list[tuple[int, Scalar]], list[Equality]]:
    """Return p with the terms of limits, motors, dry friction and loops, linearised about v, and their
    Hessians: those of single variables, and rows."""
    p, diagonal = list(problem.p), []
    for joint in problem.joints:
        i = joint.place
        hessian = _joint_hessian(joint, v[i])
        diagonal.append((i, hessian))
        if isinstance(joint, JointLimit):
            p[i] = p[i] + hessian * (joint.sign * _target(joint, before[i] * joint.sign))
        else:
            p[i] = p[i] + (joint.impulse(v[i]) + hessian * v[i])
    equalities = _active_rows(problem, v, before)
    for equality in equalities:
        equality.add(equality.target * equality.stiffness, p)
    return p, diagonal, equalities


def _active_rows(problem: GaussProblem, v: Sequence[Scalar], before: Sequence[Scalar]) -> list[Equality]:
    """Return equalities, and the ends of ranges that are reached at v."""
    ends = [
        end.as_equality(end.velocity(v) < _reach(end), _target(end, end.velocity(before)))
        for end in problem.ranges
    ]
    return [*problem.equalities, *ends]


def _target(end: JointLimit | RangeEnd, u: Scalar) -> Scalar:
    """Return the velocity at which an active limit lets a joint close the remaining gap.

    An active limit is an equality, but the contact impulse that drove the joint there may be cut. So the
    velocity is no faster than u, that before the step, or the limit would pull.
    """
    return maximum(end.bound, minimum(u, 0.0))


def _joint_hessian(joint: JointLimit | JointDrive, u: Scalar) -> Scalar:
    """Return the Hessian of the joint's term; an exceeded limit stays active while the joint leaves it
    slowly, until position correction has removed the overlap."""
    if not isinstance(joint, JointLimit):
        return joint.hessian(u)
    return select(u * joint.sign < _reach(joint), joint.stiffness, 0.0)


def _reach(end: JointLimit | RangeEnd) -> Scalar:
    """Return the velocity below which a limit is active."""
    return select(end.overlap > MIN_EXCEEDED_CORRECTION, end.bound + LIMIT_REST_SPEED, end.bound)


def _correction_impulses(
    problem: GaussProblem, v: Sequence[Scalar], before: Sequence[Scalar]
) -> list[Scalar]:
    """Return the right-hand side of position correction: joints beyond their limits, and open loops."""
    total: list[Scalar] = [0.0] * len(v)
    for joint in problem.joints:
        if isinstance(joint, JointLimit):
            push = _joint_hessian(joint, v[joint.place]) * joint.overlap * joint.sign
            total[joint.place] = total[joint.place] + push
    for equality in _active_rows(problem, v, before):
        equality.add(-(equality.gap * equality.stiffness), total)
    return total


def _cut(surface: CompliantPoint, u: PointVector, linearised: _Linearisation) -> tuple[PointVector, Scalar]:
    """Return the impulse by Eq. (6), cut to the friction cone or, where the point slides, raised to it, and
    the square of the part that is cut."""
    point = surface.point
    closing = point.stiffness * (point.bound - point.normal_velocity(u))
    linear = linearised.pressing * (surface.spring() + closing)
    normal = maximum(linear, 0.0)
    pulled, kept = normal - linear, []
    lost = pulled * pulled
    for (part, pull), fraction in zip(surface.pulls(u), linearised.fractions, strict=True):
        law = _friction_fraction(pull, part.coefficient * normal)
        left = maximum(fraction - law, 0.0)
        lost = lost + pull.dot(pull) * (left * left)
        raised = logical_and(law < SLIDING_FRACTION, law < fraction * MAX_FRICTION_RAISE)
        kept.append(pull * select(raised, law, minimum(law, fraction)))
    return surface.impulse(normal, kept), lost


def _friction_fraction(pull: Vec3, limit: Scalar) -> Scalar:
    """Return min(1, limit / |pull|)."""
    square = pull.dot(pull)
    over = square > limit * limit
    return select(over, limit / sqrt(select(over, square, 1.0)), 1.0)


def _passive_fraction(a: Scalar, b: Scalar, bound: Scalar) -> Scalar:
    """Return the greatest s <= 1 for which b s + a s^2 / 2 <= bound; a, bound >= 0."""
    root = 2.0 * bound / maximum(sqrt(maximum(b * b + 2.0 * a * bound, 0.0)) + b, 1e-30)
    falling = (sqrt(maximum(b * b + 2.0 * a * bound, 0.0)) - b) / maximum(a, 1e-30)
    s = select(b > 0.0, root, falling)
    return select(b + 0.5 * a > bound, minimum(s, 1.0), 1.0)


DEFAULT_SAG = 1e-3
"""The depth [m] by which the weight of a figure presses one point in, unless a stiffness is given."""

DRIVE_STIFFNESS_RATIO = 100.0
"""The least stiffness of a point, unless one is given, in multiples of that with which motors hold its
bodies: what servos press together, they press with the force that is meant, to 1 % with one point a side."""

MAX_UNLOADED_DEPTH_IN_SAGS = 25.0
"""The greatest depth of springs that contact has not pressed in, in multiples of the sag under the weight."""

SEPARATION_SPEED = 0.25
"""The speed [m/s] at which bodies part that overlap by more than their springs are pressed in."""

MAX_STEP_STIFFNESS = 1e3
"""The greatest h^2 K w and h D w. More stiffness would not matter in a step, as a weight presses in by 0.25
um in 5 ms, but rounding errors would grow."""


def solve_compliant_step(
    start: StepStart, contacts: Contacts, memory: Memory, settings: Compliant, motors: Sequence[Motor] = ()
) -> StepSolution:
    """Solve a step with compliant contact.

    `memory` of the previous step, five numbers a point: the patch x [m], the normal impulse, and the
    depth z [m] by which the surface is pressed in, and where pairs resist turning three more, the angle of
    the patch [rad]; None: surfaces at rest that may be pressed in by any depth.
    """
    system, near = start.system, contacts.near
    tree, bodies = system.axes.tree, contacts.bodies
    inverse_mass = stack_bodies(tree, bodies, inverse_tree_masses(tree), 0.0)
    turns = contacts.turning is not None
    inverse_inertia = stack_bodies(tree, bodies, turning_inverse_inertias(tree), 0.0) if turns else None
    gains = {motor.place: motor.kp for motor in motors}
    driven = stack_bodies(tree, bodies, drive_stiffnesses(tree, gains), 0.0)

    def surface(row: Row) -> CompliantPoint:
        past = [0.0, 0.0, 0.0, 0.0, ABSENT_POINT_GAP, 0.0, 0.0, 0.0] if memory is None else memory[row]
        first, second = contacts.first[row], contacts.second[row]
        w, w_r = inverse_mass[first] + inverse_mass[second], 0.0
        if inverse_inertia is not None:
            w_r = maximum(inverse_inertia[first] + inverse_inertia[second], MIN_INVERSE_INERTIA)
        firm = DRIVE_STIFFNESS_RATIO * maximum(driven[first], driven[second])
        return _surface(contacts, row, system.axes.origin, past, (w, w_r), firm, start.dt, settings)

    surfaces = near.each(surface)
    points = PointSet.of(contacts, system, lambda row: surfaces[row].point)
    found, P = solve_compliant(start.problem(points), start.v, surfaces)
    return found._replace(flight=flight_shift(start, found.v, P))


def _surface(
    contacts: Contacts,
    row: Row,
    origin: Vec3,
    past: Sequence[Scalar],
    inverse: tuple[Scalar, Scalar],
    firm: Scalar,
    dt: Scalar,
    settings: Compliant,
) -> CompliantPoint:
    """Return a point with its springs and dampers, as in Eqs (1) and (2); `inverse`: its inverse mass w and
    its inverse moment of inertia; `firm`: the least stiffness for the motors that hold its bodies."""
    found, (w, w_r) = contacts.points[row], inverse
    usual = maximum(GRAVITY_SCALE / (DEFAULT_SAG * w), firm)
    K = usual if settings.stiffness is None else settings.stiffness
    D = 2.0 * sqrt(K / w) if settings.damping is None else settings.damping
    K_t = K if settings.friction_stiffness is None else settings.friction_stiffness
    D_t = D if settings.friction_damping is None else settings.friction_damping
    rate = 1.0 / dt
    most = (MAX_STEP_STIFFNESS / w) * rate
    D, D_t = minimum(D, most), minimum(D_t, most)
    K, K_t = minimum(K, most * rate), minimum(K_t, most * rate)
    n, gap = found.normal, found.gap
    sag = GRAVITY_SCALE / (K * w)
    let_go = maximum(past[4], minimum(past[4] + SEPARATION_SPEED * dt, MAX_UNLOADED_DEPTH_IN_SAGS * sag))
    z = minimum(maximum(-gap, 0.0), select(past[4] < 0.0, MAX_UNLOADED_DEPTH_IN_SAGS * sag, let_go))
    x = Vec3(past[0], past[1], past[2])
    across = x - n * n.dot(x)
    turned, law = None, None
    if contacts.turning is not None:
        scale = w / w_r  # of moments of inertia to masses [m^2]
        turned = Patch(Vec3(*past[5:]), K_t * scale, D_t * scale, dt)
        law = contacts.turning.law(row, turned.impulse_per_speed, Vec3.zero())
    point = Point(
        found.position - origin,
        n,
        -(maximum(gap, 0.0) * (1.0 / dt)),
        contacts.friction[row],
        stiffness=dt * (D + dt * K),
        friction_stiffness=dt * (D_t + dt * K_t),
        warm_start=n * (z * (K * dt)) - across * (K_t * dt),
        across=None if contacts.across is None else contacts.across[row],
        turning=law,
    )
    patch = Patch(across, K_t, D_t, dt)
    sliding = point.sliding
    if sliding is not None and sliding.ellipse is not None:
        scale = 1.0 / sliding.ellipse.squared_size
        patch = Patch(across, K_t * scale, D_t * scale, dt)
    return CompliantPoint(point, z, K, D, patch, past[3], turned)


FIRST_STEP_MARK = -1.0
"""The depth z that is remembered before the first step, in which overlaps are accepted as they are."""
