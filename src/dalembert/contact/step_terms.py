"""The common parts of every step with contact: free motion, the terms of joints and loops, new positions.

The unknown eta and A eta = p of free motion are those of `stepping`; rigid and compliant steps differ in
their points alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from dalembert.algorithms.applied_forces import FRICTION_SPEED, ExternalForces, displacement
from dalembert.algorithms.centroidal_coordinates import (
    centroidal_rates,
    from_centroidal,
    integrate_centroidal,
    to_centroidal,
    velocity_relative_to_center,
)
from dalembert.algorithms.constraints import constraint_equations, original_model
from dalembert.algorithms.dense import Matrix, threshold
from dalembert.algorithms.inverse_dynamics import bias_forces
from dalembert.algorithms.mass_matrix import mass_matrix
from dalembert.algorithms.open_tree import is_constrained
from dalembert.contact.active_contacts import JointAxes, joint_axes
from dalembert.contact.costs import Equality, JointDrive, JointLimit, Point, RangeEnd, dyad, multiply
from dalembert.contact.inverse_effective_mass import joint_inverse_masses
from dalembert.contact.joint_ranges import limit_terms, range_terms, row_inverse_mass, single_rate
from dalembert.contact.newton import GaussProblem
from dalembert.model.body import Body, Dependence
from dalembert.model.joints import Free, Spherical
from dalembert.model.topology import WORLD
from dalembert.model.tree import Tree
from dalembert.scalar import Scalar, is_zero, maximum, minimum, sqrt
from dalembert.spatial import SymMat3, Vec3

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


class BeforeContact(NamedTuple):
    """The parts of a step other than its points: joint axes, M, M v, free motion A eta = M v + acting, the
    terms of joints and loops; `bias`: velocity-product forces and weights, minus external forces."""

    axes: JointAxes
    M: Matrix
    momenta: list[Scalar]
    A: Matrix
    acting: list[Scalar]
    bias: list[Scalar]
    joints: list[JointLimit | JointDrive]
    equalities: list[Equality]
    ranges: list[RangeEnd]

    def problem(self, points: list[Point]) -> GaussProblem:
        """Return the problem to solve with these points."""
        p = [x + y for x, y in zip(self.momenta, self.acting, strict=True)]
        return GaussProblem(self.axes, self.A, p, points, self.joints, self.equalities, self.ranges)


def before_contact(
    tree: Tree,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    tau: Sequence[Scalar],
    dt: Scalar,
    motors: Sequence[Motor],
    *,
    limits: bool,
    correction_ratio: float,
    friction_compliance: float,
    external_forces: ExternalForces,
    external_frame: str,
) -> BeforeContact:
    """Compute the terms of a step of dt [s] that do not depend on contact points."""
    inverse_mass, axes, M = joint_inverse_masses(tree), joint_axes(tree, q), mass_matrix(tree, q)
    equalities = _loop_terms(tree, q, v, dt, inverse_mass, correction_ratio)
    A, springs = _resistance(tree, q, v, dt, M)
    momenta = multiply(M, v)
    seen = _middle(tree, q, v, dt, M, momenta)
    turning = multiply(M, _drift(tree, q, seen))
    b = bias_forces(tree, q, seen, external_forces=external_forces, external_frame=external_frame)
    bias = [x - c for x, c in zip(b, turning, strict=True)]
    acting = [dt * (t - x) - s for t, x, s in zip(tau, bias, springs, strict=True)]
    joints = _joint_terms(
        tree,
        q,
        dt,
        motors,
        inverse_mass,
        limits=limits,
        correction_ratio=correction_ratio,
        friction_compliance=friction_compliance,
    )
    ranges = range_terms(tree, q, dt, inverse_mass, correction_ratio) if limits else []
    return BeforeContact(axes, M, momenta, A, acting, bias, joints, equalities, ranges)


def _middle(
    tree: Tree, q: Sequence[Scalar], v: Sequence[Scalar], dt: Scalar, M: Matrix, momenta: Sequence[Scalar]
) -> list[Scalar]:
    """Return the velocities at which gyroscopic and Coriolis forces are evaluated.

    At v itself a tumbling body would gain (omega h)^2 of its energy in every step. So roots turn as in the
    middle of the step, which makes it (omega h)^4; less so where one turns by more than a radian in it.
    Velocities are relative to the centre of a free root: by Galilean invariance forces are the same, and
    rotating axes do not change the components of a zero velocity.
    """
    result = list(v)
    for body in _independent(tree):
        if body.parent != WORLD:
            continue
        own = body.own_v(v)
        if isinstance(body.joint, Free | Spherical):
            omega = Vec3(*own[:3])
            fourth = (dt * dt * omega.dot(omega)) ** 2  # power of the angle
            half = (0.5 * dt) / (1.0 + fourth * fourth)
            own = [*(omega + _turn(body, omega, M, momenta) * half), *own[3:]]
        result[body.v_slice] = velocity_relative_to_center(body, body.own_q(q), own)
    return result


def _turn(body: Body, omega: Vec3, M: Matrix, momenta: Sequence[Scalar]) -> Vec3:
    """Return the angular acceleration of a root by gyroscopic forces, I^-1 (L x omega), with the inertia and
    the angular momentum of its whole tree, about the tree's centre or, for a ball joint, about the joint."""
    rows = [row[body.v_slice] for row in M[body.v_slice]]
    inertia = SymMat3(rows[0][0], rows[1][1], rows[2][2], rows[0][1], rows[0][2], rows[1][2])
    L = Vec3(*momenta[body.v_slice][:3])
    if isinstance(body.joint, Free):
        mass = rows[3][3]
        c = Vec3(-rows[1][5], rows[0][5], -rows[0][4]) * (1.0 / mass)
        L = L - c.cross(Vec3(*momenta[body.v_slice][3:]))
        inertia = inertia + dyad(c, mass) - SymMat3.identity() * (mass * c.dot(c))
    turn: Vec3 = inertia.inverse() @ L.cross(omega)
    return turn


def _drift(tree: Tree, q: Sequence[Scalar], v: Sequence[Scalar]) -> list[Scalar]:
    """Return c, the rate of the components of a free body's velocity as its axes turn."""
    result: list[Scalar] = [0.0] * tree.nv
    for body in _independent(tree):
        if body.parent == WORLD:
            continue
        own_q, own_v, still = body.own_q(q), body.own_v(v), [0.0] * body.nv
        y, _ = to_centroidal(body, own_q, own_v)
        _, rate = centroidal_rates(body, own_q, own_v, still)
        _, result[body.v_slice] = from_centroidal(body, y, rate)
    return result


def within_limits(joints: Sequence[JointLimit | JointDrive], travel: Sequence[Scalar]) -> list[Scalar]:
    """Return the ways of joints in a step, shorter where they would lead beyond a limit.

    Velocities of rebounds, and corrections of overlaps, do not know of limits; the velocity that leads into a
    limit is stopped in the next step. Limits give way by `joint_ranges.LIMIT_GIVE` in all.
    """
    result = list(travel)
    for joint in joints:
        if isinstance(joint, JointLimit):
            k = joint.place
            result[k] = (
                maximum(result[k], -joint.room) if joint.sign > 0.0 else minimum(result[k], joint.room)
            )
    return result


def squared_turn(tree: Tree, q: Sequence[Scalar], M: Matrix, travel: Sequence[Scalar]) -> Scalar:
    """Return how far joints turn in a step, squared [rad^2]: the mean of the squares of their ways, `travel`,
    each with the kinetic energy that it would have alone, among those of all ways."""
    turns: Scalar = 0.0
    ways: Scalar = 1e-300
    for body in _independent(tree):
        for k, s in enumerate(body.jcalc(q, None, None).S, start=body.v_slice.start):
            square = travel[k] * travel[k]
            energy = M[k][k] * square
            ways = ways + energy
            if not all(is_zero(x) for x in s.angular):
                turns = turns + energy * square
    return turns / ways


def advance_state(
    tree: Tree, q: Sequence[Scalar], eta: Sequence[Scalar], travel: Sequence[Scalar]
) -> tuple[list[Scalar], list[Scalar]]:
    """Return q and v after the displacement `travel` with velocities eta, both along the axes at q."""
    q_next: list[Scalar] = [0.0] * tree.nq
    v_next: list[Scalar] = [0.0] * tree.nv
    for body in _independent(tree):
        own = body.own_q(q)
        y, w = to_centroidal(body, own, body.own_v(eta))
        _, way = to_centroidal(body, own, body.own_v(travel))
        turn = body.joint.normalize(integrate_centroidal(body, y, way))
        q_next[body.q_slice], v_next[body.v_slice] = from_centroidal(body, turn, w)
    return q_next, v_next


def _resistance(
    tree: Tree, q: Sequence[Scalar], v: Sequence[Scalar], dt: Scalar, M: Matrix
) -> tuple[Matrix, list[Scalar]]:
    """Return A, and h K x."""
    A = [list(row) for row in M]
    springs: list[Scalar] = [0.0] * tree.nv
    for body in _independent(tree):
        stretch = None
        for k in range(body.nv):
            place = body.v_slice.start + k
            d, stiffness = body.damping[k], body.stiffness[k]
            if not is_zero(d):
                A[place][place] = A[place][place] + dt * d
            if not is_zero(stiffness):
                stretch = body.joint.difference(body.rest, body.own_q(q)) if stretch is None else stretch
                A[place][place] = A[place][place] + dt * dt * stiffness
                springs[place] = dt * (stiffness * stretch[k])
    for body in tree.bodies:
        if body.dependence is not None:
            _add_follower(A, springs, body, body.dependence, q, v, dt)
    return A, springs


def _add_follower(
    A: Matrix,
    springs: list[Scalar],
    body: Body,
    follows: Dependence,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    dt: Scalar,
) -> None:
    """Add damping and spring of a joint whose rate is r . v: A + (h d + h^2 k) r r^T, h k x r; if it follows
    several joints, also its dry friction by the secant, as in the implicit integrator."""
    ((d,), (k,), (f,)) = body.damping, body.stiffness, body.friction
    if not is_zero(f) and len(follows.terms) > 1:
        u = follows.rate(v)
        d = d + f / sqrt(u * u + FRICTION_SPEED * FRICTION_SPEED)
    if is_zero(d) and is_zero(k):
        return
    resistance = dt * (d + dt * k)
    (stretch,) = displacement(body, body.own_q(q))
    for _, i, ratio in follows.terms:
        if not is_zero(k):
            springs[i] = springs[i] + dt * (k * stretch) * ratio
        for _, j, other in follows.terms:
            A[i][j] = A[i][j] + resistance * (ratio * other)


def _joint_terms(
    tree: Tree,
    q: Sequence[Scalar],
    dt: Scalar,
    motors: Sequence[Motor],
    inverse_mass: Sequence[Scalar],
    *,
    limits: bool,
    correction_ratio: float,
    friction_compliance: float,
) -> list[JointLimit | JointDrive]:
    """Return the terms of single velocity variables: ends of their ranges, dry friction, motors."""
    found: list[JointLimit | JointDrive] = []
    if limits:
        found += limit_terms(tree, q, dt, inverse_mass, correction_ratio)
    found += _frictions(tree, dt, inverse_mass, friction_compliance)
    return found + [_drive(motor, dt) for motor in motors]


def _frictions(tree: Tree, dt: Scalar, inverse_mass: Sequence[Scalar], compliance: float) -> list[JointDrive]:
    found = []
    for body in tree.bodies:
        single = single_rate(body)
        if body.dependence is not None and single is None:
            continue
        for k, friction in enumerate(body.friction):
            if not is_zero(friction):
                place, ratio = (body.v_slice.start + k, 1.0) if single is None else single
                stiffness = 1.0 / (compliance * inverse_mass[place])
                found.append(JointDrive(place, 0.0, stiffness, dt * friction * abs(ratio)))
    return found


def _drive(motor: Motor, dt: Scalar) -> JointDrive:
    """Return implicit PD control: kp (e - h u) + kd (v_ref - u) = (kd + h kp) (target - u)."""
    gain = motor.kd + dt * motor.kp
    target = (motor.kp * motor.error + motor.kd * motor.v_ref) / gain
    return JointDrive(motor.place, target, dt * gain, dt * motor.effort)


def _loop_terms(
    tree: Tree,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    dt: Scalar,
    inverse_mass: Sequence[Scalar],
    correction_ratio: float,
) -> list[Equality]:
    """Return the rows of loops and of the user's constraints, without those that are zero by structure."""
    if not is_constrained(tree):
        return []
    equations = constraint_equations(tree, q, v)
    prescribed = _prescribed_velocities(tree, q, len(equations.k))
    compliance = threshold(LOOP_COMPLIANCE, maximum(dt, 1e-9))
    found = []
    for row, gap, target in zip(equations.K, equations.position_error, prescribed, strict=True):
        places = [j for j, k in enumerate(row) if not is_zero(k)]
        if places:
            stiffness = 1.0 / (compliance * row_inverse_mass(row, places, inverse_mass))
            found.append(Equality(row, target, gap * correction_ratio, stiffness))
    return found


def _prescribed_velocities(tree: Tree, q: Sequence[Scalar], rows: int) -> list[Scalar]:
    """Return K v of every row in a motion that keeps the constraints: -psi(q, 0) for velocity constraints."""
    still: list[Scalar] = [0.0] * tree.nv
    own = [
        -x if item.kind == "velocity" else 0.0
        for item in tree.constraints
        for x in item.residual(original_model(tree), q, still, None)
    ]
    return [0.0] * (rows - len(own)) + own


def _independent(tree: Tree) -> list[Body]:
    return [body for body in tree.bodies if body.dependence is None]
