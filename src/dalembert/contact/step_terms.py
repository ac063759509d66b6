"""The start of every step with contact: free motion, and the terms of joints and loops.

The unknown is eta, the velocity after the step along the axes that bodies have before it. Where nothing
touches, A eta = p with

    A = M + h D + h^2 K,        p = M v + h (tau - b(q, u) - K x)

u are the velocities, but roots turn as in the middle of the step and are seen from their centres, where axes
that turn do not drift; D and K are damping and springs, implicit. Contact points, limits, motors, dry
friction and loops are the terms of `costs`. Both laws of contact solve the same problem with points of their
own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

from dalembert.algorithms.aligned import original_model
from dalembert.algorithms.applied_forces import FRICTION_SPEED, ExternalForces, displacement
from dalembert.algorithms.constraints import closure_equations, constraint_equations
from dalembert.algorithms.dense import factor, threshold, unit
from dalembert.algorithms.fluid import fluid_forces
from dalembert.algorithms.integrators import (
    centroidal_rates,
    from_centroidal,
    integrate_centroidal,
    to_centroidal,
    velocity_relative_to_center,
)
from dalembert.algorithms.inverse_dynamics import bias_forces
from dalembert.algorithms.open_tree import is_constrained, velocity_places
from dalembert.algorithms.springs import lengths_of, stretched_springs
from dalembert.contact.costs import (
    Equality,
    JointDrive,
    JointLimit,
    RangeEnd,
    joint_inverse_masses,
)
from dalembert.contact.law import Law
from dalembert.contact.newton import GaussProblem
from dalembert.contact.options import Compliant, Rigid
from dalembert.contact.point_set import PointSet
from dalembert.contact.prescribed import JointAtTime, PrescribedMotion, TreeAtTime
from dalembert.contact.tree_system import JointAxes, TreeMotion, TreeSystem, joint_axes
from dalembert.model.body import Body, Dependence, bounds_of
from dalembert.model.joints import Free, Spherical
from dalembert.model.topology import WORLD
from dalembert.model.tree import Tree
from dalembert.scalar import (
    Family,
    Scalar,
    Time,
    is_zero,
    literal,
    logical_or,
    maximum,
    minimum,
    select,
    sqrt,
)
from dalembert.spatial import Force, Mat3, RigidInertia, SymMat3, Transform, Vec3

# The ranges of joints in steps with contact: both ends of every coordinate that has a limit.
#
# The rate of a coordinate is a multiple of one velocity variable, or a row K v: that of a joint that follows
# several others (a coupling), and those of joints whose positions are along other axes than their velocities
# (the lengths of a planar joint). An end lets the rate close the remaining gap in one step, and no more;
# position correction removes an overlap beyond it.

LIMIT_GIVE = 0.02
"""The distance [rad or m] by which joints may be beyond their limits, so that overlaps can be corrected. With
0, 0.01 and 0.02 thrown humanoids sink in by 1.55, 0.63 and 0.39 mm, as far as without any bound."""

LIMIT_COMPLIANCE = 1e-3
"""The compliance of joint limits as a fraction of the inverse effective mass. With 1e-2 joints went beyond
their limits by so much that toes could not be corrected: 2 of 256 thrown humanoids sank in by 2 mm (now 0.33
mm at most), and joints that press against their limits had velocities. With 1e-4 steps take a tenth more
iterations."""


class _Given(NamedTuple):
    """The state (q, v) of a tree and the h [s] of a step, 1 / M_jj of its velocity variables, the options of
    joints, and the time [s] if the tree depends on it."""

    tree: Tree
    q: Sequence[Scalar]
    v: Sequence[Scalar]
    dt: Scalar
    inverse_mass: Sequence[Scalar]
    options: Rigid
    time: Time = None


def _limit_terms(given: _Given) -> Iterator[JointLimit]:
    """Yield both ends of the range of every coordinate that one velocity variable moves."""
    for body, sign, k, end, rate in _range_ends(given):
        if rate is not None:
            place, ratio = rate
            gap = (body.own_q(given.q)[k] - end) * (sign / abs(ratio))
            bound, overlap = _admissible(gap, given)
            stiffness = 1.0 / (LIMIT_COMPLIANCE * given.inverse_mass[place])
            room = maximum(gap + LIMIT_GIVE, 0.0)
            yield JointLimit(place, sign if ratio > 0.0 else -sign, bound, overlap, stiffness, room)


def _range_terms(given: _Given) -> Iterator[RangeEnd]:
    """Yield both ends of the range of every coordinate that several velocity variables move: of joints that
    follow several others, and of joints whose positions are along other axes than their velocities."""
    for body, sign, k, end, rate in _range_ends(given):
        row = [] if rate is not None else [sign * x for x in _row(given.tree, body, given.q, k)]
        if not all(is_zero(x) for x in row):
            bound, overlap = _admissible((body.own_q(given.q)[k] - end) * sign, given)
            stiffness = 1.0 / (LIMIT_COMPLIANCE * _row_inverse_mass(row, given.inverse_mass))
            yield RangeEnd(row, bound, overlap, stiffness)


def _tendon_ends(given: _Given) -> Iterator[RangeEnd]:
    """Yield the finite limits of the lengths of paths."""
    limited = [spring for spring in given.tree.springs if spring.is_limited and given.options.limits]
    if not limited:
        return
    lengths = lengths_of(original_model(_source(given.tree)), limited, given.q, time=given.time)
    for spring, (length, J, drift) in zip(limited, lengths, strict=True):
        for sign, end in zip((1.0, -1.0), spring.limits, strict=True):
            row = [x if is_zero(x) else sign * x for x in _with_clock(given.tree, J, drift)]
            if math.isfinite(end) and not all(is_zero(x) for x in row):
                bound, overlap = _admissible((length - end) * sign, given)
                stiffness = 1.0 / (LIMIT_COMPLIANCE * _row_inverse_mass(row, given.inverse_mass))
                yield RangeEnd(row, bound, overlap, stiffness)


def _admissible(gap: Scalar, given: _Given) -> tuple[Scalar, Scalar]:
    """Return the velocity that closes the remaining gap, and the part of an overlap to correct."""
    bound = -(maximum(gap, 0.0) * (1.0 / given.dt))
    return bound, maximum(-gap, 0.0) * given.options.position_correction


def _row_inverse_mass(row: Sequence[Scalar], inverse_mass: Sequence[Scalar]) -> Scalar:
    """Return K diag(w) K^T of the rate K v, without structural zeros; within bounds."""
    first, *rest = [j for j, x in enumerate(row) if not is_zero(x)]
    w = sum((row[j] * row[j] * inverse_mass[j] for j in rest), row[first] ** 2 * inverse_mass[first])
    return minimum(maximum(w, 1e-12), 1e12)


def _range_ends(given: _Given) -> Iterator[tuple[Body, float, int, Scalar, tuple[int, float] | None]]:
    """Yield the finite ends of the ranges of all joints, if they count: body, sign (1 for lower ends),
    coordinate, end and rate, as in `_rates`."""
    for body in given.tree.bodies if given.options.limits else ():
        rates = _rates(body)
        for sign, ends in ((1.0, body.limits.lower), (-1.0, body.limits.upper)):
            listed = [ends] * body.nq if isinstance(ends, (int, float)) else list(ends)
            for k, end in enumerate(listed):
                value = literal(end)
                if value is None or math.isfinite(value):
                    yield body, sign, k, end, rates[k]


def _row(tree: Tree, body: Body, q: Sequence[Scalar], k: int) -> list[Scalar]:
    """Return K of the rate K v of the k-th coordinate of a joint."""
    row: list[Scalar] = [0.0] * tree.nv
    if body.dependence is not None:
        for _, place, ratio in body.dependence.terms:
            row[place] = row[place] + ratio
        return row
    rates = (body.joint.position_rate(body.own_q(q), unit(body.nv, j)) for j in range(body.nv))
    row[body.v_slice] = [rate[k] for rate in rates]
    return row


def _rates(body: Body) -> list[tuple[int, float] | None]:
    """Return for each coordinate of a joint the velocity variable of which its rate is a constant multiple,
    or None: a planar joint's angle has such a variable, its lengths and quaternions do not."""
    if body.dependence is not None:
        return [_single_rate(body)]
    here, there = ([start + 0.2 * k for k in range(body.nq)] for start in (0.3, -0.7))
    columns = [
        (body.joint.position_rate(here, unit(body.nv, j)), body.joint.position_rate(there, unit(body.nv, j)))
        for j in range(body.nv)
    ]
    found: list[tuple[int, float] | None] = []
    for k in range(body.nq):
        moving = [j for j, (a, b) in enumerate(columns) if not (is_zero(a[k]) and is_zero(b[k]))]
        ratios = {literal(rates[k]) for rates in columns[moving[0]]} if len(moving) == 1 else {None}
        ratio = ratios.pop() if len(ratios) == 1 else None
        found.append(None if ratio is None else (body.v_slice.start + moving[0], ratio))
    return found


def _single_rate(body: Body) -> tuple[int, float] | None:
    """Return the velocity variable that a joint follows, if there is exactly one, and the ratio."""
    terms = [] if body.dependence is None else [term for term in body.dependence.terms if term[2] != 0.0]
    return (terms[0][1], terms[0][2]) if len(terms) == 1 else None


LOOP_COMPLIANCE = (1e-6, 3e-4)
"""The compliance of loops as a fraction of the inverse effective mass, in double and single precision."""


class Motor(NamedTuple):
    """PD control of one velocity variable: tau = kp (q_ref - q) + kd (v_ref - v), |tau| <= effort.

    `error` is q_ref - q (for a ball joint the rotation vector's component); the control is implicit in the
    step, so that any gains are stable.
    """

    place: int
    error: Scalar
    v_ref: Scalar
    kp: Scalar
    kd: Scalar
    effort: Scalar = math.inf


Memory: TypeAlias = Family[list[Scalar]] | None
"""The numbers that a contact law keeps of each point from one step to the next."""


class StepStart(NamedTuple):
    """The state where a step of dt [s] begins, v with the velocities of prescribed joints at its end, and the
    parts of the step other than its points: A, M v, free motion A eta = M v + acting, the terms of joints and
    loops; `bias`: velocity-product forces and weights, minus external forces; `time` [s] where the step ends,
    for a tree that depends on it."""

    q: Sequence[Scalar]
    v: Sequence[Scalar]
    dt: Scalar
    system: TreeSystem
    momenta: list[Scalar]
    acting: list[Scalar]
    bias: list[Scalar]
    joints: list[JointLimit | JointDrive]
    equalities: list[Equality]
    ranges: list[RangeEnd]
    prescribed: PrescribedMotion | None = None
    time: Time = None

    @property
    def ahead(self) -> Tree:
        """The tree where the step ends."""
        tree = self.system.axes.tree
        return tree if self.time is None else TreeAtTime(_source(tree), self.time)

    def end(self, eta: Sequence[Scalar], travel: Sequence[Scalar]) -> tuple[list[Scalar], list[Scalar]]:
        """Return q and v after the displacement `travel` with velocities eta, both along the axes at q. A
        loop closure gives dependent joints theirs, so that loops are closed exactly."""
        tree = self.system.axes.tree
        q, v = advance_state(tree, self.q, eta, travel, self.prescribed)
        if tree.closure is None:
            return q, v
        y, rates = [q[k] for k in tree.closure.positions], [v[k] for k in tree.closure.velocities]
        whole = closure_equations(_source(tree), y, rates, time=self.time)
        return whole.q, whole.v

    def problem(self, points: PointSet) -> GaussProblem:
        """Return the problem to solve with these points."""
        p = [x + y for x, y in zip(self.momenta, self.acting, strict=True)]
        return GaussProblem(self.system, p, points, self.joints, self.equalities, self.ranges)


def start_step(
    tree: Tree,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    tau: Sequence[Scalar],
    dt: Scalar,
    motors: Sequence[Motor],
    settings: Rigid | Compliant | Law,
    external_forces: ExternalForces,
    external_frame: str,
    prescribed: PrescribedMotion | None = None,
    time: Time = None,
) -> StepStart:
    """Compute the terms of a step of dt [s] that do not depend on contact points.

    `time` [s] where the step begins, for a tree that depends on it: v and all that is alike end with the
    variable of the clock then.
    """
    end = None
    if time is not None:
        end, tree = time + dt, TreeAtTime(tree, time, time + 0.5 * dt)
        v, tau, prescribed = [*v, 1.0], [*tau, 0.0], tree.prescribe_clock(q, prescribed)
    known = frozenset[int]() if prescribed is None else prescribed.places
    v = v if prescribed is None else prescribed.fill(v, prescribed.earlier)
    inverse_mass = joint_inverse_masses(tree)
    # Joints and loops in steps with compliant contact are those of rigid contact by its default options.
    options = settings if isinstance(settings, Rigid) else Rigid(limits=settings.limits)
    given = _Given(tree, q, v, dt, inverse_mass, options, time)
    resistances, springs = _resistance(given)
    equalities = [*_loop_terms(given), *_spring_terms(given, springs)]
    system = TreeSystem.of(joint_axes(tree, q), resistances, inverse_mass, known)
    motion = system.motion(v)
    seen = _middle(given, system, motion, prescribed)
    turning = system.momenta(system.motion(_drift(tree, q, seen)))
    b = bias_forces(tree, q, seen, external_forces=external_forces, external_frame=external_frame)
    bias = [x - c for x, c in zip(b, turning, strict=True)]
    if tree.fluid is not None:
        pushed = fluid_forces(_source(tree), q, v, time=time)
        tau = [t + f for t, f in zip(tau, _with_clock(tree, pushed, 0.0), strict=True)]
    acting = [dt * (t - x) - s for t, x, s in zip(tau, bias, springs, strict=True)]
    joints: list[JointLimit | JointDrive] = [x for x in _limit_terms(given) if x.place not in known]
    joints += [*_frictions(given), *(_drive(motor, dt) for motor in motors)]
    ranges = [*_range_terms(given), *_tendon_ends(given)]
    momenta = system.momenta(motion)
    v = v if prescribed is None else prescribed.fill(v, prescribed.velocity)
    return StepStart(q, v, dt, system, momenta, acting, bias, joints, equalities, ranges, prescribed, end)


def _middle(
    given: _Given, system: TreeSystem, motion: TreeMotion, prescribed: PrescribedMotion | None
) -> list[Scalar]:
    """Return the velocities at which gyroscopic and Coriolis forces are evaluated.

    At v itself a tumbling body would gain (omega h)^2 of its energy in every step. So roots turn as in the
    middle of the step, which makes it (omega h)^4; less so where one turns by more than a radian in it.
    Velocities are relative to the centre of a free root: by Galilean invariance forces are the same, and
    rotating axes do not change the components of a zero velocity.
    """
    result, dt = list(given.v), given.dt
    if prescribed is not None:
        result = prescribed.fill(result, prescribed.middle())
    inertias, momenta = system.carried_inertias(), system.carried_momenta(motion)
    for body in independent_bodies(given.tree):
        if body.parent != WORLD:
            continue
        own, arc = body.own_v(result), system.carriers[body.index]
        is_prescribed = prescribed is not None and prescribed.moves(body)
        if isinstance(body.joint, Free | Spherical) and not is_prescribed:
            omega = Vec3(*own[:3])
            fourth = (dt * dt * omega.dot(omega)) ** 2  # power of the angle
            half = (0.5 * dt) / (1.0 + fourth * fourth)
            turn = _turn(body, omega, system.axes, inertias[arc], momenta[arc])
            own = [*(omega + turn * half), *own[3:]]
        result[body.v_slice] = velocity_relative_to_center(body, body.own_q(given.q), own)
    return result


def _turn(body: Body, omega: Vec3, axes: JointAxes, carried: RigidInertia, momentum: Force) -> Vec3:
    """Return the angular acceleration of a root by gyroscopic forces, I^-1 (L x omega), with the inertia and
    the momentum of its whole tree, about the tree's centre or, for a ball joint, about the joint."""
    pose = axes.poses[body]
    point = carried.com if isinstance(body.joint, Free) else pose.p - axes.origin
    at, (x, y, z) = Transform(pose.R, point), body.armature[:3]
    I = at.apply(carried).inertia + SymMat3(x, y, z, 0.0, 0.0, 0.0)
    L = at.apply(momentum).angular
    L = L + Vec3(x * omega.x, y * omega.y, z * omega.z)
    turn: Vec3 = I.inverse() @ L.cross(omega)
    return turn


def _drift(tree: Tree, q: Sequence[Scalar], v: Sequence[Scalar]) -> list[Scalar]:
    """Return c, the rate of the components of a free body's velocity as its axes turn."""
    result: list[Scalar] = [0.0] * tree.nv
    for body in independent_bodies(tree):
        if body.parent == WORLD:
            continue
        own_q, own_v, still = body.own_q(q), body.own_v(v), [0.0] * body.nv
        y, _ = to_centroidal(body, own_q, own_v)
        _, rate = centroidal_rates(body, own_q, own_v, still)
        _, result[body.v_slice] = from_centroidal(body, y, rate)
    return result


def advance_state(
    tree: Tree,
    q: Sequence[Scalar],
    eta: Sequence[Scalar],
    travel: Sequence[Scalar],
    prescribed: PrescribedMotion | None = None,
) -> tuple[list[Scalar], list[Scalar]]:
    """Return q and v after the displacement `travel` with velocities eta, both along the axes at q;
    prescribed joints arrive where they should."""
    q_next: list[Scalar] = [0.0] * tree.nq
    v_next: list[Scalar] = [0.0] * tree.nv
    for body in independent_bodies(tree):
        own = body.own_q(q)
        if prescribed is not None and prescribed.moves(body):
            q_next[body.q_slice], v_next[body.v_slice] = body.own_q(prescribed.q), body.own_v(prescribed.v)
            continue
        y, w = to_centroidal(body, own, body.own_v(eta))
        _, way = to_centroidal(body, own, body.own_v(travel))
        turn = body.joint.normalize(integrate_centroidal(body, y, way))
        q_next[body.q_slice], v_next[body.v_slice] = from_centroidal(body, turn, w)
    return q_next, v_next


# Flight: centres of mass that move by the mean of their velocities before and after a step.
#
# A step changes velocities from v to eta and then moves the bodies by h eta, which leaves a thrown body
# h g t / 2 too low after the time t. In flight its centre of mass moves by h (v_c + eta_c) / 2 instead. That
# is exact for constant forces and keeps T + V: the whole tree is shifted by
#
#     - h/2 (eta_c - v_c),      m (eta_c - v_c) = P(q, eta) - P(q, v)                                      (1)
#
# P the linear momentum. All its bodies move alike, so that joints and loops do not feel the shift. A contact
# that adds the impulses P to trees which move so does the work P . (v + eta) / 2, which restitution keeps
# from being positive (`rigid_step`): bodies that rebound move so, too. Other trees that touch anything move
# by h eta, where the velocities of their points lead: they do not creep, slip out of a grip or sink in.

MIN_TOUCH_RATIO = 1e-3
"""The least impulse of contact on a tree that counts, as a fraction of its weight in a step: more than the
rounding errors of forces between its own bodies."""

GRAVITY_SCALE = 9.81
"""The acceleration [m/s^2] of gravity, as a scale of weights."""


class Translation(NamedTuple):
    """A velocity variable that moves a whole tree along an axis: its place in v, the body of its joint, the
    number of its axis there, and the axis in coordinates of the root."""

    place: int
    body: Body
    number: int
    axis: Vec3


def whole_translations(tree: Tree, q: Sequence[Scalar]) -> list[list[Translation]]:
    """Return the translations of each tree as a whole, without limits, springs and armatures: those of the
    joint of its root and, as long as nothing turns, of the joints that follow one by one."""
    return [_translations(tree, body, q) for body in tree.bodies if body.parent == WORLD]


def _translations(tree: Tree, root: Body, q: Sequence[Scalar]) -> list[Translation]:
    found: list[Translation] = []
    body, turn = root, Mat3.identity()
    while body.dependence is None and not isinstance(body.joint, JointAtTime) and _is_unlimited(body):
        if not all(is_zero(x) for x in (*body.stiffness, *body.armature)):
            break
        S = body.jcalc(q).S
        along = [k for k, s in enumerate(S) if all(is_zero(x) for x in s.angular)]
        found += [Translation(body.v_slice.start + k, body, k, turn @ S[k].linear) for k in along]
        carried = [other for other in tree.bodies if other.parent == body.index]
        if len(along) < len(S) or len(carried) != 1:
            break
        (body,) = carried
        turn = turn @ body.placement.as_transform().R
    return found


def _is_unlimited(body: Body) -> bool:
    ends = (literal(x) for part in ("lower", "upper") for x in bounds_of(body, part))
    return all(x is not None and math.isinf(x) for x in ends)


def flight_shift(
    start: StepStart,
    eta: Sequence[Scalar],
    contact: Sequence[Scalar],
    rebound: Sequence[Scalar] | None = None,
) -> list[Scalar]:
    """Return the displacement of (1) `(nv,)` of trees that nothing touches or that rebound; `contact`:
    the impulses of contact `(nv,)`, `rebound`: their part by restitution."""
    system, tree = start.system, start.system.axes.tree
    momenta = system.momenta(system.motion(eta))
    gained = [a - b for a, b in zip(momenta, start.momenta, strict=True)]
    change, masses = center_velocities(tree, start.q, gained), _carried_masses(tree)
    found: list[Scalar] = [0.0] * tree.nv
    for along in whole_translations(tree, start.q):
        places = [item.place for item in along]
        if not along or _is_tied(start, places):
            continue
        least = MIN_TOUCH_RATIO * GRAVITY_SCALE * start.dt * masses[along[0].body.index]
        flies = _square(contact, places) <= least * least
        if rebound is not None:
            flies = logical_or(flies, _square(rebound, places) > least * least)
        for k in places:
            found[k] = select(flies, change[k] * (-0.5 * start.dt), 0.0)
    return found


def center_velocities(tree: Tree, q: Sequence[Scalar], momenta: Sequence[Scalar]) -> list[Scalar]:
    """Return the velocities `(nv,)` of trees that move as wholes with the momenta `(nv,)` of translations."""
    found: list[Scalar] = [0.0] * tree.nv
    masses = _carried_masses(tree)
    for along in whole_translations(tree, q):
        inertia = [
            [a.axis.dot(b.axis) * masses[max(a.body.index, b.body.index)] for b in along] for a in along
        ]
        velocities = factor(inertia).solve([momenta[item.place] for item in along])
        for item, u in zip(along, velocities, strict=True):
            found[item.place] = u
    return found


def _is_tied(start: StepStart, places: Sequence[int]) -> bool:
    """Return whether prescribed motion or a constraint acts on variables."""
    rows = [item.row for item in (*start.equalities, *start.ranges)]
    tied = any(not is_zero(row[k]) for row in rows for k in places)
    return tied or not start.system.known.isdisjoint(places)


def _carried_masses(tree: Tree) -> list[Scalar]:
    """Return the mass of each body and of all that it carries."""
    masses: list[Scalar] = [body.inertia.mass for body in tree.bodies]
    for body in reversed(tree.bodies):
        if body.parent != WORLD:
            masses[body.parent] = masses[body.parent] + masses[body.index]
    return masses


def _square(impulses: Sequence[Scalar], places: Sequence[int]) -> Scalar:
    total: Scalar = 0.0
    for k in places:
        total = total + impulses[k] * impulses[k]
    return total


def _resistance(given: _Given) -> tuple[list[list[Scalar]], list[Scalar]]:
    """Return h d + h^2 k of the variables of every joint, and h K x `(nv,)`."""
    q, dt = given.q, given.dt
    springs: list[Scalar] = [0.0] * given.tree.nv
    found = []
    for body in given.tree.bodies:
        damping = body.damping if body.dependence is None else _follower_damping(body, body.dependence, given)
        found.append([dt * (d + dt * k) for d, k in zip(damping, body.stiffness, strict=True)])
        if all(is_zero(k) for k in body.stiffness):
            continue
        stretch = displacement(body, body.own_q(q))
        for places, k, x in zip(velocity_places(body), body.stiffness, stretch, strict=True):
            for place, ratio in places:
                springs[place] = springs[place] + dt * (k * x) * ratio
    return found, springs


def _spring_terms(given: _Given, springs: list[Scalar]) -> Iterator[Equality]:
    """Yield the rows h (d + h k) of springs between points, whose tension at the end of the step is
    k (x + h J v) + d J v, and add h K x to `springs`, in place."""
    for item in stretched_springs(_source(given.tree), given.q, time=given.time):
        gain = item.spring.damping + given.dt * item.stiffness
        equality = Equality(_with_clock(given.tree, item.row, item.path.drift), 0.0, 0.0, given.dt * gain)
        equality.add(given.dt * (item.spring.stiffness * item.stretch), springs)
        yield equality


def _follower_damping(body: Body, follows: Dependence, given: _Given) -> list[Scalar]:
    """Return the damping of a joint that follows others; if several, also its dry friction by the secant, as
    in the implicit integrator."""
    ((d,), (f,)) = body.damping, body.friction
    if is_zero(f) or len(follows.terms) == 1:
        return [d]
    u = follows.rate(given.v)
    return [d + f / sqrt(u * u + FRICTION_SPEED * FRICTION_SPEED)]


def _frictions(given: _Given) -> Iterator[JointDrive]:
    """Yield the dry friction of joints that one velocity variable moves."""
    for body in given.tree.bodies:
        single = _single_rate(body)
        if body.dependence is not None and single is None:
            continue
        for k, friction in enumerate(body.friction):
            if not is_zero(friction):
                place, ratio = (body.v_slice.start + k, 1.0) if single is None else single
                stiffness = 1.0 / (given.options.friction_compliance * given.inverse_mass[place])
                yield JointDrive(place, 0.0, stiffness, given.dt * friction * abs(ratio))


def _drive(motor: Motor, dt: Scalar) -> JointDrive:
    """Return implicit PD control: kp (e - h u) + kd (v_ref - u) = (kd + h kp) (target - u)."""
    gain = motor.kd + dt * motor.kp
    target = (motor.kp * motor.error + motor.kd * motor.v_ref) / gain
    return JointDrive(motor.place, target, dt * gain, dt * motor.effort)


def _loop_terms(given: _Given) -> list[Equality]:
    """Return the rows of loops and of the user's constraints, without those that are zero by structure.

    A closure q = gamma(y) gives dependent joints new velocities where the step ends (`StepStart.end`). K v =
    h k leads to those; with K v = 0 the forces that turn G = d gamma/dy would be missing.
    """
    if not is_constrained(given.tree):
        return []
    source, still = _source(given.tree), [0.0] * given.tree.nv
    equations = constraint_equations(source, given.q, still[: source.nv], time=given.time)
    ahead: Sequence[Scalar] = [0.0] * len(equations.k)
    if source.closure is not None:
        v = given.v[: source.nv]
        ahead = [given.dt * k for k in constraint_equations(source, given.q, v, time=given.time).k]
    compliance = threshold(LOOP_COMPLIANCE, maximum(given.dt, 1e-9))
    found = []
    parts = zip(equations.K, equations.position_error, equations.velocity_error, ahead, strict=True)
    for row, gap, drift, gained in parts:
        if any(not is_zero(k) for k in row):
            stiffness = 1.0 / (compliance * _row_inverse_mass(row, given.inverse_mass))
            target = gained - (drift if given.time is None else 0.0)
            K = _with_clock(given.tree, row, drift)
            found.append(Equality(K, target, gap * given.options.position_correction, stiffness))
    return found


def _source(tree: Tree) -> Tree:
    """Return the tree itself, not as it is at a time."""
    return tree.original if isinstance(tree, TreeAtTime) else tree


def _with_clock(tree: Tree, row: Sequence[Scalar], drift: Scalar) -> list[Scalar]:
    """Return a row of the variables of a tree with that of the clock, `drift`, if the tree has one."""
    return [*row, *[drift] * (tree.nv - len(row))]


def independent_bodies(tree: Tree) -> list[Body]:
    return [body for body in tree.bodies if body.dependence is None]
