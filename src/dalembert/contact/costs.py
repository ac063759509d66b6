"""Terms of contact, limits and friction in Gauss's cost: impulses and Hessians as functions of velocities.

Every term is convex and piecewise quadratic in the velocity u that it opposes; `stiffness` is 1 / R of the
compliance R [1/kg] of its impulses [N s]. A point starts from its warm-start impulse gamma0, that of the
previous step: it carries lasting loads without giving way, for any R.

    normal      gamma_n = max(0, gamma0_n + (bound - u_n) / R_n)                                         (1)
    friction    gamma_t = the part of gamma0_t - u_t / R_t within |gamma_t| <= limit,                    (2)
                limit = mu gamma_n of an earlier iterate
    joint       (1) and (2) of one velocity variable: limits, dry friction, motors, with a given limit
    equality    gamma = (target - K v) / R                                                               (3)
    range       (1) of a row: the end of a range of a coordinate that several variables move

Friction also resists turning where a pair of shapes does, and may differ along two directions (`friction`).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, final

from dalembert.algorithms.dense import Matrix, zeros
from dalembert.algorithms.mass_matrix import mass_matrix
from dalembert.contact.friction import (
    EllipticHessian,
    Friction,
    FrictionLine,
    PointHessian,
    PointVector,
    Turning,
)
from dalembert.contact.prescribed import at_time_zero
from dalembert.contact.tree_system import TreeFactor, TreeSystem, joint_axes
from dalembert.errors import ModelError
from dalembert.model.body import Body
from dalembert.model.tree import Tree
from dalembert.scalar import Scalar, absolute, is_zero, maximum, minimum, select
from dalembert.scalar.row_sets import greatest
from dalembert.spatial import ArticulatedInertia, Force, Mat3, Motion, SymMat3, Vec3


class PointForce(NamedTuple):
    """The impulse on the second body at a point, and the normal part of its force [N s]."""

    impulse: PointVector
    normal: Scalar


@final
@dataclass(frozen=True, slots=True)
class Point:
    """A place where two bodies may touch, `arm` from the common origin; `normal` from first to second.

    `bound`: the least normal velocity [m/s]; `warm_start`: gamma0 [N s] along world axes; `across`: the
    coefficient of friction along the second direction of the surface, if it differs; `turning`: friction
    against turning, if any pair has it.
    """

    arm: Vec3
    normal: Vec3
    bound: Scalar
    friction: Scalar
    stiffness: Scalar
    friction_stiffness: Scalar
    warm_start: Vec3
    across: Scalar | None = None
    turning: Turning | None = None

    def velocity(self, relative: Motion) -> PointVector:
        """Return u of the relative velocity of both bodies about the common origin."""
        linear: Vec3 = relative.linear + relative.angular.cross(self.arm)
        return PointVector(linear, None if self.turning is None else relative.angular)

    def normal_velocity(self, u: PointVector) -> Scalar:
        """Return u_n."""
        return self.normal.dot(u.linear)

    def push(self, gamma: Scalar) -> PointVector:
        """Return the impulse gamma along the normal."""
        return PointVector(self.normal * gamma)

    def pressing(self, u: PointVector) -> Scalar:
        """Return gamma_n before it is limited to zero from below."""
        closing = self.bound - self.normal.dot(u.linear)
        return self.normal.dot(self.warm_start) + self.stiffness * closing

    def normal_impulse(self, u: PointVector) -> Scalar:
        """Return gamma_n of Eq. (1)."""
        return maximum(self.pressing(u), 0.0)

    @property
    def sliding(self) -> Friction | None:
        """Friction along the surface; None without any."""
        if is_zero(self.friction) and self.across is None:
            return None
        return Friction.of(self.normal, self.friction, self.across, self.friction_stiffness, self.warm_start)

    def force(self, u: PointVector, friction_bound: Scalar) -> PointForce:
        """Return Eqs (1) and (2); `friction_bound`: the normal impulse that bounds friction."""
        gamma, sliding, turning = self.normal_impulse(u), self.sliding, self.turning
        impulse = self.normal * gamma
        if sliding is not None:
            impulse = impulse + sliding.impulse(u.linear, friction_bound)
        torque = None
        if turning is not None and u.angular is not None:
            torque = turning.impulse(self.normal, u.angular, friction_bound)
        return PointForce(PointVector(impulse, torque), gamma)

    def slides(self, u: PointVector, friction_bound: Scalar) -> Scalar:
        """Return whether friction is less than half of the impulse that would stop the slip."""
        sliding = self.sliding
        if sliding is None:
            return False
        return sliding.ratio(sliding.pull(u.linear), friction_bound)[0] < 0.5

    def hessian(self, u: PointVector, friction_bound: Scalar) -> PointHessian | EllipticHessian:
        """Return G: minus the derivative of the impulse with respect to u."""
        active = select(self.pressing(u) > 0.0, self.stiffness, 0.0)
        sliding, turning = self.sliding, self.turning
        if sliding is None:
            G: PointHessian | EllipticHessian = PointHessian(self.normal, active, Vec3.zero(), 0.0)
        else:
            G = sliding.hessian(u.linear, friction_bound, active)
        if turning is None or u.angular is None:
            return G
        return replace(G, turning=turning.hessian(self.normal, u.angular, friction_bound))

    def lines(self, u: PointVector, y: PointVector, friction_bound: Scalar) -> list[FrictionLine]:
        """Return the parts of friction along the line u + alpha y."""
        sliding, turning = self.sliding, self.turning
        found = [] if sliding is None else [sliding.line(u.linear, y.linear, friction_bound)]
        if turning is not None and u.angular is not None and y.angular is not None:
            found += [part.line(u.angular, y.angular, friction_bound) for part in turning.parts(self.normal)]
        return found

    def wrench(self, impulse: PointVector) -> Force:
        """Return the impulse about the common origin."""
        moment = self.arm.cross(impulse.linear)
        return Force(moment if impulse.angular is None else moment + impulse.angular, impulse.linear)

    def inertia(self, hessian: PointHessian | EllipticHessian) -> ArticulatedInertia:
        """Return [[r x G r x^T + G_omega, r x G], [., G]]: the Hessian with respect to spatial velocities."""
        G = hessian.matrix()
        turned = self.arm.skew() @ Mat3(G.xx, G.xy, G.xz, G.xy, G.yy, G.yz, G.xz, G.yz, G.zz)
        columns = turned @ self.arm.skew().transpose()
        moments = SymMat3(columns.xx, columns.yy, columns.zz, columns.xy, columns.xz, columns.yz)
        turning = hessian.turning
        return ArticulatedInertia(moments if turning is None else moments + turning.matrix(), turned, G)


@final
@dataclass(frozen=True, slots=True)
class JointLimit:
    """The limit sign v[place] >= bound at one end of the range of a joint; `room`: the travel left up to
    it."""

    place: int
    sign: float
    bound: Scalar
    overlap: Scalar
    stiffness: Scalar
    room: Scalar = math.inf

    def impulse(self, u: Scalar) -> Scalar:
        """Return the impulse on v[place]; u = v[place]."""
        return self.stiffness * maximum(self.bound - u * self.sign, 0.0) * self.sign

    def hessian(self, u: Scalar) -> Scalar:
        return select(u * self.sign < self.bound, self.stiffness, 0.0)


@final
@dataclass(frozen=True, slots=True)
class JointDrive:
    """A drive that pulls one velocity variable towards `target` with an impulse of at most `limit`.

    Dry friction: target 0, stiff. A motor under PD control: its gains, and its largest torque.
    """

    place: int
    target: Scalar
    stiffness: Scalar
    limit: Scalar

    def impulse(self, u: Scalar) -> Scalar:
        """Return the impulse on v[place]; u = v[place]."""
        wanted = (self.target - u) * self.stiffness
        return maximum(minimum(wanted, self.limit), -self.limit)

    def hessian(self, u: Scalar) -> Scalar:
        return select(absolute((self.target - u) * self.stiffness) < self.limit, self.stiffness, 0.0)


@dataclass(frozen=True, slots=True)
class _Row(ABC):
    """A term of the velocity u = K v along a row K, whose structural zeros are skipped."""

    row: Sequence[Scalar]

    def velocity(self, v: Sequence[Scalar]) -> Scalar:
        """Return K v."""
        total: Scalar = 0.0
        for k, x in zip(self.row, v, strict=True):
            if not is_zero(k):
                total = total + k * x
        return total

    def add(self, gamma: Scalar, total: list[Scalar]) -> None:
        """Add K^T gamma to total, in place."""
        for i, k in enumerate(self.row):
            if not is_zero(k):
                total[i] = total[i] + k * gamma

    @abstractmethod
    def impulse(self, u: Scalar) -> Scalar:
        """Return the impulse along the row; u = K v."""


@final
@dataclass(frozen=True, slots=True)
class Equality(_Row):
    """The equality K v = target, a row of a loop or another constraint; position correction closes `gap`."""

    target: Scalar
    gap: Scalar
    stiffness: Scalar

    def impulse(self, u: Scalar) -> Scalar:
        return (self.target - u) * self.stiffness


@final
@dataclass(frozen=True, slots=True)
class RangeEnd(_Row):
    """The limit K v >= bound at one end of the range of a coordinate that several velocity variables move."""

    bound: Scalar
    overlap: Scalar
    stiffness: Scalar

    def impulse(self, u: Scalar) -> Scalar:
        return self.stiffness * maximum(self.bound - u, 0.0)

    def as_equality(self, reached: Scalar, target: Scalar) -> Equality:
        """Return K v = target where the end is reached, with zero stiffness elsewhere."""
        return Equality(self.row, target, -self.overlap, select(reached, self.stiffness, 0.0))


# H = A + J^T G J of points on single bodies, limits and constraints.
#
# The Hessian of a point adds to the inertia of its body, and the rest are terms of joint variables: of single
# variables, and of rows. Entries that are zero by structure stay literals, and `tree_system` skips them.


def factor_hessian(
    system: TreeSystem,
    inertias: Mapping[int, ArticulatedInertia],
    diagonal: Sequence[tuple[int, Scalar]],
    equalities: Sequence[Equality],
) -> TreeFactor:
    """Factor H of the sums of points on bodies, variables with their Hessians, and equalities."""
    terms = zeros(system.axes.tree.nv, system.axes.tree.nv)
    for place, hessian in diagonal:
        terms[place][place] = terms[place][place] + hessian
    for equality in equalities:
        _add_row(terms, equality)
    return system.factor(inertias, terms)


def _add_row(H: Matrix, equality: Equality) -> None:
    found = [i for i, k in enumerate(equality.row) if not is_zero(k)]
    for i in found:
        weighted = equality.row[i] * equality.stiffness
        for j in found:
            if j <= i:
                H[i][j] = H[i][j] + weighted * equality.row[j]


# Inverse effective masses of points, roughly w = J A^-1 J^T (Delassus diagonal), as a scale of compliances.
#
#     w_i = 1/3 sum over the joints that carry body i of |J_j|^2 / A_jj                                   (1)
#
# with J_j the velocity of the body's centre of mass for unit speed of variable j, and r^2 |omega_j|^2 added
# for points at the distance r from it: about the half size of a limb, or of the body where that is smaller,
# as friction of small bodies would be too soft otherwise, and they would creep. Taken once, in the neutral
# configuration, so that it is a constant.

MIN_INVERSE_INERTIA = 1e-9
"""The least inverse moment of inertia of a pair [1/(kg m^2)]: bodies that only slide cannot turn."""

MAX_LEVER = 0.1
"""The greatest r of Eq. (1) [m]: about the half size of a limb."""

MIN_TREE_MASS_RATIO = 0.1
"""The least mass of a tree, as a fraction of the heaviest tree's mass: a lighter tree may have to carry that
one."""

MIN_GAIN = 1e-9
"""The least gain of a motor [N/m, N m/rad]: smaller ones count as this, so that division is finite."""

MAX_DRIVE_STIFFNESS = 1e9
"""The greatest stiffness with which motors hold a body [N/m]: steel bars of a metre have about as much."""

MIN_LEVER = 1e-3
"""The least r [m]: point masses have no size of their own."""

SQUARED_RADIUS_TO_GYRATION = 2.5
"""The squared ratio of a ball's radius to its radius of gyration."""


def joint_inverse_masses(tree: Tree) -> list[Scalar]:
    """Return 1 / M_jj of every velocity variable, in the neutral configuration or, if M_jj is zero there, in
    another one; zero for the clock's."""
    clocks, tree = tree.nv, at_time_zero(tree)
    clocks -= tree.nv
    inertias = _diagonal(tree, _neutral(tree))
    if any(is_zero(inertia) for inertia in inertias):
        elsewhere = _diagonal(tree, _neutral(tree, shift=0.5))
        inertias = [b if is_zero(a) else a for a, b in zip(inertias, elsewhere, strict=True)]
    for body in tree.bodies:
        if body.dependence is None and any(is_zero(inertia) for inertia in inertias[body.v_slice]):
            raise ModelError(
                f'contact: joint "{body.joint_name}" has a freedom along which nothing with inertia moves; '
                "give what it carries mass and moments of inertia, or the joint an armature"
            )
    return [1.0 / inertia for inertia in inertias] + [0.0] * clocks


def point_inverse_masses(tree: Tree) -> list[Scalar]:
    """Return w_i of every body [1/kg]; Eq. (1)."""
    tree = at_time_zero(tree)
    q = _neutral(tree)
    inverse = joint_inverse_masses(tree)
    axes = joint_axes(tree, q)
    result: list[Scalar] = []
    masses, least = _tree_masses(tree)
    for body, mass in zip(tree.bodies, masses, strict=True):
        center = axes.poses[body].transform_point(body.inertia.com) - axes.origin
        lever = _squared_lever(body)
        total: Scalar = 0.0
        for places, s in axes.columns(-1, body.index):
            linear = s.linear + s.angular.cross(center)
            square = linear.dot(linear) + s.angular.dot(s.angular) * lever
            for place, ratio in places:
                total = total + square * inverse[place] * (ratio * ratio)
        result.append(total * (1.0 / 3.0) * minimum(mass / least, 1.0))
    return result


def turning_inverse_inertias(tree: Tree) -> list[Scalar]:
    """Return 1/3 sum |omega_j|^2 / A_jj of every body [1/(kg m^2)]: Eq. (1) for rotations, as a scale of
    friction against turning."""
    tree = at_time_zero(tree)
    inverse, axes = joint_inverse_masses(tree), joint_axes(tree, _neutral(tree))
    masses, least = _tree_masses(tree)
    result: list[Scalar] = []
    for body, mass in zip(tree.bodies, masses, strict=True):
        total: Scalar = 0.0
        for places, s in axes.columns(-1, body.index):
            for place, ratio in places:
                total = total + s.angular.dot(s.angular) * inverse[place] * (ratio * ratio)
        result.append(total * (1.0 / 3.0) * minimum(mass / least, 1.0))
    return result


def drive_stiffnesses(tree: Tree, gains: Mapping[int, Scalar]) -> list[Scalar]:
    """Return the stiffness [N/m] with which motors hold each body in the neutral configuration; `gains` [N/m,
    N m/rad] of velocity variables. Springs in series,

        1 / k_i = sum over the joints that carry body i of |J_j|^2 / kp_j,

    with J_j as in Eq. (1): zero where a joint without a motor carries the body.
    """
    tree = at_time_zero(tree)
    axes = joint_axes(tree, _neutral(tree))
    result: list[Scalar] = []
    for body in tree.bodies:
        center = axes.poses[body].transform_point(body.inertia.com) - axes.origin
        lever = _squared_lever(body)
        compliance: Scalar = 0.0
        held = True
        for places, s in axes.columns(-1, body.index):
            linear = s.linear + s.angular.cross(center)
            square = linear.dot(linear) + s.angular.dot(s.angular) * lever
            for place, ratio in places:
                gain = gains.get(place, 0.0)
                held = held and not is_zero(gain)
                if held:
                    compliance = compliance + square * (ratio * ratio) / maximum(gain, MIN_GAIN)
        is_driven = held and not is_zero(compliance)
        result.append(1.0 / maximum(compliance, 1.0 / MAX_DRIVE_STIFFNESS) if is_driven else 0.0)
    return result


def inverse_tree_masses(tree: Tree) -> list[Scalar]:
    """Return 1 / m of every body [1/kg], m the mass of its whole tree: the inverse effective mass of a point
    if the tree were one rigid body."""
    masses, least = _tree_masses(tree)
    return [1.0 / maximum(mass, least) for mass in masses]


def _tree_masses(tree: Tree) -> tuple[list[Scalar], Scalar]:
    """Return for each body the mass of the tree that it belongs to, and the least mass that counts."""
    roots = [body.index for body in tree.bodies]
    for body in tree.bodies:
        if body.parent >= 0:
            roots[body.index] = roots[body.parent]
    masses: dict[int, Scalar] = {}
    for body in tree.bodies:
        root = roots[body.index]
        masses[root] = masses[root] + body.inertia.mass if root in masses else body.inertia.mass
    heaviest = greatest(masses.values(), 1e-9)
    return [masses[root] for root in roots], heaviest * MIN_TREE_MASS_RATIO


def _squared_lever(body: Body) -> Scalar:
    """Return r^2 of Eq. (1) [m^2]: that of a ball with the body's mass and moments of inertia, at most
    `MAX_LEVER`^2."""
    moments, mass = body.inertia.inertia_at_com, body.inertia.mass
    if is_zero(mass):
        return MAX_LEVER * MAX_LEVER
    gyration = (moments.xx + moments.yy + moments.zz) / (3.0 * mass)
    return minimum(
        maximum(SQUARED_RADIUS_TO_GYRATION * gyration, MIN_LEVER * MIN_LEVER), MAX_LEVER * MAX_LEVER
    )


def _diagonal(tree: Tree, q: list[Scalar]) -> list[Scalar]:
    M = mass_matrix(tree, q)
    return [M[j][j] for j in range(tree.nv)]


def _neutral(tree: Tree, shift: float = 0.0) -> list[Scalar]:
    """Return neutral positions, shifted by `shift` for joints with one variable."""
    free = [body for body in tree.bodies if body.dependence is None]
    return [x + shift if body.nq == 1 else x for body in free for x in body.joint.neutral()]
