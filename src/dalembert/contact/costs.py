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

The Hessian of (2) is 1 / R_t where the point sticks. Where it slides, that is scaled by limit / |pull|, and
zero along the pull.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, final

from dalembert.algorithms.dense import Matrix, zeros
from dalembert.algorithms.mass_matrix import mass_matrix
from dalembert.contact.tree_system import TreeFactor, TreeSystem, joint_axes
from dalembert.errors import ModelError
from dalembert.model.body import Body
from dalembert.model.tree import Tree
from dalembert.scalar import Scalar, absolute, is_zero, maximum, minimum, select, sqrt
from dalembert.spatial import ArticulatedInertia, Force, Mat3, SymMat3, Vec3

MIN_SQUARED_PULL = 1e-30
"""The least squared pull [N^2 s^2], that of 1e-15 N s: single precision can represent it."""


class PointForce(NamedTuple):
    """The impulse [N s] on the second body at a point, and its normal part."""

    impulse: Vec3
    normal: Scalar


class PointHessian(NamedTuple):
    """G = k_n n n^T + k_t (1 - n n^T - t t^T): along the normal n, and across it but for the unit vector t of
    the slip, which is zero where the point sticks."""

    n: Vec3
    k_n: Scalar
    t: Vec3
    k_t: Scalar

    def times(self, u: Vec3) -> Vec3:
        """Return G u."""
        along, slip = self.n.dot(u), self.t.dot(u)
        product: Vec3 = u * self.k_t + self.n * ((self.k_n - self.k_t) * along) - self.t * (self.k_t * slip)
        return product

    def root(self) -> PointHessian:
        """Return the square root of G."""
        return self._replace(k_n=sqrt(self.k_n), k_t=sqrt(self.k_t))

    def matrix(self) -> SymMat3:
        """Return G."""
        return _plus(dyad(self.n, self.k_n - self.k_t) - dyad(self.t, self.k_t), self.k_t)


@final
@dataclass(frozen=True, slots=True)
class Point:
    """A place where two bodies may touch, `arm` from the common origin; `normal` from first to second.

    `bound`: the least normal velocity [m/s]; `warm_start`: gamma0 [N s] along world axes.
    """

    arm: Vec3
    normal: Vec3
    bound: Scalar
    friction: Scalar
    stiffness: Scalar
    friction_stiffness: Scalar
    warm_start: Vec3

    def pressing(self, u: Vec3) -> Scalar:
        """Return gamma_n before it is limited to zero from below."""
        return self.normal.dot(self.warm_start) + self.stiffness * (self.bound - self.normal.dot(u))

    def normal_impulse(self, u: Vec3) -> Scalar:
        """Return gamma_n of Eq. (1)."""
        return maximum(self.pressing(u), 0.0)

    def force(self, u: Vec3, friction_bound: Scalar) -> PointForce:
        """Return Eqs (1) and (2); `friction_bound`: the normal impulse that bounds friction."""
        gamma = self.normal_impulse(u)
        if is_zero(self.friction):
            return PointForce(self.normal * gamma, gamma)
        pull = self.pull(u)
        ratio = minimum(self._friction_ratio(pull, friction_bound)[0], 1.0)
        return PointForce(self.normal * gamma + pull * ratio, gamma)

    def slides(self, u: Vec3, friction_bound: Scalar) -> Scalar:
        """Return whether friction is less than half of the impulse that would stop the slip."""
        return self._friction_ratio(self.pull(u), friction_bound)[0] < 0.5

    def pull(self, u: Vec3) -> Vec3:
        """Return the friction impulse that would stop the slip."""
        wanted = self.warm_start - u * self.friction_stiffness
        slanted: Vec3 = wanted - self.normal * self.normal.dot(wanted)
        return slanted

    def hessian(self, u: Vec3, friction_bound: Scalar) -> PointHessian:
        """Return G: minus the derivative of the impulse with respect to u."""
        active = select(self.pressing(u) > 0.0, self.stiffness, 0.0)
        if is_zero(self.friction):
            return PointHessian(self.normal, active, Vec3.zero(), 0.0)
        pull = self.pull(u)
        ratio, reciprocal = self._friction_ratio(pull, friction_bound)
        slip = pull * select(ratio < 1.0, reciprocal, 0.0)
        return PointHessian(self.normal, active, slip, minimum(ratio, 1.0) * self.friction_stiffness)

    def _friction_ratio(self, pull: Vec3, friction_bound: Scalar) -> tuple[Scalar, Scalar]:
        """Return the ratio of the friction limit to the pull, 1 or more where the point sticks, and 1 /
        |pull|."""
        reciprocal = 1.0 / sqrt(maximum(pull.dot(pull), MIN_SQUARED_PULL))
        return self.friction * friction_bound * reciprocal, reciprocal

    def wrench(self, impulse: Vec3) -> Force:
        """Return the impulse about the common origin."""
        return Force(self.arm.cross(impulse), impulse)

    def inertia(self, G: SymMat3) -> ArticulatedInertia:
        """Return [[r x G r x^T, r x G], [., G]]: the Hessian with respect to spatial velocities."""
        turned = self.arm.skew() @ Mat3(G.xx, G.xy, G.xz, G.xy, G.yy, G.yz, G.xz, G.yz, G.zz)
        columns = turned @ self.arm.skew().transpose()
        return ArticulatedInertia(
            SymMat3(columns.xx, columns.yy, columns.zz, columns.xy, columns.xz, columns.yz), turned, G
        )


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


def dyad(a: Vec3, factor: Scalar) -> SymMat3:
    """Return factor a a^T."""
    x, y, z = a.x * factor, a.y * factor, a.z * factor
    return SymMat3(x * a.x, y * a.y, z * a.z, x * a.y, x * a.z, y * a.z)


def _plus(S: SymMat3, c: Scalar) -> SymMat3:
    """Return S + c 1."""
    return SymMat3(S.xx + c, S.yy + c, S.zz + c, S.xy, S.xz, S.yz)


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

MAX_LEVER = 0.1
"""The greatest r of Eq. (1) [m]: about the half size of a limb."""

MIN_TREE_MASS_RATIO = 0.1
"""The least mass of a tree, as a fraction of the heaviest tree's mass: a lighter tree may have to carry that
one."""

MIN_LEVER = 1e-3
"""The least r [m]: point masses have no size of their own."""

SQUARED_RADIUS_TO_GYRATION = 2.5
"""The squared ratio of a ball's radius to its radius of gyration."""


def joint_inverse_masses(tree: Tree) -> list[Scalar]:
    """Return 1 / M_jj of every velocity variable, in the neutral configuration or, if M_jj is zero there, in
    another one."""
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
    return [1.0 / inertia for inertia in inertias]


def point_inverse_masses(tree: Tree) -> list[Scalar]:
    """Return w_i of every body [1/kg]; Eq. (1)."""
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
    heaviest: Scalar = 1e-9
    for mass in masses.values():
        heaviest = maximum(heaviest, mass)
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
